//! Python interface of `dyno-proxy`: a proxy, and a replay, that can be watched and stopped.

use std::path::PathBuf;

use dyno_proxy::ProxyError;
use dyno_proxy::job::Job;
use dyno_proxy::replay::{Replay as Player, ReplayError};
use pyo3::prelude::*;

use crate::errors::raise;

fn failed(py: Python<'_>, error: &ProxyError) -> PyErr {
    let kind = if matches!(error, ProxyError::Evidence(_)) { "EvidenceError" } else { "TraceError" };
    raise(py, kind, &error.to_string())
}

/// Proxy on PostgreSQL's protocol.
///
/// `request` is JSON: listen, host, port, out, for_ns, spin_ns, binds, tls_cert, tls_key, server_tls, server_ca. A
/// proxy that cannot start raises `TraceError`.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct Proxy {
    job: Job,
}

#[pymethods]
impl Proxy {
    #[new]
    fn new(py: Python<'_>, request: &str) -> PyResult<Self> {
        let job = py.detach(|| Job::start(request)).map_err(|error| failed(py, &error))?;
        Ok(Self { job })
    }

    /// Return the address and port on which it listens.
    fn address(&self) -> String {
        self.job.address()
    }

    /// Return the progress as JSON; `null` before anything is known.
    fn progress(&self) -> String {
        self.job.progress()
    }

    /// Return True if the proxy has ended.
    fn is_over(&self) -> bool {
        self.job.is_over()
    }

    /// Stop the proxy, write what is left, and return the report as JSON.
    ///
    /// Raises:
    ///     TraceError: The proxy failed.
    ///     EvidenceError: The evidence cannot be written.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.job.finish()).map_err(|error| failed(py, &error))
    }
}

fn not_replayed(py: Python<'_>, error: &ReplayError) -> PyErr {
    let kind = if matches!(error, ReplayError::Evidence(_)) { "EvidenceError" } else { "TraceError" };
    raise(py, kind, &error.to_string())
}

/// Return a summary of a captured run as JSON: sessions, `at_once`, turns, transactions, `then_ns`, `writes` (round trips
/// that a read-only session refuses), `lifts` (true if a statement would make a read-only session write).
///
/// Raises:
///     TraceError: The run has no messages.
///     EvidenceError: The evidence cannot be read.
#[pyfunction]
pub(crate) fn captured(py: Python<'_>, run: PathBuf) -> PyResult<String> {
    py.detach(|| dyno_proxy::replay::told(&run)).map_err(|error| not_replayed(py, &error))
}

/// Return the distinct shapes of the statements in a captured run, or in a part of it, as JSON: pairs of shape and count.
///
/// Raises:
///     TraceError: The run has no messages, or no transaction in this part.
///     EvidenceError: The evidence cannot be read.
#[pyfunction]
#[pyo3(signature = (run, from_ns=None, to_ns=None))]
pub(crate) fn captured_statements(
    py: Python<'_>,
    run: PathBuf,
    from_ns: Option<u64>,
    to_ns: Option<u64>,
) -> PyResult<String> {
    py.detach(|| dyno_proxy::replay::statements(&run, from_ns, to_ns)).map_err(|error| not_replayed(py, &error))
}

/// Replay of a captured run.
///
/// `request` is JSON: run, connection (as the load's), speed (0 for no pauses), order, writes, `session_sql`, timed,
/// from_ns, to_ns, keys (spaces, and the places of keys by shape of a statement). A replay that cannot start raises `TraceError`.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct Replay {
    player: Player,
}

#[pymethods]
impl Replay {
    #[new]
    fn new(py: Python<'_>, request: &str) -> PyResult<Self> {
        let player = py.detach(|| Player::start(request)).map_err(|error| not_replayed(py, &error))?;
        Ok(Self { player })
    }

    /// Return the progress as JSON.
    fn progress(&self) -> String {
        self.player.progress()
    }

    /// Return True if the replay has ended.
    fn is_over(&self) -> bool {
        self.player.is_over()
    }

    /// Ask the replay to stop soon.
    fn stop(&self) {
        self.player.stop();
    }

    /// Wait for the end of the replay and return its report as JSON.
    ///
    /// Raises:
    ///     TraceError: The replay failed.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.player.finish()).map_err(|error| not_replayed(py, &error))
    }

    /// Return the timed transactions as JSON; empty before the end, or if they are not timed.
    fn timed(&self, py: Python<'_>) -> String {
        py.detach(|| self.player.timed())
    }
}
