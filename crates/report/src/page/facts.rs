//! The runs of a page, and their warnings.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use record::Summary;

use super::{PageInput, Section, wide};
use crate::measure::describe;
use crate::points::kind;
use crate::value::show_number;

/// Letters of a hash that are enough to recognise it.
const HASH_LETTERS: usize = 12;

fn all_points(input: &PageInput) -> impl Iterator<Item = &Summary> {
    input.sections.iter().flat_map(|section| &section.points)
}

/// Version, scale, seeds, size of the run, and the caller's own facts.
pub(super) fn table(input: &PageInput) -> Markup {
    let versions: BTreeSet<&str> = all_points(input).map(|point| point.version.as_str()).collect();
    let seeds: BTreeSet<u64> = all_points(input).flat_map(|point| point.seeds.iter().copied()).collect();
    let hashes: BTreeSet<&str> = all_points(input).map(|point| point.plan_hash.as_str()).collect();
    let events: u64 = all_points(input).map(|point| point.events).sum();
    let measured: u64 = all_points(input).map(|point| point.counts.measured).sum();
    let mut facts = vec![
        ("Program", format!("rackweave {}", versions.into_iter().collect::<Vec<_>>().join(", "))),
        ("Scale", input.scale.clone()),
        ("Seeds", ranges(&seeds)),
        ("Experiments", if input.sections.len() > 1 { grouped(input.sections.len() as u64) } else { String::new() }),
        ("Points", points_and_plans(all_points(input).count(), hashes.len())),
        ("Requests measured", grouped(measured)),
        ("Events simulated", grouped(events)),
    ];
    facts.extend(input.facts.iter().map(|(name, value)| (name.as_str(), value.clone())));
    html! {
        dl.facts { @for (name, value) in facts { @if !value.is_empty() && value != "0" { div { dt { (name) } dd { (value) } } } } }
    }
}

fn points_and_plans(points: usize, plans: usize) -> String {
    let points_text = grouped(points as u64);
    if points == plans { points_text } else { format!("{points_text} ({plans} plans)") }
}

/// "1 to 5, 9".
fn ranges(seeds: &BTreeSet<u64>) -> String {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for seed in seeds {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*seed) => *last = *seed,
            _ => runs.push((*seed, *seed)),
        }
    }
    let show =
        |(first, last): &(u64, u64)| if first == last { first.to_string() } else { format!("{first} to {last}") };
    runs.iter().map(show).collect::<Vec<_>>().join(", ")
}

/// Thousands apart: 12 345 678, with narrow spaces that do not break.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// The banner at the head of the page.
pub(super) fn warnings(input: &PageInput) -> Markup {
    let total = all_points(input).count();
    let partial = all_points(input).filter(|point| point.partial).count();
    let warned = all_points(input).filter(|point| !point.warnings.is_empty()).count();
    html! {
        @if partial > 0 { p.notice.strong role="alert" { "Partial results: " (partial) " of " (total) " points were cut short." } }
        @if warned > 0 { p.notice { (warned) " of " (total) " points carry warnings; they are listed with their experiment." } }
    }
}

/// The warnings of one section, each once, with the points that have it.
pub(super) fn section_warnings(section: &Section) -> Markup {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for point in &section.points {
        for warning in &point.warnings {
            places.entry(warning).or_default().push(describe(point));
        }
        if point.partial {
            places.entry("The run was cut short.").or_default().push(describe(point));
        }
    }
    let mut kinds: BTreeMap<String, Vec<(&str, Vec<String>)>> = BTreeMap::new();
    for (warning, points) in places {
        kinds.entry(kind(warning)).or_default().push((warning, points));
    }
    let more = |warnings: usize| if warnings > 1 { format!(" (and {} like it)", warnings - 1) } else { String::new() };
    html! {
        @if !kinds.is_empty() {
            h2 { "Warnings" }
            div.notice {
                @for warnings in kinds.values() {
                    details {
                        summary { (warnings[0].0) (more(warnings.len())) }
                        ul { @for (warning, points) in warnings { li { (warning) " " (where_it_is(points)) } } }
                    }
                }
            }
        }
    }
}

