//! A Parquet file that appears under its name only when it is whole and on the disk.

use std::fs::File;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::aside::Aside;
use crate::error::MoveError;

/// Rows after which a row group is closed in any case.
const GROUP_ROWS: usize = 1 << 20;

/// What the writer keeps for each column, whatever is in it: zstd's contexts, and the dictionary's table. 1,600 columns
/// took 300 MB.
const COLUMN_BYTES: usize = 256 << 10;

/// A file being written.
#[derive(Debug)]
pub struct Sink {
    writer: ArrowWriter<File>,
    aside: Aside,
    memory_bytes: usize,
}

impl Sink {
    /// Opens the file aside; a row group is closed when it fills so much memory.
    pub fn create(place: &Path, schema: SchemaRef, zstd_level: i32, memory_bytes: usize) -> Result<Self, MoveError> {
        let (aside, file) = Aside::create(place)?;
        let is_wide = schema.fields().len() * COLUMN_BYTES > memory_bytes / 2 * 3;
        let compression = if is_wide {
            // It keeps next to nothing for a column, here and where the file is read.
            Compression::SNAPPY
        } else {
            Compression::ZSTD(ZstdLevel::try_new(zstd_level).map_err(|e| MoveError::parquet(place, &e))?)
        };
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_dictionary_enabled(!is_wide)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_created_by(concat!("dbdyno ", env!("CARGO_PKG_VERSION")).into())
            .build();
        let writer =
            ArrowWriter::try_new(file, schema, Some(properties)).map_err(|e| MoveError::parquet(aside.path(), &e))?;
        Ok(Self { writer, aside, memory_bytes })
    }

    /// Appends rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), MoveError> {
        self.writer.write(batch).map_err(|e| MoveError::parquet(self.aside.path(), &e))?;
        if self.writer.memory_size() > self.memory_bytes {
            self.writer.flush().map_err(|e| MoveError::parquet(self.aside.path(), &e))?;
        }
        Ok(())
    }

    /// Writes the footer, syncs and renames; returns the bytes of the file.
    pub fn finish(mut self) -> Result<u64, MoveError> {
        self.writer.finish().map_err(|e| MoveError::parquet(self.aside.path(), &e))?;
        self.aside.publish(self.writer.inner())
    }
}
