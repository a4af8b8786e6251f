//! Sweeps, scales, and settings from outside.

use crate::common::{SMALL, experiment, files, with};
use plan::{Experiment, Point, Scale, parse};

const SWEEP: &str = include_str!("experiments/sweep.toml");

fn labels(points: &[Point], axis: &str) -> Vec<String> {
    points.iter().map(|point| point.labels[axis].clone()).collect()
}

fn set(text: &str, settings: &[(&str, &str)]) -> Experiment {
    let settings: Vec<_> = settings.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    parse("sweep.toml", text, &files(), &settings).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn a_file_without_a_sweep_is_one_point_without_labels() {
    let points = experiment(SMALL).points(None);
    assert_eq!(points.len(), 1);
    assert!(points[0].labels.is_empty());
}

#[test]
fn axes_are_crossed_in_the_order_of_the_file_and_the_last_varies_fastest() {
    let experiment = experiment(SWEEP);
    let points = experiment.points(None);
    assert_eq!(points.len(), 18);
    assert_eq!(labels(&points, "mix")[..4], ["reads", "writes", "reads", "writes"]);
    assert_eq!(labels(&points, "workload.load")[..4], ["0.2", "0.2", "0.5", "0.5"]);
    assert_eq!(labels(&points, "design.name")[5..7], ["edm", "dctcp"]);
    let names: Vec<String> = experiment.axes().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["design.name", "workload.load", "mix"]);
}

#[test]
fn a_named_axis_sets_several_keys_at_its_point_alone() {
    let points = experiment(SWEEP).points(None);
    let drains: Vec<String> =
        points[..2].iter().map(|point| point.plan.messages().unwrap().run.drain_limit.to_string()).collect();
    assert_eq!(drains, ["100ms", "1s"]);
    assert_eq!(points[0].plan.messages().unwrap().workload.mix.len(), 1);
}

#[test]
fn a_scale_changes_values_and_axes_and_the_others_do_not() {
    let experiment = experiment(SWEEP);
    let quick = experiment.points(Some(Scale::Quick));
    assert_eq!(quick.len(), 3);
    assert_eq!(labels(&quick, "workload.load"), ["0.8"; 3]);
    assert_eq!(labels(&quick, "mix"), ["writes"; 3]);
    assert_eq!(quick[0].plan.messages().unwrap().workload.requests, Some(2_000));
    let paper = experiment.points(Some(Scale::Paper));
    assert_eq!((paper.len(), paper[0].plan.messages().unwrap().workload.requests), (18, Some(1_000_000)));
}

#[test]
fn claims_are_judged_at_quick_unless_the_file_has_a_size_for_that() {
    let plain = experiment(SWEEP);
    assert_eq!(plain.points(Some(Scale::Judged)), plain.points(Some(Scale::Quick)));
    let judged = experiment(&format!("{SWEEP}\n[scale.judged]\n\"run.requests\" = 5000\n"));
    let points = judged.points(Some(Scale::Judged));
    assert_eq!((points.len(), points[0].plan.messages().unwrap().workload.requests), (18, Some(5_000)));
}

#[test]
fn a_scale_that_the_file_does_not_mention_is_its_own_size() {
    let experiment = experiment(SMALL);
    assert_eq!(experiment.points(Some(Scale::Paper)), experiment.points(None));
}

#[test]
fn settings_from_outside_win_over_file_scale_and_sweep() {
    let experiment = set(SWEEP, &[("run.requests", "777"), ("workload.load", "0.3"), ("mix", "reads"), ("seed", "5")]);
    for scale in [None, Some(Scale::Quick)] {
        let points = experiment.points(scale);
        assert_eq!(points.len(), 3);
        assert_eq!(labels(&points, "workload.load"), ["0.3"; 3]);
        assert_eq!(labels(&points, "mix"), ["reads"; 3]);
        assert!(
            points
                .iter()
                .all(|point| point.plan.messages().unwrap().workload.requests == Some(777) && point.plan.seed == 5)
        );
    }
}

#[test]
fn one_point_of_an_axis_is_set_from_outside_at_every_scale() {
    let drains = |points: Vec<Point>| -> Vec<String> {
        points[..2].iter().map(|point| point.plan.messages().unwrap().run.drain_limit.to_string()).collect()
    };
    let changed = set(SWEEP, &[("sweep.mix.writes.run.drain_limit", "2s")]);
    assert_eq!(drains(changed.points(None)), ["100ms", "2s"]);
    assert_eq!(drains(changed.points(Some(Scale::Quick))), ["2s", "2s"]);
    // A key that the file does not set there.
    let added = set(SWEEP, &[("sweep.mix.reads.run.drain_limit", "3s")]);
    assert_eq!(drains(added.points(None)), ["3s", "1s"]);
    let setting =
        |key: &str| parse("sweep.toml", SWEEP, &files(), &[(key.into(), "1s".into())]).unwrap_err().to_string();
    assert!(setting("sweep.mix.writes.run.drain_limt").contains("unknown key `drain_limt`"));
    assert!(setting("sweep.mix.wrytes.run.drain_limit").contains("sweep.mix.wrytes"));
}

#[test]
fn text_from_outside_needs_no_quotes() {
    let plan = set(SMALL, &[("fabric.rate", "25Gbps"), ("design.name", "dctcp")]).points(None).remove(0).plan;
    assert_eq!((plan.messages().unwrap().fabric.rate, plan.design().word()), (base::Rate::gbps(25), "dctcp".into()));
}

#[test]
fn a_table_of_a_design_that_is_chosen_away_from_outside_is_no_mistake() {
    let text = with("name = \"edm\"", "name = \"edm\"\nedm.chunk = \"64B\"");
    assert!(set(&text, &[("design.name", "cxl")]).points(None)[0].plan.design().word() == "cxl");
}

#[test]
fn a_size_is_swept_as_a_whole() {
    let text = format!("{SMALL}[sweep]\n\"workload.size\" = [\"64B\", {{ profile = \"spark\" }}]\n");
    let points = experiment(&text).points(None);
    assert_eq!(labels(&points, "workload.size"), ["64B", "{profile = spark}"]);
}

#[test]
fn a_list_in_the_file_is_set_by_index() {
    let text = with("load = 0.5", "load = 0.5\nmix = [{ operation = \"read\", size = \"64B\" }]")
        + "[sweep]\n\"workload.mix.0.size\" = [\"64B\", \"1KiB\"]\n";
    let points = experiment(&text).points(None);
    let sizes: Vec<f64> =
        points.iter().map(|point| point.plan.messages().unwrap().workload.mix[0].size.mean_bytes()).collect();
    assert_eq!(sizes, [64.0, 1024.0]);
}
