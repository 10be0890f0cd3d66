//! Python interface of `dyno-record` on systems other than Linux: the same names, which raise an error.

use pyo3::prelude::*;

use crate::errors::raise;

fn refused<T>(py: Python<'_>) -> PyResult<T> {
    Err(raise(py, "TraceError", "waits are recorded on Linux only"))
}

/// Recorder of a server's waits; on this system its constructor only raises `TraceError`.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct Recorder {}

#[pymethods]
impl Recorder {
    #[new]
    fn new(py: Python<'_>, _request: &str) -> PyResult<Self> {
        refused(py)
    }
}

/// Reader of a server's active sessions; on this system its constructor only raises `TraceError`.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct SessionReader {}

#[pymethods]
impl SessionReader {
    #[new]
    fn new(py: Python<'_>, _pid: i32, _look_ns: u64, _period_ns: u64) -> PyResult<Self> {
        refused(py)
    }
}

/// Raise `TraceError`: this system has no probes.
#[pyfunction]
pub(crate) fn trap_cost_ns(py: Python<'_>) -> PyResult<u64> {
    refused(py)
}

/// Raise `TraceError`: this system has no watchpoints.
#[pyfunction]
#[pyo3(signature = (pid=None))]
pub(crate) fn watch_cost_ns(py: Python<'_>, pid: Option<i32>) -> PyResult<u64> {
    let _ = pid;
    refused(py)
}

/// Raise `TraceError`: waits cannot be read on this system.
#[pyfunction]
pub(crate) fn read_cost(py: Python<'_>, _pid: i32) -> PyResult<(u64, Option<String>)> {
    refused(py)
}
