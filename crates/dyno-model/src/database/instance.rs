//! Database instance: its parameters, its storage, its background processes.

use std::rc::Rc;

use super::buffer_parameters::BufferParameters;
use super::buffers::BufferCache;
use super::checkpoint::Checkpoint;
use super::cpu::{Cpu, SchedulerParameters};
use super::redo::Redo;
use super::redo_parameters::RedoParameters;
use super::task::Task;
use super::wait::{Ledger, Process, Recorder, Sink};
use super::{dbwr, lgwr};
use crate::device::{Device, parameters};
use crate::kernel::streams::fnv1a;
use crate::kernel::{Sim, StationReport, Stream};

parameters! {
    /// Parameters of an instance.
    pub struct InstanceParameters {
        /// number of cores of the host
        cores: u64 = 16, from "chosen", in 1.0..=4_096.0;
        /// true if the log writer is of the real-time class: first in the run queue, preempts any other process
        lgwr_first: bool = false, from "Oracle: off by default before 12c; set by nice or _high_priority_processes";
        /// true if reads have the event names of storage cells
        cells: bool = false, from "chosen: Exadata or not";
        /// scheduler of the cores
        scheduler: SchedulerParameters = SchedulerParameters::default(), from "a table of its own";
        /// the redo path
        redo: RedoParameters = RedoParameters::default(), from "a table of its own";
        /// buffer cache and database writer
        buffers: BufferParameters = BufferParameters::default(), from "a table of its own";
    }
}

impl InstanceParameters {
    /// Checks the parameters.
    ///
    /// # Errors
    /// A parameter has an impossible value.
    pub fn check(&self) -> Result<(), ParameterError> {
        let (redo, buffers) = (&self.redo, &self.buffers);
        let at_least = |key: &'static str, found: u64, least: u64| {
            let allowed = format!("{least} or more");
            (found < least).then(|| ParameterError { key, found: found.to_string(), allowed })
        };
        let above_0 = |key: &'static str, found: f64| {
            let allowed = "a number above 0".to_owned();
            let good = found.is_finite() && found > 0.0;
            (!good).then(|| ParameterError { key, found: found.to_string(), allowed })
        };
        let wrong = [
            at_least("cores", self.cores, 1),
            above_0("scheduler.slice_ms", self.scheduler.slice_ms),
            at_least("redo.buffer_kb", redo.buffer_kb, 64),
            at_least("redo.strands", redo.strands, 1),
            at_least("redo.block_bytes", redo.block_bytes, 512),
            at_least("redo.trigger_kb", redo.trigger_kb, 1),
            at_least("redo.write_kb", redo.write_kb, 1),
            at_least("redo.groups", redo.groups, 2),
            at_least("redo.file_mb", redo.file_mb, 1),
            above_0("redo.timeout_s", redo.timeout_s),
            above_0("redo.checkpoint_lag", redo.checkpoint_lag),
            at_least("buffers.buffers", buffers.buffers, 1),
            at_least("buffers.block_bytes", buffers.block_bytes, 512),
            at_least("buffers.writes", buffers.writes, 1),
            at_least("buffers.multiblock", buffers.multiblock, 1),
            at_least("buffers.dirty_queue", buffers.dirty_queue, 1),
        ];
        if let Some(error) = wrong.into_iter().flatten().next() {
            return Err(error);
        }
        let at_most = |key: &'static str, found: u64, most: u64| {
            let allowed = format!("{most} or less");
            (found > most).then(|| ParameterError { key, found: found.to_string(), allowed })
        };
        let strand_kb = redo.buffer_kb / 32;
        let wrong = [
            at_most("redo.strands", redo.strands, strand_kb),
            at_most("redo.block_bytes", redo.block_bytes, 65_536),
            at_most("redo.groups", redo.groups, 1_000),
            at_most("buffers.buffers", buffers.buffers, 1 << 30),
        ];
        wrong.into_iter().flatten().next().map_or(Ok(()), Err)
    }
}

/// A parameter with an impossible value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {found}: must be {allowed}")]
pub struct ParameterError {
    /// Key of the parameter.
    pub key: &'static str,
    /// Value of the parameter.
    pub found: String,
    /// Values that are allowed.
    pub allowed: String,
}

/// Devices that hold the files of an instance.
#[derive(Clone)]
pub struct Storage {
    /// Members of the log group: a write goes to each of them, and the slowest determines its time.
    pub redo: Vec<Rc<dyn Device>>,
    /// Data files and control file.
    pub data: Rc<dyn Device>,
    /// Temporary space.
    pub temp: Rc<dyn Device>,
}

struct Inner {
    sim: Sim,
    /// Prefix of the names of the instance's processes, streams and stations.
    prefix: String,
    parameters: InstanceParameters,
    storage: Storage,
    cpu: Cpu,
    recorder: Recorder,
    redo: Redo,
    buffers: BufferCache,
    checkpoint: Checkpoint,
    writers: [super::wait::Account; 2],
}

