//! Modelled device in wall-clock time: requests enter when they arrive, and replies leave at the modelled time.
//!
//! ```text
//!   threads of the mount --> inbox --> one thread: virtual time follows the clock from event to event
//!   (each hands its reply on)            |  sleeps until shortly before the next event, then spins
//!                                        '--> reply, and how late it was
//! ```
//!
//! The simulation and its devices are those of `dyno-model`, unchanged. The floor is the time that a request spends in
//! the kernel, on its way to this program and back. To subtract it, requests arrive in the simulation half a floor
//! earlier, and replies leave half a floor earlier; the simulated clock is therefore never ahead of the wall clock by
//! more than half the floor. If only one request is outstanding, its reply leaves earlier still, by the time that an
//! idle processor takes to start the waiting program. If the device completes a request in less time than is
//! subtracted, the reply is late by the difference; the lateness of every reply is recorded.
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

/// A device that is built later, in the thread that will drive it: a simulation cannot leave the thread that made it.
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
    /// The description is invalid, or no thread can be started.
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

    /// Returns a device without a thread, and the driver that builds the device in the caller's thread. `wake` wakes
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

    /// Returns the current time on the clock that [`Clock::submit`] uses [ns].
    pub fn now_ns(&self) -> u64 {
        self.shared.now_ns()
    }

    /// Sets the time that a request takes without the device [ns]; it is subtracted from the time of every request.
    pub fn set_floor_ns(&self, floor_ns: u64) {
        self.shared.half_floor_ns.store(floor_ns / 2, Ordering::Relaxed);
    }

    /// Sets how much longer than the floor it takes to start a waiting program on an idle processor [ns].
    pub fn set_wake_ns(&self, wake_ns: u64) {
        self.shared.wake_ns.store(wake_ns, Ordering::Relaxed);
    }

    /// Replies after `pause_ns` [ns], like a device on which every request takes this time.
    pub fn pause(&self, arrived_ns: u64, pause_ns: u64, reply: Reply) {
        self.order(Order::Pause { arrived_ns, pause_ns, reply });
    }

    /// Submits the pieces of one request; `reply` runs when the last piece is complete.
    pub fn submit(&self, arrived_ns: u64, pieces: Vec<Request>, reply: Reply) {
        self.order(Order::Io { arrived_ns, pieces, reply });
    }

    /// Submits a flush; `reply` runs when every write that arrived before it is complete.
    pub fn flush(&self, arrived_ns: u64, reply: Reply) {
        self.order(Order::Flush { arrived_ns, reply });
    }

    /// Submits a discard of ranges; a device that ignores discards replies immediately.
    pub fn discard(&self, arrived_ns: u64, ranges: Vec<Range>, reply: Reply) {
        self.order(Order::Discard { arrived_ns, ranges, reply });
    }

    /// Returns the wear of the device's flash; empty if the device has no flash, or has been stopped.
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

    /// Returns histograms of the times of all completed requests.
    pub fn timing(&self) -> Timing {
        self.shared.timing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Completes all outstanding requests immediately, and ends the thread.
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
