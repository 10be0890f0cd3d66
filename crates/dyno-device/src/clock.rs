//! Modelled device in wall-clock time: requests enter when they arrive, and replies leave at the modelled time.
//!
//! ```text
//!   threads of the mount --> inbox --> one thread: virtual time follows the clock from event to event
//!   (each hands its reply on)            |  sleeps until shortly before the next event, then spins
//!                                        '--> reply, and how late it was
//! ```
//!
//! The simulation and its devices are those of `dyno-model`, unchanged. Its clock never passes the wall clock by more
//! than half the floor: what the way through the kernel costs a request in both directions is taken off by letting
//! requests arrive half a floor earlier and replies leave half a floor earlier. The reply to a program that waits alone
//! leaves earlier still, by the time that an idle processor takes to start it. A request that the device completes
//! faster than that is late by the difference; lateness is recorded for each.
//!
//! A flush is complete when every write that arrived before it is.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dyno_model::device::{Device, Done, Kind, Observer, Request, Wear};
use dyno_model::kernel::{Sim, Simulation};
use dyno_stats::histogram::LogHistogram;

use crate::DeviceError;
use crate::devices::Model;

/// Function that sends the reply of a request.
pub type Reply = Box<dyn FnOnce() + Send>;

/// Longest wait for the wear of a device.
const WEAR_WAIT: Duration = Duration::from_secs(1);
/// The thread spins for this long before an event [ns]: longer than the system takes to wake it.
const SPIN_NS: u64 = 60_000;

enum Order {
    Io { arrived_ns: u64, pieces: Vec<Request>, reply: Reply },
    Flush { arrived_ns: u64, reply: Reply },
    Discard { arrived_ns: u64, ranges: Vec<Range>, reply: Reply },
    Wear { arrived_ns: u64, answer: mpsc::Sender<Vec<Wear>> },
    Pause { arrived_ns: u64, pause_ns: u64, reply: Reply },
}

/// Offset and length on the device [bytes].
pub type Range = (u64, u64);

impl Order {
    fn arrived_ns(&self) -> u64 {
        match self {
            Self::Io { arrived_ns, .. }
            | Self::Flush { arrived_ns, .. }
            | Self::Discard { arrived_ns, .. }
            | Self::Wear { arrived_ns, .. }
            | Self::Pause { arrived_ns, .. } => *arrived_ns,
        }
    }
}

/// Times of completed requests.
#[derive(Clone, Default)]
pub struct Timing {
    /// Modelled times of reads [ns].
    pub read_ns: LogHistogram,
    /// Modelled times of writes [ns].
    pub write_ns: LogHistogram,
    /// Modelled times of flushes [ns].
    pub flush_ns: LogHistogram,
    /// Modelled times of discards [ns].
    pub discard_ns: LogHistogram,
    /// Delay of replies after their modelled time [ns].
    pub late_ns: LogHistogram,
}

struct Shared {
    begin: Instant,
    inbox: Mutex<Vec<Order>>,
    stopping: AtomicBool,
    half_floor_ns: AtomicU64,
    wake_ns: AtomicU64,
    timing: Mutex<Timing>,
}

impl Shared {
    fn now_ns(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }
}

/// Function that ends the rest of the thread that drives a device.
pub type Wake = Box<dyn Fn() + Send + Sync>;

/// A modelled device in wall-clock time; see the [module](self).
pub struct Clock {
    shared: Arc<Shared>,
    wake: Wake,
    join: Mutex<Option<JoinHandle<()>>>,
    capacity_bytes: u64,
}

/// A device that has yet to be built, in the thread that will drive it: simulations stay in the thread that made them.
pub struct Driver {
    shared: Arc<Shared>,
    model: Model,
}

impl Driver {
    fn new(model: Model) -> Self {
        let shared = Arc::new(Shared {
            begin: Instant::now(),
            inbox: Mutex::default(),
            stopping: AtomicBool::new(false),
            half_floor_ns: AtomicU64::new(0),
            wake_ns: AtomicU64::new(0),
            timing: Mutex::default(),
        });
        Self { shared, model }
    }

