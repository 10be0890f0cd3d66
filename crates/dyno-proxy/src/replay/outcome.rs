//! Result of a replay: counts of equal and different answers, and descriptions of the first differences.

use std::collections::HashMap;

use serde_json::{Value as Json, json};

use super::timed::Timed;

/// Largest number of differences that are reported individually.
const EXAMPLES: usize = 20;

/// Largest number of statements with differences that are counted individually.
const STATEMENTS: usize = 1000;

/// Difference between the captured and the replayed answer of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Different number of rows.
    Rows,
    /// The statement fails now and did not fail in the capture.
    FailsNow,
    /// The statement failed in the capture and does not fail now.
    FailedThen,
    /// The statement fails with another SQLSTATE than in the capture.
    FailsOtherwise,
}

/// Result of one session or of all.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Number of finished round trips.
    pub turns: u64,
    /// Number of statement ends that are the same as in the capture.
    pub same: u64,
    /// Number of statement ends counted in `same` for which the capture has no row count.
    pub uncounted: u64,
    /// Number of statements with a different number of rows.
    pub rows_differ: u64,
    /// Number of statements that fail now and did not fail in the capture.
    pub fails_now: u64,
    /// Number of statements that failed in the capture and do not fail now.
    pub failed_then: u64,
    /// Number of statements that fail with another SQLSTATE than in the capture.
    pub fails_otherwise: u64,
    /// Number of round trips with missing or additional answers.
    pub uneven: u64,
    /// Number of replaced key values.
    pub mapped: u64,
    /// Number of waits for earlier commits that timed out.
    pub out_of_order: u64,
    /// Number of round trips that were left out because they were not captured completely.
    pub left_out: u64,
    /// Number of sessions that could not continue.
    pub broken: u64,
    /// Largest delay of a round trip's start relative to the capture [ns].
    pub late_ns: u64,
    /// Numbers of differences by statement without its literals, each in the order of [`Difference`].
    pub statements: HashMap<String, [u64; 4]>,
    /// Descriptions of the first differences and errors.
    pub examples: Vec<String>,
    /// Timed transactions.
    pub timed: Vec<Timed>,
}

impl Outcome {
    /// Adds the result of another session.
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
        for (statement, counts) in other.statements {
            let mine = self.statements.entry(statement).or_default();
            mine.iter_mut().zip(counts).for_each(|(mine, its)| *mine += its);
        }
        self.examples.extend(other.examples);
        self.examples.truncate(EXAMPLES);
        self.timed.extend(other.timed);
    }

    /// Counts a difference of a statement.
    pub(super) fn differs(&mut self, difference: Difference, statement: &str) {
        match difference {
            Difference::Rows => self.rows_differ += 1,
            Difference::FailsNow => self.fails_now += 1,
            Difference::FailedThen => self.failed_then += 1,
            Difference::FailsOtherwise => self.fails_otherwise += 1,
        }
        if self.statements.len() < STATEMENTS || self.statements.contains_key(statement) {
            self.statements.entry(statement.to_owned()).or_default()[difference as usize] += 1;
        }
    }

    /// Returns the differences by statement as JSON, the most frequent first.
    pub(super) fn by_statement(&self) -> Json {
        let mut found: Vec<_> = self.statements.iter().collect();
        found.sort_unstable_by_key(|(text, counts)| (std::cmp::Reverse(counts.iter().sum::<u64>()), *text));
        found
            .into_iter()
            .map(|(text, [rows, now, then, otherwise])| {
                json!({
                    "statement": text, "rows_differ": rows, "fails_now": now, "failed_then": then,
                    "fails_otherwise": otherwise,
                })
            })
            .collect()
    }

    /// Keeps a description of a difference, unless there are [`EXAMPLES`] already.
    pub(super) fn add_example(&mut self, words: impl FnOnce() -> String) {
        if self.examples.len() < EXAMPLES {
            self.examples.push(words());
        }
    }
}
