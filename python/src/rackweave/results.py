"""What verbs leave: runs, sweeps, reproductions, explanations, comparisons."""

from __future__ import annotations

import html
import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from . import _native
from .arguments import StrPath, optional, path as path_of, typed
from .errors import InputError
from .frame import Frame, charts
from .progress import Listener, Progress


class Folder:
    """The folder of results. Without a name given it is temporary: it is removed with the last
    object that reads it."""

    def __init__(self, out: StrPath | None, force: bool = False) -> None:
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self.path: Path
        if out is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="rackweave-", ignore_cleanup_errors=True)
            self.path = Path(self._temporary.name) / "results"
        else:
            self.path = path_of("out", out)
        typed(bool, force=force)
        self.force = force


class _Results:
    def __init__(self, folder: Folder, text: str, partial: str | None) -> None:
        self._folder = folder
        self._text = text
        self.partial = partial
        """Why it ended early; ``None`` when all of it was played."""

    @property
    def path(self) -> Path:
        """The folder of the results."""
        return self._folder.path

    @property
    def page(self) -> Path:
        """The page with all figures, which needs no network."""
        return self.path / "index.html"

    def __str__(self) -> str:
        return self._text.rstrip("\n")

    def __repr__(self) -> str:
        return f"<rackweave.{type(self).__name__} in {self.path}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class Run(_Results):
    """One run of an experiment, or one point of a sweep, with all of its seeds."""

    def __init__(self, folder: Folder, text: str = "", partial: str | None = None) -> None:
        super().__init__(folder, text, partial)
        self._summary_text = _text(self.path / "summary.json")
        self.summary: dict[str, Any] = _summary(self.path / "summary.json", self._summary_text)
        """All numbers over all seeds, as `summary.json` has them; ``rackweave describe`` explains them."""
        if self.partial is None and self.summary["partial"]:
            self.partial = "the run ended early; its warnings say why"

    @property
    def seeds(self) -> list[int]:
        """The seeds that were played."""
        return list(self.summary["seeds"])

    @property
    def plan(self) -> str:
        """The plan that was played, with every default: an experiment file."""
        return _text(self.path / "plan.toml")

    @property
    def warnings(self) -> list[str]:
        """What a reader of the numbers must know."""
        return list(self.summary["warnings"])

    def summary_of(self, seed: int) -> dict[str, Any]:
        """All numbers of one seed."""
        path = self._seed(seed) / "summary.json"
        return _summary(path, _text(path))

    def requests(self, seed: int | None = None) -> Frame:
        """A row for each request, with its spans: of one seed, or of all with the column `seed`."""
        return Frame(_native.records(list(self._parts("records", seed)), "records"), self._folder)

    def spans(self, seed: int | None = None) -> Frame:
        """The spans of the requests that were kept with `spans=` of `Experiment.run`."""
        return Frame(_native.records(list(self._parts("spans", seed)), "spans"), self._folder)

    def summaries(self) -> Frame:
        """A row for each seed, and a column for each number of its summary."""
        texts = [_text(self._seed(seed) / "summary.json") for seed in self.seeds]
        return Frame(_native.summaries(texts, [0] * len(texts)))

    def plots(self) -> dict[str, Any]:
        """The figures of the page as charts of Altair, by name."""
        title, texts = self.path.name, f"[{self._summary_text}]"
        return charts(_native.drawings(title, self.path, texts, None))

    def explain(self, seed: int | None = None, worst: int = 5) -> Explanation:
        """Why the slow requests are slow."""
        return explain(self, seed=seed, worst=worst)

    def _seed(self, seed: int) -> Path:
        if seed not in self.summary["seeds"]:
            raise InputError(f"{self.path}: it has no seed {seed!r}; its seeds are {self.seeds}")
        return self.path / f"seed-{seed}"

    def _parts(self, table: str, seed: int | None) -> Iterator[Path]:
        for one in self.seeds if seed is None else [seed]:
            folder = self._seed(one) / table
            parts = sorted(folder.glob("*.parquet"))
            if not parts:
                how = "sweep(records=True)" if table == "records" else "run(spans='slowest:20')"
                raise InputError(f"{folder}: there are no {table}; `{how}` keeps them")
            yield from parts


class Sweep(_Results):
    """All finished points of a sweep."""

    def __init__(self, folder: Folder, text: str = "", partial: str | None = None) -> None:
        super().__init__(folder, text, partial)
        found = sorted(path for path in self.path.glob("points/[0-9]*") if path.is_dir())
        self.points: list[Run] = [Run(_Within(folder, point)) for point in found]
        """The points, in their order."""
        early = sum(point.partial is not None for point in self.points)
        if self.partial is None and early:
            self.partial = f"{early} of {len(self.points)} points ended early; the same sweep plays them again"

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.points)

    def __getitem__(self, index: int) -> Run:
        return self.points[index]

    def requests(self) -> Frame:
        """A row for each request of all points and seeds. Columns say which point: `design`, `seed`,
        and `label_...` for each axis, whose type fits its values."""
        parts = [part for point in self.points for part in point._parts("records", None)]
        return Frame(_native.records(parts, "records"), self._folder)

    def summaries(self) -> Frame:
        """A row for each point and seed, and a column for each number of its summary."""
        runs = [(place, run, seed) for place, run in enumerate(self.points) for seed in run.seeds]
        texts = [_text(run._seed(seed) / "summary.json") for _, run, seed in runs]
        return Frame(_native.summaries(texts, [place for place, _, _ in runs]))

    def plots(self) -> dict[str, Any]:
        """The figures of the page as charts of Altair, by name."""
        texts = "[" + ",".join(point._summary_text for point in self.points) + "]"
        return charts(_native.drawings(self.path.name, self.path, texts, None))


