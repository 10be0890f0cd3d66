//! Reading of files (Parquet and both forms of Arrow IPC); the hash of the rows is the same as when they were written.
//!
//! A file may come from anybody, so a panic of a reader on damaged data becomes an error. Texts in Parquet are read as
//! views into its pages, so a dictionary value to which a million rows refer is in memory only once.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::reader::{FileReader as ArrowFile, StreamReader as ArrowStream};
use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::RowGroupMetaData;
use serde::Serialize;

use crate::encode::pg_type;
use crate::error::MoveError;
use crate::hash::{Tally, hash_batch};
use crate::lines::mariadb_type;

/// Largest number of rows in a batch.
const BATCH_ROWS: usize = 16_384;
/// Size of a batch that is only hashed [bytes].
const BATCH_BYTES: usize = 8 << 20;

type Reader = Box<dyn RecordBatchReader + Send>;

/// Column of a file.
#[derive(Debug, Clone, Serialize)]
pub struct FileColumn {
    /// Name of the column.
    pub name: String,
    /// Arrow type, as text.
    pub arrow: String,
    /// PostgreSQL type that can hold the column's values exactly; `None` if dbdyno does not load the type.
    pub holds: Option<String>,
    /// PostgreSQL type of the original column, if the file records it.
    pub pg_type: Option<String>,
    /// Type of a MariaDB staging column that can hold the column's values exactly.
    pub staged: Option<String>,
    /// MariaDB type of the original column, if the file records it.
    pub mariadb_type: Option<String>,
}

/// Returns the columns of a file, and its number of rows if its metadata has it.
///
/// # Errors
/// The file cannot be read.
pub fn describe(path: &Path) -> Result<(Vec<FileColumn>, Option<u64>), MoveError> {
    let (schema, rows) = guarded(path, || match form(path)? {
        (Form::Parquet, file) => {
            let metadata = load(path, &file)?;
            let rows = metadata.metadata().file_metadata().num_rows().max(0) as u64;
            Ok((Arc::clone(metadata.schema()), Some(rows)))
        }
        (form, file) => Ok((arrow(path, form, file)?.schema(), None)),
    })?;
    let column = |field: &FieldRef| FileColumn {
        name: field.name().clone(),
        arrow: field.data_type().to_string(),
        holds: pg_type(field.data_type()),
        pg_type: field.metadata().get("dbdyno.pg_type").cloned(),
        staged: mariadb_type(field.data_type()),
        mariadb_type: field.metadata().get("dbdyno.mariadb_type").cloned(),
    };
    Ok((schema.fields().iter().map(column).collect(), rows))
}

