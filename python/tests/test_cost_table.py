"""The script that measures what points cost."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_documents import ROOT
from test_results import PROGRAM

SCRIPT = ROOT / "tools/cost-table.py"
PAGE = ROOT / "docs/reference/cost.md"


def measured(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True)


@pytest.mark.skipif(PROGRAM is None, reason="RACKWEAVE_PROGRAM does not name the command line")
def test_a_table_is_written_between_the_marks_of_the_page(tmp_path):
    page = tmp_path / "cost.md"
    page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    for scenes in (["wear"], ["volumes", "wear"]):
        chosen = (part for scene in scenes for part in ("--scene", scene))
        done = measured(str(PROGRAM), "--times", "1", *chosen, "--write", page)
        assert done.returncode == 0, done.stderr
    shown, written = PAGE.read_text(encoding="utf-8"), page.read_text(encoding="utf-8")
    for mark in ("<!-- begin", "<!-- end"):
        assert written.count(mark) == 1
    assert written.partition("<!-- begin")[0] == shown.partition("<!-- begin")[0]
    assert written.partition("<!-- end")[2] == shown.partition("<!-- end")[2]
    rows = re.findall(r"^\| (\S+) \| `(\S+)` \| (\S+) \| ([\d.]+) s \| ([\d,]+) \| (\S+) \| ([\d,]+) MB \|$", written, re.M)
    assert [scene for scene, *_ in rows] == ["volumes", "volumes", "wear"]
    for _, _, requests, seconds, points, rate, memory in rows:
        # Three digits of seconds, whole points.
        assert int(points.replace(",", "")) == pytest.approx(3600 / float(seconds), rel=0.01, abs=1)
        assert int(memory.replace(",", "")) > 1
        if requests == "–":
            assert rate == "–"
            continue
        assert requests == "50,000"
        assert int(rate.replace(",", "")) == pytest.approx(50 / float(seconds), rel=0.01, abs=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: there is no such program"),
        ([sys.executable, "--times", "0"], "--times 0"),
        ([sys.executable, "--write", str(ROOT / "README.md")], "README.md: it has no lines"),
        ([sys.executable, "--scene", "moon"], "invalid choice: 'moon'"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments, message):
    done = measured(*arguments)
    assert done.returncode == 2 and message in done.stderr
