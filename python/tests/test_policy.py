"""Functions of Python as policies."""

from __future__ import annotations

import time
from typing import Literal

import pytest
import rackweave
from rackweave import Experiment, InputError, PolicyError


def mixed(**more: object) -> Experiment:
    """Messages of two sizes, so that the order matters."""
    return Experiment(
        title="Two sizes",
        design={"name": "edm"},
        fabric={"nodes": 4, "rate": "100Gbps"},
        workload={"load": 0.8, "size": {"table": [["64B", 9], ["4KiB", 1]]}},
        run={"requests": 2_000},
        **more,
    )


def latencies(run: rackweave.Run) -> list[int]:
    return run.requests().to_polars().sort("request")["latency_ps"].to_list()


def test_shortest_remaining_first_in_python_is_the_built_in_policy():
    asked = []

    def srpt(demand: rackweave.Demand) -> int:
        asked.append(demand)
        return demand.remaining

    experiment = mixed()
    run = experiment.run(priority=srpt)
    assert latencies(run) == latencies(experiment.run())
    first = asked[0]
    assert first.remaining == first.bytes > 0 and first.source != first.target and first.order == 1
    assert any(demand.remaining < demand.bytes for demand in asked) and "Demand(source=" in repr(first)
    assert {demand.is_answer for demand in asked} == {True, False}


def test_another_order_gives_other_results_and_is_told():
    def largest_first(demand: rackweave.Demand) -> int:
        return 2**32 - 1 - demand.remaining

    experiment = mixed()
    run, again = experiment.run(priority=largest_first), experiment.run(priority=largest_first)
    assert latencies(run) == latencies(again) != latencies(experiment.run())
    assert any("largest_first" in warning for warning in run.warnings) and "largest_first" in run.plan
    assert set(run.requests().to_polars()["label_priority"]) == {"largest_first"}
    assert latencies(run) != latencies(experiment.run(priority=lambda demand: 0)), "its values decide"
    small, as_built_in = (one.requests().to_polars().filter(bytes=64) for one in (run, experiment.run()))
    assert small["latency_ps"].mean() > as_built_in["latency_ps"].mean(), "they wait for the large ones"


def test_seeds_call_it_side_by_side():
    experiment = mixed()
    run = experiment.run(priority=lambda demand: demand.bytes, seeds=range(1, 5))
    assert run.seeds == [1, 2, 3, 4]
    alone = experiment.run(priority=lambda demand: demand.bytes, seeds=3)
    assert run.requests(3).to_polars()["latency_ps"].to_list() == alone.requests().to_polars()["latency_ps"].to_list()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), "gave nan"),
        (1.5, "gave 1.5"),
        (None, "gave None"),
        (True, "gave True"),
        (-1, "gave -1"),
        (2**32, "gave 4294967296"),
        ("soon", "gave 'soon'"),
        ("x" * 10_000, "gave 'x{199}..."),
        ([0], "gave a list"),
    ],
)
def test_what_is_no_priority_ends_the_run(tmp_path, value, shown):
    out = tmp_path / "out"
    with pytest.raises(PolicyError, match=f"`priority` by `<lambda>` {shown} for Demand.*from 0 to 4294967295"):
        mixed().run(priority=lambda demand: value, out=out)
    assert not out.exists(), "nothing is left that could be taken for results"


def test_an_exception_of_it_is_the_cause_of_the_error():
    def broken(demand: rackweave.Demand) -> int:
        return {}[demand.source]

    with pytest.raises(PolicyError, match="`broken` raised KeyError") as raised:
        mixed().run(priority=broken)
    assert isinstance(raised.value.__cause__, KeyError)


def test_a_call_that_does_not_end_is_ended():
    def endless(demand: rackweave.Demand) -> int:
        while True:
            pass

    began = time.monotonic()
    with pytest.raises(PolicyError, match="longer than policy_timeout"):
        mixed().run(priority=endless, policy_timeout=0.3)
    assert time.monotonic() - began > 0.3


def test_a_call_that_catches_exceptions_is_ended_too():
    def endless(demand: rackweave.Demand) -> int:
        while True:
            try:
                time.sleep(0.001)
            except Exception:
                pass

    with pytest.raises(PolicyError, match="`endless` raised .*longer than policy_timeout"):
        mixed().run(priority=endless, policy_timeout=0.3)


def test_ctrl_c_ends_a_call_that_does_not():
    import _thread
    import threading

    called = threading.Event()

    def endless(demand: rackweave.Demand) -> int:
        called.set()
        while True:
            pass

    def interrupt() -> None:
        called.wait()
        time.sleep(0.1)
        _thread.interrupt_main()

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        mixed().run(priority=endless, policy_timeout=1e9)


