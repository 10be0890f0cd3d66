//! A table of any shape: columns of whole numbers, flags, words and texts, written part by part.
//!
//! A room that has its own tables (traces) describes them by [`Column`]s and hands over [`Values`];
//! it needs to know nothing of Arrow or Parquet. Whole numbers are stored as packed differences,
//! words (few different texts) as a dictionary, texts as they stand.
//!
//! ```
//! use dyno_evidence::table::{Column, Kind, Table, Values, read_table};
//! use dyno_evidence::NONE;
//! # fn main() -> Result<(), dyno_evidence::EvidenceError> {
//! let dir = std::env::temp_dir().join(format!("dyno-doc-table-{}", std::process::id()));
//! let columns = [Column::new("line", Kind::I64), Column::optional("rows", Kind::I64)];
//! let mut table = Table::create(&dir, "calls", &columns)?;
//! table.write(vec![Values::I64(vec![1, 2]), Values::I64(vec![NONE, 7])])?;
//! assert_eq!(table.finish()?, 2);
//! let mut rows = Vec::new();
//! for batch in read_table(&dir.join("calls.parquet"), &["rows"])? {
//!     rows.extend(batch?.i64s("rows")?);
//! }
//! assert_eq!(rows, [NONE, 7]);
//! # std::fs::remove_dir_all(&dir).ok();
//! # Ok(())
//! # }
//! ```

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::types::UInt32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int64Array, RecordBatch, StringArray, UInt8Array, UInt32Array, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::part::{Part, Shape};
use crate::{EvidenceError, NONE};

pub use crate::table_read::{Rows, TableRows, read_table};

/// What a column holds, and what stands for a missing value where it is optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers; [`NONE`] is missing.
    I64,
    /// Whole numbers without sign; never missing.
    U64,
    /// Small whole numbers; never missing.
    U32,
    /// Tiny whole numbers; 255 is missing.
    U8,
    /// Flags; never missing.
    Bool,
    /// Few different texts, as numbers into a list; `u32::MAX` is missing.
    Words,
    /// Texts.
    Text,
    /// Texts that come again and again.
    Repeated,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, with the unit last.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether a value may be missing.
    pub optional: bool,
}

impl Column {
    /// A column in which no value is missing.
    pub const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, optional: false }
    }

    /// A column in which values may be missing.
    pub const fn optional(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, optional: true }
    }
}

/// Texts of a column.
#[derive(Debug, Default)]
pub struct Texts(StringBuilder);

impl Texts {
    /// Adds a text, or its absence.
    pub fn push(&mut self, text: Option<&str>) {
        self.0.append_option(text);
    }

    /// Adds bytes as text; what is no UTF-8 is replaced.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        self.0.append_value(String::from_utf8_lossy(bytes));
    }
}

/// A column's values.
#[derive(Debug)]
pub enum Values {
    /// For [`Kind::I64`].
    I64(Vec<i64>),
    /// For [`Kind::U64`].
    U64(Vec<u64>),
    /// For [`Kind::U32`].
    U32(Vec<u32>),
    /// For [`Kind::U8`].
    U8(Vec<u8>),
    /// For [`Kind::Bool`].
    Bool(Vec<bool>),
    /// For [`Kind::Words`]: numbers into the list of words.
    Words(Vec<u32>, Vec<String>),
    /// For [`Kind::Text`] and [`Kind::Repeated`].
    Text(Texts),
}

/// A part of a table being written; nothing is visible before [`Table::finish`].
pub struct Table {
    part: Part,
    schema: SchemaRef,
}

impl Table {
    /// Opens `<dir>/<name>.parquet`, aside.
    pub fn create(dir: &Path, name: &str, columns: &[Column]) -> Result<Self, EvidenceError> {
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let named =
            |kinds: &[Kind]| columns.iter().filter(|c| kinds.contains(&c.kind)).map(|c| c.name).collect::<Vec<_>>();
        let shape = Shape {
            deltas: &named(&[Kind::I64, Kind::U64, Kind::U32, Kind::U8]),
            plain: &named(&[Kind::Text, Kind::Bool]),
            unsorted: &named(&[Kind::Text, Kind::Repeated, Kind::Words, Kind::Bool]),
            row_group_rows: ROW_GROUP_ROWS,
            page_statistics: false,
            durable: false,
        };
        Ok(Self { part: Part::shaped(dir, name, Arc::clone(&schema), &shape)?, schema })
    }

    /// Appends rows: the values of each column, in the order of the columns.
    pub fn write(&mut self, values: Vec<Values>) -> Result<(), EvidenceError> {
        let fields = self.schema.fields().iter();
        let columns: Result<Vec<ArrayRef>, EvidenceError> =
            fields.zip(values).map(|(field, values)| array(values, field.is_nullable())).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns?)
            .map_err(|e| EvidenceError::Shape(e.to_string()))?;
        self.part.write(&batch)
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.part.rows()
    }

    /// Closes the part and puts it in place; returns its number of rows. It is not forced to the
    /// disk: what a table is made from can be read again.
    pub fn finish(self) -> Result<u64, EvidenceError> {
        self.part.finish()
    }
}

/// Rows of a row group: what a writer keeps in memory.
const ROW_GROUP_ROWS: usize = 1 << 18;

fn field(column: &Column) -> Field {
    let kind = match column.kind {
        Kind::I64 => DataType::Int64,
        Kind::U64 => DataType::UInt64,
        Kind::U32 => DataType::UInt32,
        Kind::U8 => DataType::UInt8,
        Kind::Bool => DataType::Boolean,
        Kind::Words => DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8)),
        Kind::Text | Kind::Repeated => DataType::Utf8,
    };
    Field::new(column.name, kind, column.optional)
}

/// Which values are there; `None` if all are.
fn present(len: usize, optional: bool, is_there: impl Fn(usize) -> bool) -> Option<NullBuffer> {
    if !optional {
        return None;
    }
    let there = NullBuffer::new(BooleanBuffer::collect_bool(len, is_there));
    (there.null_count() > 0).then_some(there)
}

fn array(values: Values, optional: bool) -> Result<ArrayRef, EvidenceError> {
    Ok(match values {
        Values::I64(values) => {
            let nulls = present(values.len(), optional, |at| values[at] != NONE);
            Arc::new(Int64Array::new(values.into(), nulls))
        }
        Values::U64(values) => Arc::new(UInt64Array::from(values)),
        Values::U32(values) => Arc::new(UInt32Array::from(values)),
        Values::U8(values) => {
            let nulls = present(values.len(), optional, |at| values[at] != u8::MAX);
            Arc::new(UInt8Array::new(values.into(), nulls))
        }
        Values::Bool(values) => Arc::new(BooleanArray::from(values)),
        Values::Words(mut numbers, words) => {
            let nulls = present(numbers.len(), optional, |at| numbers[at] != u32::MAX);
            if nulls.is_some() {
                numbers.iter_mut().filter(|n| **n == u32::MAX).for_each(|n| *n = 0);
            }
            // A dictionary without any word takes the Parquet reader's slow road.
            let words = if words.is_empty() { vec![String::new()] } else { words };
            let keys = UInt32Array::new(numbers.into(), nulls);
            let words = Arc::new(StringArray::from_iter_values(words));
            let made =
                DictionaryArray::<UInt32Type>::try_new(keys, words).map_err(|e| EvidenceError::Shape(e.to_string()))?;
            Arc::new(made)
        }
        Values::Text(mut texts) => Arc::new(texts.0.finish()),
    })
}
