//! Python interface of `dyno-trace`: a reader of traces that can be watched and stopped.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dyno_trace::oracle_10046::job::{Job, JobError, JobOptions, request_from_json};
use pyo3::prelude::*;

use crate::errors::raise;

/// Interval at which a running job lets Python check for signals.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

fn failed(py: Python<'_>, error: &JobError) -> PyErr {
    let kind = if matches!(error, JobError::Evidence(_)) { "EvidenceError" } else { "TraceError" };
    raise(py, kind, &error.to_string())
}

/// Reader of traces.
///
/// `options` is JSON: files (paths, or {"path", "arm"}), think_time_ns, binds, threads, tim_unit_ns.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct TraceJob {
    job: Arc<Job>,
}

impl TraceJob {
    /// Runs the work on a separate thread, so that the calling thread can react to Ctrl-C.
    fn run(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Job) -> Result<String, JobError> + Send + 'static,
    ) -> PyResult<String> {
        let job = Arc::clone(&self.job);
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            tell.send(work(&job)).ok();
        });
        let told = std::sync::Mutex::new(told);
        let mut interrupted = None;
        let result = loop {
            let wait = || {
                let told = told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                told.recv_timeout(SIGNALS_EVERY)
            };
            match py.detach(wait) {
                Ok(result) => break Some(result),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break None,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                    if let Err(signal) = py.check_signals() {
                        self.job.stop();
                        interrupted.get_or_insert(signal);
                    }
                }
            }
        };
        py.detach(|| thread.join()).ok();
        if let Some(signal) = interrupted {
            return Err(signal);
        }
        let result = result.ok_or_else(|| raise(py, "TraceError", "the reader broke down"))?;
        result.map_err(|error| failed(py, &error))
    }
}

#[pymethods]
impl TraceJob {
    #[new]
    fn new(py: Python<'_>, options: &str) -> PyResult<Self> {
        let options = JobOptions::from_json(options).map_err(|error| failed(py, &error))?;
        Ok(Self { job: Arc::new(Job::new(options)) })
    }

    /// Return where the time went, as JSON.
    ///
    /// Args:
    ///     request: JSON: by, where, from_ns, to_ns, depth, top.
    ///
    /// Raises:
    ///     TraceError: The request is invalid, or a trace cannot be read.
    fn profile(&self, py: Python<'_>, request: &str) -> PyResult<String> {
        let request = request_from_json(request).map_err(|error| failed(py, &error))?;
        self.run(py, move |job| job.profile(&request))
    }

    /// Write the evidence, except the manifest, to a folder; return a report as JSON.
    ///
    /// Raises:
    ///     TraceError: A trace cannot be read.
    ///     EvidenceError: The evidence cannot be written.
    fn import_(&self, py: Python<'_>, out: PathBuf) -> PyResult<String> {
        self.run(py, move |job| job.import(&out))
    }

    /// Return what is in the files and what could not be read, as JSON.
    ///
    /// Raises:
    ///     TraceError: A trace cannot be read.
    fn check(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, Job::check)
    }

    /// Return the number of bytes read and of bytes in total; callable from another thread.
    fn progress(&self) -> (u64, u64) {
        self.job.progress()
    }

    /// Stop the running work soon; callable from another thread.
    fn stop(&self) {
        self.job.stop();
    }
}

/// Write the traces of an import to the folder `out`; return their paths and numbers of records as JSON.
///
/// Raises:
///     EvidenceError: The import cannot be read, or the traces cannot be written.
#[pyfunction]
pub(crate) fn write_trace(py: Python<'_>, run: PathBuf, out: PathBuf) -> PyResult<String> {
    py.detach(|| dyno_trace::oracle_10046::writer::write_trace(&run, &out))
        .map_err(|error| raise(py, "EvidenceError", &error.to_string()))
}

/// Return the profile of an import, in the form of `TraceJob.profile`.
///
/// Raises:
///     TraceError: The request is invalid.
///     EvidenceError: The import cannot be read.
#[pyfunction]
pub(crate) fn profile_run(py: Python<'_>, run: PathBuf, request: &str) -> PyResult<String> {
    let request = request_from_json(request).map_err(|error| failed(py, &error))?;
    py.detach(|| dyno_trace::oracle_10046::profile::profile_run(&run, &request))
        .map_err(|error| raise(py, "EvidenceError", &error.to_string()))
}
