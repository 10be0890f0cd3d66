//! Process on the cores, with an account of its time.
//!
//! As in [`crate::database::task`], a wait ends when the process runs again: time in the run queue belongs to the wait that
//! ended. Time that it loses while it computes is [`Wait::CpuQueue`].

use std::cell::RefCell;
use std::rc::Rc;

use crate::database::cpu::{Cpu, Seat};
use crate::kernel::Sim;

/// What a process of the server waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Wait {
    /// A request of its client.
    Client,
    /// The sync of the log.
    WalSync,
    /// The lock of the log, while another process flushes.
    WalLock,
    /// Other commits, before it flushes.
    CommitDelay,
    /// A row.
    Row,
    /// A core, while it computes.
    CpuQueue,
}

impl Wait {
    /// All of them, in order.
    pub const ALL: [Self; 6] =
        [Self::Client, Self::WalSync, Self::WalLock, Self::CommitDelay, Self::Row, Self::CpuQueue];

    /// Returns the engine's type and name of the event.
    pub fn name(self) -> (&'static str, &'static str) {
        match self {
            Self::Client => ("Client", "ClientRead"),
            Self::WalSync => ("IO", "WALSync"),
            Self::WalLock => ("LWLock", "WALWrite"),
            Self::CommitDelay => ("Timeout", "CommitDelay"),
            Self::Row => ("Lock", "transactionid"),
            Self::CpuQueue => ("CPU", "CPU queue"),
        }
    }
}

/// Sums over the processes of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// CPU time [ns].
    pub cpu_ns: u64,
    /// Count and time of each wait [ns], in the order of [`Wait::ALL`].
    pub waits: [(u64, u64); Wait::ALL.len()],
}

/// A process; clones are the same one.
#[derive(Clone)]
pub struct Process {
    sim: Sim,
    cpu: Cpu,
    seat: Rc<Seat>,
    account: Rc<RefCell<Account>>,
}

impl Process {
    /// Returns a process without a core, which adds to `account`.
    pub fn new(sim: &Sim, cpu: &Cpu, account: &Rc<RefCell<Account>>) -> Self {
        Self { sim: sim.clone(), cpu: cpu.clone(), seat: Seat::new(false), account: Rc::clone(account) }
    }

    /// Computes [ns].
    pub async fn run(&self, ns: u64) {
        if ns > 0 && !self.seat.is_running() {
            self.back(Wait::CpuQueue, self.sim.now_ns()).await;
        }
        let mut left_ns = ns;
        while left_ns > 0 {
            if self.cpu.must_leave(&self.seat) {
                let begin_ns = self.leave();
                self.cpu.acquire(&self.seat, false).await;
                self.wait(Wait::CpuQueue, begin_ns);
            }
            let done_ns = self.cpu.compute(&self.seat, left_ns).await;
            self.account.borrow_mut().cpu_ns += done_ns;
            left_ns -= done_ns;
        }
    }

    /// Releases the core in order to wait; returns the time now [ns].
    pub fn leave(&self) -> u64 {
        self.cpu.release(&self.seat);
        self.sim.now_ns()
    }

    /// Ends the wait that began at `begin_ns` as soon as there is a core.
    pub async fn back(&self, what: Wait, begin_ns: u64) {
        if !self.seat.is_running() {
            self.cpu.acquire(&self.seat, true).await;
        }
        self.wait(what, begin_ns);
    }

    fn wait(&self, what: Wait, begin_ns: u64) {
        let elapsed_ns = self.sim.now_ns() - begin_ns;
        if elapsed_ns > 0 {
            let (count, sum_ns) = &mut self.account.borrow_mut().waits[what as usize];
            (*count, *sum_ns) = (*count + 1, *sum_ns + elapsed_ns);
        }
    }
}
