//! Cores with a run queue each, and Linux's rules for choosing the core of a process that wakes up.
//!
//! **Waking up** (`select_task_rq_fair`). An idle core is taken if there is one: the process's last one first. Otherwise
//! the process queues where its waker runs if that one is alone there (it is about to sleep), else where fewer wait.
//!
//! **Order** (`pick_eevdf`). Of a core's queue the process with the least virtual time runs. One that sleeps keeps its
//! lag, by which it is ahead of the average or behind it, up to a slice. Whoever runs does so for a slice undisturbed;
//! from then on it leaves the core to one with less virtual time.
//!
//! **Balance** (`sched_balance_newidle`, `sched_balance_rq`). A core that becomes idle takes a process from another queue,
//! but none that ran there recently, whose data are in that core's cache (`task_hot`). At intervals the longest queue
//! gives half of what it has more to the shortest one.
//!
//! **Limits.** Equal weights, no cost of a switch, one cache for all cores.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use crate::device::parameters;
use crate::kernel::sample::whole_ns;
use crate::kernel::sim::Place;
use crate::kernel::{ProcessId, Sim, Station, StationReport};

parameters! {
    /// Parameters of the scheduler.
    pub struct CoresParameters {
        /// minimum time that a process runs without preemption
        slice_ms: f64 = 1.4, from "Linux fair.c: sched_base_slice, 0.7 ms x (1 + log2 of 2 CPUs)", in 0.001..=3.6e6;
        /// time after its last run during which a process is not moved to another core
        hot_ms: f64 = 0.5, from "Linux fair.c: sched_migration_cost", in 0.0..=3.6e6;
        /// interval at which queues of busy cores are balanced
        balance_ms: f64 = 32.0, from "Linux topology.c: 16 (busy_factor) x 2 CPUs", in 0.001..=3.6e6;
    }
}

/// Order in a run queue: virtual time, then arrival.
type Key = (i64, u64);

/// Scheduler's state of a process.
pub(super) struct Seat {
    process: Cell<ProcessId>,
    running: Cell<bool>,
    /// True while its idle core starts.
    starting: Cell<bool>,
    core: Cell<usize>,
    /// Virtual time up to `since_ns` [ns].
    had_ns: Cell<i64>,
    /// Virtual time relative to the average of its core when it went to sleep [ns].
    ahead_ns: Cell<i64>,
    since_ns: Cell<u64>,
    arrived_ns: Cell<u64>,
    slice_from_ns: Cell<u64>,
    /// Time at which it last ran [ns].
    ran_ns: Cell<u64>,
    /// True if others have run on the core since, so that its data are no longer in the core's cache.
    cold: Cell<bool>,
    key: Cell<Option<Key>>,
}

impl Seat {
    pub fn new() -> Rc<Self> {
        Rc::new(Self {
            process: Cell::new(ProcessId::NONE),
            running: Cell::new(false),
            starting: Cell::new(false),
            core: Cell::new(0),
            had_ns: Cell::new(0),
            ahead_ns: Cell::new(0),
            since_ns: Cell::new(0),
            arrived_ns: Cell::new(0),
            slice_from_ns: Cell::new(0),
            ran_ns: Cell::new(0),
            cold: Cell::new(false),
            key: Cell::new(None),
        })
    }

    /// Returns true if it has a core.
    pub fn is_running(&self) -> bool {
        self.running.get()
    }

    /// Returns true, once, if the process started on a core where others had run since its last run.
    pub fn take_cold(&self) -> bool {
        self.cold.replace(false)
    }

    fn had_at(&self, now_ns: u64) -> i64 {
        let ran_ns = if self.starting.get() { 0 } else { now_ns - self.since_ns.get() };
        self.had_ns.get() + ran_ns as i64
    }
}

