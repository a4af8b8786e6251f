//! Claims and their verdicts.

use maud::{Markup, html};

use super::ranges::Element;
use super::{Section, address, anchor, wide};
use crate::table::tally;
use crate::value::show_with_unit;
use crate::{ClaimResult, Interval, Value, Verdict};

/// The verdicts of all experiments, a row each.
pub(super) fn overview(sections: &[Section]) -> Markup {
    let all: Vec<ClaimResult> = sections.iter().flat_map(|section| &section.claims).cloned().collect();
    let count = |section: &Section, verdict| section.claims.iter().filter(|claim| claim.verdict == verdict).count();
    let shown: Vec<Verdict> =
        Verdict::ALL.into_iter().filter(|verdict| all.iter().any(|claim| claim.verdict == *verdict)).collect();
    let table = html! {
        table.overview {
            thead { tr { th scope="col" { "Experiment" } th scope="col" { "Figure" } @for verdict in &shown { th.number scope="col" { (verdict.name().replace('-', " ")) } } th.number scope="col" { "Points with warnings" } } }
            tbody {
                @for section in sections {
                    tr {
                        th scope="row" { a href=(address(&section.experiment)) { (section.experiment) } }
                        td { (section.figures.first().map_or("", |figure| figure.definition.title.as_str())) }
                        @for verdict in &shown { @let count = count(section, *verdict); td.number { @if count > 0 { span class={ "badge " (verdict.name()) } { (count) } } } }
                        td.number { @let warned = section.points.iter().filter(|point| !point.warnings.is_empty()).count(); @if warned > 0 { (warned) " of " (section.points.len()) } }
                    }
                }
            }
        }
    };
    html! {
        section id="claims" aria-label="Published claims" {
            h2 { "Published claims" }
            @if !all.is_empty() { p.tally { (tally(&all)) "." } }
            (wide("Verdicts of each experiment", &table))
        }
    }
}

/// The claims of one experiment: a row for each value, and the reasons folded behind.
pub(super) fn table(results: &[ClaimResult]) -> Markup {
    html! {
        @if !results.is_empty() {
            h2 { "Published claims" }
            p.tally { (tally(results)) "." }
            table.claims {
                thead { tr { th scope="col" { "Claim" } th.number scope="col" { "Paper" } th.number scope="col" { "Ours" } th scope="col" { "Accepted range" } th scope="col" { "Verdict" } } }
                @for result in results { tbody id={ "claim-" (anchor(&result.id)) } { (rows(result)) } }
            }
            p.small { "The band is what agrees, the stroke the paper, the dot ours with its 95 % interval over seeds. Exact claims follow from arithmetic; parameters may be "
                "fitted to calibration claims, and to nothing else." }
        }
    }
}

fn rows(result: &ClaimResult) -> Markup {
    let whole = Element {
        paper: &result.paper,
        accept: &result.accept,
        artifact: result.artifact.as_ref(),
        ours: result.ours.as_ref(),
        interval: result.interval.as_ref(),
    };
    let parts = whole.parts();
    let show = |value: &Value| show_with_unit(value, &result.unit);
    html! {
        @for (index, part) in parts.iter().enumerate() {
            tr {
                @if index == 0 {
                    td rowspan=(parts.len()) { (claim(result)) }
                }
                td.number data-name="Paper" {
                    (show(part.paper))
                    @if let Some(artifact) = part.artifact { div.small { "artifact " (show(artifact)) } }
                }
                td.number data-name="Ours" {
                    strong { (part.ours.map_or("–".to_owned(), |ours| show(&ours.rounded(part.paper)))) }
                    @if let Some(Interval::Numbers(ends)) = part.interval {
                        @let [from, to] = ends.map(|end| Value::Number(end).rounded(part.paper).show());
                        div.small { (from) " to " (to) }
                    }
                }
                td { (part.picture()) }
                @if index == 0 { td rowspan=(parts.len()) { (badge(result.verdict)) } }
            }
        }
    }
}

fn claim(result: &ClaimResult) -> Markup {
    html! {
        strong { (result.place) } ": " (result.metric)
        details.reason { summary { (result.role.name()) ", " code { (result.id) } } p { (result.reason) } }
    }
}

fn badge(verdict: Verdict) -> Markup {
    let (sign, words) = match verdict {
        Verdict::Agrees => ("✓", "agrees"),
        Verdict::Undetermined => ("≈", "undetermined"),
        Verdict::Differs => ("✗", "differs"),
        Verdict::Unresolved => ("?", "unresolved"),
        Verdict::NotComparable => ("–", "not comparable"),
    };
    html! { span class={ "badge " (verdict.name()) } { (sign) " " (words) } }
}
