//! Additional tables of a proxied trace: the bytes of every call, and on request the messages themselves.
//!
//! The messages contain the values of parameters and literals; `trace replay` can send them again.

use dyno_evidence::EvidenceError;
use dyno_evidence::table::{Column, Kind, Texts, Values};
use dyno_evidence::trace_store::Store;

use crate::framing::Message;

/// Columns of `client_calls/`: one row per call, with its traffic on the wire.
pub const CLIENT_CALLS: [Column; 5] = [
    Column::new("session", Kind::U32),
    Column::new("call", Kind::I64),
    Column::new("sent_bytes", Kind::I64),
    Column::new("received_bytes", Kind::I64),
    Column::new("first_answer_ns", Kind::I64),
];

/// Columns of `wire/`: one row per message.
///
/// `body` has one character per byte (ISO 8859-1), because the protocol's bytes are not text.
pub const WIRE: [Column; 6] = [
    Column::new("session", Kind::U32),
    Column::new("tim", Kind::I64),
    Column::new("side", Kind::Words),
    Column::new("tag", Kind::Words),
    Column::new("length", Kind::I64),
    Column::new("body", Kind::Text),
];

/// Number of rows that are kept in memory before they are written.
const KEPT: usize = 1 << 14;
/// Number of body bytes that are kept in memory before they are written.
const KEPT_BYTES: usize = 1 << 23;

/// Numbers of bytes that calls sent and received, which are not written yet.
#[derive(Default)]
pub struct CallBytes {
    sessions: Vec<u32>,
    numbers: [Vec<i64>; 4],
}

impl CallBytes {
    /// Adds a finished call: bytes sent and received, and the time until the first byte of the answer [ns].
    pub fn push(&mut self, session: u32, call: u64, sent: u64, received: u64, first_ns: u64) {
        self.sessions.push(session);
        for (column, value) in self.numbers.iter_mut().zip([call, sent, received, first_ns]) {
            column.push(value as i64);
        }
    }

    /// Writes the rows if there are enough of them, or if `is_last` is true.
    ///
    /// # Errors
    /// The evidence cannot be written.
    pub fn flush(&mut self, store: &mut Store, is_last: bool) -> Result<(), EvidenceError> {
        if self.sessions.is_empty() || (!is_last && self.sessions.len() < KEPT) {
            return Ok(());
        }
        let mut values = vec![Values::U32(std::mem::take(&mut self.sessions))];
        values.extend(self.numbers.iter_mut().map(|column| Values::I64(std::mem::take(column))));
        store.put("client_calls", &CLIENT_CALLS, values)
    }
}

/// Sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// Messages that are not written yet.
#[derive(Default)]
pub struct Capture {
    sessions: Vec<u32>,
    tims: Vec<i64>,
    sides: Vec<u32>,
    tags: Vec<u32>,
    lengths: Vec<i64>,
    bodies: Texts,
    /// Buffer for a body as text.
    text: String,
    bytes: usize,
}

/// Tag of the row that marks the end of a session.
pub const END: u8 = b'-';

impl Capture {
    fn push(&mut self, session: u32, at_ns: u64, side: Side, tag: u8, length: usize, body: &[u8]) {
        self.sessions.push(session);
        self.tims.push(at_ns as i64);
        self.sides.push(u32::from(side == Side::Server));
        self.tags.push(u32::from(tag & 0x7f));
        self.lengths.push(length as i64);
        match std::str::from_utf8(body) {
            Ok(text) if text.is_ascii() => self.bodies.push(Some(text)),
            _ => {
                self.text.clear();
                self.text.extend(body.iter().map(|byte| char::from(*byte)));
                self.bodies.push(Some(&self.text));
            }
        }
        self.bytes += body.len();
    }

    /// Adds a message; one that may contain a password is kept without its body.
    pub fn message(&mut self, session: u32, at_ns: u64, side: Side, message: &Message<'_>) {
        let is_text = side == Side::Client && matches!(message.tag, b'Q' | b'P');
        let body = if is_text && names_password(message.body) { &[] } else { message.body };
        self.push(session, at_ns, side, message.tag, message.length, body);
    }

    /// Adds an error, reduced to its SQLSTATE.
    pub fn state(&mut self, session: u32, at_ns: u64, state: [u8; 5]) {
        self.push(session, at_ns, Side::Server, b'E', state.len(), &state);
    }

    /// Adds the end of a session.
    pub fn end(&mut self, session: u32, at_ns: u64) {
        self.push(session, at_ns, Side::Client, END, 0, &[]);
    }

    /// Writes the rows if there are enough of them, or if `is_last` is true.
    ///
    /// # Errors
    /// The evidence cannot be written.
    pub fn flush(&mut self, store: &mut Store, is_last: bool) -> Result<(), EvidenceError> {
        let is_worth_it = self.sessions.len() >= KEPT || self.bytes >= KEPT_BYTES;
        if self.sessions.is_empty() || !(is_last || is_worth_it) {
            return Ok(());
        }
        let taken = std::mem::take(self);
        let values = vec![
            Values::U32(taken.sessions),
            Values::I64(taken.tims),
            Values::Words(taken.sides, vec!["client".to_owned(), "server".to_owned()]),
            Values::Words(taken.tags, (0..128u8).map(|tag| char::from(tag).to_string()).collect()),
            Values::I64(taken.lengths),
            Values::Text(taken.bodies),
        ];
        store.put("wire", &WIRE, values)
    }
}

fn names_password(body: &[u8]) -> bool {
    body.windows(8).any(|window| window.eq_ignore_ascii_case(b"password"))
}