    /// Builds the device in this thread.
    ///
    /// # Errors
    /// The description is invalid.
    pub fn build(self) -> Result<Engine, DeviceError> {
        // Else the system rounds times of sleep up by 50 us.
        let _ = nix::sys::prctl::set_timerslack(1);
        let simulation = Simulation::new(self.model.seed);
        let device = self.model.build(simulation.sim())?;
        Ok(Engine::new(self.shared, simulation, device))
    }
}

impl Clock {
    /// Builds the device and starts a thread that drives it.
    ///
    /// # Errors
    /// The description is invalid, or there is no thread.
    pub fn start(model: Model) -> Result<Self, DeviceError> {
        let driver = Driver::new(model);
        let shared = Arc::clone(&driver.shared);
        let (sender, receiver) = mpsc::channel();
        let run = move || match driver.build() {
            Err(error) => drop(sender.send(Err(error))),
            Ok(engine) => {
                let _ = sender.send(Ok(engine.device.capacity_bytes()));
                engine.run();
            }
        };
        let join = std::thread::Builder::new().name("device".into()).spawn(run).map_err(DeviceError::Io)?;
        let thread = join.thread().clone();
        let built = receiver.recv().map_err(|_| DeviceError::Broken("the device's thread ended".into()))?;
        let wake: Wake = Box::new(move || thread.unpark());
        Ok(Self { shared, wake, join: Mutex::new(Some(join)), capacity_bytes: built? })
    }

    /// Returns a device without a thread, and what builds it in the thread that is to drive it; `wake` wakes that one.
    ///
    /// # Errors
    /// The description is invalid.
    pub fn driven(model: Model, wake: Wake) -> Result<(Self, Driver), DeviceError> {
        let capacity_bytes = model.build(Simulation::new(model.seed).sim())?.capacity_bytes();
        let driver = Driver::new(model);
        let shared = Arc::clone(&driver.shared);
        Ok((Self { shared, wake, join: Mutex::new(None), capacity_bytes }, driver))
    }

    /// Returns the capacity of the device [bytes].
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Returns the time now, for [`Clock::submit`] [ns].
    pub fn now_ns(&self) -> u64 {
        self.shared.now_ns()
    }

    /// Sets the cost of a request without the device, which is subtracted from its time [ns].
    pub fn set_floor_ns(&self, floor_ns: u64) {
        self.shared.half_floor_ns.store(floor_ns / 2, Ordering::Relaxed);
    }

    /// Sets the time that the start of a waiting program on an idle processor takes beyond the floor [ns].
    pub fn set_wake_ns(&self, wake_ns: u64) {
        self.shared.wake_ns.store(wake_ns, Ordering::Relaxed);
    }

    /// Replies after a pause, as a device with this constant time would [ns].
    pub fn pause(&self, arrived_ns: u64, pause_ns: u64, reply: Reply) {
        self.order(Order::Pause { arrived_ns, pause_ns, reply });
    }

    /// Submits the pieces of one request; `reply` runs when the last piece is complete.
    pub fn submit(&self, arrived_ns: u64, pieces: Vec<Request>, reply: Reply) {
        self.order(Order::Io { arrived_ns, pieces, reply });
    }

    /// Submits a flush.
    pub fn flush(&self, arrived_ns: u64, reply: Reply) {
        self.order(Order::Flush { arrived_ns, reply });
    }

    /// Submits a discard of ranges; a device that ignores discards replies at once.
    pub fn discard(&self, arrived_ns: u64, ranges: Vec<Range>, reply: Reply) {
        self.order(Order::Discard { arrived_ns, ranges, reply });
    }

    /// Returns the wear of the device's flash; empty if it has none, or has been stopped.
    pub fn wear(&self) -> Vec<Wear> {
        if self.shared.stopping.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let (answer, answered) = mpsc::channel();
        self.order(Order::Wear { arrived_ns: self.now_ns(), answer });
        answered.recv_timeout(WEAR_WAIT).unwrap_or_default()
    }

    fn order(&self, order: Order) {
        self.shared.inbox.lock().unwrap_or_else(PoisonError::into_inner).push(order);
        (self.wake)();
    }

