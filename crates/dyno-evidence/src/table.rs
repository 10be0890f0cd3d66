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
//! table.write(&mut [Values::I64(vec![1, 2]), Values::I64(vec![NONE, 7])])?;
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

use arrow_array::BooleanArray;
use arrow_array::builder::{ArrayBuilder, StringBuilder};
use arrow_schema::{DataType, Field, Schema};

use crate::EvidenceError;
use crate::part::{Cells, Part, Shape};

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

impl Values {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::I64(values) => values.len(),
            Self::U64(values) => values.len(),
            Self::U32(values) | Self::Words(values, _) => values.len(),
            Self::U8(values) => values.len(),
            Self::Bool(values) => values.len(),
            Self::Text(texts) => texts.0.len(),
        }
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the values out and keeps their room.
    pub fn clear(&mut self) {
        match self {
            Self::I64(values) => values.clear(),
            Self::U64(values) => values.clear(),
            Self::U32(values) => values.clear(),
            Self::U8(values) => values.clear(),
            Self::Bool(values) => values.clear(),
            Self::Words(numbers, words) => {
                numbers.clear();
                words.clear();
            }
            Self::Text(texts) => *texts = Texts::default(),
        }
    }

    fn is_of(&self, kind: Kind) -> bool {
        match self {
            Self::I64(_) => kind == Kind::I64,
            Self::U64(_) => kind == Kind::U64,
            Self::U32(_) => kind == Kind::U32,
            Self::U8(_) => kind == Kind::U8,
            Self::Bool(_) => kind == Kind::Bool,
            Self::Words(..) => kind == Kind::Words,
            Self::Text(_) => matches!(kind, Kind::Text | Kind::Repeated),
        }
    }

    /// As the part takes them: what our own encoders do not store, as an array.
    fn cells(&mut self) -> Cells<'_> {
        match self {
            Self::Bool(values) => Cells::Array(Arc::new(BooleanArray::from(values.clone()))),
            Self::Text(texts) => Cells::Array(Arc::new(texts.0.finish())),
            values => Cells::Values(values),
        }
    }
}

/// A part of a table being written; nothing is visible before [`Table::finish`].
pub struct Table {
    part: Part,
    columns: Vec<Column>,
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
        Ok(Self { part: Part::shaped(dir, name, schema, &shape)?, columns: columns.to_vec() })
    }

    /// Appends rows: the values of each column, in the order of the columns. They are empty afterwards.
    pub fn write(&mut self, values: &mut [Values]) -> Result<(), EvidenceError> {
        let rows = values.first().map_or(0, Values::len);
        let is_sound = values.len() == self.columns.len()
            && values
                .iter()
                .zip(&self.columns)
                .all(|(values, column)| values.is_of(column.kind) && values.len() == rows);
        if !is_sound {
            return Err(EvidenceError::Shape("values that are not the table's".to_owned()));
        }
        let cells: Vec<Cells<'_>> = values.iter_mut().map(Values::cells).collect();
        self.part.write_cells(&cells, rows)?;
        drop(cells);
        values.iter_mut().for_each(Values::clear);
        Ok(())
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
