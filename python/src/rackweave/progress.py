"""What a verb says while it plays: on a terminal, in a notebook, or to a function."""

from __future__ import annotations

import html
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any, Union

from .errors import InputError, RackweaveWarning
from .policy import Policies

Progress = Union[bool, Callable[[dict[str, Any]], object], None]
"""``None``: a bar on a terminal and in a notebook, nothing elsewhere. ``False``: nothing.
A function: it is called with each event, a dict with ``event`` as ``point`` or ``progress``."""


class Listener:
    """Takes lines and events of the native part. `bar`: the native part draws a bar itself."""

    def __init__(self, progress: Progress, policies: Policies | None = None) -> None:
        if not (progress is None or isinstance(progress, bool) or callable(progress)):
            raise InputError(f"progress: a {type(progress).__name__}; allowed are None, a bool and a function")
        self._is_quiet = progress is False
        self._call = progress if callable(progress) else None
        self._display: Any = None
        self._policies = policies
        wants_bar = not self._is_quiet and self._call is None
        if wants_bar and _is_notebook():
            self._call = self._draw
        self.bar: bool = wants_bar and self._call is None and _is_terminal()

    def say(self, line: str) -> None:
        """An estimate, or a warning, which is never dropped."""
        if line.startswith("warning: "):
            warnings.warn(line.removeprefix("warning: "), RackweaveWarning, stacklevel=4)
        elif not self._is_quiet and sys.stderr is not None:
            print(line, file=sys.stderr)

    def event(self, text: str) -> None:
        """Progress, as JSON."""
        if self._call is not None:
            self._call(json.loads(text))

    def look(self, is_ending: bool) -> None:
        """Ends calls of policies that take too long, or that hold up the end."""
        if self._policies is not None:
            self._policies.look(is_ending)

    def _draw(self, event: dict[str, Any]) -> None:
        from IPython.display import HTML, display

        content = HTML(bar(event))
        if self._display is None:
            self._display = display(content, display_id=True)
        else:
            self._display.update(content)


def bar(event: dict[str, Any]) -> str:
    """An event as a bar of HTML."""
    if event["event"] == "point":
        done, of, name = event["done"], event["of"], event["point"]
        text = f"{done} of {of} points"
        share = done / of
        text += f", {name}" if name else ""
    else:
        share, text = event["fraction"], f"{event['requests']} requests"
    left = event.get("eta_seconds")
    text += f", about {left:.0f} s left" if left else ""
    return f'<progress max="1" value="{share:.4f}"></progress> {html.escape(text)}'


def _is_terminal() -> bool:
    # What a test or a program has put in place of the standard error output is no terminal.
    real = sys.__stderr__
    return real is not None and sys.stderr is real and real.isatty()


def _is_notebook() -> bool:
    shell = sys.modules.get("IPython")
    current = shell.get_ipython() if shell is not None else None
    return current is not None and type(current).__name__ == "ZMQInteractiveShell"
