//! Explanations for a terminal and for programs.

use super::{Behind, Common, Explanation, Holder, Trait, Worst};
use crate::table::lines_of;
use crate::value::show_number;
use base::Operation;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use record::SpanKind;
use std::fmt::Write;

/// The explanation as text.
pub fn text(explanation: &Explanation) -> String {
    let Explanation { requests, slow, unfinished, median_ns, p99_ns, extra_ns, .. } = explanation;
    let ns = |value: f64| show_number(round(value));
    let mut text = format!(
        "requests   {requests} measured, {slow} slow: {} ns or more; the median is {} ns\n",
        ns(*p99_ns),
        ns(*median_ns)
    );
    if *unfinished > 0 {
        let _ = writeln!(text, "unfinished {unfinished} measured requests, which are not among these");
    }
    let _ = writeln!(text, "cause      {}", explanation.cause.sentence());
    let first = explanation.spans.first().filter(|span| span.extra_share > 0.0);
    if let Some(span) = first {
        let doc = SpanKind::ALL.into_iter().find(|kind| kind.name() == span.span).map_or("", SpanKind::doc);
        let (share, extra) = (percent(span.extra_share), ns(*extra_ns));
        let _ = writeln!(text, "time       {share} of {extra} ns extra is {}: {doc}", span.span);
    }
    for common in &explanation.common {
        let _ = writeln!(text, "common     {}", sentence(common));
    }
    let across = explanation.worst.iter().filter(|one| one.across_fault).count();
    if across > 0 {
        let _ = writeln!(
            text,
            "fault      {across} of the {} slowest waited across the first fault",
            explanation.worst.len()
        );
    }
    if let Some((begin, end, share)) = explanation.half_within {
        let (begin, end, share) = (ns(begin / 1e3), ns(end / 1e3), percent(share));
        let _ = writeln!(text, "when       half of them began within {share} of the time: {begin} to {end} us");
    }
    text + "\n" + &spans(explanation) + "\n\n" + &worst(&explanation.worst) + "\n" + &waits(&explanation.behind)
}

/// A line for each wait: for how long, for what, and behind whom.
fn waits(behind: &[Behind]) -> String {
    let mut text = if behind.is_empty() { String::new() } else { "\n".to_owned() };
    for one in behind {
        let holder = |holder: &Holder| {
            format!("{} ({} ns of {})", holder.request, show_number(round(holder.held_ns)), holder.span)
        };
        let named: Vec<String> = one.holders.iter().map(holder).collect();
        let more = match one.held_by - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let whom = match named.is_empty() {
            true => "behind none of the requests whose spans were kept".to_owned(),
            false => format!("behind {}{more}, {} of the wait", named.join(", "), percent(one.explained)),
        };
        let place = match (&one.place, &one.resource) {
            (place, resource) if place == resource => place.clone(),
            (place, resource) => format!("{place} for {resource}"),
        };
        let wait = show_number(round(one.wait_ns));
        let _ = writeln!(text, "{} waited {wait} ns ({}) at {place}, {whom}", one.request, one.span);
    }
    text
}

fn sentence(common: &Common) -> String {
    let Common { of, value, slow_share, all_share } = common;
    let what = match of {
        Trait::Source => format!("from node {value}"),
        Trait::Target => format!("to node {value}"),
        Trait::Receiver => format!("whose data go to node {value}"),
        Trait::Address => format!("for address {value}"),
        Trait::Fault => "that waited across the first fault".to_owned(),
        Trait::Operation => {
            let all = [Operation::Read, Operation::Write, Operation::ReadModifyWrite];
            let name = all.into_iter().find(|operation| *operation as u64 == *value).map_or("?", Operation::name);
            format!("of kind {name}")
        }
    };
    format!("{} of the extra time is of requests {what}, {} of all requests", percent(*slow_share), percent(*all_share))
}

fn spans(explanation: &Explanation) -> String {
    let mut table = aligned(&["span", "usual ns", "slow ns", "extra ns", "share"], 1..5);
    for span in &explanation.spans {
        let extra = span.slow_ns - span.usual_ns;
        let cells = [span.usual_ns, span.slow_ns, extra].map(|value| show_number(round(value)));
        table.add_row([vec![span.span.to_owned()], cells.to_vec(), vec![percent(span.extra_share)]].concat());
    }
    lines_of(&table)
}

fn worst(worst: &[Worst]) -> String {
    let mut table = aligned(&["request", "", "from", "to", "at us", "latency ns", "longest spans"], 2..6);
    for one in worst {
        let spans = one.spans.iter().map(|(span, ns)| format!("{span} {}", percent(ns / one.latency_ns)));
        table.add_row([
            one.request.to_string(),
            one.operation.to_owned(),
            one.source.to_string(),
            one.target.to_string(),
            show_number(round(one.intended_ns / 1e3)),
            show_number(round(one.latency_ns)),
            spans.collect::<Vec<_>>().join(", "),
        ]);
    }
    lines_of(&table)
}

fn aligned(header: &[&str], right: std::ops::Range<usize>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().copied());
    for column in right {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn percent(share: f64) -> String {
    // No negative zero.
    format!("{:.1} %", (1e3 * share).round() / 10.0 + 0.0)
}

/// Two decimals.
fn round(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// The explanation as a JSON object.
pub fn json(explanation: &Explanation) -> String {
    serde_json::to_string_pretty(explanation).expect("names are texts, and values numbers") + "\n"
}
