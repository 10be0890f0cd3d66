//! Turns: the sessions of an arm run for a while, then others have their turn.
//!
//! dyno's load runs the arms of a block in turn, a slice of each. All sessions of an arm begin a slice at one instant,
//! on cores that were left idle for a moment, and its client threads have worked for other arms meanwhile. Where
//! processes gather from there takes tens of milliseconds, which is a good part of a slice. While other arms run, the log
//! writer flushes the log that asynchronous commits left, so that each turn begins with empty buffers.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::Poll;

use super::cores::Cores;
use super::wal::Wal;
use crate::kernel::sim::Place;
use crate::kernel::{ProcessId, Sim};

/// Time between two turns [ns]: longer than a core is idle before it is halted, but too short for the cores' average
/// utilisation to change much, because other arms keep them busy meanwhile.
const REST_NS: u64 = 10_000_000;

/// Maximum time for which a rest is extended until the log is flushed [ns].
const FLUSH_MOST_NS: u64 = 1_000_000_000;

/// Turns of all sessions of a load.
pub(super) struct Turns {
    sim: Sim,
    cpu: Cores,
    wal: Wal,
    place: Place,
    length_ns: u64,
    sessions: u64,
    /// End of the current turn [ns].
    end_ns: Cell<u64>,
    /// Number of turns so far.
    number: Cell<u64>,
    /// Time between turns so far [ns].
    rested_ns: Cell<u64>,
    waiting: RefCell<Vec<ProcessId>>,
}

impl Turns {
    /// Returns turns of this length; 0: a single one without an end.
    pub fn new(sim: &Sim, cpu: &Cores, wal: &Wal, length_ns: u64, sessions: u64) -> Self {
        Self {
            sim: sim.clone(),
            cpu: cpu.clone(),
            wal: wal.clone(),
            place: sim.place("the next turn"),
            length_ns,
            sessions,
            end_ns: Cell::new(if length_ns > 0 { length_ns } else { u64::MAX }),
            number: Cell::new(0),
            rested_ns: Cell::new(0),
            waiting: RefCell::default(),
        }
    }

    /// Returns true if the turn has ended, so that no transaction begins in it.
    pub fn is_over(&self) -> bool {
        self.sim.now_ns() >= self.end_ns.get()
    }

    /// Returns the number of turns that have ended.
    pub fn ended(&self) -> u64 {
        self.number.get()
    }

    /// Returns the time between turns so far [ns].
    pub fn rested_ns(&self) -> u64 {
        self.rested_ns.get()
    }

    /// Waits for the next turn, which begins after all sessions have ended this one.
    pub async fn next(&self) {
        let before = self.number.get();
        if self.waiting.borrow().len() as u64 + 1 == self.sessions {
            self.rest().await;
            self.number.set(before + 1);
            self.end_ns.set(self.sim.now_ns() + self.length_ns);
            for waiting in self.waiting.take() {
                self.sim.wake(waiting);
            }
            return;
        }
        self.waiting.borrow_mut().push(self.sim.running());
        poll_fn(|_| {
            if self.number.get() > before {
                return Poll::Ready(());
            }
            self.sim.stops_at(self.place);
            Poll::Pending
        })
        .await;
    }

    /// Waits until other arms have had their turns and the log is flushed. Other arms keep the cores busy meanwhile, so
    /// the extension of a rest does not change their average utilisation.
    async fn rest(&self) {
        let began_ns = self.sim.now_ns();
        self.sim.hold(REST_NS).await;
        let average = self.cpu.average_busy();
        let latest_ns = self.sim.now_ns() + FLUSH_MOST_NS;
        while !self.wal.is_flushed() && self.sim.now_ns() < latest_ns {
            self.sim.hold(REST_NS).await;
        }
        self.cpu.set_average_busy(average);
        self.rested_ns.set(self.rested_ns.get() + self.sim.now_ns() - began_ns);
    }
}
