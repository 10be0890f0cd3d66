//! Writers of the parts that Python collects.

use std::path::PathBuf;

use dyno_evidence::{Metrics, Waits};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::raise;

/// Takes a column out of a dict of lists.
fn column<'py, T>(columns: &Bound<'py, PyDict>, name: &str) -> PyResult<Vec<T>>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    let value = columns.get_item(name)?.ok_or_else(|| PyKeyError::new_err(format!("column {name} is missing")))?;
    value.extract::<Vec<T>>()
}

/// Writes `<dir>/<name>.parquet` with waits given as a dict of equally long lists: arm, block,
/// session, started_ns, elapsed_ns, event, event_type, class, object, fidelity. Returns the number of rows.
#[pyfunction]
pub(crate) fn write_waits(py: Python<'_>, dir: PathBuf, name: &str, columns: &Bound<'_, PyDict>) -> PyResult<u64> {
    let waits = Waits {
        arm: column(columns, "arm")?,
        block: column(columns, "block")?,
        session: column(columns, "session")?,
        started_ns: column(columns, "started_ns")?,
        elapsed_ns: column(columns, "elapsed_ns")?,
        event: column(columns, "event")?,
        event_type: column(columns, "event_type")?,
        class: column(columns, "class")?,
        object: column(columns, "object")?,
        fidelity: column(columns, "fidelity")?,
    };
    py.detach(|| dyno_evidence::write_waits(&dir, name, &waits)).map_err(|e| raise(py, "EvidenceError", &e.to_string()))
}

/// Writes `<dir>/<name>.parquet` with metrics given as a dict of equally long lists: arm, block,
/// source, object_type, object, metric, at_ns, value, unit, kind. Returns the number of rows.
#[pyfunction]
pub(crate) fn write_metrics(py: Python<'_>, dir: PathBuf, name: &str, columns: &Bound<'_, PyDict>) -> PyResult<u64> {
    let metrics = Metrics {
        arm: column(columns, "arm")?,
        block: column(columns, "block")?,
        source: column(columns, "source")?,
        object_type: column(columns, "object_type")?,
        object: column(columns, "object")?,
        metric: column(columns, "metric")?,
        at_ns: column(columns, "at_ns")?,
        value: column(columns, "value")?,
        unit: column(columns, "unit")?,
        kind: column(columns, "kind")?,
    };
    py.detach(|| dyno_evidence::write_metrics(&dir, name, &metrics))
        .map_err(|e| raise(py, "EvidenceError", &e.to_string()))
}
