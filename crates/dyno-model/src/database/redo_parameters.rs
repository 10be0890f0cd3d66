//! Parameters of the redo path, with the sources of their values.

use crate::device::parameters;

parameters! {
    /// Parameters of the redo path.
    pub struct RedoParameters {
        /// size of the log buffer
        buffer_kb: u64 = 8 << 10, from "Oracle 11.2 default: some MB", in 64.0..=1e7;
        /// number of public strands that share the log buffer
        strands: u64 = 2, from "Oracle: _log_parallelism_max, 2 up to 16 CPUs, one more for each 16", in 1.0..=1_024.0;
        /// size of the private strand of a transaction; 0: redo goes to the public strands at once
        private_kb: u64 = 65, from "Oracle 10g: 65 KB", in 0.0..=1e6;
        /// size of a redo block
        block_bytes: u64 = 512, from "Oracle: 512 by default; 4096 since 11.2", in 512.0..=1_048_576.0;
        /// filled part of the buffer that triggers a write
        trigger_kb: u64 = 1 << 10, from LGWR, in 1.0..=1e7;
        /// time after which the log writer writes the redo in the buffer even if nothing else triggers a write
        timeout_s: f64 = 3.0, from LGWR, in 0.001..=3_600.0;
        /// size of the longest single write
        write_kb: u64 = 1 << 10, from "Oracle: 1 MB, the largest I/O of a platform", in 1.0..=1e6;
        /// number of log files, which are used cyclically
        groups: u64 = 3, from "Oracle: 3 by default", in 2.0..=1_000.0;
        /// size of a log file
        file_mb: u64 = 512, from "chosen", in 1.0..=1e6;
        /// a block is written when the log has grown by this many log files since its redo
        checkpoint_lag: f64 = 0.9, from "Oracle: 90 % of the smallest log file", in 0.01..=100.0;
        /// number of control file writes of a log switch, one after the other
        switch_writes: u64 = 4, from "assumed: records of both files and of the switch", in 0.0..=1_000.0;
        /// CPU time of a session to allocate space in a strand while it holds the latch
        allocate_us: f64 = 0.5, from "assumed: order of size of a latch's hold";
        /// time to spin for the latch before sleeping
        spin_us: f64 = 10.0, from "Oracle: _spin_count 2000, some 10 us";
        /// CPU time to copy redo into a strand
        copy_us_per_kb: f64 = 0.5, from "assumed: memory at 2 GB/s";
        /// size of the redo of a commit record
        commit_bytes: u64 = 200, from "assumed: a commit record and its header", in 0.0..=1e6;
        /// CPU time of the log writer before a write
        gather_us: f64 = 10.0, from "assumed: order of size";
        /// CPU time to post a waiting session
        post_us: f64 = 5.0, from "assumed: a system call and a wake-up";
    }
}

const LGWR: &str = "Oracle: write at commit, one third, 1 MB, 3 s";
