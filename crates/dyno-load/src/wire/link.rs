//! Logged-in connection to PostgreSQL: its prepared statements, and the events of a round trip.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;

use dyno_evidence::NONE;
use dyno_script::{Scope, Symbols};

use super::buffer::Buffer;
use super::flow::{Flow, READS_MAX};
use super::message::{self, Inbox, Keep, Message};
use super::socket::Socket;
use super::statement::{FLUSH, SYNC, Statement, write_text_query};
use super::{ServerError, WireError};
use crate::spec::Protocol;

/// Longest row and longest column description that a script can keep [bytes].
pub const CAPTURE_BYTES_MAX: usize = 1 << 20;
/// Size of the messages in which data is sent to the server [bytes].
const FEED_BYTES: usize = 1 << 20;
/// Number of bytes of an error that are kept; the message is near its beginning.
const ERROR_BYTES: usize = 16 << 10;

/// What the server reports: one event per command, and one per `Sync` or simple query.
#[derive(Debug)]
pub enum Event {
    /// A command is complete; `rows` is the number of rows returned or changed, or [`NONE`] if the server reports no
    /// number.
    Done {
        /// Number of rows.
        rows: i64,
    },
    /// A command failed; the server skips commands up to the next `Sync`.
    Failed(Box<ServerError>),
    /// The server is ready for the next query.
    Ready,
}

/// State of a named statement on this connection: not parsed, `Parse` sent but not answered, or parsed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Parsed {
    #[default]
    No,
    LastQueries,
    Yes,
}

/// Result that a script keeps; switched on for individual commands, because copying costs time.
#[derive(Debug, Default)]
pub struct Capture {
    /// True if the rows that arrive are to be copied.
    pub on: bool,
    /// Body of the last `RowDescription`; empty if there was none.
    pub description: Vec<u8>,
    /// Body of the last `DataRow`.
    pub row: Vec<u8>,
    /// Number of rows since the beginning of the command.
    pub rows: u64,
    /// True if a row or description was longer than [`CAPTURE_BYTES_MAX`].
    pub too_long: bool,
}

/// Logged-in connection to PostgreSQL.
#[derive(Debug)]
pub struct Link {
    socket: Socket,
    inbox: Inbox,
    flow: Flow,
    out: Vec<u8>,
    parsed: Vec<Parsed>,
    /// Statements whose `ParseComplete` has not arrived yet: number of the batch, and number of the statement.
    asked: VecDeque<(u64, usize)>,
    /// Number of batches that the client has ended so far (`ended`), and number of those that the server has answered
    /// (`answered`).
    ended: u64,
    answered: u64,
    extended: bool,
    in_transaction: bool,
    process: u32,
    key: u32,
    /// Bytes that `COPY ... FROM STDIN` receives.
    feed: Option<Arc<[u8]>>,
    /// Result that a script keeps.
    pub capture: Capture,
}

impl Link {
    pub(super) fn new(socket: Socket, inbox: Inbox, (process, key): (u32, u32), feed: Option<Arc<[u8]>>) -> Self {
        Self {
            socket,
            inbox,
            flow: Flow::new(),
            out: Vec::with_capacity(1 << 10),
            parsed: Vec::new(),
            asked: VecDeque::new(),
            ended: 0,
            answered: 0,
            extended: true,
            in_transaction: false,
            process,
            key,
            feed,
            capture: Capture::default(),
        }
    }

    /// Returns the process number and the secret key for a cancel request.
    pub fn cancel_key(&self) -> (u32, u32) {
        (self.process, self.key)
    }

    /// Returns the connection's socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Returns true if the last `ReadyForQuery` was inside a transaction block, failed or not.
    pub fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// Returns the number of bytes that are queued and not yet sent.
    pub fn queued(&self) -> usize {
        self.out.len()
    }

    /// Queues a command; `id` is its number in the arm. Queues `Parse` first if the statement is not parsed yet.
    #[inline]
    pub fn queue(&mut self, statement: &Statement, id: usize, protocol: Protocol, scope: &Scope, symbols: &Symbols) {
        match protocol {
            Protocol::Prepared => {
                if self.parsed.get(id) != Some(&Parsed::Yes) {
                    self.queue_parse(statement, id);
                }
                statement.write_execute(true, scope, &mut self.out);
            }
            Protocol::Extended => {
                statement.write_parse(false, &mut self.out);
                statement.write_execute(false, scope, &mut self.out);
            }
            Protocol::Simple => {
                self.extended = false;
                statement.write_query(scope, symbols, &mut self.out);
                return;
            }
        }
        self.extended = true;
    }

    #[cold]
    fn queue_parse(&mut self, statement: &Statement, id: usize) {
        if id >= self.parsed.len() {
            self.parsed.resize(id + 1, Parsed::No);
        }
        if self.parsed[id] == Parsed::No {
            statement.write_parse(true, &mut self.out);
            self.parsed[id] = Parsed::LastQueries;
            self.asked.push_back((self.ended, id));
        }
    }

    /// Marks a command as not prepared, as it is after `DEALLOCATE` or `DISCARD ALL`.
    pub fn forget(&mut self, id: usize) {
        if let Some(parsed) = self.parsed.get_mut(id) {
            *parsed = Parsed::No;
        }
    }

    /// Queues the end of a batch, which the server answers with [`Event::Ready`].
    ///
    /// A simple query ends by itself, so nothing is queued for it.
    #[inline]
    pub fn queue_sync(&mut self) {
        self.ended += 1;
        if self.extended {
            self.out.extend_from_slice(&SYNC);
        }
    }

