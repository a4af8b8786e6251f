//! A picture of where time goes: a bar for usual requests and one for slow ones, divided by span.

use super::{Explanation, SpanTime};
use crate::figure::Styles;
use crate::value::show_number;
use svg::Document;
use svg::node::element::{Description, Rectangle, Text, Title};

const WIDTH: f64 = 1_000.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 110.0;
const BAR: f64 = 34.0;
const LEGEND: f64 = 180.0;
const TEXT: f64 = 13.0;

/// A mean of a span.
type Mean = fn(&SpanTime) -> f64;

/// Draws the mean times of an explanation.
pub fn picture(explanation: &Explanation, title: &str) -> String {
    let spans = &explanation.spans;
    let names: Vec<String> = spans.iter().map(|span| span.span.to_owned()).collect();
    let styles = Styles::built_in().of(&names);
    let bars: [(&str, Mean); 2] = [("usual", |span| span.usual_ns), ("slow", |span| span.slow_ns)];
    let total = |of: Mean| spans.iter().map(of).sum::<f64>();
    let longest = bars.iter().map(|(_, of)| total(*of)).fold(1.0, f64::max);
    let scale = (WIDTH - LEFT - RIGHT) / longest;
    let columns = (WIDTH / LEGEND) as usize;
    let top = 90.0 + 20.0 * spans.len().div_ceil(columns) as f64;
    let height = top + 2.0 * (BAR + 14.0) + 10.0;
    let about = format!("Mean time of usual and of slow requests by span. {}", explanation.cause.sentence());
    let mut document = Document::new()
        .set("viewBox", (0.0, 0.0, WIDTH, height))
        .set("role", "img")
        .set("font-family", "sans-serif")
        .set("font-size", TEXT)
        .add(Title::new(title))
        .add(Description::new().add(svg::node::Text::new(about)))
        .add(Rectangle::new().set("width", WIDTH).set("height", height).set("fill", "#ffffff"))
        .add(Text::new(title).set("x", 10).set("y", 24).set("font-size", 16.0))
        .add(Text::new(explanation.cause.sentence()).set("x", 10).set("y", 50));
    for (place, (name, style)) in names.iter().zip(&styles).enumerate() {
        let (x, y) = (10.0 + (place % columns) as f64 * LEGEND, 70.0 + 20.0 * (place / columns) as f64);
        document = document
            .add(
                Rectangle::new().set("x", x).set("y", y).set("width", 12).set("height", 12).set("fill", &*style.colour),
            )
            .add(Text::new(name).set("x", x + 18.0).set("y", y + 11.0));
    }
    for (row, (name, of)) in bars.into_iter().enumerate() {
        let y = top + row as f64 * (BAR + 14.0);
        document = document.add(Text::new(name).set("x", 10).set("y", y + BAR / 2.0 + 5.0));
        let mut x = LEFT;
        for (span, style) in spans.iter().zip(&styles) {
            let width = of(span) * scale;
            let what = format!("{} {} ns", span.span, show_number(of(span).round()));
            let bar = Rectangle::new().set("x", x).set("y", y).set("width", width).set("height", BAR);
            document = document.add(bar.set("fill", &*style.colour).add(Title::new(what)));
            x += width;
        }
        let sum = format!("{} ns", show_number(total(of).round()));
        document = document.add(Text::new(sum).set("x", x + 6.0).set("y", y + BAR / 2.0 + 5.0));
    }
    document.to_string() + "\n"
}
