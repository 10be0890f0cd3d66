//! One turn of one arm: how long it is, and what its sessions share of it.

use std::sync::atomic::AtomicI64;

/// One turn of one arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Number of the arm.
    pub arm: u16,
    /// Running number in the block.
    pub slice: u32,
    /// How long.
    pub length: Length,
}

/// How long a slice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// No transaction begins after this time.
    DurationNs(u64),
    /// So many transactions over all sessions.
    Transactions(u64),
}

/// What the threads share of one slice; set by the last thread at the gate.
#[derive(Debug, Default)]
pub struct Quota {
    /// Transactions left to begin, in a closed loop that counts them.
    pub(crate) left: AtomicI64,
}
