//! A table with any columns (whole numbers, flags, words, texts), written part by part.
//!
//! Code with its own tables (such as traces) describes them as [`Column`]s and passes [`Values`]; it need not know
//! Arrow or Parquet. Whole numbers are stored as packed differences, words (few distinct texts) as a dictionary, and
//! other texts unchanged.
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

use arrow_schema::{DataType, Field, Schema};

use crate::EvidenceError;
use crate::part::{Cells, Part, Shape};

pub use crate::table_read::{Rows, TableRows, read_table};
pub use crate::values::{Kind, Texts, Values};

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the column, with the unit last.
    pub name: &'static str,
    /// Kind of the column's values.
    pub kind: Kind,
    /// True if values can be missing.
    pub optional: bool,
}

impl Column {
    /// Returns a column in which no value is missing.
    pub const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, optional: false }
    }

    /// Returns a column in which values can be missing.
    pub const fn optional(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, optional: true }
    }
}

/// Returns the values in the form that the part accepts: as they are for dbdyno's own encoders, otherwise as an array.
fn cells(values: &mut Values) -> Cells<'_> {
    match values {
        Values::Text(texts) => Cells::Array(Arc::new(texts.array())),
        values => Cells::Values(values),
    }
}

/// Part of a table being written; it is invisible until [`Table::finish`].
pub struct Table {
    part: Part,
    columns: Vec<Column>,
}

impl Table {
    /// Opens `<dir>/<name>.parquet` under a temporary name.
    ///
    /// # Errors
    /// The part cannot be created.
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

    /// Appends rows: the values of each column, in the order of the columns; each entry of `values` is empty
    /// afterwards.
    ///
    /// # Errors
    /// The part cannot be written, or the columns have unequal lengths.
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
        let cells: Vec<Cells<'_>> = values.iter_mut().map(cells).collect();
        self.part.write_cells(&cells, rows)?;
        drop(cells);
        values.iter_mut().for_each(Values::clear);
        Ok(())
    }

    /// Returns the number of rows written so far.
    pub fn rows(&self) -> u64 {
        self.part.rows()
    }

    /// Closes the part and renames it into place; returns its number of rows. The part is not synced, since it can be
    /// made again from its source.
    ///
    /// # Errors
    /// The part cannot be written.
    pub fn finish(self) -> Result<u64, EvidenceError> {
        self.part.finish()
    }
}

/// Number of rows in a row group; a writer keeps these in memory.
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
