//! Reader that turns batches of records into rows and carries state from one record to the next.
//!
//! The reader knows a record's session, the statement of its cursor, its time, and its caller, and passes rows to a
//! [`Sink`]. One reader reads one file.

mod named;
mod rare;
mod stamps;

use std::collections::HashMap;

use super::accounting::{Account, BACK_MAX_NS};
use super::clock::cpu_unit_ns;
use super::events::{Events, Names};
use super::header::Facts;
use super::record::{Batch, Call, NONE, Placed, Record, Wait};
use super::rows::{Belongs, CallRow, Context, Figures, NO_STATEMENT, Owner, Place, Sink, WaitRow, known};
use super::session::{Session, Span};
use super::statements::{Registry, Statements};
use super::tally::{Tally, counter_of};

/// Unit of time since 9i [ns].
pub const MICROSECOND_NS: i64 = 1_000;
/// Unit of time of 8i [ns].
pub const CENTISECOND_NS: i64 = 10_000_000;
/// Longest plausible time [ns]: more than two years. Damage causes longer ones.
const LONGEST_NS: i64 = 1 << 56;
/// Largest backward step of `tim` after a header in the middle of a file [ns].
const BACK_AT_HEADER_NS: i64 = 1_000_000;
/// Largest number of header lines that are kept.
const HEADER_LINES_MAX: usize = 200;

/// Options of a reader.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// File number among those read.
    pub file: u32,
    /// Unit of `e`, `ela` and `tim` [ns]: usually 1000, but 10^7 in 8i and 1024 in some files of 9i. `None`: determined
    /// from the header's version and the stamps.
    pub unit_ns: Option<i64>,
    /// Shortest message from the client that counts as think time [ns].
    pub think_time_ns: i64,
    /// True if statements are needed: only then are their texts hashed.
    pub statements: bool,
    /// True if the user set the unit.
    pub is_unit_asked: bool,
}

impl Default for Reading {
    fn default() -> Self {
        Self { file: 0, unit_ns: None, think_time_ns: 1_000_000_000, statements: true, is_unit_asked: false }
    }
}

/// What a file says about being a piece of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pieces {
    /// True if the file was cut at a size limit.
    pub cut: bool,
    /// True if the file continues another file.
    pub continued: bool,
    /// True if another file continues this file.
    pub continues: bool,
}

/// Reader of one file's batches into a sink.
#[derive(Debug)]
pub struct Reader<S> {
    /// Receiver of the rows.
    pub sink: S,
    /// Sessions in the order of their first appearance.
    pub sessions: Vec<Session>,
    /// Events of the file.
    pub events: Events,
    /// Names of LOB calls; their kinds follow those of [`KINDS`](super::events::KINDS).
    pub lob_calls: Names,
    /// Types of LOBs.
    pub lob_types: Names,
    /// Counts of what was read.
    pub tally: Tally,
    /// Lines of the header.
    pub header: Vec<String>,
    /// Facts of the header.
    pub facts: Facts,
    /// What the file says about being a piece of a trace.
    pub pieces: Pieces,
    reading: Reading,
    unit_ns: i64,
    cpu_unit_ns: i64,
    statements: Statements,
    contexts: HashMap<Context, u32>,
    contexts_told: u32,
    current: usize,
    calls: u64,
    waits: u64,
    binds_cursor: u64,
    /// Number of each event in the file, by the number of its name in the batch.
    batch_events: Vec<u32>,
    /// True if a header was read in the middle of the file and no record since.
    header_again: bool,
}

impl<S: Sink> Reader<S> {
    /// Returns a reader at the beginning of a file.
    pub fn new(sink: S, reading: Reading, registry: Registry) -> Self {
        Self {
            sink,
            sessions: vec![Session::default()],
            events: Events::default(),
            lob_calls: Names::default(),
            lob_types: Names::default(),
            tally: Tally::default(),
            header: Vec::new(),
            facts: Facts::default(),
            pieces: Pieces::default(),
            unit_ns: reading.unit_ns.unwrap_or(MICROSECOND_NS),
            cpu_unit_ns: cpu_unit_ns(reading.unit_ns.unwrap_or(MICROSECOND_NS)),
            reading,
            statements: Statements::new(registry, reading.file),
            contexts: HashMap::new(),
            contexts_told: 0,
            current: 0,
            calls: 0,
            waits: 0,
            binds_cursor: 0,
            batch_events: Vec::new(),
            header_again: false,
        }
    }

