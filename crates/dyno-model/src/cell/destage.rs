//! Destages of a write-back cache, and the commands that create, flush and drop the cache.
//!
//! Destaging begins when a larger part of the space is dirty than allowed, or when the cache is to be flushed. The
//! least recently used lines come first, and several are destaged at once. Each of them is read from its flash module
//! and then written to disk, where the controller joins writes of adjacent lines. A line that is written again in the
//! meantime stays dirty.

use serde::Serialize;

use super::CellError;
use super::ask::Ask;
use super::directory::Directory;
use super::parameters::CacheMode;
use super::state::{State, Then};
use super::storage_cell::StorageCell;
use crate::device::Request;

/// Content of a flash cache and its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cached {
    /// Size of all lines [bytes].
    pub held_bytes: u64,
    /// Size of the lines of KEEP segments [bytes].
    pub kept_bytes: u64,
    /// Size of the lines that are not on disk [bytes].
    pub dirty_bytes: u64,
    /// Number of reads from flash.
    pub hits: u64,
    /// Number of reads that had to go to disk.
    pub misses: u64,
}

impl StorageCell {
    /// Starts destaging lines while more of them are dirty than allowed, or while the cache is being flushed.
    pub(super) fn destage(&self, state: &mut State) {
        loop {
            let caching = &mut state.caching;
            let limit = caching.directory.room() as f64 * caching.dirty_limit_ratio;
            let much = caching.flushing || caching.directory.dirty() as f64 > limit;
            caching.flushing &= caching.directory.dirty() > 0;
            if !much || caching.destaging >= caching.destages {
                return;
            }
            let Some(place) = caching.directory.destage() else { return };
            caching.destaging += 1;
            let (module, offset_bytes) = caching.address(place);
            let request = Request::read(offset_bytes, caching.line_bytes);
            let (unit, group, label) = (0, Ask::NO_GROUP, super::Label::DESTAGE);
            let ask = Ask { unit, group, copy: 0, label, request };
            self.module_io(state, ask, module, request, Then::DestageRead(place));
        }
    }

    pub(super) fn destage_read(&self, state: &mut State, place: u32, ask: Ask) {
        let caching = &mut state.caching;
        caching.counts.destage_read.add(ask.request.bytes);
        let key = caching.directory.key(place);
        let offset_bytes = (key & ((1 << 48) - 1)) * caching.line_bytes;
        let slices = state.slices.iter().filter(|slice| !slice.on_flash);
        let group = slices
            .filter(|slice| (slice.from_bytes..slice.to_bytes).contains(&offset_bytes))
            .map(|slice| slice.group)
            .next()
            .unwrap_or(Ask::NO_GROUP);
        let request = Request::write(offset_bytes, caching.line_bytes);
        let ask = Ask { unit: (key >> 48) as u16, group, request, ..ask };
        self.io(state, ask, Then::DestageWrite(place));
    }

    pub(super) fn destaged(&self, state: &mut State, place: u32, bytes: u64) {
        let caching = &mut state.caching;
        caching.counts.destage_write.add(bytes);
        caching.directory.destaged(place);
        caching.destaging -= 1;
        self.destage(state);
    }

    /// Returns the mode of the flash cache and its size [bytes]; none and 0 if there is no cache.
    pub fn flash_cache(&self) -> (CacheMode, u64) {
        let caching = &self.state.borrow().caching;
        (caching.mode, caching.directory.room() * caching.line_bytes)
    }

    /// Returns the content of the flash cache and its counters.
    pub fn cached(&self) -> Cached {
        let caching = &self.state.borrow().caching;
        let bytes = |lines: u64| lines * caching.line_bytes;
        Cached {
            held_bytes: bytes(caching.directory.len()),
            kept_bytes: bytes(caching.directory.kept()),
            dirty_bytes: bytes(caching.directory.dirty()),
            hits: caching.counts.hit.requests,
            misses: caching.counts.miss.requests,
        }
    }

    /// Begins to write all dirty lines to disk; the flush is complete when [`StorageCell::dirty_bytes`] is 0.
    pub fn flush(&self) {
        let state = &mut *self.state.borrow_mut();
        state.caching.flushing = true;
        self.destage(state);
    }

    /// Sets whether writes bypass a write-back cache, so that a flushed cache stays clean.
    pub fn write_past(&self, past: bool) {
        let caching = &mut self.state.borrow_mut().caching;
        caching.write_past = past && caching.mode == CacheMode::WriteBack;
        caching.flushing &= caching.write_past;
    }

    /// Returns the number of bytes in the flash cache that are not on disk.
    pub fn dirty_bytes(&self) -> u64 {
        let caching = &self.state.borrow().caching;
        caching.directory.dirty() * caching.line_bytes
    }

    /// Drops the flash cache; dirty lines must be flushed first.
    ///
    /// # Errors
    /// Lines of the cache are dirty.
    pub fn drop_flash_cache(&self) -> Result<(), CellError> {
        let dirty_bytes = self.dirty_bytes();
        if dirty_bytes > 0 {
            return Err(CellError::Dirty { cell: self.name().into(), bytes: dirty_bytes });
        }
        let caching = &mut self.state.borrow_mut().caching;
        caching.mode = CacheMode::None;
        caching.directory = Directory::new(0, 0);
        Ok(())
    }

    /// Creates an empty flash cache; there must be none.
    ///
    /// # Errors
    /// The cell already has a flash cache, or has no flash, or the size is not a number above 0.
    pub fn create_flash_cache(&self, mode: CacheMode, size_gb: f64) -> Result<(), CellError> {
        let state = &mut *self.state.borrow_mut();
        if state.caching.mode != CacheMode::None {
            return Err(CellError::CacheExists { cell: self.name().into() });
        }
        if self.devices.len() == self.disks {
            return Err(CellError::NoFlash { cell: self.name().into() });
        }
        if !(size_gb > 0.0 && size_gb.is_finite()) {
            return Err(CellError::parameter("flash_cache.size_gb", "must be above 0"));
        }
        state.caching.mode = mode;
        state.caching.write_past = false;
        state.caching.create(size_gb);
        Ok(())
    }
}
