//! MariaDB's wire protocol (the MySQL client/server protocol, version 10).
//!
//! [`packet`] splits the incoming bytes into packets; [`greeting`], [`login`] and [`auth`] log in. [`statement`]
//! encodes a command, [`link`] is one logged-in connection, and [`result`] reads rows that a script keeps. [`rows`] is
//! a different kind of session, which reads large results and loads rows. [`known_errors`] distinguishes the server's
//! own errors from errors raised by user code. Sockets, TLS and certificate trust are shared with
//! [`wire`](crate::wire).
//!
//! Limits: a server before MariaDB 10.2 is refused, because it marks the end of a result set differently. `LOAD DATA
//! LOCAL` is offered only if a script provides its data: no file on this machine is ever read. Compression is not
//! supported.

pub mod auth;
mod greeting;
mod known_errors;
pub mod link;
pub mod login;
mod packet;
mod result;
pub mod rows;
mod seal;
mod stage;
pub mod statement;
#[cfg(test)]
mod tests;
pub mod values;

pub use seal::PublicKey;

pub use known_errors::{KnownError, known_error, known_errors};
