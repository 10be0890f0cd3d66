//! Checkpoint queue: which blocks have changes whose redo must be kept, and from which redo position on.
//!
//! A dirty block is in the queue at the position of the redo that first made it dirty. The *checkpoint position* is the
//! lowest of these: redo before it is not needed for recovery. A log file can be reused when the checkpoint position
//! has passed its end. A transaction whose redo is in the log but not yet applied to its blocks (private strands) holds
//! the position back as well.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::kernel::{Condition, Sim};

struct Inner {
    dirty: RefCell<BTreeSet<(u64, u32)>>,
    held: RefCell<BTreeMap<u64, u32>>,
    target: Cell<u64>,
    writer: Condition,
    advanced: Condition,
}

/// Checkpoint queue; clones share it.
#[derive(Clone)]
pub struct Checkpoint(Rc<Inner>);

impl Checkpoint {
    /// Returns an empty queue.
    pub fn new(sim: &Sim) -> Self {
        Self(Rc::new(Inner {
            dirty: RefCell::default(),
            held: RefCell::default(),
            target: Cell::new(0),
            writer: Condition::new(sim, "rdbms ipc message"),
            advanced: Condition::new(sim, "log file switch (checkpoint incomplete)"),
        }))
    }

    /// Records that a clean buffer is dirty from redo position `at` on.
    pub fn dirty(&self, at: u64, buffer: u32) {
        self.0.dirty.borrow_mut().insert((at, buffer));
    }

    /// Records that the buffer, which was dirty from redo position `at` on, has been written.
    pub fn clean(&self, at: u64, buffer: u32) {
        self.0.dirty.borrow_mut().remove(&(at, buffer));
        self.0.advanced.notify_all();
    }

    /// Holds the position back for redo from `at` on, which will be applied to blocks later.
    pub fn hold(&self, at: u64) {
        *self.0.held.borrow_mut().entry(at).or_default() += 1;
    }

    /// Ends a [`Checkpoint::hold`] for redo from `at` on, which has now been applied to blocks.
    pub fn release(&self, at: u64) {
        let mut held = self.0.held.borrow_mut();
        if let Some(count) = held.get_mut(&at) {
            *count -= 1;
            if *count == 0 {
                held.remove(&at);
            }
        }
        drop(held);
        self.0.advanced.notify_all();
    }

    /// Returns the lowest position that recovery needs; `u64::MAX` if nothing is dirty.
    pub fn position(&self) -> u64 {
        let dirty = self.0.dirty.borrow().first().map_or(u64::MAX, |&(at, _)| at);
        let held = self.0.held.borrow().first_key_value().map_or(u64::MAX, |(&at, _)| at);
        dirty.min(held)
    }

    /// Requests that all blocks dirtied before `target` are written; posts the database writer.
    pub fn raise(&self, target: u64) {
        if target > self.0.target.get() {
            self.0.target.set(target);
        }
        if self.position() < self.0.target.get() {
            self.post_writer();
        }
    }

    /// Posts the database writer.
    pub fn post_writer(&self) {
        self.0.writer.notify_one();
    }

    /// Waits until the database writer is posted.
    pub async fn posted(&self) {
        self.0.writer.wait().await;
    }

    /// Waits until the checkpoint position has reached `at`.
    pub async fn reached(&self, at: u64) {
        while self.position() < at {
            self.0.advanced.wait().await;
        }
    }

    /// Returns the first buffer in the queue that must be written and is ready to be written.
    pub fn due(&self, ready: impl Fn(u32) -> bool) -> Option<u32> {
        let target = self.0.target.get();
        let dirty = self.0.dirty.borrow();
        let due = dirty.iter().take_while(|&&(at, _)| at < target);
        due.map(|&(_, buffer)| buffer).find(|&buffer| ready(buffer))
    }
}
