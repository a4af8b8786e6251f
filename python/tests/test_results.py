"""Results: the same bytes as the command line's, frames, figures, explanations, comparisons."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import rackweave
from conftest import SMALL, SWEEP
from rackweave import Experiment, InputError

PROGRAM = os.environ.get("RACKWEAVE_PROGRAM")


def files(folder: Path) -> dict[str, bytes]:
    """All files of a folder by name."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.mark.skipif(PROGRAM is None, reason="RACKWEAVE_PROGRAM does not name the command line")
@pytest.mark.parametrize(("verb", "text"), [("run", SMALL), ("sweep", SWEEP)])
def test_the_command_line_leaves_the_same_bytes(tmp_path, monkeypatch, verb, text):
    monkeypatch.chdir(tmp_path)
    Path("a.toml").write_text(text)
    subprocess.run([PROGRAM, verb, "a.toml", "--seeds", "1..3", "--out", "shell"], check=True, capture_output=True)
    getattr(Experiment.from_toml("a.toml"), verb)(seeds=[1, 2], out="python")
    shell, python = files(Path("shell")), files(Path("python"))
    assert shell.keys() == python.keys()
    assert [name for name in shell if shell[name] != python[name]] == []


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(tmp_path, small):
    first, second, other = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    small.run(out=first)
    small.run(out=second)
    small.run(out=other, seeds=2)
    assert {**files(first), "index.html": b""} == {**files(second), "index.html": b""}
    assert files(first)["summary.json"] != files(other)["summary.json"]


def test_a_run_says_what_came_of_it(small):
    run = small.run(seeds=(1, 2))
    assert "800 offered, 800 finished" in str(run) and run.seeds == [1, 2] and run.partial is None
    assert run.summary["counts"]["finished"] == 800
    assert run.summary_of(2)["seeds"] == [2] and run.page.is_file()
    assert Experiment.from_text(run.plan).check().hash == run.summary["plan_hash"]
    with pytest.raises(InputError, match="no seed 3"):
        run.requests(seed=3)


def test_a_temporary_folder_goes_with_its_last_reader(small):
    run = small.run()
    path, frame = run.path, run.requests()
    del run
    assert path.is_dir() and frame.to_polars().height == 400
    del frame
    assert not path.exists()


def test_a_folder_is_not_replaced_unless_it_is_meant(tmp_path, small):
    out = tmp_path / "out"
    small.run(out=out)
    with pytest.raises(InputError, match="exists"):
        small.run(out=out)
    assert small.run(out=out, force=True).summary["counts"]["finished"] == 400
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").touch()
    with pytest.raises(InputError, match="not replaced"):
        small.run(out=tmp_path / "thesis", force=True)


def test_the_frame_is_one_table_for_all_libraries(swept):
    duckdb, pandas, polars, pyarrow = map(pytest.importorskip, ("duckdb", "pandas", "polars", "pyarrow"))
    sweep = swept.sweep(seeds=[1, 2])
    frame = sweep.requests()
    rows = 4 * 2 * 400
    table, of_polars, of_pandas = pyarrow.table(frame), polars.DataFrame(frame), frame.to_pandas()
    assert (table.num_rows, of_polars.height, len(of_pandas)) == (rows, rows, rows)
    counted = duckdb.sql("select count(*), sum(latency_ps), count(distinct design) from frame").fetchall()[0]
    assert counted == (rows, of_polars["latency_ps"].sum(), 2)
    assert int(of_pandas["latency_ps"].sum()) == counted[1]
    spans = [name for name in of_polars.columns if name.startswith("span_")]
    assert (of_polars.select(polars.sum_horizontal(spans)).to_series() == of_polars["latency_ps"]).all()


def test_labels_have_types_and_columns_have_units(swept):
    polars, pyarrow = map(pytest.importorskip, ("polars", "pyarrow"))
    sweep = swept.sweep()
    frame = sweep.requests()
    schema = pyarrow.table(frame).schema
    assert schema.field("latency_ps").metadata[b"unit"] == b"ps" and schema.field("bytes").metadata[b"unit"] == b"B"
    assert b"End to end" in schema.field("latency_ps").metadata[b"description"]
    assert frame.units["latency_ps"] == "ps" and "operation" not in frame.units
    types = frame.to_polars().schema
    assert types["label_workload_load"] == polars.Float64 and types["label_design_name"] == polars.String
    assert types["seed"] == polars.Int64 and types["latency_ps"] == polars.UInt64


def test_values_are_not_copied_into_arrow(small):
    pyarrow = pytest.importorskip("pyarrow")
    run = small.set("run.requests", 20_000).run()
    before = pyarrow.total_allocated_bytes()
    table = pyarrow.table(run.requests())
    assert table.nbytes > 20_000 * 200
    assert pyarrow.total_allocated_bytes() - before < 100_000