/// Iterator over the batches of a file.
pub struct Batches {
    path: PathBuf,
    reader: Reader,
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

/// Returns the number of rows and the compressed bytes of each row group; empty for a file without row groups.
///
/// # Errors
/// The file cannot be read.
pub fn groups(path: &Path) -> Result<Vec<(u64, u64)>, MoveError> {
    guarded(path, || match form(path)? {
        (Form::Parquet, file) => {
            let of = |group: &RowGroupMetaData| (group.num_rows().max(0) as u64, group.compressed_size().max(0) as u64);
            Ok(load(path, &file)?.metadata().row_groups().iter().map(of).collect())
        }
        _ => Ok(Vec::new()),
    })
}

/// Opens a file to iterate over its batches.
///
/// Batches of Parquet have at most `bytes_max` bytes, as far as the metadata shows how wide rows are. `groups`
/// restricts the file to row groups from the first number up to, but not including, the second.
///
/// # Errors
/// The file cannot be read, or does not have these row groups.
pub fn open(path: &Path, bytes_max: usize, groups: Option<(usize, usize)>) -> Result<Batches, MoveError> {
    let reader = guarded(path, || match (form(path)?, groups) {
        ((Form::Parquet, file), groups) => parquet(path, file, bytes_max, groups),
        ((form, file), None) => arrow(path, form, file),
        (_, Some(_)) => Err(MoveError::File { path: path.into(), error: "has no row groups".into() }),
    })?;
    Ok(Batches { path: path.into(), reader })
}

#[derive(Clone, Copy)]
enum Form {
    Parquet,
    Arrow,
    Stream,
}

/// Returns the form of a file, which its first bytes show, and the open file.
fn form(path: &Path) -> Result<(Form, File), MoveError> {
    let mut file = File::open(path).map_err(|e| MoveError::io(path, &e))?;
    let mut magic = Vec::with_capacity(6);
    (&mut file).take(6).read_to_end(&mut magic).map_err(|e| MoveError::io(path, &e))?;
    file.rewind().map_err(|e| MoveError::io(path, &e))?;
    let form = match magic.as_slice() {
        b"ARROW1" => Form::Arrow,
        [0xff, 0xff, 0xff, 0xff, ..] => Form::Stream,
        _ => Form::Parquet,
    };
    Ok((form, file))
}

fn arrow(path: &Path, form: Form, file: File) -> Result<Reader, MoveError> {
    let file = BufReader::new(file);
    match form {
        Form::Arrow => ArrowFile::try_new(file, None).map(|reader| Box::new(reader) as Reader),
        Form::Stream | Form::Parquet => ArrowStream::try_new(file, None).map(|reader| Box::new(reader) as Reader),
    }
    .map_err(|e| MoveError::arrow(path, &e))
}

fn parquet(path: &Path, file: File, bytes_max: usize, groups: Option<(usize, usize)>) -> Result<Reader, MoveError> {
    let plain = load(path, &file)?;
    let groups: Vec<usize> = match groups {
        Some((first, end)) if first <= end && end <= plain.metadata().num_row_groups() => (first..end).collect(),
        Some(_) => {
            return Err(MoveError::File {
                path: path.into(),
                error: "no longer has the row groups that were written".into(),
            });
        }
        None => (0..plain.metadata().num_row_groups()).collect(),
    };
    let widest = plain.metadata().row_groups().iter().map(|group| {
        let bytes = group.columns().iter().map(|column| column.uncompressed_size().max(0) as u64);
        bytes.fold(0, u64::saturating_add) / group.num_rows().max(1) as u64
    });
    let batch_rows = (bytes_max as u64 / widest.max().unwrap_or(0).max(1)).clamp(1, BATCH_ROWS as u64);
    let options = ArrowReaderOptions::new().with_schema(viewed(plain.schema()));
    ArrowReaderMetadata::try_new(Arc::clone(plain.metadata()), options)
        .map(|metadata| ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata))
        .and_then(|builder| builder.with_batch_size(batch_rows as usize).with_row_groups(groups).build())
        .map(|reader| Box::new(reader) as Reader)
        .map_err(|e| MoveError::parquet(path, &e))
}

/// Returns the number of rows of a file and their hash.
///
/// # Errors
/// The file cannot be read.
pub fn read_back(path: &Path) -> Result<Tally, MoveError> {
    let mut tally = Tally::default();
    for batch in open(path, BATCH_BYTES, None)? {
        tally = tally.plus(hash_batch(&batch?)?);
    }
    Ok(tally)
}

fn load(path: &Path, file: &File) -> Result<ArrowReaderMetadata, MoveError> {
    ArrowReaderMetadata::load(file, ArrowReaderOptions::new()).map_err(|e| MoveError::parquet(path, &e))
}

/// Returns the schema with view types in place of text and bytes types.
fn viewed(schema: &SchemaRef) -> SchemaRef {
    let view = |field: &FieldRef| match field.data_type() {
        DataType::Utf8 => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View)),
        DataType::Binary => Arc::new(field.as_ref().clone().with_data_type(DataType::BinaryView)),
        _ => Arc::clone(field),
    };
    let fields: Vec<FieldRef> = schema.fields().iter().map(view).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Returns the result of `read`; a panic in it becomes an error.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, MoveError>) -> Result<T, MoveError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(MoveError::File { path: path.into(), error: "is damaged: its pages do not match its header".into() })
    })
}
