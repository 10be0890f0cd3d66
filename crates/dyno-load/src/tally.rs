//! What the sessions count, per arm.

use serde::Serialize;

use crate::line::Lateness;

/// What happened in one block.
#[derive(Debug, Clone, Serialize)]
pub struct BlockReport {
    /// When it began [ns since the epoch].
    pub started_ns: i64,
    /// When it ended [ns since the epoch].
    pub ended_ns: i64,
    /// Connections that were lost and made again.
    pub reconnects: u64,
    /// CPU time of the threads that serve the sessions [ns].
    pub cpu_ns: u64,
    /// How many threads that was spread over: near `threads` times the block's length, the load
    /// itself is the limit.
    pub threads: u32,
    /// The block was cut short by the caller's wish to stop.
    pub interrupted: bool,
    /// One report per arm, in the order of the arms.
    pub arms: Vec<ArmReport>,
    /// One per arm whose sessions go by way of a line.
    pub lines: Vec<LineReport>,
    /// The SQLSTATEs of all errors so far, each once.
    pub error_codes: Vec<String>,
}

/// How late the line of an arm was in one block.
#[derive(Debug, Clone, Serialize)]
pub struct LineReport {
    /// Number of the arm.
    pub arm: u16,
    /// What it let go, and how late.
    #[serde(flatten)]
    pub lateness: Lateness,
}

/// What happened to one arm in one block.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ArmReport {
    /// Number of the arm.
    pub arm: u16,
    /// Transactions that ran to an end, well or with an error.
    pub transactions: u64,
    /// Transactions that ended with an error after all tries.
    pub errors: u64,
    /// Tries beyond the first.
    pub retries: u64,
    /// Arrivals that were given up.
    pub skipped: u64,
    /// Sum over slices and sessions: end of the session's last transaction minus the slice's start.
    /// In a closed loop, transactions times sessions over this is the throughput.
    pub busy_ns: u64,
    /// Open loop: longest time that a free session started after the intended time.
    pub lag_max_ns: i64,
    /// The first error in words.
    pub first_error: Option<String>,
}

/// What one thread counts for one arm.
#[derive(Debug, Default)]
pub struct Tally {
    transactions: u64,
    errors: u64,
    retries: u64,
    /// Arrivals that were given up.
    pub skipped: u64,
    /// See [`ArmReport::busy_ns`].
    pub busy_ns: u64,
    /// See [`ArmReport::lag_max_ns`].
    pub lag_max_ns: i64,
    first_error: Option<String>,
}

impl Tally {
    /// Counts a transaction.
    #[inline]
    pub fn transaction(&mut self, failed: bool, tries: u8) {
        self.transactions += 1;
        self.errors += u64::from(failed);
        self.retries += u64::from(tries) - 1;
    }

    /// Keeps the first error's words.
    pub fn note_error(&mut self, words: impl FnOnce() -> String) {
        self.first_error.get_or_insert_with(words);
    }

    /// Transactions so far.
    pub fn transactions(&self) -> u64 {
        self.transactions
    }

    /// Adds this thread's counts to the arm's.
    pub fn add_to(self, report: &mut ArmReport) {
        report.transactions += self.transactions;
        report.errors += self.errors;
        report.retries += self.retries;
        report.skipped += self.skipped;
        report.busy_ns += self.busy_ns;
        report.lag_max_ns = report.lag_max_ns.max(self.lag_max_ns);
        report.first_error = report.first_error.take().or(self.first_error);
    }
}