    /// Reads the next batch of the file.
    ///
    /// # Errors
    /// The sink cannot write its rows.
    pub fn batch(&mut self, batch: &Batch) -> Result<(), dyno_evidence::EvidenceError> {
        self.tally.batch(batch);
        self.batch_events.clear();
        self.batch_events.resize(batch.names as usize, named::NO_EVENT);
        for placed in &batch.records {
            self.tally.records[counter_of(&placed.record)] += 1;
            match &placed.record {
                Record::Call(call) => self.call(batch, placed, call),
                Record::Wait(wait) => self.wait(batch, placed, wait),
                _ => self.rare(batch, placed),
            }
        }
        self.sink.end_batch(batch)
    }

    /// Ends the file: closes all accounts.
    pub fn finish(&mut self) {
        for session in &mut self.sessions {
            session.end_segment(&mut self.sink);
        }
    }

    /// Returns the account of all sessions together.
    pub fn account(&self) -> Account {
        let mut whole = Account::default();
        self.sessions.iter().for_each(|session| whole.add(&session.account));
        whole
    }

    /// Returns true if the user set the unit.
    pub fn is_unit_asked(&self) -> bool {
        self.reading.is_unit_asked
    }

    /// Returns the unit of the file's times [ns].
    pub fn unit_ns(&self) -> i64 {
        self.unit_ns
    }

    fn set_unit(&mut self, unit_ns: i64) {
        (self.unit_ns, self.cpu_unit_ns) = (unit_ns, cpu_unit_ns(unit_ns));
    }

    #[inline]
    fn ns(value: i64, unit_ns: i64) -> i64 {
        if value == NONE {
            return 0;
        }
        value.saturating_mul(unit_ns).clamp(-LONGEST_NS, LONGEST_NS)
    }

    /// Returns a `tim` of the trace's clock in ns; if it is missing, the end of the session's last record [ns].
    #[inline]
    fn moment(&self, tim: i64) -> i64 {
        if tim == NONE { self.sessions[self.current].last().unwrap_or(0) } else { tim.saturating_mul(self.unit_ns) }
    }

    /// Begins segments and anchors clocks before a record with a `tim`.
    #[inline]
    fn clock(&mut self, tim: i64, end: i64) {
        if tim == NONE {
            return;
        }
        let session = &mut self.sessions[self.current];
        let back_max = if self.header_again { BACK_AT_HEADER_NS } else { BACK_MAX_NS };
        if session.breaks(end, back_max) {
            session.end_segment(&mut self.sink);
            session.unanchored = (self.calls, self.waits);
        }
        self.header_again = false;
        if session.clock.waits() {
            self.anchor(tim, end);
        }
    }

    #[cold]
    fn anchor(&mut self, tim: i64, end: i64) {
        let session = &mut self.sessions[self.current];
        let anchor = session.clock.anchor(end);
        let number = self.current as u32;
        if let Some(by_ns) = anchor.shift_ns {
            let (calls, waits) = session.unanchored;
            if calls < self.calls || waits < self.waits {
                self.sink.shift(number, calls, waits, by_ns);
                session.started_ns = session.started_ns.map(|at| at.saturating_add(by_ns));
            }
        }
        self.sink.anchor(number, tim, anchor.residual_ns);
    }

    #[inline]
    fn context(&mut self) -> u32 {
        match self.sessions[self.current].context_number {
            Some(number) => number,
            None => self.new_context(),
        }
    }

    #[cold]
    fn new_context(&mut self) -> u32 {
        /// Largest number of contexts remembered; beyond it, the same attributes may get two numbers.
        const REMEMBERED_MAX: usize = 1 << 16;
        let session = &mut self.sessions[self.current];
        let number = if let Some(&number) = self.contexts.get(&session.context) {
            number
        } else {
            let number = self.contexts_told;
            self.contexts_told += 1;
            if self.contexts.len() >= REMEMBERED_MAX {
                self.contexts.clear();
            }
            self.contexts.insert(session.context.clone(), number);
            self.sink.context(number, &session.context);
            number
        };
        session.context_number = Some(number);
        number
    }

    /// Returns the statement of a cursor and the user who parsed it; an unknown cursor gets a new statement.
    #[inline]
    fn statement(&mut self, cursor: u64, at: Place) -> (u32, i64) {
        if cursor == 0 || !self.reading.statements {
            return (NO_STATEMENT, NONE);
        }
        match self.sessions[self.current].cursors.get(cursor) {
            Some(known) => (known.statement, known.user_id),
            None => (self.unknown_statement(cursor, at), NONE),
        }
    }

