"""Sweeps on several machines: shares of a job array, and a Ray cluster."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import rackweave
from conftest import SWEEP
from rackweave import Experiment, InputError, Interrupted, RackweaveWarning, RunError
from test_results import PROGRAM, files

SLURM = Path(__file__).parents[2] / "docs/guide/examples/sweep.slurm"


@pytest.mark.skipif(PROGRAM is None, reason="RACKWEAVE_PROGRAM does not name the command line")
def test_a_job_array_leaves_what_one_machine_does(tmp_path):
    (tmp_path / "swept.toml").write_text(SWEEP)
    (tmp_path / "rackweave").symlink_to(PROGRAM)
    tasks = []
    for task in range(3):
        slurm = {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_CPUS_PER_TASK": "1"}
        environment = {**os.environ, **slurm, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        tasks.append(subprocess.Popen(["bash", SLURM, "swept.toml", "array"], cwd=tmp_path, env=environment))
    assert [task.wait(timeout=100) for task in tasks] == [0, 0, 0]
    Experiment.from_toml(tmp_path / "swept.toml").sweep(out=tmp_path / "one")
    array, one = files(tmp_path / "array"), files(tmp_path / "one")
    assert len(rackweave.open(tmp_path / "array")) == 4
    assert {name: content for name, content in array.items() if name.startswith("points/")} == {
        name: content for name, content in one.items() if name.startswith("points/")
    }


# A machine that builds beside takes its time to start a node. Ray reads these once.
os.environ["RAY_raylet_start_wait_time_s"] = "120"
os.environ["RAY_gcs_server_port_wait_time_s"] = "120"
ray = pytest.importorskip("ray", reason="the package ray is not installed")

# One node with two cores in place of two nodes.
IS_SMALL = os.environ.get("RACKWEAVE_CLUSTER") in ("small", "ci")
IS_CI = os.environ.get("RACKWEAVE_CLUSTER") == "ci"
# Ray waits 30 s for a node, whatever its settings are.
STARTS_MAX = 4


def start() -> Callable[[], None]:
    """Starts a cluster of two cores and connects to it; returns what ends it."""
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if IS_SMALL:
        ray.init(num_cpus=2, include_dashboard=False, **quiet)
        return lambda: None
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, **quiet)
    except Exception:
        cluster.shutdown()
        raise
    return cluster.shutdown


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", "127.0.0.1:1.*no cluster answers there"),
        ("127.0.0.1:99999", "127.0.0.1:99999.*no cluster answers there"),
        ("nonsense", "nonsense"),
        (3, "address: a int"),
    ],
)
def test_an_address_without_a_cluster_is_refused(swept, address, message):
    assert not ray.is_initialized()
    with pytest.raises(InputError, match=message):
        swept.sweep(engine="ray", address=address)


@pytest.fixture(scope="module")
def cluster():
    """Two cores, of two nodes or of one."""
    for left in reversed(range(STARTS_MAX)):
        try:
            shutdown = start()
            break
        except Exception as error:
            ray.shutdown()
            if "timed out" not in str(error):
                raise
            if not left and IS_CI:
                pytest.skip(f"Ray started no node within its own 30 s, {STARTS_MAX} times: {error}")
            if not left:
                raise
    yield
    ray.shutdown()
    shutdown()


def workers() -> list[int]:
    """The processes that play a point just now."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if command.startswith(b"ray::rackweave point"):
            found.append(int(folder.name))
    return found


@pytest.mark.parametrize("shared", [True, False])
def test_a_cluster_leaves_the_same_bytes_as_one_machine(cluster, tmp_path, swept, shared):
    events = []
    there = swept.sweep(engine="ray", shared=shared, out=tmp_path / "ray", seeds=[1, 2], progress=events.append)
    swept.sweep(out=tmp_path / "here", seeds=[1, 2])
    assert len(there) == 4 and [event["done"] for event in events] == [1, 2, 3, 4]
    assert len({event["point"] for event in events}) == 4
    assert files(tmp_path / "ray") == files(tmp_path / "here")


def test_both_cores_work(cluster, tmp_path, swept):
    # A point takes one core: two at a time are on both, and on two nodes if each has one.
    most, ended = 0, threading.Event()

    def count() -> None:
        nonlocal most
        while not ended.is_set():
            most = max(most, len(workers()))
            time.sleep(0.01)

    thread = threading.Thread(target=count)
    thread.start()
    swept.set("run.requests", 100_000).sweep(engine="ray", out=tmp_path / "ray", records=False)
    ended.set()
    thread.join()
    assert most == 2


def test_a_sweep_goes_on_where_it_was(cluster, tmp_path, swept):
    out = tmp_path / "out"
    swept.sweep(out=out, index="0/2")
    events = []
    with pytest.raises(InputError, match="another sweep"):
        swept.set("run.requests", 10).sweep(engine="ray", out=out, progress=events.append)
    assert not events, "it is refused before a point is played"
    assert len(swept.sweep(engine="ray", out=out, progress=events.append)) == 4
    assert [event["done"] for event in events] == [3, 4]
    (summary,) = out.glob("points/002*/summary.json")
    whole = summary.read_text()
    summary.write_text(json.dumps({**json.loads(whole), "partial": True}))
    assert len(swept.sweep(engine="ray", out=out, progress=events.append)) == 4
    assert [event["done"] for event in events] == [3, 4, 4] and summary.read_text() == whole


