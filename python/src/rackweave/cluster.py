"""Sweeps on a Ray cluster: a task for each point, results in a shared folder, in an object store, or
sent back."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import socket
import tempfile
import uuid
import warnings
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native, liveness
from ._native import VERSION
from .errors import InputError, Interrupted, PartialWarning, RunError
from .progress import Listener

if TYPE_CHECKING:
    from .experiment import Experiment

# Seconds between two looks for Ctrl-C.
_BETWEEN_LOOKS = 0.2
# Seconds in which a cluster answers.
_CONNECT_SECONDS_MAX = 10
# How often a point is played again when its worker dies.
_RETRIES_MAX = 3
# The line of a plan that names the folder of the files that it reads, and the folder.
_FILES = re.compile(r'^files = (".*")$', re.MULTILINE)


def play(
    experiment: Experiment,
    store: Store,
    options: dict[str, Any],
    listener: Listener,
    address: str | None,
    jobs: int | None,
    silence_max: float | None,
) -> None:
    """Plays the points of a sweep that `store` does not have yet."""
    try:
        import ray
        from ray.exceptions import RayError
    except ImportError as error:
        raise InputError("engine='ray' needs the Python package ray: pip install ray") from error
    _connect(address)
    # Workers have other folders: they are given the text, and the files that it reads.
    source, files = experiment.as_text(), files_of(experiment)
    plans = experiment.plans()
    store.read_from(files.folder, next(iter(files.contents), None))
    store.begin(experiment, len(plans), options)
    left = [place for place in range(len(plans)) if not store.has(place)]
    remote = ray.remote(max_retries=_RETRIES_MAX, num_cpus=1)(_play_point)
    waiting = iter(left)
    running: dict[Any, int] = {}
    done, failures = len(plans) - len(left), []
    cores = int(ray.cluster_resources().get("CPU", 0))
    if cores < 1:
        raise InputError(f"address: {address!r}: the cluster has no core, and a point takes one")
    most = jobs or cores
    watch = liveness.Watch(silence_max)
    try:
        watch.begin()
        given = (ray.put(files.contents), source, len(plans), VERSION, options, store.sender(), watch.signs)
        while True:
            while len(running) < most and (place := next(waiting, None)) is not None:
                task = remote.options(name=f"rackweave point {place}")
                running[task.remote(place, *given)] = place
            if not running:
                break
            ready, _ = ray.wait(list(running), timeout=_BETWEEN_LOOKS)
            for task in ready:
                place = running.pop(task)
                try:
                    store.take(place, ray.get(task))
                except (RayError, OSError) as error:
                    failures.append((place, watch.explained(place, error)))
                    continue
                done += 1
                name = " ".join(f"{axis}={label}" for axis, label in plans[place].labels.items())
                listener.event(json.dumps({"event": "point", "point": name, "done": done, "of": len(plans)}))
            failures += watch.look(running)
    except KeyboardInterrupt:
        for task in running:
            ray.cancel(task, force=True)
        raise Interrupted(store.name) from None
    finally:
        watch.end()
    if failures:
        raise _failure(failures, len(plans), store.name)


def _connect(address: str | None) -> None:
    """Connects to the cluster at `address`, unless the program is connected."""
    import ray

    if not (address is None or isinstance(address, str)):
        raise InputError(f"address: a {type(address).__name__}, needed is a str")
    if ray.is_initialized():
        known = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", known):
            raise InputError(f"address: {address!r}: the program is connected to {known}; `ray.shutdown()` ends that")
        return
    if address is not None:
        _reach(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(f"address: {address!r}: {error}") from error


def _reach(address: str) -> None:
    """Refuses an address at which nothing answers. Ray tries for minutes, and then ends the program."""
    host, colon, port = address.rpartition(":")
    if "://" in address or not colon or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS_MAX).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"address: {address!r}: no cluster answers there: {error}") from error


def _failure(failures: list[tuple[int, Exception]], count: int, name: str) -> RunError:
    place, error = failures[0]
    # Ray puts the exception of a task below its own.
    cause = getattr(error, "cause", None) or error
    reason = str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__
    made = RunError(
        f"{len(failures)} of {count} points failed, first point {place}: {type(cause).__name__}: {reason}; "
        f"the others are in {name}, and the same call goes on"
    )
    made.__cause__ = error
    return made


def _play_point(
    place: int,
    files: dict[str, bytes],
    source: tuple[str, str, list[tuple[str, str]], str | None],
    count: int,
    version: str,
    options: dict[str, Any],
    sender: Sender,
    signs: Any,
) -> Any:
    """Plays one point on a worker, and hands its folder to the store."""
    from .experiment import Experiment

    if version != VERSION:
        raise RuntimeError(f"this worker has rackweave {VERSION}, the driver has {version}: install the same on all")
    with liveness.Beating(signs, place), tempfile.TemporaryDirectory(prefix="rackweave-") as folder:
        file, text, settings, scale = source
        name = _unpack(Path(folder), Path(file).name, files) if files else Path(file)
        experiment = Experiment._made(name, text, settings, scale)
        here = Path(folder) / "out"
        # The share of this point alone.
        sweep = experiment.sweep(out=here, index=f"{place}/{count}", jobs=1, progress=False, **options)
        if sweep.partial is not None:
            raise RuntimeError(f"the point ended early: {sweep.partial}")
        (point,) = (here / "points").iterdir()
        return sender.send(point)


class Files(NamedTuple):
    """The files that an experiment reads."""

    folder: str | None
    """The folder that plans name, which is that of the experiment; ``None`` where nothing is read."""
    contents: dict[str, bytes]
    """By name, relative to that folder."""


def files_of(experiment: Experiment) -> Files:
    """Reads the files that an experiment reads."""
    contents = {}
    for name in _native.files(experiment):
        if PurePath(name).is_absolute():
            raise InputError(
                f"{experiment.file}: it reads {name!r}: a file goes to workers by a path relative to the experiment"
            )
        try:
            contents[name] = (experiment.file.parent / name).read_bytes()
        except OSError as error:
            raise InputError(f"{experiment.file}: it reads {name!r}: {error}") from error
    folders = {json.loads(line) for plan in experiment.plans() for line in _FILES.findall(plan.text)}
    return Files(folders.pop() if folders else None, contents)


def _unpack(root: Path, name: str, files: dict[str, bytes]) -> Path:
    """Writes files beside an experiment below `root`; returns the experiment's path."""
    # So deep that no file lies above.
    depth = max(PurePath(path).parts.count("..") for path in files)
    folder = root.joinpath("files", *["below"] * depth)
    for path, content in files.items():
        target = Path(os.path.normpath(folder / path))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


