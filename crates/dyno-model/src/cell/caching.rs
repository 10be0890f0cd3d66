//! Flash cache: which reads and writes use flash.
//!
//! | request | held lines | other lines |
//! |---|---|---|
//! | small read | from flash | from disk, then into the cache |
//! | large read | from disk, but dirty lines from flash | from disk |
//! | large read, KEEP (or `scans`) | from flash, at the same time | from disk, then into the cache |
//! | small write, write-back | onto flash, dirty | onto flash, dirty |
//! | small write, write-through | to disk, then onto flash | to disk, then onto flash |
//! | large write | to disk; the lines are dropped | to disk |
//!
//! A request of up to 128 KB is small. "Into the cache" applies to data and scans only. A line is cached only if
//! neither the segment nor the grid disk has the caching policy none, and if the plan allows the database to use the
//! cache. In write-through mode only the primary copy is cached. Redo, temporary segments and backups are never cached.
//!
//! A new line is clean and counts as held as soon as it has been read from disk. It is then written to flash in the
//! background, where `populates` lines are written at once. No request waits for that as long as there is memory for
//! the lines that are not on flash yet. When this memory is full, reads of KEEP segments wait, and lines of other reads
//! are not stored.
//!
//! A line always counts as held entirely, even if only part of it was written. Not modelled: valid parts of lines,
//! smart placement by frequency, compression, and the hourly expiry of KEEP.

use super::Purpose;
use super::ask::Ask;
use super::directory::Placed;
use super::parameters::{self, CacheMode};
use super::state::{State, Then};
use super::storage_cell::StorageCell;
use crate::device::{Done, Kind, Request};

impl StorageCell {
    /// Returns true if lines of this request may be cached.
    pub(super) fn may_cache(state: &State, ask: &Ask) -> bool {
        let caching = &state.caching;
        caching.mode != CacheMode::None
            && matches!(ask.label.purpose, Purpose::Data | Purpose::Scan)
            && ask.label.caching != parameters::Caching::None
            && state.slices[usize::from(ask.group)].cached
            && state.directives[usize::from(ask.label.database)].flash_cache
            && (ask.copy == 0 || caching.mode == CacheMode::WriteBack)
    }

    pub(super) fn keeps(ask: &Ask) -> bool {
        ask.label.caching == parameters::Caching::Keep
    }

    /// Starts one I/O for each run of adjacent places on a module and returns the number of I/Os. Each I/O covers only
    /// the requested bytes of its lines.
    pub(super) fn on_flash(&self, state: &mut State, ask: Ask, kind: Kind, places: &[(u64, u32)], then: Then) -> u32 {
        let line_bytes = state.caching.line_bytes;
        let (begin, end) = (ask.request.offset_bytes, ask.request.offset_bytes + ask.request.bytes);
        let mut runs: u32 = 0;
        let mut run: Option<(u32, Request)> = None;
        for &(key, place) in places {
            let line = (key & ((1 << 48) - 1)) * line_bytes;
            let (from, to) = (begin.max(line), end.min(line + line_bytes));
            let (module, address) = state.caching.address(place);
            let offset_bytes = address + (from - line);
            match &mut run {
                Some((at, request)) if *at == module && request.offset_bytes + request.bytes == offset_bytes => {
                    request.bytes += to - from;
                }
                _ => {
                    if let Some((module, request)) = run.take() {
                        self.module_io(state, ask, module, request, then);
                    }
                    runs += 1;
                    run = Some((module, Request { kind, offset_bytes, bytes: to - from }));
                }
            }
        }
        if let Some((module, request)) = run {
            self.module_io(state, ask, module, request, then);
        }
        runs
    }

    pub(super) fn module_io(&self, state: &mut State, ask: Ask, module: u32, request: Request, then: Then) {
        let unit = (self.disks + module as usize) as u16;
        self.io(state, Ask { unit, group: Ask::NO_GROUP, request, ..ask }, then);
    }

    pub(super) fn read_data(&self, state: &mut State, op: u64, ask: Ask) {
        let caching = &mut state.caching;
        if caching.mode == CacheMode::None {
            self.io(state, ask, Then::Part(op));
            return;
        }
        let (large, keep) = (self.is_large(ask.request.bytes), Self::keeps(&ask));
        let by_flash = !large || keep || caching.scans;
        let lines = caching.lines(ask.unit, ask.request);
        let (mut held, mut missing) = (Vec::new(), Vec::new());
        for key in lines {
            match caching.directory.find(key) {
                Some(place) if by_flash || caching.directory.is_dirty(place) => {
                    caching.directory.touch(place, keep);
                    held.push((key, place));
                }
                _ => missing.push(key),
            }
        }
        self.count_read(state, &ask, by_flash, (held.len(), missing.len()));
        let stores = by_flash && Self::may_cache(state, &ask);
        let then = if stores { Then::Miss(op) } else { Then::Part(op) };
        let runs = if by_flash { Self::runs(state.caching.line_bytes, &ask, &missing) } else { vec![ask.request] };
        let runs = if missing.is_empty() { Vec::new() } else { runs };
        if let Some(open) = state.ops.get_mut(op) {
            open.from = [!runs.is_empty(), !held.is_empty()];
            // One more than there are, until all are on their way.
            open.left = runs.len() as u32 + 1;
        }
        for request in runs {
            self.io(state, Ask { request, ..ask }, then);
        }
        let parts = self.on_flash(state, ask, Kind::Read, &held, Then::Part(op));
        if let Some(open) = state.ops.get_mut(op) {
            open.left = open.left + parts - 1;
        }
    }

