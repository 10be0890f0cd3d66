//! Cores and their scheduler.
//!
//! **Fair** (Linux since 2.6.23): of the processes that wait for a core the one with the least CPU time so far runs. A
//! process that wakes up counts as if it had used slightly less CPU time than the others, however long it slept; it
//! preempts a process that has used clearly more (*wake-up granularity*). No process runs for longer than its slice
//! while others wait: the scheduling latency divided among all, but at least the minimal granularity. **Round robin**:
//! processes run in order of arrival and are not preempted within a slice. Under both policies, a process of the
//! real-time class comes first and preempts any other.
//!
//! **Limits.** There is one run queue for all cores, a context switch costs nothing, and all processes have equal
//! weights.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use serde::{Deserialize, Serialize};

use crate::device::parameters;
use crate::kernel::sample::whole_ns;
use crate::kernel::sim::Place;
use crate::kernel::{ProcessId, Sim, Station, StationReport};

/// Scheduling policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The process with the least CPU time so far runs.
    #[default]
    Fair,
    /// The process that has waited longest runs.
    RoundRobin,
}

parameters! {
    /// Parameters of a scheduler.
    pub struct SchedulerParameters {
        /// scheduling policy: fair or round-robin
        policy: Policy = Policy::Fair, from "Linux: fair since 2.6.23";
        /// time within which every runnable process should have run
        latency_ms: f64 = 24.0, from "Linux fair.c: sched_latency, 6 ms x (1 + log2 of 8 or more CPUs)";
        /// shortest slice; with round-robin, length of every slice
        slice_ms: f64 = 3.0,
            from "Linux fair.c: sched_min_granularity, 0.75 ms x (1 + log2 of 8 or more CPUs)", in 0.001..=3.6e6;
        /// excess of CPU time at which a process is preempted by one that wakes up
        wakeup_ms: f64 = 4.0, from "Linux fair.c: sched_wakeup_granularity, 1 ms x (1 + log2 of 8 or more CPUs)";
    }
}

/// Order in the run queue: real time first, then CPU time so far, then arrival.
type Key = (u8, u64, u64);

/// Scheduler's state of a process.
pub(crate) struct Seat {
    /// 0: real time, 1: ordinary.
    class: u8,
    process: Cell<ProcessId>,
    running: Cell<bool>,
    interrupted: Cell<bool>,
    /// CPU time so far as the scheduler counts it, up to `since_ns` [ns].
    had_ns: Cell<u64>,
    since_ns: Cell<u64>,
    arrived_ns: Cell<u64>,
    /// Start of the present slice [ns].
    slice_from_ns: Cell<u64>,
    key: Cell<Option<Key>>,
}

impl Seat {
    pub fn new(real_time: bool) -> Rc<Self> {
        Rc::new(Self {
            class: u8::from(!real_time),
            process: Cell::new(ProcessId::NONE),
            running: Cell::new(false),
            interrupted: Cell::new(false),
            had_ns: Cell::new(0),
            since_ns: Cell::new(0),
            arrived_ns: Cell::new(0),
            slice_from_ns: Cell::new(0),
            key: Cell::new(None),
        })
    }

    /// Returns true if the process has a core.
    pub fn is_running(&self) -> bool {
        self.running.get()
    }

    fn had_at(&self, now_ns: u64) -> u64 {
        self.had_ns.get() + (now_ns - self.since_ns.get())
    }
}

struct State {
    free: u64,
    queue: BTreeMap<Key, Rc<Seat>>,
    running: Vec<Rc<Seat>>,
    /// Smallest CPU time that the scheduler counts for a process that wakes up, before it subtracts a credit [ns].
    least_ns: u64,
    arrivals: u64,
    station: Station,
}

struct Inner {
    sim: Sim,
    name: String,
    place: Place,
    cores: u64,
    policy: Policy,
    latency_ns: u64,
    slice_ns: u64,
    wakeup_ns: u64,
    state: RefCell<State>,
}

/// Cores with a run queue; clones share them.
#[derive(Clone)]
pub struct Cpu(Rc<Inner>);

impl Cpu {
    /// Returns `cores` idle cores, whose statistics are reported under `name`.
    pub fn new(sim: &Sim, name: &str, cores: u64, parameters: &SchedulerParameters) -> Self {
        let state = RefCell::new(State {
            free: cores.max(1),
            queue: BTreeMap::new(),
            running: Vec::new(),
            least_ns: 0,
            arrivals: 0,
            station: Station::default(),
        });
        let ns = |ms: f64| whole_ns(ms * 1e6);
        Self(Rc::new(Inner {
            sim: sim.clone(),
            name: name.into(),
            place: sim.place(name),
            cores: cores.max(1),
            policy: parameters.policy,
            latency_ns: ns(parameters.latency_ms),
            slice_ns: ns(parameters.slice_ms).max(1),
            wakeup_ns: ns(parameters.wakeup_ms),
            state,
        }))
    }

    /// Returns the statistics of the run queue.
    pub fn report(&self) -> StationReport {
        let inner = &*self.0;
        inner.state.borrow().station.report(&inner.name, inner.cores, inner.sim.now_ns())
    }

    /// Resets the statistics.
    pub fn reset(&self) {
        self.0.state.borrow_mut().station.reset(self.0.sim.now_ns());
    }

