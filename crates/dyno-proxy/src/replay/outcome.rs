//! Result of a replay: counts of equal and different answers, and descriptions of the first differences.

use super::timed::Timed;

/// Largest number of differences that are reported individually.
const TOLD: usize = 20;

/// Result of one session or of all.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Finished round trips.
    pub turns: u64,
    /// Statement ends that are the same as in the capture.
    pub same: u64,
    /// Of these, those whose number of rows the capture does not have.
    pub uncounted: u64,
    /// Statements with a different number of rows.
    pub rows_differ: u64,
    /// Statements that fail now and did not fail in the capture.
    pub fails_now: u64,
    /// Statements that failed in the capture and do not fail now.
    pub failed_then: u64,
    /// Statements that fail with another SQLSTATE than in the capture.
    pub fails_otherwise: u64,
    /// Round trips with missing or additional answers.
    pub uneven: u64,
    /// Number of replaced key values.
    pub mapped: u64,
    /// Waits for earlier commits that timed out.
    pub out_of_order: u64,
    /// Round trips that were not captured completely, and left out.
    pub left_out: u64,
    /// Sessions that could not continue.
    pub broken: u64,
    /// Largest delay of a round trip's start relative to the capture [ns].
    pub late_ns: u64,
    /// Descriptions of the first differences and errors.
    pub told: Vec<String>,
    /// Timed transactions.
    pub timed: Vec<Timed>,
}

impl Outcome {
    /// Adds another result.
    pub fn add(&mut self, other: Self) {
        for (mine, its) in [
            (&mut self.turns, other.turns),
            (&mut self.same, other.same),
            (&mut self.uncounted, other.uncounted),
            (&mut self.rows_differ, other.rows_differ),
            (&mut self.fails_now, other.fails_now),
            (&mut self.failed_then, other.failed_then),
            (&mut self.fails_otherwise, other.fails_otherwise),
            (&mut self.uneven, other.uneven),
            (&mut self.mapped, other.mapped),
            (&mut self.out_of_order, other.out_of_order),
            (&mut self.left_out, other.left_out),
            (&mut self.broken, other.broken),
        ] {
            *mine += its;
        }
        self.late_ns = self.late_ns.max(other.late_ns);
        self.told.extend(other.told);
        self.told.truncate(TOLD);
        self.timed.extend(other.timed);
    }

    /// Keeps a description of a difference, unless there are [`TOLD`] already.
    pub(super) fn tell(&mut self, words: impl FnOnce() -> String) {
        if self.told.len() < TOLD {
            self.told.push(words());
        }
    }
}
