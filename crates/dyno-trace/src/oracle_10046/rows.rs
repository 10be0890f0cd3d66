//! Rows: records completed with information from other records.
//!
//! A row has its session, its statement, the wall clock and its exclusive figures. Information that comes later in the
//! file, a call's parent and a wait's owner, arrives at the [`Sink`] as a link. All times are nanoseconds, whatever the
//! trace's unit.

use dyno_evidence::EvidenceError;

use super::record::{Batch, Bind, Cursor, NONE, Stamp, Stat};

/// Marks a record without a cursor, which has no statement.
pub const NO_STATEMENT: u32 = u32::MAX;

/// Position of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Line number from 1.
    pub line: i64,
    /// Byte offset in the uncompressed file.
    pub byte_offset: i64,
}

/// Figures of a call, inclusive or exclusive depending on the field that holds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Elapsed time [ns].
    pub elapsed_ns: i64,
    /// CPU time [ns].
    pub cpu_ns: i64,
    /// Blocks read physically.
    pub physical: i64,
    /// Blocks read in consistent mode.
    pub consistent: i64,
    /// Blocks read in current mode.
    pub current: i64,
}

impl Figures {
    /// Adds another call's figures; the sums are limited to the range of `i64`.
    #[inline]
    pub fn add(&mut self, other: &Self) {
        self.elapsed_ns = self.elapsed_ns.saturating_add(other.elapsed_ns);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.physical = self.physical.saturating_add(other.physical);
        self.consistent = self.consistent.saturating_add(other.consistent);
        self.current = self.current.saturating_add(other.current);
    }

    /// Returns these figures minus the figures of another call.
    #[inline]
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self {
            elapsed_ns: self.elapsed_ns.saturating_sub(other.elapsed_ns),
            cpu_ns: self.cpu_ns.saturating_sub(other.cpu_ns),
            physical: self.physical.saturating_sub(other.physical),
            consistent: self.consistent.saturating_sub(other.consistent),
            current: self.current.saturating_sub(other.current),
        }
    }
}

/// A call. Missing figures are [`NONE`] in `cpu_ns` and the counts, 0 elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallRow {
    /// Running number in the file, from 0.
    pub number: u64,
    /// Position in the file.
    pub place: Place,
    /// Session number in the file.
    pub session: u32,
    /// Context number in the file.
    pub context: u32,
    /// Statement number in the registry, or [`NO_STATEMENT`].
    pub statement: u32,
    /// Kind: see [`super::events::KINDS`]; LOB calls are numbered by name after them.
    pub kind: u16,
    /// Type of a LOB call's LOB: 0 for none, otherwise the type's number in the file plus one.
    pub lob_type: u16,
    /// Recursion depth.
    pub depth: u8,
    /// Library cache misses; 255 if missing.
    pub misses: u8,
    /// Optimizer goal; 255 if missing.
    pub goal: u8,
    /// How CLOSE treated the cursor; 255 if missing.
    pub close_type: u8,
    /// Cursor number.
    pub cursor: u64,
    /// End on the trace's clock, in the file's unit.
    pub tim: i64,
    /// True if the session's clock had no stamp yet: [`Sink::shift`] may still shift this row.
    pub early: bool,
    /// Start [ns since the UNIX epoch, wall clock].
    pub started_ns: i64,
    /// Elapsed time, inclusive [ns].
    pub elapsed_ns: i64,
    /// CPU time, inclusive [ns]; [`NONE`] if missing.
    pub cpu_ns: i64,
    /// Number of rows; [`NONE`] if missing.
    pub rows: i64,
    /// Blocks read physically, inclusive; [`NONE`] if missing.
    pub physical: i64,
    /// Blocks read in consistent mode, inclusive; [`NONE`] if missing.
    pub consistent: i64,
    /// Blocks read in current mode, inclusive; [`NONE`] if missing.
    pub current: i64,
    /// Exclusive figures.
    pub own: Figures,
    /// Time of the waits directly inside the call, without the waits of its children [ns].
    pub own_wait_ns: i64,
    /// Plan hash value; [`NONE`] if missing.
    pub plan_hash: i64,
    /// Bytes of a LOB call; [`NONE`] for other calls.
    pub lob_bytes: i64,
    /// Id of the user who parsed the cursor; [`NONE`] if missing.
    pub user_id: i64,
}

impl CallRow {
    /// Returns the elapsed time that neither CPU nor waits explain [ns]; negative if both count the same time.
    #[inline]
    pub fn unaccounted_ns(&self) -> i64 {
        self.own.elapsed_ns.saturating_sub(self.own.cpu_ns).saturating_sub(self.own_wait_ns)
    }
}

/// A wait.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WaitRow {
    /// Running number in the file, from 0.
    pub number: u64,
    /// Position in the file.
    pub place: Place,
    /// Session number in the file.
    pub session: u32,
    /// Context number in the file.
    pub context: u32,
    /// Statement number in the registry, or [`NO_STATEMENT`].
    pub statement: u32,
    /// Event number in the file's [`super::events::Events`].
    pub event: u32,
    /// True if the wait is think time: a wait for a message from the client that was at least as long as the think-time
    /// limit.
    pub think: bool,
    /// Cursor number.
    pub cursor: u64,
    /// End on the trace's clock, in the file's unit; [`NONE`] in 8i and 9i.
    pub tim: i64,
    /// True if the session's clock had no stamp yet: [`Sink::shift`] may still shift this row.
    pub early: bool,
    /// Start [ns since the UNIX epoch, wall clock].
    pub started_ns: i64,
    /// Elapsed time [ns].
    pub elapsed_ns: i64,
    /// Object number; [`NONE`] if missing.
    pub object: i64,
    /// Parameters as written in the batch.
    pub parameters: super::record::Text,
}

