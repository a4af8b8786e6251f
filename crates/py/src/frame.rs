//! Results as Arrow, by the C stream interface: no value is copied on the way to Polars, pandas or
//! DuckDB. Fields carry their unit as metadata, as Parquet has no place for it.

use crate::errors::raised;
use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Metadata, Schema, SchemaRef};
use campaign::{Failure, labels};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use record::{Label, LabelValue, Summary, verified};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows in a batch.
const BATCH: usize = 65_536;

/// Rows, read while they are consumed. Each `__arrow_c_stream__` begins anew.
#[pyclass(frozen, module = "rackweave._native")]
pub struct Stream(Rows);

enum Rows {
    /// Parts of records or of spans, all with these columns.
    Parts {
        schema: SchemaRef,
        parts: Arc<[PathBuf]>,
    },
    Whole(RecordBatch),
}

#[pymethods]
impl Stream {
    /// The Arrow PyCapsule interface. A requested schema is not followed, as it allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let reader: Box<dyn RecordBatchReader + Send> = match &self.0 {
            Rows::Parts { schema, parts } => Box::new(Parts::new(schema.clone(), parts.clone())),
            Rows::Whole(batch) => Box::new(RecordBatchIterator::new([Ok(batch.clone())], batch.schema())),
        };
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
    }

    /// Units by column.
    #[getter]
    fn units(&self) -> Vec<(String, Option<String>)> {
        let schema = match &self.0 {
            Rows::Parts { schema, .. } => schema.clone(),
            Rows::Whole(batch) => batch.schema(),
        };
        schema.fields().iter().map(|field| (field.name().clone(), field.metadata().get(UNIT).cloned())).collect()
    }
}

/// The key of a field's metadata.
const UNIT: &str = "unit";
/// The same for what the column is.
const MEANING: &str = "description";

/// The rows of parts of `records` or `spans`. All parts must have the same columns.
#[pyfunction]
pub fn records(py: Python<'_>, parts: Vec<PathBuf>, table: &str) -> PyResult<Stream> {
    let schema = py.detach(|| schema_of(&parts, table)).map_err(|failure| raised(py, &failure))?;
    Ok(Stream(Rows::Parts { schema, parts: parts.into() }))
}

fn schema_of(parts: &[PathBuf], table: &str) -> Result<SchemaRef, Failure> {
    let mut schema: Option<(SchemaRef, &Path)> = None;
    for part in parts {
        let wrong = |error: &dyn std::fmt::Display| Failure::BadInput(format!("{}: {error}", part.display()));
        let file = File::open(part).map_err(|error| wrong(&error))?;
        let found = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| wrong(&error))?.schema().clone();
        match &schema {
            Some((known, _)) if known.fields() == found.fields() => {}
            Some((_, other)) => {
                return Err(wrong(&format_args!("other columns than in {}: read them apart", other.display())));
            }
            None => schema = Some((found, part)),
        }
    }
    let (schema, _) = schema.ok_or_else(|| Failure::BadInput(format!("there are no {table}")))?;
    Ok(with_units(&schema, table))
}

fn with_units(schema: &Schema, table: &str) -> SchemaRef {
    let columns = record::columns();
    let described = |field: &Arc<Field>| {
        let field = Field::new(field.name(), field.data_type().clone(), field.is_nullable());
        match columns.iter().find(|column| column.table == table && column.name == *field.name()) {
            Some(column) => marked(field, Some(column.unit), Some(&column.doc)),
            None => field,
        }
    };
    Arc::new(Schema::new(schema.fields().iter().map(described).collect::<Vec<_>>()))
}

fn marked(field: Field, unit: Option<&str>, meaning: Option<&str>) -> Field {
    let unit = unit.filter(|unit| *unit != "none").map(|unit| (UNIT.to_owned(), unit.to_owned()));
    let meaning = meaning.map(|meaning| (MEANING.to_owned(), meaning.to_owned()));
    field.with_metadata(unit.into_iter().chain(meaning).collect::<Metadata>())
}

/// Reads one part after the other. A part is checked whole before its first row is given.
struct Parts {
    schema: SchemaRef,
    parts: Arc<[PathBuf]>,
    next: usize,
    open: Option<ParquetRecordBatchReader>,
}

impl Parts {
    fn new(schema: SchemaRef, parts: Arc<[PathBuf]>) -> Parts {
        Parts { schema, parts, next: 0, open: None }
    }

