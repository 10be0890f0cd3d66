//! Errors that stop a load; each names its place and the next step. No message contains a password.

use std::io;

use dyno_evidence::EvidenceError;
use dyno_script::ScriptError;

use crate::connection::{ConnectionSpec, Engine};
use crate::wire::WireError;

/// Reason why a load cannot start or cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A value of the specification is invalid.
    #[error("{place}: {message}\n  next: {next}")]
    Spec {
        /// Part of the specification that is invalid.
        place: String,
        /// What is wrong.
        message: String,
        /// What the user should do.
        next: String,
    },
    /// A script does not parse.
    #[error("arm {arm}: {source}")]
    Script {
        /// Name of the arm.
        arm: String,
        /// Syntax error, with its position.
        source: ScriptError,
    },
    /// A script fails, and would fail on any engine.
    #[error("script {script}, line {line}: {message}\n  next: {next}")]
    Running {
        /// Name of the script.
        script: String,
        /// Line number, counted from 1.
        line: u32,
        /// What is wrong.
        message: String,
        /// What the user should do.
        next: String,
    },
    /// A connection could not be made.
    #[error("cannot connect to {place}: {}\n  next: {next}", .source.words(place))]
    Connect {
        /// Host, port, user and database.
        place: String,
        /// Cause.
        source: Box<WireError>,
        /// What the user should do.
        next: String,
    },
    /// A statement of `session_sql` failed on a new connection.
    #[error(
        "arm {arm}, session SQL `{sql}`: {}\n  next: correct the statement or give the role the right",
        .source.words(sql)
    )]
    SessionSql {
        /// Name of the arm.
        arm: String,
        /// Text of the statement.
        sql: String,
        /// Cause.
        source: Box<WireError>,
    },
    /// A lost connection could not be re-established.
    #[error(
        "lost the connection to {place} and could not reconnect within {waited_s} s: {}\n  next: see in the server's log why the connection ended",
        .source.words(place)
    )]
    Reconnect {
        /// Host, port, user and database.
        place: String,
        /// Time for which reconnecting was attempted [s].
        waited_s: u64,
        /// Error of the last attempt.
        source: Box<WireError>,
    },
    /// The evidence could not be written.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// A thread could not be started.
    #[error("cannot start thread {number} of the load: {source}\n  next: raise the limit on processes")]
    Thread {
        /// Thread number.
        number: usize,
        /// Cause.
        source: io::Error,
    },
    /// The network line of an arm could not be created.
    #[error("cannot set up an arm's network delay: {0}\n  next: raise the limits on processes and open files")]
    Line(#[source] io::Error),
    /// The operating system does not allow this process to wait for connections.
    #[error("cannot wait for connections: {0}\n  next: raise the limit on open files")]
    Reactor(#[source] io::Error),
}

impl LoadError {
    /// Returns the error for a specification that does not have the form of [`LoadSpec`](crate::LoadSpec).
    #[must_use]
    pub fn unreadable(why: &impl std::fmt::Display) -> Self {
        Self::spec("load", why.to_string(), "correct this key or value")
    }

    pub(crate) fn spec(place: impl Into<String>, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self::Spec { place: place.into(), message: message.into(), next: next.into() }
    }

    /// Returns the connection's error itself, for a message that names the place separately.
    pub(crate) fn into_wire(self) -> WireError {
        match self {
            Self::Connect { source, .. } | Self::SessionSql { source, .. } | Self::Reconnect { source, .. } => *source,
            other => WireError::Protocol(other.to_string()),
        }
    }

    pub(crate) fn session_sql(arm: &str, sql: &str, source: WireError) -> Self {
        Self::SessionSql { arm: arm.into(), sql: sql.into(), source: Box::new(source) }
    }

    pub(crate) fn connect(connection: &ConnectionSpec, source: WireError) -> Self {
        let next = next_step(connection, &source).to_owned();
        Self::Connect { place: connection.place(), source: Box::new(source), next }
    }
}

fn next_step(connection: &ConnectionSpec, error: &WireError) -> &'static str {
    if connection.engine == Engine::Mariadb
        && let Some(next) = mariadb_step(error)
    {
        return next;
    }
    match error {
        WireError::Io(e) if e.kind() == io::ErrorKind::NotFound && connection.is_unix() => {
            "check that the server runs and that this is its socket folder and port"
        }
        WireError::Io(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
            "check that the server runs and listens on this host and port"
        }
        WireError::Io(_) | WireError::Closed | WireError::Timeout => {
            "check the host, the port and the network in between"
        }
        WireError::NoPassword => "give a password for this user",
        WireError::Stopped => "run it again when there is time",
        WireError::Exposed(_) => {
            "use sslmode=require or stronger, or scram-sha-256 in pg_hba.conf; require_auth=password sends it all the same"
        }
        WireError::Tls(told) if told.contains("UnsupportedCertVersion") => {
            "the server's certificate is of X.509 version 1, which libpq takes and the load's client does not: have it \
             issued again as version 3, with the host in subjectAltName"
        }
        WireError::Tls(_) => "check sslmode and sslrootcert against the server's certificate",
        WireError::Auth(_) => {
            "check that this is the right server, and its pg_hba.conf (trust, password, md5 or scram-sha-256)"
        }
        WireError::Protocol(_) => "check that a PostgreSQL server listens on this port",
        WireError::Server(e) => match e.code.as_str() {
            "28P01" => "check the user and the password",
            "28000" => "check pg_hba.conf, or sslmode if it asks for TLS",
            "3D000" => "check the name of the database",
            "53300" => "use fewer sessions or raise max_connections",
            "57P03" => "wait until the server has started",
            _ => "see the server's message",
        },
    }
}

/// Returns the next step for errors whose next step for MariaDB differs from that for PostgreSQL; otherwise `None`.
fn mariadb_step(error: &WireError) -> Option<&'static str> {
    match error {
        WireError::Exposed(_) => {
            Some("give ssl_ca, the certificate of the authority that signed the server's certificate, to use TLS")
        }
        WireError::Tls(_) => Some("check ssl_ca against the server's certificate"),
        WireError::Auth(_) => {
            Some("use an account with mysql_native_password or ed25519 (CREATE USER ... IDENTIFIED VIA ...)")
        }
        WireError::Protocol(_) => Some("check that a MariaDB server, 10.2 or later, listens on this port"),
        WireError::Server(e) => match e.vendor {
            1045 | 1698 => Some("check the user and the password"),
            1044 => Some("have the user granted rights on the database"),
            1049 => Some("check the name of the database"),
            1040 | 1203 | 1226 => Some("use fewer sessions or raise max_connections"),
            1130 => Some("have the user created for this host"),
            _ => None,
        },
        _ => None,
    }
}
