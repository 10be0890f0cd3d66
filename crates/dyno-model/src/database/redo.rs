//! Log buffer and log writer.
//!
//! Redo is a stream of bytes; three positions on it say everything: *written* by sessions into the
//! buffer, *gathered* by the log writer for its present write, *safe* on the device. The log writer
//! gathers all there is when a commit waits, when a third of the buffer or 1 MB is filled, or when
//! 3 s have passed with something in the buffer. A trigger counts only when the log writer is idle;
//! commits that arrive during a write ride on the next one, and that is group commit.
//!
//! A write is whole blocks: each holds its size less a header of 16 bytes, and the rest of the last
//! one is wasted.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::wait::{Account, Event, Ledger, Sink};
use crate::device::{Device, Parameter, Request, parameter, start};
use crate::kernel::sample::whole_ns;
use crate::kernel::{Condition, Resource, Sim};

/// The redo path.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedoParameters {
    /// Log buffer.
    pub buffer_kb: u64,
    /// Redo block.
    pub block_bytes: u64,
    /// Filled so far, the log writer writes without a commit; a third of the buffer does as well.
    pub trigger_kb: u64,
    /// The log writer looks for redo at least so often.
    pub timeout_s: f64,
    /// Size of a log file; the writer goes round in it.
    pub file_mb: u64,
    /// CPU of the log writer before a write.
    pub gather_us: f64,
    /// CPU of the log writer to post one waiter.
    pub post_us: f64,
}

const LGWR: &str = "Oracle: write at commit, one third, 1 MB, 3 s";

impl RedoParameters {
    /// Meaning and source of each.
    pub const TABLE: [Parameter; 7] = [
        parameter("buffer_kb", "log buffer", "Oracle 11.2 default: some MB"),
        parameter("block_bytes", "redo block", "Oracle: 512 by default; 4096 since 11.2"),
        parameter("trigger_kb", "write when so much is filled", LGWR),
        parameter("timeout_s", "write after so long", LGWR),
        parameter("file_mb", "log file, gone round", "chosen"),
        parameter("gather_us", "CPU before a write", "assumed: order of size"),
        parameter("post_us", "CPU to post a waiter", "assumed: a system call and a wake-up"),
    ];
}

impl Default for RedoParameters {
    fn default() -> Self {
        Self {
            buffer_kb: 8 << 10,
            block_bytes: 512,
            trigger_kb: 1 << 10,
            timeout_s: 3.0,
            file_mb: 512,
            gather_us: 10.0,
            post_us: 5.0,
        }
    }
}

/// Bytes of each block that are no redo.
const HEADER_BYTES: u64 = 16;

/// What the log writer did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedoCounts {
    /// Writes.
    pub writes: u64,
    /// Blocks written.
    pub blocks: u64,
    /// Bytes of redo in them.
    pub redo_bytes: u64,
    /// Bytes of blocks that are neither redo nor header.
    pub wasted_bytes: u64,
    /// Commits.
    pub commits: u64,
}

struct Inner {
    sim: Sim,
    parameters: RedoParameters,
    cores: Resource,
    device: Rc<dyn Device>,
    account: Account,
    written: Cell<u64>,
    gathered: Cell<u64>,
    safe: Cell<u64>,
    file_at: Cell<u64>,
    /// Commits that wait: by the position they need, in order; each its own condition.
    waiters: RefCell<BTreeMap<(u64, u64), Condition>>,
    posted: Condition,
    space: Condition,
    counts: Cell<RedoCounts>,
}

/// Log buffer and log writer; clones share them.
#[derive(Clone)]
pub struct Redo(Rc<Inner>);

impl Redo {
    /// An empty buffer and an idle log writer, which is session 0.
    pub fn new(
        sim: &Sim,
        parameters: RedoParameters,
        cores: &Resource,
        device: Rc<dyn Device>,
        sink: Sink,
    ) -> Self {
        let redo = Self(Rc::new(Inner {
            sim: sim.clone(),
            parameters,
            cores: cores.clone(),
            device,
            account: Account::new(0, sim.now_ns(), sink),
            written: Cell::new(0),
            gathered: Cell::new(0),
            safe: Cell::new(0),
            file_at: Cell::new(0),
            waiters: RefCell::default(),
            posted: Condition::new(sim, "rdbms ipc message"),
            space: Condition::new(sim, "log buffer space"),
            counts: Cell::default(),
        }));
        let me = redo.clone();
        sim.spawn_daemon("lgwr", async move { me.log_writer().await });
        redo
    }

    /// What was done.
    pub fn counts(&self) -> RedoCounts {
        self.0.counts.get()
    }

    /// The log writer's time.
    pub fn ledger(&self) -> Ledger {
        self.0.account.ledger()
    }