fn where_it_is(points: &[String]) -> Markup {
    html! {
        @if let [point] = points { span.small { "(" (point) ")" } }
        @else {
            details.inline { summary { (points.len()) " points" } (points.join("; ")) }
        }
    }
}

/// Every point of a section with its loads and counts.
pub(super) fn points(section: &Section) -> Markup {
    let mut names: Vec<&str> =
        section.points.iter().flat_map(|point| point.labels.keys().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| *name != "design");
    html! {
        @if !section.points.is_empty() {
            details {
                summary { "Loads, counts and plans of the " @if section.points.len() == 1 { "point" } @else { (section.points.len()) " points" } }
                (wide("Loads, counts and plans", &point_table(section, &names)))
            }
        }
    }
}

fn point_table(section: &Section, names: &[&str]) -> Markup {
    html! {
        table {
            thead { tr {
                th { "design" } @for name in names { th { (name) } }
                th.number { "planned load" } th.number { "offered Gb/s" } th.number { "achieved Gb/s" } th.number { "busiest link" }
                th.number { "measured" } th.number { "unfinished" } th.number { "lost" } th.number { "available" } th.number { "drops" } th { "seeds" } th { "plan" }
            } }
            tbody { @for point in &section.points { (point_row(point, names)) } }
        }
    }
}

fn point_row(point: &Summary, names: &[&str]) -> Markup {
    let unfinished = point.counts.in_flight_at_end + point.counts.not_issued;
    let hash: String = point.plan_hash.chars().take(HASH_LETTERS).collect();
    html! {
        tr {
            td { (point.design) }
            @for name in names { td { (point.labels.get(*name).map_or("", String::as_str)) } }
            td.number { (point.load.planned.map_or("–".to_owned(), show_number)) }
            td.number { (show_number(point.load.offered_gbps)) }
            td.number { (show_number(point.load.achieved_gbps)) }
            td.number { (show_number(point.load.busiest_link)) }
            td.number { (grouped(point.counts.measured)) }
            td.number { (grouped(unfinished)) }
            td.number { (grouped(point.counts.lost + point.counts.timed_out + point.counts.rejected)) }
            td.number { (available(point)) }
            td.number { (grouped(point.counts.dropped_packets)) }
            td { (ranges(&point.seeds.iter().copied().collect())) }
            td { code { (hash) } }
        }
    }
}

/// The share of requests that were served since the first fault.
fn available(point: &Summary) -> String {
    point.availability.map_or("–".to_owned(), |availability| format!("{:.3} %", 100.0 * availability.fraction))
}

/// The full hashes, at the end of the page.
pub(super) fn provenance(input: &PageInput, sections: &[Section]) -> Markup {
    let hashes: BTreeSet<(&str, &str)> = sections
        .iter()
        .flat_map(|section| section.points.iter().map(|point| (section.experiment.as_str(), point.plan_hash.as_str())))
        .collect();
    html! {
        footer {
            @if !hashes.is_empty() {
                details {
                    summary { "Plan hashes (SHA-256 of each resolved plan)" }
                    ul.hashes { @for (experiment, hash) in hashes { li { (experiment) " " code { (hash) } } } }
                }
            }
            p.small { (input.title) ". This page needs no network. Figures are drawn by Vega, Vega-Lite and Vega-Embed (BSD-3-Clause), which are part of it." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_and_counts_are_short_to_read() {
        assert_eq!(ranges(&BTreeSet::from([1, 2, 3, 9])), "1 to 3, 9");
        assert_eq!(ranges(&BTreeSet::from([u64::MAX])), u64::MAX.to_string());
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(grouped(123), "123");
    }
}
