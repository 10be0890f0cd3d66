//! State of the flash cache of a cell: its content, and writes into it that are under way.

use std::collections::VecDeque;

use super::ask::Ask;
use super::counts::CacheCounts;
use super::directory::Directory;
use super::parameters::{CacheMode, RackParameters};
use crate::device::Request;
use crate::kernel::sample::whole_ns;

/// Number of adjacent lines that are placed on one module before the next module is used.
const CHUNK: u32 = 8;

/// The flash cache of a cell.
pub(super) struct CacheState {
    pub mode: CacheMode,
    pub directory: Directory,
    pub counts: CacheCounts,
    pub line_bytes: u64,
    keep_limit_ratio: f64,
    pub dirty_limit_ratio: f64,
    pub scans: bool,
    /// Offset at which the cache begins on each module [bytes].
    from_bytes: u64,
    /// Number of modules.
    modules: u32,
    pub destages: u64,
    pub destaging: u64,
    pub flushing: bool,
    /// True if writes bypass the cache, so that it stays clean.
    pub write_past: bool,
    pub memory_bytes: u64,
    pub populating_bytes: u64,
    /// Lines from disk that are not being written to flash yet.
    pub to_populate: VecDeque<(Ask, (u64, u32))>,
    pub populates: u64,
    pub populates_max: u64,
    /// Reads of KEEP segments that wait for memory to store their lines.
    pub parked: VecDeque<(u64, Ask)>,
}

impl CacheState {
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
            write_past: false,
            memory_bytes: parameters.populate_mb << 20,
            populating_bytes: 0,
            to_populate: VecDeque::new(),
            populates: 0,
            populates_max: parameters.populates.max(1),
            parked: VecDeque::new(),
        };
        if mode != CacheMode::None {
            caching.create(parameters.size_gb);
        }
        caching
    }

    pub fn create(&mut self, size_gb: f64) {
        let room = whole_ns(size_gb * f64::from(1 << 30)) / self.line_bytes;
        let keep = whole_ns(room as f64 * self.keep_limit_ratio);
        self.directory = Directory::new(room, keep);
    }

    pub fn holds(&self) -> bool {
        self.directory.holds()
            && self.destaging <= self.directory.dirty()
            && (self.mode == CacheMode::WriteBack || self.directory.dirty() == 0)
    }

    pub fn lines(&self, unit: u16, request: Request) -> std::ops::RangeInclusive<u64> {
        let (first, last) = request.units(self.line_bytes);
        let unit = u64::from(unit) << 48;
        (unit | first)..=(unit | last)
    }

    /// Returns the module that contains a place, and the offset of the place on that module [bytes].
    pub fn address(&self, place: u32) -> (u32, u64) {
        let (chunk, within) = (place / CHUNK, place % CHUNK);
        let line = u64::from(chunk / self.modules) * u64::from(CHUNK) + u64::from(within);
        (chunk % self.modules, self.from_bytes + line * self.line_bytes)
    }
}
