//! Cores with a run queue each, and Linux's rules for choosing the core of a process that wakes up.
//!
//! **Waking up** (`select_task_rq_fair`). The process goes to its last core if that is idle, otherwise to the core
//! before that one if it is idle. Another idle core is searched for only while utilisation is low
//! ([`super::utilisation`]). If none is found, the process queues on its last core or on the core of its waker,
//! whichever has fewer processes; the waker does not count, because it is about to sleep. Kernels differ in both rules,
//! and a halted processor of a virtual machine does not count as idle. So the shares of wake-ups that go to the waker's
//! core, and to an idle one, are parameters.
//!
//! **Order** (`pick_eevdf`). Each process has a virtual time: its CPU time, divided by its weight. A process whose
//! virtual time is at most the average of its core is eligible. Of the eligible processes in a core's queue, the one
//! with the earliest deadline runs: the end of its slice, which began when it woke up or when its last slice ended. A
//! process that sleeps keeps its lag: how far it is ahead of the average or behind it. At the end of its slice, the
//! running process leaves the core if it is no longer the best one. It does so earlier if it is no longer eligible and
//! a process that wakes up is the best one in the queue (`wakeup_preempt`).
//!
//! **Sleeping** (`DELAY_DEQUEUE`). A process that has had more than its share when it goes to sleep stays in the queue
//! until its turn would come. If it is woken before that, it continues to wait there, even if another core is idle.
//!
//! **Balance** (`sched_balance_newidle`, `sched_balance_rq`). A core that becomes idle takes a process from another
//! queue, but none that ran there recently, because its data are still in that core's cache (`task_hot`). At intervals,
//! half of the difference between the longest and the shortest queue moves to the shortest one. Neither moves a process
//! that ran recently until two attempts have found no other process (`can_migrate_task`).
//!
//! **Hyperthreads.** Cores 0 and 1, 2 and 3, and so on are two threads of one core: while both compute, each of them takes
//! longer by a factor.
//!
//! **Weights.** Linux gives each session of processes one weight (`sched_autogroup_enabled`). A server process is such a
//! group by itself; the client's threads are one group, and divide its weight among them.
//!
//! **Limits.** A group's threads have equal parts of its weight at all times, a context switch costs nothing, and all
//! cores share one cache.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use crate::device::parameters;
use crate::kernel::sample::whole_ns;
use crate::kernel::sim::Place;
use crate::kernel::{Sim, Station, StationReport, Stream};

use super::queue::{Core, Seat};
use super::utilisation::Utilisation;

parameters! {
    /// Parameters of the scheduler.
    pub struct CoresParameters {
        /// time after which a running process yields its core to one with less virtual time
        slice_ms: f64 = 1.4, from "Linux fair.c: sched_base_slice, 0.7 ms x (1 + log2 of 2 CPUs)", in 0.001..=3.6e6;
        /// time after its last run during which a process is not moved to another core
        hot_ms: f64 = 0.5, from "Linux fair.c: sched_migration_cost", in 0.0..=3.6e6;
        /// interval at which queues of busy cores are balanced
        balance_ms: f64 = 32.0, from "Linux topology.c: 16 (busy_factor) x 2 CPUs", in 0.001..=3.6e6;
        /// true if a process that has had more than its share stays in the queue when it goes to sleep
        delay_dequeue: bool = true, from "Linux features.h: DELAY_DEQUEUE, since 6.12";
        /// true if a process asleep in the queue may wake up on another core (its group of processes stays in the queue)
        groups: bool = true, from "Linux autogroup; PostgreSQL: setsid in each server process";
        /// true if fewer cores are searched for an idle one when utilisation is high
        search_by_utilisation: bool = true, from "Linux features.h: SIS_UTIL, since 6.0";
        /// time without work after which a core counts as idle for long
        halt_us: f64 = 500.0, from "Intel Xeon, virtual, traced: none is searched after 0.5 ms", in 0.0..=1e9;
        /// share of wake-ups that go to the waker's core rather than to the busy last core
        pulls: f64 = 1.0, from "Linux fair.c: wake_affine", in 0.0..=1.0;
        /// share of wake-ups that search for an idle core if the last one is busy
        searches: f64 = 1.0, from "Linux fair.c: select_idle_sibling", in 0.0..=1.0;
        /// share of wake-ups that go to an idle core if it has been idle for long and the last core is busy
        searches_late: f64 = 1.0, from "Linux fair.c: select_idle_sibling", in 0.0..=1.0;
        /// interval at which an idle processor takes a process from another queue
        idle_balance_ms: f64 = 4.0, from "Linux: a tick of CONFIG_HZ 250", in 0.001..=3.6e6;
        /// factor by which CPU times are longer while the other hyperthread of the same core computes
        sibling_factor: f64 = 1.0, from "none: every core computes as if alone", in 1.0..=8.0;
    }
}

