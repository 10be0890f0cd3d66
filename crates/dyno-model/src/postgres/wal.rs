//! Write-ahead log: positions, the flush lock, and the log writer.
//!
//! The log has two positions: *inserted* by sessions, and *flushed* to the device. [`Wal::flush`] follows the server's
//! own loop: check whether the record is flushed; if the lock is held, sleep until it is free and check again;
//! otherwise take the lock and flush everything inserted so far, in whole pages, beginning with the page in which the
//! last flush ended.
//!
//! Engines differ in which processes they wake then. `PostgreSQL` wakes all that sleep, and these check again. `InnoDB`
//! wakes those whose records are flushed, and one more, which flushes next (`group_commit_lock`).
//!
//! `MariaDB`'s binary log works in the same loop: the first process in its queue writes the events of the entire queue,
//! syncs once per a given number of groups, and wakes the others (`MYSQL_BIN_LOG::trx_group_commit_leader`). The three
//! stages (write, sync, commit in order) are one here, because a leader holds the lock of the first until the second is
//! done.

use std::cell::Cell;
use std::rc::Rc;

use super::parameters::PostgresParameters;
use super::process::{Process, Sleepers, Wait};
use crate::device::{Device, Request, start};
use crate::kernel::sample::whole_ns;
use crate::kernel::{ProcessId, Sim};

/// Counters of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalCounts {
    /// Number of flushes.
    pub flushes: u64,
    /// Number of commits that inserted log.
    pub commits: u64,
    /// Size of the log inserted [bytes].
    pub inserted_bytes: u64,
    /// Bytes of written pages.
    pub written_bytes: u64,
}

/// State of the log writer.
#[derive(Default)]
pub(super) struct LogWriter {
    /// Amount of log not yet synced above which a commit wakes the log writer [bytes]; 0: commits never wake it.
    pub(super) wake_bytes: u64,
    /// Amount of log that the log writer writes before it syncs [bytes].
    pub(super) flush_bytes: u64,
    pub(super) woken: Cell<bool>,
    /// Process of the simulation that sleeps as the log writer.
    pub(super) sleeping: Cell<Option<ProcessId>>,
    /// Log position at the end of the last asynchronous commit.
    pub(super) commit: Cell<u64>,
}

impl LogWriter {
    fn new(wake_bytes: u64, flush_bytes: u64) -> Self {
        Self { wake_bytes, flush_bytes, ..Self::default() }
    }
}

pub(super) struct Inner {
    pub(super) sim: Sim,
    device: Rc<dyn Device>,
    pub(super) page_bytes: u64,
    pub(super) flush_ns: f64,
    byte_ns: f64,
    pub(super) latch_ns: u64,
    pub(super) wake_ns: u64,
    delay_ns: u64,
    siblings: u64,
    /// Number of flushes per sync; 0: no sync.
    sync_every: u64,
    wakes_all: bool,
    buffer_bytes: u64,
    sync_requests: u64,
    served_ns: u64,
    /// Process that serves the syncs.
    server: Process,
    pub(super) writer: LogWriter,
    pub(super) inserted: Cell<u64>,
    pub(super) written: Cell<u64>,
    pub(super) flushed: Cell<u64>,
    pub(super) held: Cell<bool>,
    released: Sleepers,
    /// Number of open transactions that have inserted log and do not wait for a row.
    writing: Cell<u64>,
    counts: Cell<WalCounts>,
}

