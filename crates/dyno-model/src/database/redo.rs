//! Log buffer: public strands and the positions on the stream of redo.
//!
//! Redo is a stream of bytes with three positions: *written* by sessions into the buffer, *gathered* by the log writer
//! for its present write, *safe* on the devices. A commit waits until the position that it reached is safe. The log
//! writer gathers all strands at once, so that one stream suffices for all of them; a strand only limits how much of
//! the buffer its users can fill.
//!
//! Space is found and taken at one instant ([`Redo::put`]); if there is none, [`Redo::room`] waits for it. To take
//! space, a session needs the strand's latch: the session that holds it computes, others spin, and sleep after a long
//! spin.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use super::checkpoint::Checkpoint;
use super::event::Event;
use super::log_files::{HEADER_BYTES, LogFiles};
use super::redo_parameters::RedoParameters;
use super::task::Task;
use crate::device::Device;
use crate::kernel::sample::whole_ns;
use crate::kernel::{Condition, Sim};

/// Counters of the log writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedoCounts {
    /// Number of writes; a write to several members counts as one.
    pub writes: u64,
    /// Number of blocks written to one member.
    pub blocks: u64,
    /// Bytes of redo in the written blocks.
    pub redo_bytes: u64,
    /// Bytes of blocks that are neither redo nor header.
    pub wasted_bytes: u64,
    /// Number of commits.
    pub commits: u64,
    /// Number of log switches.
    pub switches: u64,
    /// Number of log switches that had to wait for the checkpoint.
    pub incomplete: u64,
}

#[derive(Clone, Copy, Default)]
struct Strand {
    /// Size of the redo in the strand that is not safe [bytes].
    held: u64,
    /// Part of `held` that is being written [bytes].
    gathered: u64,
    /// Time until which the latch is held [ns].
    latched_ns: u64,
}

/// Reason why redo cannot be put into the buffer now.
enum Obstacle {
    Switch,
    Buffer,
}

pub(super) struct Inner {
    pub sim: Sim,
    pub parameters: RedoParameters,
    pub members: Vec<Rc<dyn Device>>,
    pub control: Rc<dyn Device>,
    pub checkpoint: Checkpoint,
    pub log: RefCell<LogFiles>,
    pub counts: Cell<RedoCounts>,
    pub written: Cell<u64>,
    pub gathered: Cell<u64>,
    pub safe: Cell<u64>,
    /// Position up to which the database writer needs redo to be safe.
    pub wanted: Cell<u64>,
    pub switch_wanted: Cell<bool>,
    pub incomplete: Cell<bool>,
    strands: RefCell<Vec<Strand>>,
    strand_bytes: u64,
    /// Positions that commits wait for, in the order in which the commits arrived.
    pub positions: RefCell<VecDeque<u64>>,
    pub synced: Condition,
    pub posted: Condition,
    pub space: Condition,
    pub switched: Condition,
    allocate_ns: u64,
    spin_ns: u64,
}

/// Log buffer; clones share it.
#[derive(Clone)]
pub struct Redo(pub(super) Rc<Inner>);

impl Redo {
    /// Returns an empty buffer; [`super::lgwr::run`] is its log writer.
    pub fn new(
        sim: &Sim,
        parameters: &RedoParameters,
        members: Vec<Rc<dyn Device>>,
        control: Rc<dyn Device>,
        checkpoint: &Checkpoint,
    ) -> Self {
        let strands = parameters.strands.max(1);
        Self(Rc::new(Inner {
            sim: sim.clone(),
            parameters: parameters.clone(),
            members,
            control,
            checkpoint: checkpoint.clone(),
            log: RefCell::new(LogFiles::new(parameters)),
            counts: Cell::default(),
            written: Cell::new(0),
            gathered: Cell::new(0),
            safe: Cell::new(0),
            wanted: Cell::new(0),
            switch_wanted: Cell::new(false),
            incomplete: Cell::new(false),
            strands: RefCell::new(vec![Strand::default(); strands as usize]),
            strand_bytes: (parameters.buffer_kb << 10) / strands,
            positions: RefCell::default(),
            synced: Condition::new(sim, "log file sync"),
            posted: Condition::new(sim, "rdbms ipc message"),
            space: Condition::new(sim, "log buffer space"),
            switched: Condition::new(sim, "log file switch"),
            allocate_ns: whole_ns(parameters.allocate_us * 1e3),
            spin_ns: whole_ns(parameters.spin_us * 1e3),
        }))
    }