    /// Returns the times of all completed requests.
    pub fn timing(&self) -> Timing {
        self.shared.timing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Completes all outstanding requests at once, and ends the thread.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        (self.wake)();
        let join = self.join.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(join) = join {
            let _ = join.join();
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Pieces that the device has completed at the current instant.
struct Finished {
    sim: Sim,
    pieces: RefCell<Vec<(u64, u64)>>,
}

impl Observer for Finished {
    fn done(&self, token: u64) {
        self.pieces.borrow_mut().push((token, self.sim.now_ns()));
    }
}

/// Time until the thread that drives a device is needed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Until it is woken.
    Forever,
    /// This time at most: it spins for the rest.
    AtMost(Duration),
    /// No time.
    None,
}

/// What was asked of the device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Io(Kind),
    Discard,
    Pause,
}

struct Open {
    arrived_ns: u64,
    pieces: usize,
    asked: Asked,
    reply: Reply,
}

/// The simulation of a device, in the thread that drives it.
pub struct Engine {
    shared: Arc<Shared>,
    simulation: Simulation,
    device: Rc<dyn Device>,
    finished: Rc<Finished>,
    number: u64,
    open: BTreeMap<u64, Open>,
    writes: BTreeSet<u64>,
    flushes: BTreeMap<u64, (u64, Reply)>,
}

impl Engine {
    fn new(shared: Arc<Shared>, simulation: Simulation, device: Rc<dyn Device>) -> Self {
        let finished = Rc::new(Finished { sim: simulation.sim().clone(), pieces: RefCell::default() });
        let (open, writes, flushes) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Self { shared, simulation, device, finished, number: 0, open, writes, flushes }
    }

    fn run(mut self) {
        while !self.is_stopping() {
            match self.turn() {
                // A request that came in the meantime has unparked it already.
                Rest::Forever => std::thread::park(),
                Rest::AtMost(time) => std::thread::park_timeout(time),
                Rest::None => std::hint::spin_loop(),
            }
        }
        self.complete_all();
    }

