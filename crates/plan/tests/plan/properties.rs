//! What holds for any file.

use crate::common;

use crate::common::{files, with};
use plan::parse;
use proptest::prelude::*;

const EVERY_KEY: &str = include_str!("experiments/every-key.toml");
const SWEEP: &str = include_str!("experiments/sweep.toml");

/// Reads a text and uses all of what comes out. Panics are what the properties are about.
fn survive(text: &str) {
    match parse("any.toml", text, &files(), &[]) {
        Ok(experiment) => experiment.points(None).iter().for_each(|point| drop(point.plan.hash())),
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
}

const VALUES: [&str; 24] = [
    "0",
    "1",
    "-1",
    "9223372036854775807",
    "99999999999999999999",
    "0.0",
    "1e308",
    "nan",
    "-inf",
    "true",
    "\"\"",
    "\"edm\"",
    "\"64B\"",
    "\"0ns\"",
    "\"18446744073709551615ps\"",
    "\"1TiB\"",
    "\"fast\"",
    "[]",
    "[1, \"a\"]",
    "[[]]",
    "{}",
    "{ profile = \"spark\" }",
    "1979-05-27",
    "\"1Mbps\"",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(text in ".{0,80}") {
        survive(&text);
    }

    #[test]
    fn no_value_in_the_place_of_another_panics(line in 0usize..100, value in 0usize..VALUES.len(), which in any::<bool>()) {
        let whole = if which { EVERY_KEY } else { SWEEP };
        let lines: Vec<String> = whole.lines().enumerate().map(|(at, old)| match old.split_once(" = ") {
            Some((key, _)) if at == line => format!("{key} = {}", VALUES[value]),
            _ => old.to_string(),
        }).collect();
        survive(&lines.join("\n"));
    }

    #[test]
    fn no_cut_panics(from in 0usize..1500, length in 0usize..200) {
        let (from, until) = (from.min(EVERY_KEY.len()), (from + length).min(EVERY_KEY.len()));
        survive(&format!("{}{}", &EVERY_KEY[..from], &EVERY_KEY[until..]));
    }

    #[test]
    fn any_plan_reads_back_as_itself(
        nodes in 2u32..=512, rate in 10_000_000_000u64..400_000_000_000, load in 0.05f64..2.0, reads in 0.0f64..=1.0,
        chunk in 1u64..=65_535, bytes in 1u64..1_000_000, requests in 1u64..100_000, seed in 0..=i64::MAX as u64,
        design in prop::sample::select(vec!["edm", "dctcp", "dcqcn", "pfabric", "receiver-driven", "cxl", "fastpass"]),
    ) {
        let text = with("load = 0.5", &format!("load = {load:?}\nread_fraction = {reads:?}\nsize = \"{bytes}B\""))
            .replace("nodes = 144", &format!("nodes = {nodes}"))
            .replace("100Gbps", &format!("{rate}bps"))
            .replace("requests = 100000", &format!("requests = {requests}"))
            .replace("title = \"small\"", &format!("title = \"small\"\nseed = {seed}"))
            .replace("name = \"edm\"", &format!("name = \"{design}\""));
        let text = if design == "edm" { text + &format!("[design.edm]\nchunk = \"{chunk}B\"\n") } else { text };
        let plan = common::plan(&text);
        let again = common::plan(&plan.to_toml());
        prop_assert_eq!(again.hash(), plan.hash());
        prop_assert_eq!(again, plan);
    }
}
