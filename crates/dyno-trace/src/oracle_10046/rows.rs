//! Rows: records with everything that only their neighbours can tell.
//!
//! A row knows its session, its statement, the wall clock and its exclusive figures. What comes
//! later in the file, a call's parent and a wait's owner, arrives at the [`Sink`] as a link.
//! All times are nanoseconds, whatever the version of the trace counted in.

use dyno_evidence::EvidenceError;

use super::record::{Batch, Bind, Cursor, NONE, Stamp, Stat};

/// No statement: the record names no cursor.
pub const NO_STATEMENT: u32 = u32::MAX;

/// Where a record begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Line number from 1.
    pub line: i64,
    /// Byte offset in the uncompressed file.
    pub byte_offset: i64,
}

/// Figures of a call; which, is told by where they stand: inclusive or exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Elapsed time, ns.
    pub elapsed_ns: i64,
    /// CPU time, ns.
    pub cpu_ns: i64,
    /// Blocks read physically.
    pub physical: i64,
    /// Blocks read consistently.
    pub consistent: i64,
    /// Blocks read current.
    pub current: i64,
}

impl Figures {
    /// Adds another's figures; at the end of the numbers' range it stays there.
    #[inline]
    pub fn add(&mut self, other: &Self) {
        self.elapsed_ns = self.elapsed_ns.saturating_add(other.elapsed_ns);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.physical = self.physical.saturating_add(other.physical);
        self.consistent = self.consistent.saturating_add(other.consistent);
        self.current = self.current.saturating_add(other.current);
    }

    /// What remains without another's figures.
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

/// A call. Figures that the line does not have are [`NONE`] in `cpu_ns` and the counts, 0 elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallRow {
    /// Running number in the file, from 0.
    pub number: u64,
    /// Where it stands.
    pub place: Place,
    /// Session: its number in the file.
    pub session: u32,
    /// Context: its number in the file.
    pub context: u32,
    /// Statement: its number in the registry, or [`NO_STATEMENT`].
    pub statement: u32,
    /// Kind: see [`super::events::KINDS`]; LOB calls beyond them by name.
    pub kind: u16,
    /// LOB calls: type of the LOB; 0 for none, else its number in the file's words plus one.
    pub lob_type: u16,
    /// Recursion depth.
    pub depth: u8,
    /// Library cache misses; 255 for none.
    pub misses: u8,
    /// Optimizer goal; 255 for none.
    pub goal: u8,
    /// What became of the cursor at CLOSE; 255 for none.
    pub close_type: u8,
    /// Cursor number.
    pub cursor: u64,
    /// End on the trace's clock, in the file's unit.
    pub tim: i64,
    /// Start, wall clock, ns since the UNIX epoch.
    pub started_ns: i64,
    /// Elapsed, inclusive.
    pub elapsed_ns: i64,
    /// CPU, inclusive; [`NONE`] for none.
    pub cpu_ns: i64,
    /// Rows; [`NONE`] for none.
    pub rows: i64,
    /// Blocks, inclusive; [`NONE`] for none.
    pub physical: i64,
    /// Blocks, inclusive; [`NONE`] for none.
    pub consistent: i64,
    /// Blocks, inclusive; [`NONE`] for none.
    pub current: i64,
    /// Exclusive figures.
    pub own: Figures,
    /// Waits directly inside, none of the children's.
    pub own_wait_ns: i64,
    /// Plan hash value; [`NONE`] for none.
    pub plan_hash: i64,
    /// LOB calls: bytes; [`NONE`] for none.
    pub lob_bytes: i64,
    /// Parsing user of the cursor; [`NONE`] for none.
    pub user_id: i64,
}

impl CallRow {
    /// Elapsed time that neither CPU nor waits explain; negative where both count the same time.
    #[inline]
    pub fn unaccounted_ns(&self) -> i64 {
        self.own.elapsed_ns.saturating_sub(self.own.cpu_ns).saturating_sub(self.own_wait_ns)
    }
}

/// A wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaitRow {
    /// Running number in the file, from 0.
    pub number: u64,
    /// Where it stands.
    pub place: Place,
    /// Session: its number in the file.
    pub session: u32,
    /// Context: its number in the file.
    pub context: u32,
    /// Statement: its number in the registry, or [`NO_STATEMENT`].
    pub statement: u32,
    /// Event: its number in the file's [`super::events::Events`].
    pub event: u32,
    /// Whether it is think time: a message from the client that took at least so long.
    pub think: bool,
    /// Cursor number.
    pub cursor: u64,
    /// End on the trace's clock, in the file's unit; [`NONE`] in 8i and 9i.
    pub tim: i64,
    /// Start, wall clock, ns since the UNIX epoch.
    pub started_ns: i64,
    /// How long.
    pub elapsed_ns: i64,
    /// Object number; [`NONE`] for none.
    pub object: i64,
    /// The parameters as they stand in the batch.
    pub parameters: super::record::Text,
}

