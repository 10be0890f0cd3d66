//! Reads a Parquet file again and hashes its rows, as they were hashed when they came.
//!
//! A file may come from anybody. Texts are read as views into its pages: a value that a dictionary holds once and a
//! million rows name is in memory once. Damage that the reader of Parquet panics at is an error as any other.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
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
    let (_, metadata) = guarded(path, || load(path))?;
    let rows = metadata.metadata().file_metadata().num_rows().max(0) as u64;
    let column = |field: &FieldRef| FileColumn {
        name: field.name().clone(),
        arrow: field.data_type().to_string(),
        holds: pg_type(field.data_type()),
        pg_type: field.metadata().get("dbdyno.pg_type").cloned(),
    };
    Ok((metadata.schema().fields().iter().map(column).collect(), rows))
}

/// The batches of a file.
#[derive(Debug)]
pub struct Batches {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, MoveError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Self { path, reader } = self;
        let next =
            || reader.next().transpose().map_err(|e| MoveError::File { path: path.clone(), error: e.to_string() });
        guarded(path, next).transpose()
    }
}

/// Opens a file for its batches.
pub fn open(path: &Path) -> Result<Batches, MoveError> {
    let reader = guarded(path, || {
        let (file, plain) = load(path)?;
        let options = ArrowReaderOptions::new().with_schema(viewed(plain.schema()));
        ArrowReaderMetadata::try_new(Arc::clone(plain.metadata()), options)
            .map(|metadata| ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata))
            .and_then(|builder| builder.with_batch_size(BATCH_ROWS).build())
            .map_err(|e| MoveError::parquet(path, &e))
    })?;
    Ok(Batches { path: path.into(), reader })
}

/// Rows and hash of a file.
pub fn read_back(path: &Path) -> Result<Tally, MoveError> {
    let mut tally = Tally::default();
    for batch in open(path)? {
        tally = tally.plus(hash_batch(&batch?)?);
    }
    Ok(tally)
}

fn load(path: &Path) -> Result<(File, ArrowReaderMetadata), MoveError> {
    let file = File::open(path).map_err(|e| MoveError::io(path, &e))?;
    let metadata =
        ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(|e| MoveError::parquet(path, &e))?;
    Ok((file, metadata))
}

/// The schema with views in the place of texts and bytes.
fn viewed(schema: &SchemaRef) -> SchemaRef {
    let view = |field: &FieldRef| match field.data_type() {
        DataType::Utf8 => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View)),
        DataType::Binary => Arc::new(field.as_ref().clone().with_data_type(DataType::BinaryView)),
        _ => Arc::clone(field),
    };
    let fields: Vec<FieldRef> = schema.fields().iter().map(view).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// What `read` gives; a panic in it as an error.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, MoveError>) -> Result<T, MoveError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(MoveError::File { path: path.into(), error: "is damaged: its pages do not fit what its head says".into() })
    })
}
