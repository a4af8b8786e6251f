//! A picture of requests: a row each, and a bar for each span since the intended start.

use super::Shown;
use crate::figure::Styles;
use base::Span;
use record::{SpanKind, SpanRow};
use std::collections::BTreeSet;
use svg::Document;
use svg::node::element::{Description, Group, Line, Rectangle, Text, Title};

const WIDTH: f64 = 1_000.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 90.0;
const ROW: f64 = 22.0;
const LEGEND: f64 = 150.0;
const TEXT: f64 = 12.0;

/// Draws requests in the given order.
pub fn picture(requests: &[Shown], title: &str) -> String {
    let longest = requests.iter().map(|shown| shown.row.latency()).max().unwrap_or(Span::ZERO).as_ps().max(1) as f64;
    let scale = (WIDTH - LEFT - RIGHT) / longest;
    let kinds: BTreeSet<SpanKind> =
        requests.iter().flat_map(|shown| &shown.spans).map(|span| span.entry.kind).collect();
    let names: Vec<String> = kinds.iter().map(|kind| kind.name().to_owned()).collect();
    let colours: Vec<String> = Styles::built_in().of(&names).into_iter().map(|style| style.colour).collect();
    let colour =
        |kind: SpanKind| kinds.iter().position(|known| *known == kind).map_or("#888888", |place| &*colours[place]);
    let columns = ((WIDTH / LEGEND) as usize).max(1);
    let top = 40.0 + ROW * names.len().div_ceil(columns) as f64;
    let height = top + ROW * requests.len() as f64 + 40.0;
    let about = format!("Spans of {} requests since their intended start", requests.len());
    let mut document = Document::new()
        .set("viewBox", (0.0, 0.0, WIDTH, height))
        .set("role", "img")
        .set("font-family", "sans-serif")
        .set("font-size", TEXT)
        .add(Title::new(title))
        .add(Description::new().add(svg::node::Text::new(about)))
        .add(Rectangle::new().set("width", WIDTH).set("height", height).set("fill", "#ffffff"))
        .add(Text::new(title).set("x", 10).set("y", 22).set("font-size", 15.0));
    for (place, name) in names.iter().enumerate() {
        let (x, y) = (10.0 + (place % columns) as f64 * LEGEND, 40.0 + ROW * (place / columns) as f64);
        document = document
            .add(
                Rectangle::new()
                    .set("x", x)
                    .set("y", y)
                    .set("width", 12)
                    .set("height", 12)
                    .set("fill", &*colours[place]),
            )
            .add(Text::new(name).set("x", x + 17.0).set("y", y + 11.0));
    }
    for (place, shown) in requests.iter().enumerate() {
        document = document.add(row(shown, top + ROW * place as f64, scale, &colour));
    }
    document.add(axis(longest, scale, top + ROW * requests.len() as f64)).to_string() + "\n"
}

/// A request: its number, its spans, and its latency behind them.
fn row<'a>(shown: &Shown, y: f64, scale: f64, colour: &impl Fn(SpanKind) -> &'a str) -> Group {
    let row = &shown.row;
    let mut group = Group::new()
        .add(Text::new(format!("{} {}", row.operation.name(), row.request.0)).set("x", 10).set("y", y + 14.0))
        .add(
            Text::new(human(row.latency().as_ps() as f64))
                .set("x", LEFT + row.latency().as_ps() as f64 * scale + 5.0)
                .set("y", y + 14.0),
        );
    for span in shown.spans.iter().filter(|span| span.entry.end > span.entry.begin) {
        group = group.add(bar(shown, span, y, scale).set("fill", colour(span.entry.kind)));
    }
    group
}

fn bar(shown: &Shown, span: &SpanRow, y: f64, scale: f64) -> Rectangle {
    let entry = &span.entry;
    let since = entry.begin.saturating_since(shown.row.intended).as_ps() as f64;
    let length = (entry.end - entry.begin).as_ps() as f64;
    let what = format!("{} {} {}", entry.kind.name(), human(length), super::name_of(entry.place));
    Rectangle::new()
        .set("x", LEFT + since * scale)
        .set("y", y + 3.0)
        .set("width", (length * scale).max(0.3))
        .set("height", ROW - 7.0)
        .add(Title::new(what.trim_end()))
}

/// Five marks at round times.
fn axis(longest: f64, scale: f64, y: f64) -> Group {
    let step = round_step(longest / 5.0);
    let mut group = Group::new().add(line(LEFT, y, LEFT + longest * scale, y));
    let mut at = 0.0;
    while at <= longest {
        let x = LEFT + at * scale;
        group = group
            .add(line(x, y, x, y + 5.0))
            .add(Text::new(human(at)).set("x", x).set("y", y + 20.0).set("text-anchor", "middle"));
        at += step;
    }
    group
}

fn line(x1: f64, y1: f64, x2: f64, y2: f64) -> Line {
    Line::new().set("x1", x1).set("y1", y1).set("x2", x2).set("y2", y2).set("stroke", "#444444")
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(1.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= least).unwrap_or(power)
}

/// Picoseconds in the unit that a reader expects.
fn human(ps: f64) -> String {
    let units = [(1e12, "s"), (1e9, "ms"), (1e6, "us"), (1e3, "ns")];
    let (size, name) = units.into_iter().find(|(size, _)| ps >= *size).unwrap_or((1e3, "ns"));
    format!("{} {name}", crate::value::show_number((ps / size * 100.0).round() / 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_human_units_and_steps_are_round() {
        assert_eq!([999.0, 1e3, 1.5e6, 2e9, 3.25e12].map(human), ["1 ns", "1 ns", "1.5 us", "2 ms", "3.25 s"]);
        assert_eq!([1.0, 1.1, 2.0, 2.1, 5.1].map(round_step), [1.0, 2.0, 2.0, 5.0, 10.0]);
    }
}
