//! From a socket to a session: TLS, start-up message, authentication, first `ReadyForQuery`.
//!
//! Methods: trust, password, md5, SCRAM-SHA-256, and SCRAM-SHA-256-PLUS over TLS. A server that
//! accepts SCRAM without proving that it knows the password is refused.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256};
use postgres_protocol::message::frontend;
use rustls::ClientConfig;

use super::link::Link;
use super::message::Inbox;
use super::socket::Socket;
use super::{ServerError, WireError, tls};
use crate::spec::{ConnectionSpec, Password, SslMode};

/// Knows how to make connections of one arm.
#[derive(Debug)]
pub struct Dialler {
    spec: ConnectionSpec,
    tls: Option<Arc<ClientConfig>>,
}

impl Dialler {
    /// Reads the trusted roots, if any are needed.
    pub fn new(spec: &ConnectionSpec) -> Result<Self, WireError> {
        Ok(Self { spec: spec.clone(), tls: tls::config(spec)? })
    }

    /// Where it connects to.
    pub fn spec(&self) -> &ConnectionSpec {
        &self.spec
    }

    /// Opens a socket and logs in, within the specification's limit and `limit`.
    pub fn connect(&self, limit: Option<Duration>) -> Result<Link, WireError> {
        let limit = match (self.spec.connect_timeout(), limit) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let mut greeter = Greeter {
            spec: &self.spec,
            socket: self.open(limit)?,
            inbox: Inbox::default(),
            out: BytesMut::new(),
            deadline: limit.map(|limit| Instant::now() + limit),
        };
        greeter.start()?;
        greeter.authenticate()?;
        let (process, key) = greeter.settle()?;
        greeter.socket.set_limit(None)?;
        Ok(Link::new(greeter.socket, greeter.inbox, process, key))
    }

    fn open(&self, limit: Option<Duration>) -> Result<Socket, WireError> {
        let socket = Socket::open(&self.spec, limit)?;
        let Some(config) = &self.tls else { return Ok(socket) };
        let (socket, encrypted) = socket.upgrade(&self.spec, config)?;
        if encrypted || self.spec.sslmode == SslMode::Prefer {
            return Ok(socket);
        }
        Err(WireError::Tls("the server offers none and sslmode asks for it".into()))
    }
}

struct Greeter<'a> {
    spec: &'a ConnectionSpec,
    socket: Socket,
    inbox: Inbox,
    out: BytesMut,
    deadline: Option<Instant>,
}

impl Greeter<'_> {
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

    fn send(&mut self) -> Result<(), WireError> {
        self.socket.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// The next message that matters: not a notice, and an error as an error.
    fn receive(&mut self) -> Result<(u8, Vec<u8>), WireError> {
        loop {
            if let Some(deadline) = self.deadline {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(WireError::Timeout);
                }
                self.socket.set_limit(Some(left))?;
            }
            let Some(message) = self.inbox.next(|_| true)? else {
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

    /// Answers the server's questions until it is content.
    fn authenticate(&mut self) -> Result<(), WireError> {
        loop {
            let (kind, data) = self.question()?;
            match kind {
                0 => return Ok(()),
                3 => self.answer(frontend::password_message)?,
                5 => {
                    let salt =
                        *data.first_chunk::<4>().ok_or_else(|| WireError::Protocol("md5 without salt".into()))?;
                    let user = self.spec.user.clone();
                    self.answer(|password, out| {
                        let hash = md5_hash(user.as_bytes(), password, salt);
                        frontend::password_message(hash.as_bytes(), out)
                    })?;
                }
                10 => self.scram(&data)?,
                other => return Err(WireError::Auth(unsupported(other))),
            }
        }
    }

    fn question(&mut self) -> Result<(u32, Vec<u8>), WireError> {
        match self.receive()? {
            (b'R', body) if body.len() >= 4 => {
                let kind = u32::from_be_bytes([body[0], body[1], body[2], body[3]]);
                Ok((kind, body[4..].to_vec()))
            }
            (tag, _) => Err(WireError::Protocol(format!("message {:?} during authentication", char::from(tag)))),
        }
    }

    fn password(&self) -> Result<&[u8], WireError> {
        self.spec.password.as_ref().map(Password::reveal).ok_or(WireError::NoPassword)
    }

    fn answer(&mut self, encode: impl FnOnce(&[u8], &mut BytesMut) -> std::io::Result<()>) -> Result<(), WireError> {
        let mut out = BytesMut::new();
        encode(self.password()?, &mut out)?;
        self.out = out;
        self.send()
    }

    fn scram(&mut self, mechanisms: &[u8]) -> Result<(), WireError> {
        let offers = |name: &str| mechanisms.split(|&b| b == 0).any(|m| m == name.as_bytes());
        let hash = self.socket.end_point_hash();
        let (mechanism, binding) = match hash {
            Some(hash) if offers(SCRAM_SHA_256_PLUS) => {
                (SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(hash))
            }
            Some(_) if offers(SCRAM_SHA_256) => (SCRAM_SHA_256, ChannelBinding::unrequested()),
            None if offers(SCRAM_SHA_256) => (SCRAM_SHA_256, ChannelBinding::unsupported()),
            _ => {
                let offered = String::from_utf8_lossy(mechanisms).replace('\0', " ");
                return Err(WireError::Auth(format!("only SASL {}", offered.trim())));
            }
        };
        let failed = |e: std::io::Error| WireError::Auth(format!("SCRAM: {e}"));
        let mut scram = ScramSha256::new(self.password()?, binding);
        frontend::sasl_initial_response(mechanism, scram.message(), &mut self.out)?;
        self.send()?;
        scram.update(&self.expect(11)?).map_err(failed)?;
        frontend::sasl_response(scram.message(), &mut self.out)?;
        self.send()?;
        scram.finish(&self.expect(12)?).map_err(failed)
    }

    fn expect(&mut self, kind: u32) -> Result<Vec<u8>, WireError> {
        match self.question()? {
            (found, data) if found == kind => Ok(data),
            (found, _) => Err(WireError::Auth(format!("SCRAM: step {found} instead of {kind}"))),
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

fn unsupported(kind: u32) -> String {
    let name = match kind {
        2 => "Kerberos V5",
        6 => "SCM credential",
        7 | 8 => "GSSAPI",
        9 => "SSPI",
        _ => return format!("the server asks for method {kind}, which is not supported"),
    };
    format!("the server asks for {name}, which is not supported")
}
