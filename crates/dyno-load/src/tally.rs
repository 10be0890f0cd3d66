//! Counts of transactions and errors, per arm.

use serde::Serialize;

use crate::line::Lateness;

/// Report of one block.
#[derive(Debug, Clone, Serialize)]
pub struct BlockReport {
    /// Start [ns since the epoch].
    pub started_ns: i64,
    /// End [ns since the epoch].
    pub ended_ns: i64,
    /// Number of connections that were lost and re-established.
    pub reconnects: u64,
    /// CPU time of the threads that serve the sessions [ns].
    pub cpu_ns: u64,
    /// Number of threads that serve the sessions.
    ///
    /// If `cpu_ns` is near `threads` times the block's length, the load generator itself is the bottleneck.
    pub threads: u32,
    /// True if a request to stop ended the block early.
    pub interrupted: bool,
    /// One report per arm, in the order of the arms.
    pub arms: Vec<ArmReport>,
    /// One report per arm whose sessions use a line.
    pub lines: Vec<LineReport>,
    /// Codes of all errors so far (SQLSTATEs), each once.
    pub error_codes: Vec<String>,
}

/// Lateness of an arm's line in one block.
#[derive(Debug, Clone, Serialize)]
pub struct LineReport {
    /// Arm number.
    pub arm: u16,
    /// Number of pieces that the line delivered, and their lateness.
    #[serde(flatten)]
    pub lateness: Lateness,
}

/// Report of one arm in one block.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ArmReport {
    /// Arm number.
    pub arm: u16,
    /// Number of transactions that ended, with or without an error.
    pub transactions: u64,
    /// Number of transactions that ended with an unexpected error after all tries.
    pub errors: u64,
    /// Number of tries beyond the first.
    pub retries: u64,
    /// Number of arrivals that were skipped because they were too late.
    pub skipped: u64,
    /// Time from a slice's start to the end of a session's last transaction, summed over slices and sessions [ns].
    ///
    /// In a closed loop the throughput is the number of transactions times the number of sessions, divided by this
    /// time.
    pub busy_ns: u64,
    /// Largest delay with which a free session started an arrival in an open loop [ns].
    pub lag_max_ns: i64,
    /// CPU time of the threads that serve the sessions, in the arm's slices [ns].
    pub load_cpu_ns: u64,
    /// Message of the first error.
    pub first_error: Option<String>,
}

/// Counts of one session for one arm.
#[derive(Debug, Default)]
pub struct Tally {
    transactions: u64,
    errors: u64,
    retries: u64,
    /// Number of arrivals that were skipped because they were too late.
    pub skipped: u64,
    /// See [`ArmReport::busy_ns`].
    pub busy_ns: u64,
    /// See [`ArmReport::lag_max_ns`].
    pub lag_max_ns: i64,
    first_error: Option<String>,
}

impl Tally {
    /// Counts a transaction with this number of tries.
    #[inline]
    pub fn transaction(&mut self, failed: bool, tries: u8) {
        self.transactions += 1;
        self.errors += u64::from(failed);
        self.retries += u64::from(tries) - 1;
    }

    /// Keeps the message of the first error; later messages are ignored.
    pub fn note_error(&mut self, words: impl FnOnce() -> String) {
        self.first_error.get_or_insert_with(words);
    }

    /// Returns the number of transactions so far.
    pub fn transactions(&self) -> u64 {
        self.transactions
    }

    /// Adds these counts to the arm's report.
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