class Reproduction(_Results):
    """Published experiments that were played, with a verdict on each claim."""

    def __init__(
        self, folder: Folder, text: str = "", partial: str | None = None, experiments: Path | None = None
    ) -> None:
        super().__init__(folder, text, partial)
        self._experiments = experiments
        self.claims: list[dict[str, Any]] = _json(self.path / "claims.json", _text(self.path / "claims.json"), list)
        """For each claim the value of the paper, ours, the verdict and the reason."""

    def points(self, experiment: str) -> list[Run]:
        """The points of one experiment, ``edm/fig8a``."""
        found = sorted((self.path / "records" / experiment).glob("[0-9]*"))
        if not found:
            raise InputError(f"{self.path}: {experiment!r} was not played")
        return [Run(_Within(self._folder, point)) for point in found]

    def plots(self) -> dict[str, Any]:
        """The figures of the pages as charts of Altair, by name."""
        return charts(_native.drawings("", self.path, None, self._experiments))


class Explanation:
    """Why the slow requests of a run are slow."""

    def __init__(self, text: str, facts: dict[str, Any]) -> None:
        self._text = text
        self.facts = facts
        """The same as numbers and names."""

    def __str__(self) -> str:
        return self._text.rstrip("\n")

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class Comparison:
    """What differs between runs of the same arrivals."""

    def __init__(self, text: str, text_of_all: str, comparisons: list[dict[str, Any]]) -> None:
        self._text = text
        self.text_of_all = text_of_all
        """The table with all spans and metrics."""
        self.comparisons = comparisons
        """Every value with its interval: an item for each run that is compared with the first."""

    def __str__(self) -> str:
        return self._text.rstrip("\n")

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class _Within(Folder):
    """A folder inside another, which lives as long."""

    def __init__(self, folder: Folder, path: Path) -> None:
        self._temporary = folder._temporary
        self.path = path
        self.force = False


def open(path: StrPath) -> Run | Sweep | Reproduction:
    """Opens a folder of results that is there."""
    folder = Folder(path_of("path", path))
    if (folder.path / "claims.json").is_file():
        return Reproduction(folder)
    if (folder.path / "points").is_dir():
        return Sweep(folder)
    return Run(folder)


def explain(run: Run | StrPath, *, seed: int | None = None, worst: int = 5, progress: Progress = None) -> Explanation:
    """Why the slow requests of a run are slow: `worst` of them are shown one by one."""
    typed(int, worst=worst)
    optional(int, seed=seed)
    seeds_of(seed)
    text, facts = _native.explain(_path(run), Listener(progress), seed, worst)
    return Explanation(text, json.loads(facts))


def compare(
    first: Run | Sweep | StrPath, *others: Run | Sweep | StrPath, unpaired: bool = False, progress: Progress = None
) -> Comparison:
    """What differs between the first run and each of the others, with intervals over seeds. A sweep
    stands for all its points. `unpaired` compares runs of different arrivals."""
    typed(bool, unpaired=unpaired)
    runs = [_path(run) for run in (first, *others)]
    text, text_of_all, comparisons = _native.compare(runs, Listener(progress), unpaired)
    return Comparison(text, text_of_all, json.loads(comparisons))


def seeds_of(seeds: int | Iterable[int] | None) -> list[int] | None:
    """Seeds as a list; ``None`` for those of the experiment."""
    if seeds is None:
        return None
    listed = [seeds] if isinstance(seeds, int) else seeds
    if isinstance(listed, (str, bytes)) or not isinstance(listed, Iterable):
        raise InputError(f"seeds: {seeds!r}; allowed are an int, a range and a list of ints")
    found = list(listed)
    wrong = [seed for seed in found if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63]
    if wrong:
        raise InputError(f"seeds: {wrong[0]!r} is no seed; allowed are ints from 0 to {2**63 - 1}")
    return found


def _path(run: _Results | StrPath) -> Path:
    return run.path if isinstance(run, _Results) else path_of("run", run)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}: this is no folder of finished results") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: {error}: it is damaged") from error


def _json(path: Path, text: str, kind: type) -> Any:
    """What the text of a file of results holds: a dict or a list."""
    try:
        found = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path}: {error}: it is damaged") from error
    if not isinstance(found, kind):
        raise InputError(f"{path}: it has a {type(found).__name__} where a {kind.__name__} is needed: it is damaged")
    return found


def _summary(path: Path, text: str) -> dict[str, Any]:
    summary: dict[str, Any] = _json(path, text, dict)
    missing = [key for key in ("seeds", "labels", "partial", "warnings") if key not in summary]
    if missing:
        raise InputError(f"{path}: it has no `{missing[0]}`: this is no summary of a run")
    return summary
