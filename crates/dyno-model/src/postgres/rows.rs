//! Locks of rows, held to the end of a transaction and handed over in order of arrival.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use crate::kernel::sim::Place;
use crate::kernel::{ProcessId, Sim};

/// Row: number of its table, and of the row in it.
pub type Row = (u32, u64);

/// A process that waits for a row, and whether the row was handed to it.
type Waiter = (ProcessId, Rc<Cell<bool>>);

struct Inner {
    sim: Sim,
    place: Place,
    /// Locked rows, and who waits for each.
    locked: RefCell<HashMap<Row, VecDeque<Waiter>>>,
}

/// Locks of a server's rows; clones share them. Only rows that are locked take memory.
#[derive(Clone)]
pub struct Rows(Rc<Inner>);

impl Rows {
    /// Returns rows that nobody has locked.
    pub fn new(sim: &Sim) -> Self {
        let place = sim.place("a row");
        Self(Rc::new(Inner { sim: sim.clone(), place, locked: RefCell::default() }))
    }

    /// Locks a row if it is free; returns false if another session has it.
    pub fn try_lock(&self, row: Row) -> bool {
        let mut locked = self.0.locked.borrow_mut();
        let free = !locked.contains_key(&row);
        if free {
            locked.insert(row, VecDeque::new());
        }
        free
    }

    /// Waits until a row is handed to this process, which it then has locked.
    pub async fn wait(&self, row: Row) {
        let handed = Rc::new(Cell::new(false));
        let waiter = (self.0.sim.running(), Rc::clone(&handed));
        self.0.locked.borrow_mut().entry(row).or_default().push_back(waiter);
        poll_fn(|_| {
            if handed.get() {
                return Poll::Ready(());
            }
            self.0.sim.stops_at(self.0.place);
            Poll::Pending
        })
        .await;
    }

    /// Releases rows: each goes to the process that waits longest.
    pub fn release(&self, held: &mut Vec<Row>) {
        let mut locked = self.0.locked.borrow_mut();
        for row in held.drain(..) {
            match locked.get_mut(&row).and_then(VecDeque::pop_front) {
                Some((process, handed)) => {
                    handed.set(true);
                    self.0.sim.wake(process);
                }
                None => {
                    locked.remove(&row);
                }
            }
        }
    }
}