/// A running instance; clones share it.
#[derive(Clone)]
pub struct Instance(Rc<Inner>);

impl Instance {
    /// Starts an instance with empty buffers and log.
    ///
    /// # Errors
    /// A parameter has an impossible value.
    pub fn new(
        sim: &Sim,
        parameters: InstanceParameters,
        storage: Storage,
        sink: Rc<dyn Sink>,
    ) -> Result<Self, ParameterError> {
        Self::named(sim, "", parameters, storage, sink)
    }

    /// Starts one of several instances in a run; `name` distinguishes its random streams and its run queue from those
    /// of the others.
    ///
    /// # Errors
    /// A parameter has an impossible value.
    pub fn named(
        sim: &Sim,
        name: &str,
        parameters: InstanceParameters,
        storage: Storage,
        sink: Rc<dyn Sink>,
    ) -> Result<Self, ParameterError> {
        let prefix = if name.is_empty() { String::new() } else { format!("{name} ") };
        parameters.check()?;
        if storage.redo.is_empty() {
            let allowed = "one device or more".to_owned();
            return Err(ParameterError { key: "redo members", found: "none".into(), allowed });
        }
        let recorder = Recorder::new(sink);
        let cpu = Cpu::new(sim, &format!("{prefix}cpu"), parameters.cores, &parameters.scheduler);
        let checkpoint = Checkpoint::new(sim);
        let (members, data) = (storage.redo.clone(), &storage.data);
        let redo = Redo::new(sim, &parameters.redo, members, Rc::clone(data), &checkpoint);
        let buffers = BufferCache::new(sim, &parameters.buffers, Rc::clone(data), &redo, &checkpoint, parameters.cells);
        let first = parameters.lgwr_first;
        let log_writer = Task::new(sim, &cpu, Process::LogWriter, first, &recorder);
        let writer = Task::new(sim, &cpu, Process::DatabaseWriter, false, &recorder);
        let writers = [log_writer.account().clone(), writer.account().clone()];
        sim.spawn_daemon(format!("{prefix}lgwr"), lgwr::run(redo.clone(), log_writer));
        sim.spawn_daemon(format!("{prefix}dbwr"), dbwr::run(buffers.clone(), writer));
        let sim = sim.clone();
        Ok(Self(Rc::new(Inner { sim, prefix, parameters, storage, cpu, recorder, redo, buffers, checkpoint, writers })))
    }

    /// Returns the process of a new session, which begins now.
    pub(super) fn task(&self, number: u32) -> Task {
        let Inner { sim, cpu, recorder, .. } = &*self.0;
        Task::new(sim, cpu, Process::Session(number), false, recorder)
    }

    /// Returns the handle of the simulation.
    pub fn sim(&self) -> &Sim {
        &self.0.sim
    }

    /// Returns a random stream of this instance.
    pub fn stream(&self, name: &str) -> Stream {
        self.0.sim.stream(&format!("{}{name}", self.0.prefix))
    }

    /// Returns the parameters.
    pub fn parameters(&self) -> &InstanceParameters {
        &self.0.parameters
    }

    /// Returns the storage.
    pub fn storage(&self) -> &Storage {
        &self.0.storage
    }

    /// Returns the log buffer with the log writer's counters.
    pub fn redo(&self) -> &Redo {
        &self.0.redo
    }

    /// Returns the buffer cache with the database writer's counters.
    pub fn buffers(&self) -> &BufferCache {
        &self.0.buffers
    }

    /// Returns the checkpoint queue.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.0.checkpoint
    }

    /// Returns the ledgers of the log writer and of the database writer.
    pub fn writers(&self) -> [Ledger; 2] {
        let [log_writer, writer] = &self.0.writers;
        [log_writer.ledger(), writer.ledger()]
    }

    /// Starts or stops recording waits and calls.
    pub fn record(&self, on: bool) {
        self.0.recorder.set_open(on);
    }

    /// Returns the statistics of the run queue; devices report separately.
    pub fn report(&self) -> StationReport {
        self.0.cpu.report()
    }

    /// Resets the statistics of the run queue and of the devices at the end of a warm-up.
    pub fn reset(&self) {
        self.0.cpu.reset();
        let Storage { redo, data, temp } = &self.0.storage;
        for device in redo.iter().chain([data, temp]) {
            device.reset();
        }
    }

    /// Returns p1 of the wait for a scan by cells; `None` if there are no cells.
    pub(super) fn cell_hash(&self) -> Option<u64> {
        let hash = fnv1a(self.0.storage.data.name().as_bytes()) >> 32;
        self.0.parameters.cells.then_some(hash)
    }
}
