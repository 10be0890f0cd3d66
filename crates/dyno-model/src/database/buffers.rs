//! Buffer cache.
//!
//! A session that needs a block finds it in a buffer, waits for another session that is reading it, or takes a buffer
//! and reads it. The search for a buffer ([`super::lru`]) examines at most a part of all buffers; if it finds no clean
//! one, it posts the database writer and waits (`free buffer waits`). A buffer that is being written cannot be changed
//! until the write is complete (`write complete waits`).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::rc::Rc;

use super::buffer_parameters::BufferParameters;
use super::checkpoint::Checkpoint;
use super::event::Event;
use super::lru::{Aging, Lru, State};
use super::redo::Redo;
use super::task::Task;
use crate::device::{Device, Request, start};
use crate::kernel::sample::whole_ns;
use crate::kernel::streams::fnv1a;
use crate::kernel::{Condition, Sim};

/// Hash of block numbers by one multiplication. The order of hashes does not matter, because the map is never iterated
/// over.
#[derive(Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = fnv1a(bytes);
    }

    fn write_u64(&mut self, block: u64) {
        let product = block.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Buffer {
    pub block: u64,
    /// Redo position at which the first change since the buffer was clean begins.
    pub dirty_from: u64,
    /// Redo position at which the last change ends.
    pub dirty_to: u64,
    pub dirty: bool,
    pub reading: bool,
    pub writing: bool,
}

impl Buffer {
    fn state(self) -> State {
        if self.reading || self.writing {
            State::Busy
        } else if self.dirty {
            State::Dirty
        } else {
            State::Clean
        }
    }
}

/// Counters of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferCounts {
    /// Number of requested blocks.
    pub gets: u64,
    /// Number of blocks read.
    pub reads: u64,
    /// Number of blocks written.
    pub writes: u64,
}

pub(super) struct Buffers {
    map: HashMap<u64, u32, BuildHasherDefault<Spread>>,
    pub all: Vec<Buffer>,
    pub lru: Lru,
    unused: Vec<u32>,
    pub in_flight: u64,
    reading: u64,
    pub dirty: u64,
    pub counts: BufferCounts,
}

impl Buffers {
    /// Returns a buffer into which a block can be read: an unused buffer, or else a free buffer among the coldest
    /// `depth`; `None` if there is neither.
    fn take(&mut self, depth: u32) -> Option<u32> {
        if let Some(buffer) = self.unused.pop() {
            return Some(buffer);
        }
        loop {
            let all = &self.all;
            let found = self.lru.search(depth, |buffer| all[buffer as usize].state());
            if let Some(buffer) = found {
                self.map.remove(&self.all[buffer as usize].block);
                return Some(buffer);
            }
            // Everything looked at was moved to the hot end: look again, it starts from 0 there.
            let coming = self.in_flight + self.reading + u64::from(self.lru.to_write());
            if coming > 0 {
                return None;
            }
        }
    }

    /// Moves dirty buffers among the coldest `depth` to the write list; the database writer does this when sessions
    /// need buffers.
    pub fn collect_dirty(&mut self, depth: u32) {
        let all = &self.all;
        self.lru.collect_dirty(depth, |buffer| all[buffer as usize].state());
    }

    fn find(&self, block: u64) -> Option<u32> {
        self.map.get(&block).copied()
    }
}

pub(super) struct Inner {
    pub sim: Sim,
    pub parameters: BufferParameters,
    pub device: Rc<dyn Device>,
    pub checkpoint: Checkpoint,
    pub redo: Redo,
    pub state: RefCell<Buffers>,
    /// Number of sessions that wait for a free buffer.
    pub wanted: Cell<u64>,
    pub freed: Condition,
    loaded: Condition,
    pub written: Condition,
    depth: u32,
    /// Parameters p1 and p2 of reads from cells; `None` if reads have the names of the `db file` events.
    cell: Option<[u64; 2]>,
    get_ns: u64,
}

/// Buffer cache; clones share it.
#[derive(Clone)]
pub struct BufferCache(pub(super) Rc<Inner>);

