//! One arm of a block: a machine, its sessions, and the checks at the end.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use super::beside::Beside;
use super::recorder::Recorder;
use super::spec::Spec;
use super::{ArmReport, Control, Invariants, RunError};
use crate::database::Instance;
use crate::database::log_files::HEADER_BYTES;
use crate::kernel::Simulation;
use crate::machine::{Built, Machine};
use crate::workload::{Limit, Progress, Stop};

/// Turn of an arm in a block.
pub struct Turn<'a> {
    pub number: usize,
    pub seed: u64,
    /// Virtual time 0 of the arm [ns since 1970].
    pub started_ns: i64,
    pub spec: &'a Spec,
}

/// Result of a turn.
pub struct Done {
    pub report: ArmReport,
    pub hash: u64,
}

impl Turn<'_> {
    /// Runs the turn; returns `None` if the run was asked to stop.
    ///
    /// # Errors
    /// The simulation cannot continue, or an invariant is violated.
    pub fn run(
        &self,
        machine: &Machine,
        recorder: &Rc<Recorder>,
        control: &Control,
        held: &mut Invariants,
    ) -> Result<Option<Done>, RunError> {
        let arm = &self.spec.arms[self.number];
        let simulation = Simulation::new(self.seed);
        recorder.turn(self.number as u16, self.started_ns);
        let built = machine.build(&simulation, Rc::<Recorder>::clone(recorder))?;
        let beside = Beside::start(self.number as u16, &simulation, &built, recorder);
        let beside = beside.map_err(|(name, error)| RunError::arm(&arm.name, &format!("{name}: {error}")))?;
        let progress = self.spawn(&simulation, &built, &beside, recorder)?;
        let mut told = 0;
        let mut tell = || {
            let new = progress.transactions() - told;
            told += new;
            control.progress.fetch_add(new, Ordering::Relaxed);
        };
        let ended = simulation.run_while(|| {
            tell();
            !control.stop.load(Ordering::Relaxed) && !recorder.has_failed()
        });
        tell();
        let fail = |source| RunError::Simulation { arm: arm.name.clone(), source };
        if !ended.map_err(fail)? {
            return Ok(None);
        }
        let events = simulation.events();
        let virtual_ns = simulation.now_ns();
        self.measure(&simulation, &built, &progress, recorder, held)?;
        beside.read();
        let warm_ns = progress.warm_ns().unwrap_or(0);
        let report = ArmReport {
            arm: self.number as u16,
            transactions: progress.transactions(),
            busy_ns: (virtual_ns - warm_ns).saturating_mul(u64::from(arm.sessions)),
            virtual_ns,
            events,
            ..ArmReport::default()
        };
        Ok(Some(Done { report, hash: simulation.hash() }))
    }

    /// Starts the sessions; counting begins at the end of their warm-up.
    fn spawn(
        &self,
        simulation: &Simulation,
        built: &Built,
        beside: &Rc<Beside>,
        recorder: &Rc<Recorder>,
    ) -> Result<Progress, RunError> {
        let arm = &self.spec.arms[self.number];
        let (counter, sim, rack) = (Rc::clone(recorder), simulation.sim().clone(), built.rack.clone());
        let (warm, ended) = (Rc::clone(beside), Rc::clone(beside));
        let limit = Limit::Transactions(self.spec.transactions);
        let number = self.number as u16;
        let warmup = arm.warmup_transactions.unwrap_or(self.spec.warmup_transactions);
        let stop = Stop::new(warmup, limit).when_warm(move || {
            counter.count_from(sim.now_ns());
            warm.warm();
            if let Some(rack) = &rack {
                rack.reset();
                counter.cells(number, rack, sim.now_ns());
            }
        });
        let stop = stop.when_first_ends(move || ended.first_ends());
        let progress = arm.workload.spawn(simulation, &built.instance, arm.sessions, &stop);
        let progress = progress.map_err(|error| RunError::arm(&arm.name, &error.to_string()))?;
        beside.set_own(&progress);
        Ok(progress)
    }

    /// Writes the statistics of stations and cells, and checks the invariants.
    fn measure(
        &self,
        simulation: &Simulation,
        built: &Built,
        progress: &Progress,
        recorder: &Recorder,
        held: &mut Invariants,
    ) -> Result<(), RunError> {
        let arm = &self.spec.arms[self.number];
        let broken = |what: String| RunError::Broken { arm: arm.name.clone(), what };
        let (now_ns, number) = (simulation.now_ns(), self.number as u16);
        for report in built.reports() {
            recorder.station(number, &report, now_ns);
            held.stations += 1;
            if !report.little {
                return Err(broken(format!("Little's law at {}", report.name)));
            }
        }
        held.sessions += u64::from(arm.sessions);
        if progress.unaccounted() > 0 {
            return Err(broken(format!("elapsed = CPU + waits of {}", progress.unaccounted())));
        }
        conserved(&built.instance).map_err(broken)?;
        for other in &built.beside {
            conserved(&other.instance).map_err(|what| broken(format!("{}: {what}", other.name)))?;
        }
        if let [first, ..] = built.broken()[..] {
            return Err(broken(format!("the book-keeping of {first}")));
        }
        if let Some(rack) = &built.rack {
            recorder.cells(number, rack, now_ns);
            if !rack.holds() {
                return Err(broken("the book-keeping of the cells".into()));
            }
        }
        Ok(())
    }
}

/// Checks that no redo is lost; the error describes the loss.
fn conserved(instance: &Instance) -> Result<(), String> {
    let redo = instance.redo();
    let (counts, parameters) = (redo.counts(), &instance.parameters().redo);
    let room = counts.blocks * (parameters.block_bytes - HEADER_BYTES);
    if room != counts.redo_bytes + counts.wasted_bytes {
        return Err("redo + waste = room of the blocks written".into());
    }
    if redo.safe() > redo.written_bytes() || counts.redo_bytes > redo.written_bytes() {
        return Err("redo written <= redo made".into());
    }
    Ok(())
}
