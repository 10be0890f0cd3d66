//! Parquet file that appears under its name only when it is complete and on the disk.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::aside::TemporaryFile;
use crate::error::MoveError;

/// Number of rows after which a row group is always closed.
const GROUP_ROWS: usize = 1 << 20;

/// Memory that the writer needs per column, regardless of its contents [bytes].
///
/// It is used by zstd's contexts and the dictionary's table. 1,600 columns took 300 MB.
const COLUMN_BYTES: usize = 256 << 10;

/// Size of a long value [bytes]: a column that has such a value in the first rows gets no dictionary, minimum or
/// maximum.
///
/// The writer would keep a copy of the value for each of these.
const LONG_VALUE_BYTES: usize = 1 << 20;

/// Parquet file being written.
#[derive(Debug)]
pub struct Sink {
    state: State,
    aside: TemporaryFile,
    schema: SchemaRef,
    zstd_level: i32,
    memory_bytes: usize,
}

/// State of the file; how its columns are written is decided by its first rows.
#[derive(Debug)]
enum State {
    Empty(Option<File>),
    Begun(Box<ArrowWriter<File>>),
}

impl Sink {
    /// Creates the temporary file; a row group is closed when it uses more than `memory_bytes`.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(place: &Path, schema: SchemaRef, zstd_level: i32, memory_bytes: usize) -> Result<Self, MoveError> {
        let (aside, file) = TemporaryFile::create(place)?;
        Ok(Self { state: State::Empty(Some(file)), aside, schema, zstd_level, memory_bytes })
    }

    /// Appends rows.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), MoveError> {
        let memory_bytes = self.memory_bytes;
        let written = self.writer(Some(batch))?;
        let done = written
            .write(batch)
            .and_then(|()| if written.memory_size() > memory_bytes { written.flush() } else { Ok(()) });
        done.map_err(|e| MoveError::parquet(self.aside.path(), &e))
    }

    /// Writes the footer, syncs and renames; returns the size of the file [bytes].
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<u64, MoveError> {
        let finished = self.writer(None)?.finish().map(|_| ());
        finished.map_err(|e| MoveError::parquet(self.aside.path(), &e))?;
        let State::Begun(writer) = self.state else {
            return Err(MoveError::Internal("a file that was not begun".into()));
        };
        self.aside.publish(writer.inner())
    }

    fn writer(&mut self, first: Option<&RecordBatch>) -> Result<&mut ArrowWriter<File>, MoveError> {
        if let State::Empty(file) = &mut self.state {
            let Some(file) = file.take() else {
                return Err(MoveError::Internal("a file that could not be begun".into()));
            };
            let properties = properties(&self.schema, self.zstd_level, self.memory_bytes, first);
            let begun = properties.and_then(|given| ArrowWriter::try_new(file, Arc::clone(&self.schema), Some(given)));
            let begun = begun.map_err(|e| MoveError::parquet(self.aside.path(), &e))?;
            self.state = State::Begun(Box::new(begun));
        }
        match &mut self.state {
            State::Begun(writer) => Ok(writer),
            State::Empty(_) => Err(MoveError::Internal("a file that was not begun".into())),
        }
    }
}

/// Returns the settings of the Parquet writer for each column; `first` are the first rows of the file.
fn properties(
    schema: &SchemaRef,
    zstd_level: i32,
    memory_bytes: usize,
    first: Option<&RecordBatch>,
) -> Result<WriterProperties, ParquetError> {
    let is_wide = schema.fields().len() * COLUMN_BYTES > memory_bytes / 2 * 3;
    // Snappy needs almost no memory per column, when writing and when reading.
    let compression = if is_wide { Compression::SNAPPY } else { Compression::ZSTD(ZstdLevel::try_new(zstd_level)?) };
    let mut builder = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_enabled(!is_wide)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_created_by(concat!("dbdyno ", env!("CARGO_PKG_VERSION")).into());
    for (field, column) in schema.fields().iter().zip(first.map(RecordBatch::columns).unwrap_or_default()) {
        if longest(column.as_ref()) >= LONG_VALUE_BYTES {
            let path = ColumnPath::from(vec![field.name().clone()]);
            builder = builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_statistics_enabled(path, EnabledStatistics::None);
        }
    }
    Ok(builder.build())
}

/// Returns the length of the longest value of a column of texts or bytes [bytes]; 0 for other columns.
fn longest(column: &dyn Array) -> usize {
    let offsets = match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().offsets(),
        DataType::Binary => column.as_binary::<i32>().offsets(),
        _ => return 0,
    };
    offsets.lengths().max().unwrap_or(0)
}
