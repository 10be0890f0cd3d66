//! Python interface of summaries: one kind of operation per block and arm, and the pooled latencies of an arm.
//!
//! Whatever kind is measured (a commit, for example), the throughput is that of transactions. The spans of the sessions
//! and the numbers of successes and failures also refer to transactions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dyno_evidence::{CallColumns, EvidenceError, NONE, read_columns};
use dyno_stats::moments::Moments;
use dyno_stats::quantiles::{quantile, type7_ranks};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use rayon::prelude::*;

use crate::errors::raise;

/// Number of quantiles above which the values are sorted instead of selected.
const SELECT_MOST: usize = 8;

/// A part, and its slices that do not count.
type PartArgument = (PathBuf, Vec<u32>);

/// Columns that a summary needs.
const COLUMNS: [&str; 10] =
    ["arm", "kind", "error", "slice", "session", "intended_ns", "started_ns", "elapsed_ns", "rows", "expected"];

/// First start and last end of a session in a slice [ns since the epoch].
#[derive(Clone, Copy)]
struct Span(i64, i64);

const EMPTY: Span = Span(i64::MAX, i64::MIN);

/// Counts of one arm in one group of parts.
#[derive(Default)]
struct Tally {
    latencies: Vec<u64>,
    transactions: u64,
    failed: u64,
    skipped: u64,
    rows: i64,
    started_ns: i64,
    ended_ns: i64,
    busy_ns: i64,
    sessions: Vec<bool>,
}

impl Tally {
    fn merge(&mut self, other: Self) {
        let first = self.sessions.is_empty();
        if first && self.latencies.is_empty() && self.failed + self.skipped + self.transactions == 0 {
            *self = other;
            return;
        }
        self.latencies.extend(other.latencies);
        self.transactions += other.transactions;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.rows += other.rows;
        self.started_ns = self.started_ns.min(other.started_ns);
        self.ended_ns = self.ended_ns.max(other.ended_ns);
        self.busy_ns += other.busy_ns;
        self.sessions.resize(self.sessions.len().max(other.sessions.len()), false);
        for (own, seen) in self.sessions.iter_mut().zip(other.sessions) {
            *own |= seen;
        }
    }

    /// Adds a successful row of the measured kind.
    fn add(&mut self, calls: &CallColumns, row: usize) {
        let intended = calls.intended_ns[row];
        let late = if intended == NONE { 0 } else { calls.started_ns[row] - intended };
        self.latencies.push((late + calls.elapsed_ns[row]).max(0) as u64);
    }

    /// Adds the spans of the sessions, slice by slice; `sessions` is the number of sessions per slice.
    fn close(&mut self, spans: &[Span], sessions: usize) {
        self.sessions = vec![false; sessions];
        (self.started_ns, self.ended_ns) = (i64::MAX, 0);
        for (at, span) in spans.iter().enumerate().filter(|(_, span)| span.0 <= span.1) {
            self.busy_ns += span.1 - span.0;
            self.started_ns = self.started_ns.min(span.0);
            self.ended_ns = self.ended_ns.max(span.1);
            self.sessions[at % sessions] = true;
        }
    }
}

/// Kind of operation to measure, and the SQLSTATEs that count as normal outcomes.
struct Measured<'a> {
    kind: &'a str,
    expected: &'a [String],
}

