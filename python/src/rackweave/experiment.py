"""Experiments: read from files, or made in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from . import _native, toml
from ._native import Demand, Job, Read, Unit
from .arguments import StrPath, path as path_of, optional, typed, unicode
from .errors import InputError, warn_partial
from .policy import Policies
from .progress import Listener, Progress
from .results import Folder, Reproduction, Run, Sweep, seeds_of

# Seconds after which a silent worker of a cluster is killed.
_SILENCE_MAX = 60.0


@dataclass(frozen=True)
class Plan:
    """One point of an experiment with every choice made."""

    text: str
    """An experiment file with every default, which replays the point."""
    hash: str
    """SHA-256 of all that decides the results but the seed, hex."""
    warnings: list[str]
    """What a reader of the results must know."""
    labels: dict[str, str]
    """Its place in the sweep: values by axis."""
    design: str
    """The name of the design."""
    seeds: list[int]
    """Its seeds."""
    estimate: str | None
    """Memory and time that it may take, where there is a formula."""

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(self.text)}</pre>"


class Experiment:
    """An experiment. It is not changed: `set` and `at` return others.

    `Experiment(**tables)` takes what a file has, as nested dicts; `from_toml` and `from_text` read a
    file. Nothing is checked before `check`, `run` or `sweep`, which raise `ExperimentError` with all
    mistakes.
    """

    file: Path
    text: str | None
    settings: list[tuple[str, str]]
    scale: str | None

    def __init__(self, **tables: Any) -> None:
        self._fill(Path("experiment"), toml.document(tables))

    @classmethod
    def from_toml(cls, path: StrPath) -> Experiment:
        """An experiment file. It is read each time it is needed."""
        return cls._made(path_of("path", path), None)

    @classmethod
    def from_text(cls, text: str, name: str = "experiment") -> Experiment:
        """The text of an experiment file. `name` is for messages; files that the text names are
        relative to its folder."""
        if not isinstance(text, str):
            raise InputError(f"text: a {type(text).__name__}, needed is a str")
        return cls._made(path_of("name", name), unicode("text", text))

    @classmethod
    def _made(
        cls, file: Path, text: str | None, settings: list[tuple[str, str]] | None = None, scale: str | None = None
    ) -> Experiment:
        made = cls.__new__(cls)
        made._fill(file, text, settings, scale)
        return made

    def _fill(
        self, file: Path, text: str | None, settings: list[tuple[str, str]] | None = None, scale: str | None = None
    ) -> None:
        self.file, self.text, self.settings, self.scale = file, text, settings or [], scale

    def set(self, key: str, value: Any) -> Experiment:
        """The experiment with another value for a key, ``"design.edm.active_per_pair"``. An axis of
        a sweep is fixed by it."""
        if not isinstance(key, str) or not key:
            raise InputError(f"set: {key!r} is no key; an example is 'workload.load'")
        added = [*self.settings, (key, toml.value(key, value))]
        return self._made(self.file, self.text, added, self.scale)

    def at(self, scale: str) -> Experiment:
        """The experiment at a size: ``quick``, ``judged`` or ``paper``."""
        typed(str, scale=scale)
        return self._made(self.file, self.text, self.settings, scale)

    def plans(self) -> list[Plan]:
        """The plans of all points of the sweep; of an experiment without one, its only plan."""
        return [Plan(**point) for point in _native.points(self)]

    def check(self) -> Plan:
        """The plan of an experiment without a sweep; `plans` has those of a sweep."""
        plans = self.plans()
        if len(plans) != 1:
            raise InputError(f"{self.file}: a sweep of {len(plans)} points; `plans()` has them all")
        return plans[0]

    def run(
        self,
        *,
        seeds: int | Iterable[int] | None = None,
        out: StrPath | None = None,
        force: bool = False,
        spans: str = "none",
        wire: bool = False,
        history: bool = False,
        priority: Callable[[Demand], int] | None = None,
        order: Callable[[Job], int] | None = None,
        replica: Callable[[Read], bool] | None = None,
        collect: Callable[[Unit], Literal["background", "soft", "regular"] | None] | None = None,
        policy_timeout: float = 10.0,
        long: bool = False,
        rows_per_part: int = 65_536,
        progress: Progress = None,
    ) -> Run:
        """Plays the only point.

        seeds: one, or several; those of the experiment when not given.
        out: the folder to make for the results; a temporary one when not given, which is removed
            with the last object that reads it. `force` replaces one that is there.
        spans: the requests whose spans are kept in order: ``none``, ``all``, ``every:N`` or
            ``slowest:K``.
        wire: encode and decode every message on its way, which changes no result.
        history: keep the operations of a key-value store.
        priority, order, replica, collect: functions for study that decide in place of the design.
            Equal arguments must get equal answers, or the run does not repeat. A call that takes
            longer than `policy_timeout` seconds is ended with `PolicyError`.
        priority: which demand wins in EDM's scheduler. It is given a `Demand` and returns an int
            from 0 to 4294967295, of which the least goes first. It is asked when a demand begins to
            compete and after each of its grants.
        order: which job goes first at the queue of a vSSD in RackBlox. It is given a `Job` and
            returns an int of 64 bits, of which the least goes first.
        replica: whether the replica serves a read in RackBlox. It is given a `Read`.
        collect: whether vSSDs of RackBlox want to collect garbage, when their free blocks are
            checked. It is given a `Unit` and returns ``None``, ``"background"``, ``"soft"`` or
            ``"regular"``.
        long: begin even where there are more requests than can be played in days.
        rows_per_part: rows in a file of the records.
        progress: see `rackweave.Progress`.

        Ctrl-C raises `Interrupted`, which names the folder with what was finished.
        """
        typed(bool, wire=wire, history=history, long=long)
        typed(str, spans=spans)
        typed(int, rows_per_part=rows_per_part)
        folder = Folder(out, force)
        functions = {"priority": priority, "order": order, "replica": replica, "collect": collect}
        policies = Policies(functions, policy_timeout)
        _, text, partial = _native.run(
            self,
            Listener(progress, policies),
            seeds=seeds_of(seeds),
            out=folder.path,
            force=force,
            long=long,
            wire=wire,
            history=history,
            spans=spans,
            rows_per_part=rows_per_part,
            policies=policies.calls,
        )
        run = Run(folder, text, partial)
        warn_partial(run.partial, stacklevel=2)
        return run

    def sweep(
        self,
        *,
        seeds: int | Iterable[int] | None = None,
        out: StrPath | None = None,
        force: bool = False,
        resume: bool = False,
        records: bool = True,
        wire: bool = False,
        long: bool = False,
        jobs: int | None = None,
        index: str | None = None,
        engine: str | None = None,
        address: str | None = None,
        shared: bool = True,
        storage_options: Mapping[str, Any] | None = None,
        silence_max: float | None = _SILENCE_MAX,
        progress: Progress = None,
    ) -> Sweep:
        """Plays every point of the sweep on all cores; goes on where it was stopped.

        out: as in `run`. A folder that holds the same sweep is gone on with; `resume` demands one.
        records: keep a row for each request; without them, summaries and histograms only.
        jobs: points at a time; as many as there are cores when not given.
        index: ``"I/N"``, the I-th of N shares of the points, from 0: one for each machine.
        engine: ``"ray"`` plays each point as a task of a Ray cluster, that at `address` or the one
            that `ray.init` has connected to. `jobs` is then the most points at a time. A point is
            played again when its worker dies.
        shared: all workers see the folder `out`; without it they send their points back.
        storage_options: for `out` as a URL that fsspec knows, ``s3://bucket/folder``. With ``"ray"``
            only. The `Sweep` is a temporary copy.
        silence_max: seconds without a sign of life after which a worker of ``"ray"`` is killed, and
            its point played again; ``None``: it is waited for. A worker gives a sign every second,
            however long its point takes.
        """
        typed(bool, resume=resume, records=records, wire=wire, long=long, shared=shared)
        optional(int, jobs=jobs)
        optional(str, index=index)
        optional(Mapping, storage_options=storage_options)
        is_for_ray = address is not None or _is_url(out) or storage_options is not None
        is_for_ray = is_for_ray or not shared or silence_max != _SILENCE_MAX
        if engine is not None or is_for_ray:
            options = {"seeds": seeds_of(seeds), "records": records, "wire": wire, "long": long}
            others = (force, resume, index)
            return self._sweep_on(
                engine, address, out, shared, storage_options, options, jobs, silence_max, progress, others
            )
        folder = Folder(out, force)
        _, text, partial = _native.sweep(
            self,
            Listener(progress),
            seeds=seeds_of(seeds),
            out=folder.path,
            force=force,
            resume=resume,
            records=records,
            long=long,
            wire=wire,
            jobs=jobs,
            index=index,
        )
        sweep = Sweep(folder, text, partial)
        warn_partial(sweep.partial, stacklevel=2)
        return sweep

    def _sweep_on(
        self,
        engine: str | None,
        address: str | None,
        out: StrPath | None,
        shared: bool,
        storage_options: Mapping[str, Any] | None,
        options: dict[str, Any],
        jobs: int | None,
        silence_max: float | None,
        progress: Progress,
        others: tuple[bool, bool, str | None],
    ) -> Sweep:
        from . import cluster

        if engine != "ray":
            with_ray = "address, shared, storage_options, silence_max and a URL as `out` go with engine='ray'"
            what = with_ray if engine is None else "allowed is 'ray'"
            raise InputError(f"engine: {engine!r}; {what}")
        if any(others):
            raise InputError("force, resume and index do not go with engine='ray': a sweep that is there is gone on with")
        if jobs is not None and jobs < 1:
            raise InputError(f"jobs: {jobs!r}; needed is an int from 1")
        is_number = isinstance(silence_max, (int, float)) and not isinstance(silence_max, bool)
        if silence_max is not None and not (is_number and 2 <= silence_max < float("inf")):
            raise InputError(f"silence_max: {silence_max!r}; needed is a number of seconds from 2, or None")
        url = str(out) if _is_url(out) else None
        folder = Folder(None if url else out)
        store = (
            cluster.BucketStore(url, dict(storage_options or {}), folder.path)
            if url
            else cluster.Store(folder.path, shared and out is not None)
        )
        cluster.play(self, store, options, Listener(progress), address, jobs, silence_max)
        # All points are there: the table and the page remain.
        _, text, partial = _native.sweep(
            self,
            Listener(False),
            seeds=options["seeds"],
            out=folder.path,
            force=False,
            resume=True,
            records=options["records"],
            long=options["long"],
            wire=options["wire"],
            jobs=1,
            index=None,
        )
        store.finish()
        sweep = Sweep(folder, text, partial)
        warn_partial(sweep.partial, stacklevel=3)
        return sweep

    def as_text(self) -> tuple[str, str, list[tuple[str, str]], str | None]:
        """Name, text, settings and scale: what another machine needs to have the experiment, beside
        the files that it reads."""
        try:
            text = self.file.read_text(encoding="utf-8") if self.text is None else self.text
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{self.file}: {error}") from error
        return str(self.file), text, self.settings, self.scale

    def __repr__(self) -> str:
        changes = "".join(f", {key} = {value}" for key, value in self.settings)
        scale = f", at {self.scale}" if self.scale else ""
        return f"<rackweave.Experiment {self.file}{changes}{scale}>"


def _is_url(out: StrPath | None) -> bool:
    return isinstance(out, str) and "://" in out


def reproduce(
    *selections: str,
    scale: str = "quick",
    seeds: int | Iterable[int] | None = None,
    out: StrPath | None = None,
    force: bool = False,
    records: bool = True,
    jobs: int | None = None,
    experiments: StrPath | None = None,
    progress: Progress = None,
) -> Reproduction:
    """Plays published experiments, and gives a verdict on each claim.

    selections: ``"edm"``, ``"edm/fig8a"``, or several of such; all when not given.
    scale: ``quick``, ``judged`` (that of the shipped verdicts) or ``paper``.
    experiments: a folder of experiments, in place of those that are shipped.
    The others are as in `Experiment.sweep`.
    """
    for selection in selections:
        typed(str, selections=selection)
    typed(str, scale=scale)
    typed(bool, records=records)
    optional(int, jobs=jobs)
    folder = Folder(out, force)
    library = None if experiments is None else path_of("experiments", experiments)
    _, text, partial = _native.reproduce(
        list(selections),
        Listener(progress),
        scale=scale,
        seeds=seeds_of(seeds),
        out=folder.path,
        force=force,
        records=records,
        jobs=jobs,
        experiments=library,
    )
    warn_partial(partial, stacklevel=2)
    return Reproduction(folder, text, partial, library)
