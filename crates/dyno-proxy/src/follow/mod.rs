//! Matching of a session's messages with their answers, in order: finished calls, and the time between them.
//!
//! A call begins when its message arrived or when the previous call ended, whichever is later; it ends with the read
//! that brought its answer. So calls and think time account for all of a session's time. Answers that arrived in the
//! same read have the same time. If a client sends a parse, a bind and an execute together, they are answered together
//! and the execution has done the work: the time is divided among the executions, and the other messages take no time.
//!
//! Within a call the proxy waits: for the first byte of the answer (`ANSWER`), for the rest of it (`ROWS`), for a
//! client that does not read its rows (`CLIENT_WRITE`) or has not yet sent the rows of its COPY (`COPY_ROWS`).

mod account;

use std::collections::HashMap;
use std::collections::VecDeque;

use dyno_evidence::trace_store::{SessionRow, Sums};

use crate::capture::Side;
use crate::framing::{Message, text};
use crate::shared::{Shared, packed};
use crate::statement::{NO_STATEMENT, Statement, rows_of, state_of, statement_of};

/// Number of bytes of a message that are examined if values are not kept.
const LOOKED_AT: usize = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Connect,
    Simple,
    Parse,
    Bind,
    Describe,
    Execute,
    Close,
    Sync,
    Function,
}

/// Message of the client that waits for its answer; once it is answered, it becomes a call.
#[derive(Clone, Debug)]
struct Op {
    what: What,
    kind: &'static str,
    statement: u32,
    /// True if the message's statement returns rows that may contain generated keys.
    returns: bool,
    sent_ns: u64,
    first_ns: Option<u64>,
    copy_ns: Option<(u64, u64)>,
    blocked_ns: u64,
    rows: Option<u64>,
    data_rows: u64,
    state: Option<u32>,
    sent_bytes: u64,
    received_bytes: u64,
}

/// Session that is followed.
pub struct Follower {
    /// Row of the session in the small tables of the trace.
    pub row: SessionRow,
    /// Application name that the client sent.
    pub application: String,
    ops: VecDeque<Op>,
    /// Messages that were answered by the bytes of the current read.
    group: Vec<Op>,
    prepared: HashMap<Vec<u8>, Statement>,
    portals: HashMap<Vec<u8>, (Statement, bool)>,
    /// True after an error: the server answers nothing up to the next Sync.
    is_skipping: bool,
    /// End of the last call [ns].
    free_ns: u64,
    blocked_since_ns: Option<u64>,
    copying: bool,
    ending: Ending,
}

/// State of a followed session: still followed, lost, or over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Followed,
    /// The session's bytes are not messages.
    Lost,
    Over,
}

impl Follower {
    /// Begins to follow a session that logs in.
    pub fn new(number: u32, at_ns: u64) -> Self {
        let row = SessionRow {
            number,
            kind: "client".to_owned(),
            since_ns: at_ns,
            until_ns: at_ns,
            sums: Sums::default(),
            ..SessionRow::default()
        };
        let mut made = Self {
            row,
            application: String::new(),
            ops: VecDeque::new(),
            group: Vec::new(),
            prepared: HashMap::new(),
            portals: HashMap::new(),
            is_skipping: false,
            free_ns: at_ns,
            blocked_since_ns: None,
            copying: false,
            ending: Ending::Followed,
        };
        made.push(What::Connect, Statement { kind: "connect", ..NO_STATEMENT }, at_ns, 0);
        made
    }

    /// Returns how many bytes of a server message with this tag must be kept.
    pub fn keeps_of_server(&self, tag: u8) -> usize {
        let returns = self.ops.front().is_some_and(|op| op.returns);
        match tag {
            b'C' | b'E' | b'Z' | b'K' | b'S' => LOOKED_AT,
            b'T' | b'D' if returns => LOOKED_AT,
            _ => 0,
        }
    }

    /// Returns true if an answer is outstanding, and no error has arrived for it.
    pub fn is_busy(&self) -> bool {
        self.ops.front().is_some_and(|op| op.state.is_none())
    }

    /// Returns true until the first `ReadyForQuery`.
    pub fn is_logging_in(&self) -> bool {
        self.ops.front().is_some_and(|op| op.what == What::Connect)
    }

