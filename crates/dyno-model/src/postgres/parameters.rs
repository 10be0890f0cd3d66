//! Parameters of a `PostgreSQL` server and its clients, and the costs of each statement.

use serde::{Deserialize, Serialize};

use super::cores::CoresParameters;
use super::counts::Counts;
use super::load::Script;
use super::relation::Relation;
use crate::device::parameters;
use crate::kernel::sample::Times;

/// Costs of a statement.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Statement {
    /// Text, as in the evidence.
    pub text: String,
    /// CPU time of the server's process in user mode [us].
    pub user_us: f64,
    /// CPU time of the server's process in the kernel [us].
    pub system_us: f64,
    /// Log volume of an execution, unless a step gives sizes [bytes].
    pub wal_bytes: f64,
    /// Blocks of data files that an execution reads.
    #[serde(skip_serializing_if = "Counts::is_empty")]
    pub reads: Counts,
    /// Changed blocks that an execution writes to make room for others.
    #[serde(skip_serializing_if = "Counts::is_empty")]
    pub writes: Counts,
    /// Blocks of temporary files that an execution reads.
    #[serde(skip_serializing_if = "Counts::is_empty")]
    pub temp_reads: Counts,
    /// Blocks of temporary files that an execution writes.
    #[serde(skip_serializing_if = "Counts::is_empty")]
    pub temp_writes: Counts,
    /// Numbers of the relations of which an execution references a page by its key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<usize>,
}

impl Statement {
    /// Checks the statement's numbers of I/Os, and that the relations that it touches exist: there are `relations`
    /// relations.
    fn check(&self, relations: usize) -> Result<(), String> {
        if let Some(relation) = self.touches.iter().find(|&&relation| relation >= relations) {
            return Err(format!("a statement touches relation {relation} of {relations}"));
        }
        [&self.reads, &self.writes, &self.temp_reads, &self.temp_writes].into_iter().try_for_each(Counts::check)
    }

    /// Returns the CPU time of the statement [us].
    pub fn cpu_us(&self) -> f64 {
        self.user_us + self.system_us
    }
}

const POSTGRES: &str = "PostgreSQL: the default of this setting";
const ASSUMED: &str = "assumed: order of size";
const ROW_WAIT: &str =
    "PostgreSQL 15, AMD EPYC: updates of one row and of ten by 8 to 32 sessions, 22 to 29 us for each wait";

