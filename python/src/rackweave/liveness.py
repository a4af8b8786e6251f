"""Signs of life of workers on a Ray cluster: a frozen one is found and killed."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from .errors import RackweaveWarning, RunError

# Seconds between two signs of a worker, and between two looks for silent ones.
_BETWEEN_SIGNS = 1.0
# Seconds in which a node kills a worker.
_KILL_SECONDS_MAX = 30


class Worker(NamedTuple):
    """A process of a worker."""

    node: str
    """The name that Ray has for its node."""
    process: int
    begun: str
    """When it began, by its node: another process may get its number."""


def _begun(process: int) -> str:
    """When a process began, by its system; nothing where the system does not say."""
    try:
        # The 22nd field; the second, in brackets, may have any letters.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


class Signs:
    """Takes signs of life, in a process of its own on the cluster."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[Worker, float]] = {}

    def take(self, place: int, worker: Worker | None) -> None:
        """A worker plays a point; ``None``: it has ended it."""
        if worker is None:
            self._last.pop(place, None)
        else:
            self._last[place] = worker, time.monotonic()

    def silence(self) -> dict[int, tuple[Worker, float]]:
        """The worker of each point that is played, and for how many seconds it has given no sign."""
        now = time.monotonic()
        return {place: (worker, now - last) for place, (worker, last) in self._last.items()}


class Beating:
    """Gives signs of life while a point is played."""

    def __init__(self, signs: Any, place: int) -> None:
        self._signs = signs
        self._place = place
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> None:
        if self._signs is not None:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._signs is not None:
            self._thread.join()
            self._signs.take.remote(self._place, None)

    def _beat(self) -> None:
        import ray

        process = os.getpid()
        worker = Worker(ray.get_runtime_context().get_node_id(), process, _begun(process))
        while True:
            self._signs.take.remote(self._place, worker)
            if self._ended.wait(_BETWEEN_SIGNS):
                return


def _kill(worker: Worker) -> bool:
    """Kills a worker of this node, unless it has ended; returns whether it did."""
    if _begun(worker.process) != worker.begun:
        return False
    os.kill(worker.process, signal.SIGKILL)
    return True


class Watch:
    """Kills workers that have given no sign for `silence_max` seconds: Ray then plays their points
    again. ``None``: none is watched."""

    def __init__(self, silence_max: float | None) -> None:
        self._silence_max = silence_max
        self._killed: dict[int, set[Worker]] = {}
        # When a point without a worker was first seen, and those of which a warning says so.
        self._waiting: dict[int, float] = {}
        self._warned: set[int] = set()
        self._next = time.monotonic()
        self.signs: Any = None
        """Where workers send their signs."""

    def begin(self) -> None:
        """Starts what takes the signs."""
        if self._silence_max is None:
            return
        import ray

        self.signs = ray.remote(num_cpus=0, max_restarts=-1)(Signs).remote()
        # A worker keeps its signs until they can be taken: one that freezes before has given none.
        ray.get(self.signs.silence.remote())

    def look(self, running: dict[Any, int]) -> list[tuple[int, Exception]]:
        """Kills the silent workers of points that are played. Those that could not be killed fail,
        with their reasons, and are taken out."""
        failures: list[tuple[int, Exception]] = []
        if self._silence_max is None or time.monotonic() < self._next:
            return failures
        import ray
        from ray.exceptions import RayError

        self._next = time.monotonic() + _BETWEEN_SIGNS
        try:
            silence = ray.get(self.signs.silence.remote(), timeout=_KILL_SECONDS_MAX)
        except RayError:
            # It begins anew, and nothing is silent.
            return failures
        for task, place in list(running.items()):
            worker, seconds = silence.get(place, (None, float("inf")))
            if seconds <= self._silence_max:
                self._waiting.pop(place, None)
                continue
            if worker is None or worker in self._killed.setdefault(place, set()):
                self._wait(place)
                continue
            self._killed[place].add(worker)
            try:
                self._kill(worker)
            except (RayError, OSError) as error:
                ray.cancel(task, force=True)
                del running[task]
                failures.append((place, self._error(place, f"and could not be killed: {error}", error)))
        return failures

    def _wait(self, place: int) -> None:
        """Warns of a point that no worker has begun. Nothing tells a cluster without a free core from a
        worker that froze before its first sign, so the point is waited for."""
        seconds = time.monotonic() - self._waiting.setdefault(place, time.monotonic())
        if self._silence_max is not None and seconds > self._silence_max and place not in self._warned:
            self._warned.add(place)
            warnings.warn(
                f"point {place} has not begun for {seconds:.0f} s: the cluster has no free core for it, or its worker "
                "froze before it began; Ctrl-C ends the sweep, and the same call goes on",
                RackweaveWarning,
                stacklevel=2,
            )

    def _kill(self, worker: Worker) -> None:
        """Has the worker killed on its node."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        there = NodeAffinitySchedulingStrategy(worker.node, soft=False)
        kill = ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=there)(_kill)
        ray.get(kill.remote(worker), timeout=_KILL_SECONDS_MAX)

    def explained(self, place: int, error: Exception) -> Exception:
        """The error of a point; it says so if its workers were killed."""
        times = len(self._killed.get(place, ()))
        return error if times == 0 else self._error(place, f"{times} times", error)

    def _error(self, place: int, what: str, cause: Exception) -> RunError:
        killed = ", ".join(f"process {worker.process} of node {worker.node}" for worker in self._killed[place])
        made = RunError(f"its worker gave no sign of life for {self._silence_max:g} s, {what} ({killed})")
        made.__cause__ = cause
        return made

    def end(self) -> None:
        """Ends what takes the signs."""
        if self.signs is not None:
            import ray

            ray.kill(self.signs)
