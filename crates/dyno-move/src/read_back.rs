//! Reads a Parquet file again and hashes its rows, as they were hashed when they came.

use std::fs::File;
use std::path::Path;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::error::MoveError;
use crate::hash::{Tally, hash_batch};

/// Rows of a batch.
const BATCH_ROWS: usize = 16_384;

/// Rows and hash of a file.
pub fn read_back(path: &Path) -> Result<Tally, MoveError> {
    let file = File::open(path).map_err(|e| MoveError::io(path, &e))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.with_batch_size(BATCH_ROWS).build())
        .map_err(|e| MoveError::parquet(path, &e))?;
    let mut tally = Tally::default();
    for batch in reader {
        let batch = batch.map_err(|e| MoveError::File { path: path.into(), error: e.to_string() })?;
        tally = tally.plus(hash_batch(&batch)?);
    }
    Ok(tally)
}
