"""Experiments: how they are made and checked, and what is said of mistakes."""

from __future__ import annotations

import pytest
import rackweave
from conftest import SMALL, SWEEP
from rackweave import Experiment, ExperimentError, InputError


def test_a_plan_has_every_default_and_replays_itself(small):
    plan = small.check()
    assert plan.design == "edm" and plan.seeds == [1] and len(plan.hash) == 64
    assert "active_per_pair = 3" in plan.text and plan.hash in plan.text
    assert Experiment.from_text(plan.text).check().hash == plan.hash


def test_a_builder_a_text_and_a_file_are_the_same_experiment(tmp_path, small):
    built = Experiment(
        title="Small messages",
        design={"name": "edm"},
        fabric={"nodes": 8, "rate": "100Gbps"},
        workload={"load": 0.4, "size": "64B", "read_fraction": 0.5},
        run={"requests": 400},
    )
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    hashes = {experiment.check().hash for experiment in (small, built, Experiment.from_toml(file))}
    assert len(hashes) == 1


def test_values_are_set_without_changing_the_experiment(small):
    other = small.set("design.edm.active_per_pair", 1).set("workload.load", 0.5)
    assert "active_per_pair = 1" in other.check().text and "load = 0.5" in other.check().text
    assert "active_per_pair = 3" in small.check().text


@pytest.mark.parametrize("title", ['a "quote"', "ä\\b\n", "true", "1", "a\x7f", "'a'", '"x"'])
def test_a_text_that_is_set_is_that_text(small, title):
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 does not read TOML")
    text = small.set("title", title).check().text
    assert tomllib.loads(text)["title"] == title
    assert Experiment.from_text(text).check().text == text


def test_the_points_of_a_sweep_have_labels(swept):
    plans = swept.plans()
    assert [plan.labels["design.name"] for plan in plans].count("cxl") == 2
    with pytest.raises(InputError, match="a sweep of 4 points"):
        swept.check()
    assert len(swept.set("workload.load", 0.3).plans()) == 2, "an axis that is set is fixed"


def test_mistakes_are_named_with_file_and_line():
    wrong = SMALL.replace("load = 0.4", "lod = 0.4").replace("nodes = 8", "nodes = -1")
    with pytest.raises(ExperimentError) as raised:
        Experiment.from_text(wrong, "wrong.toml").check()
    error = raised.value
    assert (error.file, error.line) == ("wrong.toml", 3)
    assert [(problem.line, problem.key) for problem in error.problems][:1] == [(3, "fabric.nodes")]
    unknown = next(problem for problem in error.problems if "lod" in problem.message)
    assert unknown.line == 4 and unknown.column > 1 and "`load`" in unknown.message
    assert "wrong.toml:3" in str(error) and isinstance(error, ValueError)


def test_a_value_that_was_set_has_no_line(small):
    with pytest.raises(ExperimentError) as raised:
        small.set("workload.load", "much").check()
    assert raised.value.line is None and raised.value.key == "workload.load"


def test_a_point_of_a_sweep_is_named_by_its_mistake():
    wrong = SWEEP.replace('"cxl"]', '"cxl"]\n"fabric.nodes" = [8, 1]')
    with pytest.raises(ExperimentError) as raised:
        Experiment.from_text(wrong).plans()
    assert any(problem.point and "fabric.nodes" in problem.point for problem in raised.value.problems)


