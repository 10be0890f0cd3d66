//! Summaries of transactions per block and arm, and the pooled latencies of an arm.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use dyno_evidence::{CallColumns, EvidenceError, NONE, read_calls};
use dyno_stats::moments::Moments;
use dyno_stats::quantiles::quantile;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use rayon::prelude::*;

use crate::errors::raise;

/// A part and the slices of it that do not count.
type PartArgument = (PathBuf, Vec<u32>);

/// What one arm did in one group of parts.
#[derive(Default)]
struct Tally {
    latencies: Vec<u64>,
    failed: u64,
    skipped: u64,
    rows: i64,
    started_ns: i64,
    ended_ns: i64,
    /// First start and last end per (part, slice, session).
    spans: HashMap<(u32, u32, u16), (i64, i64)>,
}

impl Tally {
    fn add(&mut self, calls: &CallColumns, row: usize, part: u32) {
        let (started, elapsed) = (calls.started_ns[row], calls.elapsed_ns[row]);
        let ended = started + elapsed;
        let key = (part, calls.slice[row], calls.session[row]);
        let span = self.spans.entry(key).or_insert((started, ended));
        *span = (span.0.min(started), span.1.max(ended));
        if calls.error[row] == u32::MAX {
            let intended = calls.intended_ns[row];
            let latency = if intended == NONE { elapsed } else { ended - intended };
            self.latencies.push(latency.max(0) as u64);
            self.rows += calls.rows[row].max(0);
        } else {
            self.failed += 1;
        }
    }

    fn merge(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.rows += other.rows;
        self.spans.extend(other.spans);
    }

    fn close(&mut self) {
        self.latencies.sort_unstable();
        self.started_ns = self.spans.values().map(|s| s.0).min().unwrap_or(0);
        self.ended_ns = self.spans.values().map(|s| s.1).max().unwrap_or(0);
    }

    fn busy_ns(&self) -> i64 {
        self.spans.values().map(|span| span.1 - span.0).sum()
    }

    fn sessions(&self) -> usize {
        let mut sessions: Vec<u16> = self.spans.keys().map(|key| key.2).collect();
        sessions.sort_unstable();
        sessions.dedup();
        sessions.len()
    }
}

fn tally(part: &PartArgument, number: u32) -> Result<BTreeMap<String, Tally>, EvidenceError> {
    let calls = read_calls(&part.0)?;
    let mut arms: BTreeMap<u32, Tally> = BTreeMap::new();
    let (transaction, skipped) = (calls.word("transaction"), calls.word("skipped"));
    for row in 0..calls.elapsed_ns.len() {
        let kind = Some(calls.kind[row]);
        if (kind != transaction && kind != skipped) || part.1.contains(&calls.slice[row]) {
            continue;
        }
        let arm = arms.entry(calls.arm[row]).or_default();
        if kind == skipped {
            arm.skipped += 1;
        } else {
            arm.add(&calls, row, number);
        }
    }
    Ok(arms.into_iter().map(|(arm, t)| (calls.words[arm as usize].clone(), t)).collect())
}

fn tally_group(parts: &[PartArgument]) -> Result<BTreeMap<String, Tally>, EvidenceError> {
    let mut whole: BTreeMap<String, Tally> = BTreeMap::new();
    for (number, part) in parts.iter().enumerate() {
        for (arm, part_tally) in tally(part, number as u32)? {
            whole.entry(arm).or_default().merge(part_tally);
        }
    }
    whole.values_mut().for_each(Tally::close);
    Ok(whole)
}

/// Summaries of successful transactions for each group of parts and each arm.
///
/// `groups` holds lists of (path, slices that do not count); each list is taken as one block.
/// Latency is the response time from the intended start in an open loop, else the service time.
/// Returns dicts: group, arm, count, failed, skipped, rows, mean_ns, m2, max_ns, quantiles_ns,
/// busy_ns (sum over slices and sessions), sessions, started_ns, ended_ns.
#[pyfunction]
pub(crate) fn summarise<'py>(
    py: Python<'py>,
    groups: Vec<Vec<PartArgument>>,
    quantiles: Vec<f64>,
) -> PyResult<Bound<'py, PyList>> {
    let tallies: Result<Vec<_>, EvidenceError> =
        py.detach(|| groups.par_iter().map(|parts| tally_group(parts)).collect());
    let tallies = tallies.map_err(|e| raise(py, "EvidenceError", &e.to_string()))?;
    let list = PyList::empty(py);
    for (group, arms) in tallies.iter().enumerate() {
        for (arm, tally) in arms {
            let row = PyDict::new(py);
            let moments = Moments::of_integers(&tally.latencies);
            row.set_item("group", group)?;
            row.set_item("arm", arm)?;
            row.set_item("count", tally.latencies.len())?;
            row.set_item("failed", tally.failed)?;
            row.set_item("skipped", tally.skipped)?;
            row.set_item("rows", tally.rows)?;
            row.set_item("mean_ns", moments.mean)?;
            row.set_item("m2", moments.m2)?;
            row.set_item("max_ns", tally.latencies.last().copied().unwrap_or(0))?;
            let values: Vec<Option<f64>> =
                quantiles.iter().map(|&q| quantile(&tally.latencies, q)).collect();
            row.set_item("quantiles_ns", values)?;
            row.set_item("busy_ns", tally.busy_ns())?;
            row.set_item("sessions", tally.sessions())?;
            row.set_item("started_ns", tally.started_ns)?;
            row.set_item("ended_ns", tally.ended_ns)?;
            list.append(row)?;
        }
    }
    Ok(list)
}

/// All latencies of an arm's successful transactions in these parts: sorted u64 ns, little endian.
#[pyfunction]
pub(crate) fn latencies<'py>(
    py: Python<'py>,
    parts: Vec<PartArgument>,
    arm: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let pooled: Result<Vec<u64>, EvidenceError> = py.detach(|| {
        let tallies: Result<Vec<_>, _> = parts.par_iter().map(|part| tally(part, 0)).collect();
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
