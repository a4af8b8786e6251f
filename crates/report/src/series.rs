//! Figures of time series: a few lines of each kind, thinned out so that a page stays small.
//!
//! The rows are read twice: a [`Survey`] finds the lines and their extremes, and [`Tracing`] draws
//! those that the figures show. Of many samples in one place of the x axis, the smallest and the
//! largest are drawn, so that no peak is lost.

use crate::figure::{Definition, Figure, Given, Kind, Scale, XAxis, YAxis};
use crate::measure::Selection;
use base::Time;
use record::{Series, SeriesDefinition, SeriesFigure, SeriesForm, SeriesPlace, SeriesRow};
use std::collections::{BTreeMap, BTreeSet};

/// Places on the x axis; each has at most two points of a line.
const BUCKETS: u64 = 100;
/// Lines of places in a figure; those over all places come besides.
const PLACES_SHOWN: usize = 5;
/// Lines of a figure, whatever they are.
const LINES_MAX: usize = 10;

/// One line: a metric at a place.
type Key = (Series, SeriesPlace);

/// What the series of one run have: lines, their extremes, and the times of samples.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    lines: BTreeMap<Key, (f64, f64)>,
    /// The first two times of samples, and the last two.
    times: Vec<u64>,
    is_days: bool,
}

impl Survey {
    /// Takes rows in the order of their times.
    pub fn add(&mut self, rows: &[SeriesRow]) {
        for row in rows {
            let (low, high) = self.lines.entry((row.metric, row.place)).or_insert((row.value, row.value));
            (*low, *high) = (low.min(row.value), high.max(row.value));
            self.is_days |= row.day > 0;
            let at = moment(row);
            if self.times.last() != Some(&at) {
                if self.times.len() == 4 {
                    self.times.remove(2);
                }
                self.times.push(at);
            }
        }
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    fn end(&self) -> u64 {
        self.times.last().copied().unwrap_or(0)
    }

    /// The time from a sample to the next, but for the last.
    fn interval(&self) -> u64 {
        match self.times[..] {
            [first, second, ..] => second - first,
            _ => 0,
        }
    }

    /// The lines of a figure: those over all places, and those of the places that stand out.
    fn shown(&self, figure: SeriesFigure, unit: &str, totals_only: bool) -> Vec<Key> {
        let of_figure = || {
            self.lines.iter().filter(move |((metric, _), _)| {
                let definition = metric.definition();
                definition.figure == figure && drawn_unit(&definition) == unit
            })
        };
        let totals = of_figure().map(|(key, _)| *key).filter(|(_, place)| *place == SeriesPlace::Total);
        let mut shown: Vec<Key> = totals.collect();
        if totals_only {
            // What has begun ends a little later: one line of each run suffices.
            shown.retain(|(metric, _)| *metric != Series::RequestsBegun);
            return shown;
        }
        let mut places: Vec<(Key, f64)> = of_figure()
            .filter(|((_, place), (_, high))| matches!(place, SeriesPlace::At(_)) && *high > 0.0)
            .map(|(key, (low, high))| (*key, if figure == SeriesFigure::FreeBlocks { -low } else { *high }))
            .collect();
        let has_places: BTreeSet<Series> = places.iter().map(|((metric, _), _)| *metric).collect();
        // Of too many places only the extremes are there.
        shown.extend(of_figure().map(|(key, _)| *key).filter(|(metric, place)| {
            matches!(place, SeriesPlace::Max | SeriesPlace::Min) && !has_places.contains(metric)
        }));
        places.sort_by(|(left_key, left), (right_key, right)| right.total_cmp(left).then(left_key.cmp(right_key)));
        shown.extend(places.into_iter().map(|(key, _)| key).take(PLACES_SHOWN));
        shown
    }
}

/// Thinned lines of one run.
#[derive(Clone, Debug)]
pub struct Tracing {
    survey: Survey,
    lines: BTreeMap<Key, Thinned>,
    last: Option<u64>,
    before: u64,
}

/// By bucket: the smallest and the largest value with their times.
#[derive(Clone, Debug, Default)]
struct Thinned(BTreeMap<u64, [(u64, f64); 2]>);

impl Tracing {
    /// Will draw the run of a survey; beside other runs, `totals_only`.
    pub fn new(survey: Survey, totals_only: bool) -> Tracing {
        let kinds: BTreeSet<(SeriesFigure, &str)> = kinds(&survey);
        let shown = kinds.into_iter().flat_map(|(figure, unit)| survey.shown(figure, unit, totals_only));
        let lines = shown.map(|key| (key, Thinned::default())).collect();
        Tracing { survey, lines, last: None, before: 0 }
    }

