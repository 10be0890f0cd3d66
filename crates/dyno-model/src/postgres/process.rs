//! Process on the cores, with accounting of its time.
//!
//! A process that sleeps is woken by another one or by the device ([`super::cores`]). As in [`crate::database::task`], a wait ends when the process runs again: time in the run queue belongs to the wait that
//! ended. Time that it loses while it computes is [`Wait::CpuQueue`].
//!
//! A process that has sent a message computes for a while before it sleeps. If an answer comes in this time, the
//! process is still awake and stays on its core.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::cores::Cores;
use super::queue::{Seat, WEIGHT};
use crate::kernel::sim::Place;
use crate::kernel::{ProcessId, Sim};

/// What a server process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Wait {
    /// A request of its client.
    Client,
    /// The sync of the log.
    WalSync,
    /// The lock of the log, while another process flushes.
    WalLock,
    /// Other commits, before the process flushes the log.
    CommitDelay,
    /// A row lock.
    Row,
    /// A core, while the process has work to do.
    CpuQueue,
    /// The read of a block of a data file.
    DataRead,
    /// The write of a changed block, to make room for another.
    DataWrite,
    /// The read of a block of a temporary file.
    TempRead,
    /// The write of a block of a temporary file.
    TempWrite,
}

impl Wait {
    /// All waits in order.
    pub const ALL: [Self; 10] = [
        Self::Client,
        Self::WalSync,
        Self::WalLock,
        Self::CommitDelay,
        Self::Row,
        Self::CpuQueue,
        Self::DataRead,
        Self::DataWrite,
        Self::TempRead,
        Self::TempWrite,
    ];

