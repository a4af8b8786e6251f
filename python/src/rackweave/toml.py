"""Python values as TOML text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .arguments import unicode
from .errors import InputError

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def value(key: str, item: Any) -> str:
    """`item` as TOML on one line. `key` is named when there is no such value in TOML."""
    try:
        return _value(key, item)
    except RecursionError as error:
        raise InputError(f"{key}: it is nested too deep, or holds itself") from error


def _value(key: str, item: Any) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, str):
        return json.dumps(unicode(key, item), ensure_ascii=False).replace("\x7f", "\\u007f")
    # Not what a subclass calls itself: numbers of NumPy are such.
    if isinstance(item, int):
        return int.__repr__(item)
    if isinstance(item, float):
        return float.__repr__(item)
    if isinstance(item, Mapping):
        pairs = (f"{_part(key, name)} = {_value(f'{key}.{name}', inner)}" for name, inner in item.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(item, (list, tuple, range)):
        return "[" + ", ".join(_value(key, inner) for inner in item) + "]"
    if hasattr(item, "tolist"):
        # Numbers and arrays of NumPy.
        return _value(key, item.tolist())
    kind = type(item).__name__
    raise InputError(f"{key}: a {kind} is no value of an experiment; allowed are str, int, float, bool, list and dict")


def document(tables: Mapping[str, Any]) -> str:
    """Nested dicts as a TOML document, one value a line."""
    return "".join(f"{line}\n" for line in _lines("", tables))


def _lines(prefix: str, tables: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for name, item in tables.items():
        key = prefix + _part(prefix, name)
        if isinstance(item, Mapping) and item:
            lines += _lines(f"{key}.", item)
        else:
            lines.append(f"{key} = {value(key, item)}")
    return lines


def _part(place: str, name: Any) -> str:
    if not isinstance(name, str):
        raise InputError(f"{place or 'an experiment'}: the key {name!r} is no str")
    return name if _BARE.match(name) else json.dumps(name, ensure_ascii=False)
