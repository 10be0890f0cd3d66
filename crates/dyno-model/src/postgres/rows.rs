//! Row locks, held until the end of a transaction.
//!
//! A session that finds a row locked waits for the end of the transaction that holds the lock. The sessions that wait
//! at one version of the row form a queue (the tuple's lock). At the end of the transaction the first of them wakes up
//! and wakes the next one, which finds a newer version of the row and waits there. The row may also go to a session
//! that never waited and runs before the first of the queue does.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::process::{Process, Sleepers};
use crate::kernel::Sim;
use crate::kernel::sim::Place;

/// A row: number of its table, and number of the row.
pub type Row = (u32, u64);

struct Inner {
    place: Place,
    /// Locked rows with the processes that wait for each.
    locked: RefCell<HashMap<Row, Rc<Sleepers>>>,
}

/// Row locks of a server; clones share them. Only locked rows take memory.
#[derive(Clone)]
pub struct Rows(Rc<Inner>);

impl Rows {
    /// Returns an empty set of locks.
    pub fn new(sim: &Sim) -> Self {
        Self(Rc::new(Inner { place: sim.place("a row"), locked: RefCell::default() }))
    }

    /// Locks a row if it is free; returns false if another session holds the lock.
    pub fn try_lock(&self, row: Row) -> bool {
        let mut locked = self.0.locked.borrow_mut();
        let free = !locked.contains_key(&row);
        if free {
            locked.insert(row, Rc::new(Sleepers::new(self.0.place)));
        }
        free
    }

    /// Sleeps until a locked row is released and it is the process's turn. Returns whether the process was woken onto
    /// an idle core, and the list of processes that wait for this version of the row.
    pub async fn wait(&self, row: Row, process: &Process) -> (bool, Option<Rc<Sleepers>>) {
        let sleepers = self.0.locked.borrow().get(&row).map(Rc::clone);
        match sleepers {
            Some(sleepers) => (sleepers.sleep(process).await, Some(sleepers)),
            None => (false, None),
        }
    }

    /// Releases locks, and wakes the first process that waits for each.
    pub fn release(&self, held: &mut Vec<Row>, releaser: &Process) {
        for row in held.drain(..) {
            let sleepers = self.0.locked.borrow_mut().remove(&row);
            if let Some(sleepers) = sleepers {
                sleepers.wake_first(releaser);
            }
        }
    }
}