    fn push(&mut self, what: What, statement: Statement, sent_ns: u64, bytes: usize) {
        self.ops.push_back(Op {
            what,
            kind: statement.kind,
            statement: statement.number,
            returns: statement.returns,
            sent_ns,
            first_ns: None,
            copy_ns: None,
            blocked_ns: 0,
            rows: None,
            data_rows: 0,
            state: None,
            sent_bytes: bytes as u64 + 5,
            received_bytes: 0,
        });
    }

    /// Processes a message of the client.
    pub fn client(&mut self, at_ns: u64, message: Message<'_>, shared: &mut Shared) {
        // Passwords and other messages of the login are neither examined nor kept.
        if self.ending != Ending::Followed || self.is_logging_in() {
            return;
        }
        if let Some(capture) = &mut shared.capture {
            capture.message(self.row.number, at_ns, Side::Client, &message);
        }
        let bytes = message.length;
        let named = |known: &HashMap<Vec<u8>, Statement>, name: &[u8]| known.get(name).copied().unwrap_or(NO_STATEMENT);
        match message.tag {
            b'Q' => {
                let statement = statement_of(text(message.body).0, shared);
                self.push(What::Simple, statement, at_ns, bytes);
            }
            b'd' => self.more(bytes),
            b'c' | b'f' => {
                self.more(bytes);
                self.copying = false;
                if let Some((_, until_ns)) = self.ops.front_mut().and_then(|op| op.copy_ns.as_mut()) {
                    *until_ns = at_ns;
                }
            }
            // While the rows of a COPY are outstanding the server does not answer these.
            b'S' | b'H' if self.copying => {}
            b'S' => {
                self.is_skipping = false;
                self.push(What::Sync, Statement { kind: "sync", ..NO_STATEMENT }, at_ns, bytes);
            }
            b'X' => {}
            _ if self.is_skipping => {}
            b'P' => {
                let (name, rest) = text(message.body);
                let statement = statement_of(text(rest).0, shared);
                self.prepared.insert(name.to_vec(), statement);
                self.push(What::Parse, Statement { kind: "parse", ..statement }, at_ns, bytes);
            }
            b'B' => {
                let (portal, rest) = text(message.body);
                let statement = named(&self.prepared, text(rest).0);
                match self.portals.get_mut(portal) {
                    Some(known) => *known = (statement, false),
                    None => drop(self.portals.insert(portal.to_vec(), (statement, false))),
                }
                self.push(What::Bind, Statement { kind: "bind", ..statement }, at_ns, bytes);
            }
            b'E' => {
                let portal = text(message.body).0;
                let mut statement = NO_STATEMENT;
                if let Some((known, is_begun)) = self.portals.get_mut(portal) {
                    statement = *known;
                    if std::mem::replace(is_begun, true) {
                        statement.kind = "fetch";
                    }
                }
                self.push(What::Execute, statement, at_ns, bytes);
            }
            b'D' => {
                let statement = if message.body.first() == Some(&b'P') {
                    self.portals.get(text(&message.body[1..]).0).map_or(NO_STATEMENT, |known| known.0)
                } else {
                    named(&self.prepared, text(message.body.get(1..).unwrap_or_default()).0)
                };
                self.push(What::Describe, Statement { kind: "describe", ..statement }, at_ns, bytes);
            }
            b'C' => {
                if let Some((kind, name)) = message.body.split_first() {
                    let name = text(name).0;
                    if *kind == b'S' {
                        self.prepared.remove(name).map(drop)
                    } else {
                        self.portals.remove(name).map(drop)
                    };
                }
                self.push(What::Close, Statement { kind: "close", ..NO_STATEMENT }, at_ns, bytes);
            }
            b'F' => self.push(What::Function, NO_STATEMENT, at_ns, bytes),
            _ => {}
        }
    }

    fn more(&mut self, bytes: usize) {
        if let Some(op) = self.ops.front_mut() {
            op.sent_bytes += bytes as u64 + 5;
        }
    }

