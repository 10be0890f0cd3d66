//! Parameters of a rack of storage cells, and where their numbers come from.
//!
//! The defaults are a quarter rack of Exadata X2-2 with high performance disks: three cells.
//! [`RackParameters::x3`] gives the next generation, as far as its numbers are published.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::iorm::IormParameters;
use crate::device::cache::CacheParameters;
use crate::device::disk::DiskParameters;
use crate::device::flash::FlashParameters;
use crate::device::{Parameter, parameter};
use crate::kernel::sample::Times;

/// A rack of storage cells.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RackParameters {
    /// Cells.
    pub count: u64,
    /// Disks of a cell.
    pub disks: u64,
    /// Flash modules of a cell.
    pub modules: u64,
    /// Part of each flash module whose pages are simulated.
    pub simulated_mb: u64,
    /// A disk.
    pub disk: DiskParameters,
    /// The disk controller of a cell.
    pub controller: CacheParameters,
    /// A flash module.
    pub flash: FlashParameters,
    /// Of each flash request, on the way that all modules of a cell share.
    pub flash_request_us: f64,
    /// Between database and cell.
    pub network: NetworkParameters,
    /// Flash log.
    pub flash_log: FlashLogParameters,
    /// Flash cache.
    pub flash_cache: FlashCacheParameters,
    /// Smart scan.
    pub scan: ScanParameters,
    /// Resource management.
    pub iorm: IormParameters,
    /// Disk groups, by name.
    pub groups: BTreeMap<String, GroupParameters>,
}

const BOOK: &str = "Expert Oracle Exadata, ch. 5";
const MANUAL: &str = "Oracle's manual of the storage software";

impl RackParameters {
    /// Meaning and source of each.
    pub const TABLE: [Parameter; 14] = [
        parameter("count", "cells", "quarter rack of X2-2: 3").within(1.0, 1_000.0),
        parameter("disks", "disks of a cell", "X2 cell: 12").within(1.0, 256.0),
        parameter("modules", "flash modules of a cell", "X2 cell: 4 F20 cards of 4 modules").within(0.0, 256.0),
        parameter(
            "simulated_mb",
            "part of each flash module whose pages are simulated; addresses beyond it are folded in",
            "chosen: write amplification depends on ratios, not on size",
        )
        .within(1.0, 100_000.0),
        parameter("disk", "a disk", "its own table"),
        parameter(
            "controller",
            "disk controller of a cell; its memory is divided evenly among the disks",
            "its own table",
        ),
        parameter("flash", "a flash module", "its own table"),
        parameter(
            "flash_request_us",
            "of each flash request, one after the other, on the way that all modules of a cell share",
            "a calibrated X2 cell: 98,216 small reads a second of all modules, a third of their sum",
        ),
        parameter("network", "between database and cell", "its own table"),
        parameter("flash_log", "flash log", "its own table"),
        parameter("flash_cache", "flash cache", "its own table"),
        parameter("scan", "smart scan", "its own table"),
        parameter("iorm", "resource management", "its own table"),
        parameter("groups", "disk groups, by name", "X2-2: DATA and RECO on every disk"),
    ];

    /// X3-2: a larger cache, and 107,000 small reads a second of all modules of a cell (Exadata technical
    /// overview 2012). A single F40 module is taken to be as fast as that of an F20: no numbers of
    /// its own were found.
    pub fn x3() -> Self {
        let flash_cache = FlashCacheParameters { size_gb: 1_488.75, ..Default::default() };
        Self { flash_cache, flash_request_us: 9.3, ..Self::default() }
    }
}

impl Default for RackParameters {
    fn default() -> Self {
        let group = |size_gb| GroupParameters { size_gb, ..GroupParameters::default() };
        Self {
            count: 3,
            disks: 12,
            modules: 16,
            simulated_mb: 64,
            disk: DiskParameters::default(),
            controller: CacheParameters::default(),
            flash: FlashParameters::default(),
            flash_request_us: 10.2,
            network: NetworkParameters::default(),
            flash_log: FlashLogParameters::default(),
            flash_cache: FlashCacheParameters::default(),
            scan: ScanParameters::default(),
            iorm: IormParameters::default(),
            groups: BTreeMap::from([("DATA".into(), group(430.0)), ("RECO".into(), group(108.0))]),
        }
    }
}

