//! Clock, processes and machines, and the run itself.
//!
//! A [`Simulation`] owns a run; a [`Sim`] is a handle on it that processes and devices keep. When the simulation is
//! dropped its processes and machines are dropped with it, so that cyclic handles do not leak.
//!
//! **No wakers.** A waiting process stores its id in the object that it waits for; the code that ends the wait calls
//! [`Sim::wake`]. A process may be woken unnecessarily and must check again what it waits for; every wait of this
//! kernel does. Futures of other crates that rely on a waker do not work.
//!
//! **Hash of a run.** Each event is added to a running hash with its time: two runs with the same hash did the same
//! things in the same order. [`Sim::note`] adds further values of a model.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::rc::Rc;
use std::task::Poll;

use super::agenda::{Agenda, Next, What};
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

/// Number of events at one instant above which a model is considered faulty.
const STANDSTILL: u64 = 10_000_000;

/// Number of events after which a run asks whether to continue.
const ASK_EVERY: u64 = 4_096;

struct Inner {
    now_ns: Cell<u64>,
    agenda: RefCell<Agenda>,
    processes: RefCell<Processes>,
    /// Number of living processes that a run must wait for.
    ordinary: Cell<usize>,
    machines: RefCell<Vec<Rc<dyn Machine>>>,
    places: RefCell<Vec<String>>,
    running: Cell<ProcessId>,
    stops_at: Cell<u32>,
    hash: Cell<u64>,
    events: Cell<u64>,
    moved_at: Cell<u64>,
    streams: Streams,
}

