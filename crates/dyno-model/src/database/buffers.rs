//! Buffer cache and database writer.
//!
//! Buffers stand in the order of their last use. A session that needs a buffer takes the coldest one
//! that is clean, but looks at no more than a share of all; if all of these are dirty it posts the
//! database writer and waits: free buffer waits. The database writer keeps so many writes going at
//! once, coldest dirty buffers first, whenever more than a share is dirty or somebody waits.
//!
//! A buffer that is dirtied again while it is written stays dirty.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::wait::{Account, Event, Ledger, Sink};
use crate::device::{Device, Parameter, Request, parameter, start};
use crate::kernel::{Condition, Sim};

/// A buffer cache.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct BufferParameters {
    /// Buffers.
    pub buffers: u64,
    /// Block.
    pub block_bytes: u64,
    /// Share of the buffers that is searched for a clean one.
    pub scan_ratio: f64,
    /// Share of dirty buffers above which the writer writes.
    pub dirty_ratio: f64,
    /// Writes at once.
    pub writes: u64,
}

impl BufferParameters {
    /// Meaning and source of each.
    pub const TABLE: [Parameter; 5] = [
        parameter("buffers", "buffers", "chosen"),
        parameter("block_bytes", "block", "Oracle: 8192 by default"),
        parameter(
            "scan_ratio",
            "share searched for a clean buffer",
            "Oracle: _db_block_max_scan_pct, 40",
        ),
        parameter(
            "dirty_ratio",
            "share of dirty buffers that starts the writer",
            "Oracle: _db_large_dirty_queue, 25",
        ),
        parameter("writes", "writes at once", "assumed: depth of asynchronous I/O in use"),
    ];
}

impl Default for BufferParameters {
    fn default() -> Self {
        Self { buffers: 10_000, block_bytes: 8_192, scan_ratio: 0.4, dirty_ratio: 0.25, writes: 32 }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    used: u64,
    /// Changes since the block was read; equal to `written` when clean.
    changed: u64,
    written: u64,
    reading: bool,
    writing: bool,
}

/// What the cache has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferCounts {
    /// Blocks asked for.
    pub gets: u64,
    /// Of these, read.
    pub reads: u64,
    /// Blocks written.
    pub writes: u64,
}

#[derive(Default)]
struct State {
    buffers: BTreeMap<u64, Buffer>,
    /// Blocks by last use, coldest first.
    order: BTreeMap<u64, u64>,
    clock: u64,
    dirty: u64,
    in_flight: u64,
    counts: BufferCounts,
}

impl State {
    /// The block is the most recently used.
    fn touch(&mut self, block: u64) {
        self.clock += 1;
        if let Some(buffer) = self.buffers.get_mut(&block) {
            self.order.remove(&buffer.used);
            buffer.used = self.clock;
            self.order.insert(self.clock, block);
        }
    }

    /// Makes room for one more; false if there is no clean buffer among the coldest `scan`.
    fn make_room(&mut self, capacity: u64, scan: usize) -> bool {
        if (self.buffers.len() as u64) < capacity {
            return true;
        }
        let clean = |block: &u64| {
            self.buffers.get(block).is_some_and(|buffer| {
                buffer.changed == buffer.written && !buffer.reading && !buffer.writing
            })
        };
        let found = self.order.iter().take(scan).find(|(_, block)| clean(block));
        let Some((&used, &block)) = found else { return false };
        self.order.remove(&used);
        self.buffers.remove(&block);
        true
    }

    fn coldest_dirty(&self) -> Option<u64> {
        let dirty = |block: &u64| {
            let buffer = self.buffers.get(block);
            buffer.is_some_and(|buffer| buffer.changed > buffer.written && !buffer.writing)
        };
        self.order.values().copied().find(|block| dirty(block))
    }
}

struct Inner {
    sim: Sim,
    parameters: BufferParameters,
    device: Rc<dyn Device>,
    account: Account,
    state: RefCell<State>,
    wanted: Cell<u64>,
    posted: Condition,
    freed: Condition,
    loaded: Condition,
}

/// Buffer cache and database writer; clones share them.
#[derive(Clone)]
pub struct BufferCache(Rc<Inner>);

impl BufferCache {
    /// An empty cache; its writer is the process `number`.
    pub fn new(
        sim: &Sim,
        number: u64,
        parameters: BufferParameters,
        device: Rc<dyn Device>,
        sink: Sink,
    ) -> Self {
        let cache = Self(Rc::new(Inner {
            sim: sim.clone(),
            parameters,
            device,
            account: Account::new(number, sim.now_ns(), sink),
            state: RefCell::default(),
            wanted: Cell::new(0),
            posted: Condition::new(sim, "rdbms ipc message"),
            freed: Condition::new(sim, "free buffer waits"),
            loaded: Condition::new(sim, "read by other session"),
        }));
        let me = cache.clone();
        sim.spawn_daemon("dbwr", async move { me.writer().await });
        cache
    }

    /// What it has seen.
    pub fn counts(&self) -> BufferCounts {
        self.0.state.borrow().counts
    }

