//! Row locks, held until the end of a transaction.
//!
//! Who finds a row locked waits for the end of the transaction that has it, and all who do wake up then: the first one
//! that runs has the row, which may be one that never waited, and the others wait for that one. There is an order (the
//! tuple's lock) only among those that wait at the same version of a row; with many sessions each waits at another.

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

    /// Sleeps until a locked row is released; returns true if the process was woken onto an idle core.
    pub async fn wait(&self, row: Row, process: &Process) -> bool {
        let sleepers = self.0.locked.borrow().get(&row).map(Rc::clone);
        match sleepers {
            Some(sleepers) => sleepers.sleep(process).await,
            None => false,
        }
    }

    /// Releases locks, and wakes all who wait for them.
    pub fn release(&self, held: &mut Vec<Row>, releaser: &Process) {
        for row in held.drain(..) {
            let sleepers = self.0.locked.borrow_mut().remove(&row);
            if let Some(sleepers) = sleepers {
                sleepers.wake_all(releaser);
            }
        }
    }
}