/// Handle of a run.
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
            agenda: RefCell::default(),
            processes: RefCell::default(),
            ordinary: Cell::new(0),
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

    /// Returns the handle of the run.
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
        let mut look_at = 0;
        while self.0.0.ordinary.get() > 0 {
            match self.steps(HORIZON_NS, look_at, 1) {
                Step::Done => {
                    self.check_standstill()?;
                    if self.events() - asked_at >= ASK_EVERY {
                        asked_at = self.events();
                        if !go_on() {
                            return Ok(false);
                        }
                    }
                    look_at = self.standstill_at().min(asked_at + ASK_EVERY);
                }
                Step::Limit => return Err(SimError::Endless { now_ns: self.now_ns(), waiting: self.waiting() }),
                Step::Dry => return Err(self.deadlock()),
            }
        }
        Ok(true)
    }

    /// Runs all events up to and including `limit_ns`, then sets the clock to `limit_ns`. It is a deadlock if no event
    /// is pending while ordinary processes wait.
    ///
    /// # Errors
    /// A deadlock, a standstill, or a clock beyond the end of virtual time.
    pub fn run_until(&self, limit_ns: u64) -> Result<(), SimError> {
        let mut look_at = 0;
        loop {
            match self.steps(limit_ns, look_at, 0) {
                Step::Done => {
                    self.check_standstill()?;
                    look_at = self.standstill_at();
                }
                Step::Dry if self.0.0.ordinary.get() > 0 => return Err(self.deadlock()),
                Step::Dry | Step::Limit => {
                    self.0.0.now_ns.set(limit_ns.max(self.now_ns()));
                    return Ok(());
                }
            }
        }
    }

    /// Returns the time of the next event [ns]; `None` if nothing is pending.
    pub fn next_ns(&self) -> Option<u64> {
        self.0.0.agenda.borrow_mut().next_ns(self.now_ns())
    }

    /// Executes one event, and further events up to number `until` as long as at least `ordinary` ordinary processes
    /// live; stops before an event that is later than `limit_ns`.
    fn steps(&self, limit_ns: u64, until: u64, ordinary: usize) -> Step {
        loop {
            let step = self.step(limit_ns);
            let go_on = self.events() < until && self.0.0.ordinary.get() >= ordinary;
            if !matches!(step, Step::Done) || !go_on {
                return step;
            }
        }
    }

    #[inline]
    fn step(&self, limit_ns: u64) -> Step {
        let inner = &*self.0.0;
        let now_ns = inner.now_ns.get();
        let next = inner.agenda.borrow_mut().take(now_ns, limit_ns);
        match next {
            Next::At(time_ns, what) => {
                if time_ns != now_ns {
                    inner.now_ns.set(time_ns);
                    inner.moved_at.set(inner.events.get());
                }
                self.0.happen(what);
                Step::Done
            }
            Next::Later => Step::Limit,
            Next::Nothing => Step::Dry,
        }
    }

    fn check_standstill(&self) -> Result<(), SimError> {
        if self.events() < self.standstill_at() {
            return Ok(());
        }
        Err(SimError::Standstill { now_ns: self.now_ns(), events: self.events() - self.0.0.moved_at.get() })
    }

    /// Returns the number of events at which virtual time counts as stopped, unless the clock moves before.
    fn standstill_at(&self) -> u64 {
        self.0.0.moved_at.get() + STANDSTILL + 1
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
    #[inline]
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

    #[inline]
    fn start<F: Future<Output = ()> + 'static>(&self, name: Cow<'static, str>, daemon: bool, work: F) {
        let id = self.0.processes.borrow_mut().add(name, daemon, work);
        self.0.ordinary.set(self.0.ordinary.get() + usize::from(!daemon));
        self.wake(id);
    }

    /// Adds a machine; returns its identifier.
    pub fn add_machine(&self, machine: Rc<dyn Machine>) -> MachineId {
        let mut machines = self.0.machines.borrow_mut();
        machines.push(machine);
        MachineId(machines.len() as u32 - 1)
    }

    /// Schedules a machine's event; if the time is not later than now, it happens at this instant after everything
    /// already due.
    #[inline]
    pub fn call_at(&self, time_ns: u64, machine: MachineId, token: u64) {
        let (what, mut agenda) = (What::call(machine.0, token), self.0.agenda.borrow_mut());
        if time_ns <= self.now_ns() {
            agenda.now(what);
        } else {
            agenda.later(time_ns, what);
        }
    }

    /// Returns the process that runs now.
    #[inline]
    pub fn running(&self) -> ProcessId {
        self.0.running.get()
    }

    /// Wakes a process at this instant, after everything already due; has no effect if the process has ended.
    #[inline]
    pub fn wake(&self, process: ProcessId) {
        self.0.agenda.borrow_mut().now(What::wake(process));
    }

    pub(super) fn wake_at(&self, time_ns: u64, process: ProcessId) -> u64 {
        self.0.agenda.borrow_mut().later(time_ns, What::wake(process))
    }

    pub(super) fn cancel(&self, number: u64) {
        self.0.agenda.borrow_mut().cancel(number);
    }

    /// Registers the name of a place where processes wait.
    pub fn place(&self, name: &str) -> Place {
        let mut places = self.0.places.borrow_mut();
        places.push(name.into());
        Place(places.len() as u32 - 1)
    }

    /// Records that the process that runs now is about to wait at `place`.
    #[inline]
    pub fn stops_at(&self, place: Place) {
        self.0.stops_at.set(place.0);
    }

    /// Suspends the process at `place` until `ready` returns a value; the code that causes this must wake the process.
    #[inline]
    pub fn stop_until<T>(&self, place: Place, ready: impl Fn() -> Option<T>) -> impl Future<Output = T> {
        poll_fn(move |_| {
            if let Some(value) = ready() {
                return Poll::Ready(value);
            }
            self.stops_at(place);
            Poll::Pending
        })
    }

    #[inline]
    fn happen(&self, what: What) {
        let inner = &*self.0;
        inner.events.set(inner.events.get() + 1);
        self.note(self.now_ns() ^ what.token.rotate_left(20) ^ what.machine.rotate_left(40));
        if what.machine == 0 {
            self.proceed(ProcessId::from_bits(what.token));
        } else {
            let machine = Rc::clone(&inner.machines.borrow()[what.machine as usize - 1]);
            machine.event(what.token);
        }
    }

    #[inline]
    fn proceed(&self, process: ProcessId) {
        let inner = &*self.0;
        let Some(mut work) = inner.processes.borrow_mut().take(process) else { return };
        inner.running.set(process);
        let ended = work.proceed();
        inner.running.set(ProcessId::NONE);
        let mut processes = inner.processes.borrow_mut();
        if ended {
            let daemon = processes.end(process, work);
            inner.ordinary.set(inner.ordinary.get() - usize::from(!daemon));
        } else {
            processes.put_back(process, work, inner.stops_at.get(), self.now_ns());
        }
    }
}

/// Returns the next value of a running hash: a multiplication by the golden ratio and a rotation.
#[inline]
fn mix(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}
