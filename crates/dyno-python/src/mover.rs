//! `dyno-move` for Python: a job that is asked what it has finished.

use std::path::PathBuf;
use std::time::Duration;

use dyno_move::{Ahead, JobSpec, Next, describe, groups, read_back};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::raise;
use crate::values::{from_python, to_python};

/// Workers that read chunks of tables into files.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct MoveJob(dyno_move::Job);

#[pymethods]
impl MoveJob {
    /// Reads a specification (`MoveSpec` of the stub) and starts the workers.
    #[new]
    fn new(py: Python<'_>, spec: &Bound<'_, PyAny>) -> PyResult<Self> {
        let spec: JobSpec = from_python(spec).map_err(|e| raise(py, "MoveError", &e.to_string()))?;
        dyno_move::Job::start(spec).map(Self).map_err(|e| raise(py, "MoveError", &e.to_string()))
    }

    /// What has happened since: a dict with `done`, `failed` or `waiting`, or None at the end. Lets go of the
    /// interpreter lock and waits no longer than `limit_s`.
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

    /// Bytes of COPY that came, and rows of finished chunks.
    fn progress(&self) -> (u64, u64) {
        self.0.progress()
    }

    /// Workers whose sessions have begun, or could not.
    fn begun(&self) -> usize {
        self.0.begun()
    }

    /// Ends all workers soon; callable from another thread.
    fn stop(&self) {
        self.0.stop();
    }
}

/// Files in COPY's binary form, one after the other, piece by piece; encoded ahead.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct MoveBytes(Ahead);

#[pymethods]
impl MoveBytes {
    /// Begins to read; batches have so many bytes at most.
    #[new]
    fn new(paths: Vec<PathBuf>, memory_bytes: usize) -> Self {
        Self(Ahead::of_copy(paths, memory_bytes))
    }

    /// The next piece, or None at the end. Lets go of the interpreter lock.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let piece = py.detach(|| self.0.next()).map_err(|e| raise(py, "MoveError", &e.to_string()))?;
        Ok(piece.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// Rows so far; and of each file that was read to its end its rows, and the sum of their hashes.
    fn tallies(&self) -> (u64, Vec<(u64, String)>) {
        let (rows, each) = self.0.tallies();
        (rows, each.iter().map(|one| (one.rows, one.hash())).collect())
    }
}

/// Columns of a Parquet or Arrow file (dicts with `name`, `arrow`, `holds`, `pg_type`), and its rows where its head
/// tells them.
#[pyfunction]
pub(crate) fn move_describe(py: Python<'_>, path: PathBuf) -> PyResult<(Bound<'_, PyAny>, Option<u64>)> {
    let (columns, rows) = describe(&path).map_err(|e| raise(py, "MoveError", &e.to_string()))?;
    Ok((to_python(py, &columns).map_err(|e| raise(py, "MoveError", &e.to_string()))?, rows))
}

/// Rows, and bytes in the file, of each of its row groups; none of a file that has no such.
#[pyfunction]
pub(crate) fn move_groups(py: Python<'_>, path: PathBuf) -> PyResult<Vec<(u64, u64)>> {
    groups(&path).map_err(|e| raise(py, "MoveError", &e.to_string()))
}

/// Rows and hash of a file that a job wrote, read again.
#[pyfunction]
pub(crate) fn move_read_back(py: Python<'_>, path: PathBuf) -> PyResult<(u64, String)> {
    let tally = py.detach(|| read_back(&path)).map_err(|e| raise(py, "MoveError", &e.to_string()))?;
    Ok((tally.rows, tally.hash()))
}
