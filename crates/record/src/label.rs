//! Labels that distinguish the rows of different runs: constant columns behind those of the table,
//! so that parts of many runs can be read together.

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::Type;
use std::io::Write;

/// A column with one value in all rows of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// The column: [`Label::DESIGN`], [`Label::SEED`], or a name that begins with
    /// [`Label::PREFIX`].
    pub name: String,
    /// Its type and its value.
    pub value: LabelValue,
}

/// The value of a label; `None` if the run does not have the label and others do.
#[derive(Clone, Debug, PartialEq)]
pub enum LabelValue {
    /// A text.
    Text(Option<String>),
    /// A whole number.
    Integer(Option<i64>),
    /// A number.
    Number(Option<f64>),
    /// A truth value.
    Truth(Option<bool>),
}

impl Label {
    /// The column of the design's name.
    pub const DESIGN: &'static str = "design";
    /// The column of the seed.
    pub const SEED: &'static str = "seed";
    /// The prefix of the columns of a sweep's axes.
    pub const PREFIX: &'static str = "label_";
    /// The possible columns, for the documentation: name, type, meaning.
    pub(crate) const COLUMNS: [(&'static str, &'static str, &'static str); 3] = [
        ("design", "string", "The name of the design; absent in the records of a live target."),
        ("seed", "i64", "The seed of the run; absent in the records of a live target."),
        (
            "label_<axis>",
            "i64, f64, bool or string, may be null",
            "Where the run lies on an axis of its sweep. The type fits all points of the sweep; \
             values with units are strings. Null where another file of the same experiment has \
             the axis.",
        ),
    ];

    /// Returns whether a column of this name is a label.
    pub(crate) fn is_one(name: &str) -> bool {
        name == Label::DESIGN || name == Label::SEED || name.starts_with(Label::PREFIX)
    }

    pub(crate) fn parquet_type(&self) -> Result<Type, ParquetError> {
        let (physical, logical) = match self.value {
            LabelValue::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            LabelValue::Integer(_) => (Physical::INT64, Some(LogicalType::integer(64, true))),
            LabelValue::Number(_) => (Physical::DOUBLE, None),
            LabelValue::Truth(_) => (Physical::BOOLEAN, None),
        };
        let column = Type::primitive_type_builder(&self.name, physical);
        column.with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build()
    }

    /// Writes the column of a row group with `rows` rows.
    pub(crate) fn write<W: Write + Send>(
        &self,
        rows: usize,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let mut column = group.next_column()?.expect("the schema has a column for every label");
        match &self.value {
            LabelValue::Text(text) => {
                let bytes = text.as_ref().map(|text| text.as_bytes().to_vec().into());
                repeat(column.typed::<ByteArrayType>(), bytes.as_ref(), rows)?;
            }
            LabelValue::Integer(number) => repeat(column.typed::<Int64Type>(), number.as_ref(), rows)?,
            LabelValue::Number(number) => repeat(column.typed::<DoubleType>(), number.as_ref(), rows)?,
            LabelValue::Truth(truth) => repeat(column.typed::<BoolType>(), truth.as_ref(), rows)?,
        }
        column.close()
    }
}

/// Rows written at a time.
const BLOCK: usize = 1_024;

fn repeat<T: DataType>(
    column: &mut ColumnWriterImpl<'_, T>,
    value: Option<&T::T>,
    rows: usize,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = value.map_or_else(Vec::new, |value| vec![value.clone(); BLOCK.min(rows)]);
    let levels = vec![i16::from(value.is_some()); BLOCK.min(rows)];
    let mut left = rows;
    while left > 0 {
        let count = BLOCK.min(left);
        column.write_batch(&values[..count.min(values.len())], Some(&levels[..count]), None)?;
        left -= count;
    }
    Ok(())
}
