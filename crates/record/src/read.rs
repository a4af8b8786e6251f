//! Reads parts back into rows, for reports and tests. Damaged parts are errors.

use crate::checksum::verify;
use crate::column::{Cell, Definition, Record, Wrong, schema};
use crate::keep::SpanRow;
use crate::label::Label;
use crate::row::Row;
use crate::series::SeriesRow;
use crate::write::{PLAN_HASH_KEY, Provenance, VERSION_KEY};
use bytes::Bytes;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::FileMetaData;
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;

/// One part of a dataset, read back.
#[derive(Clone, Debug, PartialEq)]
pub struct Part<R = Row> {
    /// The provenance; fields are empty if the file lacks them.
    pub provenance: Provenance,
    /// The rows, in the order of writing.
    pub rows: Vec<R>,
}

/// An error of reading a part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The part is not a complete Parquet file.
    #[error("{place}: not a readable Parquet part: {reason}")]
    Parquet {
        /// The part.
        place: String,
        /// The defect.
        reason: String,
    },
    /// The part is a Parquet file with other columns.
    #[error("{place}: not a part of these records: {reason}")]
    Schema {
        /// The part.
        place: String,
        /// The first difference.
        reason: String,
    },
    /// A value that no run writes.
    #[error("{place}: row {row}: column {column} holds {got}; allowed is {allowed}")]
    Value {
        /// The part.
        place: String,
        /// The index of the row in the part, from 0.
        row: usize,
        /// The column.
        column: &'static str,
        /// The value.
        got: String,
        /// The allowed values.
        allowed: String,
    },
}

/// Reads one whole part of records; its bytes are held in memory meanwhile (about twenty per row).
/// `place` identifies it in errors. A part that is truncated or damaged in a single bit is an
/// error.
pub fn read_part(place: &str, source: &impl ChunkReader) -> Result<Part, ReadError> {
    read(place, source)
}

/// Reads one whole part of spans, like [`read_part`].
pub fn read_spans(place: &str, source: &impl ChunkReader) -> Result<Part<SpanRow>, ReadError> {
    read(place, source)
}

/// Reads one whole part of series, like [`read_part`].
pub fn read_series(place: &str, source: &impl ChunkReader) -> Result<Part<SeriesRow>, ReadError> {
    read(place, source)
}

fn read<R: Record>(place: &str, source: &impl ChunkReader) -> Result<Part<R>, ReadError> {
    let unreadable = |error: ParquetError| ReadError::Parquet { place: place.into(), reason: error.to_string() };
    let bytes = verified(place, source)?;
    let file = SerializedFileReader::new(bytes).map_err(unreadable)?;
    let metadata = file.metadata().file_metadata();
    check_schema::<R>(place, metadata)?;
    let mut rows = Vec::new();
    for index in 0..file.num_row_groups() {
        let group = file.get_row_group(index).map_err(unreadable)?;
        read_row_group(place, group.as_ref(), &mut rows)?;
    }
    Ok(Part { provenance: provenance(metadata), rows })
}

/// The bytes of a part, for readers other than this one.
///
/// # Errors
/// When the part cannot be read, or is damaged. `place` names it.
pub fn verified(place: &str, source: &impl ChunkReader) -> Result<Bytes, ReadError> {
    let wrong = |reason: String| ReadError::Parquet { place: place.into(), reason };
    let bytes = whole(source).map_err(|error| wrong(error.to_string()))?;
    verify(&bytes).map_err(|damage| wrong(damage.to_string()))?;
    Ok(bytes)
}

fn whole(source: &impl ChunkReader) -> Result<Bytes, ParquetError> {
    source.get_bytes(0, usize::try_from(source.len())?)
}

/// Reads whole parts, given as `(place, source)`, in the given order. All rows are held in memory,
/// about 200 bytes each; use [`read_part`] for larger datasets.
pub fn read_parts<R: ChunkReader>(parts: impl IntoIterator<Item = (String, R)>) -> Result<Vec<Row>, ReadError> {
    let mut rows = Vec::new();
    for (place, source) in parts {
        rows.append(&mut read_part(&place, &source)?.rows);
    }
    Ok(rows)
}