    /// Waits for a core; `woken` says whether the process has slept until now.
    pub(crate) async fn acquire(&self, seat: &Rc<Seat>, woken: bool) {
        let inner = &*self.0;
        let now_ns = inner.sim.now_ns();
        {
            let mut state = inner.state.borrow_mut();
            seat.arrived_ns.set(now_ns);
            state.station.arrive(now_ns);
            if woken {
                let credit = inner.latency_ns / 2;
                let floor_ns = state.least_ns.saturating_sub(credit);
                seat.had_ns.set(seat.had_ns.get().max(floor_ns));
            }
            if state.free > 0 {
                state.free -= 1;
                state.start(seat, now_ns);
                return;
            }
            state.arrivals += 1;
            let had_ns = if inner.policy == Policy::Fair { seat.had_ns.get() } else { 0 };
            let key = (seat.class, had_ns, state.arrivals);
            seat.key.set(Some(key));
            seat.process.set(inner.sim.running());
            state.queue.insert(key, Rc::clone(seat));
            if woken {
                inner.interrupt_for(&state, seat, now_ns);
            }
        }
        inner.sim.stop_until(inner.place, || seat.running.get().then_some(())).await;
    }

    /// Releases the core of a process, or its place in the run queue.
    pub(crate) fn release(&self, seat: &Rc<Seat>) {
        let inner = &*self.0;
        let now_ns = inner.sim.now_ns();
        let mut state = inner.state.borrow_mut();
        let state = &mut *state;
        let arrived_ns = state.station.arrived_ns(seat.arrived_ns.get());
        if let Some(key) = seat.key.take() {
            state.queue.remove(&key);
            state.station.give_up(now_ns, arrived_ns);
            return;
        }
        if !seat.running.replace(false) {
            return;
        }
        state.station.depart(now_ns, arrived_ns);
        if let Some(at) = state.running.iter().position(|other| Rc::ptr_eq(other, seat)) {
            state.running.swap_remove(at);
        }
        if let Some((_, next)) = state.queue.pop_first() {
            next.key.set(None);
            state.start(&next, now_ns);
            inner.sim.wake(next.process.get());
        } else {
            state.free += 1;
        }
    }

    /// Computes until `ns` have passed, the slice ends, or the process is preempted; returns the time computed [ns].
    pub(crate) async fn compute(&self, seat: &Rc<Seat>, ns: u64) -> u64 {
        let inner = &*self.0;
        let begin_ns = inner.sim.now_ns();
        seat.process.set(inner.sim.running());
        let end_ns = seat.slice_from_ns.get() + self.slice_ns();
        let mut hold = std::pin::pin!(inner.sim.hold(ns.min(end_ns.saturating_sub(begin_ns))));
        poll_fn(|context| {
            if seat.interrupted.get() {
                return Poll::Ready(());
            }
            hold.as_mut().poll(context)
        })
        .await;
        let now_ns = inner.sim.now_ns();
        seat.had_ns.set(seat.had_at(now_ns));
        seat.since_ns.set(now_ns);
        now_ns - begin_ns
    }

    /// Returns true if a running process must release its core now: at the end of its slice or if it is preempted. If
    /// no other process has a better claim, a new slice begins.
    pub(crate) fn must_leave(&self, seat: &Seat) -> bool {
        let now_ns = self.0.sim.now_ns();
        if !seat.interrupted.get() && now_ns < seat.slice_from_ns.get() + self.slice_ns() {
            return false;
        }
        let state = self.0.state.borrow();
        if let Some((&(class, had_ns, _), _)) = state.queue.first_key_value() {
            let fair = self.0.policy == Policy::Fair;
            let better = if fair { had_ns < seat.had_ns.get() } else { true };
            if class < seat.class || class == seat.class && better {
                return true;
            }
        }
        seat.interrupted.set(false);
        seat.slice_from_ns.set(now_ns);
        false
    }

    fn slice_ns(&self) -> u64 {
        let inner = &*self.0;
        if inner.policy == Policy::RoundRobin {
            return inner.slice_ns;
        }
        let state = inner.state.borrow();
        let all = state.running.len() + state.queue.len();
        (inner.latency_ns * inner.cores / all.max(1) as u64).max(inner.slice_ns)
    }
}

impl Inner {
    /// Preempts the running process with the most CPU time, if it has had clearly more than `seat` or if only `seat` is
    /// of the real-time class.
    fn interrupt_for(&self, state: &State, seat: &Seat, now_ns: u64) {
        let fair = self.policy == Policy::Fair;
        let by = |other: &&Rc<Seat>| (other.class, other.had_at(now_ns));
        let running = state.running.iter().filter(|other| !other.interrupted.get());
        let Some(most) = running.max_by_key(by) else { return };
        let had_ns = seat.had_ns.get() + self.wakeup_ns;
        let same = most.class == seat.class && fair && most.had_at(now_ns) > had_ns;
        if same || most.class > seat.class {
            most.interrupted.set(true);
            self.sim.wake(most.process.get());
        }
    }
}

impl State {
    fn start(&mut self, seat: &Rc<Seat>, now_ns: u64) {
        let arrived_ns = self.station.arrived_ns(seat.arrived_ns.get());
        self.station.start(now_ns, arrived_ns);
        seat.running.set(true);
        seat.interrupted.set(false);
        seat.since_ns.set(now_ns);
        seat.slice_from_ns.set(now_ns);
        self.running.push(Rc::clone(seat));
        // The least that anybody has had who runs or wants to: it never goes back.
        if seat.class > 0 {
            self.least_ns = self.least_ns.max(seat.had_ns.get());
        }
    }
}
