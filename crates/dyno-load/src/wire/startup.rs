//! Login on a connected socket: TLS, start-up message, authentication, first `ReadyForQuery`.

use std::io::Write;
use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use rustls::ClientConfig;

use super::link::Link;
use super::message::{Inbox, Keep};
use super::socket::Socket;
use super::stream::Patience;
use super::{ServerError, WireError};
use crate::connection::{ConnectionSpec, SslMode, SslNegotiation};

/// Protocol code of a cancel request.
const CANCEL_CODE: u32 = 80_877_102;

/// Logs in on a connected socket; later reads use `patience`.
///
/// # Errors
/// The login is refused or the connection is lost.
pub fn log_in(
    spec: &ConnectionSpec,
    feed: Option<Arc<[u8]>>,
    socket: Socket,
    patience: Option<Patience>,
) -> Result<Link, WireError> {
    let LoggedIn { socket, inbox, process, key } = settled(spec, socket, patience)?;
    Ok(Link::new(socket, inbox, (process, key), feed))
}

/// Logs in as [`log_in`] does, for callers that read the messages themselves.
///
/// # Errors
/// The login is refused or the connection is lost.
pub fn settled(spec: &ConnectionSpec, socket: Socket, patience: Option<Patience>) -> Result<LoggedIn, WireError> {
    let inbox = Inbox::before_login();
    let mut handshake = Handshake { spec, socket, inbox, out: BytesMut::new() };
    handshake.start()?;
    handshake.authenticate()?;
    let (process, key) = handshake.settle()?;
    handshake.inbox.logged_in();
    handshake.socket.set_patience(patience);
    Ok(LoggedIn { socket: handshake.socket, inbox: handshake.inbox, process, key })
}

/// Begins TLS if the server offers it; with direct negotiation, TLS begins without asking the server.
///
/// # Errors
/// The handshake fails, or the server offers no TLS and `sslmode` requires it.
pub fn encrypt(spec: &ConnectionSpec, config: &Arc<ClientConfig>, mut socket: Socket) -> Result<Socket, WireError> {
    if spec.sslnegotiation == SslNegotiation::Direct || socket.offers_tls()? {
        return socket.encrypt(spec, config);
    }
    if spec.sslmode == SslMode::Prefer {
        return Ok(socket);
    }
    Err(WireError::Tls("the server offers none and sslmode asks for it".into()))
}

/// Sends a request to cancel what a session is doing.
///
/// # Errors
/// The connection is lost.
pub fn write_cancel(socket: &mut Socket, process: u32, key: u32) -> Result<(), WireError> {
    let mut message = [0; 16];
    for (slot, word) in message.chunks_exact_mut(4).zip([16, CANCEL_CODE, process, key]) {
        slot.copy_from_slice(&word.to_be_bytes());
    }
    socket.write_all(&message)?;
    socket.flush()?;
    Ok(())
}

/// Result of a login: the socket, the bytes received on it, and the key for a cancel request.
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

    /// Receives the next message that is not a notice; an error message is returned as an error.
    pub(super) fn receive(&mut self) -> Result<(u8, Vec<u8>), WireError> {
        loop {
            let Some(message) = self.inbox.next(|tag| if tag == b'N' { Keep::Nothing } else { Keep::All })? else {
                self.inbox.buffer.fill(&mut self.socket)?;
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

    /// Reads up to the first `ReadyForQuery`; returns the process number and key for a cancel request.
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