    /// Returns true once the device is to end.
    pub fn is_stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Relaxed)
    }

    /// Takes the requests that have arrived, and processes all events that are due.
    pub fn turn(&mut self) -> Rest {
        self.accept();
        self.advance();
        self.rest()
    }

    /// Completes all outstanding requests at once.
    pub fn complete_all(&mut self) {
        for (_, open) in std::mem::take(&mut self.open) {
            (open.reply)();
        }
        for (_, (_, reply)) in std::mem::take(&mut self.flushes) {
            reply();
        }
    }

    fn half_floor_ns(&self) -> u64 {
        self.shared.half_floor_ns.load(Ordering::Relaxed)
    }

    /// Returns how long before its time a reply leaves now [ns].
    fn early_ns(&self) -> u64 {
        let alone = self.open.len() + self.flushes.len() == 1;
        self.half_floor_ns() + if alone { self.shared.wake_ns.load(Ordering::Relaxed) } else { 0 }
    }

    /// Submits the requests that have arrived.
    fn accept(&mut self) {
        let mut orders = std::mem::take(&mut *self.shared.inbox.lock().unwrap_or_else(PoisonError::into_inner));
        orders.sort_by_key(Order::arrived_ns);
        for order in orders {
            let early_ns = order.arrived_ns().saturating_sub(self.half_floor_ns());
            let arrived_ns = early_ns.max(self.simulation.now_ns());
            self.move_to(arrived_ns);
            self.number += 1;
            match order {
                Order::Io { pieces, reply, .. } => self.submit(arrived_ns, pieces, reply),
                Order::Flush { reply, .. } if self.writes.is_empty() => self.complete_flush(0, reply),
                Order::Flush { reply, .. } => drop(self.flushes.insert(self.number, (arrived_ns, reply))),
                Order::Discard { ranges, reply, .. } => self.discard(arrived_ns, &ranges, reply),
                Order::Wear { answer, .. } => drop(answer.send(self.device.wear())),
                Order::Pause { pause_ns, reply, .. } => self.pause(arrived_ns, pause_ns, reply),
            }
        }
    }

    fn pause(&mut self, arrived_ns: u64, pause_ns: u64, reply: Reply) {
        self.open.insert(self.number, Open { arrived_ns, pieces: 1, asked: Asked::Pause, reply });
        let (sim, finished, number) = (self.simulation.sim().clone(), Rc::clone(&self.finished), self.number);
        self.simulation.spawn("pause", async move {
            sim.hold(pause_ns).await;
            finished.done(number);
        });
    }

    fn submit(&mut self, arrived_ns: u64, pieces: Vec<Request>, reply: Reply) {
        let Some(first) = pieces.first() else {
            reply();
            return;
        };
        let open = Open { arrived_ns, pieces: pieces.len(), asked: Asked::Io(first.kind), reply };
        if open.asked == Asked::Io(Kind::Write) {
            self.writes.insert(self.number);
        }
        self.open.insert(self.number, open);
        for piece in pieces {
            let observer: Rc<dyn Observer> = Rc::<Finished>::clone(&self.finished);
            self.device.submit(piece, Done::new(observer, self.number));
        }
        self.deliver();
    }

    fn discard(&mut self, arrived_ns: u64, ranges: &[Range], reply: Reply) {
        let observer = || -> Rc<dyn Observer> { Rc::<Finished>::clone(&self.finished) };
        let done = || Done::new(observer(), self.number);
        let taken = ranges.iter().filter(|(offset, bytes)| self.device.discard(*offset, *bytes, done()).is_none());
        let pieces = taken.count();
        if pieces == 0 {
            reply();
            return;
        }
        self.open.insert(self.number, Open { arrived_ns, pieces, asked: Asked::Discard, reply });
    }

    /// Processes all events that are due.
    fn advance(&mut self) {
        loop {
            let limit_ns = self.shared.now_ns() + self.early_ns();
            match self.simulation.next_ns() {
                Some(next_ns) if next_ns <= limit_ns => self.move_to(next_ns),
                _ => return,
            }
        }
    }

    fn move_to(&mut self, time_ns: u64) {
        // There are no processes, hence no deadlock; devices never stand still.
        let _ = self.simulation.run_until(time_ns);
        self.deliver();
    }

    fn deliver(&mut self) {
        let pieces = std::mem::take(&mut *self.finished.pieces.borrow_mut());
        for (number, at_ns) in pieces {
            let Some(open) = self.open.get_mut(&number) else { continue };
            open.pieces -= 1;
            if open.pieces > 0 {
                continue;
            }
            let early_ns = self.early_ns();
            let Some(open) = self.open.remove(&number) else { continue };
            self.send(early_ns, open.asked, at_ns - open.arrived_ns, at_ns, open.reply);
            if open.asked == Asked::Io(Kind::Write) {
                self.writes.remove(&number);
                self.release_flushes(at_ns);
            }
        }
    }

    fn send(&self, early_ns: u64, asked: Asked, took_ns: u64, at_ns: u64, reply: Reply) {
        reply();
        let late_ns = (self.shared.now_ns() + early_ns).saturating_sub(at_ns);
        let mut timing = self.shared.timing.lock().unwrap_or_else(PoisonError::into_inner);
        match asked {
            Asked::Io(Kind::Read) => timing.read_ns.record(took_ns),
            Asked::Io(Kind::Write) => timing.write_ns.record(took_ns),
            Asked::Discard => timing.discard_ns.record(took_ns),
            Asked::Pause => return,
        }
        timing.late_ns.record(late_ns);
    }

    fn release_flushes(&mut self, at_ns: u64) {
        let first = self.writes.first().copied().unwrap_or(u64::MAX);
        while let Some(entry) = self.flushes.first_entry() {
            if *entry.key() > first {
                return;
            }
            let (arrived_ns, reply) = entry.remove();
            self.complete_flush(at_ns - arrived_ns, reply);
        }
    }

    fn complete_flush(&self, took_ns: u64, reply: Reply) {
        reply();
        let mut timing = self.shared.timing.lock().unwrap_or_else(PoisonError::into_inner);
        timing.flush_ns.record(took_ns);
    }

    /// Returns the time until the next event.
    fn rest(&self) -> Rest {
        let Some(next_ns) = self.simulation.next_ns() else { return Rest::Forever };
        let wait_ns = next_ns.saturating_sub(self.shared.now_ns() + self.early_ns());
        if wait_ns > SPIN_NS { Rest::AtMost(Duration::from_nanos(wait_ns - SPIN_NS)) } else { Rest::None }
    }
}
