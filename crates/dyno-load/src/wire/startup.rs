//! From a socket to a session: TLS, start-up message, authentication, first `ReadyForQuery`.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use rustls::ClientConfig;

use super::link::Link;
use super::message::{Inbox, Keep};
use super::socket::Socket;
use super::stream::Patience;
use super::{ServerError, WireError, tls};
use crate::connection::{ConnectionSpec, SslMode, SslNegotiation};
use crate::line::Line;

/// The protocol's code for a cancel request.
const CANCEL_CODE: u32 = 80_877_102;

/// Knows how to make connections of one arm.
#[derive(Debug)]
pub struct Dialler {
    spec: ConnectionSpec,
    tls: Option<Arc<ClientConfig>>,
    line: Option<Arc<Line>>,
}

impl Dialler {
    /// Reads the trusted roots, if any are needed.
    pub fn new(spec: &ConnectionSpec) -> Result<Self, WireError> {
        Ok(Self { spec: spec.clone(), tls: tls::config(spec)?, line: None })
    }

    /// All its connections go by way of this line; sessions and cancel requests alike.
    #[must_use]
    pub fn by(self, line: Option<Arc<Line>>) -> Self {
        Self { line, ..self }
    }

    /// Where it connects to.
    pub fn spec(&self) -> &ConnectionSpec {
        &self.spec
    }

    /// Opens a socket and logs in, within the specification's limit and `limit`; `stop` and
    /// `severed` end it at any point. The session's socket still waits, without limit, until
    /// [`Link::unblock`].
    pub fn connect(
        &self,
        limit: Option<Duration>,
        stop: &Arc<AtomicBool>,
        severed: &Arc<AtomicBool>,
    ) -> Result<Link, WireError> {
        let login = self.line.as_ref().map_or(Duration::ZERO, |line| line.login());
        let patience = Patience::new(self.spec.limit(limit).map(|limit| limit + login), stop);
        self.log_in(self.open(&patience, severed)?, stop)
    }

    /// As [`Dialler::connect`], for a session that waits on its socket by itself.
    pub fn connect_to_copy(&self, stop: &Arc<AtomicBool>) -> Result<LoggedIn, WireError> {
        let patience = Patience::new(self.spec.limit(None), stop);
        self.settled(self.open(&patience, &Arc::default())?, stop)
    }

    /// Logs in on a connected socket.
    pub fn log_in(&self, socket: Socket, stop: &Arc<AtomicBool>) -> Result<Link, WireError> {
        let LoggedIn { socket, inbox, process, key } = self.settled(socket, stop)?;
        Ok(Link::new(socket, inbox, process, key))
    }

    fn settled(&self, socket: Socket, stop: &Arc<AtomicBool>) -> Result<LoggedIn, WireError> {
        let inbox = Inbox::before_login();
        let mut handshake = Handshake { spec: &self.spec, socket, inbox, out: BytesMut::new() };
        handshake.start()?;
        handshake.authenticate()?;
        let (process, key) = handshake.settle()?;
        handshake.inbox.logged_in();
        handshake.socket.set_patience(Some(Patience::new(None, stop)));
        Ok(LoggedIn { socket: handshake.socket, inbox: handshake.inbox, process, key })
    }

    /// Asks the server, on a connection of its own, to cancel what a session is doing. The session's
    /// key travels as protected as the session.
    pub fn cancel(&self, process: u32, key: u32, limit: Duration) -> Result<(), WireError> {
        let never = Arc::new(AtomicBool::new(false));
        let mut socket = self.open(&Patience::new(Some(limit), &never), &never)?;
        let mut message = [0; 16];
        for (slot, word) in message.chunks_exact_mut(4).zip([16, CANCEL_CODE, process, key]) {
            slot.copy_from_slice(&word.to_be_bytes());
        }
        socket.write_all(&message)?;
        socket.flush()?;
        Ok(())
    }

    fn open(&self, patience: &Patience, severed: &Arc<AtomicBool>) -> Result<Socket, WireError> {
        let mut socket = Socket::open(&self.spec, self.line.as_deref(), patience, severed)?;
        let Some(config) = &self.tls else { return Ok(socket) };
        if self.spec.sslnegotiation == SslNegotiation::Direct || socket.offers_tls()? {
            return socket.encrypt(&self.spec, config);
        }
        if self.spec.sslmode == SslMode::Prefer {
            return Ok(socket);
        }
        Err(WireError::Tls("the server offers none and sslmode asks for it".into()))
    }
}

/// What a login leaves: the socket, what came on it, and the key of a cancel request.
#[derive(Debug)]
pub struct LoggedIn {
    pub socket: Socket,
    pub inbox: Inbox,
    pub process: u32,
    pub key: u32,
}

pub(super) struct Handshake<'a> {
    pub(super) spec: &'a ConnectionSpec,
    pub(super) socket: Socket,
    inbox: Inbox,
    pub(super) out: BytesMut,
}

impl Handshake<'_> {
    fn start(&mut self) -> Result<(), WireError> {
        let spec = self.spec;
        let mut parameters =
            vec![("user", spec.user.as_str()), ("database", spec.dbname.as_str()), ("client_encoding", "UTF8")];
        if !spec.application_name.is_empty() {
            parameters.push(("application_name", &spec.application_name));
        }
        if let Some(options) = &spec.options {
            parameters.push(("options", options));
        }
        frontend::startup_message(parameters, &mut self.out)?;
        self.send()
    }

    pub(super) fn send(&mut self) -> Result<(), WireError> {
        self.socket.write_all(&self.out)?;
        self.socket.flush()?;
        self.out.clear();
        Ok(())
    }

    /// The next message that matters: not a notice, and an error as an error.
    pub(super) fn receive(&mut self) -> Result<(u8, Vec<u8>), WireError> {
        loop {
            let Some(message) = self.inbox.next(|tag| if tag == b'N' { Keep::Nothing } else { Keep::All })? else {
                self.inbox.fill(&mut self.socket)?;
                continue;
            };
            let body = self.inbox.bytes(&message.body);
            match message.tag {
                b'N' => {}
                b'E' => return Err(ServerError::parse(body).into()),
                tag => return Ok((tag, body.to_vec())),
            }
        }
    }

    /// Reads up to the first `ReadyForQuery`; returns the key that a cancel request needs.
    fn settle(&mut self) -> Result<(u32, u32), WireError> {
        let mut key = (0, 0);
        loop {
            match self.receive()? {
                (b'K', body) if body.len() == 8 => {
                    let word = |at: usize| u32::from_be_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
                    key = (word(0), word(4));
                }
                (b'S' | b'K', _) => {}
                (b'Z', _) => return Ok(key),
                (tag, _) => {
                    let message = format!("message {:?} before the session", char::from(tag));
                    return Err(WireError::Protocol(message));
                }
            }
        }
    }
}
