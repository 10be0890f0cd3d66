//! What a replay came to: counts of equal and different answers, and the first differences in words.

use super::timed::Timed;

/// Number of differences that are kept in words.
const TOLD: usize = 20;

/// What became of a session, or of all.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Round trips, and the answers in them.
    pub turns: u64,
    /// Ends of statements that were as then.
    pub same: u64,
    /// Another number of rows.
    pub rows_differ: u64,
    /// Failed now and not then.
    pub fails_now: u64,
    /// Failed then and not now.
    pub failed_then: u64,
    /// Failed otherwise.
    pub fails_otherwise: u64,
    /// Answers that are missing, or too many.
    pub uneven: u64,
    /// Values that a new key stands for.
    pub mapped: u64,
    /// Waits for a commit that were given up.
    pub out_of_order: u64,
    /// Round trips that were not whole in the capture, and left out.
    pub left_out: u64,
    /// Sessions that could not go on.
    pub broken: u64,
    /// How much later than then round trips began, at most.
    pub late_ns: u64,
    /// In words, the first of them.
    pub told: Vec<String>,
    /// Transactions as they went, where they are timed.
    pub timed: Vec<Timed>,
}

impl Outcome {
    /// Together with another.
    pub fn add(&mut self, other: Self) {
        for (mine, its) in [
            (&mut self.turns, other.turns),
            (&mut self.same, other.same),
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

    /// Keep a difference in words, if there are not too many yet.
    pub(super) fn tell(&mut self, words: impl FnOnce() -> String) {
        if self.told.len() < TOLD {
            self.told.push(words());
        }
    }
}
