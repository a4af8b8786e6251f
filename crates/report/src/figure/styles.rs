//! One name, colour, dash and shape for each design and span on a page.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// The style of a series.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Style {
    /// `#rrggbb`.
    pub colour: String,
    /// Lengths of strokes and gaps; none is a full line.
    #[serde(default)]
    pub dash: Vec<u32>,
    /// A Vega point shape.
    #[serde(default = "circle")]
    pub shape: String,
}

fn circle() -> String {
    "circle".to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    id: String,
    name: String,
    colour: String,
    #[serde(default)]
    dash: Vec<u32>,
    #[serde(default = "circle")]
    shape: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStyles {
    named: Vec<Named>,
    other: Vec<Style>,
}

/// All styles.
#[derive(Debug)]
pub(crate) struct Styles {
    named: BTreeMap<String, (String, Style)>,
    other: Vec<Style>,
}

impl Styles {
    /// Those built into the program.
    ///
    /// # Panics
    /// When that file is broken; a test reads it.
    pub(crate) fn built_in() -> Styles {
        let raw: RawStyles =
            toml::from_str(include_str!("../../assets/styles.toml")).expect("the built-in styles.toml is broken");
        let style = |named: Named| {
            (named.id, (named.name, Style { colour: named.colour, dash: named.dash, shape: named.shape }))
        };
        Styles { named: raw.named.into_iter().map(style).collect(), other: raw.other }
    }

    /// The name that readers see.
    pub(crate) fn name<'a>(&'a self, id: &'a str) -> &'a str {
        self.named.get(id).map_or(id, |(name, _)| name)
    }

    /// The styles of all `series` of one figure: no colour comes twice. A style with a name keeps
    /// its colour, unless a series before it has the same one.
    pub(crate) fn of(&self, series: &[String]) -> Vec<Style> {
        let named = |id: &String| self.named.get(id).map(|(_, style)| style);
        let reserved: Vec<&str> = series.iter().filter_map(named).map(|style| &*style.colour).collect();
        let is_free = |style: &Style| !reserved.contains(&&*style.colour);
        let own = self.other.iter().filter(|style| is_free(style)).cloned();
        let shapes = self.other.iter().cycle();
        let made = (0u32..).zip(shapes).map(|(index, style)| Style { colour: made(index), ..style.clone() });
        let mut others = own.chain(made.filter(|style| is_free(style)));
        let mut used = BTreeSet::new();
        let mut style = |id: &String| {
            let found = named(id).filter(|style| !used.contains(&style.colour)).cloned();
            let style = found.or_else(|| others.find(|style| !used.contains(&style.colour)))?;
            used.insert(style.colour.clone());
            Some(style)
        };
        series.iter().filter_map(&mut style).collect()
    }
}

/// A colour beyond those of the file: hues a golden angle apart, which never come twice, at three
/// lightnesses in turn.
fn made(index: u32) -> String {
    let hue = (f64::from(index) * 137.507_764_05 + 20.0).rem_euclid(360.0);
    let (lightness, chroma) = ([0.42, 0.56, 0.30][(index % 3) as usize], 0.28);
    // One channel of a colour by hue, lightness and chroma (CSS Color 4, 7.1).
    let channel = |offset: f64| {
        let place = (offset + hue / 30.0).rem_euclid(12.0);
        let part = lightness - chroma * (place - 3.0).min(9.0 - place).clamp(-1.0, 1.0);
        (part * 255.0).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", channel(0.0), channel(8.0), channel(4.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_design_looks_alike_wherever_it_occurs_and_others_differ_from_one_another() {
        let styles = Styles::built_in();
        let names = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        assert_eq!(styles.of(&names(&["cxl", "edm"]))[1], styles.of(&names(&["x", "edm", "dctcp"]))[1]);
        let unnamed = styles.of(&names(&["x=1", "x=2", "x=3"]));
        assert!(unnamed[0] != unnamed[1] && unnamed[1] != unnamed[2]);
        assert_eq!((styles.name("dcqcn"), styles.name("x=1")), ("PFC + DCQCN", "x=1"));
    }

    #[test]
    fn no_two_series_of_a_figure_share_a_colour() {
        let styles = Styles::built_in();
        let designs = ["vdc", "coordinated-io", "rackblox-software", "rackblox", "edm", "dctcp"];
        let many = (0..300).map(|number| format!("x={number}"));
        let ids: Vec<String> = designs.map(str::to_owned).into_iter().chain(many).collect();
        let found = styles.of(&ids);
        let colours: BTreeSet<&str> = found.iter().map(|style| &*style.colour).collect();
        assert_eq!((found.len(), colours.len()), (ids.len(), ids.len()));
        let of_a_figure = styles.of(&ids[..4]);
        assert_eq!(of_a_figure[3].colour, styles.named["rackblox"].1.colour, "a name keeps its colour");
    }

    #[test]
    fn every_span_of_a_record_has_a_look() {
        let styles = Styles::built_in();
        for kind in record::SpanKind::ALL {
            assert!(styles.named.contains_key(kind.name()), "{}", kind.name());
        }
    }
}