def test_another_cluster_than_that_which_is_there_is_refused(cluster, swept):
    with pytest.raises(InputError, match="127.0.0.1:1.: the program is connected to"):
        swept.sweep(engine="ray", address="127.0.0.1:1")


def test_a_point_is_played_again_when_its_worker_dies(cluster, tmp_path, swept):
    slow = swept.set("run.requests", 300_000)
    killed = []

    ended = threading.Event()

    def kill() -> None:
        while not killed and not ended.is_set():
            for process in workers()[:1]:
                os.kill(process, signal.SIGKILL)
                killed.append(process)
            time.sleep(0.01)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        sweep = slow.sweep(engine="ray", out=tmp_path / "ray", records=False)
    finally:
        ended.set()
        thread.join()
    slow.sweep(out=tmp_path / "here", records=False)
    assert killed and len(sweep) == 4
    assert files(tmp_path / "ray") == files(tmp_path / "here")


def test_storage_that_refuses_is_named_and_what_is_there_stays(cluster, tmp_path, swept):
    out = tmp_path / "out"
    swept.sweep(out=out, index="0/4")
    # A file in the place of a point: no worker can put its folder there.
    name = next(path.name for path in (tmp_path / "out" / "points").iterdir())
    assert name.startswith("000")
    blocked = out / "points" / "003-design=cxl,load=0.5"
    blocked.write_text("in the way")
    with pytest.raises(RunError, match="1 of 4 points failed, first point 3"):
        swept.sweep(engine="ray", out=out)
    blocked.unlink()
    assert len(swept.sweep(engine="ray", out=out)) == 4


def test_a_worker_of_another_version_is_refused(cluster, tmp_path, swept, monkeypatch):
    from rackweave import cluster as ours

    monkeypatch.setattr(ours, "VERSION", "0.0.1")
    with pytest.raises(RunError, match="the driver has 0.0.1"):
        swept.sweep(engine="ray", out=tmp_path / "out")


def test_ctrl_c_ends_a_sweep_on_a_cluster(cluster, tmp_path, swept):
    import _thread

    threading.Timer(2, _thread.interrupt_main).start()
    began = time.monotonic()
    with pytest.raises(Interrupted, match="out"):
        swept.set("run.requests", 500_000_000).sweep(engine="ray", out=tmp_path / "out", long=True)
    assert time.monotonic() - began < 10
    deadline = time.monotonic() + 10
    while workers() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not workers()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"engine": "spark"}, "engine: 'spark'"),
        ({"engine": "ray", "index": "0/2"}, "index"),
        ({"engine": "ray", "out": "nosuch://bucket/x"}, "nosuch"),
        ({"out": "s3://bucket/x"}, "engine='ray'"),
        ({"address": "auto"}, "engine='ray'"),
        ({"engine": "ray", "silence_max": 1}, "silence_max: 1"),
        ({"engine": "ray", "silence_max": "60s"}, "silence_max: '60s'"),
        ({"engine": "ray", "silence_max": True}, "silence_max: True"),
    ],
)
def test_wrong_arguments_are_refused(swept, more, message):
    with pytest.raises(InputError, match=message):
        swept.sweep(**more)


TRACED = """\
title = "Messages of a trace"
fabric = { nodes = 4, rate = "100Gbps" }
workload = { arrivals = "trace", file = "../traces/messages.csv" }
[sweep]
"design.name" = ["edm", "cxl"]
"""


@pytest.fixture
def traced(tmp_path) -> Experiment:
    """A sweep that reads a trace by a path relative to its file."""
    (tmp_path / "traces").mkdir()
    lines = (f"{100 * number}ns,{number % 4},{(number + 1) % 4},read,64\n" for number in range(200))
    (tmp_path / "traces" / "messages.csv").write_text("time,source,target,operation,bytes\n" + "".join(lines))
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "traced.toml").write_text(TRACED)
    return Experiment.from_toml(tmp_path / "experiments" / "traced.toml")


@pytest.mark.parametrize("shared", [True, False])
def test_files_that_an_experiment_reads_go_to_the_workers(cluster, tmp_path, traced, shared):
    there = traced.sweep(engine="ray", shared=shared, out=tmp_path / "ray")
    traced.sweep(out=tmp_path / "here")
    assert len(there) == 2 and files(tmp_path / "ray") == files(tmp_path / "here")
    (replayed,) = Experiment.from_toml(there[0].path / "plan.toml").plans()
    assert replayed.hash in there[0].plan, "the plan finds the trace from where it lies"