/// Interval of the clock tick, which bounds the lag of a process that sleeps [ns] (`update_entity_lag`; `CONFIG_HZ`
/// 250).
const TICK_NS: u64 = 4_000_000;

/// Time that a process has computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Computed {
    /// CPU time [ns].
    pub cpu_ns: u64,
    /// CPU time that the same work takes while the other hyperthread is idle [ns].
    pub work_ns: u64,
}

pub(super) struct State {
    pub(super) cores: Vec<Core>,
    arrivals: u64,
    station: Station,
    pub(super) busy: Utilisation,
    pub(super) delay_dequeue: bool,
    pub(super) groups: bool,
    pub(super) search_by_utilisation: bool,
    pub(super) halt_ns: u64,
    pub(super) pulls: f64,
    pub(super) searches: f64,
    pub(super) searches_late: f64,
    /// Number of attempts to balance since the last one that moved a process.
    pub(super) failed: u32,
    pub(super) dice: Stream,
}

pub(super) struct Inner {
    sim: Sim,
    place: Place,
    pub(super) slice_ns: u64,
    pub(super) hot_ns: u64,
    balance_ns: u64,
    idle_balance_ns: u64,
    sibling_factor: f64,
    state: RefCell<State>,
}

impl Inner {
    /// Returns the factor by which CPU times on a core are longer now.
    fn factor(&self, core: usize) -> f64 {
        if self.sibling_factor > 1.0 && self.state.borrow().sibling(core).is_some() { self.sibling_factor } else { 1.0 }
    }
}

/// Cores; clones share them.
#[derive(Clone)]
pub(super) struct Cores(Rc<Inner>);

impl Cores {
    /// Returns `cores` idle cores.
    pub fn new(sim: &Sim, cores: u64, parameters: &CoresParameters) -> Self {
        let cores: Vec<_> = (0..cores.max(1)).map(|_| Core::default()).collect();
        let state = RefCell::new(State {
            busy: Utilisation::new(cores.len()),
            cores,
            arrivals: 0,
            station: Station::default(),
            delay_dequeue: parameters.delay_dequeue,
            groups: parameters.groups,
            search_by_utilisation: parameters.search_by_utilisation,
            pulls: parameters.pulls,
            searches: parameters.searches,
            searches_late: parameters.searches_late,
            failed: 0,
            dice: sim.stream("postgres scheduler"),
            halt_ns: whole_ns(parameters.halt_us * 1e3),
        });
        let ns = |ms: f64| whole_ns(ms * 1e6);
        let (slice_ns, hot_ns) = (ns(parameters.slice_ms).max(1), ns(parameters.hot_ms));
        let (balance_ns, idle_balance_ns) = (ns(parameters.balance_ms).max(1), ns(parameters.idle_balance_ms).max(1));
        let (sim, place, sibling_factor) = (sim.clone(), sim.place("a core"), parameters.sibling_factor);
        Self(Rc::new(Inner { sim, place, slice_ns, hot_ns, balance_ns, idle_balance_ns, sibling_factor, state }))
    }

    /// Returns the scheduler's state of a new process; a random core counts as its last one.
    pub fn seat(&self) -> Rc<Seat> {
        let seat = Seat::new();
        self.move_anywhere(&seat);
        seat
    }

    /// Lets a random core be the last one of a process that sleeps.
    pub fn move_anywhere(&self, seat: &Seat) {
        let mut state = self.0.state.borrow_mut();
        if seat.is_running() || seat.key.get().is_some() {
            return;
        }
        let all = state.cores.len() as u64;
        let core = state.dice.below(all) as usize;
        seat.core.set(core);
        seat.core_before.set(core);
    }

    /// Returns the average number of busy cores, as Linux computes it.
    pub fn average_busy(&self) -> f64 {
        self.0.state.borrow().busy.at(self.0.sim.now_ns())
    }

