//! Python interface of `dyno-move`: a job whose events are polled.

use std::path::PathBuf;
use std::time::Duration;

use dyno_move::{Ahead, JobSpec, Next, describe, groups, read_back};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::raise;
use crate::values::{from_python, to_python};

/// Job whose workers move chunks of tables.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct MoveJob(dyno_move::Job);

#[pymethods]
impl MoveJob {
    /// Start the workers of a specification (`MoveSpec` of the stub).
    ///
    /// Raises:
    ///     MoveError: The specification is invalid, or the job cannot start.
    #[new]
    fn new(py: Python<'_>, spec: &Bound<'_, PyAny>) -> PyResult<Self> {
        let spec: JobSpec = from_python(spec).map_err(|e| raise(py, "MoveError", &e.to_string()))?;
        dyno_move::Job::start(spec).map(Self).map_err(|e| raise(py, "MoveError", &e.to_string()))
    }

    /// Return the next event: a dict with `done` or `failed`, an empty dict after `limit_s`, or None at the end.
    ///
    /// The interpreter lock is released.
    fn next<'py>(&self, py: Python<'py>, limit_s: f64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let next = py.detach(|| self.0.next(Duration::from_secs_f64(limit_s.max(0.0))));
        let event = PyDict::new(py);
        let put = |key: &str, value| event.set_item(key, value);
        let cannot = |e: crate::values::Failed| raise(py, "MoveError", &e.to_string());
        match next {
            Next::Done(done) => put("done", to_python(py, &done).map_err(cannot)?)?,
            Next::Failed(failure) => put("failed", to_python(py, &failure).map_err(cannot)?)?,
            Next::Waiting => {}
            Next::End => return Ok(None),
        }
        Ok(Some(event.into_any()))
    }

    /// Return the number of COPY bytes received, and of rows in finished chunks.
    fn progress(&self) -> (u64, u64) {
        self.0.progress()
    }

    /// Return the number of workers whose sessions have begun or failed to begin.
    fn begun(&self) -> usize {
        self.0.begun()
    }

    /// Stop all workers soon; callable from another thread.
    fn stop(&self) {
        self.0.stop();
    }
}

/// Stream of files in COPY's binary form, one after the other, encoded ahead and returned piece by piece.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct MoveBytes(Ahead);

#[pymethods]
impl MoveBytes {
    /// Start to read the files; batches have at most `memory_bytes`.
    #[new]
    fn new(paths: Vec<PathBuf>, memory_bytes: usize) -> Self {
        Self(Ahead::of_copy(paths, memory_bytes))
    }

    /// Return the next piece, or None at the end; the interpreter lock is released.
    ///
    /// Raises:
    ///     MoveError: A file cannot be read or encoded.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let piece = py.detach(|| self.0.next()).map_err(|e| raise(py, "MoveError", &e.to_string()))?;
        Ok(piece.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// Return the number of rows so far, and rows and hash of each file that was read completely.
    fn tallies(&self) -> (u64, Vec<(u64, String)>) {
        let (rows, each) = self.0.tallies();
        (rows, each.iter().map(|one| (one.rows, one.hash())).collect())
    }
}

/// Return the columns of a Parquet or Arrow file, and its number of rows or None if the metadata does not have it.
///
/// Returns:
///     The columns as dicts of `name`, `arrow`, `holds` and `pg_type`, among others; the number of rows.
///
/// Raises:
///     MoveError: The file cannot be read.
#[pyfunction]
pub(crate) fn move_describe(py: Python<'_>, path: PathBuf) -> PyResult<(Bound<'_, PyAny>, Option<u64>)> {
    let (columns, rows) = describe(&path).map_err(|e| raise(py, "MoveError", &e.to_string()))?;
    Ok((to_python(py, &columns).map_err(|e| raise(py, "MoveError", &e.to_string()))?, rows))
}

/// Return the number of rows and the compressed bytes of each row group of a file; empty for a file without row groups.
///
/// Raises:
///     MoveError: The file cannot be read.
#[pyfunction]
pub(crate) fn move_groups(py: Python<'_>, path: PathBuf) -> PyResult<Vec<(u64, u64)>> {
    groups(&path).map_err(|e| raise(py, "MoveError", &e.to_string()))
}

/// Read a file that a job wrote, and return its number of rows and their hash.
///
/// Raises:
///     MoveError: The file cannot be read.
#[pyfunction]
pub(crate) fn move_read_back(py: Python<'_>, path: PathBuf) -> PyResult<(u64, String)> {
    let tally = py.detach(|| read_back(&path)).map_err(|e| raise(py, "MoveError", &e.to_string()))?;
    Ok((tally.rows, tally.hash()))
}