    /// Puts redo into the buffer; waits for room. Not more than the buffer at once.
    pub async fn put(&self, bytes: u64, account: &Account) {
        let inner = &*self.0;
        let begin_ns = inner.sim.now_ns();
        let capacity = inner.parameters.buffer_kb << 10;
        while inner.written.get() + bytes > inner.safe.get() + capacity {
            inner.posted.notify_one();
            inner.space.wait().await;
        }
        account.wait(Event::LogBufferSpace, begin_ns, inner.sim.now_ns(), [0; 3]);
        inner.written.set(inner.written.get() + bytes);
        if self.is_filled() {
            inner.posted.notify_one();
        }
    }

    /// Waits until all redo that is in the buffer now is safe.
    pub async fn sync(&self) {
        let inner = &*self.0;
        let mut counts = inner.counts.get();
        counts.commits += 1;
        inner.counts.set(counts);
        let position = inner.written.get();
        if inner.safe.get() >= position {
            return;
        }
        let news = Condition::new(&inner.sim, "log file sync");
        inner.waiters.borrow_mut().insert((position, counts.commits), news.clone());
        inner.posted.notify_one();
        news.wait().await;
    }

    /// Is so much in the buffer, not yet gathered, that the log writer must write?
    fn is_filled(&self) -> bool {
        let RedoParameters { buffer_kb, trigger_kb, .. } = self.0.parameters;
        let waiting = self.0.written.get() - self.0.gathered.get();
        waiting >= (buffer_kb << 10) / 3 || waiting >= trigger_kb << 10
    }

    /// Must the log writer write now?
    fn is_due(&self) -> bool {
        let inner = &*self.0;
        let full = inner.written.get() - inner.safe.get() > (inner.parameters.buffer_kb << 10) / 3;
        !inner.waiters.borrow().is_empty() || self.is_filled() || full
    }

    async fn log_writer(&self) {
        let inner = &*self.0;
        loop {
            self.sleep().await;
            self.on_core(inner.parameters.gather_us).await;
            let from = inner.gathered.get();
            inner.gathered.set(inner.written.get());
            self.write(inner.gathered.get() - from).await;
            inner.safe.set(inner.gathered.get());
            inner.space.notify_all();
            self.post().await;
        }
    }

    /// Sleeps until there is something to write; with an empty buffer, for ever.
    async fn sleep(&self) {
        let inner = &*self.0;
        let timeout_ns = whole_ns(inner.parameters.timeout_s * 1e9);
        let begin_ns = inner.sim.now_ns();
        let mut deadline_ns = None;
        while !self.is_due() {
            if inner.written.get() == inner.gathered.get() {
                deadline_ns = None;
                inner.posted.wait().await;
                continue;
            }
            let until_ns = *deadline_ns.get_or_insert(inner.sim.now_ns() + timeout_ns);
            if !inner.posted.wait_until(until_ns).await {
                break;
            }
        }
        let p1 = timeout_ns / 10_000_000;
        inner.account.wait(Event::RdbmsIpcMessage, begin_ns, inner.sim.now_ns(), [p1, 0, 0]);
    }

    async fn on_core(&self, us: f64) {
        let inner = &*self.0;
        let ns = whole_ns(us * 1e3);
        if ns > 0 {
            let begin_ns = inner.sim.now_ns();
            let _core = inner.cores.acquire().await;
            inner.account.wait(Event::CpuQueue, begin_ns, inner.sim.now_ns(), [0; 3]);
            inner.sim.hold(ns).await;
            inner.account.cpu(ns);
        }
    }

    async fn write(&self, redo_bytes: u64) {
        let inner = &*self.0;
        let block = inner.parameters.block_bytes;
        let blocks = redo_bytes.div_ceil(block - HEADER_BYTES).max(1);
        let bytes = blocks * block;
        let file_bytes = inner.parameters.file_mb << 20;
        let at = if inner.file_at.get() + bytes > file_bytes { 0 } else { inner.file_at.get() };
        inner.file_at.set(at + bytes);
        let begin_ns = inner.sim.now_ns();
        start(&inner.sim, &*inner.device, Request::write(at, bytes)).await;
        let p = [1, blocks, 1];
        inner.account.wait(Event::LogFileParallelWrite, begin_ns, inner.sim.now_ns(), p);
        let mut counts = inner.counts.get();
        counts.writes += 1;
        counts.blocks += blocks;
        counts.redo_bytes += redo_bytes;
        counts.wasted_bytes += blocks * (block - HEADER_BYTES) - redo_bytes;
        inner.counts.set(counts);
    }

    /// Wakes those whose redo is safe, in order; each costs CPU.
    async fn post(&self) {
        let inner = &*self.0;
        let safe = inner.safe.get();
        let next = || {
            let mut waiters = inner.waiters.borrow_mut();
            let first = waiters.first_entry().filter(|entry| entry.key().0 <= safe);
            first.map(std::collections::btree_map::OccupiedEntry::remove)
        };
        while let Some(waiter) = next() {
            self.on_core(inner.parameters.post_us).await;
            waiter.notify_one();
        }
    }
}