def test_summaries_are_a_row_for_each_point_and_seed(swept):
    polars = pytest.importorskip("polars")
    sweep = swept.sweep(seeds=[3, 4])
    frame = sweep.summaries()
    table = frame.to_polars()
    assert table.height == 8 and table["seed"].to_list() == [3, 4] * 4 and table["point"].max() == 3
    assert table["label_workload_load"].dtype == polars.Float64
    assert frame.units["latency_ns.all.mean"] == "ns" and frame.units["load.achieved_gbps"] == "Gb/s"
    mean = sweep[1].summary_of(3)["latency_ns"]["read"]["p99"]
    assert table.filter(point=1, seed=3)["latency_ns.read.p99"].item() == mean
    metrics = [name for name in table.columns if name.startswith("metrics.")]
    assert metrics and all(name in frame.units for name in metrics)


def test_damaged_records_are_an_error_that_names_the_file(tmp_path, small):
    polars = pytest.importorskip("polars")
    run = small.run(out=tmp_path / "out")
    part = next(run.path.glob("seed-1/records/*.parquet"))
    content = bytearray(part.read_bytes())
    content[100] ^= 1
    part.write_bytes(content)
    with pytest.raises(Exception, match="part-00000.parquet.*damaged"):
        polars.DataFrame(run.requests())
    part.write_bytes(content[:200])
    with pytest.raises(InputError, match="part-00000.parquet"):
        run.requests()


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("summary.json", b"{", "damaged"),
        ("summary.json", b"\xff", "damaged"),
        ("summary.json", b"[1]", "a list where a dict is needed"),
        ("summary.json", b"{}", "no `seeds`"),
        ("claims.json", b"nope", "damaged"),
        ("claims.json", b"{}", "a dict where a list is needed"),
        ("points/000-x/summary.json", b"{}", "no `seeds`"),
    ],
)
def test_folders_of_other_things_are_refused_by_their_files(tmp_path, file, content, message):
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError, match=f"{file}: .*{message}"):
        rackweave.open(tmp_path)


def test_records_that_were_not_kept_are_missed(swept, small):
    sweep = swept.sweep(records=False)
    with pytest.raises(InputError, match="records=True"):
        sweep.requests()
    assert sweep.summaries().to_polars().height == 4
    with pytest.raises(InputError, match="spans='slowest:20'"):
        small.run().spans()
    spans = small.run(spans="slowest:3").spans()
    assert spans.to_polars()["request"].n_unique() == 3 and spans.units["begin_ps"] == "ps"


def test_figures_are_those_of_the_page(swept, small):
    altair = pytest.importorskip("altair")
    sweep, run = swept.sweep(), small.run()
    for results in (sweep, run):
        plots = results.plots()
        assert plots and all(isinstance(chart, altair.TopLevelMixin) for chart in plots.values())
    names = list(sweep.plots())
    assert len(names) == len(set(names)) and len(names) >= 3


def test_slow_requests_are_explained(small):
    run = small.set("run.requests", 2_000).run()
    explanation = run.explain(worst=2)
    assert "requests" in str(explanation) and "cause" in str(explanation)
    assert len(explanation.facts["worst"]) == 2


def test_runs_are_compared_with_intervals(small):
    one, other = (small.set("design.edm.active_per_pair", pairs).run(seeds=range(1, 4)) for pairs in (1, 3))
    comparison = rackweave.compare(one, other)
    assert "latency all mean" in str(comparison) and "95 % interval" in str(comparison)
    values = comparison.comparisons[0]["differences"]
    assert len(values) > 10 and "metric " not in str(comparison) and "metric " in comparison.text_of_all
    with pytest.raises(InputError, match="unpaired"):
        rackweave.compare(one, small.set("workload.load", 0.2).run(seeds=range(1, 4)))


def test_a_sweep_goes_on_where_it_was(tmp_path, swept):
    out = tmp_path / "out"
    first = swept.sweep(out=out, index="0/2")
    assert len(first) == 2
    events = []
    whole = swept.sweep(out=out, progress=events.append)
    assert len(whole) == 4 and len([event for event in events if event["event"] == "point"]) == 2
    assert len(rackweave.open(out)) == 4
    with pytest.raises(InputError, match="another sweep"):
        swept.set("run.requests", 10).sweep(out=out)


def test_a_published_figure_is_reproduced():
    altair = pytest.importorskip("altair")
    reproduction = rackweave.reproduce("edm/table1", "edm/fig5", records=False)
    ours = {claim["id"]: claim["ours"] for claim in reproduction.claims}
    # 42 cycles of 2.56 ns, 8 transceivers of 19 ns and 4 fibres of 10 ns (paper, Table 1).
    assert ours["edm.table1.read.total"] == pytest.approx(42 * 2.56 + 8 * 19 + 4 * 10, abs=0.001)
    assert reproduction.page.is_file() and "edm.table1" in str(reproduction)
    ((name, chart),) = reproduction.plots().items()
    assert name.startswith("edm-fig5") and isinstance(chart, altair.TopLevelMixin)
    labels = [point.summary["labels"] for point in reproduction.points("edm/fig5")]
    assert labels == [{"operation": "read"}, {"operation": "write"}]
    with pytest.raises(InputError, match="edm/fig8a"):
        reproduction.points("edm/fig8a")
