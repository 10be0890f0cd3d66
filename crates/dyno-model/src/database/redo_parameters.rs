//! Parameters of the redo path, with their sources.

use serde::{Deserialize, Serialize};

use crate::device::{Parameter, parameter};

/// The redo path.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedoParameters {
    /// Log buffer.
    pub buffer_kb: u64,
    /// Public strands that share it.
    pub strands: u64,
    /// Private strand of a transaction; 0: none.
    pub private_kb: u64,
    /// Redo block.
    pub block_bytes: u64,
    /// Filled so far, the log writer writes without a commit; a third of the buffer does as well.
    pub trigger_kb: u64,
    /// The log writer looks for redo at least so often.
    pub timeout_s: f64,
    /// Longest single write.
    pub write_kb: u64,
    /// Log files.
    pub groups: u64,
    /// Size of each.
    pub file_mb: u64,
    /// Incremental checkpoint: how far it may lag, in log files.
    pub checkpoint_lag: f64,
    /// Writes to the control file during a log switch, one after the other.
    pub switch_writes: u64,
    /// CPU of a session to take room in a strand, its latch held.
    pub allocate_us: f64,
    /// How long a session spins for that latch before it sleeps.
    pub spin_us: f64,
    /// CPU of a session to copy redo.
    pub copy_us_per_kb: f64,
    /// Redo of a commit itself.
    pub commit_bytes: u64,
    /// CPU of the log writer before a write.
    pub gather_us: f64,
    /// CPU of the log writer to post one waiter.
    pub post_us: f64,
}

const LGWR: &str = "Oracle: write at commit, one third, 1 MB, 3 s";

impl RedoParameters {
    /// Meaning and source of each.
    pub const TABLE: [Parameter; 17] = [
        parameter("buffer_kb", "log buffer", "Oracle 11.2 default: some MB").within(64.0, 1e7),
        parameter(
            "strands",
            "public strands that share the log buffer",
            "Oracle: _log_parallelism_max, 2 up to 16 CPUs, one more for each 16",
        )
        .within(1.0, 1_024.0),
        parameter(
            "private_kb",
            "private strand of a transaction; 0: redo goes to the public strands at once",
            "Oracle 10g: 65 KB",
        )
        .within(0.0, 1e6),
        parameter("block_bytes", "redo block", "Oracle: 512 by default; 4096 since 11.2").within(512.0, 1_048_576.0),
        parameter("trigger_kb", "write when so much is filled", LGWR).within(1.0, 1e7),
        parameter("timeout_s", "write after so long", LGWR).within(0.001, 3_600.0),
        parameter("write_kb", "longest single write", "Oracle: 1 MB, the largest I/O of a platform").within(1.0, 1e6),
        parameter("groups", "log files, used in turn", "Oracle: 3 by default").within(2.0, 1_000.0),
        parameter("file_mb", "size of a log file", "chosen").within(1.0, 1e6),
        parameter(
            "checkpoint_lag",
            "dirty blocks are written when the log is so many files past their redo",
            "Oracle: 90 % of the smallest log file",
        )
        .within(0.01, 100.0),
        parameter(
            "switch_writes",
            "control file writes of a log switch, one after the other",
            "assumed: records of both files and of the switch",
        )
        .within(0.0, 1_000.0),
        parameter(
            "allocate_us",
            "CPU of a session to take room in a strand, its latch held",
            "assumed: order of size of a latch's hold",
        ),
        parameter("spin_us", "spin for the latch before sleep", "Oracle: _spin_count 2000, some 10 us"),
        parameter("copy_us_per_kb", "CPU to copy redo into a strand", "assumed: memory at 2 GB/s"),
        parameter("commit_bytes", "redo of a commit itself", "assumed: a commit record and its header")
            .within(0.0, 1e6),
        parameter("gather_us", "CPU of the log writer before a write", "assumed: order of size"),
        parameter("post_us", "CPU to post a waiter", "assumed: a system call and a wake-up"),
    ];
}

impl Default for RedoParameters {
    fn default() -> Self {
        Self {
            buffer_kb: 8 << 10,
            strands: 2,
            private_kb: 65,
            block_bytes: 512,
            trigger_kb: 1 << 10,
            timeout_s: 3.0,
            write_kb: 1 << 10,
            groups: 3,
            file_mb: 512,
            checkpoint_lag: 0.9,
            switch_writes: 4,
            allocate_us: 0.5,
            spin_us: 10.0,
            copy_us_per_kb: 0.5,
            commit_bytes: 200,
            gather_us: 10.0,
            post_us: 5.0,
        }
    }
}
