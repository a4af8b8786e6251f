//! One self-contained HTML page: no network, readable at 1280 px, printable; its tables need no
//! script.

mod claims;
mod facts;
mod figures;
mod searches;
mod text;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use record::Summary;

use crate::ClaimResult;
use crate::figure::{Figure, Kind, Styles};
use crate::settled::Settled;

/// The contents of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageInput {
    /// Its heading.
    pub title: String,
    /// The scale of the run: `quick`, `paper`.
    pub scale: String,
    /// Further facts for its head, as name and value: the command, the machine.
    pub facts: Vec<(String, String)>,
    /// One an experiment, in order.
    pub sections: Vec<Section>,
    /// Claims that belong to no section: those of experiments that were not run.
    pub other_claims: Vec<ClaimResult>,
    /// The searches of what papers do not print.
    pub searches: Vec<Settled>,
}

/// One experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Its name, `edm/fig8a`.
    pub experiment: String,
    /// Its README, in Markdown.
    pub readme: String,
    /// The points of its run, in the order of the sweep.
    pub points: Vec<Summary>,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// The claims that it measures.
    pub claims: Vec<ClaimResult>,
}

/// Nothing may be fetched and no string may become code, whatever the page's text says.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";
const STYLE: &str = include_str!("../../assets/page.css");
const SCRIPT: &str = include_str!("../../assets/page.js");
const VENDOR: [&str; 3] = [
    include_str!("../../assets/vendor/vega.min.js"),
    include_str!("../../assets/vendor/vega-lite.min.js"),
    include_str!("../../assets/vendor/vega-embed.min.js"),
];

/// Writes the page. The same input gives the same bytes.
pub fn page(input: &PageInput) -> String {
    let styles = Styles::built_in();
    let mut figures = input.sections.iter().flat_map(|section| &section.figures);
    let drawn = figures.any(|figure| figure.definition.kind != Kind::Table) || searches::is_drawn(input);
    let body = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (input.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (head(input))
                    (claims::overview(input))
                    @for section in &input.sections { (section_markup(section, &input.searches, &styles)) }
                    (facts::provenance(input))
                }
                @if drawn {
                    @for library in VENDOR { script { (PreEscaped(library)) } }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        }
    };
    body.into_string()
}

fn head(input: &PageInput) -> Markup {
    html! {
        header {
            h1 { (input.title) }
            (facts::table(input))
            noscript { p.notice { "The figures are drawn by a script, which is switched off here. Every table, and the numbers of every figure below it, can be read without." } }
            (facts::warnings(input))
            @if input.sections.len() > 1 {
                nav aria-label="Experiments" {
                    @for section in &input.sections {
                        a href={ "#" (anchor(&section.experiment)) } { (section.experiment) }
                    }
                }
            }
        }
    }
}

fn section_markup(section: &Section, searches: &[Settled], styles: &Styles) -> Markup {
    html! {
        section id=(anchor(&section.experiment)) {
            h2 { (section.experiment) }
            (claims::chips(&section.claims))
            div.prose { (text::markdown(&section.readme)) }
            (facts::section_warnings(section))
            @for (index, figure) in section.figures.iter().enumerate() {
                (figures::figure(figure, section, index, styles))
            }
            (searches::figures(section, searches))
            (facts::points(section))
        }
    }
}

/// An identifier for `name` that is unique where names are: letters and digits stay, anything else
/// becomes a dash.
fn anchor(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' }).collect()
}
