//! Memory of a controller in front of a device: writes are acknowledged in this memory until it is full.
//!
//! A cache is a port of a [`Controller`], where its behaviour is described. A cache over a single device has its own
//! controller; the disks of a storage cell share one.

use std::rc::Rc;

pub use super::cache_parameters::CacheParameters;
use super::controller::Controller;
use super::{Device, Done, Request};
use crate::kernel::{Sim, StationReport};

/// Cache in front of a device.
pub struct Cache {
    controller: Rc<Controller>,
    port: usize,
    name: String,
    below: Rc<dyn Device>,
}

impl Cache {
    /// Returns an empty cache with a controller of its own.
    pub fn new(sim: &Sim, name: &str, parameters: CacheParameters, below: Rc<dyn Device>) -> Rc<Self> {
        let controller = Controller::new(sim, &format!("{name} processor"), parameters);
        Self::of(&controller, name, below)
    }

    /// Returns an empty cache of a controller that others may share.
    pub fn of(controller: &Rc<Controller>, name: &str, below: Rc<dyn Device>) -> Rc<Self> {
        let port = controller.add(Rc::clone(&below));
        Rc::new(Self { controller: Rc::clone(controller), port, name: name.into(), below })
    }

    /// Returns the number of lines of this cache that are dirty or being destaged.
    pub fn lines(&self) -> u64 {
        self.controller.lines(self.port)
    }

    /// Returns the number of written lines that took no space because they were dirty already.
    pub fn absorbed(&self) -> u64 {
        self.controller.absorbed(self.port)
    }

    /// Returns true if no line is lost in the entire memory of the controller.
    pub fn holds(&self) -> bool {
        self.controller.holds()
    }

    /// Returns true if writes are now acknowledged as soon as they are in memory.
    pub fn writes_back(&self) -> bool {
        self.controller.writes_back()
    }

    /// Returns the number of lines for which the controller's memory has room.
    pub fn room(&self) -> u64 {
        self.controller.room()
    }
}

impl Device for Cache {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity_bytes(&self) -> u64 {
        self.below.capacity_bytes()
    }

    fn submit(&self, mut request: Request, done: Done) {
        request.offset_bytes %= self.capacity_bytes();
        self.controller.submit(self.port, request, done);
    }

    /// Returns the statistics of this cache, of its controller (the same for all its caches), and of the device.
    fn reports(&self) -> Vec<StationReport> {
        let own = self.controller.reports(self.port, &self.name);
        own.into_iter().chain(self.below.reports()).collect()
    }

    fn below(&self) -> &[Rc<dyn Device>] {
        std::slice::from_ref(&self.below)
    }

    fn reset(&self) {
        self.controller.reset(self.port);
        self.below.reset();
    }
}
