//! Faults of a device: errors, delays and lost flushes, each counted and recorded.

use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Effect of a faulty operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The operation fails with EIO.
    Eio,
    /// A write fails with ENOSPC.
    Enospc,
    /// The operation takes longer than modelled.
    Slow,
    /// The operation does not return before the unmount.
    Stuck,
    /// A flush reports success and makes nothing durable.
    LyingFlush,
    /// A flush fails; the writes that it covers count as written, but are lost.
    FailedFlush,
    /// After a power cut a member of a RAID-5 array is rebuilt from parity that is older or newer than the data.
    WriteHole,
    /// After a write hole, a page has content that neither the program nor the array wrote.
    #[serde(skip_deserializing)]
    RebuiltPage,
    /// A page had its former content after a power cut.
    #[serde(skip_deserializing)]
    LostPage,
    /// Some sectors of a page had their former content after a power cut.
    #[serde(skip_deserializing)]
    TornPage,
    /// The creation, removal or renaming of a file was undone by a power cut.
    #[serde(skip_deserializing)]
    UndoneName,
}

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Read of a file.
    Read,
    /// Write to a file.
    Write,
    /// Flush of a file or folder.
    Flush,
}

/// Fault rule: which operations are faulty, and how.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Effect of the fault.
    pub kind: FaultKind,
    /// Pattern for file paths relative to the folder, with `*` for any text; empty for all files.
    #[serde(default)]
    pub path: String,
    /// Operation that is faulty; if absent, reads, writes and flushes are faulty, except those to which this kind of
    /// fault cannot apply.
    #[serde(default)]
    pub operation: Option<Operation>,
    /// Offset of the first faulty byte in each file.
    #[serde(default)]
    pub from_bytes: u64,
    /// Offset of the byte after the last faulty one; 0 for the end of the file.
    #[serde(default)]
    pub to_bytes: u64,
    /// Number of operations that succeed before the first fault.
    #[serde(default)]
    pub after: u64,
    /// Number of faulty operations after those; 0 makes all further operations faulty.
    #[serde(default)]
    pub count: u64,
    /// Additional time of a slow operation [ms].
    #[serde(default)]
    pub ms: u64,
    /// Number of members of an array with a write hole; 0 for the default.
    #[serde(default)]
    pub members: u64,
    /// Size of a member's piece in each row of the array [KB]; 0 for the default.
    #[serde(default)]
    pub stripe_kb: u64,
}

impl Rule {
    fn allows(&self, operation: Operation) -> bool {
        let possible = match self.kind {
            FaultKind::Enospc => operation == Operation::Write,
            FaultKind::LyingFlush | FaultKind::FailedFlush => operation == Operation::Flush,
            FaultKind::Eio | FaultKind::Slow | FaultKind::Stuck => true,
            FaultKind::WriteHole
            | FaultKind::RebuiltPage
            | FaultKind::LostPage
            | FaultKind::TornPage
            | FaultKind::UndoneName => false,
        };
        possible && self.operation.is_none_or(|only| only == operation)
    }

    fn covers(&self, offset: u64, bytes: u64) -> bool {
        let to = if self.to_bytes == 0 { u64::MAX } else { self.to_bytes };
        offset < to && offset + bytes.max(1) > self.from_bytes
    }
}

/// A fault that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FaultRow {
    /// Time of the fault, since 1970-01-01 UTC [ns].
    pub at_ns: u64,
    /// Effect of the fault.
    pub kind: FaultKind,
    /// Faulty operation.
    pub operation: Operation,
    /// Path of the file relative to the folder.
    pub file: String,
    /// Offset of the operation [bytes].
    pub offset_bytes: u64,
    /// Length of the operation [bytes].
    pub bytes: u64,
}

/// Fault rules of a mount, and the faults that happened.
pub struct Faults {
    rules: Vec<(Rule, Mutex<u64>)>,
    rows: Mutex<Vec<FaultRow>>,
}

/// Maximum number of recorded faults; further faults are only counted for their rule.
const ROWS_MOST: usize = 10_000;

impl Faults {
    /// Returns the fault rules of a mount; no fault is recorded yet.
    pub fn new(rules: Vec<Rule>) -> Self {
        let rules = rules.into_iter().map(|rule| (rule, Mutex::new(0))).collect();
        Self { rules, rows: Mutex::default() }
    }

    /// Returns true if there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Records a fault if a rule makes this operation faulty; returns that rule, or `None`.
    pub fn strike(&self, operation: Operation, file: impl Fn() -> String, offset: u64, bytes: u64) -> Option<&Rule> {
        let mut shown = None;
        for (rule, seen) in &self.rules {
            if !rule.allows(operation) || operation != Operation::Flush && !rule.covers(offset, bytes) {
                continue;
            }
            let file = shown.get_or_insert_with(&file);
            if !rule.path.is_empty() && !matches(&rule.path, file) {
                continue;
            }
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            *seen += 1;
            if *seen <= rule.after || rule.count > 0 && *seen > rule.after + rule.count {
                continue;
            }
            self.record(rule.kind, operation, file.clone(), offset, bytes);
            return Some(rule);
        }
        None
    }

    fn record(&self, kind: FaultKind, operation: Operation, file: String, offset_bytes: u64, bytes: u64) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.len() < ROWS_MOST {
            rows.push(FaultRow { at_ns: now_ns(), kind, operation, file, offset_bytes, bytes });
        }
    }

    /// Returns the faults that happened, in order.
    pub fn rows(&self) -> Vec<FaultRow> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns the time since 1970-01-01 UTC [ns].
pub fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// Returns true if a text matches a pattern with `*` for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(head) else { return false };
    (0..=text.len()).any(|at| text.is_char_boundary(at) && matches(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_a_whole_path() {
        assert!(matches("pg_wal/*", "pg_wal/0001") && matches("*.db", "a/b.db") && matches("*", ""));
        assert!(!matches("pg_wal/*", "base/1") && !matches("a", "ab") && !matches("*.db", "x.db-wal"));
    }

    #[test]
    fn the_third_write_of_a_file_fails_once() {
        let rule: Rule = serde_json::from_value(serde_json::json!({
            "kind": "eio", "path": "a*", "operation": "write", "after": 2, "count": 1
        }))
        .unwrap_or_else(|error| panic!("{error}"));
        let faults = Faults::new(vec![rule]);
        let strike = |operation, file: &str| faults.strike(operation, || file.into(), 0, 1).is_some();
        let writes = [strike(Operation::Write, "a"), strike(Operation::Write, "b"), strike(Operation::Write, "ab")];
        assert_eq!(writes, [false; 3]);
        assert!(!strike(Operation::Read, "a") && strike(Operation::Write, "a") && !strike(Operation::Write, "a"));
        assert_eq!(faults.rows().len(), 1);
    }
}
