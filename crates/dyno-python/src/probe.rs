//! Python interface of the redo probe: an object that writes the logs of a run block by block, and the recovery of a
//! log.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dyno_load::probe::{self, Counts, Metric, ProbeError, ProbeSpec};
use dyno_load::{Length, Slice};
use pyo3::prelude::*;
use serde::Serialize;

use crate::errors::raise;
use crate::load::SliceArgument;
use crate::values::{from_python, to_python};

/// Object type, object, metric, unit, kind and value.
type Counter = (&'static str, &'static str, &'static str, &'static str, &'static str, u64);

/// Cost of a write on a sink, which writes nothing.
#[derive(Serialize)]
struct Cost {
    commits: u64,
    write_ns: u64,
    cpu_ns: u64,
}

/// Log writers on real files, one per arm.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct Probe {
    spec: ProbeSpec,
    run: u64,
    logs: Mutex<Option<probe::Probe>>,
    stop: AtomicBool,
    progress: AtomicU64,
}

impl Probe {
    fn logs(&self) -> MutexGuard<'_, Option<probe::Probe>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Probe {
    /// Check a specification (`ProbeSpec` of the stub); touch no file. `run` is the id written into every block.
    ///
    /// Raises:
    ///     PlanError: The specification is invalid.
    #[new]
    fn new(py: Python<'_>, spec: &Bound<'_, PyAny>, run: u64) -> PyResult<Self> {
        let spec = from_python::<ProbeSpec>(spec).map_err(|e| ProbeError::unreadable(&e));
        let spec = spec.and_then(|spec| spec.check().map(|()| spec));
        let spec = spec.map_err(|e| raise(py, "PlanError", &e.to_string()))?;
        let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
        Ok(Self { spec, run, logs: Mutex::new(None), stop, progress })
    }

    /// Create and fill the files of all arms.
    ///
    /// Raises:
    ///     TargetError: A file cannot be created.
    fn open(&self, py: Python<'_>) -> PyResult<()> {
        let made = py
            .detach(|| probe::Probe::new(&self.spec, self.run))
            .map_err(|e| raise(py, "TargetError", &e.to_string()))?;
        *self.logs() = Some(made);
        Ok(())
    }

    /// Measure the probe's own cost by running the arms on a sink instead of files, with `commits` commits each.
    ///
    /// Returns:
    ///     Per arm, time and CPU time of a write [ns]: the median of nine runs.
    ///
    /// Raises:
    ///     TargetError: The probe failed.
    fn cost<'py>(&self, py: Python<'py>, commits: u64) -> PyResult<Bound<'py, PyAny>> {
        let measured = py.detach(|| cost(&self.spec, commits));
        let measured = measured.map_err(|e| raise(py, "TargetError", &e.to_string()))?;
        to_python(py, &measured).map_err(|e| raise(py, "TargetError", &e.to_string()))
    }

    /// Run slices of a block and return the report; the interpreter lock is released.
    ///
    /// Args:
    ///     slices: Tuples of arm, slice number, length [ns] or None, and number of commits or None.
    ///
    /// Raises:
    ///     TargetError: The files are not open, or a write failed.
    fn run<'py>(&self, py: Python<'py>, block: u32, slices: Vec<SliceArgument>) -> PyResult<Bound<'py, PyAny>> {
        let slices: Vec<Slice> = slices.into_iter().map(slice).collect();
        let result = py.detach(|| {
            let mut guard = self.logs();
            let probe = guard.as_mut()?;
            Some(probe.run(block, &slices, &self.stop, &self.progress, &mut ()))
        });
        let report = result
            .ok_or_else(|| raise(py, "TargetError", "the probe's files are not open"))?
            .map_err(|e| raise(py, "TargetError", &e.to_string()))?;
        to_python(py, &report).map_err(|e| raise(py, "EvidenceError", &e.to_string()))
    }

    /// Write the block's parts to `folder` and return the number of calls.
    ///
    /// Raises:
    ///     EvidenceError: The evidence cannot be written.
    fn end_block(&self, py: Python<'_>, folder: PathBuf, name: &str) -> PyResult<u64> {
        let rows = py.detach(|| self.logs().as_mut().map(|probe| probe.save(&folder, name)));
        rows.transpose().map(Option::unwrap_or_default).map_err(|e| raise(py, "EvidenceError", &e.to_string()))
    }

    /// Discard the rows of the open block.
    fn abandon_block(&self) {
        if let Some(probe) = self.logs().as_mut() {
            probe.abandon();
        }
    }

    /// Return the counters so far: per arm a list of object type, object, metric, unit, kind and value.
    fn counters(&self) -> Vec<Vec<Counter>> {
        let guard = self.logs();
        let arms = guard.as_ref().map(probe::Probe::counts).unwrap_or_default();
        arms.iter().zip(&self.spec.arms).map(|(counts, arm)| counters(counts, arm.paths.len())).collect()
    }

    /// End all threads and remove the files, unless they are to be kept.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.logs().take()));
    }

    /// Stop a running `run` soon; callable from another thread.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Return the number of commits since the beginning; callable from another thread.
    fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }
}

