//! Login on a connected socket: greeting, TLS, authentication.

use std::io::Write;
use std::sync::Arc;

use rustls::ClientConfig;

use super::auth;
use super::greeting::{Greeting, can, write_head, write_login};
use super::link::Link;
use super::packet::{self, Packets, Reader};
use super::seal::PublicKey;
use crate::connection::{ConnectionSpec, SslMode};
use crate::wire::socket::Socket;
use crate::wire::stream::Patience;
use crate::wire::{ServerError, WireError};

const OK: u8 = 0x00;
const MORE: u8 = 0x01;
const OTHER_METHOD: u8 = 0xfe;
const ERROR: u8 = 0xff;
/// Answers of the server in `caching_sha2_password`: the proof is sufficient (`PROVED`), or the password itself is
/// required (`WHOLE_PASSWORD`).
const PROVED: u8 = 3;
const WHOLE_PASSWORD: u8 = 4;

/// Inputs of a login.
#[derive(Debug)]
pub struct Means<'a> {
    /// Options of the connection.
    pub spec: &'a ConnectionSpec,
    /// TLS configuration, if TLS is allowed.
    pub tls: Option<&'a Arc<ClientConfig>>,
    /// Public key of the server, if the user has provided it.
    pub key: Option<&'a PublicKey>,
    /// Bytes that `LOAD DATA LOCAL` receives.
    pub feed: Option<Arc<[u8]>>,
}

/// Logged-in session.
#[derive(Debug)]
pub struct LoggedIn {
    /// Socket of the session.
    pub socket: Socket,
    /// Packets received on the socket.
    pub packets: Packets,
    /// Session number at the server.
    pub session: u32,
    /// True if results of prepared statements omit column descriptions that the client already knows.
    pub caches_metadata: bool,
}

/// Logs in on a connected socket; later reads use `patience`.
///
/// # Errors
/// The login is refused or the connection is lost.
pub fn log_in(means: &Means<'_>, socket: Socket, patience: Option<Patience>) -> Result<Link, WireError> {
    let feed = means.feed.clone();
    let LoggedIn { socket, packets, session, caches_metadata } = settled(means, socket, patience)?;
    Ok(Link::new(socket, packets, session, caches_metadata, feed))
}

/// Logs in as [`log_in`] does, but returns the parts for a session that blocks on its socket.
///
/// # Errors
/// The login is refused or the connection is lost.
pub fn settled(means: &Means<'_>, socket: Socket, patience: Option<Patience>) -> Result<LoggedIn, WireError> {
    let mut login = Login {
        spec: means.spec,
        key: means.key,
        private: means.spec.is_unix(),
        socket,
        packets: Packets::before_login(),
        number: 0,
        challenge: Vec::new(),
        plugin: String::new(),
    };
    let greeting = Greeting::parse(&login.receive()?)?;
    let (mut login, agreed) = login.answer_greeting(means, &greeting)?;
    login.prove()?;
    login.packets.logged_in();
    login.socket.set_patience(patience);
    let caches_metadata = agreed & can::CACHE_METADATA != 0;
    Ok(LoggedIn { socket: login.socket, packets: login.packets, session: greeting.session, caches_metadata })
}

struct Login<'a> {
    spec: &'a ConnectionSpec,
    /// Public key of the server, as provided by the user.
    key: Option<&'a PublicKey>,
    /// True if nobody else can read the connection.
    private: bool,
    socket: Socket,
    packets: Packets,
    /// Number of the client's next packet in the current exchange.
    number: u8,
    challenge: Vec<u8>,
    plugin: String,
}

