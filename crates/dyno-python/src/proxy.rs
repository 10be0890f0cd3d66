//! `dyno-proxy` for Python: a proxy, and a replay, that can be watched and stopped.

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

/// A proxy on PostgreSQL's wire. `request` is JSON: listen, host, port, out, for_ns, spin_ns, binds, tls_cert, tls_key,
/// server_tls, server_ca.
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

    /// Where it listens: address and port.
    fn address(&self) -> String {
        self.job.address()
    }

    /// How it goes, as JSON; `null` before anything is known.
    fn progress(&self) -> String {
        self.job.progress()
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

fn not_replayed(py: Python<'_>, error: &ReplayError) -> PyErr {
    let kind = if matches!(error, ReplayError::Evidence(_)) { "EvidenceError" } else { "TraceError" };
    raise(py, kind, &error.to_string())
}

/// What a captured run holds, as JSON: sessions, `at_once`, turns, transactions, `then_ns`.
#[pyfunction]
pub(crate) fn captured(py: Python<'_>, run: PathBuf) -> PyResult<String> {
    py.detach(|| dyno_proxy::replay::told(&run)).map_err(|error| not_replayed(py, &error))
}

/// A captured run that is run again. `request` is JSON: run, connection (as the load's), speed (0: no pause), order,
/// writes, `session_sql`, and whether transactions are timed.
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

    /// How it goes, as JSON.
    fn progress(&self) -> String {
        self.player.progress()
    }

    /// Whether it is over.
    fn is_over(&self) -> bool {
        self.player.is_over()
    }

    /// Ends it soon.
    fn stop(&self) {
        self.player.stop();
    }

    /// Waits for its end, and tells about it as JSON.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.player.finish()).map_err(|error| not_replayed(py, &error))
    }

    /// Transactions as they went, as JSON, where they were timed; after its end.
    fn timed(&self, py: Python<'_>) -> String {
        py.detach(|| self.player.timed())
    }
}
