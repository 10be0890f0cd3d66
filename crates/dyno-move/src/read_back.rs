//! Reads a Parquet file again and hashes its rows, as they were hashed when they came.

use std::fs::File;
use std::path::Path;

use arrow_schema::FieldRef;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use serde::Serialize;

use crate::encode::pg_type;
use crate::error::MoveError;
use crate::hash::{Tally, hash_batch};

/// Rows of a batch.
const BATCH_ROWS: usize = 16_384;

/// A column of a file.
#[derive(Debug, Clone, Serialize)]
pub struct FileColumn {
    /// Its name.
    pub name: String,
    /// Its Arrow type in words.
    pub arrow: String,
    /// The PostgreSQL type that takes its values as they are; `None`: dbdyno does not load it.
    pub holds: Option<String>,
    /// The PostgreSQL type that it came from, where the file notes it.
    pub pg_type: Option<String>,
}

/// The columns of a file, and its rows.
pub fn describe(path: &Path) -> Result<(Vec<FileColumn>, u64), MoveError> {
    let file = File::open(path).map_err(|e| MoveError::io(path, &e))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| MoveError::parquet(path, &e))?;
    let rows = builder.metadata().file_metadata().num_rows().max(0) as u64;
    let column = |field: &FieldRef| FileColumn {
        name: field.name().clone(),
        arrow: field.data_type().to_string(),
        holds: pg_type(field.data_type()),
        pg_type: field.metadata().get("dbdyno.pg_type").cloned(),
    };
    Ok((builder.schema().fields().iter().map(column).collect(), rows))
}

/// The batches of a file.
pub fn open(path: &Path) -> Result<ParquetRecordBatchReader, MoveError> {
    let file = File::open(path).map_err(|e| MoveError::io(path, &e))?;
    ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.with_batch_size(BATCH_ROWS).build())
        .map_err(|e| MoveError::parquet(path, &e))
}

/// Rows and hash of a file.
pub fn read_back(path: &Path) -> Result<Tally, MoveError> {
    let mut tally = Tally::default();
    for batch in open(path)? {
        let batch = batch.map_err(|e| MoveError::File { path: path.into(), error: e.to_string() })?;
        tally = tally.plus(hash_batch(&batch)?);
    }
    Ok(tally)
}