    /// Takes the same rows again.
    pub fn add(&mut self, rows: &[SeriesRow]) {
        let (end, interval) = (self.survey.end().max(1), self.survey.interval());
        for row in rows {
            let at = moment(row);
            if self.last != Some(at) {
                (self.before, self.last) = (self.last.unwrap_or(at), Some(at));
            }
            let Some(line) = self.lines.get_mut(&(row.metric, row.place)) else { continue };
            let passed = at - self.before;
            let value = match row.metric.definition().form {
                SeriesForm::State => row.value,
                // The rate of a short last interval would be no rate.
                SeriesForm::Count if passed * 2 < interval || passed == 0 => continue,
                SeriesForm::Count => per_second(row, passed),
            };
            let bucket = u64::try_from(u128::from(at) * u128::from(BUCKETS) / u128::from(end)).unwrap_or(BUCKETS);
            line.add(bucket, at, value);
        }
    }
}

impl Thinned {
    fn add(&mut self, bucket: u64, at: u64, value: f64) {
        let [low, high] = self.0.entry(bucket).or_insert([(at, value); 2]);
        if value < low.1 {
            *low = (at, value);
        }
        if value > high.1 {
            *high = (at, value);
        }
    }

    /// The points of the line, in order of time; of a run of equal values the first and the last.
    fn points(&self) -> Vec<(u64, f64)> {
        let mut points: Vec<(u64, f64)> = Vec::new();
        for pair in self.0.values() {
            let (first, second) = if pair[0].0 <= pair[1].0 { (pair[0], pair[1]) } else { (pair[1], pair[0]) };
            for point in [first, second] {
                if points.last() == Some(&point) {
                    continue;
                }
                if let [.., before, last] = points[..]
                    && before.1.to_bits() == last.1.to_bits()
                    && last.1.to_bits() == point.1.to_bits()
                {
                    points.pop();
                }
                points.push(point);
            }
        }
        points
    }
}

/// A time in picoseconds, or a day.
fn moment(row: &SeriesRow) -> u64 {
    if row.day > 0 { row.day.into() } else { row.at.saturating_since(Time::ZERO).as_ps() }
}

/// Counts of an interval are drawn as rates: payload in Gb/s, other counts a second or a day.
fn per_second(row: &SeriesRow, passed: u64) -> f64 {
    if row.day > 0 {
        return row.value / passed as f64;
    }
    let rate = row.value / (passed as f64 / 1e12);
    if row.metric.definition().unit == "B" { rate * 8.0 / 1e9 } else { rate }
}

/// The unit in which a metric is drawn.
fn drawn_unit(definition: &SeriesDefinition) -> &'static str {
    match (definition.form, definition.unit) {
        (SeriesForm::State, unit) => unit,
        (SeriesForm::Count, "B") => "Gb/s",
        (SeriesForm::Count, "requests") => "requests/s",
        (SeriesForm::Count, "swaps") => "swaps/day",
        (SeriesForm::Count, unit) => unit,
    }
}

fn kinds(survey: &Survey) -> BTreeSet<(SeriesFigure, &'static str)> {
    let of_line = |(metric, _): &Key| (metric.definition().figure, drawn_unit(&metric.definition()));
    survey.lines.keys().map(of_line).collect()
}

/// Returns a figure for each kind of metric and unit: of one run, or of several with their names.
pub fn figures(runs: &[(String, Tracing)]) -> Vec<Figure> {
    let all: BTreeSet<(SeriesFigure, &str)> = runs.iter().flat_map(|(_, run)| kinds(&run.survey)).collect();
    all.into_iter().filter_map(|(figure, unit)| Drawing { runs, figure, unit }.figure()).collect()
}

struct Drawing<'a> {
    runs: &'a [(String, Tracing)],
    figure: SeriesFigure,
    unit: &'static str,
}

/// The name of a line, its run, and its points.
type Drawn<'a> = (String, &'a Tracing, Vec<(u64, f64)>);