    /// Returns the statement and the parsing user of a call's cursor, and remembers the call as the cursor's last.
    #[inline]
    fn statement_of_call(&mut self, call: &Call, at: Place) -> (u32, i64) {
        let found = self.statement(call.cursor, at);
        if found.0 != NO_STATEMENT
            && let Some(known) = self.sessions[self.current].cursors.get(call.cursor)
        {
            known.last_call = self.calls;
            if call.plh != NONE {
                known.plan_hash = call.plh;
            }
        }
        found
    }

    #[cold]
    fn unknown_statement(&mut self, cursor: u64, place: Place) -> u32 {
        let statement = self.statements.unknown(cursor);
        self.sessions[self.current].cursors.set(cursor, statement, NONE);
        let at = Belongs { place, session: self.current as u32, statement, at_ns: NONE };
        self.tell_statement(None, None, at);
        statement
    }

    fn call(&mut self, batch: &Batch, placed: &Placed, call: &Call) {
        let end = self.moment(call.tim);
        self.clock(call.tim, end);
        let place = place(batch, placed);
        let (statement, user_id) = self.statement_of_call(call, place);
        let kind = self.kind(batch, call);
        let context = self.context();
        let number = self.calls;
        self.calls += 1;
        let elapsed_ns = Self::ns(call.e, self.unit_ns);
        let inclusive = Figures {
            elapsed_ns,
            cpu_ns: Self::ns(call.c, self.cpu_unit_ns),
            physical: known(call.p),
            consistent: known(call.cr),
            current: known(call.cu),
        };
        let depth = if call.dep == u8::MAX { 0 } else { call.dep };
        let owner = Owner { number, kind, depth };
        let span = Span { start: end.saturating_sub(elapsed_ns.max(0)), end };
        let session = &mut self.sessions[self.current];
        let (own, own_wait_ns) = session.call(&mut self.sink, owner, call.cursor, span, &inclusive);
        let started_ns = session.clock.wall(end).saturating_sub(elapsed_ns);
        session.started_ns.get_or_insert(started_ns);
        let early = session.clock.is_early();
        let row = CallRow {
            number,
            place,
            session: self.current as u32,
            context,
            statement,
            kind,
            lob_type: self.lob_type(batch, call),
            depth,
            misses: call.mis,
            goal: call.og,
            close_type: call.close_type,
            cursor: call.cursor,
            tim: call.tim,
            early,
            started_ns,
            elapsed_ns,
            cpu_ns: if call.c == NONE { NONE } else { inclusive.cpu_ns },
            rows: call.r,
            physical: call.p,
            consistent: call.cr,
            current: call.cu,
            own,
            own_wait_ns,
            plan_hash: call.plh,
            lob_bytes: call.bytes,
            user_id,
        };
        self.sink.call(batch, &row);
    }

    fn wait(&mut self, batch: &Batch, placed: &Placed, wait: &Wait) {
        let end = self.moment(wait.tim);
        self.clock(wait.tim, end);
        let place = place(batch, placed);
        let (statement, _) = self.statement(wait.cursor, place);
        let context = self.context();
        let number = self.waits;
        self.waits += 1;
        self.tally.timed_waits += u64::from(wait.ela != NONE);
        let elapsed_ns = Self::ns(wait.ela, self.unit_ns);
        let event = self.event_of(batch, wait);
        let from_client = self.events.is_from_client(event);
        let session = &mut self.sessions[self.current];
        let wall = session.clock.wall(end);
        let started_ns = if wait.tim == NONE { wall } else { wall.saturating_sub(elapsed_ns) };
        session.started_ns.get_or_insert(started_ns);
        let row = WaitRow {
            number,
            place,
            session: self.current as u32,
            context,
            statement,
            event,
            think: from_client && elapsed_ns >= self.reading.think_time_ns,
            cursor: wait.cursor,
            tim: wait.tim,
            early: session.clock.is_early(),
            started_ns,
            elapsed_ns,
            object: wait.obj,
            parameters: wait.parameters,
        };
        self.sink.wait(batch, &row);
        if wait.tim == NONE {
            session.untimed_wait(&mut self.sink, number, wait.cursor, elapsed_ns, from_client);
        } else {
            let span = Span { start: end.saturating_sub(elapsed_ns.max(0)), end };
            session.wait(&mut self.sink, number, span, elapsed_ns);
        }
    }
}

#[inline]
fn place(batch: &Batch, placed: &Placed) -> Place {
    Place { line: batch.line as i64 + i64::from(placed.line), byte_offset: batch.offset as i64 + i64::from(placed.at) }
}
