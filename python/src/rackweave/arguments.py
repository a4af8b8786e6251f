"""Arguments of a user, checked: what is not needed is an error that names the argument."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Union

from .errors import InputError

StrPath = Union[str, "os.PathLike[str]"]

# The native part has numbers of 64 bits.
_INT_MAX = 2**63 - 1


def typed(kind: type, **values: object) -> None:
    """Refuses a value of another type. A bool is no int, and an int has 64 bits."""
    for name, value in values.items():
        if not isinstance(value, kind) or kind is int and isinstance(value, bool):
            raise InputError(f"{name}: a {type(value).__name__}, needed is a {kind.__name__}")
        if kind is int and isinstance(value, int) and not -_INT_MAX <= value <= _INT_MAX:
            raise InputError(f"{name}: {value} is too large; allowed are ints up to {_INT_MAX}")


def optional(kind: type, **values: object) -> None:
    """As `typed`, for arguments that may be ``None``."""
    typed(kind, **{name: value for name, value in values.items() if value is not None})


def path(name: str, value: Any) -> Path:
    """A path of a str or what stands for one."""
    try:
        return Path(os.fsdecode(os.fspath(value)))
    except TypeError as error:
        raise InputError(f"{name}: a {type(value).__name__}, needed is a path") from error


def unicode(name: str, text: str) -> str:
    """A text, which a str with half of a character is not."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{name}: no text: {error}") from error
    return text
