//! Reader of `calls` parts: columns of numbers for the statistics kernels.

use std::collections::HashMap;
use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, ArrowPrimitiveType, Int64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_buffer::ArrowNativeType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::{EvidenceError, NONE};

/// Calls of one part as columns of the same length. Columns of words contain indexes into `words`.
#[derive(Clone, Debug, Default)]
pub struct CallColumns {
    /// Distinct words of the columns `arm`, `kind`, `statement` and `error`.
    pub words: Vec<String>,
    /// Name of the arm, as an index into `words`.
    pub arm: Vec<u32>,
    /// Block number.
    pub block: Vec<u32>,
    /// Slice number in the block.
    pub slice: Vec<u32>,
    /// Session number.
    pub session: Vec<u16>,
    /// Kind, as an index into `words`.
    pub kind: Vec<u32>,
    /// Statement, as an index into `words`.
    pub statement: Vec<u32>,
    /// Error code, as an index into `words`; `u32::MAX` for none.
    pub error: Vec<u32>,
    /// True if the plan lists the error as an expected outcome; `None` if the part does not record this.
    pub expected: Vec<Option<bool>>,
    /// Intended start [ns since the UNIX epoch], or [`NONE`].
    pub intended_ns: Vec<i64>,
    /// Actual start [ns since the UNIX epoch].
    pub started_ns: Vec<i64>,
    /// Service time [ns].
    pub elapsed_ns: Vec<i64>,
    /// Number of rows, or [`NONE`].
    pub rows: Vec<i64>,
    /// Redo written since the session's last query of the log position [bytes], or [`NONE`].
    pub redo_bytes: Vec<i64>,
    /// Redo not yet flushed when the commit began [bytes], or [`NONE`].
    pub unflushed_bytes: Vec<i64>,
}

/// Names of the columns that can be read from a part of calls.
const ALL: [&str; 14] = [
    "arm",
    "block",
    "slice",
    "session",
    "kind",
    "statement",
    "intended_ns",
    "started_ns",
    "elapsed_ns",
    "rows",
    "redo_bytes",
    "unflushed_bytes",
    "error",
    "expected",
];

/// Reads one part of calls; a panic of the Parquet library is reported as a torn part.
///
/// # Errors
/// The part cannot be read, is torn, or lacks a column.
pub fn read_calls(path: &Path) -> Result<CallColumns, EvidenceError> {
    read_columns(path, &ALL)
}

/// Reads the named columns of a part of calls; the other columns stay empty.
///
/// # Errors
/// The part cannot be read, is torn, or has no such column.
pub fn read_columns(path: &Path, names: &[&str]) -> Result<CallColumns, EvidenceError> {
    let file = File::open(path).map_err(|e| EvidenceError::io(path, e))?;
    std::panic::catch_unwind(AssertUnwindSafe(|| read_open(path, file, names)))
        .unwrap_or_else(|_| Err(torn(path, "damaged bytes")))
}

fn read_open(path: &Path, file: File, names: &[&str]) -> Result<CallColumns, EvidenceError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| EvidenceError::parquet(path, e))?;
    let wanted = ProjectionMask::columns(builder.parquet_schema(), names.iter().copied());
    let reader = builder
        .with_projection(wanted)
        .with_batch_size(1 << 16)
        .build()
        .map_err(|e| EvidenceError::parquet(path, e))?;
    let mut columns = CallColumns::default();
    let mut words = Words::default();
    for batch in reader {
        let batch = batch.map_err(|e| torn(path, &e.to_string()))?;
        columns.append(&batch, names, &mut words).map_err(|reason| torn(path, &reason))?;
    }
    columns.words = words.list;
    Ok(columns)
}

fn torn(path: &Path, reason: &str) -> EvidenceError {
    EvidenceError::Part { path: path.to_owned(), reason: reason.to_owned() }
}

impl CallColumns {
    /// Returns the index of `word` in `words`, or `None` if it does not occur.
    pub fn word(&self, word: &str) -> Option<u32> {
        self.words.iter().position(|w| w == word).map(|at| at as u32)
    }