    /// Sets the average number of busy cores.
    pub fn set_average_busy(&self, average: f64) {
        self.0.state.borrow_mut().busy.set(average, self.0.sim.now_ns());
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
        let asleep = seat.asleep.get();
        let core = if asleep && !state.groups { seat.core.get() } else { state.choose(seat, waker, now_ns) };
        if asleep && core == seat.core.get() {
            state.resume(inner, seat, now_ns);
            state.preempt(inner, seat, now_ns);
            return false;
        }
        if asleep {
            state.depart(seat);
        }
        seat.core_before.set(seat.core.replace(core));
        let most = seat.virtual_ns((2 * inner.slice_ns).max(TICK_NS));
        let had_ns = state.cores[core].placed_ns(seat, seat.ahead_ns.get().clamp(-most, most), now_ns);
        seat.deadline_ns.set(had_ns + seat.virtual_ns(inner.slice_ns));
        state.enter(seat, had_ns, now_ns);
        let idle = state.cores[core].running.is_none();
        if idle {
            seat.starting.set(true);
            seat.cold.set(true);
            state.next(inner, core, now_ns);
        } else {
            state.preempt(inner, seat, now_ns);
        }
        idle
    }

    /// Moves processes from long queues to short ones at intervals, and to idle cores at shorter intervals.
    pub async fn balance_at_intervals(self) {
        let inner = &*self.0;
        let mut balanced_ns = 0;
        loop {
            inner.sim.hold(inner.idle_balance_ns.min(inner.balance_ns)).await;
            let now_ns = inner.sim.now_ns();
            let mut state = inner.state.borrow_mut();
            if now_ns >= balanced_ns + inner.balance_ns {
                balanced_ns = now_ns;
                state.balance(inner, now_ns);
            } else {
                state.balance_idle(inner, now_ns);
            }
            for core in 0..state.cores.len() {
                if state.cores[core].running.is_none() {
                    state.next(inner, core, now_ns);
                }
            }
        }
    }

    /// Waits until a woken process runs; `start_ns` is the time that an idle core needs to start it.
    pub async fn arrive(&self, seat: &Rc<Seat>, start_ns: u64) {
        let inner = &*self.0;
        seat.process.set(inner.sim.running());
        inner.sim.stop_until(inner.place, || seat.running.get().then_some(())).await;
        if seat.starting.get() {
            inner.sim.hold(start_ns).await;
            inner.state.borrow_mut().begin(inner, seat, inner.sim.now_ns());
        }
    }

    /// Releases the core of a process.
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
            state.stop(inner, seat, now_ns);
            state.enter(seat, seat.had_ns.get(), now_ns);
            state.next(inner, core, now_ns);
        }
        self.arrive(seat, 0).await;
    }

    /// Computes until work of `ns` is done, the slice ends, another process preempts this one, or the other hyperthread
    /// starts or stops.
    pub async fn compute(&self, seat: &Rc<Seat>, ns: u64) -> Computed {
        let inner = &*self.0;
        let begin_ns = inner.sim.now_ns();
        seat.process.set(inner.sim.running());
        seat.changed.set(false);
        let factor = inner.factor(seat.core.get());
        let needed_ns = if factor > 1.0 { whole_ns(ns as f64 * factor) } else { ns };
        let mut hold = pin!(inner.sim.hold(needed_ns.min(seat.left_ns().max(1))));
        poll_fn(|context| if seat.changed.take() { Poll::Ready(()) } else { hold.as_mut().poll(context) }).await;
        let now_ns = inner.sim.now_ns();
        seat.had_ns.set(seat.had_at(now_ns));
        seat.since_ns.set(now_ns);
        let cpu_ns = now_ns - begin_ns;
        let work_ns = if cpu_ns >= needed_ns { ns } else { (cpu_ns as f64 / factor) as u64 };
        Computed { cpu_ns, work_ns }
    }

    /// Returns true if a running process must yield: a process that woke up preempts it, or its slice has ended and
    /// another process is better. If its slice has ended, a new slice begins.
    pub fn must_give_way(&self, seat: &Seat) -> bool {
        if seat.preempted.take() {
            return true;
        }
        let now_ns = self.0.sim.now_ns();
        let had_ns = seat.had_at(now_ns);
        if had_ns < seat.deadline_ns.get() {
            return false;
        }
        seat.deadline_ns.set(had_ns + seat.virtual_ns(self.0.slice_ns));
        let state = self.0.state.borrow();
        let core = &state.cores[seat.core.get()];
        let first = core.best(now_ns).filter(|_| core.waiting() > 0);
        first.is_some_and(|first| !core.is_eligible(had_ns, now_ns) || first.deadline_ns < seat.deadline_ns)
    }
}

