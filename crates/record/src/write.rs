//! Writes rows to Parquet during a run, so that a killed run or a full disk loses only the last
//! few.
//!
//! A Parquet file cannot be read without its footer, which is written last. So the records of a run
//! are a *dataset* of part files, each complete with one row group of at most
//! [`ParquetWriter::ROWS_PER_PART`] rows. A part is written under a temporary name and published by
//! [`Parts::commit`] when complete. A run that dies loses the rows of one part. (One file with many
//! row groups was rejected: without its footer it is unreadable.)
//!
//! Identical rows and [`Provenance`] give identical bytes: no timestamps, fixed encodings, no
//! threads.

use crate::checksum::{CHECKSUM_KEY, PLACEHOLDER, seal};
use crate::column::{Cell, Record, schema};
use crate::keep::SpanRow;
use crate::label::{Label, LabelValue};
use crate::row::{Row, Sink, SinkError};
use crate::series::SeriesRow;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, TypePtr};
use std::io::{self, Write};
use std::sync::Arc;

/// The destination of a dataset's parts. This crate uses no paths: the caller has the directory.
pub trait Parts {
    /// A part that is being written.
    type File: Write + Send;
    /// Creates part number `part` under a name that readers do not recognise as a part.
    fn create(&mut self, part: u32) -> io::Result<Self::File>;
    /// Passes the complete part to the system and publishes it under its [name](part_name)
    /// atomically: it survives the end of the process. Whether it survives a power failure is for
    /// the implementer to decide and document.
    fn commit(&mut self, part: u32, file: Self::File) -> io::Result<()>;
    /// Returns a description of the part for error messages, for instance its path.
    fn place(&self, part: u32) -> String;
}

/// Returns the file name of a part in its dataset: `part-00000.parquet` and so on. Numbers count
/// from 0 without gaps.
pub fn part_name(part: u32) -> String {
    format!("part-{part:05}.parquet")
}

/// The origin of the records, stored in the key-value metadata of every part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The program's version, under [`VERSION_KEY`].
    pub version: String,
    /// SHA-256 of the resolved plan, hex, under [`PLAN_HASH_KEY`].
    pub plan_hash: String,
}

/// The metadata key of the program's version.
pub const VERSION_KEY: &str = "rackweave.version";
/// The metadata key of the plan's hash.
pub const PLAN_HASH_KEY: &str = "rackweave.plan_hash";
/// The parts published so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Parts that were committed.
    pub parts: u32,
    /// Rows in these parts.
    pub rows: u64,
}

/// Writes rows as a dataset of Parquet parts. Call [`finish`](Self::finish) at the end, also of a
/// run that was cut short: it writes the rows of the last, partial part. After an error every
/// further row is refused with the same error; the parts committed before it stay.
pub struct ParquetWriter<P, R = Row> {
    parts: P,
    labels: Vec<Label>,
    schema: TypePtr,
    provenance: Provenance,
    properties: WriterPropertiesPtr,
    rows_per_part: usize,
    /// Rows that are not yet split into columns; few enough for the cache.
    block: Vec<R>,
    columns: Vec<Values>,
    /// The encoding buffer of the last part, kept for reuse.
    encoded: Vec<u8>,
    /// Rows of the current part, in `block` or in `columns`.
    pending: usize,
    written: Written,
    failed: Option<SinkError>,
}

/// The values of one column in the current part, as Parquet stores them.
enum Values {
    Wide(Vec<i64>),
    Narrow(Vec<i32>),
    /// Indices into the column's words.
    Word(Vec<u8>),
    Flag(Vec<bool>),
    Number(Vec<f64>),
}

/// Rows are split into columns in blocks of this size, so that they are still in the nearest
/// caches.
const BLOCK: usize = 128;

impl<P: Parts> ParquetWriter<P> {
    /// Default number of rows per part, see [`with_rows_per_part`](Self::with_rows_per_part). It is
    /// also the maximum that a killed run loses.
    pub const ROWS_PER_PART: usize = 65_536;

    /// Creates a writer of records into `parts`. Nothing is written before the first part is full.
    pub fn new(parts: P, provenance: &Provenance) -> Self {
        ParquetWriter::of(parts, provenance)
    }
}

impl<P: Parts> ParquetWriter<P, SpanRow> {
    /// Creates a writer of spans into `parts`. Nothing is written before the first part is full.
    pub fn of_spans(parts: P, provenance: &Provenance) -> Self {
        ParquetWriter::of(parts, provenance)
    }
}

impl<P: Parts> ParquetWriter<P, SeriesRow> {
    /// Creates a writer of series into `parts`. Nothing is written before the first part is full.
    pub fn of_series(parts: P, provenance: &Provenance) -> Self {
        ParquetWriter::of(parts, provenance)
    }

    /// Writes the values of one sample.
    pub fn series(&mut self, rows: &[SeriesRow]) -> Result<(), SinkError> {
        rows.iter().try_for_each(|row| self.add(row))
    }
}