parameters! {
    /// Parameters of a `PostgreSQL` server.
    pub struct PostgresParameters {
        /// number of cores of the host, which servers and clients share
        cores: u64 = 2, from "chosen", in 1.0..=4_096.0;
        /// true if commits wait until their log is durable
        synchronous_commit: bool = true, from POSTGRES;
        /// time that a flushing process waits for other commits
        commit_delay_us: f64 = 0.0, from POSTGRES, in 0.0..=100_000.0;
        /// minimum number of other open transactions for which a flushing process waits
        commit_siblings: u64 = 5, from POSTGRES, in 0.0..=1_000.0;
        /// true if a commit waits until its write is synced; false: only until it is written, which takes no time on
        /// the device
        commit_syncs: bool = true, from "MariaDB: false where innodb_flush_log_at_trx_commit is 2";
        /// true if a flush wakes all processes that wait for the log; false: only those whose log it wrote, and the one
        /// that writes next
        wakes_all: bool = true, from "PostgreSQL: LWLockAcquireOrWait; MariaDB: false, group_commit_lock";
        /// true if commits are written to a binary log too, in groups, after their own log
        binlog: bool = false, from "MariaDB: log_bin, off by default";
        /// number of groups of commits per sync of the binary log; 0: no sync
        binlog_sync_every: u64 = 0, from "MariaDB: sync_binlog, 0 by default", in 0.0..=4_294_967_295.0;
        /// CPU time of a commit to write its events to the binary log
        binlog_us: f64 = 20.0, from ASSUMED;
        /// interval of the log writer, which flushes what no commit waits for
        wal_writer_delay_ms: f64 = 200.0, from POSTGRES, in 1.0..=10_000.0;
        /// log beyond the last sync from which an asynchronous commit wakes the log writer [KB]; 0: it is not woken
        wal_writer_wake_kb: f64 = 8.0, from "PostgreSQL up to 16: one page (XLogSetAsyncXactLSN)";
        /// log that the log writer writes before it syncs, if its interval has not passed [KB]
        wal_writer_flush_kb: f64 = 1_024.0, from "PostgreSQL: wal_writer_flush_after, 1 MB by default";
        /// size of the log's buffers; a process that finds them full writes the oldest pages first; 0: unlimited
        wal_buffers_kb: f64 = 0.0, from "none: they are never full";
        /// number of requests of a sync one after the other, before each of which the process needs a core
        sync_requests: u64 = 1, from "none: a sync is one request", in 1.0..=16.0;
        /// CPU time of another process that serves a sync: a kernel worker, or the server of a mount
        sync_served_us: f64 = 0.0, from "none: the device serves it alone";
        /// size of a log page; a flush writes whole pages
        page_bytes: u64 = 8_192, from "PostgreSQL: --with-wal-blocksize, 8 KB by default", in 512.0..=1_048_576.0;
        /// CPU time of a flush besides the device: the calls that write and sync
        flush_us: f64 = 15.0, from ASSUMED;
        /// CPU time of a flush per KB that it writes
        flush_us_per_kb: f64 = 0.0, from "none: it is in flush_us";
        /// CPU time per KB of log, to create and insert it
        insert_us_per_kb: f64 = 0.0, from "none: it is in the costs of statements";
        /// CPU time of a wait for the log's lock: to go to sleep and to wake up
        latch_us: f64 = 4.0, from ASSUMED;
        /// CPU time of a wait for a row lock: to queue, to wake up, to check the row again
        lock_us: f64 = 26.0, from ROW_WAIT;
        /// CPU time of a server process to start an idle core when it wakes its client
        wake_us: f64 = 0.0, from "none: it is in the costs of statements";
        /// CPU time of a client thread to start an idle core when it wakes a server process
        client_wake_us: f64 = 0.0, from "none: it is in the costs of a round trip";
        /// part of the CPU times of client and server that is computed after a message was sent, before going to sleep
        tail_us: f64 = 0.0, from "none: a process sleeps as soon as it has sent";
        /// CPU time of a server process to reload its data into the cache of a core that was idle or that others used
        cold_us: f64 = 0.0, from "none: it is in the costs of statements";
        /// CPU time of a client thread to reload its data into the cache of a core that was idle or that others used
        client_cold_us: f64 = 0.0, from "none: it is in the costs of a round trip";
        /// CPU time of the client per round trip
        client_us: f64 = 10.0, from ASSUMED;
        /// number of threads of the client; 0: one per session up to two sessions per core, then one per core
        client_threads: u64 = 0, from "dbdyno: threads of its load generator", in 0.0..=4_096.0;
        /// time for which the sessions run until it is another arm's turn; 0: without an end
        turn_ms: f64 = 0.0, from "none: the sessions never stop", in 0.0..=3.6e6;
        /// spread of the CPU time of statements: standard deviation of its natural logarithm
        cpu_sigma: f64 = 0.3, from "assumed", in 0.0..=5.0;
        /// number of other programs that always want a core; a fraction is a program that wants a core for that share
        /// of the time
        others: f64 = 0.0, from "none", in 0.0..=4_096.0;
        /// time of a round trip that is neither CPU nor a named wait: wake-ups on both sides
        delay: Times = Times::Constant { us: 30.0 }, from ASSUMED;
        /// share of round trips with the same delay as the one before, because a busy machine stays busy for a while
        delay_memory: f64 = 0.0, from "none: each is drawn again", in 0.0..=0.999;
        /// factor by which the delays are multiplied
        delay_factor: f64 = 1.0, from "none", in 0.0..=100.0;
        /// time between two transactions of a session at the client
        think: Times = Times::Constant { us: 0.0 }, from "none: a closed loop";
        /// factor by which the CPU time of all statements is multiplied; its interval expresses how well that time is
        /// known
        cpu_factor: f64 = 1.0, from "none", in 0.001..=1_000.0;
        /// factor by which the times of empirical devices are multiplied, unless `data_factor` applies
        device_factor: f64 = 1.0, from "none", in 0.001..=1_000.0;
        /// statements with their costs
        statements: Vec<Statement> = Vec::new(), from "calibrated from a run";
        /// scripts of the calibrated arm, one of which is drawn for each transaction
        scripts: Vec<Script> = Vec::new(), from "calibrated from a run";
        /// number of sessions of the arm from which the machine was calibrated; 0: unknown
        calibrated_sessions: u64 = 0, from "calibrated from a run", in 0.0..=65_535.0;
        /// CPU time of a read of a data block, as part of the wait for it
        read_us: f64 = 10.0, from ASSUMED;
        /// CPU time of a write of a changed block by a session, as part of the wait for it
        write_us: f64 = 10.0, from ASSUMED;
        /// CPU time of a read or write of a temporary block, as part of the wait for it
        temp_us: f64 = 10.0, from ASSUMED;
        /// share of the reads of data blocks that the kernel's cache answers; these take only CPU time
        cached_ratio: f64 = 0.0, from "none";
        /// share of the reads and writes of temporary blocks that stay in the kernel's cache
        temp_cached_ratio: f64 = 0.0, from "none";
        /// time of a read or write of a file in addition to the time of its device
        data_late: Times = Times::Constant { us: 0.0 }, from "none";
        /// factor by which `data_late` is multiplied, and the times of the data device if it is empirical (only its
        /// reads if it also has the log)
        data_factor: f64 = 1.0, from "none", in 0.001..=1_000.0;
        /// size of the buffer cache; 0: unknown, and statements read as many blocks as were counted
        shared_buffers_mb: f64 = 0.0, from "calibrated from a run";
        /// size of the buffer cache with which reads were counted; 0: unknown
        calibrated_buffers_mb: f64 = 0.0, from "calibrated from a run";
        /// memory of a sort or hash with which temporary blocks were counted; 0: unknown
        work_mem_mb: f64 = 0.0, from "calibrated from a run";
        /// size of the data files, over which reads are spread
        data_mb: f64 = 1_000.0, from ASSUMED;
        /// pages that statements reference by a key, in groups of equal popularity
        relations: Vec<Relation> = Vec::new(), from "calibrated from a run";
        /// scheduler of the cores
        scheduler: CoresParameters = CoresParameters::default(), from "a table of its own";
    }
}

impl PostgresParameters {
    /// Checks what ranges of single numbers cannot express.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        self.relations.iter().try_for_each(Relation::check)?;
        self.statements.iter().try_for_each(|statement| statement.check(self.relations.len()))
    }
}