    /// Processes a message of the server.
    pub fn server(&mut self, at_ns: u64, message: Message<'_>, shared: &mut Shared) {
        if self.ending != Ending::Followed {
            return;
        }
        if let Some(capture) = shared.capture.as_mut().filter(|_| !self.is_logging_in()) {
            let returns = self.ops.front().is_some_and(|op| op.returns);
            match message.tag {
                b'E' => capture.state(self.row.number, at_ns, state_of(message.body)),
                b'C' | b'Z' | b's' | b'I' | b'G' => capture.message(self.row.number, at_ns, Side::Server, &message),
                b'D' if returns => capture.message(self.row.number, at_ns, Side::Server, &message),
                _ => {}
            }
        }
        // These belong to no call.
        if matches!(message.tag, b'N' | b'S' | b'A' | b'K' | b'R' | b'v') {
            let (name, value) = text(message.body);
            if message.tag == b'S' && name == b"server_version" && shared.version.is_empty() {
                shared.version = String::from_utf8_lossy(text(value).0).into_owned();
            }
            if message.tag == b'K' && message.body.len() >= 4 {
                self.row.pid = i32::from_be_bytes([message.body[0], message.body[1], message.body[2], message.body[3]]);
            }
            return;
        }
        if self.ops.is_empty() && message.tag == b'E' {
            // The server ends the session on its own initiative.
            self.push(What::Simple, Statement { kind: "message", ..NO_STATEMENT }, at_ns, 0);
        }
        let Some(op) = self.ops.front_mut() else { return };
        op.first_ns.get_or_insert(at_ns);
        op.received_bytes += message.length as u64 + 5;
        match (message.tag, op.what) {
            (b'C', What::Simple | What::Execute) => {
                if let Some(rows) = rows_of(text(message.body).0) {
                    op.rows = Some(op.rows.unwrap_or(0) + rows);
                }
                self.copying = false;
                if op.what == What::Execute {
                    self.done();
                }
            }
            (b'D', What::Execute) => op.data_rows += 1,
            (b's', What::Execute) => {
                op.rows = Some(op.data_rows);
                self.done();
            }
            (b'I', What::Execute)
            | (b'1', What::Parse)
            | (b'2', What::Bind)
            | (b'3', What::Close)
            | (b'T' | b'n', What::Describe)
            | (b'Z', _) => self.ready(message.tag),
            (b'G' | b'W', _) => {
                op.copy_ns = Some((at_ns, at_ns));
                let is_extended = op.what == What::Execute;
                self.copying = true;
                if is_extended && self.ops.get(1).is_some_and(|next| next.what == What::Sync) {
                    self.ops.remove(1);
                }
            }
            (b'E', what) => {
                op.state = Some(packed(&state_of(message.body)));
                self.copying = false;
                if !matches!(what, What::Simple | What::Connect | What::Function) {
                    self.skip();
                }
            }
            _ => {}
        }
    }

    fn done(&mut self) {
        if let Some(op) = self.ops.pop_front() {
            self.group.push(op);
        }
    }

    /// Ends the answered message; at the end of a round trip, also all messages before its Sync, which will get no
    /// answer.
    fn ready(&mut self, tag: u8) {
        if tag != b'Z' {
            self.done();
            return;
        }
        while let Some(op) = self.ops.front() {
            let is_last = matches!(op.what, What::Simple | What::Sync | What::Function | What::Connect);
            self.done();
            if is_last {
                break;
            }
        }
    }

    /// Handles an error: the server answers nothing up to the next Sync.
    fn skip(&mut self) {
        let is_sync = self.ops.front().is_some_and(|op| op.what == What::Sync);
        if is_sync {
            return;
        }
        self.done();
        while self.ops.front().is_some_and(|op| op.what != What::Sync) {
            self.ops.pop_front();
        }
        self.is_skipping = self.ops.is_empty();
    }

    /// Records that the client stops accepting bytes (`is_blocked`), or accepts them again.
    pub fn blocked(&mut self, at_ns: u64, is_blocked: bool) {
        match (self.blocked_since_ns, is_blocked) {
            (None, true) => self.blocked_since_ns = Some(at_ns),
            (Some(since_ns), false) => {
                self.blocked_since_ns = None;
                if let Some(op) = self.ops.front_mut().or(self.group.last_mut()) {
                    op.blocked_ns += at_ns.saturating_sub(since_ns);
                }
            }
            _ => {}
        }
    }
}