impl BufferCache {
    /// Returns an empty cache; [`super::dbwr::run`] is its writer.
    pub fn new(
        sim: &Sim,
        parameters: &BufferParameters,
        device: Rc<dyn Device>,
        redo: &Redo,
        checkpoint: &Checkpoint,
        cells: bool,
    ) -> Self {
        let count = parameters.buffers as u32;
        let part = |pct: f64| (f64::from(count) * pct / 100.0) as u32;
        let aging = Aging {
            replacement: parameters.replacement,
            hot_max: part(parameters.hot_pct),
            hot_touches: parameters.hot_touches as u32,
            touch_ns: whole_ns(parameters.touch_s * 1e9),
        };
        let state = RefCell::new(Buffers {
            map: HashMap::default(),
            all: vec![Buffer::default(); count as usize],
            lru: Lru::new(count, aging),
            unused: (0..count).rev().collect(),
            in_flight: 0,
            reading: 0,
            dirty: 0,
            counts: BufferCounts::default(),
        });
        let hash = fnv1a(device.name().as_bytes());
        Self(Rc::new(Inner {
            sim: sim.clone(),
            parameters: parameters.clone(),
            device,
            checkpoint: checkpoint.clone(),
            redo: redo.clone(),
            state,
            wanted: Cell::new(0),
            freed: Condition::new(sim, "free buffer waits"),
            loaded: Condition::new(sim, "read by other session"),
            written: Condition::new(sim, "write complete waits"),
            depth: part(parameters.scan_pct).max(1),
            cell: cells.then_some([hash >> 32, hash & 0xffff_ffff]),
            get_ns: whole_ns(parameters.get_us * 1e3),
        }))
    }

    /// Returns the counters.
    pub fn counts(&self) -> BufferCounts {
        self.0.state.borrow().counts
    }

    /// Returns the number of dirty buffers.
    pub fn dirty(&self) -> u64 {
        self.0.state.borrow().dirty
    }

    /// Gets a block, from the device if needed; returns true if this session read it. On return the block is in a
    /// buffer; if `change` is set, this buffer is not being written.
    pub async fn get(&self, task: &mut Task, block: u64, change: bool) -> bool {
        task.run(self.0.get_ns).await;
        self.0.state.borrow_mut().counts.gets += 1;
        self.hold(task, block, change).await
    }

    /// Gets a block like [`BufferCache::get`], but uses no CPU time and is not counted.
    pub async fn hold(&self, task: &mut Task, block: u64, change: bool) -> bool {
        let inner = &*self.0;
        let mut read = false;
        loop {
            let found = {
                let state = inner.state.borrow();
                state.find(block).map(|buffer| (buffer, state.all[buffer as usize]))
            };
            match found {
                Some((_, Buffer { reading: true, .. })) => {
                    let begin_ns = task.leave();
                    inner.loaded.wait().await;
                    task.back(Event::ReadByOtherSession, begin_ns, [1, block, 1]).await;
                }
                Some((_, Buffer { writing: true, .. })) if change => {
                    let begin_ns = task.leave();
                    inner.written.wait().await;
                    task.back(Event::WriteCompleteWaits, begin_ns, [1, block, 1]).await;
                }
                Some((buffer, _)) => {
                    inner.state.borrow_mut().lru.touch(buffer, inner.sim.now_ns());
                    return read;
                }
                None => read |= self.read(task, block).await,
            }
        }
    }

    /// Records that the redo at `positions` changes the block, which the caller has just got for this change.
    pub fn change(&self, block: u64, positions: &Range<u64>) {
        let mut state = self.0.state.borrow_mut();
        let Some(buffer) = state.find(block) else { return };
        let entry = &mut state.all[buffer as usize];
        entry.dirty_to = positions.end;
        if !entry.dirty {
            entry.dirty = true;
            entry.dirty_from = positions.start;
            self.0.checkpoint.dirty(positions.start, buffer);
            state.dirty += 1;
        }
    }

    /// Takes a buffer and reads the block; returns false if another session reads it first.
    async fn read(&self, task: &mut Task, block: u64) -> bool {
        let inner = &*self.0;
        let Some(buffer) = self.free_buffer(task, block).await else { return false };
        self.begin_read(buffer, block);
        let begin_ns = task.leave();
        let bytes = inner.parameters.block_bytes;
        start(&inner.sim, &*inner.device, Request::read(block * bytes, bytes)).await;
        self.end_read(buffer, false);
        let (event, p) = match inner.cell {
            Some([cell, disk]) => (Event::CellSingleBlock, [cell, disk, bytes]),
            None => (Event::DbFileSequentialRead, [1, block, 1]),
        };
        task.back(event, begin_ns, p).await;
        true
    }

