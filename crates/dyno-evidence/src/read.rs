//! The reader of `calls` parts: columns of numbers, for the kernels of statistics.

use std::collections::HashMap;
use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt16Type, UInt32Type};
use arrow_array::{Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::{EvidenceError, NONE};

/// Calls of one part, a column each, all of one length. Words are numbers into `words`.
#[derive(Clone, Debug, Default)]
pub struct CallColumns {
    /// Distinct words of the columns `arm`, `kind`, `statement` and `error`.
    pub words: Vec<String>,
    /// Arm (word).
    pub arm: Vec<u32>,
    /// Block number.
    pub block: Vec<u32>,
    /// Slice number in the block.
    pub slice: Vec<u32>,
    /// Session number.
    pub session: Vec<u16>,
    /// Kind (word).
    pub kind: Vec<u32>,
    /// Statement (word).
    pub statement: Vec<u32>,
    /// Error code (word), `u32::MAX` for none.
    pub error: Vec<u32>,
    /// Intended start or [`NONE`].
    pub intended_ns: Vec<i64>,
    /// Real start.
    pub started_ns: Vec<i64>,
    /// Service time.
    pub elapsed_ns: Vec<i64>,
    /// Rows or [`NONE`].
    pub rows: Vec<i64>,
    /// Redo since the last reading or [`NONE`].
    pub redo_bytes: Vec<i64>,
    /// Redo not yet flushed or [`NONE`].
    pub unflushed_bytes: Vec<i64>,
}

/// Reads one part of calls. Bytes that make the Parquet library panic are a torn part, too.
pub fn read_calls(path: &Path) -> Result<CallColumns, EvidenceError> {
    let file = File::open(path).map_err(|e| EvidenceError::io(path, e))?;
    std::panic::catch_unwind(AssertUnwindSafe(|| read_open(path, file)))
        .unwrap_or_else(|_| Err(torn(path, "damaged bytes")))
}

fn read_open(path: &Path, file: File) -> Result<CallColumns, EvidenceError> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.with_batch_size(1 << 16).build())
        .map_err(|e| EvidenceError::parquet(path, e))?;
    let mut columns = CallColumns::default();
    let mut words = Words::default();
    for batch in reader {
        let batch = batch.map_err(|e| torn(path, &e.to_string()))?;
        columns.append(&batch, &mut words).map_err(|reason| torn(path, &reason))?;
    }
    columns.words = words.list;
    Ok(columns)
}

fn torn(path: &Path, reason: &str) -> EvidenceError {
    EvidenceError::Part { path: path.to_owned(), reason: reason.to_owned() }
}

impl CallColumns {
    /// The number that stands for `word`, if it occurs.
    pub fn word(&self, word: &str) -> Option<u32> {
        self.words.iter().position(|w| w == word).map(|at| at as u32)
    }

    fn append(&mut self, batch: &RecordBatch, words: &mut Words) -> Result<(), String> {
        self.arm.extend(spell(batch, "arm", words)?);
        self.kind.extend(spell(batch, "kind", words)?);
        self.statement.extend(spell(batch, "statement", words)?);
        self.error.extend(spell(batch, "error", words)?);
        let u32s = |name| -> Result<_, String> {
            let array = column(batch, name)?.as_primitive_opt::<UInt32Type>();
            Ok(array.ok_or_else(|| wrong(name))?.values().to_vec())
        };
        self.block.extend(u32s("block")?);
        self.slice.extend(u32s("slice")?);
        let sessions = column(batch, "session")?.as_primitive_opt::<UInt16Type>();
        self.session.extend(sessions.ok_or_else(|| wrong("session"))?.values());
        for (name, place) in [
            ("intended_ns", &mut self.intended_ns),
            ("started_ns", &mut self.started_ns),
            ("elapsed_ns", &mut self.elapsed_ns),
            ("rows", &mut self.rows),
            ("redo_bytes", &mut self.redo_bytes),
            ("unflushed_bytes", &mut self.unflushed_bytes),
        ] {
            let array = column(batch, name)?.as_primitive_opt::<Int64Type>();
            place.extend(array.ok_or_else(|| wrong(name))?.iter().map(|v| v.unwrap_or(NONE)));
        }
        Ok(())
    }
}

/// Numbers of the words of a dictionary column; a missing value is `u32::MAX`.
fn spell(batch: &RecordBatch, name: &str, words: &mut Words) -> Result<Vec<u32>, String> {
    let array = column(batch, name)?;
    let DataType::Dictionary(_, _) = array.data_type() else { return Err(wrong(name)) };
    let dictionary = array.as_any_dictionary();
    let values: &StringArray = dictionary.values().as_string_opt().ok_or_else(|| wrong(name))?;
    let numbers: Vec<u32> = values.iter().map(|v| words.number(v.unwrap_or_default())).collect();
    if numbers.is_empty() {
        return Ok(vec![u32::MAX; array.len()]);
    }
    let keys = dictionary.normalized_keys();
    Ok(keys
        .into_iter()
        .enumerate()
        .map(|(row, key)| if array.is_null(row) { u32::MAX } else { numbers[key] })
        .collect())
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

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a dyn Array, String> {
    batch.column_by_name(name).map(AsRef::as_ref).ok_or_else(|| format!("column {name} is missing"))
}

fn wrong(name: &str) -> String {
    format!("column {name} has another type than calls have")
}
