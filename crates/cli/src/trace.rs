//! `rackweave trace`: what is in a recorded load.

use crate::arguments::TraceArguments;
use crate::describe::print_json;
use crate::failure::{Failure, bad_input, print};
use campaign::terminal::say;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets::NOTHING};
use serde::Serialize;
use std::fs::File;
use std::io::BufReader;
use workload::block_trace::{
    Beyond, Footprint, Format, Inspection, Inversions, OpenReader, Report, SizeSummary, Tolerance, open_block_trace,
};

/// Listed devices at most; JSON has all.
const DEVICES_SHOWN_MAX: usize = 32;

/// The results, for programs.
#[derive(Serialize)]
struct Found<'a> {
    file: &'a str,
    format: Format,
    /// Good lines that are neither reads nor writes.
    passed_over_lines: u64,
    /// Bad lines.
    skipped_lines: u64,
    /// The first few of them.
    skipped_first: &'a [String],
    /// Requests that came behind a later one, and were put in order.
    inverted: u64,
    #[serde(flatten)]
    report: Report,
}

/// Reads a trace to its end and prints its sum.
pub fn trace(arguments: &TraceArguments) -> Result<(), Failure> {
    let name = arguments.file.display().to_string();
    let file = File::open(&arguments.file).map_err(|error| bad_input(format!("{name}: {error}")))?;
    let inversions = if arguments.strict { Inversions::Refuse } else { Inversions::Sort };
    let (volume, skip_bad) = (arguments.capacity, arguments.skip_bad);
    let tolerance = Tolerance { volume, beyond: Beyond::Refuse, skip_bad, inversions };
    let mut reader = open_block_trace(&name, arguments.format, tolerance, BufReader::new(file)).map_err(bad_input)?;
    let report = inspect(&mut reader)?;
    let found = Found {
        file: &name,
        format: reader.format(),
        passed_over_lines: reader.passed_over(),
        skipped_lines: reader.skipped(),
        skipped_first: reader.skipped_first(),
        inverted: reader.inverted(),
        report,
    };
    warn(&found);
    if arguments.json { print_json(&found) } else { print(&text(&found)) }
}

fn inspect(reader: &mut OpenReader<'_>) -> Result<Report, Failure> {
    let mut inspection = Inspection::default();
    while let Some(request) = reader.next().map_err(bad_input)? {
        inspection.add(&request);
    }
    Ok(inspection.report(|device| reader.device_name(device).map(str::to_owned)))
}

fn warn(found: &Found<'_>) {
    if found.inverted > 0 {
        let (inverted, file) = (found.inverted, found.file);
        say(format_args!(
            "warning: {file}: {inverted} requests came behind a later one, and were put in order; \
             --strict refuses them"
        ));
    }
    if found.skipped_lines > 0 {
        say(format_args!("warning: {} bad lines were skipped, the first of them:", found.skipped_lines));
        found.skipped_first.iter().for_each(|line| say(format_args!("  {line}")));
    }
}

fn text(found: &Found<'_>) -> String {
    let report = &found.report;
    let mut lines = vec![
        ("file", found.file.to_owned()),
        ("format", found.format.to_string()),
        ("requests", format!("{} ({:.2} % reads)", report.requests, report.read_share * 100.0)),
        ("reads", sizes(&report.reads)),
        ("writes", sizes(&report.writes)),
        ("span", format!("{:.6} s", report.span_s)),
        ("rate", rate(report)),
        ("burstiness", bursts(report)),
        (
            "sequential",
            format!("{:.2} % begin where the last on their device has ended", report.sequential_share * 100.0),
        ),
        ("footprint", footprint(report.footprint)),
        ("written", footprint(report.written_footprint)),
        ("end", format!("byte {}: a device must be as large", report.end_bytes)),
    ];
    if found.passed_over_lines > 0 {
        lines.push(("passed over", format!("{} lines that are neither reads nor writes", found.passed_over_lines)));
    }
    let facts: String = lines.into_iter().map(|(name, value)| format!("{name:<12}{value}\n")).collect();
    format!("{facts}\n{}\n{}", devices(report), unlisted(report))
}

fn sizes(direction: &SizeSummary) -> String {
    let SizeSummary { requests, mean_bytes, least_bytes, median_bytes, p90_bytes, p99_bytes, most_bytes, .. } =
        direction;
    if *requests == 0 {
        return "none".into();
    }
    format!(
        "{requests}; bytes: mean {mean_bytes:.1}, least {least_bytes}, median {median_bytes}, p90 {p90_bytes}, p99 {p99_bytes}, most {most_bytes}"
    )
}

fn rate(report: &Report) -> String {
    if report.span_s == 0.0 {
        return "none: all requests come at once".into();
    }
    format!("{:.1} requests/s, {:.3} MB/s", report.requests_per_second, report.bytes_per_second / 1e6)
}

fn bursts(report: &Report) -> String {
    let Report { requests_in_busiest_second: busiest, gap_variation: variation, .. } = report;
    format!("{busiest} requests in the busiest second; gaps vary by {variation:.2} of their mean (Poisson: 1)")
}

fn footprint(footprint: Footprint) -> String {
    let about = if footprint.is_exact { "" } else { "about " };
    format!("{about}{:.3} MB in blocks of 4 KiB", footprint.bytes as f64 / 1e6)
}

fn devices(report: &Report) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["device", "reads", "writes", "bytes", "end"]);
    for device in report.devices.iter().take(DEVICES_SHOWN_MAX) {
        let name = device.name.clone().unwrap_or_else(|| device.device.to_string());
        let numbers = [device.reads, device.writes, device.bytes, device.end_bytes];
        table.add_row(std::iter::once(name).chain(numbers.map(|number| number.to_string())));
    }
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table
}

fn unlisted(report: &Report) -> String {
    match report.devices.len().saturating_sub(DEVICES_SHOWN_MAX) {
        0 => String::new(),
        more => format!("and {more} further devices: --json lists them\n"),
    }
}