impl State {
    /// Lets a process that woke up preempt the running process of its core, if the running one has had more than the
    /// average and the woken one is the best in the queue.
    fn preempt(&self, inner: &Inner, seat: &Rc<Seat>, now_ns: u64) {
        let core = &self.cores[seat.core.get()];
        let Some(running) = core.running.as_ref().filter(|running| !running.starting.get()) else { return };
        let first = core.best(now_ns).is_some_and(|first| Rc::ptr_eq(first, seat));
        if first && !core.is_eligible(running.had_at(now_ns), now_ns) && !running.preempted.replace(true) {
            running.changed.set(true);
            inner.sim.wake(running.process.get());
        }
    }

    /// Puts a process into the queue of its core.
    pub(super) fn enter(&mut self, seat: &Rc<Seat>, had_ns: i64, now_ns: u64) {
        self.station.arrive(now_ns);
        seat.arrived_ns.set(now_ns);
        self.push(seat, had_ns);
    }

    pub(super) fn push(&mut self, seat: &Rc<Seat>, had_ns: i64) {
        self.arrivals += 1;
        seat.had_ns.set(had_ns);
        self.cores[seat.core.get()].push(seat, self.arrivals);
    }

    /// Returns the process that computes on the other hyperthread of a core.
    fn sibling(&self, core: usize) -> Option<&Rc<Seat>> {
        self.cores.get(core ^ 1)?.running.as_ref().filter(|seat| !seat.starting.get())
    }

    /// Counts a core that starts or stops computing, and lets the other hyperthread continue at its new speed.
    fn change(&mut self, inner: &Inner, core: usize, busy: f64, now_ns: u64) {
        self.busy.change(busy, now_ns);
        if inner.sibling_factor > 1.0
            && let Some(seat) = self.sibling(core)
            && !seat.changed.replace(true)
        {
            inner.sim.wake(seat.process.get());
        }
    }

    /// Removes a running process from its core.
    fn stop(&mut self, inner: &Inner, seat: &Rc<Seat>, now_ns: u64) {
        seat.running.set(false);
        seat.preempted.set(false);
        seat.ran_ns.set(now_ns);
        seat.had_ns.set(seat.had_at(now_ns));
        seat.since_ns.set(now_ns);
        let core = &mut self.cores[seat.core.get()];
        core.average_ns = core.average_ns(now_ns);
        core.idle_from_ns = now_ns;
        seat.ahead_ns.set(seat.had_ns.get() - core.average_ns);
        core.running = None;
        self.change(inner, seat.core.get(), -1.0, now_ns);
        let arrived_ns = self.station.arrived_ns(seat.arrived_ns.get());
        self.station.depart(now_ns, arrived_ns);
    }

    /// Removes a process that goes to sleep from its core; it stays in the queue if it has had more than its share
    /// while others wait.
    fn leave(&mut self, inner: &Inner, seat: &Rc<Seat>, now_ns: u64) {
        self.stop(inner, seat, now_ns);
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

    /// Starts the first process in a core's queue; returns false if none waits.
    fn next(&mut self, inner: &Inner, core: usize, now_ns: u64) -> bool {
        let Some(seat) = self.cores[core].pop(now_ns) else { return false };
        seat.running.set(true);
        // A core that is started serves nobody yet.
        if !seat.starting.get() {
            self.begin(inner, &seat, now_ns);
        }
        if seat.process.get() != inner.sim.running() {
            inner.sim.wake(seat.process.get());
        }
        self.cores[core].run(seat);
        true
    }

    /// Begins the slice of a process on a core.
    fn begin(&mut self, inner: &Inner, seat: &Seat, now_ns: u64) {
        let arrived_ns = self.station.arrived_ns(seat.arrived_ns.get());
        self.station.start(now_ns, arrived_ns);
        self.change(inner, seat.core.get(), 1.0, now_ns);
        seat.starting.set(false);
        seat.since_ns.set(now_ns);
    }
}
