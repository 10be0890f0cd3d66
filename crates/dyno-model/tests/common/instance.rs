//! A database instance for tests: its devices have known times, and all its waits and calls are recorded.

use std::cell::RefCell;
use std::rc::Rc;

use dyno_model::database::{Call, Event, Instance, InstanceParameters, Process, Sink, Storage, Wait};
use dyno_model::device::Device;
use dyno_model::device::cache::{Cache, CacheParameters};
use dyno_model::device::disk::{Disk, DiskParameters};
use dyno_model::device::empirical::{Empirical, EmpiricalParameters, Regime};
use dyno_model::kernel::Simulation;
use dyno_model::kernel::sample::Times;

/// A sink that keeps all records of waits and calls.
#[derive(Default)]
pub struct Heard {
    pub waits: RefCell<Vec<Wait>>,
    pub calls: RefCell<Vec<Call>>,
}

impl Sink for Heard {
    fn wait(&self, wait: &Wait) {
        self.waits.borrow_mut().push(*wait);
    }

    fn call(&self, call: &Call) {
        self.calls.borrow_mut().push(*call);
    }
}

/// Returns a device whose requests take `fixed_us` plus a transfer time for their bytes; only one request is
/// transferred at a time.
pub fn memory(simulation: &Simulation, name: &str, fixed_us: f64, rate_mb_s: f64) -> Rc<dyn Device> {
    let disk = Disk::new(simulation, name, DiskParameters::default());
    // It never writes to its disk.
    let (capacity_kb, start_ratio, flush_s) = (1 << 30, 1.0, 0.0);
    let (hit_us, command_us) = (fixed_us, 0.0);
    let more = CacheParameters::default();
    let parameters = CacheParameters { capacity_kb, start_ratio, flush_s, hit_us, command_us, rate_mb_s, ..more };
    Cache::new(simulation, name, parameters, disk)
}

/// Returns a device with this many servers and these service times.
pub fn station(simulation: &Simulation, name: &str, servers: u64, (read, write): (Times, Times)) -> Rc<dyn Device> {
    let regimes = vec![Regime { read, write, stay_ms: 0.0, write_us_per_kb: 0.0, time_factor: 0.0 }];
    let parameters = EmpiricalParameters { capacity_gb: 100.0, servers, regimes };
    Empirical::new(simulation, name, parameters)
}

/// Returns the distribution of a constant time [us].
pub fn constant(us: f64) -> Times {
    Times::Constant { us }
}

/// Returns the parameters of an instance in which only sessions use CPU time, with one public redo strand and no
/// private strands.
pub fn bare() -> InstanceParameters {
    let mut parameters = InstanceParameters { cores: 1_000_000, ..Default::default() };
    let redo = &mut parameters.redo;
    (redo.gather_us, redo.post_us, redo.allocate_us, redo.copy_us_per_kb) = (0.0, 0.0, 0.0, 0.0);
    (redo.strands, redo.private_kb, redo.commit_bytes) = (1, 0, 1);
    (parameters.buffers.get_us, parameters.buffers.write_us) = (0.0, 0.0);
    parameters
}

/// A simulated database instance under test, with the records of its waits and calls.
pub struct Bench {
    pub simulation: Simulation,
    pub instance: Instance,
    pub heard: Rc<Heard>,
}

impl Bench {
    pub fn new(seed: u64, parameters: InstanceParameters, storage: impl FnOnce(&Simulation) -> Storage) -> Self {
        let simulation = Simulation::new(seed);
        let storage = storage(&simulation);
        let heard = Rc::new(Heard::default());
        let instance = Instance::new(&simulation, parameters, storage, Rc::<Heard>::clone(&heard)).unwrap();
        Self { simulation, instance, heard }
    }

    /// Returns an instance whose log device takes `fixed_us` plus a time for the bytes.
    pub fn on_memory(seed: u64, parameters: InstanceParameters, fixed_us: f64, rate_mb_s: f64) -> Self {
        Self::new(seed, parameters, |simulation| {
            let data = memory(simulation, "data", 100.0, 1e12);
            let redo = vec![memory(simulation, "log", fixed_us, rate_mb_s)];
            Storage { redo, temp: Rc::clone(&data), data }
        })
    }

    /// Returns the mean time of an event [ms].
    pub fn mean_ms(&self, event: Event) -> f64 {
        let waits = self.heard.waits.borrow();
        let times: Vec<u64> = waits.iter().filter(|wait| wait.event == event).map(|wait| wait.elapsed_ns).collect();
        times.iter().sum::<u64>() as f64 / times.len() as f64 / 1e6
    }

    /// Returns the time that sessions waited for an event [s].
    pub fn seconds(&self, event: Event) -> f64 {
        let waits = self.heard.waits.borrow();
        let of = waits.iter().filter(|wait| wait.event == event && matches!(wait.process, Process::Session(_)));
        of.map(|wait| wait.elapsed_ns as f64 / 1e9).sum()
    }

    /// Checks that all redo is either written or in the buffer, and that the written blocks consist of redo and waste.
    pub fn assert_redo_is_conserved(&self) {
        let redo = self.instance.redo();
        let counts = redo.counts();
        assert_eq!(redo.written_bytes(), counts.redo_bytes + redo.unflushed_bytes());
        let block_bytes = self.instance.parameters().redo.block_bytes;
        assert_eq!(counts.blocks * (block_bytes - 16), counts.redo_bytes + counts.wasted_bytes);
        assert!(self.instance.report().little);
    }
}
