//! A figure with its key, its numbers and its download.

use maud::{Markup, PreEscaped, html};

use super::text::{data_address, json_in_script};
use super::{Picture, Section, anchor, wide};
use crate::figure::{Datum, Figure, FigureData, Kind, Names, Origin, Styles, gather, specification};
use crate::value::show_number;

/// One figure of `section`.
pub(super) fn figure(figure: &Figure, section: &Section, index: usize, styles: &Styles) -> Markup {
    let definition = &figure.definition;
    let data = gather(figure, &section.points);
    let names = Names { definition, styles };
    let id = format!("{}-figure-{}", anchor(&section.experiment), index + 1);
    let drawing = specification(definition, &data, styles).filter(|_| !data.data.is_empty());
    html! {
        figure id=(id) {
            h2 { (definition.title) }
            @if data.data.is_empty() { p.notice { "There is nothing to show: no point of this run has the numbers of this figure." } }
            @if let Some(specification) = &drawing {
                (key(definition.kind, &data))
                div.drawing role="img" aria-label=(label(figure, &data, names)) {}
                script type="application/json" class="specification" { (json_in_script(specification)) }
            }
            @if definition.kind == Kind::Table { (numbers(&data, names)) }
            figcaption { (definition.caption) }
            (notes(&definition.notes, &data))
            @if !data.data.is_empty() {
                div.beneath {
                    @if !matches!(definition.kind, Kind::Table | Kind::Time) { details { summary { "Numbers" } (numbers(&data, names)) } }
                    a.download download={ (id) ".csv" } href=(data_address("text/csv", &csv(&data))) { "Download CSV" }
                }
            }
        }
    }
}

/// A picture, which keeps its width: a narrow window scrolls it.
pub(super) fn picture(picture: &Picture, experiment: &str, index: usize) -> Markup {
    let id = picture_name(experiment, index);
    html! {
        figure id=(id) {
            h2 { (picture.title) }
            (wide(&picture.title, &html! { div.picture { (PreEscaped(&picture.svg)) } }))
            figcaption { (picture.caption) }
            div.beneath { a.download download={ (id) ".svg" } href=(data_address("image/svg+xml", &picture.svg)) { "Download SVG" } }
        }
    }
}

/// The name of a picture in addresses and files.
pub(crate) fn picture_name(experiment: &str, index: usize) -> String {
    format!("{}-picture-{}", anchor(experiment), index + 1)
}

/// What the figure shows, for those who do not see it.
fn label(figure: &Figure, data: &FigureData, names: Names<'_>) -> String {
    let definition = &figure.definition;
    let mut series: Vec<&str> = data.series.iter().map(|series| names.of(series)).collect();
    series.dedup();
    let ours = || data.data.iter().filter(|datum| datum.origin == Origin::Ours).map(|datum| datum.value);
    let (low, high) = (ours().fold(f64::INFINITY, f64::min), ours().fold(f64::NEG_INFINITY, f64::max));
    let ends =
        if low <= high { format!("; ours from {} to {}", show_number(low), show_number(high)) } else { String::new() };
    format!("{}: {} by {} of {}{ends}", definition.title, definition.y.title, definition.x.title, series.join(", "))
}

fn notes(notes: &[String], data: &FigureData) -> Markup {
    let bounds = data.data.iter().filter(|datum| datum.lower_bound).count();
    html! {
        @for note in notes { p.small { (note) } }
        @if bounds > 0 {
            p.notice { (bounds) " of these numbers are lower bounds (≥): requests did not end that could raise them." }
        }
        @if !data.gaps.is_empty() {
            details.gaps { summary { "Not in this figure (" (data.gaps.len()) ")" } ul { @for gap in &data.gaps { li { (gap) } } } }
        }
    }
}

/// Distinction of our values from published ones; only where both are drawn.
fn key(kind: Kind, data: &FigureData) -> Markup {
    let origins = data.origins();
    let intervals = data.data.iter().any(|datum| datum.half_width.is_some());
    let sample = |origin: Origin| match (kind, origin) {
        (Kind::Line, Origin::Ours) => {
            html! { svg width="34" height="12" aria-hidden="true" { path class="ours" d="M1 6H33" {} circle cx="17" cy="6" r="4" {} } " ours" }
        }
        (Kind::Line, Origin::Artifact) => {
            html! { svg width="34" height="12" aria-hidden="true" { path class="artifact" d="M1 6H33" {} circle class="hollow" cx="17" cy="6" r="4" {} } " the authors' artifact" }
        }
        (Kind::Bars, Origin::Ours) => {
            html! { svg width="16" height="12" aria-hidden="true" { rect width="14" height="12" {} } " ours" }
        }
        (_, Origin::Artifact) => {
            html! { svg width="16" height="12" aria-hidden="true" { path class="hollow" d="M8 1L13 6L8 11L3 6Z" {} } " the authors' artifact" }
        }
        (_, Origin::Paper) => {
            html! { svg width="20" height="12" aria-hidden="true" { path class="paper" d="M2 6H18" {} } " the paper" }
        }
        (_, Origin::Ours) => html! { " ours" },
    };
    html! {
        @if kind != Kind::StackedBars && (origins.len() > 1 || intervals) {
            p.key {
                @for origin in origins { span { (sample(origin)) } }
                @if intervals { span { (if kind == Kind::Line { "shaded" } else { "whiskers" }) ": 95 % confidence over seeds" } }
            }
        }
    }
}

/// Rows are series (in panels), columns are places on x, each split by the origin of the number.
fn numbers(data: &FigureData, names: Names<'_>) -> Markup {
    let origins: Vec<Origin> = [Origin::Paper, Origin::Artifact, Origin::Ours]
        .into_iter()
        .filter(|origin| data.origins().contains(origin))
        .collect();
    let panels = names.definition.facet.is_some();
    let table = html! {
        table.numbers {
            thead {
                tr {
                    @if panels { th rowspan="2" { (names.definition.facet.as_deref().unwrap_or_default()) } }
                    th rowspan="2" { (names.definition.series) }
                    @for x in &data.xs { th.group colspan=(origins.len()) { (names.of(x)) } }
                }
                tr { @for _ in &data.xs { @for origin in &origins { th.number { (origin.name()) } } } }
            }
            tbody {
                @for facet in &data.facets {
                    @for series in data.series.iter().filter(|series| occurs(data, facet, series)) {
                        tr {
                            @if panels { td { (names.of(facet)) } }
                            td { (names.of(series)) }
                            @for x in &data.xs { @for origin in &origins { td.number { (cell(data.at(facet, series, x, *origin))) } } }
                        }
                    }
                }
            }
        }
    };
    html! {
        (wide(&format!("Numbers of {}", names.definition.title), &table))
        p.small { (names.definition.y.title) " by " (names.definition.x.title) "." }
    }
}

fn occurs(data: &FigureData, facet: &str, series: &str) -> bool {
    data.data.iter().any(|datum| datum.facet == facet && datum.series == series)
}

fn cell(datum: Option<&Datum>) -> String {
    let Some(datum) = datum else { return String::new() };
    let sign = if datum.lower_bound { "≥ " } else { "" };
    let interval = datum.half_width.map_or(String::new(), |half| format!(" ± {}", show_number(half)));
    format!("{sign}{}{interval}", show_number(datum.value))
}

/// The numbers as they are in files: labels' own values, full precision.
pub(crate) fn csv(data: &FigureData) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for datum in &data.data {
        // Writing to memory cannot fail.
        let _ = writer.serialize(datum);
    }
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}
