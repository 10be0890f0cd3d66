//! Large tables of one file: calls and waits, buffered for their links, and late links.

use std::sync::Arc;

use dyno_evidence::EvidenceError;
use dyno_evidence::table::{Column, Table, Values};

use super::folder::Folder;
use super::{FLUSH_ROWS, row_id, tables};

/// Number of rows after which the next part begins.
const PART_ROWS: u64 = 1 << 22;

/// Parts of a large table filled by one file.
pub struct Parts {
    folder: Arc<Folder>,
    name: &'static str,
    columns: &'static [Column],
    file: u32,
    number: u32,
    open: Option<Table>,
}

impl Parts {
    /// Returns the parts, none of which is open yet.
    pub fn new(folder: Arc<Folder>, name: &'static str, columns: &'static [Column], file: u32) -> Self {
        Self { folder, name, columns, file, number: 0, open: None }
    }

    /// Appends rows.
    ///
    /// # Errors
    /// A part cannot be written.
    pub fn write(&mut self, values: &mut [Values]) -> Result<(), EvidenceError> {
        let mut table = match self.open.take() {
            Some(table) => table,
            None => self.folder.part(self.name, self.columns, self.file, self.number)?,
        };
        table.write(values)?;
        if table.rows() >= PART_ROWS {
            table.finish()?;
            self.number += 1;
        } else {
            self.open = Some(table);
        }
        Ok(())
    }

    /// Appends the file's last rows. If the file has no other rows in this table, they go into the part that it shares
    /// with its neighbours.
    ///
    /// # Errors
    /// A part cannot be written.
    pub fn write_last(&mut self, values: &mut [Values]) -> Result<(), EvidenceError> {
        if self.open.is_none() && self.number == 0 {
            return self.folder.share(self.name, self.columns, self.file, values);
        }
        self.write(values)
    }

    /// Renames the last part into place.
    ///
    /// # Errors
    /// A part cannot be written.
    pub fn finish(&mut self) -> Result<(), EvidenceError> {
        self.open.take().map_or(Ok(()), |table| table.finish().map(drop))
    }
}

/// Parents and owners that became known after their rows had been written.
pub struct Links {
    parts: Parts,
    kinds: Vec<u32>,
    ids: Vec<i64>,
    parents: Vec<i64>,
}

/// Kind of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linked {
    /// The link leads from a call to its parent.
    Call,
    /// The link leads from a wait to its owner.
    Wait,
}

impl Links {
    /// Returns an empty list of links.
    pub fn new(folder: Arc<Folder>, file: u32) -> Self {
        let parts = Parts::new(folder, "links", &tables::LINKS, file);
        Self { parts, kinds: Vec::new(), ids: Vec::new(), parents: Vec::new() }
    }

    /// Adds a link from row `number` to row `parent`, both numbered within the file.
    ///
    /// # Errors
    /// A part cannot be written.
    pub fn push(&mut self, kind: Linked, number: u64, parent: u64) -> Result<(), EvidenceError> {
        self.kinds.push(kind as u32);
        self.ids.push(row_id(self.parts.file, number));
        self.parents.push(row_id(self.parts.file, parent));
        if self.ids.len() >= FLUSH_ROWS { self.flush(false) } else { Ok(()) }
    }

    fn flush(&mut self, last: bool) -> Result<(), EvidenceError> {
        if self.ids.is_empty() {
            return Ok(());
        }
        let words = vec!["call".to_owned(), "wait".to_owned()];
        let mut values = [
            Values::Words(std::mem::take(&mut self.kinds), words),
            Values::I64(std::mem::take(&mut self.ids)),
            Values::I64(std::mem::take(&mut self.parents)),
        ];
        if last { self.parts.write_last(&mut values) } else { self.parts.write(&mut values) }
    }

    /// Writes the remaining links and renames the part into place.
    ///
    /// # Errors
    /// A part cannot be written.
    pub fn finish(&mut self) -> Result<(), EvidenceError> {
        self.flush(true)?;
        self.parts.finish()
    }
}