fn slice((arm, slice, ns, count): SliceArgument) -> Slice {
    let length = match count {
        Some(count) => Length::Transactions(count),
        None => Length::DurationNs(ns.unwrap_or(0)),
    };
    Slice { arm, slice, length }
}

/// Number of runs in which the cost is measured, because other activity of the machine disturbs some of them.
const COST_TURNS: u64 = 9;

fn cost(spec: &ProbeSpec, commits: u64) -> Result<Vec<Cost>, ProbeError> {
    let mut measured = Vec::new();
    let (go, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut spec = spec.clone();
    for arm in &mut spec.arms {
        (arm.think_ns, arm.rate_per_s) = (0, None);
    }
    let mut sink = probe::Probe::on_sink(&spec)?;
    for arm in 0..spec.arms.len() as u16 {
        let turn = [Slice { arm, slice: 0, length: Length::Transactions(commits / COST_TURNS) }];
        let mut turns = Vec::new();
        for _ in 0..COST_TURNS {
            let before = sink.counts()[usize::from(arm)].writes;
            let report = sink.run(0, &turn, &go, &progress, &mut ())?;
            sink.abandon();
            let writes = (sink.counts()[usize::from(arm)].writes - before).max(1);
            let wall_ns = (report.ended_ns - report.started_ns).max(0) as u64;
            turns.push((wall_ns / writes, report.cpu_ns / writes));
        }
        turns.sort_unstable();
        let (write_ns, cpu_ns) = turns[turns.len() / 2];
        measured.push(Cost { commits, write_ns, cpu_ns });
    }
    Ok(measured)
}

fn counters(counts: &Counts, paths: usize) -> Vec<Counter> {
    let mut rows = Vec::new();
    let mut add = |object_type, object, metrics: Vec<Metric>| {
        for (name, unit, kind, value) in metrics {
            rows.push((object_type, object, name, unit, kind, value));
        }
    };
    add("log", "lgwr", counts.log());
    for copy in 0..paths {
        add("path", ["first path", "second path"][copy], counts.path(copy));
    }
    if paths == 2 {
        add("FLASHLOG", "race", counts.race());
    }
    rows
}

/// Return what the log files of a killed probe contain; `paths` has one file, or both files of a run.
///
/// Raises:
///     TargetError: A file cannot be read or is not a log of a probe, or the two are not copies of one log.
#[pyfunction]
pub(crate) fn recover_probe(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Bound<'_, PyAny>> {
    let found = py.detach(|| probe::recover(&paths)).map_err(|e| raise(py, "TargetError", &e.to_string()))?;
    to_python(py, &found).map_err(|e| raise(py, "EvidenceError", &e.to_string()))
}