fn provenance(metadata: &FileMetaData) -> Provenance {
    let entries = metadata.key_value_metadata().map_or(&[][..], Vec::as_slice);
    let value = |key| {
        let entry = entries.iter().find(|entry| entry.key == key);
        entry.and_then(|entry| entry.value.clone()).unwrap_or_default()
    };
    Provenance { version: value(VERSION_KEY), plan_hash: value(PLAN_HASH_KEY) }
}

fn check_schema<R: Record>(place: &str, metadata: &FileMetaData) -> Result<(), ReadError> {
    let wrong = |reason| ReadError::Schema { place: place.into(), reason };
    let expected = schema::<R>(&[]);
    let (expected, got) = (expected.get_fields(), metadata.schema().get_fields());
    let labels = got.iter().rev().take_while(|column| Label::is_one(column.name())).count();
    let columns = got.len() - labels;
    if columns != expected.len() {
        return Err(wrong(format!("{columns} columns instead of {}", expected.len())));
    }
    match got.iter().zip(expected).find(|(got, expected)| got != expected) {
        Some((got, expected)) => {
            Err(wrong(format!("column {} of another type or instead of {}", got.name(), expected.name())))
        }
        None => Ok(()),
    }
}

fn read_row_group<R: Record>(place: &str, group: &dyn RowGroupReader, rows: &mut Vec<R>) -> Result<(), ReadError> {
    let first = rows.len();
    for (index, definition) in R::COLUMNS.iter().enumerate() {
        let reader = group.get_column_reader(index);
        let column = Column { place, definition, makes_rows: index == 0, first };
        reader.map_err(|error| column.unreadable(error)).and_then(|reader| column.fill(reader, rows))?;
    }
    check_values(place, first, rows)
}

/// Rejects values that no run writes.
fn check_values<R: Record>(place: &str, first: usize, rows: &[R]) -> Result<(), ReadError> {
    match R::first_wrong(&rows[first..]) {
        None => Ok(()),
        Some(Wrong { row, column, got, allowed }) => {
            Err(ReadError::Value { place: place.into(), row: first + row, column, got, allowed })
        }
    }
}

/// The decoder of one column of one row group.
struct Column<'a, R: 'static> {
    place: &'a str,
    definition: &'static Definition<R>,
    /// Whether the column is the first of its row group.
    makes_rows: bool,
    /// The index of the row group's first row.
    first: usize,
}