    fn append(&mut self, batch: &RecordBatch, names: &[&str], words: &mut Words) -> Result<(), String> {
        for &name in names {
            if name == "expected" && batch.column_by_name(name).is_none() {
                // Parts of earlier versions.
                self.expected.resize(self.expected.len() + batch.num_rows(), None);
                continue;
            }
            let array = batch.column_by_name(name).ok_or_else(|| format!("no column {name}"))?;
            let fits = match name {
                "arm" => spell::<UInt16Type>(&mut self.arm, array, words),
                "statement" => spell::<UInt16Type>(&mut self.statement, array, words),
                "error" => codes(&mut self.error, array, words),
                "expected" => array.as_boolean_opt().map(|flags| self.expected.extend(flags)),
                "kind" => spell::<UInt8Type>(&mut self.kind, array, words),
                "block" => copy::<UInt32Type>(&mut self.block, array),
                "slice" => copy::<UInt32Type>(&mut self.slice, array),
                "session" => copy::<UInt16Type>(&mut self.session, array),
                "intended_ns" => optional(&mut self.intended_ns, array),
                "started_ns" => optional(&mut self.started_ns, array),
                "elapsed_ns" => optional(&mut self.elapsed_ns, array),
                "rows" => optional(&mut self.rows, array),
                "redo_bytes" => optional(&mut self.redo_bytes, array),
                "unflushed_bytes" => optional(&mut self.unflushed_bytes, array),
                _ => None,
            };
            fits.ok_or_else(|| format!("column {name} has another type than calls have"))?;
        }
        Ok(())
    }
}

/// Appends the word of each row of a dictionary column as an index into `words`; `u32::MAX` if it is missing.
fn spell<K: ArrowDictionaryKeyType>(place: &mut Vec<u32>, array: &ArrayRef, words: &mut Words) -> Option<()> {
    let dictionary = array.as_dictionary_opt::<K>()?;
    let values: &StringArray = dictionary.values().as_string_opt()?;
    let numbers: Vec<u32> = values.iter().map(|v| words.number(v.unwrap_or_default())).collect();
    let keys = dictionary.keys();
    if keys.null_count() == keys.len() {
        place.resize(place.len() + keys.len(), u32::MAX);
    } else if keys.null_count() == 0 {
        place.extend(keys.values().iter().map(|key| numbers[key.as_usize()]));
    } else {
        place.extend(keys.iter().map(|key| key.map_or(u32::MAX, |k| numbers[k.as_usize()])));
    }
    Some(())
}

/// Appends the word of each row of a text column as an index into `words`; `u32::MAX` if it is missing.
fn codes(place: &mut Vec<u32>, array: &ArrayRef, words: &mut Words) -> Option<()> {
    let texts: &StringArray = array.as_string_opt()?;
    if texts.null_count() == texts.len() {
        place.resize(place.len() + texts.len(), u32::MAX);
    } else {
        place.extend(texts.iter().map(|text| text.map_or(u32::MAX, |t| words.number(t))));
    }
    Some(())
}

/// Appends the values of a column in which no value is missing.
fn copy<T: ArrowPrimitiveType>(place: &mut Vec<T::Native>, array: &ArrayRef) -> Option<()> {
    place.extend_from_slice(array.as_primitive_opt::<T>()?.values());
    Some(())
}

/// Appends the values of a column; a missing value becomes [`NONE`].
fn optional(place: &mut Vec<i64>, array: &ArrayRef) -> Option<()> {
    let values = array.as_primitive_opt::<Int64Type>()?;
    if values.null_count() == 0 {
        place.extend_from_slice(values.values());
    } else if values.null_count() == values.len() {
        place.resize(place.len() + values.len(), NONE);
    } else {
        place.extend(values.iter().map(|v| v.unwrap_or(NONE)));
    }
    Some(())
}

/// Distinct words in the order of their first appearance.
#[derive(Default)]
struct Words {
    list: Vec<String>,
    index: HashMap<String, u32>,
}

impl Words {
    fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.index.get(word) {
            return *number;
        }
        let number = self.list.len() as u32;
        self.list.push(word.to_owned());
        self.index.insert(word.to_owned(), number);
        number
    }
}