    /// Returns the engine's type and name of the event.
    pub fn name(self) -> (&'static str, &'static str) {
        match self {
            Self::Client => ("Client", "ClientRead"),
            Self::WalSync => ("IO", "WALSync"),
            Self::WalLock => ("LWLock", "WALWrite"),
            Self::CommitDelay => ("Timeout", "CommitDelay"),
            Self::Row => ("Lock", "transactionid"),
            Self::CpuQueue => ("CPU", "CPU queue"),
            Self::DataRead => ("IO", "DataFileRead"),
            Self::DataWrite => ("IO", "DataFileWrite"),
            Self::TempRead => ("IO", "BufFileRead"),
            Self::TempWrite => ("IO", "BufFileWrite"),
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

/// A process; clones share it.
#[derive(Clone)]
pub struct Process {
    sim: Sim,
    cores: Cores,
    seat: Rc<Seat>,
    account: Rc<RefCell<Account>>,
    cold_ns: u64,
    tail: Rc<Tail>,
}

/// State of a process that has sent a message and does not sleep yet.
#[derive(Default)]
struct Tail {
    computes: Cell<bool>,
    /// True if an answer has come since the process sent its message.
    answered: Cell<bool>,
    /// Process of the simulation that waits for the end of the tail.
    waiting: Cell<Option<ProcessId>>,
}

impl Process {
    /// Creates a sleeping process that adds its times to `account`; if its core was idle or others have run there, it
    /// computes for `cold_ns` more.
    pub fn new(sim: &Sim, cores: &Cores, account: &Rc<RefCell<Account>>, cold_ns: u64) -> Self {
        Self {
            sim: sim.clone(),
            cores: cores.clone(),
            seat: cores.seat(),
            account: Rc::clone(account),
            cold_ns,
            tail: Rc::default(),
        }
    }

    /// Returns the process as one of a group of `processes`, which divide the weight of one among them.
    pub fn in_group_of(self, processes: u64) -> Self {
        self.seat.weight.set((WEIGHT / processes as i64).max(1));
        self
    }

    /// Returns true if the process started on a core that was idle, or where others had run since its last run; only
    /// the first call returns true.
    pub fn take_cold(&self) -> bool {
        self.seat.take_cold()
    }

    /// Computes for `ns` nanoseconds.
    pub async fn run(&self, ns: u64) {
        if ns > 0 && (self.tail.computes.get() || !self.seat.is_running()) {
            self.back(Wait::CpuQueue, self.sim.now_ns()).await;
        }
        self.work(ns).await;
    }

    /// Computes for `ns` nanoseconds on the core that the process already has.
    async fn work(&self, ns: u64) {
        let mut left_ns = ns;
        while left_ns > 0 {
            if self.seat.take_cold() {
                left_ns += self.cold_ns;
            }
            if self.cores.must_give_way(&self.seat) {
                let begin_ns = self.sim.now_ns();
                self.cores.give_way(&self.seat).await;
                self.wait(Wait::CpuQueue, begin_ns);
            }
            let done = self.cores.compute(&self.seat, left_ns).await;
            self.account.borrow_mut().cpu_ns += done.cpu_ns;
            left_ns -= done.work_ns;
        }
    }

    /// Releases the core in order to sleep; returns the current time [ns].
    pub fn leave(&self) -> u64 {
        self.cores.release(&self.seat);
        self.sim.now_ns()
    }

    /// Computes for `tail_ns` and then sleeps, unless it is woken before; returns immediately.
    pub fn sleep_after(&self, tail_ns: u64) {
        if tail_ns == 0 || !self.seat.is_running() {
            self.leave();
            return;
        }
        self.tail.computes.set(true);
        let process = self.clone();
        self.sim.spawn_daemon("a tail", async move {
            process.work(tail_ns).await;
            let tail = &process.tail;
            tail.computes.set(false);
            if !tail.answered.take() {
                process.leave();
            }
            if let Some(waiting) = tail.waiting.take() {
                process.sim.wake(waiting);
            }
        });
    }

    /// Wakes this process; `waker` is running and may be about to sleep. Returns true if the process got an idle core.
    pub fn wake(&self, waker: Option<&Self>) -> bool {
        if self.tail.computes.get() {
            self.tail.answered.set(true);
            return false;
        }
        self.cores.wake(&self.seat, waker.map(|waker| &*waker.seat))
    }

    /// Ends the wait that began at `begin_ns` as soon as this woken process runs; an idle core needs `start_ns` to
    /// start it.
    pub async fn start(&self, what: Wait, begin_ns: u64, start_ns: u64) {
        if self.tail.computes.get() {
            self.tail.waiting.set(Some(self.sim.running()));
            self.sim.stop_until(Place::TIME, || (!self.tail.computes.get()).then_some(())).await;
        }
        self.cores.arrive(&self.seat, start_ns).await;
        self.wait(what, begin_ns);
    }

    /// Ends the wait that began at `begin_ns` as soon as a core is free; no other process wakes this one.
    pub async fn back(&self, what: Wait, begin_ns: u64) {
        self.wake(None);
        self.start(what, begin_ns, 0).await;
    }

    /// Gets a core again in the middle of a wait, which then continues.
    pub async fn resume(&self) {
        self.wake(None);
        self.cores.arrive(&self.seat, 0).await;
    }

    /// Lets a random core be the last one of this process, if it sleeps.
    pub fn move_anywhere(&self) {
        self.cores.move_anywhere(&self.seat);
    }

    fn wait(&self, what: Wait, begin_ns: u64) {
        let elapsed_ns = self.sim.now_ns() - begin_ns;
        if elapsed_ns > 0 {
            let (count, sum_ns) = &mut self.account.borrow_mut().waits[what as usize];
            (*count, *sum_ns) = (*count + 1, *sum_ns + elapsed_ns);
        }
    }
}

/// A sleeping process, the position that it sleeps for, and how it was woken: true if it got an idle core.
struct Sleeper {
    id: ProcessId,
    process: Process,
    position: u64,
    woken: Rc<Cell<Option<bool>>>,
}

impl Sleeper {
    /// Wakes the process; returns true if it got an idle core.
    fn wake(self, waker: &Process) -> bool {
        let idle = self.process.wake(Some(waker));
        self.woken.set(Some(idle));
        waker.sim.wake(self.id);
        idle
    }
}

/// Processes that sleep until another one wakes them, in order of arrival.
pub struct Sleepers {
    place: Place,
    sleeping: RefCell<VecDeque<Sleeper>>,
}

impl Sleepers {
    /// Returns an empty list; `place` is its name in messages.
    pub fn new(place: Place) -> Self {
        Self { place, sleeping: RefCell::default() }
    }

    /// Sleeps until woken; returns true if the process was woken onto an idle core.
    pub async fn sleep(&self, process: &Process) -> bool {
        self.sleep_for(process, 0).await
    }

    /// Sleeps until woken, while the process waits for `position`, which others reach; returns true if the process was
    /// woken onto an idle core.
    pub async fn sleep_for(&self, process: &Process, position: u64) -> bool {
        let woken = Rc::new(Cell::new(None));
        let id = process.sim.running();
        let sleeper = Sleeper { id, process: process.clone(), position, woken: Rc::clone(&woken) };
        self.sleeping.borrow_mut().push_back(sleeper);
        process.sim.stop_until(self.place, || woken.get()).await
    }

    /// Wakes the first sleeper; returns true if it got an idle core, `None` if nobody sleeps.
    pub fn wake_first(&self, waker: &Process) -> Option<bool> {
        let sleeper = self.sleeping.borrow_mut().pop_front()?;
        Some(sleeper.wake(waker))
    }

    /// Wakes all processes whose position was reached, and the first of the others; returns how many of them got an
    /// idle core.
    pub fn wake_reached(&self, waker: &Process, reached: u64) -> u64 {
        let (served, mut others): (VecDeque<_>, VecDeque<_>) =
            self.sleeping.take().into_iter().partition(|sleeper| sleeper.position <= reached);
        let next = others.pop_front();
        self.sleeping.replace(others);
        served.into_iter().chain(next).map(|sleeper| u64::from(sleeper.wake(waker))).sum()
    }

    /// Wakes all sleepers; returns how many got an idle core.
    pub fn wake_all(&self, waker: &Process) -> u64 {
        std::iter::from_fn(|| self.wake_first(waker)).map(u64::from).sum()
    }
}
