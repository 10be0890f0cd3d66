//! Columns of flags, stored as one bit each (`PLAIN` in the Parquet format's description of encodings); a flag cannot
//! be missing.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::schema::types::ColumnDescPtr;

use crate::chunk::{PAGE_ROWS, Packer, Pages};

/// One column of flags in one row group.
pub(crate) struct FlagsColumn {
    pages: Pages,
    compression: Compression,
    page: Vec<u8>,
}

impl FlagsColumn {
    pub(crate) fn new(descr: ColumnDescPtr, compression: Compression) -> Self {
        Self { pages: Pages::new(descr, Encoding::PLAIN), compression, page: Vec::new() }
    }

    /// Appends flags to the column.
    pub(crate) fn write(&mut self, flags: &[bool], packer: &mut Packer) -> Result<()> {
        let mut rest = flags;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(PAGE_ROWS - self.pages.open_rows));
            self.put(now);
            if self.pages.open_rows == PAGE_ROWS {
                self.end_page(packer)?;
            }
            rest = later;
        }
        Ok(())
    }

    fn put(&mut self, flags: &[bool]) {
        let (open, whole) = flags.split_at(flags.len().min(self.pages.open_rows.wrapping_neg() % 8));
        for (at, flag) in (self.pages.open_rows % 8..).zip(open) {
            if let Some(last) = self.page.last_mut() {
                *last |= u8::from(*flag) << at;
            }
        }
        let byte = |flags: &[bool]| flags.iter().enumerate().fold(0, |all, (at, flag)| all | u8::from(*flag) << at);
        self.page.extend(whole.chunks(8).map(byte));
        self.pages.open_rows += flags.len();
    }

    fn end_page(&mut self, packer: &mut Packer) -> Result<()> {
        self.pages.push(packer.compressed(&self.page)?, self.page.len());
        self.page.clear();
        Ok(())
    }

    /// Returns the bytes of the column and the metadata that the file needs.
    pub(crate) fn close(mut self, packer: &mut Packer) -> Result<(Bytes, ColumnCloseResult)> {
        if self.pages.open_rows > 0 {
            self.end_page(packer)?;
        }
        self.pages.close(self.compression, None, None)
    }
}
