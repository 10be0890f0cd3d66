//! Counters of a cell: whole numbers, counted where the event happens. The identities between the metrics hold exactly
//! because both sides of an identity count the same events.

use crate::device::Kind;

/// Number of requests and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Number of requests.
    pub requests: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl Sum {
    /// Adds a request.
    #[inline]
    pub fn add(&mut self, bytes: u64) {
        self.requests += 1;
        self.bytes += bytes;
    }

    /// Returns the sum of this and `other`.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { requests: self.requests + other.requests, bytes: self.bytes + other.bytes }
    }
}

/// Counters of the I/O of a cell disk or grid disk, by kind and size of the I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounts {
    sums: [[Sum; 2]; 2],
    ns: [[u64; 2]; 2],
}

impl IoCounts {
    /// Adds a completed I/O.
    #[inline]
    pub fn add(&mut self, kind: Kind, large: bool, bytes: u64, elapsed_ns: u64) {
        let (kind, size) = (usize::from(kind == Kind::Write), usize::from(large));
        self.sums[kind][size].add(bytes);
        self.ns[kind][size] += elapsed_ns;
    }

    /// Returns the number and the bytes of the requests of this kind and size.
    pub fn sum(&self, kind: Kind, large: bool) -> Sum {
        self.sums[usize::from(kind == Kind::Write)][usize::from(large)]
    }

    /// Returns the sum of the service times of the requests of this kind and size [ns].
    pub fn ns(&self, kind: Kind, large: bool) -> u64 {
        self.ns[usize::from(kind == Kind::Write)][usize::from(large)]
    }
}

/// Counters of the flash cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Reads from flash.
    pub hit: Sum,
    /// Reads that missed the cache and went to disk.
    pub miss: Sum,
    /// Reads that bypass the cache.
    pub read_skip: Sum,
    /// Part of `read_skip`: reads that are too large.
    pub read_skip_large: Sum,
    /// Part of `hit`: reads of segments with KEEP.
    pub keep_hit: Sum,
    /// Part of `miss`: reads of segments with KEEP.
    pub keep_miss: Sum,
    /// Writes of lines that were not in the cache.
    pub first: Sum,
    /// Writes of lines that were in the cache.
    pub overwrite: Sum,
    /// Writes of lines that were read from disk.
    pub populate: Sum,
    /// Part of `first`, `overwrite` and `populate`: writes of segments with KEEP.
    pub keep_write: Sum,
    /// Writes that bypass the cache.
    pub write_skip: Sum,
    /// Part of `write_skip`: writes that are too large.
    pub write_skip_large: Sum,
    /// Part of `write_skip`: mirror copies.
    pub write_skip_mirror: Sum,
    /// Reads that were not stored because the memory for lines on their way into the cache was full.
    pub throttled: Sum,
    /// Destages: reads from flash.
    pub destage_read: Sum,
    /// Destages: writes to disk.
    pub destage_write: Sum,
    /// Number of lines that needed a place when the cache was full.
    pub replacements: u64,
    /// Part of `replacements`: no line could be evicted.
    pub replacements_failed: u64,
    /// Bytes of KEEP segments that were evicted because KEEP had reached its own limit.
    pub keep_overwritten_bytes: u64,
}

impl CacheCounts {
    /// Returns all writes to the cache.
    pub fn writes(&self) -> Sum {
        self.first.and(self.overwrite).and(self.populate)
    }
}

/// Reason why a redo write did not use the flash log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// Too many bytes of the flash log are not on disk yet, so that there is no room.
    Busy,
    /// The write is larger than the space of the flash log on a module.
    Large,
    /// The grid disk is on flash.
    LogOnFlash,
    /// There are no flash modules.
    NoFlash,
    /// The grid disk must not use the flash log.
    DisabledGrid,
    /// The IORM plan forbids the use of the flash log.
    Plan,
}

impl Skip {
    /// All reasons in the order of [`LogCounts::skips`].
    pub const ALL: [Self; 6] =
        [Self::Busy, Self::Large, Self::LogOnFlash, Self::NoFlash, Self::DisabledGrid, Self::Plan];
}

/// Counters of the flash log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounts {
    /// Number of raced writes that disk completed first.
    pub disk_first: u64,
    /// Number of raced writes that flash completed first.
    pub flash_first: u64,
    /// Number of raced writes whose disk copy was an outlier and whose flash copy was not.
    pub prevented: u64,
    /// Number of raced writes whose flash copy was an outlier and whose disk copy was not.
    pub flash_only: u64,
    /// Number of raced writes whose copies were both outliers.
    pub actual: u64,
    /// Number of writes that were not raced, by reason.
    pub skips: [u64; 6],
    /// Number of outliers among the writes that were not raced.
    pub skip_outliers: u64,
    /// Bytes of completed disk copies of raced writes.
    pub disk_bytes: u64,
    /// Bytes of completed flash copies of raced writes.
    pub flash_bytes: u64,
    /// Sum over raced writes of the time until the first copy is complete [ns].
    pub race_ns: u64,
    /// Sum of the times of all redo writes [ns].
    pub request_ns: u64,
}

impl LogCounts {
    /// Returns the number of raced writes.
    pub fn raced(&self) -> u64 {
        self.disk_first + self.flash_first
    }

    /// Returns the number of redo writes.
    pub fn requests(&self) -> u64 {
        self.raced() + self.skips.iter().sum::<u64>()
    }
}

/// Counters of smart scans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanCounts {
    /// Bytes that the cell was allowed to filter.
    pub eligible_bytes: u64,
    /// Bytes returned to the database.
    pub returned_bytes: u64,
    /// Bytes returned unfiltered.
    pub passed_bytes: u64,
    /// Requests served by disk only.
    pub disk: Sum,
    /// Requests served by flash only.
    pub flash: Sum,
    /// Requests served by disk and flash simultaneously.
    pub both: Sum,
}

/// Counters of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseCounts {
    /// I/O on hard disks: small requests, then large ones.
    pub disk: [Sum; 2],
    /// Service time on hard disks [ns]: small requests, then large ones.
    pub disk_ns: [u64; 2],
    /// Time that requests waited in the queues of resource management [ns]: small requests, then large ones.
    pub wait_ns: [u64; 2],
    /// I/O on flash modules: small requests, then large ones.
    pub flash: [Sum; 2],
    /// Service time on flash modules [ns]: small requests, then large ones.
    pub flash_ns: [u64; 2],
    /// I/O that the flash cache served or stored: small requests, then large ones.
    pub cache: [Sum; 2],
    /// Raced redo writes.
    pub log: Sum,
}
