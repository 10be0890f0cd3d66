//! Parameters of a rack of storage cells, and the sources of their values.
//!
//! The defaults are a quarter rack of Exadata X2-2 with high performance disks: three cells. [`RackParameters::x3`] is
//! the next generation, as far as its numbers are published.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::iorm::IormParameters;
use crate::device::cache::CacheParameters;
use crate::device::disk::DiskParameters;
use crate::device::flash::FlashParameters;
use crate::device::parameters;
use crate::kernel::sample::Times;

parameters! {
    /// A rack of storage cells.
    pub struct RackParameters {
        /// number of cells
        count: u64 = 3, from "quarter rack of X2-2: 3", in 1.0..=1_000.0;
        /// number of disks of a cell
        disks: u64 = 12, from "X2 cell: 12", in 1.0..=256.0;
        /// number of flash modules of a cell
        modules: u64 = 16, from "X2 cell: 4 F20 cards of 4 modules", in 0.0..=256.0;
        /// part of each flash module whose pages are simulated; addresses beyond it are mapped into it
        simulated_mb: u64 = 64, from "chosen: write amplification depends on ratios, not on size", in 1.0..=100_000.0;
        /// a disk
        disk: DiskParameters = DiskParameters::default(), from "its own table";
        /// disk controller of a cell, which its disks share
        controller: CacheParameters = CacheParameters::default(), from "its own table";
        /// a flash module
        flash: FlashParameters = FlashParameters::default(), from "its own table";
        /// time that each flash request occupies the path to the flash modules of a cell; all modules share it, one
        /// request at a time
        flash_request_us: f64 = 10.2,
            from "a calibrated X2 cell: 98,216 small reads a second of all modules, a third of their sum";
        /// network between database and cell
        network: NetworkParameters = NetworkParameters::default(), from "its own table";
        /// flash log
        flash_log: FlashLogParameters = FlashLogParameters::default(), from "its own table";
        /// flash cache
        flash_cache: FlashCacheParameters = FlashCacheParameters::default(), from "its own table";
        /// smart scan
        scan: ScanParameters = ScanParameters::default(), from "its own table";
        /// resource management
        iorm: IormParameters = IormParameters::default(), from "its own table";
        /// disk groups, by name
        groups: BTreeMap<String, GroupParameters> = usual_groups(),
            from "X2-2: DATA and RECO on every disk";
    }
}

const BOOK: &str = "Expert Oracle Exadata, ch. 5";
const MANUAL: &str = "Oracle's manual of the storage software";

/// Returns the usual disk groups of an X2-2 rack.
fn usual_groups() -> BTreeMap<String, GroupParameters> {
    let group = |size_gb| GroupParameters { size_gb, ..GroupParameters::default() };
    BTreeMap::from([("DATA".into(), group(430.0)), ("RECO".into(), group(108.0))])
}

impl RackParameters {
    /// Returns an X3-2: a larger cache, and 107,000 small reads per second of all modules of a cell (Exadata technical
    /// overview 2012). A single F40 module is assumed to be as fast as an F20 module, since no figures for it were
    /// found.
    pub fn x3() -> Self {
        let flash_cache = FlashCacheParameters { size_gb: 1_488.75, ..Default::default() };
        Self { flash_cache, flash_request_us: 9.3, ..Self::default() }
    }
}

parameters! {
    /// Network between database and cell.
    pub struct NetworkParameters {
        /// round-trip time of a request, including the cell's own work; overlaps with that of other requests
        request_us: f64 = 180.0,
            from "a V2 cell reads 32 KB from its flash cache in 0.4 ms (Durrett): what flash and wire leave";
        /// transfer rate into a cell, and out of it; one message at a time
        rate_mb_s: f64 = 3_200.0, from "InfiniBand QDR: 40 Gbit/s less coding";
    }
}

parameters! {
    /// Flash log.
    pub struct FlashLogParameters {
        /// true if there is a flash log
        enabled: bool = true, from "created with the cell";
        /// size of the flash log on each module
        module_mb: u64 = 32, from "Oracle's manual: 512 MB a cell", in 1.0..=100_000.0;
        /// time that the cell needs to start a raced write, before it sends either copy
        dispatch_us: f64 = 10.0,
            from "fitted to the shift of the median sync in the source's flash log experiment: 19 us, and with 20 \
                  sessions a sync sees two writes";
        /// size of the flash copy in addition to the redo
        header_bytes: u64 = 512, from "fitted to flash MB / disk MB = 1.044 of a cell's counters", in 0.0..=1e6;
        /// unit to which a flash copy is rounded up
        page_bytes: u64 = 4_096, from "alignment notes of the F20 card", in 512.0..=1_048_576.0;
        /// time above which a copy counts as an outlier
        outlier_ms: f64 = 500.0, from "the source: 500 ms";
        /// share of redo writes that are delayed before either copy is sent
        common_cause_ratio: f64 = 0.0, from "none by default; to be fitted to outliers that survive the race";
        /// length of the delay of both copies of a redo write
        common_cause: Times = Times::Exponential { mean_us: 10_000.0 }, from "of no effect by default";
    }
}