    fn open(part: &Path) -> Result<ParquetRecordBatchReader, ArrowError> {
        let place = part.display().to_string();
        let file = File::open(part).map_err(|error| ArrowError::IoError(place.clone(), error))?;
        let bytes = verified(&place, &file).map_err(|error| ArrowError::ParquetError(error.to_string()))?;
        Ok(ParquetRecordBatchReaderBuilder::try_new(bytes)?.with_batch_size(BATCH).build()?)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        loop {
            if let Some(batch) = self.open.as_mut().and_then(Iterator::next) {
                return Ok(Some(RecordBatch::try_new(self.schema.clone(), batch?.columns().to_vec())?));
            }
            let Some(part) = self.parts.get(self.next) else { return Ok(None) };
            self.next += 1;
            self.open = Some(Parts::open(part)?);
        }
    }
}

impl Iterator for Parts {
    type Item = Result<RecordBatch, ArrowError>;
    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

impl RecordBatchReader for Parts {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Summaries, a row each: `point`, `design`, `seed` (null: over all seeds), the labels, and every
/// number under its dotted name. `points` are the numbers of points, from 0.
#[pyfunction]
pub fn summaries(py: Python<'_>, summaries: Vec<String>, points: Vec<i64>) -> PyResult<Stream> {
    let parsed = summaries.iter().map(|text| parse(text)).collect::<Result<Vec<_>, _>>();
    let parsed = parsed.map_err(|error| crate::errors::bad_input(py, format!("no summary: {error}")))?;
    let failed = |error: ArrowError| raised(py, &Failure::Failed(error.to_string()));
    Ok(Stream(Rows::Whole(table(&parsed, &points).map_err(failed)?)))
}

fn parse(text: &str) -> Result<(Summary, serde_json::Value), serde_json::Error> {
    Ok((serde_json::from_str(text)?, serde_json::from_str(text)?))
}

fn table(rows: &[(Summary, serde_json::Value)], points: &[i64]) -> Result<RecordBatch, ArrowError> {
    let mut columns: Vec<(Field, ArrayRef)> = Vec::new();
    let mut add = |field: Field, array: ArrayRef| columns.push((field, array));
    add(Field::new("point", DataType::Int64, false), Arc::new(arrow_array::Int64Array::from(points.to_vec())));
    let designs: arrow_array::StringArray = rows.iter().map(|(row, _)| Some(&row.design)).collect();
    add(Field::new("design", DataType::Utf8, false), Arc::new(designs));
    let seed = |(row, _): &(Summary, _)| if let [seed] = row.seeds[..] { i64::try_from(seed).ok() } else { None };
    let seeds: arrow_array::Int64Array = rows.iter().map(seed).collect();
    add(Field::new("seed", DataType::Int64, true), Arc::new(seeds));
    let of_rows = labels::of_maps(&rows.iter().map(|(row, _)| &row.labels).collect::<Vec<_>>());
    for index in 0..of_rows.first().map_or(0, Vec::len) {
        let column: Vec<&Label> = of_rows.iter().map(|labels| &labels[index]).collect();
        let array = label_column(&column);
        add(Field::new(&column[0].name, array.data_type().clone(), true), array);
    }
    let numbers: Vec<Vec<(String, f64)>> = rows.iter().map(|(_, json)| numbers(json)).collect();
    let names: BTreeSet<&String> = numbers.iter().flatten().map(|(name, _)| name).collect();
    for name in names {
        let of = |row: &Vec<(String, f64)>| row.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        let values: arrow_array::Float64Array = numbers.iter().map(of).collect();
        add(marked(Field::new(name, DataType::Float64, true), record::unit(name), None), Arc::new(values));
    }
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

fn label_column(labels: &[&Label]) -> ArrayRef {
    let (mut texts, mut integers) = (StringBuilder::new(), Int64Builder::new());
    let (mut numbers, mut truths) = (Float64Builder::new(), BooleanBuilder::new());
    for label in labels {
        match &label.value {
            LabelValue::Text(text) => texts.append_option(text.as_ref()),
            LabelValue::Integer(number) => integers.append_option(*number),
            LabelValue::Number(number) => numbers.append_option(*number),
            LabelValue::Truth(truth) => truths.append_option(*truth),
        }
    }
    let arrays: [ArrayRef; 4] =
        [Arc::new(texts.finish()), Arc::new(integers.finish()), Arc::new(numbers.finish()), Arc::new(truths.finish())];
    // All labels of a column have one type.
    let found = arrays.into_iter().find(|array| array.len() == labels.len());
    found.unwrap_or_else(|| arrow_array::new_null_array(&DataType::Utf8, labels.len()))
}

/// All numbers of a summary by dotted name; not its seeds, which are a list.
fn numbers(summary: &serde_json::Value) -> Vec<(String, f64)> {
    fn collect(prefix: &str, value: &serde_json::Value, found: &mut Vec<(String, f64)>) {
        match value {
            serde_json::Value::Number(number) => {
                found.extend(number.as_f64().map(|number| (prefix.to_owned(), number)))
            }
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                    collect(&path, value, found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect("", summary, &mut found);
    found
}
