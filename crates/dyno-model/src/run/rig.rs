//! Rack of cells under a continuous workload, in virtual time, which can be queried and commanded from outside.
//!
//! ```text
//!   any thread                              one thread
//!   advance, collect, facts, command --> [jobs] --> Simulation: sessions, instance, cells
//!                                    <-- answer
//! ```
//!
//! A simulation cannot leave its thread. So the rig has a thread for it, to which jobs are sent one after the other: a
//! command acts between two instants, never within one. Counters begin at time 0 with the cells empty; there is no
//! warm-up. With the same specification and the same jobs at the same virtual times, the results are equal to the byte.
//!
//! Sessions never end, and their waits are not kept: memory is bounded by the content of the cells, however long the
//! rig runs.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::RunError;
use super::rig_facts::CellFacts;
use crate::cell::iorm::Directive;
use crate::cell::metrics::MetricKind;
use crate::cell::parameters::{CacheMode, RackParameters};
use crate::cell::{Caching, CellError, Metric, Rack};
use crate::kernel::Simulation;
use crate::machine::{DATABASE, Machine};
use crate::workload::{Limit, Progress, Stop, Workload};

/// Specification of a rig.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RigSpec {
    /// Machine as TOML, with storage cells.
    pub machine: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Parameters that differ from the machine's: dotted path or short name, and value as text.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Number of sessions.
    pub sessions: u32,
    /// Workload of the sessions, which never end.
    pub workload: Workload,
    /// Other sessions at the same time, on the same database.
    #[serde(default)]
    pub beside: Vec<Beside>,
}

/// Further sessions on the same database.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// Number of sessions.
    pub sessions: u32,
    /// Workload of the sessions, which never end.
    pub workload: Workload,
}

/// Command to one cell, which is named by its number, from 0.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Activates a plan of resource management; an empty one removes it.
    Plan {
        /// Cell number.
        cell: usize,
        /// Directives by database; `other` applies to all databases without a directive.
        plan: BTreeMap<String, Directive>,
    },
    /// Creates or drops the flash log.
    FlashLog {
        /// Cell number.
        cell: usize,
        /// True to create the flash log, false to drop it.
        exists: bool,
    },
    /// Drops the flash cache; no line may be dirty.
    DropFlashCache {
        /// Cell number.
        cell: usize,
    },
    /// Creates an empty flash cache.
    CreateFlashCache {
        /// Cell number.
        cell: usize,
        /// How the cache treats writes.
        mode: CacheMode,
        /// Size [GB].
        size_gb: f64,
    },
    /// Begins to write all dirty lines to disk; until the flush is cancelled, new writes bypass the cache.
    Flush {
        /// Cell number.
        cell: usize,
        /// True to cancel the flush.
        #[serde(default)]
        cancel: bool,
    },
    /// Sets the caching policy of the grid disks of a group.
    Caching {
        /// Cell number.
        cell: usize,
        /// Name of the group.
        group: String,
        /// New caching policy: default or none.
        caching: Caching,
    },
    /// Resets all counters, as a restart of the cell's service does; cached lines stay.
    Restart {
        /// Cell number.
        cell: usize,
    },
}

/// Current state of the rig.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// Virtual time [ns].
    pub now_ns: u64,
    /// Database of the sessions.
    pub database: &'static str,
    /// Number of transactions so far.
    pub transactions: u64,
    /// Number of events so far.
    pub events: u64,
    /// State of the cells.
    pub cells: Vec<CellFacts>,
}

/// Metrics of one cell: object type, object, name, value, unit, kind.
#[derive(Clone, Debug, Serialize)]
pub struct Collected {
    /// Virtual time [ns].
    pub at_ns: u64,
    /// One row per metric and object.
    pub rows: Vec<(&'static str, String, String, f64, &'static str, &'static str)>,
}

/// State of the thread that runs the simulation.
struct Bench {
    simulation: Simulation,
    rack: Rc<Rack>,
    parameters: RackParameters,
    progress: Vec<Progress>,
}

type Job = Box<dyn FnOnce(&mut Bench) + Send>;

/// A continuously running rack; see the [module](self). May be used from several threads.
pub struct Rig {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// Virtual time between two checks of the wall clock [ns].
const SLICE_NS: u64 = 1_000_000;

impl Rig {
    /// Checks the specification, builds the machine and starts the sessions.
    ///
    /// # Errors
    /// The specification is invalid: its machine, a setting or a workload.
    pub fn new(spec: RigSpec) -> Result<Self, RunError> {
        let (jobs, inbox) = channel::<Job>();
        let (told, built) = channel();
        let work = move || {
            let mut bench = match Bench::new(&spec) {
                Ok(bench) => bench,
                Err(error) => return drop(told.send(Err(error))),
            };
            // Who asked for it has gone: then so has the inbox, and the loop ends at once.
            drop(told.send(Ok(())));
            for job in inbox {
                job(&mut bench);
            }
        };
        let thread = std::thread::Builder::new().name("dbdyno rig".into()).spawn(work);
        let thread = thread.map_err(|error| RunError::Spec(format!("no thread: {error}")))?;
        built.recv().map_err(|_| RunError::Gone)??;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Reads a specification from JSON, checks it, and starts the rig.
    ///
    /// # Errors
    /// The JSON or the specification is invalid.
    pub fn from_json(json: &str) -> Result<Self, RunError> {
        Self::new(serde_json::from_str(json).map_err(|error| RunError::Spec(error.to_string()))?)
    }

    fn ask<T: Send + 'static>(&self, what: impl FnOnce(&mut Bench) -> T + Send + 'static) -> Result<T, RunError> {
        let (told, answer) = channel();
        let job: Job = Box::new(move |bench| drop(told.send(what(bench))));
        self.jobs.as_ref().ok_or(RunError::Gone)?.send(job).map_err(|_| RunError::Gone)?;
        answer.recv().map_err(|_| RunError::Gone)
    }

