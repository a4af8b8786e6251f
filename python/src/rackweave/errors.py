"""The exceptions of rackweave."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "ExperimentError",
    "InputError",
    "Interrupted",
    "PartialWarning",
    "PolicyError",
    "Problem",
    "RackweaveError",
    "RackweaveWarning",
    "RunError",
]


class RackweaveError(Exception):
    """Any error of rackweave."""


class InputError(RackweaveError, ValueError):
    """An argument, a file or a folder is not what is needed. Nothing was written."""


@dataclass(frozen=True)
class Problem:
    """One mistake of an experiment: where it is, and what would be right."""

    file: str
    """The experiment file, or the name of an experiment that is no file."""
    line: int | None
    """The line, from 1; ``None`` for a value that `Experiment.set` has set."""
    column: int | None
    """The column, from 1, in characters."""
    key: str | None
    """The path of the key, ``workload.load``; ``None`` for the file as a whole."""
    message: str
    """What was found, and what is allowed."""
    point: str | None
    """The point of the sweep at which it shows; ``None`` when it shows at all of them."""


class ExperimentError(InputError):
    """An experiment is not valid. The message has all mistakes, `problems` has them one by one."""

    def __init__(self, message: str, problems: list[Problem]) -> None:
        super().__init__(message, problems)
        self.message = message
        self.problems = problems

    def __str__(self) -> str:
        return self.message

    @property
    def file(self) -> str:
        """The file of the first mistake."""
        return self.problems[0].file

    @property
    def line(self) -> int | None:
        """The line of the first mistake, from 1."""
        return self.problems[0].line

    @property
    def key(self) -> str | None:
        """The key of the first mistake."""
        return self.problems[0].key


class RunError(RackweaveError, RuntimeError):
    """A run failed on the way. The results until then are in its folder."""


class PolicyError(RackweaveError, RuntimeError):
    """A policy of yours raised an exception, took too long, or gave what is no answer. There are no
    results. `__cause__` is what it raised."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a run. The results until then are in the folder `path`, marked as partial. Of a
    sweep into an object store `path` is its URL."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path: Path | str = path if "://" in path else Path(path)

    def __str__(self) -> str:
        return f"interrupted: what was finished is in {self.path}"


class RackweaveWarning(UserWarning):
    """Something that a reader of the results must know."""


class PartialWarning(RackweaveWarning):
    """A run ended before it had offered its load."""


def warn_partial(reason: str | None, stacklevel: int) -> None:
    """Warns of a run that ended early."""
    if reason is not None:
        warnings.warn(reason, PartialWarning, stacklevel=stacklevel + 1)