#[derive(Default)]
struct Core {
    running: Option<Rc<Seat>>,
    queue: BTreeMap<Key, Rc<Seat>>,
    /// Sum of the virtual times in the queue [ns].
    queued_ns: i64,
    /// Average virtual time when the core was last busy [ns].
    average_ns: i64,
    /// The last two processes on this core.
    last: [Option<Rc<Seat>>; 2],
}

impl Core {
    fn present(&self) -> usize {
        self.queue.len() + usize::from(self.running.is_some())
    }

    /// Returns the average virtual time of the processes that run and wait on this core [ns].
    fn average_ns(&self, now_ns: u64) -> i64 {
        let running_ns = self.running.as_ref().map_or(0, |seat| seat.had_at(now_ns));
        match self.present() {
            0 => self.average_ns,
            present => (self.queued_ns + running_ns) / present as i64,
        }
    }

    fn run(&mut self, seat: Rc<Seat>) {
        let is = |other: &Option<Rc<Seat>>| other.as_ref().is_some_and(|other| Rc::ptr_eq(other, &seat));
        if !is(&self.last[0]) {
            if !is(&self.last[1]) {
                seat.cold.set(true);
            }
            self.last[1] = self.last[0].replace(Rc::clone(&seat));
        }
        self.running = Some(seat);
    }

    fn push(&mut self, seat: &Rc<Seat>, key: Key) {
        seat.key.set(Some(key));
        self.queued_ns += key.0;
        self.queue.insert(key, Rc::clone(seat));
    }

    fn remove(&mut self, key: Key) -> Option<Rc<Seat>> {
        let seat = self.queue.remove(&key)?;
        seat.key.set(None);
        self.queued_ns -= key.0;
        Some(seat)
    }
}

struct State {
    cores: Vec<Core>,
    arrivals: u64,
    station: Station,
}

struct Inner {
    sim: Sim,
    place: Place,
    slice_ns: u64,
    hot_ns: u64,
    balance_ns: u64,
    state: RefCell<State>,
}

/// Cores; clones share them.
#[derive(Clone)]
pub(super) struct Cores(Rc<Inner>);

impl Cores {
    /// Returns idle cores.
    pub fn new(sim: &Sim, cores: u64, parameters: &CoresParameters) -> Self {
        let cores = (0..cores.max(1)).map(|_| Core::default()).collect();
        let state = RefCell::new(State { cores, arrivals: 0, station: Station::default() });
        let ns = |ms: f64| whole_ns(ms * 1e6);
        let (slice_ns, hot_ns) = (ns(parameters.slice_ms).max(1), ns(parameters.hot_ms));
        let balance_ns = ns(parameters.balance_ms).max(1);
        Self(Rc::new(Inner { sim: sim.clone(), place: sim.place("a core"), slice_ns, hot_ns, balance_ns, state }))
    }

    /// Returns the statistics of the cores.
    pub fn report(&self) -> StationReport {
        let state = self.0.state.borrow();
        state.station.report("cpu", state.cores.len() as u64, self.0.sim.now_ns())
    }

    /// Resets the statistics.
    pub fn reset(&self) {
        self.0.state.borrow_mut().station.reset(self.0.sim.now_ns());
    }

    /// Wakes a sleeping process before its waker sleeps itself; returns true if it gets an idle core.
    pub fn wake(&self, seat: &Rc<Seat>, waker: Option<&Seat>) -> bool {
        let inner = &*self.0;
        let now_ns = inner.sim.now_ns();
        let mut state = inner.state.borrow_mut();
        let waker = waker.filter(|waker| waker.is_running()).map(|waker| waker.core.get());
        let core = state.choose(seat.core.get(), waker);
        seat.core.set(core);
        let most = inner.slice_ns as i64;
        let had_ns = state.cores[core].average_ns(now_ns) + seat.ahead_ns.get().clamp(-most, most);
        state.enter(seat, had_ns, now_ns);
        let idle = state.cores[core].running.is_none();
        if idle {
            seat.starting.set(true);
            state.next(inner, core, now_ns);
        }
        idle
    }

