//! Slice of a block, in which one arm runs: its length, and what its threads share.

use std::sync::atomic::AtomicI64;

/// Slice of a block, in which one arm runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Number of the arm.
    pub arm: u16,
    /// Number of the slice within the block.
    pub slice: u32,
    /// When it ends.
    pub length: Length,
}

/// Length of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Time after which no transaction begins [ns from the slice's start].
    DurationNs(u64),
    /// Number of transactions, over all sessions.
    Transactions(u64),
}

/// Counter that the threads share during one slice; the last thread at the gate sets it.
#[derive(Debug, Default)]
pub struct Quota {
    /// Transactions that may still begin, in a closed loop with a number of transactions.
    pub(crate) left: AtomicI64,
}
