//! Session that copies rows out of a server or into it, and blocks on its socket.
//!
//! `COPY` is sent with the extended protocol, so the server itself refuses text with more than one statement. Messages
//! are passed on as they arrive. A caller that needs no more messages must end the session; [`CopySession::cancel`]
//! lets the server stop, too.

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

/// Size of the receive buffer [bytes]: a server sends 8 KiB at a time, and a busy reader receives many such messages at
/// once.
const ROOM_BYTES: usize = 256 << 10;
/// Length from which on the space of a message is released after the message has been passed on [bytes].
pub const LONG_BYTES: usize = 4 << 20;
/// Largest message that is sent [bytes].
const PART_BYTES: usize = 1 << 20;
/// Timeout of a cancel request.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

/// Logged-in session for `COPY`.
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
    /// Opens a socket and logs in; `stop` interrupts this and every later operation.
    ///
    /// # Errors
    /// The connection or the login fails.
    pub fn connect(spec: &ConnectionSpec, stop: &Arc<AtomicBool>) -> Result<Self, WireError> {
        let dialler = Dialler::new(spec)?;
        let LoggedIn { socket, mut inbox, process, key } = dialler.connect_to_copy(stop)?;
        inbox.buffer.widen(ROOM_BYTES);
        Ok(Self { dialler, socket, inbox, out: BytesMut::new(), process, key })
    }

    /// Returns the number of the server process.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Runs one statement and ignores its rows.
    ///
    /// # Errors
    /// The server refuses the statement, or the connection is lost.
    pub fn run(&mut self, sql: &str) -> Result<(), WireError> {
        self.ask(sql)?;
        self.until_ready(|_| Ok::<(), WireError>(())).map(|_| ())
    }

    /// Runs `COPY … TO STDOUT` and calls `each` with the bytes of every message; returns the server's row count.
    ///
    /// After a message of [`LONG_BYTES`] or more, its space is released and `each` is called without any bytes, so that
    /// it can write the bytes it has collected.
    ///
    /// # Errors
    /// The server refuses the statement, the connection is lost, or `each` fails.
    pub fn copy_out<E: From<WireError>>(
        &mut self,
        sql: &str,
        each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        self.ask(sql)?;
        self.until_ready(each)
    }

    /// Runs `COPY … FROM STDIN`; returns the number of rows that the server counted.
    ///
    /// `more` appends bytes to the buffer that it receives, and returns true if more bytes will follow.
    ///
    /// # Errors
    /// The server refuses the statement or the rows, the connection is lost, or `more` fails.
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
            // The space of one long row is not kept for the rest.
            body.shrink_to(ROOM_BYTES);
            if !goes_on {
                return Ok(self.end_in()?);
            }
        }
    }

    /// Begins `COPY … FROM STDIN`, after which rows can be sent with [`CopySession::send_in`].
    ///
    /// # Errors
    /// The server refuses the statement, or the connection is lost.
    pub fn begin_in(&mut self, sql: &str) -> Result<(), WireError> {
        self.ask(sql)?;
        // If the server accepts the `COPY` it answers `G`, otherwise with an error.
        while !matches!(self.next_message(Keep::Nothing)?.tag, b'G') {}
        Ok(())
    }

    /// Sends bytes of rows; the bytes can be split between calls at any position.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send_in(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        for part in bytes.chunks(PART_BYTES) {
            // Head and rows are sent together, which saves a system call and a packet.
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

    /// Ends `COPY … FROM STDIN`; returns the number of rows that the server counted.
    ///
    /// # Errors
    /// The server refuses the rows, or the connection is lost.
    pub fn end_in(&mut self) -> Result<u64, WireError> {
        // `CopyDone` and another `Sync`: the server ignored the first one while it received rows.
        self.socket.send(&[b'c', 0, 0, 0, 4, b'S', 0, 0, 0, 4])?;
        self.until_ready(|_| Ok::<(), WireError>(()))
    }

    /// Asks the server to cancel what this session is doing; errors are ignored.
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
                self.inbox.buffer.fill(&mut self.socket)?;
                continue;
            };
            if message.tag == b'E' {
                return Err(ServerError::parse(self.inbox.bytes(&message.body)).into());
            }
            return Ok(message);
        }
    }

    /// Reads up to `ReadyForQuery`. An error from the server ends the session; the caller must then begin a new one.
    fn until_ready<E: From<WireError>>(&mut self, mut each: impl FnMut(&[u8]) -> Result<(), E>) -> Result<u64, E> {
        let mut rows = 0;
        loop {
            let message = self.next_message(Keep::All)?;
            match message.tag {
                b'd' => {
                    each(self.inbox.bytes(&message.body))?;
                    if message.body.len() >= LONG_BYTES {
                        self.inbox.buffer.narrow(ROOM_BYTES);
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