impl Inner {
    /// Returns an empty log. Its flushes are not rounded to pages, do not wait for other commits, and wake only the
    /// processes whose records they wrote.
    fn new(sim: &Sim, parameters: &PostgresParameters, device: Rc<dyn Device>, server: Process) -> Self {
        Self {
            sim: sim.clone(),
            device,
            page_bytes: 1,
            flush_ns: parameters.flush_us * 1e3,
            byte_ns: parameters.flush_us_per_kb * 1e3 / 1_024.0,
            latch_ns: whole_ns(parameters.latch_us * 1e3),
            wake_ns: whole_ns(parameters.wake_us * 1e3),
            delay_ns: 0,
            siblings: parameters.commit_siblings,
            sync_every: 1,
            wakes_all: false,
            buffer_bytes: 0,
            sync_requests: 1,
            served_ns: 0,
            server,
            writer: LogWriter::default(),
            inserted: Cell::new(0),
            written: Cell::new(0),
            flushed: Cell::new(0),
            held: Cell::new(false),
            released: Sleepers::new(sim.place("WALWrite")),
            writing: Cell::new(0),
            counts: Cell::default(),
        }
    }
}

impl Inner {
    /// Returns the total size of the pages that contain the log from one position to another [bytes]: at least one
    /// page.
    fn pages(&self, from: u64, upto: u64) -> u64 {
        (upto.div_ceil(self.page_bytes) - from / self.page_bytes).max(1) * self.page_bytes
    }
}

/// Log of a server; clones share it.
#[derive(Clone)]
pub struct Wal(pub(super) Rc<Inner>);

impl Wal {
    /// Returns an empty log on a device.
    pub fn new(sim: &Sim, parameters: &PostgresParameters, device: Rc<dyn Device>, server: Process) -> Self {
        let bytes = |kb: f64| (kb * 1_024.0) as u64;
        Self(Rc::new(Inner {
            buffer_bytes: bytes(parameters.wal_buffers_kb),
            sync_requests: parameters.sync_requests.max(1),
            served_ns: whole_ns(parameters.sync_served_us * 1e3),
            writer: LogWriter::new(bytes(parameters.wal_writer_wake_kb), bytes(parameters.wal_writer_flush_kb)),
            page_bytes: parameters.page_bytes.max(1),
            delay_ns: whole_ns(parameters.commit_delay_us * 1e3),
            sync_every: u64::from(parameters.commit_syncs),
            wakes_all: parameters.wakes_all,
            ..Inner::new(sim, parameters, device, server)
        }))
    }

    /// Returns an empty binary log on a device.
    pub fn binary(sim: &Sim, parameters: &PostgresParameters, device: Rc<dyn Device>, server: Process) -> Self {
        Self(Rc::new(Inner { sync_every: parameters.binlog_sync_every, ..Inner::new(sim, parameters, device, server) }))
    }

    /// Inserts a record; returns the position of its end.
    pub fn insert(&self, bytes: u64) -> u64 {
        let inner = &*self.0;
        let end = inner.inserted.get() + bytes;
        inner.inserted.set(end);
        self.count(|counts| counts.inserted_bytes += bytes);
        end
    }

    /// Changes the number of open transactions for which a flush may wait.
    pub fn writing(&self, change: i64) {
        self.0.writing.set(self.0.writing.get().saturating_add_signed(change));
    }

    /// Returns the counters.
    pub fn counts(&self) -> WalCounts {
        self.0.counts.get()
    }

    /// Returns true if the log of all commits that did not wait for it is flushed.
    pub fn is_flushed(&self) -> bool {
        self.0.flushed.get() >= self.0.writer.commit.get()
    }

    /// Counts a commit.
    pub fn commit(&self) {
        self.count(|counts| counts.commits += 1);
    }

    fn count(&self, change: impl Fn(&mut WalCounts)) {
        let mut counts = self.0.counts.get();
        change(&mut counts);
        self.0.counts.set(counts);
    }

    /// Waits until everything up to `record` is flushed; an idle core needs `start_ns` to start a process.
    pub async fn flush(&self, process: &Process, record: u64, start_ns: u64) {
        let inner = &*self.0;
        while inner.flushed.get() < record {
            if inner.held.get() {
                self.sleep(process, record, start_ns).await;
                continue;
            }
            inner.held.set(true);
            // The transaction that flushes is one of those that write.
            if inner.delay_ns > 0 && inner.writing.get() > inner.siblings {
                let begin_ns = process.leave();
                inner.sim.hold(inner.delay_ns).await;
                process.back(Wait::CommitDelay, begin_ns).await;
            }
            self.write(process, inner.inserted.get()).await;
            self.sync(process).await;
            self.release(process).await;
        }
    }