class Sender:
    """Hands the folder of a point over: as bytes, to whoever waits for the task."""

    def send(self, point: Path) -> Any:
        """What `Store.take` is given."""
        files = (path for path in sorted(point.rglob("*")) if path.is_file())
        return point.name, {str(path.relative_to(point)): path.read_bytes() for path in files}


class SharedFolder(Sender):
    """Copies the folder of a point into a folder that all workers see."""

    def __init__(self, points: Path, files: str | None) -> None:
        self._points = points
        self._files = files

    def send(self, point: Path) -> Any:
        _publish(self._points, point.name, self._files, lambda folder: shutil.copytree(point, folder))
        return point.name, None


class Bucket(Sender):
    """Writes the files of a point to a store that fsspec knows; its summary last."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        self._url = url
        self._options = options

    def send(self, point: Path) -> Any:
        system, root = _filesystem(self._url, self._options)
        files = [path for path in sorted(point.rglob("*")) if path.is_file()]
        whole = point / "summary.json"
        for path in sorted(files, key=lambda path: path == whole):
            system.pipe_file(f"{root}/points/{point.name}/{path.relative_to(point)}", path.read_bytes())
        return point.name, None


def _publish(points: Path, name: str, files: str | None, fill: Any) -> None:
    """A folder appears whole, or not at all. Its plan names the folder `files` as it is reached from
    there."""
    points.mkdir(parents=True, exist_ok=True)
    unfinished = points / f".{name}.{uuid.uuid4().hex}.unfinished"
    try:
        fill(unfinished)
        if files is not None:
            plan = unfinished / "plan.toml"
            line = f"files = {json.dumps(os.path.relpath(files, (points / name).resolve()), ensure_ascii=False)}"
            plan.write_text(_FILES.sub(lambda _: line, plan.read_text(encoding="utf-8"), count=1), encoding="utf-8")
        if (points / name).exists():
            shutil.rmtree(points / name)
        unfinished.rename(points / name)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _filesystem(url: str, options: dict[str, Any]) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError as error:
        raise InputError(f"out={url!r} needs the Python package fsspec, and that of its kind of store") from error
    try:
        system, root = fsspec.core.url_to_fs(url, use_listings_cache=False, **options)
    except (ImportError, ValueError) as error:
        raise InputError(f"out={url!r}: {error}") from error
    return system, root


class Store:
    """Where the points of a sweep go: a folder of the driver."""

    def __init__(self, folder: Path, is_shared: bool) -> None:
        self.name: str = str(folder)
        self.folder = folder
        self._is_shared = is_shared
        self._files: str | None = None

    def read_from(self, files: str | None, name: str | None) -> None:
        """Says which folder the plans read files from, and one of the files, if they read any."""
        self._files = files

    def sender(self) -> Sender:
        """What workers hand their points to."""
        return SharedFolder(self.folder.resolve() / "points", self._files) if self._is_shared else Sender()

    def begin(self, experiment: Experiment, count: int, options: dict[str, Any]) -> None:
        """Makes the folder, or checks that it holds this very sweep: by a share without points."""
        with warnings.catch_warnings():
            # Points that were cut short before are played again.
            warnings.simplefilter("ignore", PartialWarning)
            experiment.sweep(out=self.folder, index=f"{count}/{count + 1}", progress=False, **options)

    def has(self, place: int) -> bool:
        """Whether a point is there, whole."""
        for summary in self.folder.glob(f"points/{place:03}*/summary.json"):
            number = summary.parent.name.partition("-")[0]
            if number == f"{place:03}" and not json.loads(summary.read_text(encoding="utf-8"))["partial"]:
                return True
        return False

    def take(self, place: int, sent: Any) -> None:
        """Takes what a worker has sent."""
        name, files = sent
        if files is None:
            return

        def fill(folder: Path) -> None:
            for path, content in files.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(content)

        _publish(self.folder / "points", name, self._files, fill)

    def finish(self) -> None:
        """Called when the table and the page are written."""


class BucketStore(Store):
    """An object store, with a copy in a folder of the driver."""

    def __init__(self, url: str, options: dict[str, Any], folder: Path) -> None:
        super().__init__(folder, is_shared=False)
        self.name = url.rstrip("/")
        self._options = options
        self._system, self._root = _filesystem(self.name, options)

    def read_from(self, files: str | None, name: str | None) -> None:
        if name is not None:
            raise InputError(
                f"out={self.name!r}: the experiment reads {name!r}, which plans in a store cannot reach; a folder can"
            )

    def sender(self) -> Sender:
        return Bucket(self.name, self._options)

    def begin(self, experiment: Experiment, count: int, options: dict[str, Any]) -> None:
        marker = self._system.exists(f"{self._root}/rackweave-output")
        if marker:
            self.folder.mkdir(parents=True)
            self._copy("rackweave-output")
            for summary in self._system.glob(f"{self._root}/points/*/summary.json"):
                self._copy_point(summary.split("/")[-2])
        super().begin(experiment, count, options)
        if not marker:
            self._upload("rackweave-output")

    def take(self, place: int, sent: Any) -> None:
        self._copy_point(sent[0])

    def finish(self) -> None:
        for name in ("points.json", "index.html"):
            self._upload(name)

    def _copy_point(self, name: str) -> None:
        for path in self._system.find(f"{self._root}/points/{name}"):
            self._copy(path.removeprefix(f"{self._root}/"))

    def _copy(self, name: str) -> None:
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(self._system.cat_file(f"{self._root}/{name}"))

    def _upload(self, name: str) -> None:
        self._system.pipe_file(f"{self._root}/{name}", (self.folder / name).read_bytes())