    /// The writer's time.
    pub fn ledger(&self) -> Ledger {
        self.0.account.ledger()
    }

    /// Gets a block, from the device if need be, and changes it if asked to.
    pub async fn get(&self, block: u64, change: bool, account: &Account) {
        let inner = &*self.0;
        inner.state.borrow_mut().counts.gets += 1;
        loop {
            let found = inner.state.borrow().buffers.get(&block).copied();
            match found {
                Some(buffer) if buffer.reading => {
                    let begin_ns = inner.sim.now_ns();
                    inner.loaded.wait().await;
                    let event = Event::ReadByOtherSession;
                    account.wait(event, begin_ns, inner.sim.now_ns(), [1, block, 1]);
                }
                Some(_) => break,
                None => self.read(block, account).await,
            }
        }
        let mut state = inner.state.borrow_mut();
        state.touch(block);
        if let Some(buffer) = state.buffers.get_mut(&block).filter(|_| change) {
            let was_clean = buffer.changed == buffer.written;
            buffer.changed += 1;
            state.dirty += u64::from(was_clean);
        }
        drop(state);
        if self.is_due() {
            inner.posted.notify_one();
        }
    }

    /// Takes a buffer and reads the block, unless somebody else has by then.
    async fn read(&self, block: u64, account: &Account) {
        let inner = &*self.0;
        let BufferParameters { buffers, scan_ratio, block_bytes, .. } = inner.parameters;
        let scan = ((buffers as f64 * scan_ratio) as usize).max(1);
        let begin_ns = inner.sim.now_ns();
        loop {
            let there = inner.state.borrow().buffers.contains_key(&block);
            if there || inner.state.borrow_mut().make_room(buffers, scan) {
                break;
            }
            inner.wanted.set(inner.wanted.get() + 1);
            inner.posted.notify_one();
            inner.freed.wait().await;
            inner.wanted.set(inner.wanted.get() - 1);
        }
        account.wait(Event::FreeBufferWaits, begin_ns, inner.sim.now_ns(), [1, block, 1]);
        {
            let mut state = inner.state.borrow_mut();
            if state.buffers.contains_key(&block) {
                return;
            }
            state.buffers.insert(block, Buffer { reading: true, ..Buffer::default() });
            state.touch(block);
            state.counts.reads += 1;
        }
        let begin_ns = inner.sim.now_ns();
        let request = Request::read(block * block_bytes, block_bytes);
        start(&inner.sim, &*inner.device, request).await;
        account.wait(Event::DbFileSequentialRead, begin_ns, inner.sim.now_ns(), [1, block, 1]);
        if let Some(buffer) = inner.state.borrow_mut().buffers.get_mut(&block) {
            buffer.reading = false;
        }
        inner.loaded.notify_all();
        inner.freed.notify_one();
    }

    /// Is there something that the writer must write?
    fn is_due(&self) -> bool {
        let state = self.0.state.borrow();
        let BufferParameters { buffers, dirty_ratio, .. } = self.0.parameters;
        state.dirty > 0
            && (self.0.wanted.get() > 0 || state.dirty as f64 > buffers as f64 * dirty_ratio)
    }

    async fn writer(&self) {
        let inner = &*self.0;
        loop {
            while inner.state.borrow().in_flight < inner.parameters.writes && self.is_due() {
                let coldest = inner.state.borrow().coldest_dirty();
                let Some(block) = coldest else { break };
                self.write(block);
            }
            let (begin_ns, in_flight) = (inner.sim.now_ns(), inner.state.borrow().in_flight);
            inner.posted.wait().await;
            let (event, p1) = if in_flight > 0 {
                (Event::DbFileParallelWrite, in_flight)
            } else {
                (Event::RdbmsIpcMessage, 300)
            };
            inner.account.wait(event, begin_ns, inner.sim.now_ns(), [p1, 0, 0]);
        }
    }

    /// Starts the write of a block.
    fn write(&self, block: u64) {
        let mut state = self.0.state.borrow_mut();
        let Some(buffer) = state.buffers.get_mut(&block) else { return };
        buffer.writing = true;
        let version = buffer.changed;
        state.in_flight += 1;
        drop(state);
        let me = self.clone();
        self.0.sim.spawn_daemon("dbwr write", async move {
            let inner = &*me.0;
            let block_bytes = inner.parameters.block_bytes;
            let request = Request::write(block * block_bytes, block_bytes);
            start(&inner.sim, &*inner.device, request).await;
            me.written(block, version);
        });
    }

    fn written(&self, block: u64, version: u64) {
        let inner = &*self.0;
        let mut state = inner.state.borrow_mut();
        state.in_flight -= 1;
        state.counts.writes += 1;
        if let Some(buffer) = state.buffers.get_mut(&block) {
            buffer.writing = false;
            buffer.written = version;
            let clean = buffer.changed == version;
            state.dirty -= u64::from(clean);
        }
        drop(state);
        inner.freed.notify_one();
        inner.posted.notify_one();
    }
}
