//! A figure as a Vega-Lite specification (version 6).

use serde_json::{Value as Json, json};

use super::{Datum, Definition, FigureData, Kind, Origin, Scale, Style, Styles};

/// Room for panels in pixels, inside a page of 1280 px.
const WIDTH: usize = 1000;
/// Width of a figure with a single panel, in pixels: its legend is to the right.
const SINGLE_WIDTH: usize = 780;
/// Height of a panel in pixels.
const HEIGHT: usize = 320;
/// Height of one of several panels.
const PANEL_HEIGHT: usize = 270;
/// Between two panels.
const GAP: usize = 28;

/// Draws `data`. A [`Kind::Table`] is not drawn: none.
pub(crate) fn specification(definition: &Definition, data: &FigureData, styles: &Styles) -> Option<Json> {
    let drawing = Drawing { definition, data, styles, names: Names { definition, styles } };
    let layers = match definition.kind {
        Kind::Line => drawing.lines(),
        Kind::Time => drawing.times(),
        Kind::Bars => drawing.bars(),
        Kind::StackedBars => drawing.stack(),
        Kind::Table => return None,
    };
    Some(drawing.framed(&layers))
}

/// Displayed names of label values.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    pub definition: &'a Definition,
    pub styles: &'a Styles,
}

impl<'a> Names<'a> {
    /// The figure's own name for it, the page's, or the value itself.
    pub(crate) fn of(self, value: &'a str) -> &'a str {
        self.definition.names.get(value).map_or_else(|| self.styles.name(value), String::as_str)
    }
}

struct Drawing<'a> {
    definition: &'a Definition,
    data: &'a FigureData,
    styles: &'a Styles,
    names: Names<'a>,
}

