//! A claim over the parameters that nobody printed.

use maud::{Markup, html};
use serde_json::{Value as Json, json};

use super::text::json_in_script;
use super::{Section, anchor, wide};
use crate::figure::config;
use crate::settle::{Answer, Tried};
use crate::settled::{Settled, Unprinted, json_of, number_of};
use crate::value::{show_number, show_with_unit};
use crate::{ClaimResult, Value};

/// Width of a picture, and of each of two side by side, in pixels.
const WIDTH: [usize; 2] = [780, 400];
/// Height of a picture in pixels.
const HEIGHT: usize = 260;
const AGREES: &str = "agrees";
const OUTSIDE: &str = "outside";

/// Whether an experiment has such a picture: it needs a script.
pub(super) fn is_drawn(section: &Section, searches: &[Settled]) -> bool {
    section.claims.iter().any(|result| found(result, searches).is_some())
}

/// A figure for each claim of the section that was searched.
pub(super) fn figures(section: &Section, searches: &[Settled]) -> Markup {
    html! {
        @for result in &section.claims {
            @if let Some((settled, answer)) = found(result, searches) { (figure(result, settled, answer)) }
        }
    }
}

fn found<'a>(result: &ClaimResult, searches: &'a [Settled]) -> Option<(&'a Settled, &'a Answer)> {
    let settlement = result.settlement.as_ref()?;
    let settled = searches.iter().find(|one| one.experiment == settlement.searched.experiment)?;
    Some((settled, settled.answers.iter().find(|answer| answer.claim == result.id)?))
}

fn figure(result: &ClaimResult, settled: &Settled, answer: &Answer) -> Markup {
    let [first, second] = axes(settled, answer);
    let Some(first) = first else { return html! {} };
    let tried: Vec<(&Tried, &Value)> =
        settled.points.iter().filter_map(|point| Some((point, point.values.get(&result.id)?))).collect();
    html! {
        figure id={ "search-" (anchor(&result.id)) } {
            h2 { (result.id) ": " (result.metric) " over what the paper does not print" }
            div.drawing role="img" aria-label={ (result.metric) " (" (result.unit) ") over " (first.key) @if let Some(second) = second { " and " (second.key) } ", " (tried.len()) " runs" } {}
            script type="application/json" class="specification" { (json_in_script(&specification(result, &tried, first, second))) }
            figcaption {
                "Each point is a run of the box of " (settled.experiment) " at the scale " (settled.scale)
                ". Lines: the paper (full), ours at the defaults (dashed)."
            }
            div.beneath { details { summary { "Numbers" } (numbers(result, settled, &tried)) } }
        }
    }
}

/// The parameters that explain most of the variance: the deciding one first.
fn axes<'a>(settled: &'a Settled, answer: &Answer) -> [Option<&'a Unprinted>; 2] {
    let decided = settled.settlement(&answer.claim).and_then(|settlement| settlement.decided);
    let decides = |one: &Unprinted| decided.as_ref().is_some_and(|decided| decided.parameter == one.key);
    let share = |one: &Unprinted| answer.sensitivity.get(&one.key).copied().unwrap_or_default();
    let mut axes: Vec<&Unprinted> = settled.parameters.iter().collect();
    axes.sort_by(|a, b| decides(b).cmp(&decides(a)).then(share(b).total_cmp(&share(a))));
    let mut axes = axes.into_iter();
    [axes.next(), axes.next()]
}

