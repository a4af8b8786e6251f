"""The package and the examples of the documents have types, and the stubs are those of the native part."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from test_documents import BLOCK, DOCUMENTS, ROOT

pytest.importorskip("mypy", reason="the package mypy is not installed")

PROJECT = ROOT / "python/pyproject.toml"
# What it knows of libraries is kept from one test run to the next.
CACHE = ROOT / "target/mypy"


def mypy(program: str, *arguments: str | Path, folder: Path) -> str:
    """What a program of mypy says of mistakes; empty when it finds none."""
    command = [sys.executable, "-m", program, *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert (done.returncode == 0) == ("Success" in done.stdout), done.stdout + done.stderr
    return done.stdout if done.returncode else ""


def types(*arguments: str | Path, folder: Path) -> str:
    return mypy("mypy", "--config-file", PROJECT, "--cache-dir", CACHE, *arguments, folder=folder)


def examples(folder: Path) -> list[str]:
    """The examples of each document as a module in `folder`: their names."""
    made = []
    for name in [*DOCUMENTS, "docs/guide/several-machines.md"]:
        found = [content for kind, content in BLOCK.findall((ROOT / name).read_text(encoding="utf-8")) if kind == "python"]
        module = "of_" + name.removesuffix(".md").replace("/", "_").replace("-", "_")
        (folder / f"{module}.py").write_text("\n".join(found))
        made.append(module)
    return made


def test_the_package_and_the_examples_have_types(tmp_path):
    modules = (f"--module={module}" for module in examples(tmp_path))
    assert types("--package=rackweave", *modules, folder=tmp_path) == ""


def test_a_program_with_wrong_types_is_refused(tmp_path):
    (tmp_path / "wrong.py").write_text(
        "import rackweave\n"
        "run = rackweave.Experiment(title='t').run(seeds='1', spans=3)\n"
        "wait: int = run.summary_of(1)['latency_ns']\n"
        "run.nothing\n"
        "rackweave.Experiment(title='t').run(priority=lambda demand: demand.size)\n"
    )
    said = types("wrong.py", folder=tmp_path)
    assert {line.split(":")[1] for line in said.splitlines() if ": error: " in line} == {"2", "4", "5"}, said


def test_the_stubs_are_those_of_the_native_part(tmp_path):
    # It has no classes to derive from, and says so of none.
    arguments = ("rackweave._native", "--mypy-config-file", PROJECT, "--ignore-disjoint-bases")
    assert mypy("mypy.stubtest", *arguments, folder=tmp_path) == ""
