//! PostgreSQL's wire protocol, version 3.
//!
//! [`dial`] opens sockets and [`socket`] moves bytes, [`tls`] encrypts and [`trust`] decides whom to
//! trust, [`startup`] and [`auth`] log in, [`message`] cuts the incoming bytes into messages without
//! allocating, [`server_error`] says what may be kept of an error, [`statement`] holds outgoing
//! messages that are encoded once, and [`link`] is one logged-in connection of the load. [`copy`] is a
//! session that moves rows in bulk, for `dyno-move`, [`raw`] one whose messages are the caller's.

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

/// Why a connection could not be made or is no longer usable.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The operating system refused.
    #[error("{0}")]
    Io(io::Error),
    /// The server closed the connection without a word.
    #[error("the server closed the connection")]
    Closed,
    /// The server did not answer in time.
    #[error("the server did not answer in time")]
    Timeout,
    /// The connection was ended here: no answer in time, or a wish to stop.
    #[error("given up here: told to stop, or no answer within the limit")]
    Stopped,
    /// The server said no.
    #[error("{0}")]
    Server(Box<ServerError>),
    /// The bytes are not the protocol's.
    #[error("unexpected bytes from the server: {0}")]
    Protocol(String),
    /// An authentication method that is not supported, or one that went wrong.
    #[error("authentication: {0}")]
    Auth(String),
    /// The server asks for a secret where everybody in between could read it.
    #[error("authentication: {0}")]
    Exposed(String),
    /// The server asks for a password and there is none.
    #[error("the server asks for a password and none was given")]
    NoPassword,
    /// TLS could not be agreed upon.
    #[error("TLS: {0}")]
    Tls(String),
}

impl WireError {
    /// SQLSTATE for the evidence; 08006 (connection failure) and 08P01 (protocol violation) where
    /// the server sent none.
    pub fn code(&self) -> &str {
        match self {
            Self::Server(e) => &e.code,
            Self::Protocol(_) => "08P01",
            _ => "08006",
        }
    }

    /// In words without values; `known` is text that may be repeated.
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