    /// Returns one read for each run of adjacent missing lines, within the bounds of the request.
    fn runs(line_bytes: u64, ask: &Ask, missing: &[u64]) -> Vec<Request> {
        let (begin, end) = (ask.request.offset_bytes, ask.request.offset_bytes + ask.request.bytes);
        let mut runs: Vec<Request> = Vec::new();
        for key in missing {
            let line = (key & ((1 << 48) - 1)) * line_bytes;
            let (from, to) = (begin.max(line), end.min(line + line_bytes));
            match runs.last_mut() {
                Some(run) if run.offset_bytes + run.bytes == from => run.bytes += to - from,
                _ => runs.push(Request::read(from, to - from)),
            }
        }
        runs
    }

    fn count_read(&self, state: &mut State, ask: &Ask, by_flash: bool, parts: (usize, usize)) {
        let bytes = ask.request.bytes;
        let counts = &mut state.caching.counts;
        if !by_flash || !matches!(ask.label.purpose, Purpose::Data | Purpose::Scan) {
            counts.read_skip.add(bytes);
            if !by_flash {
                counts.read_skip_large.add(bytes);
            }
            return;
        }
        let keep = Self::keeps(ask);
        if parts.1 > 0 {
            counts.miss.add(bytes);
            if keep {
                counts.keep_miss.add(bytes);
            }
            return;
        }
        counts.hit.add(bytes);
        if keep {
            counts.keep_hit.add(bytes);
        }
        let size = usize::from(self.is_large(bytes));
        state.by_database[usize::from(ask.label.database)].cache[size].add(bytes);
    }

    /// Handles missing lines that were read from disk: caches them, then counts the read as a completed part.
    pub(super) fn missed(&self, state: &mut State, op: u64, ask: Ask) -> Option<Done> {
        let caching = &mut state.caching;
        let fits = caching.populating_bytes + ask.request.bytes <= caching.memory_bytes;
        if fits || caching.populating_bytes == 0 {
            self.populate(state, ask);
        } else if Self::keeps(&ask) {
            caching.parked.push_back((op, ask));
            return None;
        } else {
            caching.counts.throttled.add(ask.request.bytes);
        }
        self.part(state, op)
    }

    fn populate(&self, state: &mut State, ask: Ask) {
        if state.caching.mode == CacheMode::None {
            return;
        }
        let spare = self.is_large(ask.request.bytes) && !Self::keeps(&ask);
        let mut places = Vec::new();
        for key in state.caching.lines(ask.unit, ask.request) {
            if state.caching.directory.find(key).is_none()
                && let Some(place) = Self::bring_in(state, key, &ask, spare)
            {
                places.push((key, place));
            }
        }
        if places.is_empty() {
            return;
        }
        let bytes = Self::bytes_of(state.caching.line_bytes, &ask, &places);
        state.caching.populating_bytes += bytes;
        state.caching.counts.populate.add(bytes);
        self.count_write(state, &ask, bytes);
        state.caching.to_populate.extend(places.into_iter().map(|place| (ask, place)));
        self.populate_next(state);
    }

    /// Writes the next lines into the cache, up to the number that is allowed at once.
    fn populate_next(&self, state: &mut State) {
        while state.caching.populates < state.caching.populates_max {
            let Some((ask, place)) = state.caching.to_populate.pop_front() else { return };
            state.caching.populates += 1;
            self.on_flash(state, ask, Kind::Write, &[place], Then::Populated);
        }
    }

    /// Caches the lines that a request covers, as far as there is free room; used at the start of a run.
    pub(super) fn warm(&self, unit: u16, request: Request) {
        let mut state = self.state.borrow_mut();
        let caching = &mut state.caching;
        if caching.mode != CacheMode::None {
            for key in caching.lines(unit, request) {
                caching.directory.insert(key, false, true);
            }
        }
    }

    fn bytes_of(line_bytes: u64, ask: &Ask, places: &[(u64, u32)]) -> u64 {
        let keys: Vec<u64> = places.iter().map(|&(key, _)| key).collect();
        Self::runs(line_bytes, ask, &keys).iter().map(|run| run.bytes).sum()
    }

    pub(super) fn count_write(&self, state: &mut State, ask: &Ask, bytes: u64) {
        if Self::keeps(ask) {
            state.caching.counts.keep_write.add(bytes);
        }
        let size = usize::from(self.is_large(bytes));
        state.by_database[usize::from(ask.label.database)].cache[size].add(bytes);
    }

    /// Inserts a line that is not in the cache; returns its place, or `None` if there is no room for it.
    pub(super) fn bring_in(state: &mut State, key: u64, ask: &Ask, spare: bool) -> Option<u32> {
        let caching = &mut state.caching;
        let full = caching.directory.len() >= caching.directory.room();
        caching.counts.replacements += u64::from(full && !spare);
        match caching.directory.insert(key, Self::keeps(ask), spare) {
            Placed::At(place) => Some(place),
            Placed::OverKeep(place) => {
                caching.counts.keep_overwritten_bytes += caching.line_bytes;
                Some(place)
            }
            Placed::NoRoom => {
                caching.counts.replacements_failed += u64::from(full && !spare);
                None
            }
        }
    }

    /// Handles the end of a write into the cache: frees its memory and continues the requests that waited for memory.
    pub(super) fn populated(&self, state: &mut State, bytes: u64) {
        state.caching.populating_bytes -= bytes;
        state.caching.populates -= 1;
        self.populate_next(state);
        while let Some(&(op, ask)) = state.caching.parked.front() {
            let caching = &mut state.caching;
            let fits = caching.populating_bytes + ask.request.bytes <= caching.memory_bytes;
            if !fits && caching.populating_bytes > 0 {
                return;
            }
            caching.parked.pop_front();
            self.populate(state, ask);
            // A read: its answer is an event of its own, nobody is to be told here.
            self.part(state, op);
        }
    }
}