#[expect(private_bounds, reason = "only this crate knows what its tables hold")]
impl<P: Parts, R: Record> ParquetWriter<P, R> {
    fn of(parts: P, provenance: &Provenance) -> Self {
        ParquetWriter {
            parts,
            labels: Vec::new(),
            schema: schema::<R>(&[]),
            provenance: provenance.clone(),
            properties: properties::<R>(provenance, &[]),
            rows_per_part: ParquetWriter::<P>::ROWS_PER_PART,
            block: Vec::with_capacity(BLOCK),
            columns: R::COLUMNS.iter().map(|column| Values::of(&column.cell)).collect(),
            encoded: Vec::new(),
            pending: 0,
            written: Written::default(),
            failed: None,
        }
    }

    /// Sets the rows per part, at least one. Fewer rows lose less when a run is killed, but make
    /// the dataset larger.
    pub fn with_rows_per_part(mut self, rows: usize) -> Self {
        self.rows_per_part = rows.max(1);
        self
    }

    /// Writes these labels with every row, behind the columns of the table. Call before the first
    /// row.
    ///
    /// # Panics
    /// If two labels have the same name, or a name is not that of a label.
    pub fn with_labels(mut self, labels: Vec<Label>) -> Self {
        self.schema = schema::<R>(&labels);
        self.properties = properties::<R>(&self.provenance, &labels);
        self.labels = labels;
        self
    }

    /// Writes the remaining rows as the last part; returns the totals. A run without rows leaves
    /// one empty part, so that its dataset still has a schema.
    pub fn finish(&mut self) -> Result<Written, SinkError> {
        self.refuse_after_failure()?;
        if self.pending > 0 || self.written.parts == 0 {
            self.end_part()?;
        }
        Ok(self.written)
    }

    /// Returns the parts published so far; also valid after an error.
    pub fn written(&self) -> Written {
        self.written
    }

    /// Returns the destination of the parts.
    pub fn parts(&self) -> &P {
        &self.parts
    }

    /// Returns the destination by value. Rows of a partial part are lost unless
    /// [`finish`](Self::finish) was called.
    pub fn into_parts(self) -> P {
        self.parts
    }

    fn refuse_after_failure(&self) -> Result<(), SinkError> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn end_part(&mut self) -> Result<(), SinkError> {
        self.split_block();
        let part = self.written.parts;
        self.write_part(part).map_err(|reason| self.fail(part, reason))?;
        self.written.parts += 1;
        self.written.rows += self.pending as u64;
        self.pending = 0;
        self.columns.iter_mut().for_each(Values::clear);
        Ok(())
    }

    fn write_part(&mut self, part: u32) -> Result<(), ParquetError> {
        let mut file = self.parts.create(part)?;
        let mut bytes = std::mem::take(&mut self.encoded);
        bytes.clear();
        self.encode(&mut bytes)?;
        seal(&mut bytes);
        file.write_all(&bytes)?;
        self.encoded = bytes;
        Ok(self.parts.commit(part, file)?)
    }

    fn encode(&self, bytes: &mut Vec<u8>) -> Result<(), ParquetError> {
        let mut writer = SerializedFileWriter::new(bytes, self.schema.clone(), self.properties.clone())?;
        if self.pending > 0 {
            let mut group = writer.next_row_group()?;
            for (definition, values) in R::COLUMNS.iter().zip(&self.columns) {
                values.write(&definition.cell, &mut group)?;
            }
            self.labels.iter().try_for_each(|label| label.write(self.pending, &mut group))?;
            group.close()?;
        }
        writer.close().map(drop)
    }

    fn fail(&mut self, part: u32, reason: ParquetError) -> SinkError {
        let error = SinkError { place: self.parts.place(part), reason: system_reason(reason) };
        self.failed = Some(error.clone());
        error
    }

    fn split_block(&mut self) {
        for (definition, values) in R::COLUMNS.iter().zip(&mut self.columns) {
            values.extend(&definition.cell, &self.block);
        }
        self.block.clear();
    }

    fn add(&mut self, row: &R) -> Result<(), SinkError> {
        if self.failed.is_some() {
            return self.refuse_after_failure();
        }
        self.block.push(*row);
        self.pending += 1;
        if self.pending == self.rows_per_part {
            return self.end_part();
        }
        if self.block.len() == BLOCK {
            self.split_block();
        }
        Ok(())
    }
}

impl<P: Parts> Sink for ParquetWriter<P> {
    fn row(&mut self, row: &Row) -> Result<(), SinkError> {
        self.add(row)
    }
}

impl<P: Parts> ParquetWriter<P, SpanRow> {
    /// Writes the spans of one request.
    pub fn spans(&mut self, spans: &[SpanRow]) -> Result<(), SinkError> {
        spans.iter().try_for_each(|span| self.add(span))
    }
}