def rack() -> Experiment:
    """Drives of RackBlox that are so small that they collect all the time."""
    return Experiment(
        title="A rack that collects",
        design={"name": "rackblox"},
        rack={"servers": 4, "clients": 3, "network": "fast"},
        flash={"pages_per_block": 8},
        vssd={"per_ssd": 1, "capacity": "16MiB", "write_cache": "256KiB"},
        scheduler={"policy": "fifo"},
        collection={"check_period": "4ms", "idle_threshold": "1ms"},
        io={"addresses": "uniform", "write_share": 0.5, "depth": 16},
        run={"requests": 1_500, "warm_up": "0ns"},
    )


def by_urgency(job: rackweave.Job) -> int:
    return job.arrived_ps - job.network_ps


def in_turn(read: rackweave.Read) -> bool:
    better = read.is_collecting and not read.is_replica_collecting
    return read.is_replica_reachable and (better or not read.is_reachable)


def by_share(unit: rackweave.Unit) -> Literal["background", "soft", "regular"] | None:
    if unit.free * 100 < unit.owned * 25:
        return "regular"
    if unit.is_coordinated and unit.free * 100 < unit.owned * 35:
        return "soft"
    return "background" if unit.is_idle and unit.free < unit.owned else None


@pytest.mark.parametrize("policy", [{"order": by_urgency}, {"replica": in_turn}, {"collect": by_share}])
def test_a_policy_of_rackblox_in_python_is_what_is_built_in(policy):
    ((decision, function),) = policy.items()
    asked = []

    def asking(view: object) -> object:
        asked.append(view)
        return function(view)

    experiment = rack()
    run, built_in = experiment.run(**{decision: asking}), experiment.run()
    assert len(asked) > 100 and repr(asked[0]).startswith(f"{type(asked[0]).__name__}(")
    frame = run.requests().to_polars()
    assert set(frame[f"label_{decision}"]) == {"asking"}
    assert frame.drop(f"label_{decision}").equals(built_in.requests().to_polars())


def test_policies_of_rackblox_decide():
    experiment = rack()
    built_in = latencies(experiment.run())
    assert latencies(experiment.run(order=lambda job: -job.order)) != built_in
    assert latencies(experiment.run(replica=lambda read: read.order % 2 == 0)) != built_in
    never = experiment.set("collection.check_period", "30s").run(collect=lambda unit: None)
    assert any("`collect` by `<lambda>` was never asked" in warning for warning in never.warnings)
    early = experiment.run(collect=lambda unit: "regular" if unit.free * 10 < unit.owned * 3 else None)
    assert latencies(early) != built_in


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"order": lambda job: 2**63}, "`order` by `<lambda>` gave 9223372036854775808 for Job.*64 bits"),
        ({"order": lambda job: 0.5}, "gave 0.5 for Job"),
        ({"replica": lambda read: 1}, "`replica` by `<lambda>` gave 1 for Read.*needed is a bool"),
        ({"replica": lambda read: None}, "gave None for Read"),
        ({"collect": lambda unit: "now"}, "gave 'now' for Unit.*'background', 'soft' or 'regular'"),
        ({"collect": lambda unit: True}, "gave True for Unit"),
        ({"collect": lambda unit: unit.blocks}, "raised AttributeError.*blocks"),
    ],
)
def test_what_is_no_answer_ends_the_run(tmp_path, policy, message):
    with pytest.raises(PolicyError, match=message):
        rack().run(out=tmp_path / "out", **policy)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"priority": 3}, "priority: a int, needed is a function of a Demand"),
        ({"collect": "soft"}, "collect: a str, needed is a function of a Unit"),
        ({"priority": len, "policy_timeout": 0}, "policy_timeout: 0"),
        ({"priority": len, "policy_timeout": float("nan")}, "policy_timeout: nan"),
        ({"priority": len, "policy_timeout": True}, "policy_timeout: True"),
        ({"priority": len, "policy_timeout": float("inf")}, "policy_timeout: inf"),
        ({"priority": len, "policy_timeout": "1s"}, "policy_timeout: '1s'"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        mixed().run(**arguments)


def test_other_designs_have_no_such_place():
    with pytest.raises(InputError, match="priority: not decided in the design dctcp; designs: edm"):
        mixed().set("design.name", "dctcp").run(priority=lambda demand: 1)
    with pytest.raises(InputError, match="replica: not decided in the design edm; designs: rackblox"):
        mixed().run(replica=lambda read: True)
