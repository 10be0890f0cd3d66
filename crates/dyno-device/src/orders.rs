//! Orders (I/O, flush, discard, pause) that other threads hand to a device's thread, and the state that they share.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, mpsc};
use std::time::Instant;

use dyno_model::device::{Request, Wear};
use dyno_stats::histogram::LogHistogram;

/// Function that sends the reply of a request.
pub type Reply = Box<dyn FnOnce() + Send>;

/// What a device's thread is to do.
pub(crate) enum Order {
    Io { arrived_ns: u64, pieces: Vec<Request>, reply: Reply },
    Flush { arrived_ns: u64, reply: Reply },
    Discard { arrived_ns: u64, ranges: Vec<Range>, reply: Reply },
    Wear { arrived_ns: u64, answer: mpsc::Sender<Vec<Wear>> },
    Pause { arrived_ns: u64, pause_ns: u64, reply: Reply },
}

/// Offset and length on the device [bytes].
pub type Range = (u64, u64);

impl Order {
    /// Returns the arrival time of the order [ns].
    pub(crate) fn arrived_ns(&self) -> u64 {
        match self {
            Self::Io { arrived_ns, .. }
            | Self::Flush { arrived_ns, .. }
            | Self::Discard { arrived_ns, .. }
            | Self::Wear { arrived_ns, .. }
            | Self::Pause { arrived_ns, .. } => *arrived_ns,
        }
    }
}

/// Times of completed requests.
#[derive(Clone, Default)]
pub struct Timing {
    /// Modelled time of each read [ns].
    pub read_ns: LogHistogram,
    /// Modelled time of each write [ns].
    pub write_ns: LogHistogram,
    /// Modelled time of each flush [ns].
    pub flush_ns: LogHistogram,
    /// Modelled time of each discard [ns].
    pub discard_ns: LogHistogram,
    /// Delay of each reply after its modelled time [ns].
    pub late_ns: LogHistogram,
}

/// State of a device that its thread shares with other threads.
pub(crate) struct Shared {
    pub begin: Instant,
    pub inbox: Mutex<Vec<Order>>,
    pub stopping: AtomicBool,
    pub half_floor_ns: AtomicU64,
    pub wake_ns: AtomicU64,
    pub timing: Mutex<Timing>,
}

impl Shared {
    /// Returns the time since the device was started [ns].
    pub fn now_ns(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }
}