    /// Moves processes from long queues to short ones at intervals.
    pub async fn balance_at_intervals(self) {
        loop {
            self.0.sim.hold(self.0.balance_ns).await;
            let now_ns = self.0.sim.now_ns();
            let mut state = self.0.state.borrow_mut();
            state.balance(now_ns);
            for core in 0..state.cores.len() {
                if state.cores[core].running.is_none() {
                    state.next(&self.0, core, now_ns);
                }
            }
        }
    }

    /// Waits until a woken process runs; `start_ns` is the time that an idle core needs to start it.
    pub async fn arrive(&self, seat: &Rc<Seat>, start_ns: u64) {
        let inner = &*self.0;
        seat.process.set(inner.sim.running());
        poll_fn(|_| {
            if seat.running.get() {
                return Poll::Ready(());
            }
            inner.sim.stops_at(inner.place);
            Poll::Pending
        })
        .await;
        if seat.starting.get() {
            inner.sim.hold(start_ns).await;
            inner.state.borrow_mut().begin(seat, inner.sim.now_ns());
        }
    }

    /// Releases the core.
    pub fn release(&self, seat: &Rc<Seat>) {
        let inner = &*self.0;
        let mut state = inner.state.borrow_mut();
        if seat.running.get() {
            state.leave(inner, seat, inner.sim.now_ns());
        }
    }

    /// Yields the core to a process with a better claim, and waits for it again.
    pub async fn give_way(&self, seat: &Rc<Seat>) {
        let inner = &*self.0;
        {
            let now_ns = inner.sim.now_ns();
            let mut state = inner.state.borrow_mut();
            let core = seat.core.get();
            state.stop(seat, now_ns);
            state.enter(seat, seat.had_ns.get(), now_ns);
            state.next(inner, core, now_ns);
        }
        self.arrive(seat, 0).await;
    }

    /// Computes until `ns` have passed or the slice ends; returns the time computed [ns].
    pub async fn compute(&self, seat: &Rc<Seat>, ns: u64) -> u64 {
        let inner = &*self.0;
        let begin_ns = inner.sim.now_ns();
        seat.process.set(inner.sim.running());
        let end_ns = seat.slice_from_ns.get() + inner.slice_ns;
        inner.sim.hold(ns.min(end_ns.saturating_sub(begin_ns))).await;
        let now_ns = inner.sim.now_ns();
        seat.had_ns.set(seat.had_at(now_ns));
        seat.since_ns.set(now_ns);
        now_ns - begin_ns
    }

    /// Returns true if a running process must yield: its slice has ended, and another process has less virtual time.
    /// Otherwise a new slice begins.
    pub fn must_give_way(&self, seat: &Seat) -> bool {
        let now_ns = self.0.sim.now_ns();
        if now_ns < seat.slice_from_ns.get() + self.0.slice_ns {
            return false;
        }
        let state = self.0.state.borrow();
        let first = state.cores[seat.core.get()].queue.first_key_value();
        if first.is_some_and(|(&(had_ns, _), _)| had_ns < seat.had_at(now_ns)) {
            return true;
        }
        seat.slice_from_ns.set(now_ns);
        false
    }
}

impl State {
    /// Returns the core for a process that wakes up, based on its last core and that of its waker.
    fn choose(&self, last: usize, waker: Option<usize>) -> usize {
        let idle = |core: usize| self.cores[core].present() == 0;
        if idle(last) {
            return last;
        }
        if let Some(core) = (0..self.cores.len()).find(|&core| idle(core)) {
            return core;
        }
        // The waker itself does not count: it is about to sleep.
        match waker {
            Some(waker) if self.cores[waker].present() - 1 < self.cores[last].present() => waker,
            _ => last,
        }
    }

    /// Puts a process into the queue of its core.
    fn enter(&mut self, seat: &Rc<Seat>, had_ns: i64, now_ns: u64) {
        self.station.arrive(now_ns);
        seat.arrived_ns.set(now_ns);
        self.push(seat, had_ns);
    }

