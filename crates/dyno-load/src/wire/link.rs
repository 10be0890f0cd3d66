//! One logged-in connection: what is prepared on it, and the events of a round trip.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use dyno_evidence::NONE;
use dyno_script::{Scope, VarId};

use super::flow::{Flow, READS_MAX};
use super::message::{self, Inbox, Keep, Message};
use super::socket::{Control, Socket};
use super::statement::{FLUSH, SYNC, Statement, write_text_query};
use super::{ServerError, WireError};
use crate::reactor::Pulse;
use crate::spec::Protocol;

/// Longest row and longest description of columns that a script can keep [bytes].
pub const CAPTURE_BYTES_MAX: usize = 1 << 20;
/// Data go to the server in messages of this size.
const FEED_BYTES: usize = 1 << 20;
/// What is read of an error; its message stands near its beginning.
const ERROR_BYTES: usize = 16 << 10;

/// What the server reports, one per command and one per `Sync` or simple query.
#[derive(Debug)]
pub enum Event {
    /// A command is complete; rows returned or changed, [`NONE`] where there is no such number.
    Done {
        /// Rows.
        rows: i64,
    },
    /// A command failed; commands up to the next `Sync` are skipped by the server.
    Failed(Box<ServerError>),
    /// The server waits.
    Ready,
}

/// Where a named statement stands on this connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Parsed {
    #[default]
    No,
    Asked,
    Yes,
}

/// The result that a script keeps. Switched on per command, because copying costs.
#[derive(Debug, Default)]
pub struct Capture {
    /// Copy the rows that come.
    pub on: bool,
    /// Body of the last `RowDescription`; empty when none came.
    pub description: Vec<u8>,
    /// Body of the last `DataRow`.
    pub row: Vec<u8>,
    /// Rows since the command's beginning.
    pub rows: u64,
    /// Something was longer than [`CAPTURE_BYTES_MAX`].
    pub too_long: bool,
}

/// One logged-in connection.
#[derive(Debug)]
pub struct Link {
    socket: Socket,
    inbox: Inbox,
    flow: Flow,
    out: Vec<u8>,
    parsed: Vec<Parsed>,
    /// Statements whose `ParseComplete` is to come, each with the number of its batch.
    asked: VecDeque<(u64, usize)>,
    /// Batches ended so far by us, and by the server.
    ended: u64,
    answered: u64,
    extended: bool,
    in_transaction: bool,
    process: u32,
    key: u32,
    /// What `COPY ... FROM STDIN` takes.
    feed: Option<Arc<[u8]>>,
    /// What is kept of the results.
    pub capture: Capture,
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
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

    /// Process number and secret key for a cancel request.
    pub fn cancel_key(&self) -> (u32, u32) {
        (self.process, self.key)
    }

    /// A handle for another thread to end the connection.
    pub fn control(&self) -> Result<Control, WireError> {
        self.socket.control()
    }

    /// Whether the last `ReadyForQuery` was inside a transaction block, failed or not.
    pub fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// Bytes queued and not sent.
    pub fn queued(&self) -> usize {
        self.out.len()
    }

    /// Queues a command; `id` is its number in the arm. Parses first where that is needed.
    #[inline]
    pub fn queue<'a>(
        &mut self,
        statement: &Statement,
        id: usize,
        protocol: Protocol,
        scope: &Scope,
        name: impl Fn(VarId) -> &'a str,
    ) {
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
                statement.write_query(scope, name, &mut self.out);
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
            self.parsed[id] = Parsed::Asked;
            self.asked.push_back((self.ended, id));
        }
    }

    /// Forgets that a command was prepared, as after `DEALLOCATE` or `DISCARD ALL`.
    pub fn forget(&mut self, id: usize) {
        if let Some(parsed) = self.parsed.get_mut(id) {
            *parsed = Parsed::No;
        }
    }

    /// Queues the end of a batch: the server answers it with [`Event::Ready`]. Simple queries end
    /// by themselves.
    #[inline]
    pub fn queue_sync(&mut self) {
        self.ended += 1;
        if self.extended {
            self.out.extend_from_slice(&SYNC);
        }
    }

    /// Queues the wish for the answers so far.
    pub fn queue_flush(&mut self) {
        self.out.extend_from_slice(&FLUSH);
    }

    /// Sends all that is queued, in one write as a rule.
    #[inline]
    pub fn send(&mut self) -> Result<(), WireError> {
        let sent = self.socket.send(&self.out);
        self.out.clear();
        sent.or_else(|e| self.last_words(e))
    }

    /// A connection that the server has ended often holds its reason.
    #[cold]
    fn last_words(&mut self, error: io::Error) -> Result<(), WireError> {
        if !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
            return Err(error.into());
        }
        let mut reads = 0;
        loop {
            match self.step() {
                Ok(Some(_)) => {}
                Ok(None) if reads < READS_MAX && self.inbox.fill(&mut self.socket).is_ok() => reads += 1,
                Err(reason @ WireError::Server(_)) => return Err(reason),
                Ok(None) | Err(_) => return Err(WireError::Closed),
            }
        }
    }

    /// The next event. An error that ends the connection comes as [`WireError::Server`].
    #[inline]
    pub async fn event(&mut self, pulse: &Pulse) -> Result<Event, WireError> {
        loop {
            if let Some(event) = self.step()? {
                return Ok(event);
            }
            while !self.flow.receive(self.inbox.buffer(), &mut self.socket, pulse).await? {}
        }
    }

    /// Other connections of the same session were listened to meanwhile: an event of this one may
    /// have been taken for theirs.
    pub fn doubt(&mut self) {
        self.flow.doubt();
    }

    /// The next event in the bytes that have come.
    #[inline]
    fn step(&mut self) -> Result<Option<Event>, WireError> {
        let rows = self.capture.on;
        loop {
            let wanted = |tag| match tag {
                b'D' | b'T' if rows => Keep::Start(CAPTURE_BYTES_MAX),
                b'2' | b'n' | b'N' | b'S' | b'A' | b't' | b'H' | b'd' | b'c' | b'3' | b'D' | b'T' => Keep::Nothing,
                b'E' => Keep::Start(ERROR_BYTES),
                // Nobody called a function: refused below.
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

    /// What an ended batch asked for and did not get was skipped by the server.
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

    /// `COPY ... FROM STDIN` gets what the script brings, or a refusal. The server ignores a `Sync` sent before.
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

    /// Runs SQL by the simple protocol; returns the error if the server refused it.
    pub async fn run(&mut self, sql: &str, pulse: &Pulse) -> Result<Option<Box<ServerError>>, WireError> {
        write_text_query(sql, &mut self.out);
        self.extended = false;
        self.ended += 1;
        self.send()?;
        let mut first = None;
        loop {
            match self.event(pulse).await? {
                Event::Done { .. } => {}
                Event::Failed(error) => first = first.or(Some(error)),
                Event::Ready => return Ok(first),
            }
        }
    }

    /// From now on a reactor waits for this connection.
    pub fn unblock(&mut self) {
        self.socket.set_patience(None);
    }

    /// Says goodbye.
    pub fn terminate(mut self) {
        // The server notices a closed socket as well.
        let _ = self.socket.write(&[b'X', 0, 0, 0, 4]);
    }
}