impl Drawing<'_> {
    fn framed(&self, layers: &Json) -> Json {
        let values: Vec<Json> =
            self.data.data.iter().filter(|datum| self.can_be_drawn(datum)).map(|datum| self.row(datum)).collect();
        let mut specification = json!({ "data": { "values": values }, "config": config() });
        let fields = specification.as_object_mut().expect("an object was just written");
        let panels = self.data.facets.len();
        if self.definition.facet.is_none() || panels < 2 {
            fields.insert("width".into(), json!(SINGLE_WIDTH));
            fields.insert("height".into(), json!(HEIGHT));
            fields.insert("layer".into(), layers.clone());
            return specification;
        }
        let columns = if panels == 4 { 2 } else { panels.min(3) };
        let width = (WIDTH - GAP * (columns - 1)) / columns;
        let sort: Vec<&str> = self.data.facets.iter().map(|facet| self.names.of(facet)).collect();
        fields.insert("facet".into(), json!({ "field": "facet", "type": "nominal", "title": null, "sort": sort, "header": { "labelFontSize": 13, "labelFontWeight": 600, "labelColor": "#1f2430" } }));
        fields.insert("columns".into(), json!(columns));
        if !panels.is_multiple_of(columns) {
            // Panels of an incomplete row have axes of their own: no axis stands alone.
            fields.insert("resolve".into(), json!({ "axis": { "x": "independent" } }));
        }
        fields.insert("spacing".into(), json!(GAP));
        fields.insert("spec".into(), json!({ "width": width, "height": PANEL_HEIGHT, "layer": layers }));
        specification
    }

    /// A logarithmic axis has no place for zero and below; the page's table still shows such a
    /// number.
    fn can_be_drawn(&self, datum: &Datum) -> bool {
        self.definition.y.scale == Scale::Linear || datum.value > 0.0
    }

    fn row(&self, datum: &Datum) -> Json {
        let numeric = self.data.x_is_numeric() && matches!(self.definition.kind, Kind::Line | Kind::Time);
        let x =
            if numeric { json!(datum.x.parse::<f64>().unwrap_or_default()) } else { json!(self.names.of(&datum.x)) };
        if self.definition.kind == Kind::Time {
            return json!({ "series": self.names.of(&datum.series), "x": x, "y": datum.value, "origin": datum.origin.name() });
        }
        let mut row = json!({
            "facet": self.names.of(&datum.facet), "series": self.names.of(&datum.series), "x": x, "y": datum.value,
            "origin": datum.origin.name(), "rank": self.data.series.iter().position(|series| *series == datum.series),
        });
        if let Some(half) = datum.half_width {
            row["low"] = json!(self.lowest(datum.value, half));
            row["high"] = json!(datum.value + half);
        }
        if datum.lower_bound {
            row["bound"] = json!("at least");
        }
        row
    }

    /// A whisker that would reach zero on a logarithmic axis ends a decade below its mark.
    fn lowest(&self, value: f64, half: f64) -> f64 {
        match self.definition.y.scale {
            Scale::Log => (value - half).max(value / 10.0),
            Scale::Linear => value - half,
        }
    }

    fn lines(&self) -> Json {
        let mut layers = vec![];
        if self.has_intervals() {
            layers.push(self.band());
        }
        if self.has(Origin::Artifact) {
            let line = json!({ "type": "line", "strokeWidth": 1, "opacity": 0.55, "strokeDash": [1, 3] });
            layers.push(self.curve(Origin::Artifact, &line, &[]));
            let point = json!({ "type": "point", "filled": false, "size": 46, "strokeWidth": 1.2, "opacity": 0.85 });
            layers.push(self.curve(Origin::Artifact, &point, &["shape", "tooltip"]));
        }
        layers.push(self.curve(Origin::Ours, &json!({ "type": "line", "strokeWidth": 2.2 }), &["strokeDash"]));
        let point = json!({ "type": "point", "filled": true, "size": 58, "opacity": 1 });
        layers.push(self.curve(Origin::Ours, &point, &["shape", "tooltip"]));
        if self.has(Origin::Paper) {
            layers.push(self.curve(Origin::Paper, &paper_mark(), &["tooltip"]));
        }
        json!(layers)
    }

    fn times(&self) -> Json {
        let line = json!({ "type": "line", "strokeWidth": 1.6, "interpolate": "linear" });
        json!([self.curve(Origin::Ours, &line, &["strokeDash", "tooltip"])])
    }

    /// One layer of a line figure; `channels` are those that it has besides place and colour.
    fn curve(&self, origin: Origin, mark: &Json, channels: &[&str]) -> Json {
        let mut encoding = json!({ "x": self.line_x(), "y": self.y(), "color": self.colour() });
        for channel in channels {
            encoding[*channel] = match *channel {
                "shape" => self.channel(|look| json!(look.shape)),
                "strokeDash" => self.channel(|look| json!(look.dash)),
                _ => self.tooltip(),
            };
        }
        json!({ "transform": [only(origin)], "mark": mark, "encoding": encoding })
    }

    fn band(&self) -> Json {
        json!({
            "transform": [only(Origin::Ours), { "filter": "isValid(datum.low)" }],
            "mark": { "type": "area", "opacity": 0.16, "line": false },
            "encoding": { "x": self.line_x(), "y": self.y_of("low"), "y2": { "field": "high" }, "color": self.colour() },
        })
    }

    fn line_x(&self) -> Json {
        if !self.data.x_is_numeric() {
            return self.nominal_x();
        }
        let title = &self.definition.x.title;
        json!({ "field": "x", "type": "quantitative", "title": title, "scale": self.x_scale(), "axis": { "tickCount": 10 } })
    }

    fn bars(&self) -> Json {
        let x = self.nominal_x();
        let offset = json!({ "field": "series", "type": "nominal", "sort": self.series_names() });
        let place =
            |y: Json| json!({ "x": x, "xOffset": offset, "y": y, "color": self.colour(), "tooltip": self.tooltip() });
        let mut bar = place(self.y());
        if self.definition.y.scale == Scale::Log {
            bar["y2"] = json!({ "datum": self.log_ticks().first() });
        }
        let mut layers = vec![json!({ "transform": [only(Origin::Ours)], "mark": { "type": "bar" }, "encoding": bar })];
        if self.has_intervals() {
            let mut whisker = place(self.y_of("low"));
            whisker["y2"] = json!({ "field": "high" });
            whisker["color"] = json!({ "value": "#1f2430" });
            layers.push(json!({ "transform": [only(Origin::Ours), { "filter": "isValid(datum.low)" }], "mark": { "type": "rule", "strokeWidth": 1.4 }, "encoding": whisker }));
        }
        for (origin, mark) in [(Origin::Artifact, artifact_mark()), (Origin::Paper, paper_mark())] {
            if self.has(origin) {
                let mut encoding = place(self.y());
                encoding["color"] = json!({ "value": "#1f2430" });
                encoding["fill"] = json!({ "value": "#ffffff" });
                layers.push(json!({ "transform": [only(origin)], "mark": mark, "encoding": encoding }));
            }
        }
        json!(layers)
    }

    fn stack(&self) -> Json {
        let mut encoding = json!({
            "x": self.nominal_x(), "y": self.y(), "color": self.colour(), "order": { "field": "rank", "type": "quantitative" },
            "tooltip": self.tooltip(),
        });
        let origins: Vec<&str> = self.data.origins().into_iter().map(Origin::name).collect();
        if origins.len() > 1 {
            encoding["xOffset"] = json!({ "field": "origin", "type": "nominal", "sort": origins });
            let fade: Vec<f64> = origins.iter().map(|name| if *name == "ours" { 1.0 } else { 0.45 }).collect();
            encoding["opacity"] = json!({ "field": "origin", "type": "nominal", "title": "Whose", "scale": { "domain": origins, "range": fade }, "legend": { "symbolType": "square", "symbolFillColor": "#4a5160" } });
        }
        json!([{ "mark": { "type": "bar", "stroke": "#ffffff", "strokeWidth": 0.6 }, "encoding": encoding }])
    }

    fn has(&self, origin: Origin) -> bool {
        self.data.origins().contains(&origin)
    }

    fn has_intervals(&self) -> bool {
        self.data.data.iter().any(|datum| datum.half_width.is_some())
    }

    fn series_names(&self) -> Vec<&str> {
        self.data.series.iter().map(|series| self.names.of(series)).collect()
    }

    fn colour(&self) -> Json {
        self.channel(|look| json!(look.colour))
    }

    /// One property of the styles of the series; channels with the same field and domain share one
    /// legend.
    fn channel(&self, property: impl Fn(&Style) -> Json) -> Json {
        let range: Vec<Json> = self.styles.of(&self.data.series).iter().map(property).collect();
        let panels = self.definition.facet.is_some() && self.data.facets.len() > 1;
        let legend = if panels {
            json!({ "orient": "top", "direction": "horizontal", "columns": 8, "symbolOpacity": 1 })
        } else {
            json!({ "orient": "right", "symbolOpacity": 1 })
        };
        json!({ "field": "series", "type": "nominal", "title": null, "sort": self.series_names(), "scale": { "domain": self.series_names(), "range": range }, "legend": legend })
    }

    fn nominal_x(&self) -> Json {
        let order: Vec<&str> = self.data.xs.iter().map(|x| self.names.of(x)).collect();
        json!({ "field": "x", "type": "nominal", "title": self.definition.x.title, "sort": order, "axis": { "labelAngle": 0, "labelLimit": 160 } })
    }

    fn x_scale(&self) -> Json {
        match self.definition.x.scale {
            Scale::Log => json!({ "type": "log", "zero": false }),
            Scale::Linear => json!({ "zero": false, "padding": 12, "nice": false }),
        }
    }

    fn y(&self) -> Json {
        self.y_of("y")
    }

    /// The y channel of `field`; every layer says the same about axis and scale, so that they share
    /// both.
    fn y_of(&self, field: &str) -> Json {
        let mut channel = json!({ "field": field, "type": "quantitative", "title": self.definition.y.title });
        match self.definition.y.scale {
            Scale::Linear => channel["scale"] = json!({ "type": "linear", "zero": true }),
            Scale::Log => {
                let ticks = self.log_ticks();
                channel["scale"] = json!({ "type": "log", "nice": false, "domain": [ticks.first(), ticks.last()] });
                channel["axis"] = json!({ "values": ticks, "format": "~g" });
            }
        }
        channel
    }

    /// The ends of a logarithmic axis and the steps between: 1, 2, 5 in each decade, or whole
    /// decades when there are many. Bars need some height, so their axis starts below the least of
    /// them.
    fn log_ticks(&self) -> Vec<f64> {
        let drawn = self.data.data.iter().filter(|datum| datum.value > 0.0);
        let ends = drawn.map(|datum| {
            let half = datum.half_width.unwrap_or(0.0);
            (self.lowest(datum.value, half), datum.value + half)
        });
        let (low, high) = ends.fold((f64::INFINITY, 0.0_f64), |(low, high), (from, to)| (low.min(from), high.max(to)));
        if !low.is_finite() {
            return vec![1.0, 10.0];
        }
        let low = if self.definition.kind == Kind::Bars { low / 1.25 } else { low };
        steps(low, high)
    }

    fn tooltip(&self) -> Json {
        let mut fields = vec![
            json!({ "field": "series", "title": "series" }),
            json!({ "field": "x", "title": self.definition.x.title }),
            json!({ "field": "y", "title": self.definition.y.title, "format": ".5~g" }),
            json!({ "field": "origin", "title": "whose" }),
        ];
        if self.has_intervals() {
            fields.push(json!({ "field": "low", "title": "95 % from", "format": ".5~g" }));
            fields.push(json!({ "field": "high", "title": "95 % to", "format": ".5~g" }));
        }
        if self.data.data.iter().any(|datum| datum.lower_bound) {
            fields.push(json!({ "field": "bound", "title": "bound" }));
        }
        json!(fields)
    }
}