/// How a flash cache treats writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheMode {
    /// Writes to disk, then to flash.
    #[default]
    WriteThrough,
    /// Writes to flash; to disk later.
    WriteBack,
    /// There is no cache.
    None,
}

parameters! {
    /// Flash cache of a cell.
    pub struct FlashCacheParameters {
        /// handling of writes by the cache: write-through, write-back or none
        mode: CacheMode = CacheMode::WriteThrough, from "before 11.2.3.2.0: write-through";
        /// size of the flash cache of a cell
        size_gb: f64 = 365.25, from "X2: 365.25 GB; X3: 1,488.75 GB", in 0.001..=1e6;
        /// size of a line
        line_kb: u64 = 8, from "chosen: a database block", in 1.0..=1e6;
        /// size up to which a request is small
        small_kb: u64 = 128, from BOOK, in 1.0..=1e6;
        /// share of the space that KEEP may use
        keep_limit_ratio: f64 = 0.8, from "80 %, from memory; that there is a limit: counter FC_BYKEEP_OVERWR";
        /// true if large reads without KEEP are cached where there is free room
        scans: bool = false, from "Oracle's manual: since 11.2.3.3.0";
        /// share of the space that may be dirty
        dirty_limit_ratio: f64 = 0.8, from "assumed; a cell with 97 % overwrites destaged next to nothing";
        /// number of lines that are destaged at once
        destages: u64 = 48, from "assumed: some a disk", in 1.0..=1e6;
        /// number of lines from disk that are written into the cache at once
        populates: u64 = 1,
            from "assumed: one stream per cell; chosen because the first scan with KEEP cost nothing before", in 1.0..=1e6;
        /// memory for lines from disk that are not on flash yet; when it is full, reads of KEEP segments wait, other
        /// lines are not stored
        populate_mb: u64 = 64,
            from "assumed; counter FC_IO_RQ_W_SKIP_FC_THROTTLE shows that there is a limit", in 1.0..=1e6;
    }
}

parameters! {
    /// Smart scan.
    pub struct ScanParameters {
        /// true if cells filter the rows of a scan
        offload: bool = true, from MANUAL;
        /// share of the bytes that cells return after filtering
        returned_ratio: f64 = 0.1, from "the query's; chosen";
    }
}

/// Medium of a group's grid disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// A slice of every disk.
    #[default]
    Disk,
    /// A slice of every flash module.
    Flash,
}

/// Number of copies of the data, each in another cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Redundancy {
    /// One copy.
    External,
    /// Two copies.
    #[default]
    Normal,
    /// Three copies.
    High,
}

impl Redundancy {
    /// Returns the number of copies.
    pub fn copies(self) -> u64 {
        match self {
            Self::External => 1,
            Self::Normal => 2,
            Self::High => 3,
        }
    }
}

/// Caching policy of a segment, or of a grid disk (which cannot be `Keep`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Caching {
    /// Nothing new is cached; cached lines stay.
    None,
    /// Size, purpose and copy of a request decide whether it is cached.
    #[default]
    Default,
    /// Preferred: large reads are cached as well, up to the space limit of KEEP.
    Keep,
}

parameters! {
    /// A disk group.
    pub struct GroupParameters {
        /// medium of the grid disks: disk or flash
        on: Medium = Medium::Disk, from "chosen";
        /// external, normal or high: 1, 2 or 3 copies
        redundancy: Redundancy = Redundancy::Normal, from "Oracle's default";
        /// size of each grid disk
        size_gb: f64 = 100.0, from "X2-2 600 GB: about 430 and 108", in 0.001..=1e6;
        /// size of an extent, the allocation unit
        extent_mb: u64 = 4, from "Oracle's advice for Exadata: 4 MB", in 1.0..=1e6;
        /// caching policy of the group's grid disks: default or none
        caching: Caching = Caching::Default, from MANUAL;
        /// true if redo on the group may use the flash log
        flash_log: bool = true, from "counter FL_IO_W_SKIP_DISABLED_GD";
        /// part of the group that is in the flash cache at the start
        warm_mb: u64 = 0, from "chosen: 0, a new cache";
    }
}