    /// Advances the virtual time by `virtual_ns`, or by less if that would take longer than `wall` by the wall clock;
    /// returns the virtual time reached [ns].
    ///
    /// # Errors
    /// The simulation cannot continue.
    pub fn advance(&self, virtual_ns: u64, wall: Duration) -> Result<u64, RunError> {
        self.ask(move |bench| bench.advance(virtual_ns, wall))?
    }

    /// Returns the current metrics of a cell; its next rates cover the time from now on.
    ///
    /// # Errors
    /// There is no such cell, or the rig has ended.
    pub fn collect(&self, cell: usize) -> Result<Collected, RunError> {
        self.ask(move |bench| bench.collect(cell))
    }

    /// Returns the current state of the rig, apart from its metrics.
    ///
    /// # Errors
    /// The rig has ended.
    pub fn facts(&self) -> Result<Facts, RunError> {
        self.ask(|bench| bench.facts())
    }

    /// Carries out a command.
    ///
    /// # Errors
    /// The cell refuses the command, or the rig has ended.
    pub fn command(&self, command: Command) -> Result<(), RunError> {
        self.ask(move |bench| bench.command(command))?.map_err(RunError::Cell)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Command {
    fn cell(&self) -> usize {
        match *self {
            Self::Plan { cell, .. }
            | Self::FlashLog { cell, .. }
            | Self::DropFlashCache { cell }
            | Self::CreateFlashCache { cell, .. }
            | Self::Flush { cell, .. }
            | Self::Caching { cell, .. }
            | Self::Restart { cell } => cell,
        }
    }
}

impl Bench {
    fn new(spec: &RigSpec) -> Result<Self, RunError> {
        let mut machine = Machine::parse(&spec.machine)?;
        machine.set_all(spec.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())))?;
        let none = || RunError::Spec("this machine has no storage cells".into());
        let parameters = machine.rack()?.ok_or_else(none)?;
        let simulation = Simulation::new(spec.seed);
        let built = machine.build(&simulation, Rc::new(()))?;
        let rack = built.rack.clone().ok_or_else(none)?;
        let wrong = |error: crate::database::ParameterError| RunError::Spec(error.to_string());
        let stop = Stop::new(0, Limit::Transactions(u64::MAX));
        let mut progress = Vec::new();
        let mut first = 0_u32;
        let beside = spec.beside.iter().map(|beside| (&beside.workload, beside.sessions));
        for (workload, sessions) in std::iter::once((&spec.workload, spec.sessions)).chain(beside) {
            let numbers = first..first.saturating_add(sessions);
            first = numbers.end;
            let spawned = workload.spawn_numbered(&simulation, &built.instance, numbers, &stop);
            progress.push(spawned.map_err(wrong)?);
        }
        for database in &built.beside {
            database.work(&simulation).map_err(wrong)?;
        }
        Ok(Self { simulation, rack, parameters, progress })
    }

    fn advance(&mut self, virtual_ns: u64, wall: Duration) -> Result<u64, RunError> {
        let begin = Instant::now();
        let end_ns = self.simulation.now_ns().saturating_add(virtual_ns);
        while self.simulation.now_ns() < end_ns {
            let next_ns = end_ns.min(self.simulation.now_ns() + SLICE_NS);
            self.simulation.run_until(next_ns).map_err(|source| RunError::Simulation { arm: "rig".into(), source })?;
            if begin.elapsed() >= wall {
                break;
            }
        }
        Ok(self.simulation.now_ns())
    }

    fn collect(&self, cell: usize) -> Collected {
        let row = |metric: Metric| {
            let Metric { object_type, object, name, value, unit, kind, .. } = metric;
            let kind = match kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Rate => "rate",
            };
            (object_type, object, name, value, unit, kind)
        };
        let rows = self.rack.collect_cell(cell).into_iter().map(row).collect();
        Collected { at_ns: self.simulation.now_ns(), rows }
    }

    fn facts(&self) -> Facts {
        Facts {
            now_ns: self.simulation.now_ns(),
            database: DATABASE,
            transactions: self.progress.iter().map(Progress::transactions).sum(),
            events: self.simulation.events(),
            cells: self.cells(),
        }
    }

    fn cells(&self) -> Vec<CellFacts> {
        let numbers = 0..self.rack.cells().len();
        numbers.map(|number| CellFacts::new(&self.rack, &self.parameters, number)).collect()
    }

    fn command(&self, command: Command) -> Result<(), CellError> {
        let cells = self.rack.cells();
        let number = command.cell();
        let Some(cell) = cells.get(number) else {
            return Err(CellError::Cell { number, cells: cells.len() });
        };
        match command {
            Command::Plan { plan, .. } => self.rack.set_plan_of(number, plan),
            Command::FlashLog { exists, .. } => cell.set_flash_log(exists),
            Command::DropFlashCache { .. } => cell.drop_flash_cache()?,
            Command::CreateFlashCache { mode, size_gb, .. } => {
                cell.create_flash_cache(mode, size_gb)?;
            }
            Command::Flush { cancel, .. } => {
                cell.write_past(!cancel);
                if !cancel {
                    cell.flush();
                }
            }
            Command::Caching { group, caching, .. } => {
                self.rack.set_caching_of(number, &group, caching)?;
            }
            Command::Restart { .. } => self.rack.reset_cell(number),
        }
        Ok(())
    }
}
