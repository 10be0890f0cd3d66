//! From a specification to logged-in connections of one arm, whichever engine is at the other end.
//!
//! Sockets, lines, limits and TLS's rules are the same for both; what differs is when TLS begins (PostgreSQL: before the
//! login; MariaDB: within it), the login itself, and how a server is told to end what a session does.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustls::ClientConfig;

use crate::connection::{ConnectionSpec, Engine};
use crate::line::Line;
use crate::link::Link;
use crate::mysql::PublicKey;
use crate::mysql::login::Means;
use crate::reactor::{Pulse, finish};
use crate::wire::socket::Socket;
use crate::wire::startup::LoggedIn;
use crate::wire::stream::Patience;
use crate::wire::{WireError, tls};
use crate::{mysql, wire};

/// Knows how to make connections of one arm.
#[derive(Debug)]
pub struct Dialler {
    spec: ConnectionSpec,
    tls: Option<Arc<ClientConfig>>,
    /// What a password is sealed with where there is no TLS.
    key: Option<PublicKey>,
    /// What statements take that ask for data of the client.
    feed: Option<Arc<[u8]>>,
    line: Option<Arc<Line>>,
}

impl Dialler {
    /// Reads the trusted roots and the server's public key, if any are needed.
    pub fn new(spec: &ConnectionSpec) -> Result<Self, WireError> {
        let key = spec.server_public_key.as_deref().map(read_key).transpose()?;
        Ok(Self { spec: spec.clone(), tls: tls::config(spec)?, key, feed: None, line: None })
    }

    /// All its connections go by way of this line; sessions and cancel requests alike.
    #[must_use]
    pub fn by(self, line: Option<Arc<Line>>) -> Self {
        Self { line, ..self }
    }

    /// `COPY ... FROM STDIN` and `LOAD DATA LOCAL` take these bytes; without them they are refused.
    #[must_use]
    pub fn feeding(self, feed: Option<Arc<[u8]>>) -> Self {
        Self { feed, ..self }
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

    /// As [`Dialler::connect`], for a session of PostgreSQL that waits on its socket by itself.
    pub fn connect_to_copy(&self, stop: &Arc<AtomicBool>) -> Result<LoggedIn, WireError> {
        let patience = Patience::new(self.spec.limit(None), stop);
        let socket = self.open(&patience, &Arc::default())?;
        wire::startup::settled(&self.spec, socket, Some(Patience::new(None, stop)))
    }

    /// The same, for a session of MariaDB.
    pub fn connect_to_rows(&self, stop: &Arc<AtomicBool>) -> Result<mysql::login::LoggedIn, WireError> {
        let patience = Patience::new(self.spec.limit(None), stop);
        let socket = self.open(&patience, &Arc::default())?;
        let means = Means { spec: &self.spec, tls: self.tls.as_ref(), key: self.key.as_ref(), feed: self.feed.clone() };
        mysql::login::settled(&means, socket, Some(Patience::new(None, stop)))
    }

    /// Logs in on a connected socket.
    pub fn log_in(&self, socket: Socket, stop: &Arc<AtomicBool>) -> Result<Link, WireError> {
        self.log_in_for(socket, Patience::new(None, stop))
    }

    /// The same; the session then waits with this patience.
    fn log_in_for(&self, socket: Socket, patience: Patience) -> Result<Link, WireError> {
        let (spec, feed, patience) = (&self.spec, self.feed.clone(), Some(patience));
        Ok(match self.spec.engine {
            Engine::Postgres => Link::Postgres(Box::new(wire::startup::log_in(spec, feed, socket, patience)?)),
            Engine::Mariadb => {
                let means = Means { spec, tls: self.tls.as_ref(), key: self.key.as_ref(), feed };
                Link::Mariadb(Box::new(mysql::login::log_in(&means, socket, patience)?))
            }
        })
    }

    /// Asks the server, on a connection of its own, which of these sessions it works for. An error where it does not
    /// answer within the limit.
    pub fn at_work(&self, processes: &[u32], limit: Duration) -> Result<Vec<bool>, WireError> {
        let never = Arc::new(AtomicBool::new(false));
        let login = self.line.as_ref().map_or(Duration::ZERO, |line| line.login());
        let patience = Patience::new(Some(limit + login), &never);
        let mut link = self.log_in_for(self.open(&patience, &never)?, patience)?;
        let ask = |&process: &u32| {
            let reply = finish(link.run(&at_work_sql(self.spec.engine, process), &Pulse::blocking()));
            Ok(reply.unwrap_or(Err(WireError::Timeout))?.is_none())
        };
        let found = processes.iter().map(ask).collect();
        link.terminate();
        found
    }

    /// Asks the server, on a connection of its own, to cancel what a session is doing. The wish travels as protected as
    /// the session.
    pub fn cancel(&self, process: u32, key: u32, limit: Duration) -> Result<(), WireError> {
        let never = Arc::new(AtomicBool::new(false));
        if self.spec.engine == Engine::Postgres {
            let mut socket = self.open(&Patience::new(Some(limit), &never), &never)?;
            return wire::startup::write_cancel(&mut socket, process, key);
        }
        let mut link = self.connect(Some(limit), &never, &never)?;
        let refused = finish(link.run(&format!("kill query {process}"), &Pulse::blocking()));
        link.terminate();
        refused.unwrap_or(Err(WireError::Timeout)).map(|_| ())
    }

    fn open(&self, patience: &Patience, severed: &Arc<AtomicBool>) -> Result<Socket, WireError> {
        let socket = Socket::open(&self.spec, self.line.as_deref(), patience, severed)?;
        match (self.spec.engine, &self.tls) {
            (Engine::Postgres, Some(config)) => wire::startup::encrypt(&self.spec, config, socket),
            _ => Ok(socket),
        }
    }
}

/// A statement that fails where the server knows no such session, or where that session waits for its client.
fn at_work_sql(engine: Engine, process: u32) -> String {
    match engine {
        Engine::Postgres => format!(
            "select 1 / count(*) from pg_stat_activity where pid = {process} \
             and coalesce(state, 'active') not like 'idle%'"
        ),
        Engine::Mariadb => format!(
            "select (select 1 union all select 1 where not exists (select 1 from information_schema.processlist \
             where id = {process} and command <> 'Sleep'))"
        ),
    }
}

fn read_key(path: &Path) -> Result<PublicKey, WireError> {
    let failed = |words: String| WireError::Auth(format!("server_public_key {}: {words}", path.display()));
    let pem = std::fs::read(path).map_err(|e| failed(e.to_string()))?;
    PublicKey::from_pem(&pem).map_err(|words| failed(words.into()))
}
