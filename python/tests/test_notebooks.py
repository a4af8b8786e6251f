"""The notebooks of the documents run, and their answers hold against bounds and formulas."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_documents import ROOT

for library in ("altair", "marimo", "polars"):
    pytest.importorskip(library)

FOLDER = ROOT / "docs/notebooks"
# Charts that each of them shows.
CHARTS = {"choose_a_fabric": 1, "own_sizes": 2, "reproduce_a_figure": 2, "slow_requests": 2}


def played(name: str, **defs: Any) -> tuple[Any, dict[str, Any]]:
    """What the cells of a notebook show and define; `defs` in place of a cell that defines them."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shown, defined = module.app.run(defs=defs) if defs else module.app.run()
    return shown, dict(defined)


def test_all_of_them_are_listed_in_the_guide():
    guide = (ROOT / "docs/guide/notebooks.md").read_text(encoding="utf-8")
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == sorted(CHARTS)
    assert [name for name in CHARTS if f"(../notebooks/{name}.py)" not in guide] == []


@pytest.mark.parametrize("name", sorted(CHARTS))
def test_each_is_in_order_and_is_shown_as_a_page_with_its_figures(name, tmp_path):
    page = tmp_path / "page.html"
    command = [sys.executable, "-m", "marimo"]
    # It leaves a session beside the notebook.
    path = tmp_path / f"{name}.py"
    path.write_bytes((FOLDER / path.name).read_bytes())
    checked = subprocess.run([*command, "check", "--strict", path], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    made = subprocess.run(
        [*command, "export", "html", "--no-include-code", path, "--output", page], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stdout + made.stderr
    text = page.read_text(encoding="utf-8")
    assert "Question." in text and "Answer." in text
    assert text.count("vega-lite/") == CHARTS[name] and "marimo-error" not in text


def test_unloaded_latencies_are_those_of_the_paper_and_of_a_formula():
    _, found = played("reproduce_a_figure")
    paper = {claim["id"]: claim["paper"] for claim in found["reproduction"].claims}
    for operation, value in {"read": 299.52, "write": 296.96}.items():
        assert paper[f"edm.table1.{operation}.total"] == value
        assert found["measured_ns"][operation] == pytest.approx(value, abs=0.001)
        assert found["formula_ns"][operation] == pytest.approx(value, abs=0.001)
        assert f"{value}" in found["answer"]
    ratios = dict(found["compared"].select("claim", "ratio").rows())
    assert len(ratios) == 10 and all(0.97 < ratio < 1.03 for ratio in ratios.values()), ratios


def share(sizes: list[tuple[int, float]], size: float) -> float:
    """The share of messages up to a size."""
    for (low, below), (high, above) in zip(sizes, sizes[1:]):
        if low <= size <= high:
            return below + (above - below) * (size - low) / (high - low)
    raise AssertionError(f"{size} is no size of {sizes}")


def test_messages_have_the_sizes_that_were_given_and_the_fastest_design_is_named():
    _, found = played("own_sizes")
    sizes, sent = found["sizes"], found["sent"].rows()
    # Kolmogorov and Smirnov: a distance this large is one in a hundred. Sizes are whole bytes, so one more is allowed.
    apart = max(min(abs(share(sizes, max(size - near, sizes[0][0])) - at) for near in (0, 1)) for size, at in sent)
    assert len(sent) > 5_000 and apart < 1.63 / len(sent) ** 0.5
    rows = found["messages"].select("design", "bytes", "latency_ps").rows()
    # No message is faster than its own bits on one link of 100 Gb/s.
    assert all(latency >= bytes * 80 for _, bytes, latency in rows)
    slowest: dict[tuple[str, str], list[int]] = {}
    for design, bytes, latency in rows:
        slowest.setdefault(("small" if bytes <= 512 else "large", design), []).append(latency)
    assert len({design for _, design in slowest}) == 8
    for kind in ("small", "large"):
        tails = {design: sorted(all)[round(0.99 * (len(all) - 1))] for (of, design), all in slowest.items() if of == kind}
        assert found["fastest"][kind] == min(tails, key=tails.__getitem__) and found["fastest"][kind] in found["answer"]


def test_slow_requests_wait_for_the_link_as_a_formula_says():
    _, found = played("slow_requests")
    for row in found["waits"].rows(named=True):
        assert row["busy"] == pytest.approx(row["load"], rel=0.01)
        # 1 KiB on 100 Gb/s, and no more than 10 % of it for headers and framing.
        assert 81.92 < row["service_ns"] < 81.92 * 1.1
        assert row["measured_ns"] == pytest.approx(row["formula_ns"], rel=0.1), row
    assert found["facts"]["cause"] == {"kind": "incast", "node": 3} and found["longest"]["span"] == "switch_queue"
    latency = dict(found["run"].requests().to_polars().select("request", "latency_ps").rows())
    spans: dict[int, int] = {}
    for request, begin, end in found["spans"].select("request", "begin_ps", "end_ps").rows():
        spans[request] = spans.get(request, 0) + end - begin
    assert len(spans) == 20 and all(latency[request] == sum for request, sum in spans.items())
    assert min(latency[request] for request in spans) >= sorted(latency.values())[-21]
    assert "incast" in found["answer"] and "`switch_queue`" in found["answer"]


def test_the_cheapest_fabric_that_keeps_the_goal_is_chosen():
    _, found = played("choose_a_fabric")
    fabrics = found["fabrics"].rows(named=True)
    assert len(fabrics) == 6
    for fabric in fabrics:
        # Little: as many I/Os are under way as slots, at any time.
        under_way = fabric["requests_per_second"] * fabric["mean_us"] / 1e6
        assert under_way == pytest.approx(found["hosts"] * found["depth"], rel=0.01), fabric
        assert 0 < fabric["busiest_link"] < 1 and fabric["gbps"] < 8 * 400
    cost = {fabric["fabric"]: fabric["cost_usd"] for fabric in fabrics}
    assert cost["2D torus"] == 8 * 2_600, "an adapter of four ports in each storage node (paper, Table 1)"
    good = [fabric for fabric in fabrics if fabric["read_p99_us"] <= found["goal_us"]]
    assert 0 < len(good) < 6 and found["best"]["cost_usd"] == min(fabric["cost_usd"] for fabric in good)
    assert found["best"] in good and found["best"]["fabric"] in found["answer"]


def test_a_goal_that_no_fabric_keeps_is_told():
    _, found = played("choose_a_fabric", goal_us=1.0)
    assert found["best"] is None and found["answer"].startswith("None of the six keeps 1 us")
