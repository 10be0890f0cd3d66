//! Runs of a study's arms on a machine, block by block, into evidence.
//!
//! ```text
//!   block 3:  arm "off"  Simulation(seed of replication 3) --.
//!             arm "on"   Simulation(seed of replication 3) --+--> calls/b000003.parquet
//!                                                            |    waits/b000003.parquet
//!                                                            '--> metrics/b000003.parquet
//! ```
//!
//! A block is a replication: all its arms have the same seed, so that sessions think, change and read the same in each
//! (common random numbers) and the arms differ only by their settings. Blocks have different seeds and are independent
//! of each other; they may run in any order and in several threads at once, with the same result to the byte.
//!
//! **Time in evidence.** Virtual time is shown as if it had passed after 1970: block *i* begins at day *i*, and within
//! a block one arm follows the other. The times of a block longer than a day overlap with the next one's; nothing else
//! depends on them.
//!
//! **Memory** is constant: rows are written as they arrive, 65,536 at a time.
//!
//! **Invariants** at the end of each arm: Little's law at every station; every session's elapsed time = CPU + waits;
//! redo written = redo and waste in the blocks written, and never more than was made; pages of every flash card and
//! lines of every cache add up, and so do the contents of cells. A violation is an error of this product, and the block
//! leaves nothing behind.

mod arm;
mod beside;
mod recorder;
pub mod rig;
pub mod rig_facts;
mod spec;
mod stations;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use serde::Serialize;

use crate::kernel::SimError;
use crate::kernel::streams::Streams;
use crate::machine::{Machine, MachineError};
use recorder::Recorder;
pub use spec::{Arm, Spec};

/// Time span reserved for a block: a day [ns].
pub const BLOCK_NS: i64 = 86_400_000_000_000;

/// Largest number of transactions of a session in a block.
const TRANSACTIONS_MOST: u64 = 1_000_000_000;

/// Error of a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The specification is invalid.
    #[error("{0}")]
    Spec(String),
    /// A machine, a setting or a workload is invalid.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The simulation cannot continue.
    #[error("arm {arm}: {source}")]
    Simulation {
        /// Name of the arm.
        arm: String,
        /// Error of the simulation.
        source: SimError,
    },
    /// Evidence cannot be written.
    #[error(transparent)]
    Evidence(#[from] dyno_evidence::EvidenceError),
    /// A cell refuses a command.
    #[error(transparent)]
    Cell(#[from] crate::cell::CellError),
    /// The thread of a rig has ended.
    #[error("the simulated storage has stopped; please report this defect of dbdyno")]
    Gone,
    /// An invariant is violated.
    #[error("arm {arm}: {what} does not hold; please report this defect of dbdyno")]
    Broken {
        /// Name of the arm.
        arm: String,
        /// Description of the violation.
        what: String,
    },
}

impl RunError {
    /// Returns an error about an arm.
    fn arm(name: &str, what: &str) -> Self {
        Self::Spec(format!("arm {name}: {what}"))
    }
}

/// Result of a block.
#[derive(Clone, Debug, Serialize)]
pub struct Block {
    /// Number of calls written.
    pub rows: u64,
    /// Number of waits written.
    pub waits: u64,
    /// Report on each arm.
    pub report: Report,
    /// Start of the block [ns since 1970].
    pub started_ns: i64,
    /// End of the block [ns since 1970].
    pub ended_ns: i64,
    /// Hash of everything that happened, with its times: equal for equal version, plan and seed.
    pub hash: String,
    /// Invariants that were checked, and how often.
    pub invariants: Invariants,
    /// True if the block was stopped on request; nothing was written in this case.
    pub stopped: bool,
}

/// Report on the arms of a block, in the same form as the report of a load on a live engine.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Reports in the order of the arms.
    pub arms: Vec<ArmReport>,
    /// Always 0 in the model.
    pub reconnects: u64,
}

/// Report on one arm of a block.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ArmReport {
    /// Arm number.
    pub arm: u16,
    /// Number of counted transactions.
    pub transactions: u64,
    /// Always 0 in the model.
    pub errors: u64,
    /// Always 0 in the model.
    pub retries: u64,
    /// Always 0 in the model.
    pub skipped: u64,
    /// Sum over sessions of the time from the end of the warm-up to the end of the last transaction [ns].
    pub busy_ns: u64,
    /// Always 0 in the model.
    pub lag_max_ns: i64,
    /// Always missing in the model.
    pub first_error: Option<String>,
    /// Virtual time of the arm with its warm-up [ns].
    pub virtual_ns: u64,
    /// Number of events.
    pub events: u64,
}

