"""What goes on while a run is played: other threads, progress, Ctrl-C."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import rackweave
from conftest import SMALL
from rackweave import ExperimentError, InputError, Interrupted, Problem
from rackweave.progress import Listener, bar


def test_other_threads_go_on(small):
    ticks, ended = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not ended.is_set():
            ticks += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    small.set("run.requests", 400_000).run()
    seen = ticks
    ended.set()
    thread.join()
    # A run that keeps the interpreter's lock lets a few pass, before it begins.
    assert seen > 20, f"{seen} ticks"


def test_several_threads_run_at_once(small):
    runs = {}

    def run(seed: int) -> None:
        runs[seed] = small.run(seeds=seed).summary["latency_ns"]["all"]["mean"]

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert runs == {seed: small.run(seeds=seed).summary["latency_ns"]["all"]["mean"] for seed in range(4)}


def test_progress_is_told_to_a_function(small):
    events = []
    small.set("run.requests", 300_000).run(progress=events.append)
    assert events[-1]["event"] == "point" and events[-1]["requests"] == 300_000
    fractions = [event["fraction"] for event in events if event["event"] == "progress"]
    assert fractions and fractions == sorted(fractions) and 0 <= fractions[0] <= fractions[-1] <= 1


def test_an_exception_of_that_function_stops_the_run(long):
    def refuse(event: dict) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        long.run(long=True, progress=refuse)


def test_progress_is_a_bar_in_a_notebook(monkeypatch, small):
    shown, bars = [], []

    class Handle:
        def update(self, content: object) -> None:
            shown.append(content)

    def display(content: object, display_id: bool) -> Handle:
        shown.append(content)
        bars.append(display_id)
        return Handle()

    class ZMQInteractiveShell:
        pass

    ipython = type(sys)("IPython")
    ipython.get_ipython = ZMQInteractiveShell
    ipython.display = type(sys)("IPython.display")
    ipython.display.HTML, ipython.display.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    small.set("run.requests", 300_000).run()
    assert len(shown) > 1 and bars == [True], "one bar, which changes"
    assert shown[-1].startswith('<progress max="1" value="1.0000">')
    assert not Listener(None).bar


def test_a_bar_has_no_markup_of_names():
    text = bar({"event": "point", "point": "<b>", "done": 1, "of": 4, "eta_seconds": 9.6})
    assert "&lt;b&gt;" in text and 'value="0.2500"' in text and "about 10 s left" in text


def test_nothing_is_shown_without_a_terminal(small, capfd):
    small.run()
    assert capfd.readouterr() == ("", "") and not Listener(None).bar


def test_what_is_said_goes_to_the_error_output_and_warnings_are_never_dropped(capfd):
    for progress in (None, False):
        with pytest.warns(rackweave.RackweaveWarning, match="^a disk is full$"):
            Listener(progress).say("warning: a disk is full")
        Listener(progress).say("it may take 3 s")
    assert capfd.readouterr() == ("", "it may take 3 s\n"), "once: progress=False shows none"


INTERRUPTED = """
import json, os, pathlib, signal, sys, threading, time
import rackweave
from rackweave import Interrupted
experiment = rackweave.Experiment.from_text(sys.argv[1]).set("run.requests", 2_000_000_000)
def interrupt():
    while not pathlib.Path(sys.argv[2], "seed-1", "records").exists():
        time.sleep(0.01)
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
try:
    experiment.run(out=sys.argv[2], long=True)
except KeyboardInterrupt as error:
    run = rackweave.open(error.path)
    print(json.dumps([isinstance(error, Interrupted), run.partial, run.summary["partial"], str(error)]))
    rows = run.requests().to_arrow().num_rows
    assert rows == run.summary["counts"]["offered"] - run.summary["counts"]["not_issued"], rows
"""


def test_ctrl_c_stops_a_run_and_keeps_what_there_is(tmp_path):
    out = str(tmp_path / "out")
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, SMALL, out], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    is_ours, partial, in_summary, message = json.loads(done.stdout)
    assert is_ours and partial and in_summary and out in message


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no terminals to open here")
def test_progress_is_a_bar_on_a_terminal(tmp_path):
    import pty

    script = "import rackweave, sys; rackweave.Experiment.from_text(sys.argv[1]).set('run.requests', 300_000).run()"
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", script, SMALL], stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:
        pass  # Its other end is closed.
    os.close(ours)
    assert process.wait(timeout=100) == 0
    assert b"Small messages" in shown and b"%" in shown and b"eta" in shown


@pytest.mark.parametrize(
    "error",
    [
        Interrupted("out"),
        Interrupted("s3://bucket/out"),
        InputError("what"),
        ExperimentError("what", [Problem("a.toml", 1, 2, "run", "what", None)]),
    ],
)
def test_exceptions_pass_between_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) and vars(again) == vars(error)


def test_an_interrupted_sweep_in_an_object_store_names_its_url():
    error = Interrupted("s3://bucket/out")
    assert error.path == "s3://bucket/out" and str(error).endswith(" s3://bucket/out")
    assert Interrupted("out").path == Path("out")


def test_points_that_ended_early_are_a_warning(tmp_path, swept):
    out = tmp_path / "out"
    (point,) = swept.sweep(out=out, index="0/4")
    summary = point.path / "summary.json"
    summary.write_text(json.dumps({**json.loads(summary.read_text()), "partial": True}))
    with pytest.warns(rackweave.PartialWarning, match="1 of 2 points ended early") as warned:
        share = swept.sweep(out=out, index="1/4")
    assert share.partial is not None and warned[0].filename == __file__
    assert rackweave.open(out).partial == share.partial
    whole = swept.sweep(out=out)
    assert whole.partial is None and len(whole) == 4, "it is played again"


def test_a_run_leaves_the_handlers_of_signals(small):
    small.run()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "runs leave handlers as they are"
