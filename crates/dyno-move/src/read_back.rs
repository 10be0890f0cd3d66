//! Reads files: Parquet, and both forms of Arrow IPC. Hashes their rows as they were hashed when they came.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::reader::{FileReader as ArrowFile, StreamReader as ArrowStream};
use arrow_schema::{ArrowError, FieldRef, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde::Serialize;

use crate::encode::pg_type;
use crate::error::MoveError;
use crate::hash::{Tally, hash_batch};

/// Rows of a batch.
const BATCH_ROWS: usize = 16_384;
/// Bytes of a batch that is only hashed.
const BATCH_BYTES: usize = 8 << 20;

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

/// The columns of a file, and its rows where its head tells them.
pub fn describe(path: &Path) -> Result<(Vec<FileColumn>, Option<u64>), MoveError> {
    let batches = open(path, usize::MAX)?;
    let column = |field: &FieldRef| FileColumn {
        name: field.name().clone(),
        arrow: field.data_type().to_string(),
        holds: pg_type(field.data_type()),
        pg_type: field.metadata().get("dbdyno.pg_type").cloned(),
    };
    Ok((batches.schema().fields().iter().map(column).collect(), batches.rows))
}

/// The batches of a Parquet or Arrow file.
pub struct Batches {
    reader: Box<dyn RecordBatchReader + Send>,
    rows: Option<u64>,
}

impl Batches {
    fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.reader.next()
    }
}

/// Opens a file by what it begins with. Parquet gives batches of so many bytes at most, as far as its head tells how
/// wide rows are.
pub fn open(path: &Path, bytes_max: usize) -> Result<Batches, MoveError> {
    let mut file = File::open(path).map_err(|e| MoveError::io(path, &e))?;
    let mut magic = [0; 6];
    let mut read = 0;
    while read < magic.len() {
        match file.read(&mut magic[read..]).map_err(|e| MoveError::io(path, &e))? {
            0 => break,
            more => read += more,
        }
    }
    file.rewind().map_err(|e| MoveError::io(path, &e))?;
    match &magic {
        b"ARROW1" => {
            let reader = ArrowFile::try_new(BufReader::new(file), None).map_err(|e| MoveError::arrow(path, &e))?;
            Ok(Batches { reader: Box::new(reader), rows: None })
        }
        [0xff, 0xff, 0xff, 0xff, ..] => {
            let reader = ArrowStream::try_new(BufReader::new(file), None).map_err(|e| MoveError::arrow(path, &e))?;
            Ok(Batches { reader: Box::new(reader), rows: None })
        }
        _ => parquet(path, file, bytes_max),
    }
}

fn parquet(path: &Path, file: File, bytes_max: usize) -> Result<Batches, MoveError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| MoveError::parquet(path, &e))?;
    let rows = builder.metadata().file_metadata().num_rows().max(0) as u64;
    let widest = builder.metadata().row_groups().iter().map(|group| {
        let bytes = group.columns().iter().map(|column| column.uncompressed_size().max(0) as u64).sum::<u64>();
        bytes / group.num_rows().max(1) as u64
    });
    let batch_rows = (bytes_max as u64 / widest.max().unwrap_or(0).max(1)).clamp(1, BATCH_ROWS as u64);
    let reader = builder.with_batch_size(batch_rows as usize).build().map_err(|e| MoveError::parquet(path, &e))?;
    Ok(Batches { reader: Box::new(reader), rows: Some(rows) })
}

/// Rows and hash of a file.
pub fn read_back(path: &Path) -> Result<Tally, MoveError> {
    let mut tally = Tally::default();
    for batch in open(path, BATCH_BYTES)? {
        let batch = batch.map_err(|e| MoveError::File { path: path.into(), error: e.to_string() })?;
        tally = tally.plus(hash_batch(&batch)?);
    }
    Ok(tally)
}
