//! Python interface of `dyno-proxy`: a proxy, a replay, and an import of logs, that can be watched and stopped.

use std::collections::HashMap;
use std::path::PathBuf;

use dyno_evidence::normal::Dialect;
use dyno_proxy::ProxyError;
use dyno_proxy::job::Job;
use dyno_proxy::replay::{Replay as Player, ReplayError};
use dyno_proxy::server_log::{LogError, LogJob as Importer};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raise;

fn failed(py: Python<'_>, error: &ProxyError) -> PyErr {
    let kind = if matches!(error, ProxyError::Evidence(_)) { "EvidenceError" } else { "TraceError" };
    raise(py, kind, &error.to_string())
}

/// Proxy on `PostgreSQL`'s protocol.
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

    /// Return the address and port on which the proxy listens.
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

    /// Stop the proxy, write the remaining rows, and return the report as JSON.
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

/// Return a summary of a captured run as JSON.
///
/// It has sessions, `at_once` (the most concurrent sessions), turns (round trips), transactions, `then_ns` (time from
/// the first message to the last), `writes` (round trips that a read-only session refuses) and `lifts` (true if a
/// statement would make a read-only session write).
///
/// Raises:
///     TraceError: The run has no messages.
///     EvidenceError: The evidence cannot be read.
#[pyfunction]
pub(crate) fn captured(py: Python<'_>, run: PathBuf) -> PyResult<String> {
    py.detach(|| dyno_proxy::replay::summary_of_capture(&run)).map_err(|error| not_replayed(py, &error))
}

/// One sample of a statement: elapsed_ns, text, values (None is NULL), whether each is binary, types, is_simple.
type SampleRow<'py> = (u64, Bound<'py, PyBytes>, Vec<Option<Bound<'py, PyBytes>>>, Vec<bool>, Vec<u32>, bool);
/// One statement: text without literals, group, settings, calls, failed, total_ns, cut, samples, prepared,
/// unsettled.
type StatementRow<'py> = (String, u32, Vec<String>, u64, u64, u64, u64, Vec<SampleRow<'py>>, u64, u64);

/// Return the distinct statements of a captured run, the one with the most time first.
///
/// Each is (text without literals, group, settings, calls, failed, total_ns, cut, samples, prepared, unsettled), a
/// sample (elapsed_ns, text, values, is_binary of each, types, is_simple); `prepared` is the largest number of
/// executions of one prepared statement with a name, `unsettled` the number of executions under SET LOCAL or
/// `set_config`. `groups` maps sessions to groups; statements of different groups are different. `is_mariadb` is True
/// if the texts are for `MariaDB`.
///
/// Raises:
///     TraceError: The run has no messages.
///     EvidenceError: The evidence cannot be read.
#[pyfunction]
pub(crate) fn captured_statements(
    py: Python<'_>,
    run: PathBuf,
    groups: HashMap<u32, u32>,
    samples: usize,
    is_mariadb: bool,
) -> PyResult<Vec<StatementRow<'_>>> {
    let dialect = if is_mariadb { Dialect::MariaDb } else { Dialect::Postgres };
    let found = py.detach(|| dyno_proxy::digest::digest(&run, &groups, samples, dialect));
    let found = found.map_err(|error| not_replayed(py, &error))?;
    let bytes = |given: Vec<u8>| PyBytes::new(py, &given);
    let rows = found.into_iter().map(|one| {
        let samples = one.samples.into_iter().map(|sample| {
            let values = sample.values.into_iter().map(|value| value.map(bytes)).collect();
            (sample.elapsed_ns, bytes(sample.text), values, sample.binary, sample.types, sample.is_simple)
        });
        let samples = samples.collect();
        (
            one.text,
            one.group,
            one.settings,
            one.calls,
            one.failed,
            one.total_ns,
            one.cut,
            samples,
            one.prepared,
            one.unsettled,
        )
    });
    Ok(rows.collect())
}

/// Return the distinct shapes of the statements in a captured run, or in a part of it, as JSON: pairs of shape and
/// count.
///
/// Raises:
///     TraceError: The run has no messages, or no transaction in this part.
///     EvidenceError: The evidence cannot be read.
#[pyfunction]
#[pyo3(signature = (run, from_ns=None, to_ns=None))]
pub(crate) fn captured_shapes(
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
/// from_ns, to_ns, keys (spaces, and the places of keys by shape of a statement). A replay that cannot start raises
/// `TraceError`.
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

fn not_imported(py: Python<'_>, error: &LogError) -> PyErr {
    let kind = if matches!(error, LogError::Evidence(_)) { "EvidenceError" } else { "TraceError" };
    raise(py, kind, &error.to_string())
}

/// Import of `PostgreSQL`'s server logs as a capture.
///
/// `request` is JSON: out, files (each with path, form, prefix, year), details, payloads, pieces, zone, database. A
/// request that is not valid raises `TraceError`.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct LogJob {
    job: Importer,
}

#[pymethods]
impl LogJob {
    #[new]
    fn new(py: Python<'_>, request: &str) -> PyResult<Self> {
        let job = py.detach(|| Importer::start(request)).map_err(|error| not_imported(py, &error))?;
        Ok(Self { job })
    }

    /// Return the number of bytes read and of bytes in total.
    fn progress(&self) -> (u64, u64) {
        self.job.progress()
    }

    /// Return True if the import has ended.
    fn is_over(&self) -> bool {
        self.job.is_over()
    }

    /// Ask the import to stop soon.
    fn stop(&self) {
        self.job.stop();
    }

    /// Wait for the end of the import and return its report as JSON.
    ///
    /// Raises:
    ///     TraceError: The import was stopped.
    ///     EvidenceError: The evidence cannot be written.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.job.finish()).map_err(|error| not_imported(py, &error))
    }
}
