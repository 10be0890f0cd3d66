//! Rows of a chunk divided by the values of a column, into folders `column=value` as in Hive, Spark and DuckDB.
//!
//! The value arrives as text in one additional column; the column itself stays in the file, with its type.

use std::collections::HashMap;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::column::Columns;
use crate::error::MoveError;
use crate::hash::{Tally, hash_batch};
use crate::rows::{Cutter, Row};
use crate::session::give_up;
use crate::sink::Sink;
use crate::spec::{ChunkDone, ChunkSpec, PartDone, TableSpec};
use crate::worker::{Moved, Worker};

/// Largest number of values per chunk, because each has an open file.
const PARTS_MAX: usize = 500;
/// Hive's name of the folder for NULL.
const NULL_NAME: &str = "__HIVE_DEFAULT_PARTITION__";
/// Bytes that are escaped in a folder's name: those that Hive escapes, and those that confuse shells.
const ESCAPED: &[u8] = b"\"#%'*/:=?\\{[]^\x7f";

struct Part {
    columns: Columns,
    sink: Sink,
    tally: Tally,
    file: String,
}

/// Open files, by the value of the column.
struct Parts<'a> {
    table: &'a TableSpec,
    column: &'a str,
    place: &'a Path,
    zstd_level: i32,
    batch_bytes: usize,
    group_bytes: usize,
    open: HashMap<Vec<u8>, Part>,
    null: Option<Part>,
}

impl Worker<'_> {
    /// Reads a chunk into one file per value.
    pub(crate) fn read_parts(&mut self, chunk: &ChunkSpec, column: &str, place: &Path) -> Result<ChunkDone, MoveError> {
        let (started, shared) = (Instant::now(), self.shared);
        let table = &shared.spec.tables[chunk.table];
        let (batch_bytes, group_bytes) = shared.shares();
        let zstd_level = shared.spec.zstd_level;
        let mut parts =
            Parts { table, column, place, zstd_level, batch_bytes, group_bytes, open: HashMap::new(), null: None };
        let mut cutter = Cutter::new(table.columns.len() + 1);
        let mut bytes = 0_u64;
        let copied = self.session.copy_out(&chunk.sql, table, |message| {
            bytes += message.len() as u64;
            cutter.push(message, |row| parts.push(row))?;
            shared.came(message.len())
        });
        let counted = copied.inspect_err(|error: &MoveError| give_up(&self.session, error))?;
        if !cutter.is_whole() {
            return Err(MoveError::Stream("it ended in the middle".into()));
        }
        let done = parts.finish()?;
        let tally = done.iter().fold(Tally::default(), |tally, (part, _)| tally.plus(*part));
        if counted != tally.rows {
            return Err(MoveError::Count { counted, decoded: tally.rows });
        }
        let parts: Vec<PartDone> = done.into_iter().map(|(_, part)| part).collect();
        let file_bytes = parts.iter().map(|part| part.file_bytes).sum();
        self.done(chunk, Moved { bytes, file_bytes, tally, parts, ..Moved::of(started) })
    }
}

impl Parts<'_> {
    fn push(&mut self, row: &Row<'_>) -> Result<(), MoveError> {
        let value = row.value(self.table.columns.len());
        // The value is copied only for its first row.
        let known = match value {
            Some(value) => self.open.contains_key(value),
            None => self.null.is_some(),
        };
        if !known {
            let part = self.begin(value)?;
            match value {
                Some(value) => drop(self.open.insert(value.to_vec(), part)),
                None => self.null = Some(part),
            }
        }
        let part = match value {
            Some(value) => self.open.get_mut(value),
            None => self.null.as_mut(),
        };
        let Some(part) = part else { return Ok(()) };
        if part.columns.push(row)? {
            part.write()?;
        }
        Ok(())
    }

    fn begin(&self, value: Option<&[u8]>) -> Result<Part, MoveError> {
        if self.open.len() == PARTS_MAX {
            let message = format!("column {} has more than {PARTS_MAX} values in one chunk", self.column);
            return Err(MoveError::File { path: self.place.into(), error: message });
        }
        let (above, name) = (self.place.parent().unwrap_or(Path::new(".")), self.place.file_name().unwrap_or_default());
        let value = value.map_or_else(|| NULL_NAME.into(), escaped);
        let own = format!("{}={value}", escaped(self.column.as_bytes()));
        let folder = above.join(&own);
        make(above, &folder)?;
        // The memory of a worker is shared by files, most of which may be small.
        let share = (self.open.len() + 1).next_power_of_two().min(16);
        let columns = Columns::new(self.table, (self.batch_bytes / share).max(16 << 10));
        let schema = Arc::clone(columns.schema());
        let sink = Sink::create(&folder.join(name), schema, self.zstd_level, (self.group_bytes / share).max(64 << 10))?;
        Ok(Part { columns, sink, tally: Tally::default(), file: format!("{own}/{}", name.to_string_lossy()) })
    }

    fn finish(self) -> Result<Vec<(Tally, PartDone)>, MoveError> {
        let mut done = Vec::with_capacity(self.open.len());
        for mut part in self.open.into_values().chain(self.null) {
            part.write()?;
            let file_bytes = part.sink.finish()?;
            let (rows, hash) = (part.tally.rows, part.tally.hash());
            done.push((part.tally, PartDone { file: part.file, rows, hash, file_bytes }));
        }
        done.sort_by(|(_, a), (_, b)| a.file.cmp(&b.file));
        Ok(done)
    }
}

impl Part {
    fn write(&mut self) -> Result<(), MoveError> {
        let batch = self.columns.take()?;
        self.tally = self.tally.plus(hash_batch(&batch)?);
        self.sink.write(&batch)
    }
}

/// Creates a folder with the permissions of its parent folder; its directory entry is on the disk before it has files.
fn make(above: &Path, folder: &Path) -> Result<(), MoveError> {
    let mode = fs::metadata(above).map_err(|e| MoveError::io(above, &e))?.mode() & 0o777;
    match DirBuilder::new().mode(mode).create(folder) {
        Ok(()) => fs::File::open(above).and_then(|above| above.sync_all()).map_err(|e| MoveError::io(above, &e)),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(MoveError::io(folder, &error)),
    }
}

/// Escapes a value for a folder's name, as Hive does.
fn escaped(value: &[u8]) -> String {
    let mut out = Vec::with_capacity(value.len());
    for &byte in value {
        if byte < 0x20 || ESCAPED.contains(&byte) {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            out.push(byte);
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_name() {
        assert_eq!(escaped(b"2026-01-02 03:04"), "2026-01-02 03%3A04");
        assert_eq!(escaped("a/../ü%\n".as_bytes()), "a%2F..%2Fü%25%0A");
    }
}