/// Invariants that were checked, and whether they held.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Invariants {
    /// True if Little's law held at each station.
    pub little: bool,
    /// Number of stations checked.
    pub stations: u64,
    /// True if elapsed time = CPU time + waits held for each session.
    pub ledgers: bool,
    /// Number of sessions checked.
    pub sessions: u64,
    /// True if redo, pages of flash and lines of caches added up.
    pub conservation: bool,
}

/// Request to stop, and progress; both may be used from other threads.
#[derive(Debug, Default)]
pub struct Control {
    /// Set this to end the run soon.
    pub stop: AtomicBool,
    /// Number of transactions done.
    pub progress: AtomicU64,
}

/// A checked run, ready for its blocks.
#[derive(Clone, Debug)]
pub struct Run {
    spec: Spec,
    /// Machine of each arm.
    machines: Vec<Machine>,
}

impl Run {
    /// Checks a specification, its machine, and every arm's settings.
    ///
    /// # Errors
    /// The specification is invalid: its machine, a setting or a workload.
    pub fn new(spec: Spec) -> Result<Self, RunError> {
        let machine = Machine::parse(&spec.machine)?;
        let warmups = spec.arms.iter().filter_map(|arm| arm.warmup_transactions);
        let most = warmups.chain([spec.transactions, spec.warmup_transactions]).max();
        if most > Some(TRANSACTIONS_MOST) {
            return Err(RunError::Spec(format!("{TRANSACTIONS_MOST} transactions of a session in a block, at most")));
        }
        if spec.arms.is_empty() || spec.transactions == 0 {
            return Err(RunError::Spec("a run must have at least one arm and one transaction".into()));
        }
        let machines = spec.arms.iter().map(|arm| {
            let mut machine = machine.clone();
            machine.set_all(arm.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())))?;
            if arm.sessions == 0 || arm.sessions > u32::from(u16::MAX) {
                return Err(RunError::arm(&arm.name, &format!("1 to {} sessions", u16::MAX)));
            }
            arm.workload.check().map_err(|error| RunError::arm(&arm.name, &error.to_string()))?;
            // What only the devices can tell, they tell now and not within a run.
            machine.try_storage()?;
            Ok(machine)
        });
        let machines = machines.collect::<Result<_, RunError>>()?;
        Ok(Self { spec, machines })
    }

    /// Reads and checks a specification from JSON.
    ///
    /// # Errors
    /// The JSON or the specification is invalid.
    pub fn from_json(json: &str) -> Result<Self, RunError> {
        Self::new(serde_json::from_str(json).map_err(|error| RunError::Spec(error.to_string()))?)
    }

    /// Runs all arms of a block and writes `calls/`, `waits/` and `metrics/` below `folder`.
    ///
    /// # Errors
    /// The simulation cannot continue, an invariant is violated, or the evidence cannot be written.
    pub fn block(&self, index: u32, folder: &Path, control: &Control) -> Result<Block, RunError> {
        let seed = Streams::replication_seed(self.spec.seed, u64::from(index));
        let names: Vec<String> = self.spec.arms.iter().map(|arm| arm.name.clone()).collect();
        let started_ns = i64::from(index) * BLOCK_NS;
        let statements = [self.spec.arms[0].workload.kind().to_owned()];
        let recorder = Recorder::create(folder, index, &names, &statements)?;
        let mut block = Block {
            rows: 0,
            waits: 0,
            report: Report::default(),
            started_ns,
            ended_ns: started_ns,
            hash: String::new(),
            invariants: Invariants { little: true, ledgers: true, conservation: true, ..Invariants::default() },
            stopped: false,
        };
        let mut hash = 0_u64;
        for (number, machine) in self.machines.iter().enumerate() {
            let turn = arm::Turn { number, seed, started_ns: block.ended_ns, spec: &self.spec };
            let Some(done) = turn.run(machine, &recorder, control, &mut block.invariants)? else {
                block.stopped = true;
                return Ok(block);
            };
            hash = hash.rotate_left(7) ^ done.hash;
            let ended_ns = block.ended_ns.checked_add_unsigned(done.report.virtual_ns);
            block.ended_ns =
                ended_ns.ok_or_else(|| RunError::Spec(format!("block {index}: no time is left after 2262")))?;
            block.report.arms.push(done.report);
        }
        block.hash = format!("{hash:016x}");
        (block.rows, block.waits) = recorder.finish(folder)?;
        Ok(block)
    }
}