/// What a link needs to know of the call that owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The call's running number in the file.
    pub number: u64,
    /// Its kind.
    pub kind: u16,
    /// Its depth.
    pub depth: u8,
}

/// What a record belongs to, for the rarer records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Belongs {
    /// Where it stands.
    pub place: Place,
    /// Session: its number in the file.
    pub session: u32,
    /// Statement: its number in the registry, or [`NO_STATEMENT`].
    pub statement: u32,
    /// Wall clock at its `tim`; [`NONE`] where it has none.
    pub at_ns: i64,
}

/// The attributes that a session carries from record to record; all texts as they stand.
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
    /// The container's name with its number, as plain stamps tell it; else CONTAINER ID.
    pub container: String,
    /// CLIENT IP.
    pub client_ip: String,
    /// CONNECTION ID.
    pub connection: String,
}

/// A statement seen for the first time in this file.
#[derive(Clone, Copy, Debug)]
pub struct NewStatement<'a> {
    /// Its number in the registry.
    pub number: u32,
    /// Its key.
    pub key: &'a str,
    /// Its text; `None` where the trace does not have it.
    pub text: Option<&'a [u8]>,
    /// Whether no other file of the run had it before.
    pub first: bool,
}

/// What a name names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// An event.
    Event,
    /// A LOB call; kinds of calls count them from the end of [`super::events::KINDS`].
    LobCall,
    /// A type of LOB.
    LobType,
}

/// Where rows go. A sink keeps its first error and tells it at [`Sink::end_batch`].
#[allow(unused_variables)]
pub trait Sink {
    /// A call; its links to children and waits were told just before.
    fn call(&mut self, batch: &Batch, row: &CallRow);
    /// A wait.
    fn wait(&mut self, batch: &Batch, row: &WaitRow);
    /// A call's parent was found; `child` is what [`Sink::merge_calls`] made or a call's number.
    fn adopt(&mut self, child: u64, parent: Owner) {}
    /// A wait's owner was found; `wait` is what [`Sink::merge_waits`] made or a wait's number.
    fn own(&mut self, wait: u64, owner: Owner) {}
    /// Too many calls without a parent: these are to go under one number from now on.
    fn merge_calls(&mut self, calls: &[u64]) -> u64 {
        0
    }
    /// Too many waits without an owner: these are to go under one number from now on.
    fn merge_waits(&mut self, waits: &[u64]) -> u64 {
        0
    }
    /// These waits lie between calls, as far as a consistent trace can tell.
    fn between(&mut self, wait: u64) {}
    /// A statement that was not known before in this file.
    fn statement(&mut self, new: NewStatement<'_>, cursor: Option<&Cursor>, at: Belongs) {}
    /// PARSING IN CURSOR or PARSE ERROR; the latter has `err`.
    fn cursor(&mut self, batch: &Batch, cursor: &Cursor, at: Belongs) {}
    /// STAT.
    fn plan(&mut self, batch: &Batch, stat: &Stat, plan_hash: i64, at: Belongs) {}
    /// The head of a BINDS section.
    fn binds(&mut self, cursor: u64, at: Belongs) {}
    /// A bind of the section above.
    fn bind(&mut self, batch: &Batch, cursor: u64, bind: &Bind, at: Belongs) {}
    /// ERROR; `call` is the number of the call before it on the same cursor.
    fn failure(&mut self, cursor: u64, error: i64, tim: i64, call: Option<u64>, at: Belongs) {}
    /// XCTEND.
    fn transaction(&mut self, rollback: bool, read_only: bool, tim: i64, at: Belongs) {}
    /// A `***` line.
    fn stamp(&mut self, batch: &Batch, stamp: &Stamp, at: Belongs) {}
    /// A line of a header in mid-file: another trace begins in the same file.
    fn header_again(&mut self, line: &str, at: Belongs) {}
    /// The latest plain stamp of a session now has its record: `tim` and how far off the clock was.
    fn anchor(&mut self, session: u32, tim: i64, residual_ns: i64) {}
    /// Rows of this session, from these running numbers on, had a clock without an anchor: they move.
    fn shift(&mut self, session: u32, from_call: u64, from_wait: u64, by_ns: i64) {}
    /// A session's name and process are known now, or known better.
    fn session(&mut self, number: u32, name: &str, process: &str) {}
    /// A name that was not known before, by its number in the file; they come in order.
    fn name(&mut self, what: Named, number: u32, name: &[u8]) {}
    /// A context that was not known before, by its number in the file.
    fn context(&mut self, number: u32, context: &Context) {}
    /// A batch is done: the sink may write, and tells its first error.
    fn end_batch(&mut self, batch: &Batch) -> Result<(), EvidenceError> {
        Ok(())
    }
}

/// Writes nothing down; for checks.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl Sink for NoSink {
    fn call(&mut self, _batch: &Batch, _row: &CallRow) {}
    fn wait(&mut self, _batch: &Batch, _row: &WaitRow) {}
}

/// A figure that may be missing, as a figure to count with.
#[inline]
pub(super) fn known(value: i64) -> i64 {
    if value == NONE { 0 } else { value }
}