impl Login<'_> {
    /// Receives the next packet; an error packet is returned as an error.
    fn receive(&mut self) -> Result<Vec<u8>, WireError> {
        loop {
            let Some(packet) = self.packets.next(|_| usize::MAX)? else {
                self.packets.buffer.fill(&mut self.socket)?;
                continue;
            };
            self.number = packet.number.wrapping_add(1);
            let body = self.packets.bytes(&packet.body);
            if packet.first == ERROR {
                return Err(ServerError::mariadb(body).into());
            }
            return Ok(body.to_vec());
        }
    }

    fn send(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), WireError> {
        let mut out = Vec::new();
        let start = packet::begin(&mut out);
        write(&mut out);
        packet::end(&mut out, start, self.number);
        self.number = self.number.wrapping_add(1);
        self.socket.write_all(&out)?;
        self.socket.flush()?;
        Ok(())
    }

    /// Begins TLS if the client requests it and the server offers it, and sends the login; returns the capabilities in
    /// use from then on.
    fn answer_greeting(mut self, means: &Means<'_>, greeting: &Greeting) -> Result<(Self, u64), WireError> {
        let offered = greeting.can & can::TLS != 0;
        let tls = means.tls;
        if tls.is_some() && !offered && self.spec.sslmode != SslMode::Prefer {
            return Err(WireError::Tls("the server offers none, and the connection asks for it".into()));
        }
        let config = tls.filter(|_| offered);
        let agreed = greeting.agreed(self.spec, config.is_some(), means.feed.is_some())?;
        if let Some(config) = config {
            self.send(|out| write_head(agreed, out))?;
            self = self.encrypted(config)?;
        }
        self.challenge.clone_from(&greeting.challenge);
        self.plugin = if greeting.plugin.is_empty() { auth::NATIVE.into() } else { greeting.plugin.clone() };
        // If the server proposes an unsupported method, the user's own method may differ: the server then asks again.
        let proof = self.proof().or_else(|_| {
            self.plugin = auth::NATIVE.into();
            self.proof()
        })?;
        let (spec, plugin) = (self.spec, self.plugin.clone());
        self.send(|out| write_login(spec, agreed, &plugin, &proof, out))?;
        Ok((self, agreed))
    }

    fn encrypted(self, config: &Arc<ClientConfig>) -> Result<Self, WireError> {
        if !self.packets.buffer.is_empty() {
            return Err(WireError::Protocol("bytes in the clear where TLS begins".into()));
        }
        Ok(Self { socket: self.socket.encrypt(self.spec, config)?, private: true, ..self })
    }

    fn password(&self) -> Option<&[u8]> {
        self.spec.password.as_ref().map(crate::connection::Password::reveal)
    }

    fn proof(&self) -> Result<Vec<u8>, WireError> {
        auth::answer(&self.plugin, self.password(), &self.challenge)
    }

    /// Answers the server's requests until it accepts the login: at most 8 requests.
    fn prove(&mut self) -> Result<(), WireError> {
        for _ in 0..8 {
            let body = self.receive()?;
            let mut rest = Reader(&body);
            match (rest.number(1)? as u8, rest.0.first()) {
                (OK, _) => return Ok(()),
                (OTHER_METHOD, Some(_)) => {
                    self.plugin = String::from_utf8_lossy(rest.up_to_zero()).into_owned();
                    self.challenge = rest.0.strip_suffix(&[0]).unwrap_or(rest.0).to_vec();
                    let proof = self.proof()?;
                    self.send(|out| out.extend_from_slice(&proof))?;
                }
                (MORE, Some(&PROVED)) if self.plugin == auth::CACHING_SHA2 => {}
                (MORE, Some(&WHOLE_PASSWORD)) if self.plugin == auth::CACHING_SHA2 => self.whole_password()?,
                _ => return Err(WireError::Auth("the server asks what nobody of its methods asks".into())),
            }
        }
        Err(WireError::Auth("the server asks again and again".into()))
    }

    /// Sends the password itself: unencrypted over a private connection, otherwise encrypted with the user's copy of
    /// the server key.
    fn whole_password(&mut self) -> Result<(), WireError> {
        let secret = self.password().ok_or(WireError::NoPassword)?;
        let answer = match self.key {
            _ if self.private => [secret, &[0]].concat(),
            Some(key) => key.seal(secret, auth::short(&self.challenge)?)?,
            None => {
                let words = "the server asks for the password itself, and there is neither TLS nor a server_public_key";
                return Err(WireError::Exposed(words.into()));
            }
        };
        self.send(|out| out.extend_from_slice(&answer))
    }
}
