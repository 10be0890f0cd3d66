//! Python interface of `dyno-record`: a recording that can be watched and stopped.

use std::sync::{Mutex, PoisonError};

use dyno_record::job::Job;
use dyno_record::{Activity, RecordError};
use pyo3::prelude::*;

use crate::errors::raise;

fn failed(py: Python<'_>, error: &RecordError) -> PyErr {
    let kind = if matches!(error, RecordError::Evidence(_)) { "EvidenceError" } else { "TraceError" };
    raise(py, kind, &error.to_string())
}

/// Recording of a server's waits.
///
/// `request` is JSON: pid, mode, only, out, database, user, for_ns, cost_limit, copies, details. A recording that cannot
/// start raises `TraceError`.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct Recorder {
    job: Job,
}

#[pymethods]
impl Recorder {
    #[new]
    fn new(py: Python<'_>, request: &str) -> PyResult<Self> {
        let job = py.detach(|| Job::start(request)).map_err(|error| failed(py, &error))?;
        Ok(Self { job })
    }

    /// Return the technique (`sites`, `watch` or `read`), and why the techniques that were tried before could not be
    /// used, or None.
    fn mode(&self) -> (&'static str, Option<&str>) {
        self.job.mode()
    }

    /// Return the progress as JSON; `null` before anything is known.
    fn progress(&self) -> String {
        self.job.progress()
    }

    /// Write everything up to now to parts of the trace; return the sessions that contributed to it as JSON.
    fn cut(&self, py: Python<'_>) -> String {
        py.detach(|| self.job.cut())
    }

    /// Pause the looks at a server's memory, or resume them; probes and watchpoints stay where they are.
    fn pause(&self, is_paused: bool) {
        self.job.pause(is_paused);
    }

    /// Return True if the recording has ended.
    fn is_over(&self) -> bool {
        self.job.is_over()
    }

    /// Stop the recording, write the remaining rows, and return the report as JSON.
    ///
    /// Raises:
    ///     TraceError: The recording failed.
    ///     EvidenceError: The evidence cannot be written.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.job.finish()).map_err(|error| failed(py, &error))
    }
}

/// Active sessions of a server, read from its memory.
///
/// The memory of the server that the process `pid` belongs to is read every `look_ns`, and the looks are summed up
/// every `period_ns`. A server that cannot be read raises `TraceError`.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct SessionReader {
    activity: Mutex<Activity>,
}

#[pymethods]
impl SessionReader {
    #[new]
    fn new(py: Python<'_>, pid: i32, look_ns: u64, period_ns: u64) -> PyResult<Self> {
        let activity = py.detach(|| Activity::start(pid, look_ns, period_ns)).map_err(|error| failed(py, &error))?;
        Ok(Self { activity: Mutex::new(activity) })
    }

    /// Return the finished periods as JSON, and remove them.
    fn take(&self) -> String {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Return True if the looks have ended, because the server has ended or has created new memory after a crash.
    fn is_over(&self) -> bool {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner).is_over()
    }

    /// Return why the server's memory is copied and not mapped, or None if it is mapped.
    fn unmapped(&self) -> Option<String> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner).unmapped.clone()
    }

    /// Stop the looks and release the memory.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.activity.lock().unwrap_or_else(PoisonError::into_inner).stop());
    }
}

/// Return the CPU time that a probe costs on this machine [ns].
///
/// Raises:
///     TraceError: The kernel allows no probes.
#[pyfunction]
pub(crate) fn trap_cost_ns(py: Python<'_>) -> PyResult<u64> {
    py.detach(dyno_record::trap_cost).map(|trap| trap.emulated_ns).map_err(|error| failed(py, &error))
}

/// Return the CPU time that a watchpoint costs on this machine [ns].
///
/// Raises:
///     TraceError: The kernel allows no watchpoints, or none on the process `pid`.
#[pyfunction]
#[pyo3(signature = (pid=None))]
pub(crate) fn watch_cost_ns(py: Python<'_>, pid: Option<i32>) -> PyResult<u64> {
    py.detach(|| dyno_record::watch_cost(pid)).map(|price| price.wait_ns).map_err(|error| failed(py, &error))
}

/// Return how a server's waits can be read: the time of a look [ns], and why its memory is not mapped, or None if it is
/// mapped.
///
/// Raises:
///     TraceError: The memory of the server that the process `pid` belongs to cannot be read, or is not as expected.
#[pyfunction]
pub(crate) fn read_cost(py: Python<'_>, pid: i32) -> PyResult<(u64, Option<String>)> {
    let found = py.detach(|| dyno_record::read_cost(pid)).map_err(|error| failed(py, &error))?;
    Ok((found.look_ns, found.unmapped))
}
