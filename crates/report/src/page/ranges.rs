//! A value on its interval of agreement, as a small picture.

use maud::{Markup, html};

use crate::value::{Accept, show_number};
use crate::{Interval, Value};

/// Width and height of the picture in its own units.
const SIZE: [f64; 2] = [180.0, 24.0];
/// Room at both ends.
const MARGIN: f64 = 8.0;
/// Values that lie further apart than this factor are drawn by factors.
const WIDE: f64 = 30.0;

/// One number or statement of a claim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element<'a> {
    pub paper: &'a Value,
    pub accept: &'a Accept,
    pub artifact: Option<&'a Value>,
    pub ours: Option<&'a Value>,
    pub interval: Option<&'a Interval>,
}

impl<'a> Element<'a> {
    /// The elements of a list, in its order; a lone value is its own element.
    pub fn parts(self) -> Vec<Element<'a>> {
        let (Value::List(papers), Accept::Each(accepts)) = (self.paper, self.accept) else { return vec![self] };
        let of = |value: Option<&'a Value>, index: usize| match value {
            Some(Value::List(items)) => items.get(index),
            _ => None,
        };
        let part = |(index, (paper, accept)): (usize, (&'a Value, &'a Accept))| {
            let interval = match self.interval {
                Some(Interval::Each(items)) => items.get(index),
                _ => None,
            };
            Element { paper, accept, artifact: of(self.artifact, index), ours: of(self.ours, index), interval }.parts()
        };
        papers.iter().zip(accepts).enumerate().flat_map(part).collect()
    }

    /// The picture; nothing for a statement.
    pub fn picture(self) -> Markup {
        let (Accept::Between { low, high }, Value::Number(paper)) = (self.accept, self.paper) else { return html! {} };
        let ours = self.ours.and_then(number);
        let ends = match self.interval {
            Some(Interval::Numbers(ends)) => Some(*ends),
            _ => None,
        };
        let all: Vec<f64> = [*low, *high, *paper].into_iter().chain(ours).chain(ends.into_iter().flatten()).collect();
        let scale = Scale::of(&all);
        let [x_low, x_high, x_paper] = [*low, *high, *paper].map(|value| scale.at(value));
        let middle = SIZE[1] / 2.0;
        let is_inside = ours.is_some_and(|ours| (*low..=*high).contains(&ours));
        html! {
            svg.range viewBox={ "0 0 " (SIZE[0]) " " (SIZE[1]) } role="img" aria-label=(self.label(*low, *high, *paper, ours, ends)) {
                path.scale d={ "M" (MARGIN) " " (middle) "H" (SIZE[0] - MARGIN) } {}
                rect.accepted x=(x_low) y=(middle - 6.0) width=(tenths(x_high - x_low).max(1.5)) height="12" rx="2" {}
                path.published d={ "M" (x_paper) " " (middle - 9.0) "V" (middle + 9.0) } {}
                @if let Some([from, to]) = ends { path.interval d={ "M" (scale.at(from)) " " (middle) "H" (scale.at(to)) } {} }
                @if let Some(ours) = ours { circle class=(if is_inside { "inside" } else { "outside" }) cx=(scale.at(ours)) cy=(middle) r="4" {} }
            }
        }
    }

    fn label(self, low: f64, high: f64, paper: f64, ours: Option<f64>, ends: Option<[f64; 2]>) -> String {
        let ours = ours.map_or("none".to_owned(), show_number);
        let ends = ends.map_or(String::new(), |[from, to]| format!(" ({} to {})", show_number(from), show_number(to)));
        format!(
            "Ours {ours}{ends}, paper {}, accepted {} to {}",
            show_number(paper),
            show_number(low),
            show_number(high)
        )
    }
}

/// The number of a value that is one.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// The places of numbers, evenly or by factors.
struct Scale {
    low: f64,
    high: f64,
    by_factors: bool,
}

impl Scale {
    fn of(all: &[f64]) -> Scale {
        let low = all.iter().copied().fold(f64::INFINITY, f64::min);
        let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let by_factors = low > 0.0 && high / low > WIDE;
        if by_factors { Scale { low: low.ln(), high: high.ln(), by_factors } } else { Scale { low, high, by_factors } }
    }

    fn at(&self, value: f64) -> f64 {
        let value = if self.by_factors { value.ln() } else { value };
        let span = self.high - self.low;
        let share = if span > 0.0 { (value - self.low) / span } else { 0.5 };
        tenths(MARGIN + share * (SIZE[0] - 2.0 * MARGIN))
    }
}

/// Rounds to what a screen shows.
fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element<'a>(
        paper: &'a Value,
        accept: &'a Accept,
        ours: Option<&'a Value>,
        interval: Option<&'a Interval>,
    ) -> Element<'a> {
        Element { paper, accept, artifact: None, ours, interval }
    }

    #[test]
    fn a_value_lies_where_its_share_of_the_range_is() {
        let (paper, accept, ours) = (Value::Number(2.0), Accept::Between { low: 1.0, high: 3.0 }, Value::Number(5.0));
        let interval = Interval::Numbers([4.0, 5.0]);
        let html = element(&paper, &accept, Some(&ours), Some(&interval)).picture().into_string();
        // From 1 to 5 over 164 units: 41 units each.
        for part in [
            r#"class="accepted" x="8" y="6" width="82""#,
            r#"d="M49 3V21""#,
            r#"d="M131 12H172""#,
            r#"class="outside" cx="172""#,
            "Ours 5 (4 to 5), paper 2, accepted 1 to 3",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        let inside = element(&paper, &accept, Some(&paper), None).picture().into_string();
        assert!(inside.contains(r#"class="inside""#) && !inside.contains("interval"), "{inside}");
    }

    #[test]
    fn far_values_are_drawn_by_factors() {
        let (paper, accept, ours) =
            (Value::Number(10.0), Accept::Between { low: 1.0, high: 100.0 }, Value::Number(10.0));
        let html = element(&paper, &accept, Some(&ours), None).picture().into_string();
        assert!(html.contains(r#"cx="90""#), "{html}");
    }

    #[test]
    fn a_list_is_one_element_a_number_and_a_statement_has_no_picture() {
        let paper = Value::List(vec![Value::Number(1.0), Value::Truth(true)]);
        let accept = Accept::Each(vec![Accept::Between { low: 0.0, high: 2.0 }, Accept::Truth(true)]);
        let parts = element(&paper, &accept, None, None).parts();
        assert_eq!(parts.len(), 2);
        assert!(parts[0].picture().into_string().contains("Ours none"));
        assert_eq!(parts[1].picture().into_string(), "");
    }
}
