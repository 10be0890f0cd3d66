//! One logged-in connection and its commands, whichever engine is at the other end.
//!
//! A session's work knows these only: [`Statement`] goes in, [`Event`](crate::wire::link::Event)s come out. What each
//! engine's bytes are is in [`wire`](crate::wire) (PostgreSQL) and [`mysql`](crate::mysql) (MariaDB).

use std::os::fd::{AsFd, BorrowedFd};

use dyno_script::{Scope, Sql, Symbols, VarId};

use crate::connection::Engine;
use crate::reactor::Pulse;
use crate::spec::Protocol;
use crate::wire::link::{Capture, Event};
use crate::wire::socket::Control;
use crate::wire::{ServerError, WireError};
use crate::{mysql, wire};

/// One SQL command, encoded for its engine.
#[derive(Debug)]
pub enum Statement {
    /// For PostgreSQL.
    Postgres(Box<wire::statement::Statement>),
    /// For MariaDB.
    Mariadb(Box<mysql::statement::Statement>),
}

impl Statement {
    /// Encodes a script's command; `name` is unique on the connection.
    pub fn new(engine: Engine, name: &str, sql: &Sql, symbols: &Symbols) -> Result<Self, WireError> {
        Ok(match engine {
            Engine::Postgres => Self::Postgres(Box::new(wire::statement::Statement::new(name, sql)?)),
            Engine::Mariadb => Self::Mariadb(Box::new(mysql::statement::Statement::new(sql, symbols))),
        })
    }
}

/// One logged-in connection.
#[derive(Debug)]
pub enum Link {
    /// To PostgreSQL.
    Postgres(Box<wire::link::Link>),
    /// To MariaDB.
    Mariadb(Box<mysql::link::Link>),
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Postgres(link) => link.as_fd(),
            Self::Mariadb(link) => link.as_fd(),
        }
    }
}

impl Link {
    /// Number of the session at the server, and the key for a wish to cancel what it does; never 0.
    pub fn cancel_key(&self) -> (u32, u32) {
        match self {
            Self::Postgres(link) => link.cancel_key(),
            Self::Mariadb(link) => (link.session(), 1),
        }
    }

    /// A handle for another thread to end the connection.
    pub fn control(&self) -> Result<Control, WireError> {
        match self {
            Self::Postgres(link) => link.control(),
            Self::Mariadb(link) => link.control(),
        }
    }

    /// Whether a transaction is open, failed or not.
    pub fn in_transaction(&self) -> bool {
        match self {
            Self::Postgres(link) => link.in_transaction(),
            Self::Mariadb(link) => link.in_transaction(),
        }
    }

    /// Bytes queued and not sent.
    pub fn queued(&self) -> usize {
        match self {
            Self::Postgres(link) => link.queued(),
            Self::Mariadb(_) => 0,
        }
    }

    /// What is kept of results.
    pub fn capture(&mut self) -> &mut Capture {
        match self {
            Self::Postgres(link) => &mut link.capture,
            Self::Mariadb(link) => &mut link.capture,
        }
    }

    /// Queues a command; `id` is its number in the arm. Prepares first where that is needed.
    #[inline]
    pub fn queue<'a>(
        &mut self,
        statement: &Statement,
        id: usize,
        protocol: Protocol,
        scope: &Scope,
        name: impl Fn(VarId) -> &'a str,
    ) {
        match (self, statement) {
            (Self::Postgres(link), Statement::Postgres(own)) => link.queue(own, id, protocol, scope, name),
            (Self::Mariadb(link), Statement::Mariadb(own)) => link.queue(own, id, protocol, scope, name),
            // An arm has one engine: connection and commands are made from the same specification.
            _ => debug_assert!(false, "a command of another engine"),
        }
    }

    /// Forgets that a command was prepared.
    pub fn forget(&mut self, id: usize) {
        match self {
            Self::Postgres(link) => link.forget(id),
            Self::Mariadb(link) => link.forget(id),
        }
    }

    /// Queues the end of a batch. MariaDB answers each command for itself.
    #[inline]
    pub fn queue_sync(&mut self) {
        if let Self::Postgres(link) = self {
            link.queue_sync();
        }
    }

    /// Queues the wish for the answers so far.
    pub fn queue_flush(&mut self) {
        if let Self::Postgres(link) = self {
            link.queue_flush();
        }
    }

    /// Sends all that is queued, in one write as a rule.
    #[inline]
    pub fn send(&mut self) -> Result<(), WireError> {
        match self {
            Self::Postgres(link) => link.send(),
            Self::Mariadb(link) => link.send(),
        }
    }

    /// The next event. An error that ends the connection comes as [`WireError::Server`].
    #[inline]
    pub async fn event(&mut self, pulse: &Pulse) -> Result<Event, WireError> {
        match self {
            Self::Postgres(link) => link.event(pulse).await,
            Self::Mariadb(link) => link.event(pulse).await,
        }
    }

    /// Other connections of the same session were listened to meanwhile: an event of this one may
    /// have been taken for theirs.
    pub fn doubt(&mut self) {
        match self {
            Self::Postgres(link) => link.doubt(),
            Self::Mariadb(link) => link.doubt(),
        }
    }

    /// Runs SQL as text; returns the error if the server refused it.
    pub async fn run(&mut self, sql: &str, pulse: &Pulse) -> Result<Option<Box<ServerError>>, WireError> {
        match self {
            Self::Postgres(link) => link.run(sql, pulse).await,
            Self::Mariadb(link) => link.run(sql, pulse).await,
        }
    }

    /// From now on a reactor waits for this connection.
    pub fn unblock(&mut self) {
        match self {
            Self::Postgres(link) => link.unblock(),
            Self::Mariadb(link) => link.unblock(),
        }
    }

    /// Says goodbye.
    pub fn terminate(self) {
        match self {
            Self::Postgres(link) => link.terminate(),
            Self::Mariadb(link) => link.terminate(),
        }
    }
}