    fn push(&mut self, seat: &Rc<Seat>, had_ns: i64) {
        self.arrivals += 1;
        seat.had_ns.set(had_ns);
        self.cores[seat.core.get()].push(seat, (had_ns, self.arrivals));
    }

    /// Removes a running process from its core.
    fn stop(&mut self, seat: &Rc<Seat>, now_ns: u64) {
        seat.running.set(false);
        seat.ran_ns.set(now_ns);
        seat.had_ns.set(seat.had_at(now_ns));
        seat.since_ns.set(now_ns);
        let core = &mut self.cores[seat.core.get()];
        core.average_ns = core.average_ns(now_ns);
        seat.ahead_ns.set(seat.had_ns.get() - core.average_ns);
        core.running = None;
        let arrived_ns = self.station.arrived_ns(seat.arrived_ns.get());
        self.station.depart(now_ns, arrived_ns);
    }

    /// Removes a process from its core for good.
    fn leave(&mut self, inner: &Inner, seat: &Rc<Seat>, now_ns: u64) {
        self.stop(seat, now_ns);
        let core = seat.core.get();
        if self.cores[core].queue.is_empty() {
            self.pull(inner, core, now_ns);
        }
        self.next(inner, core, now_ns);
    }

    /// Moves a process to a core that becomes idle: the first one in the longest queue that is not hot.
    fn pull(&mut self, inner: &Inner, to: usize, now_ns: u64) {
        let Some(from) =
            (0..self.cores.len()).filter(|&core| core != to).max_by_key(|&core| self.cores[core].queue.len())
        else {
            return;
        };
        let cold = |seat: &Seat| now_ns - seat.ran_ns.get() >= inner.hot_ns;
        let key = self.cores[from].queue.iter().find(|(_, seat)| cold(seat)).map(|(&key, _)| key);
        if let Some(key) = key {
            self.move_to(from, key, to, now_ns);
        }
    }

    /// Moves half of the difference between the longest and the shortest queue.
    fn balance(&mut self, now_ns: u64) {
        let present = |&core: &usize| self.cores[core].present();
        let all = || 0..self.cores.len();
        let (Some(from), Some(to)) = (all().max_by_key(present), all().min_by_key(present)) else { return };
        for _ in 0..(present(&from) - present(&to)) / 2 {
            let Some((&key, _)) = self.cores[from].queue.last_key_value() else { return };
            self.move_to(from, key, to, now_ns);
        }
    }

    fn move_to(&mut self, from: usize, key: Key, to: usize, now_ns: u64) {
        let Some(seat) = self.cores[from].remove(key) else { return };
        let ahead_ns = seat.had_ns.get() - self.cores[from].average_ns(now_ns);
        seat.core.set(to);
        let had_ns = self.cores[to].average_ns(now_ns) + ahead_ns;
        self.push(&seat, had_ns);
    }

    /// Starts the first process in a core's queue.
    fn next(&mut self, inner: &Inner, core: usize, now_ns: u64) {
        let Some((&key, _)) = self.cores[core].queue.first_key_value() else { return };
        let Some(seat) = self.cores[core].remove(key) else { return };
        seat.running.set(true);
        // A core that is started serves nobody yet.
        if !seat.starting.get() {
            self.begin(&seat, now_ns);
        }
        if seat.process.get() != inner.sim.running() {
            inner.sim.wake(seat.process.get());
        }
        self.cores[core].run(seat);
    }

    /// Begins the slice of a process on a core.
    fn begin(&mut self, seat: &Seat, now_ns: u64) {
        let arrived_ns = self.station.arrived_ns(seat.arrived_ns.get());
        self.station.start(now_ns, arrived_ns);
        seat.starting.set(false);
        seat.since_ns.set(now_ns);
        seat.slice_from_ns.set(now_ns);
    }
}
