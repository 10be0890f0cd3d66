//! PostgreSQL's wire protocol, version 3.
//!
//! [`dial`] opens sockets and [`socket`] moves bytes; [`tls`] encrypts, and [`trust`] verifies certificates.
//! [`startup`] and [`auth`] log in. [`message`] splits the incoming bytes into messages without allocating,
//! [`server_error`] decides which parts of an error can be kept, [`statement`] contains outgoing messages that are
//! encoded once, and [`link`] is one logged-in connection of the load. [`copy`] is a session that moves rows in bulk,
//! for `dyno-move`; [`raw`] is a session for callers that write and parse messages themselves.

mod auth;
pub mod buffer;
pub mod copy;
mod dial;
pub mod flow;
pub mod link;
pub mod message;
pub mod raw;
pub mod server_error;
pub mod socket;
pub mod startup;
pub mod statement;
pub mod stream;
#[cfg(test)]
mod tests;
pub mod tls;
mod trust;
pub(crate) mod x509;

use std::io;

pub use server_error::ServerError;

/// Reason why a connection could not be made or is no longer usable.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// A call of the operating system failed.
    #[error("{0}")]
    Io(io::Error),
    /// The server closed the connection without an error message.
    #[error("the server closed the connection")]
    Closed,
    /// The server did not answer in time.
    #[error("the server did not answer in time")]
    Timeout,
    /// The client ended the connection, because of a request to stop or because no answer came in time.
    #[error("cancelled by dbdyno: a request to stop, or no answer within the limit")]
    Stopped,
    /// The server sent an error.
    #[error("{0}")]
    Server(Box<ServerError>),
    /// The server's bytes violate the protocol.
    #[error("unexpected bytes from the server: {0}")]
    Protocol(String),
    /// Authentication failed, or its method is not supported.
    #[error("authentication: {0}")]
    Auth(String),
    /// The server asks for the password on a connection that others could read.
    #[error("authentication: {0}")]
    Exposed(String),
    /// The server asks for a password, but the user has not provided one.
    #[error("the server asks for a password and none was given")]
    NoPassword,
    /// TLS could not be established.
    #[error("TLS: {0}")]
    Tls(String),
}

impl WireError {
    /// Returns the SQLSTATE for the evidence.
    ///
    /// If the server sent no SQLSTATE, it is 08P01 (protocol violation) or 08006 (connection failure).
    pub fn code(&self) -> &str {
        match self {
            Self::Server(e) => &e.code,
            Self::Protocol(_) => "08P01",
            _ => "08006",
        }
    }

    /// Returns the error as text, with values removed; text that occurs in `known` is not removed.
    pub fn words(&self, known: &str) -> String {
        match self {
            Self::Server(error) => error.words(known),
            other => other.to_string(),
        }
    }
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::Timeout,
            io::ErrorKind::UnexpectedEof => Self::Closed,
            io::ErrorKind::ConnectionAborted => Self::Stopped,
            _ => match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                Some(tls) => Self::Tls(tls.to_string()),
                None => Self::Io(error),
            },
        }
    }
}

impl From<ServerError> for WireError {
    fn from(error: ServerError) -> Self {
        Self::Server(Box::new(error))
    }
}
