"""Functions of a user's own that decide in a run."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from .errors import InputError

# What each function is given, and what it returns.
_SHAPES = {
    "priority": "a function of a Demand",
    "order": "a function of a Job",
    "replica": "a function of a Read",
    "collect": "a function of a Unit",
}


class _TooLong(BaseException):
    """Raised in a call from outside, which takes no arguments. No `except Exception` catches it."""

    def __str__(self) -> str:
        return "the call took longer than policy_timeout"


class Policies:
    """Calls functions by the names of their decisions, and knows which calls go on, so that none of
    them holds up a run. A function that is ``None`` is none."""

    def __init__(self, functions: Mapping[str, Callable[[Any], object] | None], seconds_max: float) -> None:
        is_number = isinstance(seconds_max, (int, float)) and not isinstance(seconds_max, bool)
        if not is_number or not 0 < seconds_max < float("inf"):
            raise InputError(f"policy_timeout: {seconds_max!r}; needed is a number of seconds above 0")
        self._seconds_max = seconds_max
        # When the call of each thread began.
        self._begun: dict[int, float] = {}
        self.calls: list[tuple[str, str, Callable[[Any], object]]] = [
            (decision, *self._watched(decision, function))
            for decision, function in functions.items()
            if function is not None
        ]

    def _watched(self, decision: str, function: Callable[[Any], object]) -> tuple[str, Callable[[Any], object]]:
        """The name of a function, and what calls it."""
        if not callable(function):
            raise InputError(f"{decision}: a {type(function).__name__}, needed is {_SHAPES[decision]}")
        begun = self._begun

        def call(situation: object) -> object:
            thread = threading.get_ident()
            begun[thread] = time.monotonic()
            try:
                return function(situation)
            finally:
                begun.pop(thread, None)

        name = getattr(function, "__name__", None)
        return name if isinstance(name, str) else type(function).__name__, call

    def look(self, is_ending: bool) -> None:
        """Raises an exception in calls that go on for too long; in all of them at the end."""
        now = time.monotonic()
        for thread, begun in list(self._begun.items()):
            if is_ending or now - begun > self._seconds_max:
                kind = ctypes.py_object(_TooLong)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), kind)
