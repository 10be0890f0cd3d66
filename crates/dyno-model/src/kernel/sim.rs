//! Clock, processes and machines, and the run itself.
//!
//! A [`Simulation`] owns a run; a [`Sim`] is a handle on it that processes and devices keep. When the simulation is
//! dropped its processes and machines are dropped with it, so that cyclic handles do not leak.
//!
//! **No wakers.** A waiting process leaves its id with what it waits for; whoever ends the wait calls [`Sim::wake`]. A
//! process may be woken unnecessarily and must check again what it waits for; every wait of this kernel does. Futures
//! of other crates that rely on a waker do not work.
//!
//! **Hash of a run.** Each event is added to a running hash with its time: two runs with the same hash did the same
//! things in the same order. [`Sim::note`] adds further values of a model.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::ops::Deref;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::calendar::Calendar;
use super::error::{HORIZON_NS, SimError, Waiting};
use super::process::{ProcessId, Processes};
use super::sample::Stream;
use super::streams::Streams;

/// Object that handles its own events: a device, written as a state machine.
pub trait Machine {
    /// Handles the event `token`, requested with [`Sim::call_at`], which happens now.
    fn event(&self, token: u64);
}

/// Identifier of a machine in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineId(u32);

/// Kind of an event.
#[derive(Clone, Copy, Debug)]
enum What {
    Wake(ProcessId),
    Call(MachineId, u64),
}

/// Number of events at one instant above which a model is considered faulty.
const STANDSTILL: u64 = 10_000_000;

/// Number of events after which a run asks whether to continue.
const ASK_EVERY: u64 = 4_096;

struct Inner {
    now_ns: Cell<u64>,
    calendar: RefCell<Calendar<What>>,
    /// What happens at this instant after everything due at it, in order of request.
    ready: RefCell<VecDeque<What>>,
    processes: RefCell<Processes>,
    machines: RefCell<Vec<Rc<dyn Machine>>>,
    places: RefCell<Vec<String>>,
    running: Cell<ProcessId>,
    stops_at: Cell<u32>,
    hash: Cell<u64>,
    events: Cell<u64>,
    moved_at: Cell<u64>,
    streams: Streams,
}

/// Handle on a run.
#[derive(Clone)]
pub struct Sim(Rc<Inner>);

/// A run; see the [module](self).
pub struct Simulation(Sim);

impl Deref for Simulation {
    type Target = Sim;

    fn deref(&self) -> &Sim {
        &self.0
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        // Dropping a process may end others' waits: nothing may be borrowed then.
        let work = self.0.0.processes.borrow_mut().drain();
        drop(work);
        let machines = std::mem::take(&mut *self.0.0.machines.borrow_mut());
        drop(machines);
    }
}

/// Result of a step.
enum Step {
    Done,
    Limit,
    Dry,
}