    /// Queues a request to send the answers so far (`Flush`).
    pub fn queue_flush(&mut self) {
        self.out.extend_from_slice(&FLUSH);
    }

    /// Sends everything that is queued, usually in one write.
    ///
    /// # Errors
    /// The connection is lost; if the server sent a reason before it closed the connection, the error is that reason.
    #[inline]
    pub fn send(&mut self) -> Result<(), WireError> {
        let sent = self.socket.send(&self.out);
        self.out.clear();
        sent.or_else(|e| self.last_words(e))
    }

    /// Reads the reason that the server sent before it closed the connection, and returns it as the error.
    #[cold]
    fn last_words(&mut self, error: io::Error) -> Result<(), WireError> {
        if !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
            return Err(error.into());
        }
        let mut reads = 0;
        loop {
            match self.step() {
                Ok(Some(_)) => {}
                Ok(None) if reads < READS_MAX && self.inbox.buffer.fill(&mut self.socket).is_ok() => reads += 1,
                Err(reason @ WireError::Server(_)) => return Err(reason),
                Ok(None) | Err(_) => return Err(WireError::Closed),
            }
        }
    }

    /// Returns what a read needs: the state of reading, the buffer to fill, and the socket.
    #[inline]
    pub fn incoming(&mut self) -> (&mut Flow, &mut Buffer, &mut Socket) {
        (&mut self.flow, &mut self.inbox.buffer, &mut self.socket)
    }

    /// Returns the next event in the received bytes, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// The server violates the protocol, or an error message ends the connection ([`WireError::Server`]).
    #[inline]
    pub fn step(&mut self) -> Result<Option<Event>, WireError> {
        let rows = self.capture.on;
        loop {
            let wanted = |tag| match tag {
                b'D' | b'T' if rows => Keep::Start(CAPTURE_BYTES_MAX),
                b'2' | b'n' | b'N' | b'S' | b'A' | b't' | b'H' | b'd' | b'c' | b'3' | b'D' | b'T' => Keep::Nothing,
                b'E' => Keep::Start(ERROR_BYTES),
                // The client calls no functions: refused below.
                b'V' => Keep::Start(0),
                _ => Keep::All,
            };
            let Some(message) = self.inbox.next(wanted)? else { return Ok(None) };
            match message.tag {
                b'C' => {
                    let rows = message::tag_rows(self.inbox.bytes(&message.body));
                    return Ok(Some(Event::Done { rows: rows.unwrap_or(NONE) }));
                }
                b'Z' => {
                    self.in_transaction = self.inbox.bytes(&message.body) != [b'I'];
                    self.answered += 1;
                    if !self.asked.is_empty() {
                        self.drop_asked();
                    }
                    return Ok(Some(Event::Ready));
                }
                tag if wanted(tag) != Keep::Nothing => {
                    if let Some(event) = self.rare(&message)? {
                        return Ok(Some(event));
                    }
                }
                _ => {}
            }
        }
    }

    /// Marks statements as not parsed if their `Parse` was in a batch that has ended without an answer to it: the
    /// server skipped it.
    #[cold]
    fn drop_asked(&mut self) {
        while let Some(&(batch, id)) = self.asked.front() {
            if batch >= self.answered {
                return;
            }
            self.parsed[id] = Parsed::No;
            self.asked.pop_front();
        }
    }

    #[cold]
    fn rare(&mut self, message: &Message) -> Result<Option<Event>, WireError> {
        self.capture.too_long |= message.cut && matches!(message.tag, b'D' | b'T');
        let body = self.inbox.bytes(&message.body);
        match message.tag {
            b'1' => {
                if let Some((_, id)) = self.asked.pop_front() {
                    self.parsed[id] = Parsed::Yes;
                }
            }
            b'T' => {
                self.capture.description.clear();
                self.capture.description.extend_from_slice(body);
            }
            b'D' => {
                self.capture.row.clear();
                self.capture.row.extend_from_slice(body);
                self.capture.rows += 1;
            }
            b'I' => return Ok(Some(Event::Done { rows: NONE })),
            b'E' => {
                let error = ServerError::parse(body);
                if error.is_fatal() {
                    return Err(error.into());
                }
                return Ok(Some(Event::Failed(Box::new(error))));
            }
            b'G' => self.answer_copy()?,
            tag => {
                return Err(WireError::Protocol(format!("message {:?} inside a session", char::from(tag))));
            }
        }
        Ok(None)
    }

    /// Answers a `COPY ... FROM STDIN` with the script's data, or with a refusal; `Sync` is sent again, since the
    /// server ignores an earlier one.
    fn answer_copy(&mut self) -> Result<(), WireError> {
        let mut answer = Vec::new();
        if let Some(feed) = &self.feed {
            feed.chunks(FEED_BYTES).for_each(|part| message::frame(b'd', part, &mut answer));
            message::frame(b'c', b"", &mut answer);
        } else {
            message::frame(b'f', b"a script has no data for COPY FROM STDIN (the variable stdin)\0", &mut answer);
        }
        if self.extended {
            answer.extend_from_slice(&SYNC);
        }
        self.socket.send(&answer)?;
        Ok(())
    }

    /// Queues SQL as text, for the simple protocol.
    pub fn queue_text(&mut self, sql: &str) {
        write_text_query(sql, &mut self.out);
        self.extended = false;
        self.ended += 1;
    }

    /// Tells the server that the session ends, and closes the connection.
    pub fn terminate(mut self) {
        // The server also notices the closed socket.
        let _ = self.socket.write(&[b'X', 0, 0, 0, 4]);
    }
}
