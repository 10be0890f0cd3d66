//! Databases beside `ORCL` in an arm. They work from the beginning, and their counters are read three times: at the end
//! of the warm-up, when the first session of `ORCL` ends, and at the end.
//!
//! Between the first two readings all sessions of all databases work, so shares of the storage must be computed from
//! these two readings. Later `ORCL` has fewer and fewer sessions, and leaves the storage to the others.

use std::cell::Cell;
use std::rc::Rc;

use super::recorder::Recorder;
use crate::cell::Rack;
use crate::database::{Instance, ParameterError};
use crate::kernel::Sim;
use crate::machine::{Built, DATABASE, Neighbour};
use crate::workload::Progress;

/// A running database beside `ORCL`.
struct Other {
    name: String,
    instance: Instance,
    progress: Progress,
    /// Number of transactions at the end of the warm-up.
    warm: Cell<u64>,
}

/// Databases beside `ORCL` in an arm's turn.
pub struct Beside {
    arm: u16,
    sim: Sim,
    recorder: Rc<Recorder>,
    rack: Option<Rc<Rack>>,
    others: Vec<Other>,
    own: std::cell::OnceCell<Progress>,
}

impl Beside {
    /// Starts the databases; an error contains the database's name.
    ///
    /// # Errors
    /// A parameter has an impossible value.
    pub fn start(
        arm: u16,
        sim: &Sim,
        built: &Built,
        recorder: &Rc<Recorder>,
    ) -> Result<Rc<Self>, (String, ParameterError)> {
        let start = |database: &Neighbour| {
            let Neighbour { name, instance, .. } = database;
            let progress = database.work(sim).map_err(|error| (name.clone(), error))?;
            let (name, instance) = (name.clone(), instance.clone());
            Ok(Other { name, instance, progress, warm: Cell::new(0) })
        };
        Ok(Rc::new(Self {
            arm,
            sim: sim.clone(),
            recorder: Rc::clone(recorder),
            rack: built.rack.clone(),
            others: built.beside.iter().map(start).collect::<Result<_, _>>()?,
            own: std::cell::OnceCell::new(),
        }))
    }

    /// Sets the progress of `ORCL`, whose sessions have started.
    pub fn set_own(&self, progress: &Progress) {
        self.own.get_or_init(|| progress.clone());
    }

    /// Records the end of the warm-up.
    pub fn warm(&self) {
        for other in &self.others {
            other.instance.reset();
            other.warm.set(other.progress.transactions());
        }
        self.read();
    }

    /// Records the end of the first session of `ORCL`.
    pub fn first_ends(&self) {
        self.read();
        if let Some(rack) = self.rack.as_ref().filter(|_| !self.others.is_empty()) {
            self.recorder.cells(self.arm, rack, self.sim.now_ns());
        }
    }

    /// Writes the number of transactions of each database since the warm-up, if there are several databases.
    pub fn read(&self) {
        if self.others.is_empty() {
            return;
        }
        let now_ns = self.sim.now_ns();
        let own = self.own.get().map_or(0, Progress::transactions);
        self.recorder.database(self.arm, DATABASE, own, now_ns);
        for Other { name, progress, warm, .. } in &self.others {
            let transactions = progress.transactions() - warm.get();
            self.recorder.database(self.arm, name, transactions, now_ns);
        }
    }
}