    /// Returns the counters.
    pub fn counts(&self) -> RedoCounts {
        self.0.counts.get()
    }

    /// Returns the size of the redo in the buffer that is not safe [bytes].
    #[inline]
    pub fn unflushed_bytes(&self) -> u64 {
        self.0.written.get() - self.0.safe.get()
    }

    /// Returns the size of all redo that sessions have written into the buffer so far [bytes].
    pub fn written_bytes(&self) -> u64 {
        self.0.written.get()
    }

    /// Returns the position up to which redo is safe.
    #[inline]
    pub fn safe(&self) -> u64 {
        self.0.safe.get()
    }

    /// Returns the size of the largest piece of redo that can be put into the buffer at once [bytes].
    pub fn piece_bytes(&self) -> u64 {
        let file_bytes = self.0.parameters.file_mb << 20;
        (self.0.strand_bytes / 2).min(file_bytes / 4).max(1)
    }

    /// Computes for `cpu_ns`, takes the latch of a strand and uses the CPU time of copying redo into it; returns the
    /// strand. If all latches are held, the session spins for the one that becomes free first, and sleeps after a long
    /// spin.
    pub async fn latch(&self, task: &mut Task, home: usize, bytes: u64, cpu_ns: u64) -> usize {
        let inner = &*self.0;
        let copy_us = inner.parameters.copy_us_per_kb * bytes as f64 / 1_024.0;
        let mut cpu_ns = cpu_ns;
        loop {
            task.enter().await;
            let now_ns = inner.sim.now_ns() + cpu_ns;
            let (strand, free_ns) = self.free_latch(home, now_ns);
            if free_ns <= now_ns + inner.spin_ns {
                let from_ns = free_ns.max(now_ns);
                let until_ns = from_ns + inner.allocate_ns;
                inner.strands.borrow_mut()[strand].latched_ns = until_ns;
                let spin_ns = from_ns - now_ns;
                let work_ns = cpu_ns + spin_ns + inner.allocate_ns + whole_ns(copy_us * 1e3);
                task.run(work_ns).await;
                return strand;
            }
            task.run(cpu_ns + inner.spin_ns).await;
            cpu_ns = 0;
            let begin_ns = task.leave();
            inner.sim.hold_until(free_ns).await;
            task.back(Event::LatchRedoAllocation, begin_ns, [strand as u64, 0, 0]).await;
        }
    }

    /// Returns the home strand if its latch is free, else the strand whose latch becomes free first; and the time at
    /// which this latch is free [ns].
    fn free_latch(&self, home: usize, now_ns: u64) -> (usize, u64) {
        let strands = self.0.strands.borrow();
        let count = strands.len();
        let first = home % count;
        if strands[first].latched_ns <= now_ns {
            return (first, strands[first].latched_ns);
        }
        let others = (0..count).map(|i| (first + i) % count);
        let free = others.map(|at| (strands[at].latched_ns, at)).min();
        free.map_or((first, now_ns), |(free_ns, at)| (at, free_ns))
    }

    fn obstacle(&self, strand: usize, bytes: u64) -> Option<Obstacle> {
        let inner = &*self.0;
        let pending = inner.written.get() - inner.gathered.get();
        if inner.switch_wanted.get() || !inner.log.borrow().fits(pending + bytes) {
            return Some(Obstacle::Switch);
        }
        let held = inner.strands.borrow()[strand].held;
        (held + bytes > self.0.strand_bytes).then_some(Obstacle::Buffer)
    }