/// Facts about an owning call that a link needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Running number of the call in the file.
    pub number: u64,
    /// Kind of the call.
    pub kind: u16,
    /// Depth of the call.
    pub depth: u8,
}

/// Position, session, statement and time of one of the rarer records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Belongs {
    /// Position in the file.
    pub place: Place,
    /// Session number in the file.
    pub session: u32,
    /// Statement number in the registry, or [`NO_STATEMENT`].
    pub statement: u32,
    /// Wall clock at the record's `tim` [ns]; [`NONE`] if the record has none.
    pub at_ns: i64,
}

/// Attributes that a session carries from record to record, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Context {
    /// SESSION ID.
    pub session_id: String,
    /// CLIENT ID.
    pub client_id: String,
    /// SERVICE NAME.
    pub service: String,
    /// MODULE NAME.
    pub module: String,
    /// ACTION NAME.
    pub action: String,
    /// CLIENT DRIVER.
    pub driver: String,
    /// Name and number of the container from plain stamps, else CONTAINER ID.
    pub container: String,
    /// CLIENT IP.
    pub client_ip: String,
    /// CONNECTION ID.
    pub connection: String,
}

/// A statement seen for the first time in this file.
#[derive(Clone, Copy, Debug)]
pub struct NewStatement<'a> {
    /// Statement number in the registry.
    pub number: u32,
    /// Key of the statement.
    pub key: &'a str,
    /// Text of the statement; `None` if the trace does not have it.
    pub text: Option<&'a [u8]>,
    /// True if no file of the run that was read earlier had the statement.
    pub first: bool,
}

/// Kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// An event.
    Event,
    /// A LOB call; its kind is numbered after [`super::events::KINDS`].
    LobCall,
    /// A type of LOB.
    LobType,
}

/// Receiver of rows. A sink keeps its first error and returns it from [`Sink::end_batch`].
#[allow(unused_variables)]
pub trait Sink {
    /// Receives a call; the links to its children and waits were passed just before.
    fn call(&mut self, batch: &Batch, row: &CallRow);
    /// Receives a wait.
    fn wait(&mut self, batch: &Batch, row: &WaitRow);
    /// Receives the parent of a call; `child` is a call's number or the result of [`Sink::merge_calls`].
    fn adopt(&mut self, child: u64, parent: Owner) {}
    /// Receives the owner of a wait; `wait` is a wait's number or the result of [`Sink::merge_waits`].
    fn own(&mut self, wait: u64, owner: Owner) {}
    /// Merges calls without a parent, because there are too many of them, and returns the number that stands for them.
    fn merge_calls(&mut self, calls: &[u64]) -> u64 {
        0
    }
    /// Merges waits without an owner, because there are too many of them, and returns the number that stands for them.
    fn merge_waits(&mut self, waits: &[u64]) -> u64 {
        0
    }
    /// Receives a wait between calls: no later call of a consistent trace can own it.
    fn between(&mut self, wait: u64) {}
    /// Receives a statement that is new in this file.
    fn statement(&mut self, new: NewStatement<'_>, cursor: Option<&Cursor>, at: Belongs) {}
    /// Receives PARSING IN CURSOR or PARSE ERROR; the latter has `err`.
    fn cursor(&mut self, batch: &Batch, cursor: &Cursor, at: Belongs) {}
    /// Receives STAT.
    fn plan(&mut self, batch: &Batch, stat: &Stat, plan_hash: i64, at: Belongs) {}
    /// Receives the head of a BINDS section.
    fn binds(&mut self, cursor: u64, at: Belongs) {}
    /// Receives a bind of the preceding BINDS section.
    fn bind(&mut self, batch: &Batch, cursor: u64, bind: &Bind, at: Belongs) {}
    /// Receives ERROR; `call` is the number of the preceding call on the same cursor.
    fn failure(&mut self, cursor: u64, error: i64, tim: i64, call: Option<u64>, at: Belongs) {}
    /// Receives XCTEND.
    fn transaction(&mut self, rollback: bool, read_only: bool, tim: i64, at: Belongs) {}
    /// Receives a `***` line.
    fn stamp(&mut self, batch: &Batch, stamp: &Stamp, at: Belongs) {}
    /// Receives a header line in the middle of a file: another trace begins in the same file.
    fn header_again(&mut self, line: &str, at: Belongs) {}
    /// Receives the record of a session's latest plain stamp: its `tim` and the error of the clock.
    fn anchor(&mut self, session: u32, tim: i64, residual_ns: i64) {}
    /// Shifts the rows of this session, from these running numbers on, by `by_ns`: until now their clock had no anchor.
    fn shift(&mut self, session: u32, from_call: u64, from_wait: u64, by_ns: i64) {}
    /// Receives the name and process of a session when they are new or more is known of them.
    fn session(&mut self, number: u32, name: &str, process: &str) {}
    /// Receives a new name and its number in the file; numbers come in order.
    fn name(&mut self, what: Named, number: u32, name: &[u8]) {}
    /// Receives a new context and its number in the file.
    fn context(&mut self, number: u32, context: &Context) {}
    /// Ends a batch: the sink may write its rows now, and returns the first error that it had.
    fn end_batch(&mut self, batch: &Batch) -> Result<(), EvidenceError> {
        Ok(())
    }
}

/// Sink that discards all rows; for checks.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl Sink for NoSink {
    fn call(&mut self, _batch: &Batch, _row: &CallRow) {}
    fn wait(&mut self, _batch: &Batch, _row: &WaitRow) {}
}

/// Returns a figure, or 0 if it is missing.
#[inline]
pub(super) fn known(value: i64) -> i64 {
    if value == NONE { 0 } else { value }
}