fn specification(
    result: &ClaimResult,
    tried: &[(&Tried, &Value)],
    first: &Unprinted,
    second: Option<&Unprinted>,
) -> Json {
    let width = WIDTH[usize::from(second.is_some())];
    let mut rows = Vec::new();
    for (point, value) in tried.iter().filter(|(point, _)| !point.places.is_empty()) {
        let verdict = if result.accept.contains(value) { AGREES } else { OUTSIDE };
        for (element, y) in leaves(value).into_iter().enumerate() {
            let other = second.map(|second| at(second, point));
            rows.push(
                json!({ "x": at(first, point), "y": y, "element": element + 1, "verdict": verdict, "other": other }),
            );
        }
    }
    let rule = |value: &Value, dash: [u32; 2]| -> Vec<Json> {
        let line = |y: f64| {
            json!({ "data": { "values": [{ "y": y }] }, "mark": { "type": "rule", "strokeDash": dash, "color": "#1f2430" },
                "encoding": { "y": { "field": "y", "type": "quantitative" } } })
        };
        leaves(value).into_iter().map(line).collect()
    };
    let colour = json!({ "field": "verdict", "type": "nominal", "title": null,
        "scale": { "domain": [AGREES, OUTSIDE], "range": ["#0f7a43", "#c4532d"] }, "legend": { "orient": "top" } });
    let title = format!("{} ({})", result.metric, result.unit);
    let mut encoding = json!({
        "x": axis(first, "x"), "color": colour,
        "y": { "field": "y", "type": "quantitative", "title": title, "scale": { "zero": false } },
    });
    if leaves(&result.paper).len() > 1 {
        encoding["shape"] = json!({ "field": "element", "type": "nominal", "title": "element" });
    }
    let mut layers =
        vec![json!({ "mark": { "type": "point", "filled": true, "size": 52, "opacity": 0.8 }, "encoding": encoding })];
    layers.extend(rule(&result.paper, [1, 0]));
    layers.extend(result.ours.iter().flat_map(|ours| rule(ours, [4, 4])));
    let value = json!({ "width": width, "height": HEIGHT, "layer": layers });
    let mut parts = vec![value];
    parts.extend(second.map(|second| {
        json!({
            "width": width, "height": HEIGHT, "mark": { "type": "point", "filled": true, "size": 52, "opacity": 0.8 },
            "encoding": { "x": axis(first, "x"), "y": axis(second, "other"), "color": colour },
        })
    }));
    json!({ "data": { "values": rows }, "hconcat": parts, "config": config() })
}

/// A parameter's channel.
fn axis(parameter: &Unprinted, field: &str) -> Json {
    if !parameter.is_range {
        return json!({ "field": field, "type": "nominal", "title": parameter.key, "axis": { "labelAngle": 0 } });
    }
    let scale = if parameter.is_log { "log" } else { "linear" };
    let unit = parameter
        .range
        .first()
        .and_then(Json::as_str)
        .map(|text| text.trim_start_matches(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '.']));
    let unit = unit.map_or_else(String::new, |unit| format!(" ({unit})"));
    let title = format!("{}{unit}", parameter.key);
    json!({ "field": field, "type": "quantitative", "title": title, "scale": { "type": scale, "zero": false, "nice": false } })
}

/// A parameter's value at a point: a number without its unit, or a word.
fn at(parameter: &Unprinted, point: &Tried) -> Json {
    let value = point.settings.get(&parameter.key).map_or(Json::Null, |text| json_of(text));
    match number_of(&value).filter(|_| parameter.is_range) {
        Some(number) => json!(number),
        None => json!(value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
    }
}

/// The numbers of a value; a statement is 1 or 0.
fn leaves(value: &Value) -> Vec<f64> {
    match value {
        Value::Number(number) => vec![*number],
        Value::Truth(truth) => vec![f64::from(u8::from(*truth))],
        Value::List(items) => items.iter().flat_map(leaves).collect(),
    }
}

fn numbers(result: &ClaimResult, settled: &Settled, tried: &[(&Tried, &Value)]) -> Markup {
    let setting = |point: &Tried, key: &str| match point.settings.get(key) {
        Some(text) => json_of(text).as_f64().map_or_else(|| text.trim_matches('"').to_owned(), show_number),
        None => "default".to_owned(),
    };
    let table = html! {
        table.numbers {
            thead { tr { @for one in &settled.parameters { th { (one.key) } } th.number { "Ours" } } }
            tbody {
                @for (point, value) in tried {
                    tr {
                        @for one in &settled.parameters { td { (setting(point, &one.key)) } }
                        td.number { (show_with_unit(value, &result.unit)) }
                    }
                }
            }
        }
    };
    html! {
        (wide(&format!("Runs of {}", result.id), &table))
    }
}