/// Returns the tallies of one part, keyed by the name of the arm.
fn tally(part: &PartArgument, of: &Measured<'_>) -> Result<BTreeMap<String, Tally>, EvidenceError> {
    // If the plan expects no errors, the rows have no column that says whether they were expected.
    let calls = read_columns(&part.0, &COLUMNS[..COLUMNS.len() - usize::from(of.expected.is_empty())])?;
    let absent = u32::MAX - 1;
    let measured = calls.word(of.kind).unwrap_or(absent);
    let listed: Vec<bool> = calls.words.iter().map(|word| of.expected.contains(word)).collect();
    let expected = |row: usize, error: u32| match calls.expected.get(row) {
        Some(&Some(own)) => own,
        _ => listed[error as usize],
    };
    let transaction = calls.word("transaction").unwrap_or(absent);
    let skipped = calls.word("skipped").unwrap_or(absent);
    let slices = calls.slice.iter().max().map_or(0, |last| *last as usize + 1);
    let sessions = calls.session.iter().max().map_or(0, |last| usize::from(*last) + 1);
    let mut counts = vec![true; slices];
    part.1.iter().filter_map(|&s| counts.get_mut(s as usize).map(|c| *c = false)).for_each(drop);
    let mut arms: Vec<Option<(Tally, Vec<Span>)>> = Vec::new();
    arms.resize_with(calls.words.len(), || None);
    for row in 0..calls.elapsed_ns.len() {
        let (kind, slice) = (calls.kind[row], calls.slice[row] as usize);
        if !counts[slice] {
            continue;
        }
        let (tally, spans) =
            arms[calls.arm[row] as usize].get_or_insert_with(|| (Tally::default(), vec![EMPTY; slices * sessions]));
        let error = calls.error[row];
        let went_well = error == u32::MAX || expected(row, error);
        if kind == measured && went_well {
            tally.add(&calls, row);
        }
        if kind != transaction {
            // The rows of a transaction are those of its commands.
            tally.skipped += u64::from(kind == skipped);
            tally.rows += calls.rows[row].max(0);
            continue;
        }
        if went_well {
            tally.transactions += 1;
            tally.rows += calls.rows[row].max(0);
        } else {
            tally.failed += 1;
        }
        let started = calls.started_ns[row];
        let span = &mut spans[slice * sessions + usize::from(calls.session[row])];
        *span = Span(span.0.min(started), span.1.max(started + calls.elapsed_ns[row]));
    }
    let known = calls.words.into_iter().zip(arms);
    Ok(known
        .filter_map(|(name, arm)| {
            let (mut tally, spans) = arm?;
            tally.close(&spans, sessions);
            Some((name, tally))
        })
        .collect())
}

fn tally_group(parts: &[PartArgument], of: &Measured<'_>) -> Result<BTreeMap<String, Tally>, EvidenceError> {
    let mut whole: BTreeMap<String, Tally> = BTreeMap::new();
    for part in parts {
        for (arm, part_tally) in tally(part, of)? {
            whole.entry(arm).or_default().merge(part_tally);
        }
    }
    Ok(whole)
}

/// Summary of an arm in a group.
struct Summary {
    group: usize,
    arm: String,
    tally: Tally,
    moments: Moments,
    quantiles: Vec<Option<f64>>,
    max_ns: u64,
}

fn summary(group: usize, arm: String, mut tally: Tally, quantiles: &[f64]) -> Summary {
    let moments = Moments::of_integers(&tally.latencies);
    let max_ns = tally.latencies.iter().max().copied().unwrap_or(0);
    let quantiles = select_quantiles(&mut tally.latencies, quantiles);
    Summary { group, arm, tally, moments, quantiles, max_ns }
}

/// Returns type 7 quantiles by selection: each rank is searched beyond the previous one.
///
/// `quantiles` may be in any order; the results are `None` if there are no values.
fn select_quantiles(values: &mut [u64], quantiles: &[f64]) -> Vec<Option<f64>> {
    if quantiles.len() > SELECT_MOST {
        values.sort_unstable();
        return quantiles.iter().map(|&q| quantile(values, q)).collect();
    }
    let mut order: Vec<usize> = (0..quantiles.len()).collect();
    order.sort_by(|a, b| quantiles[*a].total_cmp(&quantiles[*b]));
    let mut found = vec![None; quantiles.len()];
    let mut done = 0;
    for at in order {
        let Some((low, high, share)) = type7_ranks(values.len(), quantiles[at]) else { continue };
        if low >= done {
            values[done..].select_nth_unstable(low - done);
            done = low + 1;
        }
        if high >= done {
            // The next larger value is the smallest of those beyond.
            let beyond = &mut values[done..];
            if let Some(least) = (0..beyond.len()).min_by_key(|&i| beyond[i]) {
                beyond.swap(0, least);
            }
            done = high + 1;
        }
        let (a, b) = (values[low] as f64, values[high] as f64);
        found[at] = Some(a + (b - a) * share);
    }
    found
}