    /// Returns a buffer for the block, or `None` if the block has come into another buffer in the meantime.
    async fn free_buffer(&self, task: &mut Task, block: u64) -> Option<u32> {
        let inner = &*self.0;
        let mut posted = false;
        loop {
            if inner.state.borrow().find(block).is_some() {
                // The notice was for somebody who needs a buffer.
                if posted {
                    inner.freed.notify_one();
                }
                return None;
            }
            let taken = self.take();
            if taken.is_some() {
                return taken;
            }
            inner.wanted.set(inner.wanted.get() + 1);
            inner.checkpoint.post_writer();
            let begin_ns = task.leave();
            inner.freed.wait().await;
            posted = true;
            inner.wanted.set(inner.wanted.get() - 1);
            task.back(Event::FreeBufferWaits, begin_ns, [1, block, 1]).await;
        }
    }

    /// Returns a buffer if one is free now.
    fn take(&self) -> Option<u32> {
        let mut state = self.0.state.borrow_mut();
        let taken = state.take(self.0.depth);
        if u64::from(state.lru.to_write()) >= self.0.parameters.dirty_queue {
            self.0.checkpoint.post_writer();
        }
        taken
    }

    fn begin_read(&self, buffer: u32, block: u64) {
        let mut state = self.0.state.borrow_mut();
        state.map.insert(block, buffer);
        state.all[buffer as usize] = Buffer { block, reading: true, ..Buffer::default() };
        state.reading += 1;
        state.counts.reads += 1;
    }

    fn end_read(&self, buffer: u32, scan: bool) {
        let now_ns = self.0.sim.now_ns();
        let mut state = self.0.state.borrow_mut();
        state.all[buffer as usize].reading = false;
        state.reading -= 1;
        if scan {
            state.lru.insert_coldest(buffer, now_ns);
        } else {
            state.lru.insert(buffer, now_ns);
        }
        drop(state);
        self.0.loaded.notify_all();
        self.0.freed.notify_one();
    }

    /// Gets blocks in order, as a scan does. Adjacent blocks that are missing are read together, up to the size of one
    /// read, and their buffers are the first to be reused. Returns the number of blocks read.
    pub async fn scan(&self, task: &mut Task, blocks: Range<u64>) -> u64 {
        let inner = &*self.0;
        let mut next = blocks.start;
        let mut read = 0;
        while next < blocks.end {
            let missing = {
                let state = inner.state.borrow();
                let end = blocks.end.min(next + inner.parameters.multiblock.max(1));
                (next..end).take_while(|&block| state.find(block).is_none()).count() as u64
            };
            if missing < 2 {
                read += u64::from(self.get(task, next, false).await);
                next += 1;
                continue;
            }
            // Who has a buffer does not wait for more: he reads what he has.
            let Some(first) = self.free_buffer(task, next).await else { continue };
            let mut buffers = vec![first];
            self.begin_read(first, next);
            for block in next + 1..next + missing {
                let there = inner.state.borrow().find(block).is_some();
                let Some(buffer) = (if there { None } else { self.take() }) else { break };
                self.begin_read(buffer, block);
                buffers.push(buffer);
            }
            read += buffers.len() as u64;
            self.read_many(task, next, &buffers).await;
            next += buffers.len() as u64;
        }
        read
    }

    async fn read_many(&self, task: &mut Task, first: u64, buffers: &[u32]) {
        let inner = &*self.0;
        let begin_ns = task.leave();
        let count = buffers.len() as u64;
        let bytes = inner.parameters.block_bytes * count;
        let request = Request::read(first * inner.parameters.block_bytes, bytes);
        start(&inner.sim, &*inner.device, request).await;
        for &buffer in buffers {
            self.end_read(buffer, true);
        }
        let (event, p) = match inner.cell {
            Some([cell, disk]) => (Event::CellMultiblock, [cell, disk, bytes]),
            None => (Event::DbFileScatteredRead, [1, first, count]),
        };
        task.back(event, begin_ns, p).await;
        inner.state.borrow_mut().counts.gets += count;
        task.run(inner.get_ns * count).await;
    }
}
