//! Reader of tables with any columns: batch by batch, column by column.

use std::collections::HashMap;
use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use crate::{EvidenceError, NONE};

/// Number of rows in a batch.
const BATCH_ROWS: usize = 1 << 14;

/// Opens a part of a table; the result yields [`Rows`] of the named columns, in order.
///
/// # Errors
/// The part cannot be read, is torn, or has no such column.
pub fn read_table(path: &Path, columns: &[&str]) -> Result<TableRows, EvidenceError> {
    let file = File::open(path).map_err(|e| EvidenceError::io(path, e))?;
    let open = || {
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| EvidenceError::parquet(path, e))?;
        let wanted = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
        let rows = builder.with_projection(wanted).with_batch_size(BATCH_ROWS).build();
        rows.map_err(|e| EvidenceError::parquet(path, e))
    };
    let rows = std::panic::catch_unwind(AssertUnwindSafe(open)).unwrap_or_else(|_| Err(torn(path, "damaged bytes")))?;
    Ok(TableRows { rows, path: path.to_owned() })
}

fn torn(path: &Path, reason: &str) -> EvidenceError {
    EvidenceError::Part { path: path.to_owned(), reason: reason.to_owned() }
}

/// Returns each text as an index into the list of distinct texts, and that list; `u32::MAX` for a missing text.
fn numbered(texts: &StringArray) -> (Vec<u32>, Vec<String>) {
    let (mut known, mut list) = (HashMap::new(), Vec::new());
    let number = |text: Option<&str>| {
        let Some(text) = text else { return u32::MAX };
        if let Some(number) = known.get(text) {
            return *number;
        }
        let number = list.len() as u32;
        list.push(text.to_owned());
        known.insert(text.to_owned(), number);
        number
    };
    let numbers = texts.iter().map(number).collect();
    (numbers, list)
}

/// Iterator over the rows of a part, batch by batch.
pub struct TableRows {
    rows: ParquetRecordBatchReader,
    path: PathBuf,
}

impl Iterator for TableRows {
    type Item = Result<Rows, EvidenceError>;

    /// Returns the next batch; a panic of the Parquet library is reported as a torn part.
    fn next(&mut self) -> Option<Self::Item> {
        let (rows, path) = (&mut self.rows, &self.path);
        let next = std::panic::catch_unwind(AssertUnwindSafe(|| rows.next()))
            .unwrap_or_else(|_| Some(Err(arrow_schema::ArrowError::ParseError("damage".into()))))?;
        Some(match next {
            Ok(batch) => Ok(Rows { batch, path: path.clone() }),
            Err(error) => Err(torn(path, &error.to_string())),
        })
    }
}

/// Batch of rows of a table.
#[derive(Clone, Debug)]
pub struct Rows {
    batch: RecordBatch,
    path: PathBuf,
}

impl Rows {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.batch.num_rows()
    }

    /// Returns true if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn column(&self, name: &str) -> Result<&ArrayRef, EvidenceError> {
        let found = self.batch.column_by_name(name);
        found.ok_or_else(|| torn(&self.path, &format!("no column {name}")))
    }

    fn other_type(&self, name: &str) -> EvidenceError {
        torn(&self.path, &format!("column {name} has another type than expected"))
    }

    fn numbers<T: ArrowPrimitiveType>(&self, name: &str, missing: T::Native) -> Result<Vec<T::Native>, EvidenceError> {
        let array = self.column(name)?;
        let values = array.as_primitive_opt::<T>().ok_or_else(|| self.other_type(name))?;
        if values.null_count() == 0 {
            return Ok(values.values().to_vec());
        }
        Ok(values.iter().map(|value| value.unwrap_or(missing)).collect())
    }

    /// Returns a column of whole numbers; a missing value is [`NONE`].
    ///
    /// # Errors
    /// The part cannot be read, is torn, or has no such column.
    pub fn i64s(&self, name: &str) -> Result<Vec<i64>, EvidenceError> {
        self.numbers::<Int64Type>(name, NONE)
    }

    /// Returns a column of unsigned whole numbers; a missing value is 0.
    ///
    /// # Errors
    /// The part cannot be read, is torn, or has no such column.
    pub fn u64s(&self, name: &str) -> Result<Vec<u64>, EvidenceError> {
        self.numbers::<UInt64Type>(name, 0)
    }

    /// Returns a column of small whole numbers; a missing value is 0.
    ///
    /// # Errors
    /// The part cannot be read, is torn, or has no such column.
    pub fn u32s(&self, name: &str) -> Result<Vec<u32>, EvidenceError> {
        self.numbers::<UInt32Type>(name, 0)
    }

    /// Returns a column of tiny whole numbers; a missing value is 255.
    ///
    /// # Errors
    /// The part cannot be read, is torn, or has no such column.
    pub fn u8s(&self, name: &str) -> Result<Vec<u8>, EvidenceError> {
        self.numbers::<UInt8Type>(name, u8::MAX)
    }

    /// Returns a column of flags; a missing value is false.
    ///
    /// # Errors
    /// The part cannot be read, is torn, or has no such column.
    pub fn bools(&self, name: &str) -> Result<Vec<bool>, EvidenceError> {
        let values = self.column(name)?.as_boolean_opt().ok_or_else(|| self.other_type(name))?;
        Ok(values.iter().map(|value| value.unwrap_or(false)).collect())
    }

    /// Returns a column of words as indexes, and the list of words in this batch to which they refer; `u32::MAX` marks
    /// a missing word. Plain text is accepted, too: tables that `DuckDB` wrote have no dictionaries.
    ///
    /// # Errors
    /// The part cannot be read, is torn, or has no such column.
    pub fn words(&self, name: &str) -> Result<(Vec<u32>, Vec<String>), EvidenceError> {
        let array = self.column(name)?;
        if let Some(texts) = array.as_string_opt::<i32>() {
            return Ok(numbered(texts));
        }
        let words = array.as_dictionary_opt::<UInt32Type>().ok_or_else(|| self.other_type(name))?;
        let list: &StringArray = words.values().as_string_opt().ok_or_else(|| self.other_type(name))?;
        let numbers = words.keys().iter().map(|key| key.unwrap_or(u32::MAX)).collect();
        let list = list.iter().map(|word| word.unwrap_or_default().to_owned()).collect();
        Ok((numbers, list))
    }

    /// Returns a column of texts; `None` marks a missing text.
    ///
    /// # Errors
    /// The part cannot be read, is torn, or has no such column.
    pub fn texts(&self, name: &str) -> Result<Vec<Option<String>>, EvidenceError> {
        let values: &StringArray = self.column(name)?.as_string_opt().ok_or_else(|| self.other_type(name))?;
        Ok(values.iter().map(|text| text.map(str::to_owned)).collect())
    }
}
