//! One session that copies rows out of a server or into it, and waits on its socket by itself.
//!
//! `COPY` goes by the extended protocol: the server itself refuses text that holds more than one statement. Messages
//! are handed on as they come; one that is not wanted any more ends the session, and [`CopySession::cancel`] tells the
//! server.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::message::{Inbox, Keep, Message, tag_rows};
use super::socket::Socket;
use super::startup::LoggedIn;
use super::{ServerError, WireError};
use crate::connection::ConnectionSpec;
use crate::dialler::Dialler;

/// Room for bytes that came: a server sends 8 KiB at a time, and a busy reader finds many of them.
const ROOM_BYTES: usize = 256 << 10;
/// Bytes from which on a message does not keep its room for the rest.
pub const LONG_BYTES: usize = 4 << 20;
/// Bytes of a message of ours at most.
const PART_BYTES: usize = 1 << 20;
/// How long a cancel request may take.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

/// A logged-in session for `COPY`.
#[derive(Debug)]
pub struct CopySession {
    dialler: Dialler,
    socket: Socket,
    inbox: Inbox,
    out: BytesMut,
    process: u32,
    key: u32,
}

impl CopySession {
    /// Opens a socket and logs in; `stop` ends that and everything after it.
    pub fn connect(spec: &ConnectionSpec, stop: &Arc<AtomicBool>) -> Result<Self, WireError> {
        let dialler = Dialler::new(spec)?;
        let LoggedIn { socket, mut inbox, process, key } = dialler.connect_to_copy(stop)?;
        inbox.buffer().widen(ROOM_BYTES);
        Ok(Self { dialler, socket, inbox, out: BytesMut::new(), process, key })
    }

    /// Number of the server's process.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Runs one statement that gives no rows that matter.
    pub fn run(&mut self, sql: &str) -> Result<(), WireError> {
        self.ask(sql)?;
        self.until_ready(|_| Ok::<(), WireError>(())).map(|_| ())
    }

    /// Runs `COPY … TO STDOUT` and hands on the bytes of every message; returns the rows that the server counted. No bytes
    /// at all are handed on once the room of a message of [`LONG_BYTES`] was given back: what it left is best written now.
    pub fn copy_out<E: From<WireError>>(
        &mut self,
        sql: &str,
        each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        self.ask(sql)?;
        self.until_ready(each)
    }

    /// Runs `COPY … FROM STDIN`; `more` appends to the buffer it gets and says whether there is more to come. Returns
    /// the rows that the server counted.
    pub fn copy_in<E: From<WireError>>(
        &mut self,
        sql: &str,
        mut more: impl FnMut(&mut Vec<u8>) -> Result<bool, E>,
    ) -> Result<u64, E> {
        self.begin_in(sql)?;
        let mut body = Vec::with_capacity(ROOM_BYTES);
        loop {
            body.clear();
            let goes_on = more(&mut body)?;
            self.send_in(&body)?;
            // One long row does not keep its room for the rest.
            body.shrink_to(ROOM_BYTES);
            if !goes_on {
                return Ok(self.end_in()?);
            }
        }
    }

    /// Begins `COPY … FROM STDIN`: rows may be sent then.
    pub fn begin_in(&mut self, sql: &str) -> Result<(), WireError> {
        self.ask(sql)?;
        // The answer to a `COPY` that the server refuses is an error; to one that it takes, `G`.
        while !matches!(self.next_message(Keep::Nothing)?.tag, b'G') {}
        Ok(())
    }

    /// Sends bytes of rows, cut wherever the caller likes.
    pub fn send_in(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        for part in bytes.chunks(PART_BYTES) {
            // Head and rows go out together: a call, and a packet, less.
            self.out.clear();
            self.out.extend_from_slice(b"d");
            self.out.extend_from_slice(&(part.len() as u32 + 4).to_be_bytes());
            self.out.extend_from_slice(part);
            let sent = std::mem::take(&mut self.out);
            self.socket.send(&sent)?;
            self.out = sent;
        }
        Ok(())
    }

    /// Ends `COPY … FROM STDIN`; the rows that the server counted.
    pub fn end_in(&mut self) -> Result<u64, WireError> {
        // `CopyDone`, and a `Sync` again: the one sent before is ignored while rows come in.
        self.socket.send(&[b'c', 0, 0, 0, 4, b'S', 0, 0, 0, 4])?;
        self.until_ready(|_| Ok::<(), WireError>(()))
    }

    /// Asks the server to end what this session is doing.
    pub fn cancel(&self) {
        // A server that is gone has nothing to cancel.
        let _ = self.dialler.cancel(self.process, self.key, CANCEL_LIMIT);
    }

    fn ask(&mut self, sql: &str) -> Result<(), WireError> {
        self.out.clear();
        frontend::parse("", sql, [], &mut self.out)?;
        let none: [bool; 0] = [];
        let bound = frontend::bind("", "", [], none, |_, _| Ok(postgres_protocol::IsNull::Yes), [], &mut self.out);
        bound.map_err(|_| WireError::Protocol("a statement without values".into()))?;
        frontend::execute("", 0, &mut self.out)?;
        frontend::sync(&mut self.out);
        let sent = std::mem::take(&mut self.out);
        self.socket.send(&sent)?;
        Ok(())
    }

    fn next_message(&mut self, data: Keep) -> Result<Message, WireError> {
        loop {
            let wanted = |tag| match tag {
                b'd' => data,
                b'E' | b'C' => Keep::All,
                _ => Keep::Nothing,
            };
            let Some(message) = self.inbox.next(wanted)? else {
                self.inbox.fill(&mut self.socket)?;
                continue;
            };
            if message.tag == b'E' {
                return Err(ServerError::parse(self.inbox.bytes(&message.body)).into());
            }
            return Ok(message);
        }
    }

    /// Reads up to `ReadyForQuery`. An error of the server ends the session: whoever copies begins a new one.
    fn until_ready<E: From<WireError>>(&mut self, mut each: impl FnMut(&[u8]) -> Result<(), E>) -> Result<u64, E> {
        let mut rows = 0;
        loop {
            let message = self.next_message(Keep::All)?;
            match message.tag {
                b'd' => {
                    each(self.inbox.bytes(&message.body))?;
                    if message.body.len() >= LONG_BYTES {
                        self.inbox.buffer().narrow(ROOM_BYTES);
                        each(&[])?;
                    }
                }
                b'C' => rows = tag_rows(self.inbox.bytes(&message.body)).unwrap_or(0) as u64,
                b'Z' => return Ok(rows),
                b'G' => return Err(WireError::Protocol("a request for rows".into()).into()),
                _ => {}
            }
        }
    }
}
