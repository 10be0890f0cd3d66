//! Sorting: in memory, or in runs that are merged from temporary space.
//!
//! `bytes` of rows in an area of `area_bytes` make `runs` = bytes / area, rounded up. A merge has one buffer of
//! `io_bytes` for each run that it reads and one for its output, so that it merges area / io - 1 runs at once (its
//! *fan-in*); each pass reads everything and, except the last, writes everything.

use serde::{Deserialize, Serialize};

use super::direct::Pipe;
use super::task::Task;
use crate::kernel::sample::LONGEST_NS;

/// A sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Sort {
    /// Size of the rows to sort [bytes].
    pub bytes: u64,
    /// Memory for the sort [bytes].
    pub area_bytes: u64,
    /// Size of an I/O [bytes].
    pub io_bytes: u64,
    /// Number of I/Os in flight at the same time, in each direction.
    pub ahead: u64,
    /// CPU time per KB, in the first phase and in each pass [ns].
    pub cpu_ns_per_kb: u64,
}

/// Plan of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortPlan {
    /// Number of runs on temporary space; 0 if all rows fit into memory.
    pub runs: u64,
    /// Number of runs merged at once.
    pub fan_in: u64,
    /// Number of passes over the runs.
    pub passes: u64,
}

impl Sort {
    /// Returns the plan of the sort.
    pub fn plan(&self) -> SortPlan {
        let fan_in = (self.area_bytes / self.io_bytes.max(1)).saturating_sub(1).max(2);
        if self.bytes <= self.area_bytes {
            return SortPlan { runs: 0, fan_in, passes: 0 };
        }
        let runs = self.bytes.div_ceil(self.area_bytes.max(1));
        let (mut left, mut passes) = (runs, 0);
        while left > 1 {
            left = left.div_ceil(fan_in);
            passes += 1;
        }
        SortPlan { runs, fan_in, passes }
    }

    fn cpu_ns(&self, bytes: u64) -> u64 {
        let ns = u128::from(self.cpu_ns_per_kb) * u128::from(bytes) / 1_024;
        u64::try_from(ns).unwrap_or(LONGEST_NS).min(LONGEST_NS)
    }
}

/// A run on temporary space.
#[derive(Clone, Copy)]
struct Run {
    at: u64,
    bytes: u64,
}

/// Sorts rows; the session's temporary space begins at offset `base` and is twice the size of the rows.
pub(super) async fn sort(sort: &Sort, base: u64, task: &mut Task, reads: &mut Pipe, writes: &mut Pipe) {
    let SortPlan { runs, fan_in, passes } = sort.plan();
    if runs == 0 {
        task.run(sort.cpu_ns(sort.bytes)).await;
        return;
    }
    let mut here: Vec<Run> = Vec::with_capacity(runs as usize);
    for at in (0..sort.bytes).step_by(sort.area_bytes.max(1) as usize) {
        let run = Run { at: base + at, bytes: sort.area_bytes.min(sort.bytes - at) };
        task.run(sort.cpu_ns(run.bytes)).await;
        for from in (0..run.bytes).step_by(sort.io_bytes.max(1) as usize) {
            let bytes = sort.io_bytes.min(run.bytes - from);
            writes.push(task, run.at + from, bytes).await;
        }
        here.push(run);
    }
    writes.drain(task).await;
    for pass in 1..=passes {
        let from = if pass % 2 == 0 { base } else { base + sort.bytes };
        let mut at = from;
        let mut merged = Vec::new();
        for group in here.chunks(fan_in as usize) {
            let to = (pass < passes).then_some(at);
            let bytes = merge(sort, group, to, task, reads, writes).await;
            merged.push(Run { at, bytes });
            at += bytes;
        }
        reads.drain(task).await;
        writes.drain(task).await;
        here = merged;
    }
}

/// Merges runs: reads them in rotation, one I/O from each, and writes the result from offset `to` on, unless `to` is
/// `None`; returns the size of the result [bytes].
async fn merge(
    sort: &Sort,
    runs: &[Run],
    to: Option<u64>,
    task: &mut Task,
    reads: &mut Pipe,
    writes: &mut Pipe,
) -> u64 {
    let io_bytes = sort.io_bytes.max(1);
    let (mut done, mut out) = (0, 0);
    let mut turn = 0;
    loop {
        let mut any = false;
        for run in runs.iter().filter(|run| turn < run.bytes) {
            any = true;
            let bytes = io_bytes.min(run.bytes - turn);
            reads.push(task, run.at + turn, bytes).await;
            task.run(sort.cpu_ns(bytes)).await;
            done += bytes;
            while let Some(to) = to.filter(|_| done >= out + io_bytes) {
                writes.push(task, to + out, io_bytes).await;
                out += io_bytes;
            }
        }
        if !any {
            break;
        }
        turn += io_bytes;
    }
    if let Some(to) = to.filter(|_| done > out) {
        writes.push(task, to + out, done - out).await;
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares plans of sorts of 1 GB with counts from the definition.
    #[test]
    fn passes_by_area_and_io() {
        for (area_bytes, io_kb, expected) in [
            (500 << 10, 64, (2_098, 6, 5)),
            (500 << 10, 8, (2_098, 61, 2)),
            (10 << 20, 64, (103, 159, 1)),
            (2 << 30, 64, (0, 32_767, 0)),
        ] {
            let sort = Sort { bytes: 1 << 30, area_bytes, io_bytes: io_kb << 10, ahead: 1, cpu_ns_per_kb: 0 };
            let SortPlan { runs, fan_in, passes } = sort.plan();
            assert_eq!((runs, fan_in, passes), expected);
        }
    }
}