def test_files_that_cannot_go_to_workers_are_named(cluster, tmp_path, traced):
    trace = tmp_path / "traces" / "messages.csv"
    with pytest.raises(InputError, match=f"it reads '{trace}'.*relative to the experiment"):
        traced.set("workload.file", str(trace)).sweep(engine="ray", out=tmp_path / "out")
    pytest.importorskip("fsspec")
    with pytest.raises(InputError, match="memory://out.*the experiment reads '../traces/messages.csv'"):
        traced.sweep(engine="ray", out="memory://out")
    assert not (tmp_path / "out").exists()


def freeze(ended: threading.Event, most: int) -> tuple[threading.Thread, list[int]]:
    """Stops the first so many workers that play a point, each with a signal that nobody catches."""
    frozen: list[int] = []

    def stop() -> None:
        while not ended.is_set():
            for process in workers():
                if process not in frozen and len(frozen) < most:
                    # By then it has begun to play, and given a sign.
                    time.sleep(3)
                    # One that has ended its point would stay frozen: nobody waits for it.
                    if process in workers():
                        os.kill(process, signal.SIGSTOP)
                        frozen.append(process)
            time.sleep(0.01)

    thread = threading.Thread(target=stop)
    thread.start()
    return thread, frozen


def gone(processes: list[int]) -> bool:
    """Whether processes end: their node takes a moment to clear away what was killed."""
    for _ in range(100):
        if not any(Path(f"/proc/{process}").exists() for process in processes):
            return True
        time.sleep(0.1)
    return False


def test_a_frozen_worker_is_killed_and_its_point_played_again(cluster, tmp_path, swept):
    slow, ended = swept.set("run.requests", 3_000_000), threading.Event()
    thread, frozen = freeze(ended, most=1)
    try:
        sweep = slow.sweep(engine="ray", out=tmp_path / "ray", records=False, silence_max=3)
    finally:
        ended.set()
        thread.join()
    slow.sweep(out=tmp_path / "here", records=False)
    assert len(sweep) == 4 and len(frozen) == 1 and gone(frozen)
    assert files(tmp_path / "ray") == files(tmp_path / "here")


def test_a_point_whose_workers_all_freeze_fails_and_says_so(cluster, tmp_path, swept):
    slow = swept.set("run.requests", 500_000_000).set("workload.load", 0.5).set("design.name", "edm")
    ended = threading.Event()
    thread, frozen = freeze(ended, most=100)
    try:
        with pytest.raises(RunError, match="first point 0.*no sign of life for 2 s, 4 times .process [0-9]+ of node"):
            slow.sweep(engine="ray", out=tmp_path / "out", long=True, silence_max=2)
    finally:
        ended.set()
        thread.join()
    assert len(frozen) == 4 and gone(frozen)


def test_points_that_no_worker_begins_are_warned_of_and_waited_for(cluster, tmp_path, swept):
    begun, over = [tmp_path / f"other-{number}" for number in range(2)], tmp_path / "over"

    def wait_for(holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not holds() and time.monotonic() < deadline:
            time.sleep(0.01)

    @ray.remote
    def other(own: Path) -> None:
        own.touch()
        wait_for(over.exists)

    def end_others() -> None:
        wait_for(lambda: any(issubclass(one.category, RackweaveWarning) for one in warned.list))
        over.touch()

    others = [other.remote(path) for path in begun]
    wait_for(lambda: all(path.exists() for path in begun))
    ending = threading.Thread(target=end_others)
    told = "point 0 has not begun for [0-9]+ s: the cluster has no free core"
    with pytest.warns(RackweaveWarning, match=told) as warned:
        ending.start()
        sweep = swept.sweep(engine="ray", out=tmp_path / "out", jobs=1, silence_max=2)
    ending.join()
    assert len(sweep) == 4
    ray.get(others)


@pytest.fixture(scope="module")
def bucket():
    """A server with the API of S3."""
    server = pytest.importorskip("moto.server", reason="the package moto is not installed")
    s3fs = pytest.importorskip("s3fs", reason="the package s3fs is not installed")
    running = server.ThreadedMotoServer(port=0)
    running.start()
    host, port = running.get_host_and_port()
    options = {"key": "k", "secret": "s", "client_kwargs": {"endpoint_url": f"http://{host}:{port}", "region_name": "eu"}}
    s3fs.S3FileSystem(**options).mkdir("results")
    yield options
    running.stop()


def test_an_object_store_takes_the_results(cluster, bucket, tmp_path, swept):
    import fsspec

    sweep = swept.sweep(engine="ray", out="s3://results/first", storage_options=bucket)
    swept.sweep(out=tmp_path / "here")
    system, root = fsspec.core.url_to_fs("s3://results/first", use_listings_cache=False, **bucket)
    stored = {path.removeprefix(f"{root}/"): system.cat_file(path) for path in system.find(root)}
    assert stored == files(tmp_path / "here") and len(sweep) == 4
    events = []
    system.rm(f"{root}/points/{sweep[2].path.name}/summary.json")
    swept.sweep(engine="ray", out="s3://results/first", storage_options=bucket, progress=events.append)
    assert [event["done"] for event in events] == [4]
    with pytest.raises(InputError, match="another sweep"):
        swept.set("run.requests", 10).sweep(engine="ray", out="s3://results/first", storage_options=bucket)
