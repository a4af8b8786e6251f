//! The table of claims.

use maud::{Markup, html};

use super::{PageInput, anchor};
use crate::table::{interval, tally};
use crate::value::show_with_unit;
use crate::{ClaimResult, Value, Verdict};

/// All claims of the page with their reasons.
pub(super) fn overview(input: &PageInput) -> Markup {
    let results: Vec<ClaimResult> =
        input.sections.iter().flat_map(|section| &section.claims).chain(&input.other_claims).cloned().collect();
    html! {
        @if !results.is_empty() {
            section id="claims" {
                h2 { "Published claims" }
                p.tally { (tally(&results)) "." }
                table.claims {
                    thead { tr { th { "Claim" } th { "Role" } th.number { "Paper" } th.number { "Artifact" } th.number { "Ours" } th { "Verdict" } } }
                    tbody { @for result in &results { (row(result)) } }
                }
                p.small { "Artifact: what the authors' public code prints, where it prints it. Exact claims follow from arithmetic; calibration claims are those that "
                    "parameters may be fitted to; nothing is fitted to validation claims." }
            }
        }
    }
}

fn row(result: &ClaimResult) -> Markup {
    let cell =
        |value: &Option<Value>| value.as_ref().map_or("–".to_owned(), |value| show_with_unit(value, &result.unit));
    html! {
        tr id={ "claim-" (anchor(&result.id)) } {
            td {
                strong { (result.place) } ": " (result.metric)
                div.reason { code.id { (result.id) } " " (result.reason) }
            }
            td { (result.role.name()) }
            td.number { (show_with_unit(&result.paper, &result.unit)) }
            td.number { (cell(&result.artifact)) }
            td.number { strong { (cell(&result.ours)) } span.small { (interval(result)) } }
            td { (badge(result.verdict)) }
        }
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

/// The claims of one section, each a link to its row.
pub(super) fn chips(results: &[ClaimResult]) -> Markup {
    html! {
        @if !results.is_empty() {
            p.chips {
                @for result in results {
                    a href={ "#claim-" (anchor(&result.id)) } class={ "chip " (result.verdict.name()) } title=(result.reason) {
                        (result.id) ": " (result.verdict.name())
                    }
                }
            }
        }
    }
}
