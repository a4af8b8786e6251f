"""The examples of the documents run, and print what the documents show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = ["README.md", "docs/guide/python.md", "docs/guide/own-policy.md", "python/README.md"]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAVED = re.compile(r"Save this as `([^`]+)`[^`]*```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_examples_print_what_is_shown(name, tmp_path, monkeypatch, capsys):
    for library in ("altair", "duckdb", "pandas", "polars", "pyarrow"):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    text = (ROOT / name).read_text(encoding="utf-8")
    for file, content in SAVED.findall(text):
        Path(file).write_text(content)
    names: dict[str, object] = {"__name__": "example"}
    blocks, ran = BLOCK.findall(text), 0
    for index, (kind, content) in enumerate(blocks):
        if kind != "python":
            continue
        exec(compile(content, f"{name}, example {ran + 1}", "exec"), names)
        printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        ran += 1
        following = blocks[index + 1] if index + 1 < len(blocks) else ("", "")
        if following[0] == "text" and f"```\n\n```text\n{following[1]}" in text:
            shown = [line.rstrip() for line in following[1].splitlines()]
            places = range(len(printed) - len(shown) + 1)
            assert any(printed[at : at + len(shown)] == shown for at in places), "\n".join(printed)
    assert ran > 0
