//! State of a cell while it runs: requests, their I/O, and all counters.

use std::rc::Rc;

use super::ask::Ask;
use super::cache_state::CacheState;
use super::counts::{CacheCounts, DatabaseCounts, IoCounts, LogCounts, ScanCounts};
use super::iorm::{Directive, IormParameters, Plan, Queues};
use super::log_space::{LogSpace, Race};
use super::parameters::RackParameters;
use crate::device::slab::Slab;
use crate::device::{Device, Done};
use crate::kernel::{Station, Stream};

/// Request that the cell is processing.
pub(super) struct Op {
    pub ask: Ask,
    pub done: Option<Done>,
    pub arrived_ns: u64,
    /// Number of incomplete parts.
    pub left: u32,
    pub race: Option<Race>,
    /// True for each source from which bytes of a read came: disk, then flash.
    pub from: [bool; 2],
}

/// Action after a device has finished.
#[derive(Clone, Copy)]
pub(super) enum Then {
    /// A part of this request is complete.
    Part(u64),
    /// A part was read from disk and is to be cached.
    Miss(u64),
    /// A write is on disk and is to be cached.
    Through(u64),
    /// The disk copy of a raced write is complete.
    DiskCopy(u64),
    /// The flash copy of a raced write is complete.
    FlashCopy(u64),
    /// A redo write that was not raced is complete.
    Unraced(u64),
    /// A write into the cache is complete: its memory is free again.
    Populated,
    /// A write into the cache is complete and no request waits for it.
    Nothing,
    /// A line to be destaged was read from flash.
    DestageRead(u32),
    /// A destaged line is on disk.
    DestageWrite(u32),
}

/// An I/O that a device is processing, or that waits for it.
pub(super) struct Io {
    pub ask: Ask,
    pub then: Then,
    pub asked_ns: u64,
    pub started_ns: u64,
    /// True if the I/O goes through a queue of resource management.
    pub managed: bool,
}

/// Disks or modules of a cell.
pub(super) type Units = Vec<Rc<dyn Device>>;

/// Part of every disk or every flash module that belongs to a group.
pub(super) struct Slice {
    pub group: u16,
    pub from_bytes: u64,
    pub to_bytes: u64,
    pub on_flash: bool,
    pub cached: bool,
    pub flash_log: bool,
}

pub(super) struct State {
    pub ops: Slab<Op>,
    pub ios: Slab<Io>,
    pub station: Station,
    pub in_free_ns: u64,
    pub out_free_ns: u64,
    /// Time at which the path to the modules is free [ns].
    pub flash_free_ns: u64,
    pub log: LogSpace,
    pub caching: CacheState,
    pub queues: Vec<Queues>,
    pub plan: Option<Plan>,
    pub iorm: IormParameters,
    pub databases: Vec<String>,
    pub directives: Vec<Directive>,
    pub slices: Vec<Slice>,
    pub units: Vec<IoCounts>,
    /// Counters of each grid disk, by group and then by disk or module.
    pub grids: Vec<IoCounts>,
    pub by_database: Vec<DatabaseCounts>,
    pub scan: ScanCounts,
    pub dice: Stream,
}

impl State {
    /// Returns the state of a cell with these disks and modules.
    pub fn new(
        parameters: &RackParameters,
        (disks, modules): (usize, usize),
        slices: Vec<Slice>,
        dice: Stream,
    ) -> Self {
        let units = disks + modules;
        Self {
            ops: Slab::default(),
            ios: Slab::default(),
            station: Station::default(),
            in_free_ns: 0,
            out_free_ns: 0,
            flash_free_ns: 0,
            log: LogSpace::new(&parameters.flash_log, modules),
            caching: CacheState::new(parameters, modules),
            queues: (0..disks).map(|_| Queues::default()).collect(),
            plan: None,
            iorm: parameters.iorm.clone(),
            databases: Vec::new(),
            directives: Vec::new(),
            units: vec![IoCounts::default(); units],
            grids: vec![IoCounts::default(); units * slices.len()],
            slices,
            by_database: Vec::new(),
            scan: ScanCounts::default(),
            dice,
        }
    }

    /// Resets the counters.
    pub fn reset_counts(&mut self) {
        self.units.fill(IoCounts::default());
        self.grids.fill(IoCounts::default());
        self.by_database.fill(DatabaseCounts::default());
        self.scan = ScanCounts::default();
        self.log.counts = LogCounts::default();
        self.caching.counts = CacheCounts::default();
    }
}
