"""A function of Python as EDM's priority."""

from __future__ import annotations

import time

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
    ],
)
def test_what_is_no_priority_ends_the_run(tmp_path, value, shown):
    out = tmp_path / "out"
    with pytest.raises(PolicyError, match=f"{shown} for Demand.*from 0 to 4294967295"):
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
    with pytest.raises(PolicyError, match="longer than priority_timeout"):
        mixed().run(priority=endless, priority_timeout=0.3)
    assert time.monotonic() - began > 0.3


def test_ctrl_c_ends_a_call_that_does_not():
    import _thread
    import threading

    def endless(demand: rackweave.Demand) -> int:
        while True:
            pass

    threading.Timer(0.5, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        mixed().run(priority=endless, priority_timeout=1e9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"priority": 3}, "priority: a int"),
        ({"priority": len, "priority_timeout": 0}, "priority_timeout: 0"),
        ({"priority": len, "priority_timeout": float("nan")}, "priority_timeout: nan"),
        ({"priority": len, "priority_timeout": True}, "priority_timeout: True"),
        ({"priority": len, "priority_timeout": float("inf")}, "priority_timeout: inf"),
        ({"priority": len, "priority_timeout": "1s"}, "priority_timeout: '1s'"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        mixed().run(**arguments)


def test_other_designs_have_no_such_place():
    with pytest.raises(InputError, match="the design dctcp takes none"):
        mixed().set("design.name", "dctcp").run(priority=lambda demand: 1)
