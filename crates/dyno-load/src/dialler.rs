//! Dialler: makes logged-in connections of one arm from its specification, for either engine.
//!
//! Sockets, lines, timeouts and TLS rules are the same for both engines. They differ in when TLS begins (PostgreSQL:
//! before the login; MariaDB: within it), in the login itself, and in how a server is asked to cancel a statement.

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

/// Makes the connections of one arm.
#[derive(Debug)]
pub struct Dialler {
    spec: ConnectionSpec,
    tls: Option<Arc<ClientConfig>>,
    /// Public key that encrypts the password when there is no TLS.
    key: Option<PublicKey>,
    /// Bytes sent to a statement that asks the client for data (such as `COPY ... FROM STDIN`).
    feed: Option<Arc<[u8]>>,
    line: Option<Arc<Line>>,
}

impl Dialler {
    /// Creates a dialler; reads the trusted root certificates and the server's public key if they are needed.
    ///
    /// # Errors
    /// A file cannot be read, or its content is invalid.
    pub fn new(spec: &ConnectionSpec) -> Result<Self, WireError> {
        let key = spec.server_public_key.as_deref().map(read_key).transpose()?;
        Ok(Self { spec: spec.clone(), tls: tls::config(spec)?, key, feed: None, line: None })
    }

    /// Routes all connections of this dialler, cancel requests included, over `line`.
    #[must_use]
    pub fn by(self, line: Option<Arc<Line>>) -> Self {
        Self { line, ..self }
    }

    /// Sets the bytes that `COPY ... FROM STDIN` and `LOAD DATA LOCAL` receive; without such bytes both are refused.
    #[must_use]
    pub fn feeding(self, feed: Option<Arc<[u8]>>) -> Self {
        Self { feed, ..self }
    }

    /// Returns the options of the connection.
    pub fn spec(&self) -> &ConnectionSpec {
        &self.spec
    }

    /// Opens a socket and logs in, within the connection's own timeout and `limit`.
    ///
    /// `stop` and `severed` end the attempt at any point. Until [`Link::unblock`] is called, reads of the returned
    /// link block without a timeout.
    ///
    /// # Errors
    /// The connection or the login fails, times out, or is stopped.
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

    /// Connects as [`Dialler::connect`] does, for a PostgreSQL session that blocks on its socket.
    ///
    /// # Errors
    /// The connection or the login fails, times out, or is stopped.
    pub fn connect_to_copy(&self, stop: &Arc<AtomicBool>) -> Result<LoggedIn, WireError> {
        let patience = Patience::new(self.spec.limit(None), stop);
        let socket = self.open(&patience, &Arc::default())?;
        wire::startup::settled(&self.spec, socket, Some(Patience::new(None, stop)))
    }

    /// Connects as [`Dialler::connect`] does, for a MariaDB session that blocks on its socket.
    ///
    /// # Errors
    /// The connection or the login fails, times out, or is stopped.
    pub fn connect_to_rows(&self, stop: &Arc<AtomicBool>) -> Result<mysql::login::LoggedIn, WireError> {
        let patience = Patience::new(self.spec.limit(None), stop);
        let socket = self.open(&patience, &Arc::default())?;
        let means = Means { spec: &self.spec, tls: self.tls.as_ref(), key: self.key.as_ref(), feed: self.feed.clone() };
        mysql::login::settled(&means, socket, Some(Patience::new(None, stop)))
    }

    /// Logs in on a connected socket.
    ///
    /// # Errors
    /// The login fails or is stopped.
    pub fn log_in(&self, socket: Socket, stop: &Arc<AtomicBool>) -> Result<Link, WireError> {
        self.log_in_for(socket, Patience::new(None, stop))
    }

    /// Logs in on a connected socket; reads of the session then use `patience`.
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

    /// Asks the server, on a separate connection, which of these sessions it is working for.
    ///
    /// Returns one value per entry of `processes`, in the same order.
    ///
    /// # Errors
    /// The server cannot be reached or does not answer within `limit`.
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

    /// Asks the server, on a separate connection, to cancel what a session is doing.
    ///
    /// The request is protected by the same TLS rules as the session.
    ///
    /// # Errors
    /// The server cannot be reached or does not answer within `limit`.
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

/// Returns SQL that fails if the server does not know the session, or if the session waits for its client.
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
