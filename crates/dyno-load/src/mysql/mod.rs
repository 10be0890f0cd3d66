//! MariaDB's wire protocol (the MySQL client/server protocol, version 10).
//!
//! [`packet`] cuts the incoming bytes into packets, [`greeting`] and [`login`] and [`auth`] log in, [`statement`] holds a
//! command as the server wants it, [`link`] is one logged-in connection, and [`result`] reads rows that a script keeps.
//! [`rows`] is a session of its own kind: it reads large results and loads rows.
//! [`known_errors`] tells the server's own errors from those of somebody's code.
//! Sockets, TLS and whom to trust are those of [`wire`](crate::wire).
//!
//! Limits: a server before MariaDB 10.2 is refused (it ends result sets in another way). `LOAD DATA LOCAL` is
//! offered only where a script brings its data: no file of this machine is ever read. Compression is not spoken.

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
