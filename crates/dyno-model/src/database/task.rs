//! Cores, and processes that run on them, wait in the run queue, or wait for something else.
//!
//! A process keeps its core until it waits or its time slice is over while others are in the run
//! queue; then it goes to the end of that queue. Nobody is interrupted for somebody who wakes up.
//! A wait for anything else ends when the process *runs* again: the time in the run queue after an
//! I/O or a post belongs to that wait, as on a real engine, which reads the clock only when it runs.
//! Only the time that a process loses at the end of its slice is named on its own
//! ([`Event::CpuQueue`]); a real engine leaves that gap unnamed.

use crate::kernel::waitlist::Discipline;
use crate::kernel::{Permit, Resource, Sim, StationReport};

use super::event::Event;
use super::wait::{Account, Ledger, Process, Recorder};

/// Cores with a run queue; clones share them.
#[derive(Clone)]
pub struct Cpu {
    cores: Resource,
    slice_ns: u64,
}

impl Cpu {
    /// So many cores, and the time slice.
    pub fn new(sim: &Sim, cores: u64, slice_ns: u64) -> Self {
        let cores = Resource::with(sim, "cpu", cores.max(1), Discipline::Priority);
        Self { cores, slice_ns: slice_ns.max(1) }
    }

    /// What the run queue has seen. Nobody waits here for anything but a core.
    pub fn report(&self) -> StationReport {
        self.cores.report()
    }

    /// Forgets the statistics so far.
    pub fn reset(&self) {
        self.cores.reset();
    }
}

/// A process of the instance.
pub struct Task {
    sim: Sim,
    cpu: Cpu,
    account: Account,
    core: Option<Permit>,
    slice_left_ns: u64,
    priority: u32,
}

impl Task {
    /// One that begins now, without a core. `first`: it goes to the head of the run queue.
    pub fn new(sim: &Sim, cpu: &Cpu, process: Process, first: bool, recorder: &Recorder) -> Self {
        let account = Account::new(process, sim.now_ns(), recorder);
        let priority = u32::from(!first);
        let (sim, cpu) = (sim.clone(), cpu.clone());
        Self { sim, cpu, account, core: None, slice_left_ns: 0, priority }
    }

    /// The run.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// The account.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// What it did with its time. While it waits, the wait that goes on is not in it.
    pub fn ledger(&self) -> Ledger {
        self.account.ledger()
    }

    /// Computes for so long.
    pub async fn run(&mut self, ns: u64) {
        if ns == 0 {
            return;
        }
        self.enter().await;
        let mut left_ns = ns;
        while left_ns > 0 {
            if self.slice_left_ns == 0 {
                self.slice_left_ns = self.cpu.slice_ns;
                if self.cpu.cores.queue_len() > 0 {
                    let begin_ns = self.leave();
                    self.back(Event::CpuQueue, begin_ns, [0; 3]).await;
                }
            }
            let part_ns = left_ns.min(self.slice_left_ns);
            self.sim.hold(part_ns).await;
            self.account.cpu(part_ns);
            left_ns -= part_ns;
            self.slice_left_ns -= part_ns;
        }
    }

    /// Runs: gets a core if it has none.
    #[inline]
    pub async fn enter(&mut self) {
        if self.core.is_none() {
            let begin_ns = self.sim.now_ns();
            self.back(Event::CpuQueue, begin_ns, [0; 3]).await;
        }
    }

    /// Gives the core up, to wait for something; the time now.
    #[inline]
    pub fn leave(&mut self) -> u64 {
        self.core = None;
        self.sim.now_ns()
    }

    /// What was waited for since `begin_ns` is there: the wait ends as soon as there is a core.
    #[inline]
    pub async fn back(&mut self, event: Event, begin_ns: u64, p: [u64; 3]) {
        if self.core.is_none() {
            self.core = Some(self.cpu.cores.acquire_at(self.priority).await);
            self.slice_left_ns = self.cpu.slice_ns;
        }
        self.account.wait(event, begin_ns, self.sim.now_ns(), p);
    }
}