impl Values {
    fn of<R>(cell: &Cell<R>) -> Values {
        match cell {
            Cell::Wide { .. } => Values::Wide(Vec::new()),
            Cell::Narrow { .. } => Values::Narrow(Vec::new()),
            Cell::Word { .. } => Values::Word(Vec::new()),
            Cell::Flag { .. } => Values::Flag(Vec::new()),
            Cell::Number { .. } => Values::Number(Vec::new()),
        }
    }

    /// Appends the column's values of `rows`.
    fn extend<R>(&mut self, cell: &Cell<R>, rows: &[R]) {
        match (self, cell) {
            (Values::Wide(values), Cell::Wide { gather, .. }) => gather(rows, values),
            (Values::Narrow(values), Cell::Narrow { gather, .. }) => gather(rows, values),
            (Values::Word(values), Cell::Word { gather, .. }) => gather(rows, values),
            (Values::Flag(values), Cell::Flag { gather, .. }) => gather(rows, values),
            (Values::Number(values), Cell::Number { gather, .. }) => gather(rows, values),
            _ => unreachable!("every column keeps the values of its own cell"),
        }
    }

    fn clear(&mut self) {
        match self {
            Values::Wide(values) => values.clear(),
            Values::Narrow(values) => values.clear(),
            Values::Word(values) => values.clear(),
            Values::Flag(values) => values.clear(),
            Values::Number(values) => values.clear(),
        }
    }

    fn write<R, W: Write + Send>(
        &self,
        cell: &Cell<R>,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let mut column = group.next_column()?.expect("the schema has a column for every definition");
        match self {
            Values::Wide(values) => column.typed::<Int64Type>().write_batch(values, None, None)?,
            Values::Narrow(values) => column.typed::<Int32Type>().write_batch(values, None, None)?,
            Values::Flag(values) => column.typed::<BoolType>().write_batch(values, None, None)?,
            Values::Number(values) => column.typed::<DoubleType>().write_batch(values, None, None)?,
            Values::Word(indices) => write_words(cell, indices, column.typed::<ByteArrayType>())?,
        };
        column.close()
    }
}

/// Writes words in blocks: Parquet needs a handle for each, forty times the size of its index.
fn write_words<R>(
    cell: &Cell<R>,
    indices: &[u8],
    column: &mut ColumnWriterImpl<'_, ByteArrayType>,
) -> Result<usize, ParquetError> {
    let Cell::Word { words, .. } = cell else { unreachable!("words belong to a column of words") };
    let words: Vec<ByteArray> = words.iter().map(|word| Bytes::from_static(word.as_bytes()).into()).collect();
    let mut block = Vec::with_capacity(BLOCK);
    for indices in indices.chunks(BLOCK) {
        block.clear();
        block.extend(indices.iter().map(|index| words[usize::from(*index)].clone()));
        column.write_batch(&block, None, None)?;
    }
    Ok(indices.len())
}

/// Builds the properties: delta encoding for numbers (times rise, spans repeat), dictionaries for
/// words, and zstd level 1 for all.
fn properties<R: Record>(provenance: &Provenance, labels: &[Label]) -> WriterPropertiesPtr {
    let level = ZstdLevel::try_new(1).expect("zstd has a level 1");
    let metadata = [
        (VERSION_KEY, provenance.version.as_str()),
        (PLAN_HASH_KEY, provenance.plan_hash.as_str()),
        (CHECKSUM_KEY, PLACEHOLDER),
    ];
    let mut builder = WriterProperties::builder()
        .set_created_by("rackweave".into())
        .set_key_value_metadata(Some(
            metadata.iter().map(|(key, value)| KeyValue::new(key.to_string(), value.to_string())).collect(),
        ))
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_dictionary_enabled(false);
    for definition in R::COLUMNS {
        let path = ColumnPath::from(definition.name);
        builder = match definition.cell {
            Cell::Wide { .. } | Cell::Narrow { .. } => builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            // Minimum and maximum of a few words are useless, and larger than the words.
            Cell::Word { .. } => builder
                .set_column_dictionary_enabled(path.clone(), true)
                .set_column_statistics_enabled(path, EnabledStatistics::None),
            Cell::Flag { .. } => builder,
            // Queues are empty, and counters equal, for most of the time.
            Cell::Number { .. } => builder.set_column_dictionary_enabled(path, true),
        };
    }
    for label in labels.iter().filter(|label| !matches!(label.value, LabelValue::Truth(_))) {
        builder = builder.set_column_dictionary_enabled(ColumnPath::from(label.name.as_str()), true);
    }
    Arc::new(builder.build())
}

/// Returns the system's message without Parquet's wrapping, if it is a system error.
fn system_reason(error: ParquetError) -> String {
    match error {
        ParquetError::External(inner) => inner.to_string(),
        other => other.to_string(),
    }
}