/// Summarise the successful operations of one kind for each group of parts and each arm.
///
/// The latency is the response time from the intended start in an open loop, else the service time. An operation that
/// ended with an `expected` SQLSTATE counts as a success; if a row itself says whether it was expected, that decides.
///
/// Args:
///     groups: Lists of (path, slices that do not count); each list is treated as one block.
///
/// Returns:
///     Dicts: group, arm, count, transactions, failed, skipped, rows, mean_ns, m2, max_ns, quantiles_ns, busy_ns (sum
///     over slices and sessions), sessions, started_ns, ended_ns. Of these count, mean_ns, m2, max_ns and quantiles_ns
///     are of the kind, the others of transactions.
///
/// Raises:
///     EvidenceError: A part cannot be read.
#[pyfunction]
#[pyo3(signature = (groups, quantiles, kind="transaction", expected=Vec::new()))]
pub(crate) fn summarise<'py>(
    py: Python<'py>,
    groups: Vec<Vec<PartArgument>>,
    quantiles: Vec<f64>,
    kind: &str,
    expected: Vec<String>,
) -> PyResult<Bound<'py, PyList>> {
    let of = Measured { kind, expected: &expected };
    let work = |(group, parts): (usize, &Vec<PartArgument>)| {
        let arms = tally_group(parts, &of)?;
        let one = |(arm, tally)| summary(group, arm, tally, &quantiles);
        Ok(arms.into_iter().map(one).collect::<Vec<_>>())
    };
    let rows: Result<Vec<Vec<Summary>>, EvidenceError> =
        py.detach(|| groups.par_iter().enumerate().map(work).collect());
    let list = PyList::empty(py);
    for found in rows.map_err(|e| raise(py, "EvidenceError", &e.to_string()))?.iter().flatten() {
        list.append(row(py, found)?)?;
    }
    Ok(list)
}

fn row<'py>(py: Python<'py>, found: &Summary) -> PyResult<Bound<'py, PyDict>> {
    let (row, tally) = (PyDict::new(py), &found.tally);
    row.set_item("group", found.group)?;
    row.set_item("arm", &found.arm)?;
    row.set_item("count", tally.latencies.len())?;
    row.set_item("transactions", tally.transactions)?;
    row.set_item("failed", tally.failed)?;
    row.set_item("skipped", tally.skipped)?;
    row.set_item("rows", tally.rows)?;
    row.set_item("mean_ns", found.moments.mean)?;
    row.set_item("m2", found.moments.m2)?;
    row.set_item("max_ns", found.max_ns)?;
    row.set_item("quantiles_ns", &found.quantiles)?;
    row.set_item("busy_ns", tally.busy_ns)?;
    row.set_item("sessions", tally.sessions.iter().filter(|seen| **seen).count())?;
    row.set_item("started_ns", tally.started_ns)?;
    row.set_item("ended_ns", tally.ended_ns)?;
    Ok(row)
}

/// Return all latencies of an arm's successful operations of one kind: sorted little-endian u64 [ns].
///
/// Raises:
///     EvidenceError: A part cannot be read.
#[pyfunction]
#[pyo3(signature = (parts, arm, kind="transaction", expected=Vec::new()))]
pub(crate) fn latencies<'py>(
    py: Python<'py>,
    parts: Vec<PartArgument>,
    arm: &str,
    kind: &str,
    expected: Vec<String>,
) -> PyResult<Bound<'py, PyBytes>> {
    let of = Measured { kind, expected: &expected };
    let pooled: Result<Vec<u64>, EvidenceError> = py.detach(|| {
        let tallies: Result<Vec<_>, _> = parts.par_iter().map(|part| tally(part, &of)).collect();
        let mut pooled: Vec<u64> = Vec::new();
        for mut tally in tallies? {
            pooled.extend(tally.remove(arm).unwrap_or_default().latencies);
        }
        pooled.par_sort_unstable();
        Ok(pooled)
    });
    let pooled = pooled.map_err(|e| raise(py, "EvidenceError", &e.to_string()))?;
    let bytes: Vec<u8> = pooled.iter().flat_map(|v| v.to_le_bytes()).collect();
    Ok(PyBytes::new(py, &bytes))
}
