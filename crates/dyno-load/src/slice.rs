//! Slice of a block, in which one arm runs: its length, and the state that its threads share.

use std::sync::atomic::AtomicI64;

/// Slice of a block, in which one arm runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Arm number.
    pub arm: u16,
    /// Slice number within the block.
    pub slice: u32,
    /// Length of the slice.
    pub length: Length,
}

/// Length of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Time from the slice's start after which no transaction begins [ns].
    DurationNs(u64),
    /// Total number of transactions of all sessions.
    Transactions(u64),
}

/// Counter that the threads share during one slice; the last thread that arrives at the gate sets it.
#[derive(Debug, Default)]
pub struct Quota {
    /// Number of transactions that can still begin, in a closed loop whose slice ends after a number of transactions.
    pub(crate) left: AtomicI64,
}
