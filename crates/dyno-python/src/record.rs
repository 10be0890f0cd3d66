//! `dyno-record` for Python: a recording that can be watched and stopped.

use dyno_record::RecordError;
use dyno_record::job::Job;
use pyo3::prelude::*;

use crate::errors::raise;

fn failed(py: Python<'_>, error: &RecordError) -> PyErr {
    let kind = if matches!(error, RecordError::Evidence(_)) { "EvidenceError" } else { "TraceError" };
    raise(py, kind, &error.to_string())
}

/// A recording of a server's waits. `request` is JSON: pid, mode, only, out, database, user, for_ns, cost_limit, details.
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

    /// `sites` or `watch`, and why the latter where nobody asked for it.
    fn mode(&self) -> (&'static str, Option<&str>) {
        self.job.mode()
    }

    /// How it goes, as JSON; `null` before anything is known.
    fn progress(&self) -> String {
        self.job.progress()
    }

    /// Writes the parts of all that took place until now; tells the sessions that had a part in it, as JSON.
    fn cut(&self, py: Python<'_>) -> String {
        py.detach(|| self.job.cut())
    }

    /// Whether it has ended by itself.
    fn is_over(&self) -> bool {
        self.job.is_over()
    }

    /// Ends it, writes what is left, and tells about it as JSON.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.job.finish()).map_err(|error| failed(py, &error))
    }
}

/// What a probe costs here, ns of CPU; fails where the kernel allows none.
#[pyfunction]
pub(crate) fn trap_cost_ns(py: Python<'_>) -> PyResult<u64> {
    py.detach(dyno_record::trap_cost).map(|trap| trap.emulated_ns).map_err(|error| failed(py, &error))
}

/// What a watchpoint costs here, ns of CPU; fails where the kernel allows none, or none on this process.
#[pyfunction]
#[pyo3(signature = (pid=None))]
pub(crate) fn watch_cost_ns(py: Python<'_>, pid: Option<i32>) -> PyResult<u64> {
    py.detach(|| dyno_record::watch_cost(pid)).map(|price| price.wait_ns).map_err(|error| failed(py, &error))
}

/// A statement without its literals, as recordings keep it.
#[pyfunction]
pub(crate) fn without_literals(text: &str) -> String {
    dyno_evidence::normal::normal(text.as_bytes())
}
