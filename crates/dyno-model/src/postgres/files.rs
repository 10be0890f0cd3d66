//! Data files and temporary files: reads and writes of blocks, for which the process waits.
//!
//! Data blocks are anywhere in the data files. Temporary blocks of a session follow each other in its file, which is
//! read in the order in which it was written. An I/O that the kernel's cache answers takes only CPU time, and the
//! process keeps its core.

use std::cell::Cell;
use std::rc::Rc;

use super::parameters::PostgresParameters;
use super::process::{Process, Wait};
use crate::device::{Device, Request, start};
use crate::kernel::sample::{Times, whole_ns};
use crate::kernel::{Sim, Stream};

/// Size of a block [bytes] (`BLCKSZ`).
const BLOCK_BYTES: u64 = 8_192;
/// Offset at which data files begin on a device, after the log [bytes].
const DATA_FROM: u64 = 1 << 30;
/// Room for the temporary file of a session [bytes].
const TEMP_BYTES: u64 = 64 << 20;

/// Devices of a server, some of which may be the same device.
#[derive(Clone)]
pub struct Devices {
    /// Device of the log.
    pub log: Rc<dyn Device>,
    /// Device of the data files.
    pub data: Rc<dyn Device>,
    /// Device of temporary files.
    pub temp: Rc<dyn Device>,
}

impl Devices {
    /// Returns the same device for log, data and temporary files.
    pub fn one(device: &Rc<dyn Device>) -> Self {
        Self { log: Rc::clone(device), data: Rc::clone(device), temp: Rc::clone(device) }
    }

    /// Returns each device once, the device of the log first.
    pub fn each(&self) -> Vec<&Rc<dyn Device>> {
        let mut all: Vec<&Rc<dyn Device>> = Vec::new();
        for device in [&self.log, &self.data, &self.temp] {
            if !all.iter().any(|other| Rc::ptr_eq(other, device)) {
                all.push(device);
            }
        }
        all
    }
}

/// Files of a server.
pub(super) struct Files {
    sim: Sim,
    devices: Devices,
    blocks: u64,
    read_ns: u64,
    write_ns: u64,
    temp_ns: u64,
    cached: f64,
    temp_cached: f64,
    late: Times,
    late_factor: f64,
}

impl Files {
    /// Returns the files of a server.
    pub fn new(sim: &Sim, parameters: &PostgresParameters, devices: &Devices) -> Self {
        let ns = |us: f64| whole_ns(us * 1e3);
        Self {
            sim: sim.clone(),
            devices: devices.clone(),
            blocks: ((parameters.data_mb * 1_048_576.0) as u64 / BLOCK_BYTES).max(1),
            read_ns: ns(parameters.read_us),
            write_ns: ns(parameters.write_us),
            temp_ns: ns(parameters.temp_us),
            cached: parameters.cached_ratio,
            temp_cached: parameters.temp_cached_ratio,
            late: parameters.data_late.clone(),
            late_factor: parameters.data_factor,
        }
    }

    /// Reads data blocks, one after the other.
    pub async fn read(&self, process: &Process, blocks: u64, dice: &mut Stream) {
        for _ in 0..blocks {
            let request = Request::read(self.place(dice), BLOCK_BYTES);
            self.wait(process, &*self.devices.data, (Wait::DataRead, self.read_ns), request, dice).await;
        }
    }

    /// Writes data blocks, one after the other.
    pub async fn write(&self, process: &Process, blocks: u64, dice: &mut Stream) {
        for _ in 0..blocks {
            let request = Request::write(self.place(dice), BLOCK_BYTES);
            self.wait(process, &*self.devices.data, (Wait::DataWrite, self.write_ns), request, dice).await;
        }
    }

    /// Writes temporary blocks, then reads temporary blocks, in the file of a session.
    pub async fn spill(&self, process: &Process, session: u32, (writes, reads): (u64, u64), dice: &mut Stream) {
        let data_bytes = self.blocks * BLOCK_BYTES;
        let begin = DATA_FROM + data_bytes + u64::from(session) * TEMP_BYTES;
        let place = Cell::new(0);
        let next = || begin + place.replace(place.get() + BLOCK_BYTES) % TEMP_BYTES;
        for _ in 0..writes {
            let request = Request::write(next(), BLOCK_BYTES);
            self.wait(process, &*self.devices.temp, (Wait::TempWrite, self.temp_ns), request, dice).await;
        }
        place.set(0);
        for _ in 0..reads {
            let request = Request::read(next(), BLOCK_BYTES);
            self.wait(process, &*self.devices.temp, (Wait::TempRead, self.temp_ns), request, dice).await;
        }
    }

    fn place(&self, dice: &mut Stream) -> u64 {
        DATA_FROM + dice.below(self.blocks) * BLOCK_BYTES
    }

    async fn wait(
        &self,
        process: &Process,
        device: &dyn Device,
        (what, cpu_ns): (Wait, u64),
        request: Request,
        dice: &mut Stream,
    ) {
        process.run(cpu_ns).await;
        let cached = match what {
            Wait::DataRead => self.cached,
            Wait::TempRead | Wait::TempWrite => self.temp_cached,
            _ => 0.0,
        };
        if cached > 0.0 && dice.chance(cached) {
            return;
        }
        let begin_ns = process.leave();
        start(&self.sim, device, request).await;
        let late_ns = whole_ns(self.late.sample_ns(dice) as f64 * self.late_factor);
        if late_ns > 0 {
            self.sim.hold(late_ns).await;
        }
        process.back(what, begin_ns).await;
    }
}