impl Simulation {
    /// Returns a run at time 0 whose random streams come from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Sim(Rc::new(Inner {
            now_ns: Cell::new(0),
            calendar: RefCell::default(),
            ready: RefCell::default(),
            processes: RefCell::default(),
            machines: RefCell::default(),
            places: RefCell::new(vec!["its first turn".into(), "time to pass".into(), "an I/O".into()]),
            running: Cell::new(ProcessId::NONE),
            stops_at: Cell::new(0),
            hash: Cell::new(0x6a09_e667_f3bc_c909),
            events: Cell::new(0),
            moved_at: Cell::new(0),
            streams: Streams::new(seed),
        })))
    }

    /// Returns the handle.
    pub fn sim(&self) -> &Sim {
        &self.0
    }

    /// Runs until no ordinary process is left; daemons and pending events are kept.
    ///
    /// # Errors
    /// A deadlock, a standstill, or a clock beyond the end of virtual time.
    pub fn run(&self) -> Result<(), SimError> {
        self.run_while(|| true).map(|_| ())
    }

    /// Runs like [`Simulation::run`], and asks every few thousand events whether to continue; returns false if `go_on`
    /// ended it.
    ///
    /// # Errors
    /// A deadlock, a standstill, or a clock beyond the end of virtual time.
    pub fn run_while(&self, mut go_on: impl FnMut() -> bool) -> Result<bool, SimError> {
        let mut asked_at = self.events();
        while self.0.0.processes.borrow().ordinary() > 0 {
            match self.step(HORIZON_NS) {
                Step::Done => self.check_standstill()?,
                Step::Limit => return Err(SimError::Endless { now_ns: self.now_ns(), waiting: self.waiting() }),
                Step::Dry => return Err(self.deadlock()),
            }
            if self.events() - asked_at >= ASK_EVERY {
                asked_at = self.events();
                if !go_on() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Runs everything due up to and including `limit_ns`, then sets the clock there. It is a deadlock if no event is
    /// pending while ordinary processes wait.
    ///
    /// # Errors
    /// A deadlock, a standstill, or a clock beyond the end of virtual time.
    pub fn run_until(&self, limit_ns: u64) -> Result<(), SimError> {
        loop {
            match self.step(limit_ns) {
                Step::Done => self.check_standstill()?,
                Step::Dry if self.0.0.processes.borrow().ordinary() > 0 => {
                    return Err(self.deadlock());
                }
                Step::Dry | Step::Limit => {
                    self.0.0.now_ns.set(limit_ns.max(self.now_ns()));
                    return Ok(());
                }
            }
        }
    }

    /// Returns the time of the next event [ns]; `None` if nothing is pending.
    pub fn next_ns(&self) -> Option<u64> {
        let inner = &*self.0.0;
        if inner.ready.borrow().is_empty() { inner.calendar.borrow_mut().first_ns() } else { Some(self.now_ns()) }
    }

    fn step(&self, limit_ns: u64) -> Step {
        let inner = &*self.0.0;
        let now = inner.now_ns.get();
        let what = {
            let mut calendar = inner.calendar.borrow_mut();
            let first = calendar.first_ns();
            if first != Some(now)
                && let Some(what) = inner.ready.borrow_mut().pop_front()
            {
                what
            } else {
                match first {
                    None => return Step::Dry,
                    Some(time) if time > limit_ns => return Step::Limit,
                    Some(time) => {
                        if time != now {
                            inner.now_ns.set(time);
                            inner.moved_at.set(inner.events.get());
                        }
                        let Some((_, _, what)) = calendar.take() else { return Step::Dry };
                        what
                    }
                }
            }
        };
        self.0.happen(what);
        Step::Done
    }

    #[inline]
    fn check_standstill(&self) -> Result<(), SimError> {
        let events = self.0.0.events.get() - self.0.0.moved_at.get();
        if events <= STANDSTILL {
            return Ok(());
        }
        Err(SimError::Standstill { now_ns: self.now_ns(), events })
    }

    fn deadlock(&self) -> SimError {
        SimError::Deadlock { now_ns: self.now_ns(), waiting: self.waiting() }
    }

    /// Returns the waiting processes and what they wait for.
    fn waiting(&self) -> Vec<Waiting> {
        let places = self.0.0.places.borrow();
        let stopped = self.0.0.processes.borrow().stopped();
        let waiting = stopped.into_iter().map(|stopped| Waiting {
            process: stopped.name,
            waits_for: places[stopped.waits_for as usize].clone(),
            since_ns: stopped.since_ns,
        });
        waiting.collect()
    }
}

/// Place where a process waits: a name in the message about a deadlock.
#[derive(Clone, Copy, Debug)]
pub struct Place(u32);

impl Place {
    /// Wait for time to pass.
    pub const TIME: Self = Self(1);
    /// Wait for a device's completion.
    pub const IO: Self = Self(2);
}

impl Sim {
    /// Returns the virtual time [ns].
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.0.now_ns.get()
    }

    /// Returns the number of events so far.
    pub fn events(&self) -> u64 {
        self.0.events.get()
    }

    /// Returns the hash of everything that has happened, with its times.
    pub fn hash(&self) -> u64 {
        self.0.hash.get()
    }

    /// Adds a value to the hash.
    #[inline]
    pub fn note(&self, value: u64) {
        self.0.hash.set(mix(self.0.hash.get(), value));
    }

    /// Returns the random stream of that name: the same for the same seed and name, whatever else is drawn.
    pub fn stream(&self, name: &str) -> Stream {
        self.0.streams.named(name)
    }

    /// Starts a process; it first runs when the process running now waits.
    pub fn spawn<F>(&self, name: impl Into<Cow<'static, str>>, work: F)
    where
        F: Future<Output = ()> + 'static,
    {
        self.start(name.into(), false, work);
    }

    /// Starts a process that serves others: a run does not wait for its end, and it may wait forever.
    pub fn spawn_daemon<F>(&self, name: impl Into<Cow<'static, str>>, work: F)
    where
        F: Future<Output = ()> + 'static,
    {
        self.start(name.into(), true, work);
    }

    fn start<F: Future<Output = ()> + 'static>(&self, name: Cow<'static, str>, daemon: bool, work: F) {
        let id = self.0.processes.borrow_mut().add(name, daemon, Box::pin(work));
        self.wake(id);
    }

    /// Adds a machine.
    pub fn add_machine(&self, machine: Rc<dyn Machine>) -> MachineId {
        let mut machines = self.0.machines.borrow_mut();
        machines.push(machine);
        MachineId(machines.len() as u32 - 1)
    }

    /// Schedules a machine's event; if the time is not later than now, it happens at this instant after everything
    /// already due.
    #[inline]
    pub fn call_at(&self, time_ns: u64, machine: MachineId, token: u64) {
        let what = What::Call(machine, token);
        if time_ns <= self.now_ns() {
            self.0.ready.borrow_mut().push_back(what);
        } else {
            self.0.calendar.borrow_mut().put(time_ns, what);
        }
    }

    /// Returns the process that runs now.
    #[inline]
    pub fn running(&self) -> ProcessId {
        self.0.running.get()
    }

    /// Wakes a process at this instant, after everything already due; has no effect if it has ended.
    #[inline]
    pub fn wake(&self, process: ProcessId) {
        self.0.ready.borrow_mut().push_back(What::Wake(process));
    }

    #[inline]
    pub(super) fn wake_at(&self, time_ns: u64, process: ProcessId) -> u64 {
        self.0.calendar.borrow_mut().put(time_ns, What::Wake(process))
    }

    pub(super) fn cancel(&self, number: u64) {
        self.0.calendar.borrow_mut().cancel(number);
    }

    /// Registers the name of a place where processes wait.
    pub fn place(&self, name: &str) -> Place {
        let mut places = self.0.places.borrow_mut();
        places.push(name.into());
        Place(places.len() as u32 - 1)
    }

    /// Records that the process that runs now is about to wait there.
    #[inline]
    pub fn stops_at(&self, place: Place) {
        self.0.stops_at.set(place.0);
    }

    #[inline]
    fn happen(&self, what: What) {
        let inner = &*self.0;
        inner.events.set(inner.events.get() + 1);
        let (a, b) = match what {
            What::Wake(process) => (process.bits(), 0),
            What::Call(machine, token) => (token, u64::from(machine.0) + 1),
        };
        self.note(self.now_ns() ^ a.rotate_left(20) ^ b.rotate_left(40));
        match what {
            What::Wake(process) => self.poll(process),
            What::Call(machine, token) => {
                let machine = Rc::clone(&inner.machines.borrow()[machine.0 as usize]);
                machine.event(token);
            }
        }
    }

    #[inline]
    fn poll(&self, process: ProcessId) {
        let inner = &*self.0;
        let Some(mut work) = inner.processes.borrow_mut().take(process) else { return };
        inner.running.set(process);
        let polled = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        inner.running.set(ProcessId::NONE);
        if polled == Poll::Pending {
            let (place, now) = (inner.stops_at.get(), self.now_ns());
            inner.processes.borrow_mut().put_back(process, work, place, now);
        } else {
            inner.processes.borrow_mut().end(process);
        }
    }
}

/// Returns the next value of a running hash: a multiplication by the golden ratio and a rotation.
#[inline]
fn mix(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}