impl Drawing<'_> {
    /// `None` where everything is zero all the time.
    fn figure(&self) -> Option<Figure> {
        let lines = self.lines();
        let values = || lines.iter().flat_map(|(_, _, points)| points.iter().map(|(_, value)| *value));
        let highest = values().fold(0.0, f64::max);
        if highest == 0.0 {
            return None;
        }
        let (unit, factor) = scaled(self.unit, highest);
        let end = lines.iter().map(|(_, run, _)| run.survey.end()).max().unwrap_or(0);
        let is_days = lines.iter().any(|(_, run, _)| run.survey.is_days);
        let (x_unit, x_factor) = if is_days { ("day", 1.0) } else { scaled("ns", end as f64 / 1e3) };
        let to_x = |at: u64| if is_days { at as f64 } else { at as f64 / 1e3 * x_factor };
        let hidden = lines.len().saturating_sub(LINES_MAX);
        let given = lines.iter().take(LINES_MAX).flat_map(|(name, _, points)| {
            points.iter().map(move |(at, value)| Given {
                series: name.clone(),
                x: rounded(to_x(*at)),
                value: value * factor,
            })
        });
        let given = given.collect();
        Some(Figure { definition: self.definition(unit, x_unit, hidden), published: Vec::new(), given })
    }

    /// Names, runs and points of all lines. A name has what distinguishes it from the others.
    fn lines(&self) -> Vec<Drawn<'_>> {
        let mut found = Vec::new();
        for (name, run) in self.runs {
            let totals_only = self.runs.len() > 1;
            for key in run.survey.shown(self.figure, self.unit, totals_only) {
                let points = run.lines.get(&key).map(Thinned::points).unwrap_or_default();
                found.push((name, key, run, points));
            }
        }
        let metrics: BTreeSet<Series> = found.iter().map(|(_, (metric, _), ..)| *metric).collect();
        let name_of = |run: &str, (metric, place): Key| {
            let metric_name = spoken(metric);
            let mut parts = Vec::new();
            if self.runs.len() > 1 {
                parts.push(run.to_owned());
            }
            if metrics.len() > 1 || (self.runs.len() == 1 && metric.definition().place.is_none()) {
                parts.push(metric_name);
            }
            if metric.definition().place.is_some() && (self.runs.len() == 1 || parts.is_empty()) {
                parts.push(place.to_string());
            }
            parts.join(", ")
        };
        found.into_iter().map(|(run_name, key, run, points)| (name_of(run_name, key), run, points)).collect()
    }

    fn definition(&self, unit: &str, x_unit: &str, hidden: usize) -> Definition {
        let (title, quantity) = titles(self.figure);
        let x_title = if x_unit == "day" { "Day".to_owned() } else { format!("Virtual time ({x_unit})") };
        let mut notes = vec![format!(
            "Sampled with record.series; all samples are in seed-N/series. Of the samples in one of {BUCKETS} parts of \
             the x axis, the smallest and the largest are drawn."
        )];
        if hidden > 0 {
            notes.push(format!("{hidden} more lines are not drawn."));
        }
        Definition {
            title: format!("{title} over time ({unit})"),
            caption: self.caption(),
            kind: Kind::Time,
            x: XAxis { label: "time".into(), title: x_title, scale: Scale::Linear },
            y: YAxis { title: format!("{quantity} ({unit})"), factor: 1.0, ..YAxis::default() },
            series: "line".into(),
            facet: None,
            filter: Selection::default(),
            published: None,
            names: BTreeMap::new(),
            notes,
        }
    }

    /// What the metrics of the figure mean.
    fn caption(&self) -> String {
        let of_runs: BTreeSet<Series> = self
            .runs
            .iter()
            .flat_map(|(_, run)| run.lines.keys().map(|(metric, _)| *metric))
            .filter(|metric| metric.definition().figure == self.figure && drawn_unit(&metric.definition()) == self.unit)
            .collect();
        let sentences = of_runs.iter().map(|metric| format!("{}: {}", spoken(*metric), metric.definition().doc()));
        sentences.collect::<Vec<_>>().join(" ")
    }
}

/// The name of a metric for readers.
fn spoken(metric: Series) -> String {
    metric.definition().name.replace('_', " ")
}

fn titles(figure: SeriesFigure) -> (&'static str, &'static str) {
    match figure {
        SeriesFigure::Throughput => ("Throughput", "Payload"),
        SeriesFigure::Requests => ("Requests", "Requests"),
        SeriesFigure::Queues => ("Queues", "Waiting"),
        SeriesFigure::FreeBlocks => ("Free blocks", "Free blocks"),
        SeriesFigure::Credits => ("Credits, windows and grants", "Amount"),
        SeriesFigure::Cache => ("Cache", "Requests"),
        SeriesFigure::Collection => ("Garbage collection", "Drives that collect"),
        SeriesFigure::Wear => ("Wear", "Erases of a block"),
        SeriesFigure::Swaps => ("Swaps", "Swaps"),
    }
}