    /// Puts redo into a strand without waiting, if there is room in the strand and in the log file; returns the
    /// positions of the redo.
    pub fn put(&self, strand: usize, bytes: u64) -> Option<Range<u64>> {
        if self.obstacle(strand, bytes).is_some() {
            return None;
        }
        let inner = &*self.0;
        let from = inner.written.get();
        inner.written.set(from + bytes);
        inner.strands.borrow_mut()[strand].held += bytes;
        if self.is_filled() {
            inner.posted.notify_one();
        }
        Some(from..from + bytes)
    }

    /// Waits until there is room for `bytes` of redo in the strand and in the log file.
    pub async fn room(&self, task: &mut Task, strand: usize, bytes: u64) {
        let inner = &*self.0;
        while let Some(obstacle) = self.obstacle(strand, bytes) {
            let begin_ns = task.leave();
            let event = if let Obstacle::Switch = obstacle {
                inner.switch_wanted.set(true);
                inner.posted.notify_one();
                inner.switched.wait().await;
                if inner.incomplete.get() { Event::LogFileSwitchCheckpoint } else { Event::LogFileSwitchCompletion }
            } else {
                inner.posted.notify_one();
                inner.space.wait().await;
                Event::LogBufferSpace
            };
            task.back(event, begin_ns, [0; 3]).await;
        }
    }

    /// Waits until redo up to `position` is safe; p2 of the wait is the number of the commit.
    pub async fn sync(&self, task: &mut Task, position: u64) {
        let inner = &*self.0;
        let mut counts = inner.counts.get();
        counts.commits += 1;
        inner.counts.set(counts);
        if inner.safe.get() >= position {
            return;
        }
        let begin_ns = task.leave();
        inner.positions.borrow_mut().push_back(position);
        inner.posted.notify_one();
        inner.synced.wait().await;
        task.back(Event::LogFileSync, begin_ns, [position / HEADER_BYTES, counts.commits, 0]).await;
    }

    /// Requests that redo is made safe up to `position`, for the database writer's write-ahead.
    pub fn want(&self, position: u64) {
        if position > self.0.wanted.get() {
            self.0.wanted.set(position);
            self.0.posted.notify_one();
        }
    }

    /// Returns true if the redo in the buffer that is not yet gathered is enough to trigger a write. Its size is
    /// counted in blocks, including their headers.
    #[inline]
    fn is_filled(&self) -> bool {
        let RedoParameters { buffer_kb, trigger_kb, block_bytes, .. } = self.0.parameters;
        let waiting = self.0.written.get() - self.0.gathered.get();
        let bytes = waiting / (block_bytes - HEADER_BYTES) * block_bytes;
        bytes >= (buffer_kb << 10) / 3 || bytes >= trigger_kb << 10
    }

    /// Returns true if the log writer must write now, provided it is idle.
    pub(super) fn is_due(&self) -> bool {
        let inner = &*self.0;
        inner.switch_wanted.get()
            || !inner.positions.borrow().is_empty()
            || self.is_filled()
            || inner.wanted.get() > inner.safe.get()
            || (inner.space.waiting() > 0 && inner.written.get() > inner.gathered.get())
    }

    /// Gathers all redo for a write; returns the size of the redo [bytes].
    pub(super) fn gather(&self) -> u64 {
        let inner = &*self.0;
        for strand in inner.strands.borrow_mut().iter_mut() {
            strand.gathered = strand.held;
        }
        let from = inner.gathered.replace(inner.written.get());
        inner.written.get() - from
    }

    /// Marks the gathered redo as safe.
    pub(super) fn settle(&self) {
        let inner = &*self.0;
        inner.safe.set(inner.gathered.get());
        for strand in inner.strands.borrow_mut().iter_mut() {
            strand.held -= strand.gathered;
            strand.gathered = 0;
        }
        inner.space.notify_all();
    }
}
