use super::*;
use std::collections::BTreeMap;

fn read(meter: Meter) -> BTreeMap<String, f64> {
    meter.finish().0
}

#[test]
fn every_name_is_declared_once_and_says_what_it_means() {
    let names: Vec<&str> = all().map(|metric| metric.name).collect();
    for (index, metric) in all().enumerate() {
        let example = example(metric.name);
        let covering: Vec<&str> = all().filter(|other| other.covers(&example)).map(|other| other.name).collect();
        assert_eq!(covering, [metric.name], "{example} is declared once");
        assert!(!names[..index].contains(&metric.name), "{}", metric.name);
        let doc = metric.doc();
        assert!(doc.len() > 6 && doc.ends_with('.') && !metric.unit.is_empty(), "{}: {doc}", metric.name);
        let longest = doc.split(". ").map(|sentence| sentence.split_whitespace().count()).max();
        assert!(longest.is_some_and(|words| words <= 30), "{}: {doc}", metric.name);
    }
    assert!(names.len() > 200, "{}", names.len());
}

/// Returns an example name of a family.
fn example(pattern: &str) -> String {
    let places = [("server", "3"), ("ssd", "07"), ("channel", "1"), ("bytes", "4096"), ("stream", "a-b_c")];
    let places = places.into_iter().chain([("work", "send"), ("kind", "update")]);
    places.fold(pattern.to_owned(), |name, (place, fill)| name.replace(&format!("{{{place}}}"), fill))
}

#[test]
fn the_unit_at_the_end_of_a_name_is_its_unit() {
    let units = [("_ns", "ns"), ("_us", "us"), ("_ms", "ms"), ("_bytes", "B"), ("_s", "s")];
    let units = units.into_iter().chain([("_usd", "USD"), ("_fraction", "fraction"), ("_ratio", "ratio")]);
    for (end, unit) in units {
        // Names of rates end like those of times.
        let named = all().filter(|metric| metric.name.ends_with(end) && !metric.name.ends_with("_per_s"));
        named.for_each(|metric| assert_eq!(metric.unit, unit, "{}", metric.name));
    }
}

#[test]
fn a_family_covers_the_names_that_fill_its_places() {
    let name = |text: &str| find(text).map(|metric| metric.name);
    assert_eq!(name("read_4096_bytes_latency_mean_ns"), Some("read_{bytes}_bytes_latency_mean_ns"));
    assert_eq!(name("key_value_requests_per_s"), Some("key_value_requests_per_s"));
    assert_eq!(name("server_cpu_send_s"), Some("server_cpu_{work}_s"));
    assert_eq!(name("background_a_latency_mean_ns_latency_mean_ns"), Some("background_{stream}_latency_mean_ns"));
    for unknown in ["", "get", "gets_", "read_4k_bytes_latency_mean_ns", "server_cpu_sending_s", "server_cpu__s"] {
        assert_eq!(name(unknown), None, "{unknown}");
    }
}

#[test]
#[should_panic(expected = "read_4k_bytes_latency_mean_ns is none of the metrics")]
fn a_place_that_is_filled_with_something_else_is_a_defect() {
    read_bytes_latency_mean_ns.at(&[&"4k"]);
}

#[test]
fn totals_count_from_the_begin_of_the_window() {
    let mut meter = Meter::new();
    meter.count(gets, 10.0);
    meter.ratio(cache_hit_ratio, 2.0, 10.0);
    meter.put(tokens_waiting_max, 7.0);
    meter.count(history_violations, 1.0);
    meter.begin_window();
    meter.count(gets, 25.0);
    assert_eq!(meter.ratio(cache_hit_ratio, 11.0, 25.0), 0.6);
    meter.count(history_violations, 3.0);
    let expected = [("gets", 15.0), ("cache_hit_ratio", 0.6), ("history_violations", 3.0)];
    assert_eq!(read(meter), expected.map(|(name, value)| (name.to_owned(), value)).into());
}

#[test]
fn a_second_begin_replaces_the_first() {
    let mut meter = Meter::new();
    for total in [1.0, 10.0] {
        meter.count(gets, total);
        meter.begin_window();
    }
    meter.count(gets, 12.0);
    assert_eq!(read(meter)["gets"], 2.0);
}

#[test]
fn a_quotient_of_nothing_is_what_the_caller_says() {
    let mut meter = Meter::new();
    assert_eq!(meter.ratio(cache_hit_ratio, 0.0, 0.0), 0.0);
    assert_eq!(meter.ratio_or(write_amplification, 0.0, 0.0, 1.0), 1.0);
}

#[test]
fn parts_of_a_computed_metric_grow_apart_from_each_other() {
    let mut meter = Meter::new();
    for (part, total) in [(0, 5.0), (1, 8.0)] {
        meter.grown(link_load_max_fraction, part, total);
    }
    meter.begin_window();
    let grown = [(0, 7.0), (1, 8.5)].map(|(part, total)| meter.grown(link_load_max_fraction, part, total));
    assert_eq!(grown, [2.0, 0.5]);
}

#[test]
#[should_panic(expected = "the metric gets was read twice")]
fn a_metric_that_two_write_is_a_defect() {
    let mut meter = Meter::new();
    meter.count(gets, 1.0);
    meter.count(gets, 1.0);
}

#[test]
fn seeds_are_put_together_as_the_form_says() {
    let values = [3.0, 1.0, 2.0];
    let merged = [Merge::Sum, Merge::Mean, Merge::Max, Merge::Min].map(|merge| merge.apply(&values));
    assert_eq!(merged, [6.0, 2.0, 3.0, 1.0].map(Some));
    assert_eq!(find("tokens_waiting_max").map(Definition::merge), Some(Merge::Max));
    assert_eq!(find("gets").map(Definition::merge), Some(Merge::Sum));
}