impl<R: Record> Column<'_, R> {
    fn fill(&self, reader: ColumnReader, rows: &mut Vec<R>) -> Result<(), ReadError> {
        match (&self.definition.cell, reader) {
            (Cell::Wide { set, .. }, ColumnReader::Int64ColumnReader(reader)) => {
                self.each(reader, rows, |row, value| set(row, value as u64))
            }
            (Cell::Narrow { set, .. }, ColumnReader::Int32ColumnReader(reader)) => {
                self.each(reader, rows, |row, value| set(row, value as u32))
            }
            (Cell::Flag { set, .. }, ColumnReader::BoolColumnReader(reader)) => self.each(reader, rows, set),
            (Cell::Number { set, .. }, ColumnReader::DoubleColumnReader(reader)) => self.each(reader, rows, set),
            (Cell::Word { words, set, .. }, ColumnReader::ByteArrayColumnReader(reader)) => {
                self.try_each(reader, rows, |row, value| word_index(words, &value).map(|word| set(row, word)))
            }
            _ => Err(self.unreadable(ParquetError::General("the pages are of another type".into()))),
        }
    }

    /// Passes every value of the column to `set`, with its row.
    fn each<T: DataType>(
        &self,
        reader: ColumnReaderImpl<T>,
        rows: &mut Vec<R>,
        set: impl Fn(&mut R, T::T),
    ) -> Result<(), ReadError> {
        self.try_each(reader, rows, |row, value| {
            set(row, value);
            Ok(())
        })
    }

    /// Passes every value of the column to `set`, with its row, until `set` fails. The first column
    /// creates the rows, batch by batch, so that no number in the file determines the memory use.
    fn try_each<T: DataType>(
        &self,
        mut reader: ColumnReaderImpl<T>,
        rows: &mut Vec<R>,
        set: impl Fn(&mut R, T::T) -> Result<(), Unknown>,
    ) -> Result<(), ReadError> {
        let mut values: Vec<T::T> = Vec::with_capacity(BATCH);
        let mut at = self.first;
        while self.next_batch(&mut reader, &mut values)? {
            let end = at + values.len();
            if self.makes_rows {
                rows.resize(end, R::blank());
            }
            let targets = rows.get_mut(at..end).ok_or_else(|| self.uneven())?;
            for (offset, (row, value)) in targets.iter_mut().zip(values.drain(..)).enumerate() {
                set(row, value).map_err(|unknown| self.unknown_word(at + offset, unknown))?;
            }
            at = end;
        }
        if at == rows.len() { Ok(()) } else { Err(self.uneven()) }
    }

    /// Reads a batch into the empty `values`; returns `false` at the end of the column.
    fn next_batch<T: DataType>(
        &self,
        reader: &mut ColumnReaderImpl<T>,
        values: &mut Vec<T::T>,
    ) -> Result<bool, ReadError> {
        reader.read_records(BATCH, None, None, values).map_err(|error| self.unreadable(error))?;
        Ok(!values.is_empty())
    }

    fn unreadable(&self, error: ParquetError) -> ReadError {
        let reason = format!("column {}: {error}", self.definition.name);
        ReadError::Parquet { place: self.place.into(), reason }
    }

    fn uneven(&self) -> ReadError {
        self.unreadable(ParquetError::General("it has not as many values as the first column".into()))
    }

    fn unknown_word(&self, row: usize, Unknown { got, words }: Unknown) -> ReadError {
        ReadError::Value { place: self.place.into(), row, column: self.definition.name, got, allowed: words.join(", ") }
    }
}

/// Values read from a column at a time.
const BATCH: usize = 4096;

/// A word that its column does not allow.
struct Unknown {
    got: String,
    words: &'static [&'static str],
}

fn word_index(words: &'static [&'static str], value: &ByteArray) -> Result<usize, Unknown> {
    let index = words.iter().position(|word| word.as_bytes() == value.data());
    index.ok_or_else(|| Unknown { got: String::from_utf8_lossy(value.data()).into_owned(), words })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::{CHECKSUM_KEY, PLACEHOLDER, seal};
    use base::Time;
    use parquet::file::metadata::KeyValue;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    /// Builds a complete part with the columns of another program.
    fn part_with_columns(columns: &str) -> Bytes {
        let schema = parse_message_type(&format!("message other {{ {columns} }}")).unwrap();
        let mut bytes = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut bytes, schema.into(), Default::default()).unwrap();
        writer.append_key_value_metadata(KeyValue::new(CHECKSUM_KEY.into(), PLACEHOLDER.to_owned()));
        writer.close().unwrap();
        seal(&mut bytes);
        bytes.into()
    }

    #[test]
    fn a_part_with_other_columns_is_refused_by_the_first_difference() {
        let error = |columns: &str| read_part("old", &part_with_columns(columns)).unwrap_err().to_string();
        assert_eq!(error("required int64 request;"), "old: not a part of these records: 1 columns instead of 33");
        let names: Vec<_> = Row::COLUMNS.iter().map(|column| format!("required int64 {};", column.name)).collect();
        assert_eq!(
            error(&names.join(" ")),
            "old: not a part of these records: column request of another type or instead of request"
        );
    }

    #[test]
    fn a_row_that_ends_before_it_was_intended_is_refused() {
        let rows = [Row::blank(), Row { intended: Time::ps(7), end: Time::ps(6), ..Row::blank() }];
        assert_eq!(
            check_values("part", 0, &rows).unwrap_err().to_string(),
            format!("part: row 1: column end_ps holds 6; allowed is 7..={}", u64::MAX)
        );
    }

    #[test]
    fn a_word_that_no_run_writes_is_unknown() {
        let words = &["read", "write"];
        assert!(matches!(word_index(words, &"write".into()), Ok(1)));
        assert!(matches!(word_index(words, &"erase".into()), Err(unknown) if unknown.got == "erase"));
    }
}
