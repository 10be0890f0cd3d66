//! What a cell counts. Everything is whole numbers, counted where it happens: the identities between
//! the metrics hold exactly because both sides are the same events.

use crate::device::Kind;

/// Requests and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Requests.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Sum {
    /// One more.
    #[inline]
    pub fn add(&mut self, bytes: u64) {
        self.requests += 1;
        self.bytes += bytes;
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { requests: self.requests + other.requests, bytes: self.bytes + other.bytes }
    }
}

/// I/O of a cell disk or grid disk, by kind and size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounts {
    sums: [[Sum; 2]; 2],
    ns: [[u64; 2]; 2],
}

impl IoCounts {
    /// One is complete.
    #[inline]
    pub fn add(&mut self, kind: Kind, large: bool, bytes: u64, elapsed_ns: u64) {
        let (kind, size) = (usize::from(kind == Kind::Write), usize::from(large));
        self.sums[kind][size].add(bytes);
        self.ns[kind][size] += elapsed_ns;
    }

    /// Requests and bytes.
    pub fn sum(&self, kind: Kind, large: bool) -> Sum {
        self.sums[usize::from(kind == Kind::Write)][usize::from(large)]
    }

    /// Sum of the times.
    pub fn ns(&self, kind: Kind, large: bool) -> u64 {
        self.ns[usize::from(kind == Kind::Write)][usize::from(large)]
    }
}

/// Flash cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Reads from flash.
    pub hit: Sum,
    /// Reads that looked there and had to go to disk.
    pub miss: Sum,
    /// Reads that bypass the cache.
    pub read_skip: Sum,
    /// Of them: too large.
    pub read_skip_large: Sum,
    /// Of `hit`: by segments with KEEP.
    pub keep_hit: Sum,
    /// Of `miss`: by segments with KEEP.
    pub keep_miss: Sum,
    /// Writes of lines that were not held.
    pub first: Sum,
    /// Writes of lines that were held.
    pub overwrite: Sum,
    /// Writes of what was read from disk.
    pub populate: Sum,
    /// Of the three: by segments with KEEP.
    pub keep_write: Sum,
    /// Writes that bypass the cache.
    pub write_skip: Sum,
    /// Of them: too large.
    pub write_skip_large: Sum,
    /// Of them: mirror copies.
    pub write_skip_mirror: Sum,
    /// What was read and not stored, because too much was on its way.
    pub throttled: Sum,
    /// Destages: read from flash, written to disk.
    pub destage_read: Sum,
    /// Destages, on disk.
    pub destage_write: Sum,
    /// Lines that were to come in when the cache was full.
    pub replacements: u64,
    /// Of them: nothing could go.
    pub replacements_failed: u64,
    /// Bytes of KEEP pushed out by its own limit.
    pub keep_overwritten_bytes: u64,
}

impl CacheCounts {
    /// All writes to the cache.
    pub fn writes(&self) -> Sum {
        self.first.and(self.overwrite).and(self.populate)
    }
}

/// Why a redo write did not use the flash log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// Too much on flash that is not on disk yet.
    Busy,
    /// Larger than the space on a module.
    Large,
    /// Its grid disk is on flash.
    LogOnFlash,
    /// There are no flash modules.
    NoFlash,
    /// Its grid disk must not.
    DisabledGrid,
    /// The plan says no.
    Plan,
}

impl Skip {
    /// All, in the order of [`LogCounts::skips`].
    pub const ALL: [Self; 6] =
        [Self::Busy, Self::Large, Self::LogOnFlash, Self::NoFlash, Self::DisabledGrid, Self::Plan];
}

/// Flash log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounts {
    /// Raced writes that disk completed first.
    pub disk_first: u64,
    /// Raced writes that flash completed first.
    pub flash_first: u64,
    /// Raced writes whose disk copy only was an outlier.
    pub prevented: u64,
    /// Raced writes whose flash copy only was an outlier.
    pub flash_only: u64,
    /// Raced writes both copies of which were outliers.
    pub actual: u64,
    /// Writes that were not raced, by reason.
    pub skips: [u64; 6],
    /// Outliers among them.
    pub skip_outliers: u64,
    /// Disk copies of raced writes that are complete.
    pub disk_bytes: u64,
    /// Flash copies that are complete.
    pub flash_bytes: u64,
    /// Sum of the times of raced writes, to the first copy.
    pub race_ns: u64,
    /// Sum of the times of all redo writes.
    pub request_ns: u64,
}

impl LogCounts {
    /// Raced writes.
    pub fn raced(&self) -> u64 {
        self.disk_first + self.flash_first
    }

    /// All redo writes.
    pub fn requests(&self) -> u64 {
        self.raced() + self.skips.iter().sum::<u64>()
    }
}

/// Smart scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanCounts {
    /// Bytes that a cell may filter.
    pub eligible_bytes: u64,
    /// Bytes that came back.
    pub returned_bytes: u64,
    /// Bytes that came back unfiltered.
    pub passed_bytes: u64,
    /// Requests served by disk only.
    pub disk: Sum,
    /// By flash only.
    pub flash: Sum,
    /// By both at once.
    pub both: Sum,
}

/// A database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseCounts {
    /// On hard disks; small, large.
    pub disk: [Sum; 2],
    /// Time on hard disks.
    pub disk_ns: [u64; 2],
    /// Time in the queues of resource management.
    pub wait_ns: [u64; 2],
    /// On flash modules.
    pub flash: [Sum; 2],
    /// Time on flash modules.
    pub flash_ns: [u64; 2],
    /// Served or taken by the flash cache.
    pub cache: [Sum; 2],
    /// Raced writes.
    pub log: Sum,
}
