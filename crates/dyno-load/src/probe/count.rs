//! Counters of a log writer, and their names in the evidence.
//!
//! The counters of the race are named like those of a storage cell's flash log, so that a cell, a model and a probe can
//! be compared: the *disk* is the first path, the *flash* is the second.

use serde::Serialize;

/// Totals since the probe began.
///
/// Two equations always hold: `won[0] + won[1]` is the number of races; with the rule `first`, the number of races plus
/// `skipped_busy` is `writes`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Number of acknowledged commits.
    pub commits: u64,
    /// Redo of the acknowledged commits \[bytes\].
    pub redo_bytes: u64,
    /// Number of writes to the log.
    pub writes: u64,
    /// Number of blocks in the writes to the log.
    pub blocks: u64,
    /// Space for redo that stayed unused in the last block of each write \[bytes\].
    pub wasted_bytes: u64,
    /// Number of times the log restarted at the beginning of its file.
    pub laps: u64,
    /// Number of races that each path won.
    pub won: [u64; 2],
    /// Number of writes that skipped the second path because it was too far behind.
    pub skipped_busy: u64,
    /// Number of writes that waited because the first path was too far behind.
    pub held_back: u64,
    /// Number of bytes made durable on each path.
    pub bytes: [u64; 2],
    /// Largest backlog of each path \[bytes\].
    pub behind_max: [u64; 2],
    /// Number of outliers on each path: writes that took as long as the threshold or longer.
    pub slow: [u64; 2],
    /// Number of races in which the first path was an outlier and the second was not.
    pub prevented_outliers: u64,
    /// Number of races in which the second path was an outlier and the first was not.
    pub second_only_outliers: u64,
    /// Number of writes that were outliers on every path to which they went.
    pub actual_outliers: u64,
}

/// Row of the evidence: name, unit, kind and value.
pub type Metric = (&'static str, &'static str, &'static str, u64);

impl Counts {
    /// Counts the outliers of one write, based on the time that the device of each path took \[ns\].
    ///
    /// `raced` is true with the rule `first`. A write that queues behind an outlier on its path does not count as an
    /// outlier itself: without the race it would not have been started yet.
    pub(super) fn judge(&mut self, took_ns: [Option<i64>; 2], outlier_ns: i64, raced: bool) {
        let slow = took_ns.map(|took| took.is_some_and(|ns| ns >= outlier_ns));
        self.slow[0] += u64::from(slow[0]);
        self.slow[1] += u64::from(slow[1]);
        if !raced {
            return;
        }
        match (slow, took_ns[1].is_some()) {
            ([true, true], _) | ([true, _], false) => self.actual_outliers += 1,
            ([true, false], true) => self.prevented_outliers += 1,
            ([false, true], _) => self.second_only_outliers += 1,
            ([false, false], _) => {}
        }
    }

    /// Returns the counters of the log as a whole.
    pub fn log(&self) -> Vec<Metric> {
        vec![
            ("commits", "count", "counter", self.commits),
            ("redo size", "bytes", "counter", self.redo_bytes),
            ("redo writes", "count", "counter", self.writes),
            ("redo blocks written", "count", "counter", self.blocks),
            ("redo wastage", "bytes", "counter", self.wasted_bytes),
            ("laps", "count", "counter", self.laps),
        ]
    }

    /// Returns the counters of the race, under the names that a cell uses.
    pub fn race(&self) -> Vec<Metric> {
        vec![
            ("FL_RQ_W", "count", "counter", self.writes),
            ("FL_IO_W", "count", "counter", self.won[0] + self.won[1]),
            ("FL_DISK_FIRST", "count", "counter", self.won[0]),
            ("FL_FLASH_FIRST", "count", "counter", self.won[1]),
            ("FL_IO_W_SKIP_BUSY", "count", "counter", self.skipped_busy),
            ("FL_PREVENTED_OUTLIERS", "count", "counter", self.prevented_outliers),
            ("FL_FLASH_ONLY_OUTLIERS", "count", "counter", self.second_only_outliers),
            ("FL_ACTUAL_OUTLIERS", "count", "counter", self.actual_outliers),
            ("writes held back", "count", "counter", self.held_back),
        ]
    }

    /// Returns the counters of one path.
    pub fn path(&self, copy: usize) -> Vec<Metric> {
        vec![
            ("bytes written", "bytes", "counter", self.bytes[copy]),
            ("outliers", "count", "counter", self.slow[copy]),
            ("farthest behind", "bytes", "gauge", self.behind_max[copy]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_outlier_is_told_from_the_others() {
        let judged = |took: [Option<i64>; 2]| {
            let mut counts = Counts::default();
            counts.judge(took, 500, true);
            [counts.prevented_outliers, counts.second_only_outliers, counts.actual_outliers]
        };
        assert_eq!(judged([Some(499), Some(1)]), [0, 0, 0]);
        assert_eq!(judged([Some(500), Some(1)]), [1, 0, 0]);
        assert_eq!(judged([Some(1), Some(500)]), [0, 1, 0]);
        assert_eq!(judged([Some(700), Some(600)]), [0, 0, 1]);
        assert_eq!(judged([Some(700), None]), [0, 0, 1], "skipped, so nothing prevented it");
    }
}