    /// Waits until a record of this size fits into the buffers: writes the oldest pages, or waits until another process
    /// has written them.
    pub async fn make_room(&self, process: &Process, bytes: u64) {
        let inner = &*self.0;
        while inner.buffer_bytes > 0 && inner.inserted.get() + bytes > inner.written.get() + inner.buffer_bytes {
            let upto = (inner.inserted.get() + bytes).saturating_sub(inner.buffer_bytes).min(inner.inserted.get());
            if upto <= inner.written.get() {
                return;
            }
            if inner.held.get() {
                self.sleep(process, upto, 0).await;
                continue;
            }
            inner.held.set(true);
            self.write(process, upto).await;
            self.release(process).await;
        }
    }

    /// Sleeps until the lock is free.
    pub(super) async fn sleep(&self, process: &Process, record: u64, start_ns: u64) {
        let inner = &*self.0;
        let begin_ns = process.leave();
        let idle = inner.released.sleep_for(process, record).await;
        process.start(Wait::WalLock, begin_ns, if idle { start_ns } else { 0 }).await;
        process.run(inner.latch_ns).await;
    }

    /// Releases the lock, and wakes processes that sleep until then.
    pub(super) async fn release(&self, process: &Process) {
        let inner = &*self.0;
        inner.held.set(false);
        let started = if inner.wakes_all {
            inner.released.wake_all(process)
        } else {
            inner.released.wake_reached(process, inner.flushed.get())
        };
        process.run(started * inner.wake_ns).await;
    }

    /// Writes the log up to a position, in whole pages; the process holds the lock.
    pub(super) async fn write(&self, process: &Process, upto: u64) {
        let inner = &*self.0;
        if upto > inner.written.get() {
            let bytes = inner.pages(inner.written.get(), upto);
            process.run(whole_ns(bytes as f64 * inner.byte_ns)).await;
            inner.written.set(upto);
        }
    }

    /// Syncs what was written, if a sync is due; the process holds the lock.
    pub(super) async fn sync(&self, process: &Process) {
        let inner = &*self.0;
        let (flushed, upto) = (inner.flushed.get(), inner.written.get());
        let bytes = inner.pages(flushed, upto);
        process.run(whole_ns(inner.flush_ns)).await;
        let number = inner.counts.get().flushes + 1;
        if inner.sync_every > 0 && number.is_multiple_of(inner.sync_every) {
            let from = flushed / inner.page_bytes * inner.page_bytes;
            self.request(process, Request::write(from, bytes)).await;
        }
        inner.flushed.set(upto);
        self.count(|counts| {
            counts.flushes += 1;
            counts.written_bytes += bytes;
        });
    }

    /// Waits for the requests of a sync, the first of which takes the time of the device.
    async fn request(&self, process: &Process, request: Request) {
        let inner = &*self.0;
        let part_ns = inner.served_ns / (2 * inner.sync_requests);
        let begin_ns = inner.sim.now_ns();
        for number in 1..=inner.sync_requests {
            if part_ns > 0 {
                inner.server.wake(Some(process));
            }
            process.leave();
            if part_ns > 0 {
                inner.server.start(Wait::CpuQueue, inner.sim.now_ns(), 0).await;
                inner.server.run(part_ns).await;
                inner.server.leave();
            }
            if number == 1 {
                start(&inner.sim, &*inner.device, request).await;
            }
            if part_ns > 0 {
                inner.server.run(part_ns).await;
                inner.server.leave();
            }
            if number < inner.sync_requests {
                process.resume().await;
            }
        }
        process.back(Wait::WalSync, begin_ns).await;
    }
}
