//! A Parquet file that appears under its name only when it is whole and on the disk.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::BuildHasher;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::error::MoveError;

/// Rows after which a row group is closed in any case.
const GROUP_ROWS: usize = 1 << 20;

/// A file being written.
#[derive(Debug)]
pub struct Sink {
    writer: Option<ArrowWriter<File>>,
    aside: PathBuf,
    place: PathBuf,
    memory_bytes: usize,
}

impl Sink {
    /// Opens the file aside; a row group is closed when it fills so much memory.
    pub fn create(place: &Path, schema: SchemaRef, zstd_level: i32, memory_bytes: usize) -> Result<Self, MoveError> {
        let aside = aside_of(place);
        let folder = place.parent().unwrap_or(Path::new("."));
        let open_to = fs::metadata(folder).map_err(|e| MoveError::io(folder, &e))?.mode() & 0o066;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600 | open_to).open(&aside);
        let file = file.map_err(|e| MoveError::io(&aside, &e))?;
        let level = ZstdLevel::try_new(zstd_level).map_err(|e| MoveError::parquet(place, &e))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_created_by(concat!("dbdyno ", env!("CARGO_PKG_VERSION")).into())
            .build();
        let writer =
            ArrowWriter::try_new(file, schema, Some(properties)).map_err(|e| MoveError::parquet(&aside, &e))?;
        Ok(Self { writer: Some(writer), aside, place: place.into(), memory_bytes })
    }

    /// Appends rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), MoveError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.write(batch).map_err(|e| MoveError::parquet(&self.aside, &e))?;
        if writer.memory_size() > self.memory_bytes {
            writer.flush().map_err(|e| MoveError::parquet(&self.aside, &e))?;
        }
        Ok(())
    }

    /// Writes the footer, syncs and renames; returns the bytes of the file.
    pub fn finish(mut self) -> Result<u64, MoveError> {
        let Some(writer) = &mut self.writer else { return Ok(0) };
        writer.finish().map_err(|e| MoveError::parquet(&self.aside, &e))?;
        let file = writer.inner_mut();
        file.sync_all().map_err(|e| MoveError::io(&self.aside, &e))?;
        let bytes = file.metadata().map_err(|e| MoveError::io(&self.aside, &e))?.len();
        fs::rename(&self.aside, &self.place).map_err(|e| MoveError::io(&self.place, &e))?;
        self.writer = None;
        if let Some(folder) = self.place.parent() {
            // The name is on the disk before anybody is told that the chunk is done.
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(|e| MoveError::io(folder, &e))?;
        }
        Ok(bytes)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if self.writer.take().is_some() {
            fs::remove_file(&self.aside).ok();
        }
    }
}

/// `.<name>.<random>.tmp` in the same folder.
fn aside_of(place: &Path) -> PathBuf {
    let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    place.with_file_name(format!(".{name}.{:016x}.tmp", RandomState::new().hash_one(&name)))
}
