//! Reader of one column of numbers, with the columns that group it, from any Parquet files.
//!
//! Row groups are read in parallel. Text columns that group the rows are read as dictionaries, so each row needs only a
//! number. What this reader does not support (decimals, times, nested columns, rare compression methods) is an error,
//! and the caller then uses another reader; this reader never guesses.

use std::collections::HashMap;
use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use rayon::prelude::*;

/// Maximum number of distinct words in a grouping column.
const WORDS_MAX: usize = 100_000;
/// Name of the group of rows whose grouping column is NULL.
pub const NO_WORD: &str = "NULL";

/// Reason why a column was not read.
#[derive(Debug, thiserror::Error)]
pub enum ColumnError {
    /// The file cannot be read at all.
    #[error("{}: {reason}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// What was found instead of a readable file.
        reason: String,
    },
    /// The file is sound, but this reader does not support its content.
    #[error("{}: {reason}", path.display())]
    Unsupported {
        /// Path of the file.
        path: PathBuf,
        /// What was found that is not supported.
        reason: String,
    },
}

/// Values of one row group: integers or floats.
#[derive(Clone, Debug)]
pub enum Numbers {
    /// Whole numbers.
    Integers(Vec<i64>),
    /// Floats without NaN.
    Floats(Vec<f64>),
}

/// Values of one row group; rows without a value are left out.
#[derive(Clone, Debug)]
pub struct NumberPiece {
    /// Index of the file in the list that the caller passed.
    pub file: u32,
    /// Number of the group's first row within its file.
    pub first_row: u64,
    /// Values of the rows.
    pub numbers: Numbers,
    /// Row number of each value, counted from `first_row`; empty if every row has a value.
    pub rows: Vec<u32>,
    /// For each value, the index of its word in the first grouping column; empty if there is no such column.
    pub groups: Vec<u32>,
    /// For each value, the index of its word in the second grouping column; empty if there is no such column.
    pub blocks: Vec<u32>,
    /// For each row without a value, the index of its word in the first grouping column.
    pub missing: Vec<u32>,
}

/// A column and its groups.
#[derive(Clone, Debug, Default)]
pub struct NumberColumn {
    /// Pieces in the order of files and row groups.
    pub pieces: Vec<NumberPiece>,
    /// Words of the first grouping column.
    pub groups: Vec<String>,
    /// Words of the second grouping column.
    pub blocks: Vec<String>,
}

/// Distinct words of a grouping column over all row groups.
#[derive(Default)]
struct Words(Mutex<(Vec<String>, HashMap<String, u32>)>);

impl Words {
    fn number(&self, word: &str) -> Result<u32, String> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&number) = inner.1.get(word) {
            return Ok(number);
        }
        let number = inner.0.len();
        if number >= WORDS_MAX {
            return Err(format!("a grouping column has more than {WORDS_MAX} values"));
        }
        inner.0.push(word.to_owned());
        inner.1.insert(word.to_owned(), number as u32);
        Ok(number as u32)
    }

    fn list(self) -> Vec<String> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Reads `value` and, if named, the columns `group` and `block`. Rows with NULL or NaN are left out, and counted for
/// each group.
///
/// # Errors
/// A file cannot be read, or holds a column that this reader does not support.
pub fn read_numbers(
    paths: &[PathBuf],
    value: &str,
    group: Option<&str>,
    block: Option<&str>,
) -> Result<NumberColumn, ColumnError> {
    let names = [Some(value), group, block];
    let mut tasks = Vec::new();
    for (file, path) in paths.iter().enumerate() {
        let metadata = guarded(path, || open(path, &names))?;
        let mut first_row = 0;
        for row_group in 0..metadata.metadata().num_row_groups() {
            tasks.push((file as u32, path, metadata.clone(), row_group, first_row));
            first_row += metadata.metadata().row_group(row_group).num_rows() as u64;
        }
    }
    let words = [Words::default(), Words::default()];
    let pieces: Result<Vec<NumberPiece>, ColumnError> = tasks
        .into_par_iter()
        .map(|(file, path, metadata, row_group, first_row)| {
            let mut piece = guarded(path, || read_group(path, metadata, row_group, &names, &words))?;
            (piece.file, piece.first_row) = (file, first_row);
            Ok(piece)
        })
        .collect();
    let [groups, blocks] = words.map(Words::list);
    Ok(NumberColumn { pieces: pieces?, groups, blocks })
}

/// Runs `work`; a panic of the Parquet library is reported as a damaged file.
fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T, ColumnError>) -> Result<T, ColumnError> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(broken(path, &"damaged bytes")))
}

fn broken(path: &Path, reason: &dyn std::fmt::Display) -> ColumnError {
    ColumnError::File { path: path.to_owned(), reason: reason.to_string() }
}

fn unsupported(path: &Path, reason: impl Into<String>) -> ColumnError {
    ColumnError::Unsupported { path: path.to_owned(), reason: reason.into() }
}

