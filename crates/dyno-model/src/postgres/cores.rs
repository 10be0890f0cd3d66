//! Cores with a run queue each, and Linux's rules for choosing the core of a process that wakes up.
//!
//! **Waking up** (`select_task_rq_fair`). The process's last core is taken if it is idle, else the one before if that is
//! idle. Another idle core is searched only while utilisation is low ([`super::utilisation`]). Otherwise the process
//! queues where its waker runs if that one is alone there (it is about to sleep), else where fewer wait.
//!
//! **Order** (`pick_eevdf`). Of a core's queue the process with the least virtual time runs. One that sleeps keeps its
//! lag, by which it is ahead of the average or behind it, up to a slice. Whoever runs does so for a slice undisturbed;
//! from then on it leaves the core to one with less virtual time.
//!
//! **Sleeping** (`DELAY_DEQUEUE`). A process that has had more than its share when it goes to sleep stays in the queue
//! until its turn would come. If it is woken before that, it continues to wait there, even if another core is idle.
//!
//! **Balance** (`sched_balance_newidle`, `sched_balance_rq`). A core that becomes idle takes a process from another queue,
//! but none that ran there recently, whose data are in that core's cache (`task_hot`). At intervals the longest queue
//! gives half of what it has more to the shortest one.
//!
//! **Limits.** Equal weights, no cost of a switch, one cache for all cores.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use crate::device::parameters;
use crate::kernel::sample::whole_ns;
use crate::kernel::sim::Place;
use crate::kernel::{Sim, Station, StationReport};

use super::queue::{Core, Key, Seat};
use super::utilisation::Utilisation;

parameters! {
    /// Parameters of the scheduler.
    pub struct CoresParameters {
        /// minimum time that a process runs without preemption
        slice_ms: f64 = 1.4, from "Linux fair.c: sched_base_slice, 0.7 ms x (1 + log2 of 2 CPUs)", in 0.001..=3.6e6;
        /// time after its last run during which a process is not moved to another core
        hot_ms: f64 = 0.5, from "Linux fair.c: sched_migration_cost", in 0.0..=3.6e6;
        /// interval at which queues of busy cores are balanced
        balance_ms: f64 = 32.0, from "Linux topology.c: 16 (busy_factor) x 2 CPUs", in 0.001..=3.6e6;
        /// true if a process that has had more than its share stays in the queue when it goes to sleep
        delay_dequeue: bool = true, from "Linux features.h: DELAY_DEQUEUE, since 6.12";
        /// true if fewer cores are searched for an idle one when utilisation is high
        search_by_utilisation: bool = true, from "Linux features.h: SIS_UTIL, since 6.0";
    }
}

struct State {
    cores: Vec<Core>,
    arrivals: u64,
    station: Station,
    busy: Utilisation,
    delay_dequeue: bool,
    search_by_utilisation: bool,
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
        let cores: Vec<_> = (0..cores.max(1)).map(|_| Core::default()).collect();
        let state = RefCell::new(State {
            busy: Utilisation::new(cores.len()),
            cores,
            arrivals: 0,
            station: Station::default(),
            delay_dequeue: parameters.delay_dequeue,
            search_by_utilisation: parameters.search_by_utilisation,
        });
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
        if seat.asleep.get() {
            state.resume(seat, now_ns);
            return false;
        }
        let waker = waker.filter(|waker| waker.is_running()).map(|waker| waker.core.get());
        let core = state.choose(seat, waker, now_ns);
        seat.core_before.set(seat.core.replace(core));
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
        let first = state.cores[seat.core.get()].waiters().next();
        if first.is_some_and(|((had_ns, _), _)| had_ns < seat.had_at(now_ns)) {
            return true;
        }
        seat.slice_from_ns.set(now_ns);
        false
    }
}

impl State {
    /// Returns the core for a process that wakes up, based on its last two cores and that of its waker.
    fn choose(&self, seat: &Seat, waker: Option<usize>, now_ns: u64) -> usize {
        let idle = |core: usize| self.cores[core].present() == 0;
        let last = seat.core.get();
        if let Some(core) = [last, seat.core_before.get()].into_iter().find(|&core| idle(core)) {
            return core;
        }
        // The waker itself does not count: it is about to sleep.
        let chosen = match waker {
            Some(waker) if self.cores[waker].present() - 1 < self.cores[last].present() => waker,
            _ => last,
        };
        let all = self.cores.len();
        let searched = if self.search_by_utilisation { self.busy.searched(now_ns) } else { all };
        (1..=searched).map(|next| (chosen + next) % all).find(|&core| idle(core)).unwrap_or(chosen)
    }

    /// Wakes a process that sleeps in the queue: it waits there, but loses any lead in virtual time (`DELAY_ZERO`).
    fn resume(&mut self, seat: &Rc<Seat>, now_ns: u64) {
        let core = seat.core.get();
        if let Some(key) = seat.key.get() {
            self.cores[core].remove(key);
        }
        seat.asleep.set(false);
        let average_ns = self.cores[core].average_ns(now_ns);
        self.enter(seat, seat.had_ns.get().max(average_ns), now_ns);
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
        self.busy.change(-1.0, now_ns);
        let arrived_ns = self.station.arrived_ns(seat.arrived_ns.get());
        self.station.depart(now_ns, arrived_ns);
    }

    /// Removes a process from its core for good, unless it has had more than its share while others wait.
    fn leave(&mut self, inner: &Inner, seat: &Rc<Seat>, now_ns: u64) {
        self.stop(seat, now_ns);
        let core = seat.core.get();
        if self.delay_dequeue && seat.ahead_ns.get() > 0 && !self.cores[core].is_alone() {
            seat.asleep.set(true);
            self.push(seat, seat.had_ns.get());
        }
        if !self.next(inner, core, now_ns) {
            self.pull(inner, core, now_ns);
            self.next(inner, core, now_ns);
        }
    }

    /// Moves a process to a core that becomes idle: the first one in the longest queue that is not hot.
    fn pull(&mut self, inner: &Inner, to: usize, now_ns: u64) {
        let Some(from) =
            (0..self.cores.len()).filter(|&core| core != to).max_by_key(|&core| self.cores[core].waiting())
        else {
            return;
        };
        let cold = |seat: &Seat| now_ns - seat.ran_ns.get() >= inner.hot_ns;
        let key = self.cores[from].waiters().find(|(_, seat)| cold(seat)).map(|(key, _)| key);
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
            let Some((key, _)) = self.cores[from].waiters().next_back() else { return };
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

    /// Starts the first process in a core's queue; returns false if none waits.
    fn next(&mut self, inner: &Inner, core: usize, now_ns: u64) -> bool {
        let Some(seat) = self.cores[core].pop() else { return false };
        seat.running.set(true);
        // A core that is started serves nobody yet.
        if !seat.starting.get() {
            self.begin(&seat, now_ns);
        }
        if seat.process.get() != inner.sim.running() {
            inner.sim.wake(seat.process.get());
        }
        self.cores[core].run(seat);
        true
    }

    /// Begins the slice of a process on a core.
    fn begin(&mut self, seat: &Seat, now_ns: u64) {
        let arrived_ns = self.station.arrived_ns(seat.arrived_ns.get());
        self.station.start(now_ns, arrived_ns);
        self.busy.change(1.0, now_ns);
        seat.starting.set(false);
        seat.since_ns.set(now_ns);
        seat.slice_from_ns.set(now_ns);
    }
}
