//! `record.series`: what it accepts, what it refuses, and what it leaves alone.

use crate::common::{SMALL, complaint, plan};
use base::Span;

fn with(series: &str) -> String {
    format!("{SMALL}[record]\nseries = {series}\n")
}

#[test]
fn an_interval_is_a_time_with_its_unit() {
    assert_eq!(plan(&with("\"10us\"")).series, Some(Span::us(10)));
    assert_eq!(plan(SMALL).series, None);
    for (series, expected) in [
        ("\"0s\"", "small.toml:12:10: record.series: 0ps is out of range; allowed is 1ns..=4800h"),
        ("\"500ps\"", "small.toml:12:10: record.series: 500ps is out of range; allowed is 1ns..=4800h"),
        ("\"-1us\"", "small.toml:12:10: record.series: "),
        ("10", "small.toml:12:10: record.series: `10` has no unit: write it with one of ps, ns, us, ms, s, min, h"),
        ("\"10 GB\"", "small.toml:12:10: record.series: "),
    ] {
        let said = complaint(&with(series));
        assert!(said.starts_with(expected), "{series}: {said}");
    }
}

#[test]
fn samples_change_neither_the_plan_nor_its_hash() {
    let (without, sampled) = (plan(SMALL), plan(&with("\"10us\"")));
    assert_eq!(without.hash(), sampled.hash());
    let again = plan(&sampled.to_toml());
    assert_eq!((again.series, again.hash()), (sampled.series, sampled.hash()));
    assert!(!without.to_toml().contains("[record]"), "{}", without.to_toml());
}

/// 100,000 requests of 144 nodes at half load are about 46 us.
#[test]
fn a_series_of_too_many_values_names_the_key_the_number_and_the_remedy() {
    let longer = SMALL.replace("requests = 100000", "requests = 100000000");
    let said = complaint(&format!("{longer}[record]\nseries = \"1ns\"\n"));
    assert!(said.starts_with("small.toml:12:10: record.series: 1ns makes about "), "{said}");
    assert!(said.contains(" samples, more than 20000000; set it to "), "{said}");
    let least = said.rsplit("set it to ").next().and_then(|rest| rest.strip_suffix(" or more"));
    let least = least.unwrap_or_else(|| panic!("{said}"));
    let plan = plan(&format!("{longer}[record]\nseries = \"{least}\"\n"));
    let estimate = plan.series_estimate().expect("the length is known");
    assert!(
        estimate.values <= plan::SERIES_VALUES_MAX && estimate.values > plan::SERIES_VALUES_MAX / 2,
        "{estimate:?}"
    );
}

#[test]
fn a_series_longer_than_the_run_is_a_warning() {
    let warned = |series: &str| {
        let warnings = plan(&with(series)).warnings;
        warnings.into_iter().any(|warning| warning.contains("is longer than the run, of about"))
    };
    assert!(warned("\"1ms\"") && !warned("\"1us\""));
}

#[test]
fn wear_is_sampled_by_whole_days() {
    let wear = |series: &str| {
        format!("title = 't'\ndesign.name = 'wear-levelling'\nwear.days = 100\nrecord.series = \"{series}\"\n")
    };
    let weekly = plan(&wear("168h"));
    assert_eq!(weekly.series_days(), Some(7));
    assert_eq!(weekly.series_estimate().map(|estimate| estimate.samples), Some(15));
    let said = complaint(&wear("36h"));
    assert!(said.contains("record.series: ") && said.contains("whole days"), "{said}");
    assert!(complaint(&wear("10us")).contains("whole days"));
}

#[test]
fn every_scene_accepts_a_series() {
    for scene in ["devices", "key-value", "messages", "san", "volumes", "wear"] {
        let path = format!("{}/../cli/starters/{scene}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect("it is there");
        let interval = if scene == "wear" { "24h" } else { "1ms" };
        let plan = plan(&format!("{text}\n[record]\nseries = \"{interval}\"\n"));
        assert!(plan.series.is_some(), "{scene}");
    }
}
