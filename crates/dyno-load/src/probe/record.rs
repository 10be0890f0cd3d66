//! Rows of a probe: calls of sessions, waits of sessions and of the log writer.
//!
//! Rows are kept in a compact form while the log is written, and are written as Parquet when a block ends.

use std::path::Path;

use dyno_evidence::{Call, CallKind, CallsWriter, EventName, EvidenceError, NONE, WaitRow, WaitsWriter};

/// Who waited; this also determines the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiter {
    /// A session waits for its commit: `log file sync`.
    Session(u16),
    /// The log writer waits for the acknowledgement of a write: `log file parallel write`.
    LogWriter,
    /// A path waits for its device: `log file parallel write`.
    Copy(usize),
    /// The log writer waits until the first path's backlog has room.
    Room,
}

/// Names of the events, with their groups and classes.
const EVENTS: [[&str; 3]; 3] = [
    ["log file sync", "Commit", "commit"],
    ["log file parallel write", "System I/O", "log write"],
    ["log write held back", "System I/O", "log write"],
];
const OBJECTS: [&str; 4] = ["session", "lgwr", "first path", "second path"];

/// Session number of background processes: above those of all sessions, and the same as for the model's log writer.
const LOG_WRITER: i64 = 65536;

impl Waiter {
    /// Returns the indexes in `EVENTS` and `OBJECTS`.
    fn words(self) -> (u32, u32) {
        match self {
            Self::Session(_) => (0, 0),
            Self::LogWriter => (1, 1),
            Self::Copy(copy) => (1, 2 + copy as u32),
            Self::Room => (2, 1),
        }
    }

    fn session(self) -> i64 {
        if let Self::Session(number) = self { i64::from(number) } else { LOG_WRITER }
    }
}

/// A commit that is acknowledged or pending.
#[derive(Debug, Clone, Copy)]
pub(super) struct Commit {
    /// Session number.
    pub session: u16,
    /// Intended start in an open loop \[ns since the epoch\]; [`NONE`] in a closed loop.
    pub intended_ns: i64,
    /// When the session requested the commit \[ns since the epoch\].
    pub started_ns: i64,
    /// Redo of the commit \[bytes\].
    pub redo_bytes: u64,
    /// Commit number in the log, from 1.
    pub number: u64,
}

/// Rows of the current block.
#[derive(Debug, Default)]
pub(super) struct Rows {
    calls: Vec<Call>,
    waits: Vec<WaitRow>,
    arm: u16,
    slice: u32,
    block: u32,
}

impl Rows {
    /// Sets block, slice and arm of the rows that follow.
    pub fn turn(&mut self, block: u32, slice: u32, arm: u16) {
        (self.block, self.slice, self.arm) = (block, slice, arm);
    }

    /// Discards all rows.
    pub fn clear(&mut self) {
        self.calls.clear();
        self.waits.clear();
    }

    /// Adds a wait of the log writer or of a path, with its three parameters.
    pub fn write(&mut self, waiter: Waiter, started_ns: i64, ended_ns: i64, (p1, p2, p3): (u64, u32, i64)) {
        self.wait(waiter, started_ns, ended_ns - started_ns, [p1 as i64, i64::from(p2), p3]);
    }

    fn wait(&mut self, waiter: Waiter, started_ns: i64, elapsed_ns: i64, p: [i64; 3]) {
        let (event, object) = waiter.words();
        let (arm, session) = (u32::from(self.arm), waiter.session());
        self.waits.push(WaitRow { arm, session, started_ns, elapsed_ns, event, object, p });
    }

    /// Adds an acknowledged commit: a transaction, its commit, and the session's wait.
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
        let about = [sequence as i64, commit.number as i64, NONE];
        self.wait(Waiter::Session(commit.session), commit.started_ns, elapsed_ns, about);
    }

    /// Adds a row for an arrival in an open loop for which no session was free before the slice ended.
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

    /// Writes `calls/<name>.parquet` and `waits/<name>.parquet` in `folder` and discards the rows.
    ///
    /// Returns the number of calls.
    ///
    /// # Errors
    /// The evidence cannot be written.
    pub fn save(&mut self, folder: &Path, name: &str, arms: &[String]) -> Result<u64, EvidenceError> {
        let statements = ["redo".to_owned(), "commit".to_owned()];
        let mut calls = CallsWriter::create(&folder.join("calls"), name, arms, &statements)?;
        calls.push(&self.calls, &[])?;
        let names = EVENTS.map(|[event, event_type, class]| EventName {
            event: event.to_owned(),
            event_type: event_type.to_owned(),
            class: class.to_owned(),
        });
        let objects = OBJECTS.map(str::to_owned).to_vec();
        let (events, arms) = (names.to_vec(), arms.to_vec());
        let folder = folder.join("waits");
        let mut waits = WaitsWriter::create(&folder, name, self.block, arms, events, objects)?;
        for piece in self.waits.chunks(1 << 16) {
            waits.push(piece)?;
        }
        waits.finish()?;
        let rows = calls.finish()?;
        self.clear();
        Ok(rows)
    }
}
