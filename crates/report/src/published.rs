//! Numbers that are no run's, beside an experiment: what others printed in `published.csv`, and
//! what a tool outside of the simulator measured.

use std::collections::BTreeMap;

use crate::FileError;

/// The origin of a number that is no run's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The paper itself, in a table or in its text.
    Paper,
    /// The output that the authors ship with their public artifact.
    Artifact,
    /// A tool of ours outside of the simulator, which the head of the file names.
    Measured,
}

impl Source {
    /// The name in files and legends.
    pub const fn name(self) -> &'static str {
        match self {
            Source::Paper => "paper",
            Source::Artifact => "artifact",
            Source::Measured => "measured",
        }
    }
    fn read(text: &str) -> Option<Source> {
        [Source::Paper, Source::Artifact, Source::Measured].into_iter().find(|source| source.name() == text)
    }
}

/// One number.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRow {
    /// The curve or bar group it belongs to: the value of the figure's `series`.
    pub series: String,
    /// The value of the figure's `x` label.
    pub x: String,
    /// The number, in the unit of the figure's y axis.
    pub value: f64,
    /// Where it is from.
    pub source: Source,
    /// The panel it belongs to: the value of the figure's `facet`; empty when there are no panels.
    pub facet: String,
}

const COLUMNS: [&str; 5] = ["series", "x", "value", "source", "facet"];

/// Reads `text`, called `name` in errors: columns `series,x,value,source` and, where the figure has
/// panels, `facet`. Lines that start with `#` say where the numbers are from. No number may be
/// given twice.
pub fn parse(name: &str, text: &str) -> Result<Vec<PublishedRow>, FileError> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_reader(text.as_bytes());
    check_header(name, reader.headers().map_err(|error| broken(name, &error))?)?;
    let mut rows = Vec::new();
    let mut seen = BTreeMap::new();
    for record in reader.records() {
        let record = record.map_err(|error| broken(name, &error))?;
        let line = record.position().map_or(0, |position| position.line() as usize);
        let fail = |reason: String| FileError { file: name.to_owned(), line, reason };
        let row = read_row(&record).map_err(fail)?;
        if let Some(first) = seen.insert((row.source, row.facet.clone(), row.series.clone(), row.x.clone()), line) {
            return Err(fail(format!("series {} at {} was already given in line {first}", row.series, row.x)));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn check_header(name: &str, header: &csv::StringRecord) -> Result<(), FileError> {
    let names: Vec<&str> = header.iter().collect();
    if names == COLUMNS || names == COLUMNS[..4] {
        return Ok(());
    }
    let line = header.position().map_or(1, |position| position.line() as usize);
    let reason = format!("the columns are {}, expected series,x,value,source and possibly facet", names.join(","));
    Err(FileError { file: name.to_owned(), line, reason })
}

fn broken(name: &str, error: &csv::Error) -> FileError {
    let line = error.position().map_or(1, |position| position.line() as usize);
    FileError { file: name.to_owned(), line, reason: error.to_string() }
}

fn read_row(record: &csv::StringRecord) -> Result<PublishedRow, String> {
    let field = |index: usize| record.get(index).unwrap_or_default().to_owned();
    let value = field(2).parse::<f64>().ok().filter(|value| value.is_finite());
    let value = value.ok_or_else(|| format!("value {:?} is not a finite number", field(2)))?;
    let source =
        Source::read(&field(3)).ok_or_else(|| format!("source {:?} is none of paper, artifact, measured", field(3)))?;
    Ok(PublishedRow { series: field(0), x: field(1), value, source, facet: field(4) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_under_their_comment() {
        let rows = parse("p.csv", "# from the artifact\nseries,x,value,source\nedm, 0.2 ,1.02,artifact\n").unwrap();
        let expected = PublishedRow {
            series: "edm".into(),
            x: "0.2".into(),
            value: 1.02,
            source: Source::Artifact,
            facet: String::new(),
        };
        assert_eq!(rows, [expected]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line, words) in [
            ("series,x,value\nedm,1,2\n", 1, "the columns are series,x,value"),
            ("series,x,value,source\nedm,1,nan,paper\n", 2, "\"nan\" is not a finite number"),
            ("# c\nseries,x,value,source\nedm,1,2,plot\n", 3, "none of paper, artifact, measured"),
            ("series,x,value,source\nedm,1,2,paper\nedm,1,3,paper\n", 3, "already given in line 2"),
            ("series,x,value,source\nedm,1,2\n", 2, "found record with 3 fields"),
        ] {
            let error = parse("p.csv", text).unwrap_err();
            assert!(error.line == line && error.reason.contains(words), "{error}");
        }
    }

    #[test]
    fn the_tables_beside_the_edm_experiments_can_be_read() {
        let files = [
            (include_str!("../../../experiments/edm/table1/published.csv"), 16),
            (include_str!("../../../experiments/edm/fig5/published.csv"), 8),
            (include_str!("../../../experiments/edm/fig6/published.csv"), 6),
            (include_str!("../../../experiments/edm/fig7/published.csv"), 15),
            (include_str!("../../../experiments/edm/fig8a/published.csv"), 91),
            (include_str!("../../../experiments/edm/fig8b/published.csv"), 35),
        ];
        for (text, rows) in files {
            assert_eq!(parse("published.csv", text).unwrap().len(), rows);
        }
    }
}