def endless() -> list:
    """A list that holds itself."""
    made: list = []
    made.append(made)
    return made


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Experiment.from_text(b"title"), "needed is a str"),
        (lambda: Experiment(title=object()), "title: a object is no value"),
        (lambda: Experiment(design={"edm": {"chunk": None}}), "design.edm.chunk: a NoneType"),
        (lambda: Experiment(design={1: 2}), "1 is no str"),
        (lambda: Experiment.from_text(SMALL).set("", 1), "no key"),
        (lambda: Experiment.from_text(SMALL).set(3, 1), "3 is no key"),
        (lambda: Experiment.from_text(SMALL).set("workload.load", {1, 2}), "workload.load: a set"),
        (lambda: Experiment.from_text(SMALL).at("huge").check(), "scale: .*quick"),
        (lambda: Experiment.from_toml("nowhere.toml").check(), "nowhere.toml"),
        (lambda: Experiment.from_text(SMALL).run(seeds="12"), "seeds: '12'"),
        (lambda: Experiment.from_text(SMALL).run(seeds=[True]), "True is no seed"),
        (lambda: Experiment.from_text(SMALL).run(seeds=[1.0]), "1.0 is no seed"),
        (lambda: Experiment.from_text(SMALL).run(seeds=-1), "-1 is no seed"),
        (lambda: Experiment.from_text(SMALL).run(seeds=2**63), "is no seed"),
        (lambda: Experiment.from_text(SMALL).run(seeds=[]), "no seed in it"),
        (lambda: Experiment.from_text(SMALL).run(seeds=[3, 3]), "each is there once"),
        (lambda: Experiment.from_text(SMALL).run(spans="some"), "spans: "),
        (lambda: Experiment.from_text(SMALL).run(rows_per_part=0), "rows_per_part: allowed is 1"),
        (lambda: Experiment.from_text(SMALL).run(history=True), "history"),
        (lambda: Experiment.from_text(SMALL).run(progress="yes"), "progress: a str"),
        (lambda: Experiment.from_text(SWEEP).run(), "this is a sweep of 4 points"),
        (lambda: Experiment.from_text(SWEEP).sweep(jobs=0), "jobs: allowed is 1"),
        (lambda: Experiment.from_text(SWEEP).sweep(index="4/4"), "index: expected I/N"),
        (lambda: Experiment.from_text(SWEEP).sweep(resume=True), "resume"),
        (lambda: rackweave.reproduce("edn"), "there is no design `edn`"),
        (lambda: rackweave.reproduce("edm", scale="big"), "scale: .*judged"),
        (lambda: rackweave.open("nowhere"), "no folder of finished results"),
        (lambda: rackweave.compare("nowhere", "neither"), "no such folder"),
        (lambda: rackweave.explain("nowhere"), "no such folder"),
        (lambda: rackweave.explain("nowhere", worst=-1), "worst: allowed is 0"),
        (lambda: Experiment.from_toml(None), "path: a NoneType"),
        (lambda: Experiment.from_text(SMALL, 3), "name: a int"),
        (lambda: Experiment.from_text("\ud800"), "text: no text"),
        (lambda: Experiment(title="\ud800"), "title: no text"),
        (lambda: Experiment(title=endless()), "title: it is nested too deep"),
        (lambda: Experiment.from_text(SMALL).at(3), "scale: a int"),
        (lambda: Experiment.from_text(SMALL).run(out=3), "out: a int"),
        (lambda: Experiment.from_text(SMALL).run(force="no"), "force: a str"),
        (lambda: Experiment.from_text(SMALL).run(long=1), "long: a int"),
        (lambda: Experiment.from_text(SMALL).run(spans=None), "spans: a NoneType"),
        (lambda: Experiment.from_text(SMALL).run(rows_per_part=3.0), "rows_per_part: a float"),
        (lambda: Experiment.from_text(SMALL).run(rows_per_part=True), "rows_per_part: a bool"),
        (lambda: Experiment.from_text(SMALL).run(rows_per_part=2**70), "rows_per_part: 1180591620717411303424 is too"),
        (lambda: Experiment.from_text(SWEEP).sweep(jobs="2"), "jobs: a str"),
        (lambda: Experiment.from_text(SWEEP).sweep(index=1), "index: a int"),
        (lambda: Experiment.from_text(SWEEP).sweep(resume="no"), "resume: a str"),
        (lambda: Experiment.from_text(SWEEP).sweep(storage_options=3), "storage_options: a int"),
        (lambda: Experiment.from_text(SWEEP).sweep(storage_options={}), "storage_options.* go with engine='ray'"),
        (lambda: Experiment.from_text(SWEEP).sweep(shared=False), "shared.* go with engine='ray'"),
        (lambda: Experiment.from_text(SWEEP).sweep(silence_max=None), "silence_max.* go with engine='ray'"),
        (lambda: rackweave.reproduce(3), "selections: a int"),
        (lambda: rackweave.reproduce("edm", scale=3), "scale: a int"),
        (lambda: rackweave.reproduce("edm", jobs=1.5), "jobs: a float"),
        (lambda: rackweave.reproduce("edm", experiments=3), "experiments: a int"),
        (lambda: rackweave.open(None), "path: a NoneType"),
        (lambda: rackweave.compare("nowhere", None), "run: a NoneType"),
        (lambda: rackweave.compare("nowhere", "neither", unpaired=1), "unpaired: a int"),
        (lambda: rackweave.explain("nowhere", worst="many"), "worst: a str"),
        (lambda: rackweave.explain("nowhere", seed=[1]), "seed: a list"),
        (lambda: rackweave.explain("nowhere", seed=-1), "-1 is no seed"),
    ],
)
def test_wrong_arguments_are_refused(act, message):
    with pytest.raises(InputError, match=message):
        act()


def test_a_list_of_toml_takes_numbers_of_numpy():
    numpy = pytest.importorskip("numpy")
    experiment = Experiment.from_text(SMALL).set("workload.load", numpy.float64(0.25))
    assert "load = 0.25" in experiment.check().text
    swept = Experiment.from_text(SMALL)
    assert swept.set("run.requests", numpy.int64(7)).check().text.count("requests = 7") == 1
