from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, final

__all__ = [
    "VERSION",
    "Demand",
    "Job",
    "Read",
    "Stream",
    "Unit",
    "compare",
    "drawings",
    "explain",
    "files",
    "points",
    "records",
    "reproduce",
    "run",
    "summaries",
    "sweep",
]

VERSION: str

class _Source(Protocol):
    file: Path
    text: str | None
    settings: list[tuple[str, str]]
    scale: str | None

class _Listener(Protocol):
    bar: bool
    def say(self, line: str) -> object: ...
    def event(self, text: str) -> object: ...
    def look(self, is_ending: bool) -> object: ...

_Left = tuple[Path, str, str | None]

@final
class Demand:
    @property
    def source(self) -> int: ...
    @property
    def target(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def remaining(self) -> int: ...
    @property
    def is_answer(self) -> bool: ...
    @property
    def order(self) -> int: ...

@final
class Job:
    @property
    def server(self) -> int: ...
    @property
    def vssd(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def page(self) -> int: ...
    @property
    def arrived_ps(self) -> int: ...
    @property
    def network_ps(self) -> int: ...
    @property
    def order(self) -> int: ...

@final
class Read:
    @property
    def vssd(self) -> int: ...
    @property
    def server(self) -> int: ...
    @property
    def is_collecting(self) -> bool: ...
    @property
    def is_reachable(self) -> bool: ...
    @property
    def waiting_bytes(self) -> int: ...
    @property
    def replica_vssd(self) -> int: ...
    @property
    def replica_server(self) -> int: ...
    @property
    def is_replica_collecting(self) -> bool: ...
    @property
    def is_replica_reachable(self) -> bool: ...
    @property
    def replica_waiting_bytes(self) -> int: ...
    @property
    def order(self) -> int: ...

@final
class Unit:
    @property
    def server(self) -> int: ...
    @property
    def vssd(self) -> int: ...
    @property
    def free(self) -> int: ...
    @property
    def owned(self) -> int: ...
    @property
    def is_coordinated(self) -> bool: ...
    @property
    def is_idle(self) -> bool: ...
    @property
    def is_collecting(self) -> bool: ...
    @property
    def now_ps(self) -> int: ...

@final
class Stream:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    @property
    def units(self) -> list[tuple[str, str | None]]: ...

def files(source: _Source) -> list[str]: ...
def points(source: _Source) -> list[dict[str, Any]]: ...
def records(parts: list[Path], table: str) -> Stream: ...
def summaries(summaries: list[str], points: list[int]) -> Stream: ...
def run(
    source: _Source,
    listener: _Listener,
    *,
    seeds: list[int] | None,
    out: Path,
    force: bool,
    long: bool,
    wire: bool,
    history: bool,
    spans: str,
    rows_per_part: int,
    policies: list[tuple[str, str, Callable[[Any], object]]],
) -> _Left: ...
def sweep(
    source: _Source,
    listener: _Listener,
    *,
    seeds: list[int] | None,
    out: Path,
    force: bool,
    resume: bool,
    records: bool,
    long: bool,
    wire: bool,
    jobs: int | None,
    index: str | None,
) -> _Left: ...
def reproduce(
    selections: list[str],
    listener: _Listener,
    *,
    scale: str,
    seeds: list[int] | None,
    out: Path,
    force: bool,
    records: bool,
    jobs: int | None,
    experiments: Path | None,
) -> _Left: ...
def explain(run: Path, listener: _Listener, seed: int | None, worst: int) -> tuple[str, str]: ...
def compare(runs: list[Path], listener: _Listener, unpaired: bool) -> tuple[str, str, str]: ...
def drawings(
    title: str, folder: Path, summaries: str | None, experiments: Path | None
) -> list[tuple[str, str]]: ...
