//! One arm of a block: a machine, an instance, its sessions, and what is checked at the end.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use dyno_evidence::{Call, CallKind};

use super::recorder::{Object, Recorder};
use super::spec::{Arm, Spec, Workload};
use super::{ArmReport, Control, Invariants, RunError};
use crate::database::{Redo, Session};
use crate::kernel::condition::Latch;
use crate::kernel::{Resource, Simulation};
use crate::machine::Machine;

/// An arm's turn in a block.
pub struct Turn<'a> {
    pub number: usize,
    pub seed: u64,
    pub started_ns: i64,
    pub spec: &'a Spec,
}

/// What came out of it.
pub struct Done {
    pub report: ArmReport,
    pub hash: u64,
}

/// Transactions after which progress is told and a wish to stop is looked for.
const STEP: u64 = 256;

/// Checks a workload.
pub fn check(arm: &Arm) -> Result<(), RunError> {
    let Workload::CommitLoop { redo_bytes, .. } = &arm.workload;
    let Ok(1..) = redo_bytes.parse::<u64>() else {
        return Err(RunError::Spec(format!("arm {}: redo_bytes = {redo_bytes}", arm.name)));
    };
    Ok(())
}

impl Turn<'_> {
    /// Runs it; `None` if somebody wished to stop.
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
        let storage = Rc::new(machine.build(&simulation)?);
        let cores = Resource::new(&simulation, "cores", machine.cores());
        let (redo_parameters, sink) = (machine.redo()?, recorder.wait_sink(Object::Lgwr));
        let device = Rc::clone(&storage.redo[0]);
        let redo = Redo::new(&simulation, redo_parameters, &cores, device, sink);
        let Workload::CommitLoop { redo_bytes, think_ms, cpu_us } = &arm.workload;
        let bytes: u64 = redo_bytes.parse().unwrap_or(512);
        let (think_ns, cpu_ns) = (think_ms * 1e6, (cpu_us * 1e3) as u64);
        let warm = Latch::new(&simulation, "the others' warm-up", arm.sessions);
        let busy = Rc::new(Cell::new(0));
        let done = Rc::new(Cell::new(0_u64));
        let accounted = Rc::new(Cell::new(true));
        for number in 1..=arm.sessions {
            let sink = recorder.wait_sink(Object::Session);
            let mut session = Session::new(&simulation, number, &cores, &redo, sink);
            let mut dice = simulation.stream(&format!("session {number}/think"));
            let (sim, recorder) = (simulation.sim().clone(), Rc::clone(recorder));
            let (warm, storage, cores) = (warm.clone(), Rc::clone(&storage), cores.clone());
            let (busy, done, accounted) =
                (Rc::clone(&busy), Rc::clone(&done), Rc::clone(&accounted));
            let (warm_up, all) = (self.spec.warmup_transactions, self.spec.transactions);
            simulation.spawn(format!("session {number}"), async move {
                let mut since_ns = 0;
                for turn in 0..warm_up + all {
                    if turn == warm_up {
                        warm.count_down();
                        if warm.is_open() {
                            storage.reset();
                            cores.reset();
                            recorder.count_from(sim.now_ns());
                        }
                        let begin_ns = sim.now_ns();
                        warm.wait().await;
                        session.idle_since(begin_ns);
                        since_ns = sim.now_ns();
                    }
                    if think_ns > 0.0 {
                        session.think(dice.exponential(think_ns) as u64).await;
                    }
                    let begin_ns = sim.now_ns();
                    if cpu_ns > 0 {
                        session.compute(cpu_ns).await;
                    }
                    let commit_ns = sim.now_ns();
                    session.commit(bytes).await;
                    let now_ns = sim.now_ns();
                    let mut call = Call {
                        started_ns: commit_ns as i64,
                        elapsed_ns: (now_ns - commit_ns) as i64,
                        redo_bytes: bytes as i64,
                        session: number as u16 - 1,
                        kind: CallKind::Commit,
                        ..Call::new()
                    };
                    recorder.call(call);
                    call.started_ns = begin_ns as i64;
                    call.elapsed_ns = (now_ns - begin_ns) as i64;
                    call.kind = CallKind::Transaction;
                    recorder.call(call);
                    done.set(done.get() + u64::from(turn >= warm_up));
                }
                busy.set(busy.get() + sim.now_ns() - since_ns);
                accounted.set(accounted.get() && session.ledger().holds(sim.now_ns()));
            });
        }
        let mut told = 0;
        let ended = simulation.run_while(|| {
            let new = done.get() - told;
            if new >= STEP {
                told += new;
                control.progress.fetch_add(new, Ordering::Relaxed);
            }
            !control.stop.load(Ordering::Relaxed) && !recorder.has_failed()
        });
        let ended =
            ended.map_err(|source| RunError::Simulation { arm: arm.name.clone(), source })?;
        control.progress.fetch_add(done.get() - told, Ordering::Relaxed);
        if !ended {
            return Ok(None);
        }
        let now_ns = simulation.now_ns();
        let at_ns = recorder.at_ns(now_ns);
        let mut reports = storage.reports();
        reports.push(cores.report());
        for report in &reports {
            recorder.stations.borrow_mut().station(self.number as u16, at_ns, report);
            held.stations += 1;
            if !report.little {
                let what = format!("Little's law at {}", report.name);
                return Err(RunError::Broken { arm: arm.name.clone(), what });
            }
        }
        held.sessions += arm.sessions;
        if !accounted.get() {
            let what = "elapsed = CPU + waits".into();
            return Err(RunError::Broken { arm: arm.name.clone(), what });
        }
        let report = ArmReport {
            arm: self.number as u16,
            transactions: done.get(),
            busy_ns: busy.get(),
            virtual_ns: now_ns,
            events: simulation.events(),
            ..ArmReport::default()
        };
        Ok(Some(Done { report, hash: simulation.hash() }))
    }
}