/// From the last step at or below `low` to the first at or above `high`.
fn steps(low: f64, high: f64) -> Vec<f64> {
    let first = low.log10().floor() as i32;
    let last = high.log10().ceil() as i32;
    let fine: &[f64] = if last - first > 3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all = || (first..=last).flat_map(|decade| fine.iter().map(move |step| step * 10_f64.powi(decade)));
    let from = all().filter(|step| *step <= low * (1.0 + 1e-9)).fold(10_f64.powi(first), f64::max);
    let to = all().filter(|step| *step >= high * (1.0 - 1e-9) && *step > from).fold(10_f64.powi(last + 1), f64::min);
    all().filter(|step| (from..=to).contains(step)).collect()
}

fn only(origin: Origin) -> Json {
    json!({ "filter": { "field": "origin", "equal": origin.name() } })
}

fn paper_mark() -> Json {
    json!({ "type": "point", "shape": "stroke", "size": 260, "strokeWidth": 2.4, "filled": false, "opacity": 1 })
}

fn artifact_mark() -> Json {
    json!({ "type": "point", "shape": "diamond", "size": 42, "strokeWidth": 1.3, "filled": false, "opacity": 1 })
}

/// The style of every picture of a page.
pub(crate) fn config() -> Json {
    json!({
        "font": "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif",
        "background": "#ffffff",
        "view": { "stroke": null },
        "axis": { "labelFontSize": 12, "titleFontSize": 12.5, "titleFontWeight": 600, "titlePadding": 10, "gridColor": "#e6e9ee",
            "domainColor": "#8b93a1", "tickColor": "#8b93a1", "labelColor": "#3a4150", "titleColor": "#1f2430" },
        "axisX": { "grid": false },
        "legend": { "labelFontSize": 12.5, "labelColor": "#1f2430", "symbolSize": 110, "symbolStrokeWidth": 2.2, "rowPadding": 6, "columnPadding": 18, "labelLimit": 220 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithmic_axis_encloses_its_values_in_round_steps() {
        for (low, high, expected) in [
            (1.0, 2.0, vec![1.0, 2.0]),
            (0.97, 44.0, vec![0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]),
            (3.0, 3.0, vec![2.0, 5.0]),
            (1.0, 1.0, vec![1.0, 2.0]),
            (0.5, 60_000.0, vec![0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0]),
        ] {
            let found = steps(low, high);
            assert_eq!(found.len(), expected.len(), "{low} to {high}: {found:?}");
            assert!(found.iter().zip(&expected).all(|(a, b)| (a / b - 1.0).abs() < 1e-9), "{low} to {high}: {found:?}");
        }
    }
}
