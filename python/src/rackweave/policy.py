"""Functions of a user's own that decide in a run."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any

from .errors import InputError


class _TooLong(TimeoutError):
    """Raised in a call from outside, which takes no arguments."""

    def __str__(self) -> str:
        return "the call took longer than priority_timeout"


class Policy:
    """Calls `function`, and knows which calls go on, so that none of them holds up a run."""

    def __init__(self, function: Callable[[Any], object], seconds_max: float) -> None:
        if not callable(function):
            raise InputError(f"priority: a {type(function).__name__}, needed is a function of a Demand")
        is_number = isinstance(seconds_max, (int, float)) and not isinstance(seconds_max, bool)
        if not is_number or not 0 < seconds_max < float("inf"):
            raise InputError(f"priority_timeout: {seconds_max!r}; needed is a number of seconds above 0")
        self.name: str = getattr(function, "__name__", type(function).__name__)
        self._function = function
        self._seconds_max = seconds_max
        # When the call of each thread began.
        self._begun: dict[int, float] = {}

    def __call__(self, demand: object) -> object:
        thread = threading.get_ident()
        self._begun[thread] = time.monotonic()
        try:
            return self._function(demand)
        finally:
            self._begun.pop(thread, None)

    def look(self, is_ending: bool) -> None:
        """Raises `TimeoutError` in calls that go on for too long; in all of them at the end."""
        now = time.monotonic()
        for thread, begun in list(self._begun.items()):
            if is_ending or now - begun > self._seconds_max:
                kind = ctypes.py_object(_TooLong)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), kind)