/// Between database and cell.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkParameters {
    /// Of a request, there and back, with the cell's own work on it.
    pub request_us: f64,
    /// Rate into and out of a cell.
    pub rate_mb_s: f64,
}

impl NetworkParameters {
    /// Meaning and source of each.
    pub const TABLE: [Parameter; 2] = [
        parameter(
            "request_us",
            "of a request there and back, with the cell's own work on it; overlaps",
            "a V2 cell reads 32 KB from its flash cache in 0.4 ms (Durrett): what flash and wire leave",
        ),
        parameter(
            "rate_mb_s",
            "rate into a cell, and out of it; one message after the other",
            "InfiniBand QDR: 40 Gbit/s less coding",
        ),
    ];
}

impl Default for NetworkParameters {
    fn default() -> Self {
        Self { request_us: 180.0, rate_mb_s: 3_200.0 }
    }
}

/// Flash log.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlashLogParameters {
    /// Is there one?
    pub enabled: bool,
    /// Its space on each module.
    pub module_mb: u64,
    /// Work of the cell to start a raced write, before either copy is on its way.
    pub dispatch_us: f64,
    /// What the flash copy has more than the redo.
    pub header_bytes: u64,
    /// The flash copy is whole pages.
    pub page_bytes: u64,
    /// A copy that takes longer is an outlier.
    pub outlier_ms: f64,
    /// How many redo writes, raced or not, are held up before either copy is on its way.
    pub common_cause_ratio: f64,
    /// For how long.
    pub common_cause: Times,
}

impl FlashLogParameters {
    /// Meaning and source of each.
    pub const TABLE: [Parameter; 8] = [
        parameter("enabled", "is there a flash log", "created with the cell"),
        parameter("module_mb", "its space on each module", "Oracle's manual: 512 MB a cell").within(1.0, 100_000.0),
        parameter(
            "dispatch_us",
            "work of the cell to start a raced write, before either copy",
            "fitted to the shift of the median sync in the source's flash log experiment: 19 us, \
             and with 20 sessions a sync sees two writes",
        ),
        parameter(
            "header_bytes",
            "what the flash copy has more than the redo",
            "fitted to flash MB / disk MB = 1.044 of a cell's counters",
        )
        .within(0.0, 1e6),
        parameter("page_bytes", "the flash copy is whole pages", "alignment notes of the F20 card")
            .within(512.0, 1_048_576.0),
        parameter("outlier_ms", "a copy that takes longer is an outlier", "the source: 500 ms"),
        parameter(
            "common_cause_ratio",
            "share of redo writes held up before either copy is on its way",
            "none by default; to be fitted to outliers that survive the race",
        ),
        parameter("common_cause", "for how long", "of no effect by default"),
    ];
}

impl Default for FlashLogParameters {
    fn default() -> Self {
        Self {
            enabled: true,
            module_mb: 32,
            dispatch_us: 10.0,
            header_bytes: 512,
            page_bytes: 4_096,
            outlier_ms: 500.0,
            common_cause_ratio: 0.0,
            common_cause: Times::Exponential { mean_us: 10_000.0 },
        }
    }
}

/// What a flash cache does with writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheMode {
    /// To disk, then to flash.
    #[default]
    WriteThrough,
    /// To flash; to disk later.
    WriteBack,
    /// There is no cache.
    None,
}

/// Flash cache of a cell.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlashCacheParameters {
    /// What it does with writes.
    pub mode: CacheMode,
    /// Space in a cell.
    pub size_gb: f64,
    /// Line.
    pub line_kb: u64,
    /// The largest small request.
    pub small_kb: u64,
    /// Share of the space that KEEP may take.
    pub keep_limit_ratio: f64,
    /// Are large reads cached without KEEP, where there is free room?
    pub scans: bool,
    /// Share of the space that may be dirty; beyond it lines are destaged.
    pub dirty_limit_ratio: f64,
    /// Lines being destaged at once.
    pub destages: u64,
    /// Memory for what is on its way from disk into the cache.
    pub populate_mb: u64,
}