/// The unit in which the largest value has one to four digits, and the factor to it.
fn scaled(unit: &'static str, highest: f64) -> (&'static str, f64) {
    let steps: &[(&str, f64)] = match unit {
        "B" => &[("B", 1.0), ("kB", 1e-3), ("MB", 1e-6), ("GB", 1e-9)],
        "ns" => &[("ns", 1.0), ("us", 1e-3), ("ms", 1e-6), ("s", 1e-9)],
        "b/s" => &[("b/s", 1.0), ("Mb/s", 1e-6), ("Gb/s", 1e-9)],
        "requests/s" => &[("requests/s", 1.0), ("thousand requests/s", 1e-3), ("million requests/s", 1e-6)],
        _ => return (unit, 1.0),
    };
    let fits = steps.iter().rev().find(|(_, factor)| highest * factor >= 1.0);
    *fits.unwrap_or(&steps[0])
}

/// Six digits: more than a picture shows.
fn rounded(x: f64) -> f64 {
    format!("{x:.5e}").parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Place;

    fn row(us: u64, metric: Series, place: SeriesPlace, value: f64) -> SeriesRow {
        SeriesRow { at: Time::us(us), day: 0, metric, place, value }
    }

    fn drawn(rows: &[SeriesRow]) -> Vec<Figure> {
        let mut survey = Survey::default();
        survey.add(rows);
        let mut tracing = Tracing::new(survey, false);
        tracing.add(rows);
        figures(&[("a run".to_owned(), tracing)])
    }

    #[test]
    fn a_peak_of_one_sample_among_many_is_drawn() {
        let depth = |us| if us == 7_777 { 900.0 } else { f64::from(us as u32 % 7) };
        let rows: Vec<SeriesRow> =
            (0..20_000).map(|us| row(us, Series::RequestsOutstanding, SeriesPlace::Total, depth(us))).collect();
        let figures = drawn(&rows);
        let [figure] = &figures[..] else { panic!("{figures:?}") };
        assert!(figure.given.len() <= 2 * BUCKETS as usize + 2, "{}", figure.given.len());
        assert!(figure.given.iter().any(|given| given.value == 900.0 && (given.x - 7.777).abs() < 1e-9));
        assert_eq!(figure.definition.x.title, "Virtual time (ms)");
    }

    #[test]
    fn the_places_with_the_largest_values_and_the_total_are_drawn() {
        let port = |index| SeriesPlace::At(Place::Port(index));
        let mut rows = Vec::new();
        for us in 0..3 {
            rows.extend((0..9).map(|index| row(us, Series::PortQueueBytes, port(index), f64::from(index) * 100.0)));
            rows.push(row(us, Series::PortQueueBytes, SeriesPlace::Total, 3_600.0));
            rows.push(row(us, Series::PortQueueBytes, SeriesPlace::Max, 800.0));
        }
        let figures = drawn(&rows);
        let names: BTreeSet<&str> = figures[0].given.iter().map(|given| given.series.as_str()).collect();
        assert_eq!(names, ["port 4", "port 5", "port 6", "port 7", "port 8", "total"].into());
        assert_eq!(figures[0].definition.y.title, "Waiting (kB)");
    }

    #[test]
    fn counts_are_rates_and_the_short_last_interval_is_none() {
        let bytes = |us, value| row(us, Series::FinishedBytes, SeriesPlace::Total, value);
        let rows = [bytes(0, 0.0), bytes(10, 12_500.0), bytes(20, 25_000.0), bytes(21, 9_000.0)];
        let figures = drawn(&rows);
        let values: Vec<f64> = figures[0].given.iter().map(|given| given.value).collect();
        // 12,500 B in 10 us are 10 Gb/s.
        assert_eq!((values, figures[0].definition.y.title.as_str()), (vec![10.0, 20.0], "Payload (Gb/s)"));
    }

    #[test]
    fn equal_values_in_a_row_are_two_points() {
        let rows: Vec<SeriesRow> =
            (0..50).map(|us| row(us, Series::RequestsOutstanding, SeriesPlace::Total, 8.0)).collect();
        let xs: Vec<f64> = drawn(&rows)[0].given.iter().map(|given| given.x).collect();
        assert_eq!(xs, [0.0, 49.0]);
    }

    #[test]
    fn nothing_but_zeros_is_no_figure() {
        let rows: Vec<SeriesRow> = (0..5).map(|us| row(us, Series::NicBytes, SeriesPlace::Total, 0.0)).collect();
        assert!(drawn(&rows).is_empty());
    }
}
