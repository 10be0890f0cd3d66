//! Process of the instance: on a core, in the run queue, or waiting for something else.
//!
//! It keeps its core until it waits or is preempted ([`super::cpu`]). A wait for anything else ends when the process
//! *runs* again: the time in the run queue after an I/O or a post belongs to that wait, as on a real engine, which
//! reads the clock only when it runs. Only the time that a process loses to others while it computes has a name of its
//! own ([`Event::CpuQueue`]); a real engine leaves that gap unnamed.

use std::rc::Rc;

use super::cpu::{Cpu, Seat};
use super::event::Event;
use super::wait::{Account, Ledger, Process, Recorder};
use crate::kernel::Sim;

/// Process of the instance.
pub struct Task {
    sim: Sim,
    cpu: Cpu,
    account: Account,
    seat: Rc<Seat>,
}

impl Task {
    /// Returns a process that begins now, without a core.
    pub fn new(sim: &Sim, cpu: &Cpu, process: Process, real_time: bool, recorder: &Recorder) -> Self {
        let account = Account::new(process, sim.now_ns(), recorder);
        Self { sim: sim.clone(), cpu: cpu.clone(), account, seat: Seat::new(real_time) }
    }

    /// Returns the handle of the simulation.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// Returns the account of the process's time.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Returns the ledger of the process's time, without the wait that is still going on.
    pub fn ledger(&self) -> Ledger {
        self.account.ledger()
    }

    /// Computes for `ns` nanoseconds.
    pub async fn run(&mut self, ns: u64) {
        if ns == 0 {
            return;
        }
        self.enter().await;
        let mut left_ns = ns;
        while left_ns > 0 {
            if self.cpu.must_leave(&self.seat) {
                let begin_ns = self.leave();
                self.cpu.acquire(&self.seat, false).await;
                self.account.wait(Event::CpuQueue, begin_ns, self.sim.now_ns(), [0; 3]);
            }
            let done_ns = self.cpu.compute(&self.seat, left_ns).await;
            self.account.cpu(done_ns);
            left_ns -= done_ns;
        }
    }

    /// Gets a core if the process has none.
    #[inline]
    pub async fn enter(&mut self) {
        if !self.seat.is_running() {
            let begin_ns = self.sim.now_ns();
            self.back(Event::CpuQueue, begin_ns, [0; 3]).await;
        }
    }

    /// Releases the core in order to wait; returns the time now [ns].
    #[inline]
    pub fn leave(&mut self) -> u64 {
        self.cpu.release(&self.seat);
        self.sim.now_ns()
    }

    /// Ends the wait that began at `begin_ns` as soon as there is a core.
    #[inline]
    pub async fn back(&mut self, event: Event, begin_ns: u64, p: [u64; 3]) {
        if !self.seat.is_running() {
            self.cpu.acquire(&self.seat, true).await;
        }
        self.account.wait(event, begin_ns, self.sim.now_ns(), p);
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.cpu.release(&self.seat);
    }
}