impl FlashCacheParameters {
    /// Meaning and source of each.
    pub const TABLE: [Parameter; 9] = [
        parameter("mode", "write-through, write-back or none", "before 11.2.3.2.0: write-through"),
        parameter("size_gb", "space in a cell", "X2: 365.25 GB; X3: 1,488.75 GB").within(0.001, 1e6),
        parameter("line_kb", "line", "chosen: a database block").within(1.0, 1e6),
        parameter("small_kb", "the largest small request", BOOK).within(1.0, 1e6),
        parameter(
            "keep_limit_ratio",
            "share of the space that KEEP may take",
            "80 %, from memory; that there is a limit: counter FC_BYKEEP_OVERWR",
        ),
        parameter(
            "scans",
            "large reads are cached without KEEP where there is free room",
            "Oracle's manual: since 11.2.3.3.0",
        ),
        parameter(
            "dirty_limit_ratio",
            "share of the space that may be dirty",
            "assumed; a cell with 97 % overwrites destaged next to nothing",
        ),
        parameter("destages", "lines being destaged at once", "assumed: some a disk").within(1.0, 1e6),
        parameter(
            "populate_mb",
            "memory for what is on its way from disk into the cache; beyond it KEEP waits, the rest is skipped",
            "assumed; counter FC_IO_RQ_W_SKIP_FC_THROTTLE shows that there is a limit",
        )
        .within(1.0, 1e6),
    ];
}

impl Default for FlashCacheParameters {
    fn default() -> Self {
        Self {
            mode: CacheMode::WriteThrough,
            size_gb: 365.25,
            line_kb: 8,
            small_kb: 128,
            keep_limit_ratio: 0.8,
            scans: false,
            dirty_limit_ratio: 0.8,
            destages: 48,
            populate_mb: 64,
        }
    }
}

/// Smart scan.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScanParameters {
    /// Do cells filter what a scan reads?
    pub offload: bool,
    /// Share of the bytes that come back then.
    pub returned_ratio: f64,
}

impl ScanParameters {
    /// Meaning and source of each.
    pub const TABLE: [Parameter; 2] = [
        parameter("offload", "cells filter what a scan reads", MANUAL),
        parameter("returned_ratio", "share of the bytes that come back then", "the query's; chosen"),
    ];
}

impl Default for ScanParameters {
    fn default() -> Self {
        Self { offload: true, returned_ratio: 0.1 }
    }
}

/// What the grid disks of a group are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// A slice of every disk.
    #[default]
    Disk,
    /// A slice of every flash module.
    Flash,
}

/// Copies of everything, each in another cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Redundancy {
    /// One.
    External,
    /// Two.
    #[default]
    Normal,
    /// Three.
    High,
}

impl Redundancy {
    /// How many copies there are.
    pub fn copies(self) -> u64 {
        match self {
            Self::External => 1,
            Self::Normal => 2,
            Self::High => 3,
        }
    }
}

/// Caching policy of a segment, or of a grid disk (which knows no `Keep`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Caching {
    /// Not cached anew; what is cached stays.
    None,
    /// By size, purpose and copy.
    #[default]
    Default,
    /// Preferred: large reads as well, and within its own limit of space.
    Keep,
}

/// A disk group.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct GroupParameters {
    /// What its grid disks are made of.
    pub on: Medium,
    /// Copies.
    pub redundancy: Redundancy,
    /// Size of each grid disk.
    pub size_gb: f64,
    /// Allocation unit: goes to one grid disk as a whole.
    pub extent_mb: u64,
    /// Caching policy of its grid disks.
    pub caching: Caching,
    /// May redo on it use the flash log?
    pub flash_log: bool,
    /// What of it, from its beginning, the flash cache holds at the start.
    pub warm_mb: u64,
}

impl GroupParameters {
    /// Meaning and source of each.
    pub const TABLE: [Parameter; 7] = [
        parameter("on", "disk or flash", "chosen"),
        parameter("redundancy", "external, normal or high: 1, 2 or 3 copies", "Oracle's default"),
        parameter("size_gb", "size of each grid disk", "X2-2 600 GB: about 430 and 108").within(0.001, 1e6),
        parameter("extent_mb", "allocation unit", "Oracle's advice for Exadata: 4 MB").within(1.0, 1e6),
        parameter("caching", "caching policy of its grid disks: default or none", MANUAL),
        parameter("flash_log", "may its redo use the log", "counter FL_IO_W_SKIP_DISABLED_GD"),
        parameter("warm_mb", "held by the flash cache at the start", "chosen: 0, a new cache"),
    ];
}

impl Default for GroupParameters {
    fn default() -> Self {
        Self {
            on: Medium::Disk,
            redundancy: Redundancy::Normal,
            size_gb: 100.0,
            extent_mb: 4,
            caching: Caching::Default,
            flash_log: true,
            warm_mb: 0,
        }
    }
}
