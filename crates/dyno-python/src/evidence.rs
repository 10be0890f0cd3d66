//! Python interface of the writers for parts of evidence whose rows Python collects.

use std::collections::HashMap;
use std::path::PathBuf;

use dyno_evidence::numbered::{self, Wanted};
use dyno_evidence::{Call, CallKind, CallsWriter, Failure, Metrics, Waits};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::raise;

/// Extracts a column from a dict of lists.
pub(crate) fn column<'py, T>(columns: &Bound<'py, PyDict>, name: &str) -> PyResult<Vec<T>>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    let value = columns.get_item(name)?.ok_or_else(|| PyKeyError::new_err(format!("column {name} is missing")))?;
    value.extract::<Vec<T>>()
}

/// Write waits to `<dir>/<name>.parquet`; return the number of rows.
///
/// Args:
///     columns: A dict of equally long lists: arm, block, session, started_ns, elapsed_ns, event, event_type, class,
///         object, fidelity.
///
/// Raises:
///     EvidenceError: The evidence cannot be written.
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

/// Write metrics to `<dir>/<name>.parquet`; return the number of rows.
///
/// Args:
///     columns: A dict of equally long lists: arm, block, source, object_type, object, metric, at_ns, value, unit,
///         kind.
///
/// Raises:
///     EvidenceError: The evidence cannot be written.
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

/// Write transactions that a bench in Python timed to `<dir>/<name>.parquet`; return the number of rows.
///
/// Args:
///     columns: A dict of equally long lists: arm, block, slice, session, statement, started_ns, elapsed_ns, rows,
///         error (None for success).
///
/// Raises:
///     EvidenceError: The columns differ in length, or the evidence cannot be written.
#[pyfunction]
pub(crate) fn write_calls(py: Python<'_>, dir: PathBuf, name: &str, columns: &Bound<'_, PyDict>) -> PyResult<u64> {
    let (arms, arm) = words(column(columns, "arm")?);
    let (statements, statement) = words(column(columns, "statement")?);
    let codes: Vec<Option<String>> = column(columns, "error")?;
    let (errors, code) = words(codes.iter().map(|code| code.clone().unwrap_or_default()).collect());
    let failed: Vec<bool> = codes.iter().map(Option::is_some).collect();
    let block: Vec<u32> = column(columns, "block")?;
    let slice: Vec<u32> = column(columns, "slice")?;
    let session: Vec<u16> = column(columns, "session")?;
    let started_ns: Vec<i64> = column(columns, "started_ns")?;
    let elapsed_ns: Vec<i64> = column(columns, "elapsed_ns")?;
    let rows: Vec<i64> = column(columns, "rows")?;
    let lengths = [statement.len(), failed.len(), block.len(), slice.len(), session.len()];
    let times = [started_ns.len(), elapsed_ns.len(), rows.len()];
    if lengths.iter().chain(&times).any(|&length| length != arm.len()) {
        return Err(raise(py, "EvidenceError", "the columns of calls are not equally long"));
    }
    let calls: Vec<Call> = (0..arm.len())
        .map(|at| Call {
            block: block[at],
            slice: slice[at],
            session: session[at],
            arm: arm[at],
            statement: statement[at],
            kind: CallKind::Transaction,
            started_ns: started_ns[at],
            elapsed_ns: elapsed_ns[at],
            rows: rows[at],
            error: if failed[at] { u8::try_from(code[at] + 1).unwrap_or(u8::MAX) } else { 0 },
            tries: 1,
            ..Call::new()
        })
        .collect();
    let failures: Vec<Failure> = errors.into_iter().map(Failure::from).collect();
    py.detach(|| {
        let mut writer = CallsWriter::create(&dir, name, &arms, &statements)?;
        writer.push(&calls, &failures)?;
        writer.finish()
    })
    .map_err(|e: dyno_evidence::EvidenceError| raise(py, "EvidenceError", &e.to_string()))
}

/// Returns the distinct words of a column in order of appearance, and the index of each entry's word.
fn words(column: Vec<String>) -> (Vec<String>, Vec<u16>) {
    let mut found: Vec<String> = Vec::new();
    let places = column
        .into_iter()
        .map(|word| {
            let at = found.iter().position(|known| *known == word).unwrap_or_else(|| {
                found.push(word);
                found.len() - 1
            });
            u16::try_from(at).unwrap_or(u16::MAX)
        })
        .collect();
    (found, places)
}

/// Totals of a block's files: number of the block, count of files, and the sums of their numbers, their sizes and their
/// modification times (whole seconds, and the remaining nanoseconds).
type Totals = (i64, i64, i64, i64, i64, i64);
/// Files as bytes, the totals of their blocks, the blocks whose files were not examined, and the largest number.
type Numbered<'py> = (Bound<'py, PyBytes>, Vec<Totals>, Vec<i64>, i64);

/// Return the files called `name` in the numbered subfolders of `folder`; a missing folder has none.
///
/// Args:
///     block: How many consecutive numbers form a block.
///     low: The first block whose files are always examined.
///     high: The last block whose files are always examined.
///     known: For other blocks, the known count of their subfolders and the known sum of the subfolders' numbers; the
///         files of such a block are examined only if these two have changed.
///
/// Returns:
///     Number, size and modification time in ns of each file, sorted by number, as 64-bit integers; the totals of each
///     block that has a file: its number, the count of files, and the sums of their numbers, sizes, whole seconds and
///     remaining nanoseconds; the blocks whose files were not examined; the largest number of a subfolder, or -1.
///
/// Raises:
///     OSError: The folder cannot be read.
#[pyfunction]
pub(crate) fn numbered_files<'py>(
    py: Python<'py>,
    folder: PathBuf,
    name: &str,
    block: i64,
    low: i64,
    high: i64,
    known: HashMap<i64, (i64, i64)>,
) -> PyResult<Numbered<'py>> {
    let length = block.max(1);
    let found =
        py.detach(|| numbered::numbered_files(&folder, name, Wanted { length, blocks: &(low..=high), known: &known }))?;
    let files: Vec<u8> = found
        .files
        .iter()
        .flat_map(|file| [file.number, file.size, file.changed_ns])
        .flat_map(i64::to_ne_bytes)
        .collect();
    let totals = found.totals(length).into_iter();
    let totals = totals.map(|one| (one.block, one.count, one.numbers, one.sizes, one.seconds, one.nanoseconds));
    Ok((PyBytes::new(py, &files), totals.collect(), found.unseen, found.newest.unwrap_or(-1)))
}
