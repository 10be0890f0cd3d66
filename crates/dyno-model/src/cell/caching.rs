//! Flash cache: what of reads and writes goes to flash, and when it goes back to disk.
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
//! Small is up to 128 KB. "Into the cache" is for data and scans only, of segments and grid disks
//! whose caching policy is not none, of databases whose plan allows it; in write-through mode for the
//! primary copy only. Redo, temporary segments and backups never come in. What comes in is clean,
//! counts as held from the moment its write is given to the card, and nobody waits for it, as long as
//! there is memory for what is on its way: beyond that KEEP waits, the rest is not stored.
//!
//! A line counts as held as a whole, whatever part of it was written: valid parts of lines are left
//! out. So are smart placement by frequency, compression, and expiry of KEEP by the hour.

use std::collections::VecDeque;

use super::counts::CacheCounts;
use super::directory::{Directory, Placed};
use super::parameters::{self, CacheMode, RackParameters};
use super::storage_cell::{Ask, State, StorageCell, Then};
use super::{CellError, Purpose};
use crate::device::{Done, Kind, Request};
use crate::kernel::sample::whole_ns;

/// Lines that lie side by side on a module.
const CHUNK: u32 = 8;

/// The flash cache of a cell.
pub(super) struct Caching {
    pub mode: CacheMode,
    pub directory: Directory,
    pub counts: CacheCounts,
    pub line_bytes: u64,
    keep_limit_ratio: f64,
    dirty_limit_ratio: f64,
    scans: bool,
    /// Where it begins on each module, and how many modules there are.
    from_bytes: u64,
    modules: u32,
    destages: u64,
    destaging: u64,
    flushing: bool,
    memory_bytes: u64,
    populating_bytes: u64,
    /// Reads of KEEP whose lines wait for memory.
    parked: VecDeque<(u64, Ask)>,
}

impl Caching {
    pub fn new(rack: &RackParameters, modules: usize) -> Self {
        let parameters = &rack.flash_cache;
        let mode = if modules == 0 { CacheMode::None } else { parameters.mode };
        let mut caching = Self {
            mode,
            directory: Directory::new(0, 0),
            counts: CacheCounts::default(),
            line_bytes: parameters.line_kb.max(1) << 10,
            keep_limit_ratio: parameters.keep_limit_ratio,
            dirty_limit_ratio: parameters.dirty_limit_ratio,
            scans: parameters.scans,
            from_bytes: rack.flash_log.module_mb << 20,
            modules: modules.max(1) as u32,
            destages: parameters.destages.max(1),
            destaging: 0,
            flushing: false,
            memory_bytes: parameters.populate_mb << 20,
            populating_bytes: 0,
            parked: VecDeque::new(),
        };
        if mode != CacheMode::None {
            caching.create(parameters.size_gb);
        }
        caching
    }

    fn create(&mut self, size_gb: f64) {
        let room = whole_ns(size_gb * f64::from(1 << 30)) / self.line_bytes;
        let keep = whole_ns(room as f64 * self.keep_limit_ratio);
        self.directory = Directory::new(room, keep);
    }

    pub fn holds(&self) -> bool {
        let open = self.destaging + self.directory.dirty() + self.populating_bytes;
        self.directory.holds() && (self.mode == CacheMode::WriteBack || open >= self.destaging)
    }

    fn lines(&self, unit: u16, request: Request) -> std::ops::RangeInclusive<u64> {
        let (first, last) = request.units(self.line_bytes);
        let unit = u64::from(unit) << 48;
        (unit | first)..=(unit | last)
    }

    /// Module and offset of a place.
    fn address(&self, place: u32) -> (u32, u64) {
        let (chunk, within) = (place / CHUNK, place % CHUNK);
        let line = u64::from(chunk / self.modules) * u64::from(CHUNK) + u64::from(within);
        (chunk % self.modules, self.from_bytes + line * self.line_bytes)
    }
}

impl StorageCell {
    /// May lines of this request come in?
    fn may_cache(state: &State, ask: &Ask) -> bool {
        let caching = &state.caching;
        caching.mode != CacheMode::None
            && matches!(ask.label.purpose, Purpose::Data | Purpose::Scan)
            && ask.label.caching != parameters::Caching::None
            && state.slices[usize::from(ask.group)].cached
            && state.directives[usize::from(ask.label.database)].flash_cache
            && (ask.copy == 0 || caching.mode == CacheMode::WriteBack)
    }

    fn keeps(ask: &Ask) -> bool {
        ask.label.caching == parameters::Caching::Keep
    }

