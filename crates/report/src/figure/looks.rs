//! One name, colour, dash and shape for each design and span on a page.

use std::collections::BTreeMap;

use serde::Deserialize;

/// How a series is drawn.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Look {
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
struct RawLooks {
    named: Vec<Named>,
    other: Vec<Look>,
}

/// All looks.
#[derive(Debug)]
pub(crate) struct Looks {
    named: BTreeMap<String, (String, Look)>,
    other: Vec<Look>,
}

impl Looks {
    /// Those built into the program.
    ///
    /// # Panics
    /// When that file is broken; a test reads it.
    pub(crate) fn built_in() -> Looks {
        let raw: RawLooks =
            toml::from_str(include_str!("../../assets/looks.toml")).expect("the built-in looks.toml is broken");
        let look = |named: Named| {
            (named.id, (named.name, Look { colour: named.colour, dash: named.dash, shape: named.shape }))
        };
        Looks { named: raw.named.into_iter().map(look).collect(), other: raw.other }
    }

    /// The name that readers see.
    pub(crate) fn name<'a>(&'a self, id: &'a str) -> &'a str {
        self.named.get(id).map_or(id, |(name, _)| name)
    }

    /// The looks of all `series` of one figure.
    pub(crate) fn of(&self, series: &[String]) -> Vec<&Look> {
        let mut others = self.other.iter().cycle();
        let mut look = |id: &String| self.named.get(id).map(|(_, look)| look).or_else(|| others.next());
        series.iter().filter_map(&mut look).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_design_looks_alike_wherever_it_occurs_and_others_differ_from_one_another() {
        let looks = Looks::built_in();
        let names = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        assert_eq!(looks.of(&names(&["cxl", "edm"]))[1], looks.of(&names(&["x", "edm", "dctcp"]))[1]);
        let unnamed = looks.of(&names(&["x=1", "x=2", "x=3"]));
        assert!(unnamed[0] != unnamed[1] && unnamed[1] != unnamed[2]);
        assert_eq!((looks.name("dcqcn"), looks.name("x=1")), ("PFC + DCQCN", "x=1"));
    }

    #[test]
    fn every_span_of_a_record_has_a_look() {
        let looks = Looks::built_in();
        for kind in record::SpanKind::ALL {
            assert!(looks.named.contains_key(kind.name()), "{}", kind.name());
        }
    }
}
