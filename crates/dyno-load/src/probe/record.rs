//! The rows of a probe: calls of sessions, waits of sessions and of the log writer.
//!
//! Rows are kept as small values while the log is written, and become Parquet when a block ends.

use std::path::Path;

use dyno_evidence::table::{Column, Kind, Table, Values};
use dyno_evidence::{Call, CallKind, CallsWriter, EvidenceError, NONE};

/// Who waited, and with that for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiter {
    /// A session for its commit: `log file sync`.
    Session(u16),
    /// The log writer for the acknowledgement: `log file parallel write`.
    LogWriter,
    /// A path for its device: `log file parallel write`.
    Copy(usize),
    /// The log writer for room in the first path's backlog.
    Room,
}

const EVENTS: [&str; 3] = ["log file sync", "log file parallel write", "log write held back"];
const TYPES: [&str; 2] = ["Commit", "System I/O"];
const CLASSES: [&str; 2] = ["commit", "log write"];
const OBJECTS: [&str; 4] = ["session", "lgwr", "first path", "second path"];
const FIDELITY: &str = "exact";

impl Waiter {
    /// Numbers in `EVENTS`, `TYPES` and `CLASSES`, and `OBJECTS`.
    fn words(self) -> (u32, u32, u32) {
        match self {
            Self::Session(_) => (0, 0, 0),
            Self::LogWriter => (1, 1, 1),
            Self::Copy(copy) => (1, 1, 2 + copy as u32),
            Self::Room => (2, 1, 1),
        }
    }

    /// The session's number; background threads have -1.
    fn session(self) -> i64 {
        if let Self::Session(number) = self { i64::from(number) } else { -1 }
    }
}

/// A wait, without what its block gives it.
#[derive(Debug, Clone, Copy)]
struct Wait {
    arm: u16,
    waiter: Waiter,
    started_ns: i64,
    elapsed_ns: i64,
    p: [i64; 3],
}

/// Columns of the waits, as in every part of waits, and the three parameters.
const WAITS: [Column; 13] = [
    Column::new("arm", Kind::Words),
    Column::new("block", Kind::U32),
    Column::new("session", Kind::I64),
    Column::new("started_ns", Kind::I64),
    Column::new("elapsed_ns", Kind::I64),
    Column::new("event", Kind::Words),
    Column::new("event_type", Kind::Words),
    Column::new("class", Kind::Words),
    Column::new("object", Kind::Words),
    Column::new("fidelity", Kind::Words),
    Column::optional("p1", Kind::I64),
    Column::optional("p2", Kind::I64),
    Column::optional("p3", Kind::I64),
];

/// A commit as it ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Commit {
    /// The session.
    pub session: u16,
    /// Open loop: when it was meant to begin; closed loop: [`NONE`].
    pub intended_ns: i64,
    /// When the session asked for it.
    pub started_ns: i64,
    /// Its redo.
    pub redo_bytes: u64,
    /// Its number in the log, from 1.
    pub number: u64,
}

/// The rows of the open block.
#[derive(Debug, Default)]
pub(super) struct Rows {
    calls: Vec<Call>,
    waits: Vec<Wait>,
    arm: u16,
    slice: u32,
    block: u32,
}

impl Rows {
    /// What follows belongs to this turn.
    pub fn turn(&mut self, block: u32, slice: u32, arm: u16) {
        (self.block, self.slice, self.arm) = (block, slice, arm);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.calls.clear();
        self.waits.clear();
    }

    /// A wait of the log writer or of a path, with its three parameters.
    pub fn write(
        &mut self,
        waiter: Waiter,
        started_ns: i64,
        ended_ns: i64,
        (p1, p2, p3): (u64, u32, i64),
    ) {
        let p = [p1 as i64, i64::from(p2), p3];
        let elapsed_ns = ended_ns - started_ns;
        self.waits.push(Wait { arm: self.arm, waiter, started_ns, elapsed_ns, p });
    }

    /// A commit that was acknowledged: a transaction, its commit, and the session's wait.
    pub fn commit(&mut self, commit: &Commit, sequence: u64, ended_ns: i64) {
        let elapsed_ns = ended_ns - commit.started_ns;
        let whole = Call {
            intended_ns: commit.intended_ns,
            started_ns: commit.started_ns,
            elapsed_ns,
            block: self.block,
            slice: self.slice,
            session: commit.session,
            arm: self.arm,
            ..Call::new()
        };
        self.calls.push(whole);
        self.calls.push(Call {
            intended_ns: NONE,
            kind: CallKind::Commit,
            statement: 1,
            redo_bytes: commit.redo_bytes as i64,
            unflushed_bytes: commit.redo_bytes as i64,
            ..whole
        });
        self.waits.push(Wait {
            arm: self.arm,
            waiter: Waiter::Session(commit.session),
            started_ns: commit.started_ns,
            elapsed_ns,
            p: [sequence as i64, commit.number as i64, NONE],
        });
    }

    /// An arrival of an open loop that no session was free for before the turn ended.
    pub fn skipped(&mut self, intended_ns: i64) {
        self.calls.push(Call {
            intended_ns,
            started_ns: intended_ns,
            kind: CallKind::Skipped,
            block: self.block,
            slice: self.slice,
            arm: self.arm,
            ..Call::new()
        });
    }

    /// Writes `calls/<name>.parquet` and `waits/<name>.parquet` below `folder` and begins afresh;
    /// returns the number of calls.
    pub fn save(
        &mut self,
        folder: &Path,
        name: &str,
        arms: &[String],
    ) -> Result<u64, EvidenceError> {
        let statements = ["redo".to_owned(), "commit".to_owned()];
        let mut calls = CallsWriter::create(&folder.join("calls"), name, arms, &statements)?;
        calls.push(&self.calls, &[])?;
        let mut waits = Table::create(&folder.join("waits"), name, &WAITS)?;
        for piece in self.waits.chunks(1 << 16) {
            waits.write(columns(piece, self.block, arms))?;
        }
        waits.finish()?;
        let rows = calls.finish()?;
        self.clear();
        Ok(rows)
    }
}

fn columns(waits: &[Wait], block: u32, arms: &[String]) -> Vec<Values> {
    let numbers = |value: fn(&Wait) -> i64| Values::I64(waits.iter().map(value).collect());
    let words = |value: fn(&Wait) -> u32, list: &[&str]| {
        let list = list.iter().map(|word| (*word).to_owned()).collect();
        Values::Words(waits.iter().map(value).collect(), list)
    };
    vec![
        Values::Words(waits.iter().map(|w| u32::from(w.arm)).collect(), arms.to_vec()),
        Values::U32(vec![block; waits.len()]),
        numbers(|w| w.waiter.session()),
        numbers(|w| w.started_ns),
        numbers(|w| w.elapsed_ns),
        words(|w| w.waiter.words().0, &EVENTS),
        words(|w| w.waiter.words().1, &TYPES),
        words(|w| w.waiter.words().1, &CLASSES),
        words(|w| w.waiter.words().2, &OBJECTS),
        words(|_| 0, &[FIDELITY]),
        numbers(|w| w.p[0]),
        numbers(|w| w.p[1]),
        numbers(|w| w.p[2]),
    ]
}