    /// One I/O for each run of places side by side on a module; how many. The bytes are those of the
    /// request's part in each line.
    fn on_flash(
        &self,
        state: &mut State,
        ask: Ask,
        kind: Kind,
        places: &[(u64, u32)],
        then: Then,
    ) -> u32 {
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
                Some((at, request))
                    if *at == module && request.offset_bytes + request.bytes == offset_bytes =>
                {
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

    fn module_io(&self, state: &mut State, ask: Ask, module: u32, request: Request, then: Then) {
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
        let runs = if by_flash { self.runs(state, &ask, &missing) } else { vec![ask.request] };
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

    /// Runs of missing lines as reads, no further than the request.
    fn runs(&self, state: &State, ask: &Ask, missing: &[u64]) -> Vec<Request> {
        let line_bytes = state.caching.line_bytes;
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

    /// What was missing is read from disk: into the cache, then it is a part like any other.
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
                && let Some(place) = self.bring_in(state, key, &ask, spare)
            {
                places.push((key, place));
            }
        }
        if places.is_empty() {
            return;
        }
        let before = state.ops.len();
        debug_assert!(before > 0 || ask.request.bytes > 0);
        let bytes = self.bytes_of(state, &ask, &places);
        state.caching.populating_bytes += bytes;
        state.caching.counts.populate.add(bytes);
        self.count_write(state, &ask, bytes);
        self.on_flash(state, ask, Kind::Write, &places, Then::Populated);
    }

    fn bytes_of(&self, state: &State, ask: &Ask, places: &[(u64, u32)]) -> u64 {
        let keys: Vec<u64> = places.iter().map(|&(key, _)| key).collect();
        self.runs(state, ask, &keys).iter().map(|run| run.bytes).sum()
    }

    fn count_write(&self, state: &mut State, ask: &Ask, bytes: u64) {
        if Self::keeps(ask) {
            state.caching.counts.keep_write.add(bytes);
        }
        let size = usize::from(self.is_large(bytes));
        state.by_database[usize::from(ask.label.database)].cache[size].add(bytes);
    }

    /// Place of a line that is not held.
    fn bring_in(&self, state: &mut State, key: u64, ask: &Ask, spare: bool) -> Option<u32> {
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

    /// A write into the cache is on flash: its memory is free, and who waited for it goes on.
    pub(super) fn populated(&self, state: &mut State, bytes: u64) {
        state.caching.populating_bytes -= bytes;
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

    pub(super) fn write_data(&self, state: &mut State, op: u64, ask: Ask) {
        if state.caching.mode == CacheMode::None {
            self.io(state, ask, Then::Part(op));
            return;
        }
        let large = self.is_large(ask.request.bytes);
        if large || !Self::may_cache(state, &ask) {
            self.bypass(state, op, ask, large);
        } else if state.caching.mode == CacheMode::WriteThrough {
            self.io(state, ask, Then::Through(op));
        } else {
            self.write_back(state, op, ask);
        }
    }

    /// To disk only; lines that are held are out of date.
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

    /// Places of all lines of a write; none if there is no room.
    fn places(&self, state: &mut State, ask: &Ask) -> Option<Vec<(u64, u32)>> {
        let (mut places, mut new) = (Vec::new(), false);
        for key in state.caching.lines(ask.unit, ask.request) {
            let place = if let Some(place) = state.caching.directory.find(key) {
                state.caching.directory.touch(place, Self::keeps(ask));
                place
            } else {
                new = true;
                self.bring_in(state, key, ask, false)?
            };
            places.push((key, place));
        }
        let bytes = ask.request.bytes;
        let counts = &mut state.caching.counts;
        if new {
            counts.first.add(bytes)
        } else {
            counts.overwrite.add(bytes)
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

    /// A write is on disk: onto flash as well, and nobody waits for that.
    pub(super) fn written_through(&self, state: &mut State, op: u64, ask: Ask) -> Option<Done> {
        if state.caching.mode == CacheMode::WriteThrough
            && let Some(places) = self.places(state, &ask)
        {
            self.on_flash(state, ask, Kind::Write, &places, Then::Nothing);
        }
        self.part(state, op)
    }

    /// Starts destages while too much is dirty.
    fn destage(&self, state: &mut State) {
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
            let key = caching.directory.key(place);
            let line_bytes = caching.line_bytes;
            let (module, offset_bytes) = caching.address(place);
            let offset_on_disk = (key & ((1 << 48) - 1)) * line_bytes;
            let unit = (key >> 48) as u16;
            let slices = state.slices.iter().filter(|slice| !slice.on_flash);
            let group = slices
                .filter(|slice| (slice.from_bytes..slice.to_bytes).contains(&offset_on_disk))
                .map(|slice| slice.group)
                .next();
            let ask = Ask {
                unit,
                group: group.unwrap_or(Ask::NO_GROUP),
                copy: 0,
                label: super::Label::DESTAGE,
                request: Request::read(offset_bytes, line_bytes),
            };
            self.module_io(state, ask, module, ask.request, Then::DestageRead(place));
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

    /// Begins to write everything dirty to disk; done when [`StorageCell::dirty_bytes`] is 0.
    pub fn flush(&self) {
        let state = &mut *self.state.borrow_mut();
        state.caching.flushing = true;
        self.destage(state);
    }

    /// Bytes of the flash cache that are not on disk.
    pub fn dirty_bytes(&self) -> u64 {
        let caching = &self.state.borrow().caching;
        caching.directory.dirty() * caching.line_bytes
    }

    /// Drops the flash cache. What is dirty must be flushed first.
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

    /// Creates the flash cache, empty. There must be none.
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
        state.caching.create(size_gb);
        Ok(())
    }
}
