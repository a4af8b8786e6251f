//! The report as a page: both distributions of each span.

use super::compare::{PERCENTILES, Times};
use super::doors::Site;
use super::{Report, text};
use crate::failure::Failure;
use campaign::page::write_pages;
use report::figure::{Definition, Figure, Given, Kind, Scale, XAxis, YAxis};
use report::measure::Selection;
use report::{PageInput, Section};
use std::collections::BTreeMap;
use std::path::Path;
use volumes::twin::Replayed;

/// The shortest time that is drawn: an axis of factors has no zero.
const LEAST_NS: u64 = 100;

/// Writes `index.html` into a folder.
pub fn write_page(root: &Path, file: &Path, report: &Report) -> Result<(), Failure> {
    let figures = report
        .comparison
        .iter()
        .flat_map(|comparison| comparison.times.iter().map(|times| compared(times, report.sides)))
        .chain(report.stores.iter().flat_map(of_store))
        .collect();
    let sum = |of: fn(&Replayed) -> u64| report.roles.iter().map(of).sum::<u64>();
    let (decisions, differences) = (sum(|role| role.decisions), sum(|role| role.differences));
    let readme = format!(
        "The roles of a live rack, each replayed alone, and all of them simulated with the requests that the doors \
         were asked. Of {decisions} decisions, those after {differences} inputs differ in the replay. `twin.json` has \
         all numbers, `model.json` what was between the roles of volumes, and `stores.json` what was around the \
         programs of stores.\n"
    );
    let section = Section { experiment: file.display().to_string(), readme, figures, ..Section::default() };
    let input = PageInput { title: "A live rack and its twin".into(), sections: vec![section], ..PageInput::default() };
    write_pages(root, &input, None)
}

/// The figures of a JBOF with its doors.
fn of_store(site: &Site) -> impl Iterator<Item = Figure> {
    let times = site.comparison.iter().flat_map(|comparison| &comparison.times);
    times.map(|times| {
        let mut figure = compared(times, ["live", "twin"]);
        figure.definition.title = format!("{}, {}", site.name, figure.definition.title);
        figure
    })
}

/// The figure of two sides.
fn compared(times: &Times, sides: [&'static str; 2]) -> Figure {
    let ([one, other], [left, right]) = (sides, times.count);
    let percentiles = PERCENTILES.map(|(name, _)| {
        let [left, right] = times.percentiles[name].map(text::time);
        format!("{name} {left} and {right}")
    });
    let caption = format!(
        "Cumulative: of {left} ({one}) and {right} ({other}), those that took no longer. {}. Below 0.1 us all are \
         drawn at it.",
        percentiles.join(", ")
    );
    let [left, right] = &times.drawn;
    figure((times.operation, times.span), caption, &[(one, left), (other, right)])
}

/// Distributions of one span.
pub fn figure((operation, span): (&str, &str), caption: String, series: &[(&str, &Vec<u64>)]) -> Figure {
    let given = series.iter().flat_map(|(series, drawn)| {
        drawn.iter().enumerate().map(move |(place, time)| Given {
            series: (*series).into(),
            x: (*time).max(LEAST_NS) as f64 / 1e3,
            value: (place as f64 + 0.5) / drawn.len() as f64 * 100.0,
        })
    });
    let given = given.collect();
    let definition = Definition {
        title: format!("{operation}: {span}"),
        caption,
        kind: Kind::Time,
        x: XAxis { label: "time".into(), title: "Time (us)".into(), scale: Scale::Log },
        y: YAxis { title: "Share (%)".into(), factor: 1.0, ..YAxis::default() },
        series: "line".into(),
        facet: None,
        filter: Selection::default(),
        published: None,
        names: BTreeMap::new(),
        notes: Vec::new(),
    };
    Figure { definition, published: Vec::new(), given }
}
