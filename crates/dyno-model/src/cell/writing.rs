//! Writes of data: through the flash cache, into it, or past it, as the table of [`super::caching`] says.
//!
//! A write into the cache is complete as soon as it is on flash, and reaches the disk later. A write through the cache
//! is complete as soon as it is on disk, and no request waits for its copy on flash. A write that bypasses the cache
//! makes held copies of its lines stale: they are dropped, unless they are being written to disk.

use super::ask::Ask;
use super::parameters::CacheMode;
use super::state::{State, Then};
use super::storage_cell::StorageCell;
use crate::device::{Done, Kind};

impl StorageCell {
    pub(super) fn write_data(&self, state: &mut State, op: u64, ask: Ask) {
        if state.caching.mode == CacheMode::None {
            self.io(state, ask, Then::Part(op));
            return;
        }
        let large = self.is_large(ask.request.bytes);
        if large || state.caching.write_past || !Self::may_cache(state, &ask) {
            self.bypass(state, op, ask, large);
        } else if state.caching.mode == CacheMode::WriteThrough {
            self.io(state, ask, Then::Through(op));
        } else {
            self.write_back(state, op, ask);
        }
    }

    /// Writes to disk only, and drops the cached lines of the request, which are now stale.
    fn bypass(&self, state: &mut State, op: u64, ask: Ask, large: bool) {
        let caching = &mut state.caching;
        let counts = &mut caching.counts;
        counts.write_skip.add(ask.request.bytes);
        if large {
            counts.write_skip_large.add(ask.request.bytes);
        } else if ask.copy > 0 && caching.mode == CacheMode::WriteThrough {
            counts.write_skip_mirror.add(ask.request.bytes);
        }
        for key in caching.lines(ask.unit, ask.request) {
            if let Some(place) = caching.directory.find(key) {
                caching.directory.remove(place);
            }
        }
        self.io(state, ask, Then::Part(op));
    }

    /// Returns the places of all lines of a write, or `None` if there is no room.
    fn places(&self, state: &mut State, ask: &Ask) -> Option<Vec<(u64, u32)>> {
        let (mut places, mut new) = (Vec::new(), false);
        for key in state.caching.lines(ask.unit, ask.request) {
            let place = if let Some(place) = state.caching.directory.find(key) {
                state.caching.directory.touch(place, Self::keeps(ask));
                place
            } else {
                new = true;
                Self::bring_in(state, key, ask, false)?
            };
            places.push((key, place));
        }
        let bytes = ask.request.bytes;
        let counts = &mut state.caching.counts;
        if new {
            counts.first.add(bytes);
        } else {
            counts.overwrite.add(bytes);
        }
        self.count_write(state, ask, bytes);
        Some(places)
    }

    fn write_back(&self, state: &mut State, op: u64, ask: Ask) {
        let Some(places) = self.places(state, &ask) else {
            self.bypass(state, op, ask, false);
            return;
        };
        for &(_, place) in &places {
            state.caching.directory.soil(place);
        }
        let parts = self.on_flash(state, ask, Kind::Write, &places, Then::Part(op));
        if let Some(open) = state.ops.get_mut(op) {
            open.left = parts;
        }
        self.destage(state);
    }

    /// Handles a write that is on disk: copies it to flash without a request waiting for that.
    pub(super) fn written_through(&self, state: &mut State, op: u64, ask: Ask) -> Option<Done> {
        if state.caching.mode == CacheMode::WriteThrough
            && let Some(places) = self.places(state, &ask)
        {
            self.on_flash(state, ask, Kind::Write, &places, Then::Nothing);
        }
        self.part(state, op)
    }
}
