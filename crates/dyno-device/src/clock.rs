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

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dyno_model::device::{Request, Wear};
use dyno_model::kernel::Simulation;

use crate::DeviceError;
use crate::devices::Model;
use crate::engine::Engine;
use crate::orders::{Order, Range, Reply, Shared, Timing};

/// Longest wait for a device to report its wear.
const WEAR_WAIT: Duration = Duration::from_secs(1);

/// Function that wakes the thread that drives a device.
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
                let _ = sender.send(Ok(engine.capacity_bytes()));
                engine.run();
            }
        };
        let join = std::thread::Builder::new().name("device".into()).spawn(run).map_err(DeviceError::Io)?;
        let thread = join.thread().clone();
        let built = receiver.recv().map_err(|_| DeviceError::Broken("the device's thread ended".into()))?;
        let wake: Wake = Box::new(move || thread.unpark());
        Ok(Self { shared, wake, join: Mutex::new(Some(join)), capacity_bytes: built? })
    }

    /// Returns a device without a thread of its own, and the driver that builds it in the caller's thread. `wake` wakes
    /// that thread.
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

    /// Sets how much longer than the floor it takes to start a waiting program on an idle processor [ns].
    pub fn set_wake_ns(&self, wake_ns: u64) {
        self.shared.wake_ns.store(wake_ns, Ordering::Relaxed);
    }

    /// Replies after a pause of `pause_ns` [ns], like a device whose requests all take this time.
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
