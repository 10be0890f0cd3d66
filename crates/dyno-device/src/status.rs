//! State of a mount as JSON, the content of the hidden status file.

use serde::{Deserialize, Serialize};

use crate::faults::FaultRow;
use crate::orders::Timing;
use dyno_model::device::Wear;
use dyno_stats::histogram::LogHistogram;

/// Name of the hidden status file.
pub const STATUS: &str = ".dbdyno-device";

/// How the kernel passes requests to the mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Through `io_uring`, where the kernel offers it.
    #[default]
    Ring,
    /// By reads of `/dev/fuse`.
    Read,
}

/// Counts and quantiles of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    /// Number of requests.
    pub count: u64,
    /// Median [ns].
    pub p50_ns: f64,
    /// 99th percentile [ns].
    pub p99_ns: f64,
    /// Longest time [ns].
    pub max_ns: u64,
}

impl Times {
    fn of(histogram: &LogHistogram) -> Self {
        let quantile = |q| histogram.quantile(q).unwrap_or(0.0);
        Self {
            count: histogram.count(),
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            max_ns: histogram.max().unwrap_or(0),
        }
    }
}

/// State of a mount.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Name of the device.
    pub device: String,
    /// Underlying folder.
    pub back: String,
    /// Process that serves the mount.
    pub process: u32,
    /// Cost of a request through the kernel [ns], subtracted from each request's time.
    pub floor_ns: u64,
    /// 99th percentile of the cost of a request through the kernel [ns]; its excess over the median is not subtracted.
    pub floor_p99_ns: u64,
    /// Time to start a waiting program on a processor that has become idle [ns]; subtracted when only one request is
    /// outstanding.
    pub wake_ns: u64,
    /// True if the kernel caches writes until they are synced, or have been cached for some time.
    pub kernel_writeback: bool,
    /// True if the kernel caches nothing.
    pub direct_io: bool,
    /// True if a thread polls for requests instead of being woken for each.
    pub polls: bool,
    /// How the kernel passes requests to the mount.
    pub transport: Transport,
    /// Capacity of the device [bytes]; 0 if no device is modelled.
    pub capacity_bytes: u64,
    /// Space in use on the device [bytes].
    pub used_bytes: u64,
    /// Modelled times of reads.
    pub read: Times,
    /// Modelled times of writes.
    pub write: Times,
    /// Modelled times of flushes.
    pub flush: Times,
    /// Modelled times of the discards that the device executes.
    pub discard: Times,
    /// Wear of the device's flash.
    pub wear: Vec<Wear>,
    /// Delays of replies after their modelled time.
    pub late: Times,
    /// Faults that happened.
    pub faults: Vec<FaultRow>,
}

impl Status {
    /// Fills in the quantiles of times from histograms.
    #[must_use]
    pub fn with(mut self, timing: &Timing) -> Self {
        self.read = Times::of(&timing.read_ns);
        self.write = Times::of(&timing.write_ns);
        self.flush = Times::of(&timing.flush_ns);
        self.discard = Times::of(&timing.discard_ns);
        self.late = Times::of(&timing.late_ns);
        self
    }
}
