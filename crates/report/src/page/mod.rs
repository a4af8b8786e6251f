//! HTML pages that need no network: one for an experiment alone, or an overview and a page for
//! each of several. Their tables need no script.

mod claims;
mod facts;
mod figures;
mod ranges;
mod searches;
mod text;

pub(crate) use figures::{csv, picture_name};

use maud::{DOCTYPE, Markup, PreEscaped, html};
use record::Summary;

use crate::ClaimResult;
use crate::figure::{Figure, Kind, Styles};
use crate::settled::Settled;

/// The contents of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageInput {
    /// Its heading.
    pub title: String,
    /// The scale of the run: `quick`, `paper`; empty if it has none.
    pub scale: String,
    /// Further facts for its head, as name and value: the command, the machine.
    pub facts: Vec<(String, String)>,
    /// One an experiment, in order.
    pub sections: Vec<Section>,
    /// The searches of what papers do not print.
    pub searches: Vec<Settled>,
    /// Seconds after which a browser reads the page again; for a run that goes on.
    pub refresh: Option<u32>,
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
    /// Pictures that are drawn already, after its figures.
    pub pictures: Vec<Picture>,
}

/// A picture of the page that is no figure of points: requests from place to place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// Its heading.
    pub title: String,
    /// Its caption.
    pub caption: String,
    /// An SVG of [`crate::timeline::picture`], 1,000 px wide.
    pub svg: String,
}

/// A file of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFile {
    /// Its name; all files of a report belong into one folder.
    pub name: String,
    /// Its contents.
    pub text: String,
}

/// The name of the first page of every report.
pub const INDEX: &str = "index.html";

/// Nothing outside the report's folder may be fetched and no string may become code, whatever the
/// page's text says.
const POLICY: &str = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";
const STYLE: &str = include_str!("../../assets/page.css");
/// The script of pages that share it.
const SHARED_SCRIPT: &str = "figures.js";
const SCRIPTS: [&str; 4] = [
    include_str!("../../assets/vendor/vega.min.js"),
    include_str!("../../assets/vendor/vega-lite.min.js"),
    include_str!("../../assets/vendor/vega-embed.min.js"),
    include_str!("../../assets/page.js"),
];

/// Writes the files of a report: `index.html` alone for one experiment, else a page for each
/// experiment too, with the script that they share. The same input gives the same bytes.
pub fn pages(input: &PageInput) -> Vec<PageFile> {
    let styles = Styles::built_in();
    let file = |name: &str, text: String| PageFile { name: name.to_owned(), text };
    if let [section] = &input.sections[..] {
        let content = html! { (header(input)) (section_markup(section, &input.searches, &styles)) (facts::provenance(input, &input.sections)) };
        let script = needs_script(section, &input.searches)
            .then(|| html! { @for script in SCRIPTS { script { (PreEscaped(script)) } } });
        return vec![file(INDEX, document(&input.title, input.refresh, &html! {}, &content, script))];
    }
    let shared = || Some(html! { script src=(SHARED_SCRIPT) {} });
    let overview =
        html! { (header(input)) (claims::overview(&input.sections)) (facts::provenance(input, &input.sections)) };
    let mut files =
        vec![file(INDEX, document(&input.title, input.refresh, &contents(input, None), &overview, shared()))];
    files.extend(input.sections.iter().map(|section| {
        let name = &section.experiment;
        let content = html! {
            header { p.small { a href=(INDEX) { (input.title) } } h1 { (name) } (theme()) (no_script()) }
            (section_markup(section, &input.searches, &styles))
            (facts::provenance(input, std::slice::from_ref(section)))
        };
        let text = document(
            &format!("{name}: {}", input.title),
            input.refresh,
            &contents(input, Some(name)),
            &content,
            shared(),
        );
        file(&address(name), text)
    }));
    files.push(file(SHARED_SCRIPT, SCRIPTS.join("\n")));
    files
}

/// The address of the page of an experiment.
fn address(experiment: &str) -> String {
    format!("{}.html", anchor(experiment))
}

fn needs_script(section: &Section, searches: &[Settled]) -> bool {
    let is_drawn = |figure: &Figure| figure.definition.kind != Kind::Table;
    section.figures.iter().any(is_drawn) || searches::is_drawn(section, searches)
}

fn document(title: &str, refresh: Option<u32>, contents: &Markup, content: &Markup, script: Option<Markup>) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                @if let Some(seconds) = refresh { meta http-equiv="refresh" content=(seconds); }
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { div.sheet { (contents) main { (content) } } @if let Some(script) = script { (script) } }
        }
    };
    page.into_string()
}

/// The list of experiments beside every page of a report with several.
fn contents(input: &PageInput, current: Option<&str>) -> Markup {
    let mark = |name: Option<&str>| (name == current).then_some("page");
    html! {
        nav.contents aria-label="Experiments" {
            details open {
                summary { "Contents" }
                ul {
                    li { a href=(INDEX) aria-current=[mark(None)] { "Overview" } }
                    @for section in &input.sections {
                        @let name = section.experiment.as_str();
                        li { a href=(address(name)) aria-current=[mark(Some(name))] { (name) } }
                    }
                }
            }
        }
    }
}

fn theme() -> Markup {
    html! { button.theme type="button" hidden { "Dark or light" } }
}

fn no_script() -> Markup {
    html! {
        noscript { p.notice { "The figures are drawn by a script, which is switched off here. Every table, and the numbers of every figure below it, can be read without." } }
    }
}

fn header(input: &PageInput) -> Markup {
    html! {
        header {
            h1 { (input.title) }
            (theme())
            (no_script())
            (facts::table(input))
            (facts::warnings(input))
        }
    }
}

/// The figures first, then the verdicts, then what the experiment is.
fn section_markup(section: &Section, searches: &[Settled], styles: &Styles) -> Markup {
    html! {
        section id=(anchor(&section.experiment)) aria-label=(section.experiment) {
            @for (index, figure) in section.figures.iter().enumerate() {
                (figures::figure(figure, section, index, styles))
            }
            @for (index, picture) in section.pictures.iter().enumerate() {
                (figures::picture(picture, &section.experiment, index))
            }
            (claims::table(&section.claims))
            (searches::figures(section, searches))
            @if !section.readme.trim().is_empty() {
                h2 { "The experiment" }
                div.prose { (text::markdown(&section.readme)) }
            }
            (facts::section_warnings(section))
            (facts::points(section))
        }
    }
}

/// An identifier for `name` that is unique where names are: letters and digits stay, anything else
/// becomes a dash.
pub(crate) fn anchor(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' }).collect()
}

/// A wide table, which scrolls sideways by itself.
fn wide(label: &str, table: &Markup) -> Markup {
    html! { div.wide role="region" aria-label=(label) tabindex="0" { (table) } }
}
