//! Memory of a controller in front of a device: writes are acknowledged here until it fills.
//!
//! A cache is a port of a [`Controller`], which says how it works. One that stands over a single device has a
//! controller of its own; the disks of a storage cell share one.

use std::rc::Rc;

use super::controller::Controller;
use super::{Device, Done, Request, parameters};
use crate::kernel::{Sim, StationReport};

parameters! {
    /// Parameters of a controller and its cache.
    pub struct CacheParameters {
        /// memory for dirty lines
        capacity_kb: u64 = 512 << 10, from "512 MB a cell up to X4 (Expert Oracle Exadata, ch. 5)";
        /// line
        line_kb: u64 = 8, from "chosen: a database block", in 1.0..=1e6;
        /// time of a hit without the time of its bytes
        hit_us: f64 = 60.0, from "assumed: command and memory of a SAS controller";
        /// part of it, and of any other command, for which the controller is occupied; one command at a time
        command_us: f64 = 10.0, from "assumed: order of 100,000 commands a second of a controller of the time";
        /// rate of the controller's path between host, memory and disks; one transfer at a time
        rate_mb_s: f64 = 1_800.0,
            from "Exadata technical overview 2013: 1.8 GB/s of a cell's 12 disks, less than the disks' sum";
        /// writes to a device below at once
        destages: u64 = 16, from "chosen: what tagged queueing makes use of", in 1.0..=1e6;
        /// longest write to a device below
        destage_kb: u64 = 256, from "chosen", in 1.0..=1e6;
        /// part of the memory from which dirty lines are written to disk; 0: at once
        start_ratio: f64 = 0.8, from "manual of another controller (MD3000i), as an example: start at 80 %";
        /// part of the memory at which that ends
        stop_ratio: f64 = 0.16, from "the same example: stop at 16 %";
        /// interval at which all dirty lines are written to disk; 0: never
        flush_s: f64 = 4.0, from "MegaRAID: cache flush interval, 4 s by default, from memory";
        /// true if a line on its way to disk cannot be written again until it is there
        locks: bool = true, from "a buffer that is being transferred must not change; Linux: stable pages";
        /// true if there is a battery
        battery: bool = true, from "X2 to X4: yes";
        /// interval between two learn cycles of the battery; 0: never
        learn_every_s: f64 = 0.0, from "cells: four times a year; 0 here", in 0.0..=1e7;
        /// length of a learn cycle
        learn_s: f64 = 0.0, from "cells: 1 to 12 hours (Oracle's manual)", in 0.0..=1e7;
    }
}

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

    /// Returns the number of its lines that are dirty or being destaged.
    pub fn lines(&self) -> u64 {
        self.controller.lines(self.port)
    }

    /// Returns the number of written lines that took no space because they were dirty already.
    pub fn absorbed(&self) -> u64 {
        self.controller.absorbed(self.port)
    }

    /// Returns true if no line is lost, in the memory of the whole controller.
    pub fn holds(&self) -> bool {
        self.controller.holds()
    }

    /// Returns true if writes are acknowledged from memory now.
    pub fn writes_back(&self) -> bool {
        self.controller.writes_back()
    }

    /// Returns the number of lines that the controller's memory holds.
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

    fn reset(&self) {
        self.controller.reset(self.port);
        self.below.reset();
    }
}