/// Reads the metadata of a file, and requests that text in grouping columns be read as dictionaries.
fn open(path: &Path, names: &[Option<&str>; 3]) -> Result<ArrowReaderMetadata, ColumnError> {
    let file = File::open(path).map_err(|e| broken(path, &e))?;
    let found = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(|e| broken(path, &e))?;
    for name in names.iter().flatten() {
        if found.schema().column_with_name(name).is_none() {
            return Err(unsupported(path, format!("no column {name}")));
        }
    }
    let as_words = |field: &Arc<Field>| {
        let groups = names[1..].iter().flatten().any(|name| name == field.name());
        if groups && *field.data_type() == DataType::Utf8 {
            let words = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
            return Arc::new(field.as_ref().clone().with_data_type(words));
        }
        field.clone()
    };
    let fields: Vec<Arc<Field>> = found.schema().fields().iter().map(as_words).collect();
    let schema = Schema::new_with_metadata(fields, found.schema().metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    ArrowReaderMetadata::try_new(found.metadata().clone(), options).map_err(|e| unsupported(path, e.to_string()))
}

fn read_group(
    path: &Path,
    metadata: ArrowReaderMetadata,
    row_group: usize,
    names: &[Option<&str>; 3],
    words: &[Words; 2],
) -> Result<NumberPiece, ColumnError> {
    let file = File::open(path).map_err(|e| broken(path, &e))?;
    let rows = metadata.metadata().row_group(row_group).num_rows() as usize;
    let wanted = ProjectionMask::columns(metadata.parquet_schema(), names.iter().flatten().copied());
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
        .with_projection(wanted)
        .with_row_groups(vec![row_group])
        .with_batch_size(1 << 16)
        .build()
        .map_err(|e| unsupported(path, e.to_string()))?;
    let mut columns = Columns::with_capacity(rows);
    for batch in reader {
        // An unknown compression shows itself only here; a torn page too. Both are told by the
        // reader that is asked next.
        let batch = batch.map_err(|e| unsupported(path, e.to_string()))?;
        let column = |at: usize| names[at].and_then(|name| batch.column_by_name(name));
        let value = column(0).ok_or_else(|| unsupported(path, "a nested column"))?;
        columns.append(value, [column(1), column(2)], words).map_err(|reason| unsupported(path, reason))?;
    }
    Ok(columns.finish())
}

/// Columns of a row group that is being read.
struct Columns {
    integers: Vec<i64>,
    floats: Vec<f64>,
    labels: [Vec<u32>; 2],
    rows: Vec<u32>,
    missing: Vec<u32>,
    read: u32,
}

impl Columns {
    fn with_capacity(rows: usize) -> Self {
        Self {
            integers: Vec::with_capacity(rows),
            floats: Vec::new(),
            labels: [Vec::new(), Vec::new()],
            rows: Vec::new(),
            missing: Vec::new(),
            read: 0,
        }
    }

    fn len(&self) -> usize {
        self.integers.len() + self.floats.len()
    }

    fn append(&mut self, value: &ArrayRef, labels: [Option<&ArrayRef>; 2], words: &[Words; 2]) -> Result<(), String> {
        let before = self.len();
        let mut kept: Option<Vec<u32>> = None;
        if value.null_count() > 0 || has_nan(value) {
            kept = Some((0..value.len()).filter(|&i| is_value(value, i)).map(|i| i as u32).collect());
        }
        self.numbers(value, kept.as_deref())?;
        let left_out = value.len() - (self.len() - before);
        if left_out > 0 && self.rows.is_empty() {
            self.rows = (0..before as u32).collect();
        }
        if left_out > 0 || !self.rows.is_empty() {
            let first = self.read;
            match &kept {
                Some(kept) => self.rows.extend(kept.iter().map(|i| first + i)),
                None => self.rows.extend(first..first + value.len() as u32),
            }
        }
        for (at, array) in labels.into_iter().enumerate() {
            let Some(array) = array else { continue };
            let numbers = label(array, &words[at])?;
            match &kept {
                Some(kept) => {
                    self.labels[at].extend(kept.iter().map(|&i| numbers[i as usize]));
                    if at == 0 {
                        let mut kept = kept.iter().peekable();
                        self.missing.extend(
                            numbers
                                .iter()
                                .enumerate()
                                .filter_map(|(i, &n)| kept.next_if(|k| **k as usize == i).is_none().then_some(n)),
                        );
                    }
                }
                None => self.labels[at].extend(numbers),
            }
        }
        if labels[0].is_none() {
            self.missing.resize(self.missing.len() + left_out, 0);
        }
        self.read += value.len() as u32;
        Ok(())
    }

    fn numbers(&mut self, array: &ArrayRef, kept: Option<&[u32]>) -> Result<(), String> {
        match array.data_type() {
            DataType::Int8 => take::<Int8Type, _>(&mut self.integers, array, kept),
            DataType::Int16 => take::<Int16Type, _>(&mut self.integers, array, kept),
            DataType::Int32 => take::<Int32Type, _>(&mut self.integers, array, kept),
            DataType::Int64 => take::<Int64Type, _>(&mut self.integers, array, kept),
            DataType::UInt8 => take::<UInt8Type, _>(&mut self.integers, array, kept),
            DataType::UInt16 => take::<UInt16Type, _>(&mut self.integers, array, kept),
            DataType::UInt32 => take::<UInt32Type, _>(&mut self.integers, array, kept),
            DataType::Float32 => take::<Float32Type, _>(&mut self.floats, array, kept),
            DataType::Float64 => take::<Float64Type, _>(&mut self.floats, array, kept),
            other => return Err(format!("values of type {other}")),
        }
        Ok(())
    }

    fn finish(self) -> NumberPiece {
        let [groups, blocks] = self.labels;
        let numbers =
            if self.floats.is_empty() { Numbers::Integers(self.integers) } else { Numbers::Floats(self.floats) };
        let (rows, missing) = (self.rows, self.missing);
        NumberPiece { file: 0, first_row: 0, numbers, rows, groups, blocks, missing }
    }
}

fn take<T, N>(place: &mut Vec<N>, array: &ArrayRef, kept: Option<&[u32]>)
where
    T: ArrowPrimitiveType,
    N: From<T::Native>,
{
    let values = array.as_primitive::<T>().values();
    match kept {
        None => place.extend(values.iter().map(|&v| N::from(v))),
        Some(kept) => place.extend(kept.iter().map(|&i| N::from(values[i as usize]))),
    }
}

fn has_nan(array: &ArrayRef) -> bool {
    match array.data_type() {
        DataType::Float64 => array.as_primitive::<Float64Type>().values().iter().any(|v| v.is_nan()),
        DataType::Float32 => array.as_primitive::<Float32Type>().values().iter().any(|v| v.is_nan()),
        _ => false,
    }
}

fn is_value(array: &ArrayRef, at: usize) -> bool {
    array.is_valid(at)
        && match array.data_type() {
            DataType::Float64 => !array.as_primitive::<Float64Type>().value(at).is_nan(),
            DataType::Float32 => !array.as_primitive::<Float32Type>().value(at).is_nan(),
            _ => true,
        }
}

/// Returns the word of each row of a grouping column, as an index into `words`.
fn label(array: &ArrayRef, words: &Words) -> Result<Vec<u32>, String> {
    match array.data_type() {
        DataType::Dictionary(_, values) if **values == DataType::Utf8 => dictionary(array, words),
        DataType::Boolean => {
            let word = |value: Option<bool>| match value {
                Some(true) => words.number("true"),
                Some(false) => words.number("false"),
                None => words.number(NO_WORD),
            };
            array.as_boolean().iter().map(word).collect()
        }
        DataType::Int8 => whole::<Int8Type>(array, words),
        DataType::Int16 => whole::<Int16Type>(array, words),
        DataType::Int32 => whole::<Int32Type>(array, words),
        DataType::Int64 => whole::<Int64Type>(array, words),
        DataType::UInt8 => whole::<UInt8Type>(array, words),
        DataType::UInt16 => whole::<UInt16Type>(array, words),
        DataType::UInt32 => whole::<UInt32Type>(array, words),
        other => Err(format!("groups of type {other}")),
    }
}

fn dictionary(array: &ArrayRef, words: &Words) -> Result<Vec<u32>, String> {
    let dictionary = array.as_any_dictionary();
    let texts = dictionary.values().as_string::<i32>();
    let numbers: Result<Vec<u32>, String> = texts.iter().map(|text| words.number(text.unwrap_or(NO_WORD))).collect();
    let numbers = numbers?;
    if numbers.is_empty() {
        let none = words.number(NO_WORD)?;
        return Ok(vec![none; array.len()]);
    }
    let keys = dictionary.normalized_keys();
    if array.null_count() == 0 {
        return Ok(keys.into_iter().map(|key| numbers[key]).collect());
    }
    let none = words.number(NO_WORD)?;
    let at = |(i, key): (usize, usize)| if array.is_valid(i) { numbers[key] } else { none };
    Ok(keys.into_iter().enumerate().map(at).collect())
}

fn whole<T>(array: &ArrayRef, words: &Words) -> Result<Vec<u32>, String>
where
    T: ArrowPrimitiveType,
    T::Native: Into<i64>,
{
    let (mut known, mut last) = (HashMap::new(), None);
    let mut number = |value: Option<i64>| match last {
        Some((seen, number)) if seen == value => Ok(number),
        _ => {
            let number = if let Some(&number) = known.get(&value) {
                number
            } else {
                let word = value.map_or(NO_WORD.to_owned(), |v| v.to_string());
                *known.entry(value).or_insert(words.number(&word)?)
            };
            last = Some((value, number));
            Ok(number)
        }
    };
    array.as_primitive::<T>().iter().map(|value| number(value.map(Into::into))).collect()
}
