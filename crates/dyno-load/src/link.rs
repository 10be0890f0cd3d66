//! Logged-in connection and its commands, with the same types for both engines.
//!
//! A session works only with these types: it queues a [`Statement`] and receives
//! [`Event`](crate::wire::link::Event)s. The protocols are in [`wire`](crate::wire) (PostgreSQL) and
//! [`mysql`](crate::mysql) (MariaDB).

use std::os::fd::{AsFd, BorrowedFd};

use dyno_script::{Scope, Sql, Symbols};

use crate::connection::Engine;
use crate::reactor::Pulse;
use crate::spec::Protocol;
use crate::wire::buffer::Buffer;
use crate::wire::flow::Flow;
use crate::wire::link::{Capture, Event};
use crate::wire::socket::{Control, Socket};
use crate::wire::{ServerError, WireError};
use crate::{mysql, wire};

/// One SQL command, encoded for its engine.
#[derive(Debug)]
pub enum Statement {
    /// Command for PostgreSQL.
    Postgres(Box<wire::statement::Statement>),
    /// Command for MariaDB.
    Mariadb(Box<mysql::statement::Statement>),
}

impl Statement {
    /// Encodes a script's command; `name` must be unique on the connection.
    ///
    /// # Errors
    /// The command is too long for its protocol.
    pub fn new(engine: Engine, name: &str, sql: &Sql, symbols: &Symbols) -> Result<Self, WireError> {
        Ok(match engine {
            Engine::Postgres => Self::Postgres(Box::new(wire::statement::Statement::new(name, sql)?)),
            Engine::Mariadb => Self::Mariadb(Box::new(mysql::statement::Statement::new(sql, symbols))),
        })
    }
}

/// Logged-in connection to either engine.
#[derive(Debug)]
pub enum Link {
    /// Connection to PostgreSQL.
    Postgres(Box<wire::link::Link>),
    /// Connection to MariaDB.
    Mariadb(Box<mysql::link::Link>),
}

/// Evaluates the same expression for the connection of either engine.
macro_rules! either {
    ($self:ident, $link:ident => $value:expr) => {
        match $self {
            Link::Postgres($link) => $value,
            Link::Mariadb($link) => $value,
        }
    };
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket().as_fd()
    }
}

impl Link {
    fn socket(&self) -> &Socket {
        either!(self, link => link.socket())
    }

    #[inline]
    fn incoming(&mut self) -> (&mut Flow, &mut Buffer, &mut Socket) {
        either!(self, link => link.incoming())
    }

    /// Returns the session's number at the server, and the key for cancel requests, which is never 0.
    ///
    /// MariaDB has no such keys: there it is 1.
    pub fn cancel_key(&self) -> (u32, u32) {
        match self {
            Self::Postgres(link) => link.cancel_key(),
            Self::Mariadb(link) => (link.session(), 1),
        }
    }

    /// Returns a handle that another thread can use to close the connection.
    ///
    /// # Errors
    /// The socket cannot be duplicated.
    pub fn control(&self) -> Result<Control, WireError> {
        self.socket().control()
    }

    /// Returns true while a transaction is open, even a failed one.
    pub fn in_transaction(&self) -> bool {
        either!(self, link => link.in_transaction())
    }

    /// Returns the number of bytes that are queued and not yet sent; always 0 for MariaDB.
    pub fn queued(&self) -> usize {
        match self {
            Self::Postgres(link) => link.queued(),
            Self::Mariadb(_) => 0,
        }
    }

    /// Returns the buffer for results that the script keeps.
    pub fn capture(&mut self) -> &mut Capture {
        either!(self, link => &mut link.capture)
    }

    /// Queues a command; `id` is its number in the arm. Prepares the statement first if the protocol needs it.
    #[inline]
    pub fn queue(&mut self, statement: &Statement, id: usize, protocol: Protocol, scope: &Scope, symbols: &Symbols) {
        match (self, statement) {
            (Self::Postgres(link), Statement::Postgres(own)) => link.queue(own, id, protocol, scope, symbols),
            (Self::Mariadb(link), Statement::Mariadb(own)) => link.queue(own, id, protocol, scope, symbols),
            // An arm has one engine: its connection and its commands are made from the same specification.
            _ => debug_assert!(false, "a command of another engine"),
        }
    }

    /// Marks a command as not prepared, so that it is prepared again before its next use.
    pub fn forget(&mut self, id: usize) {
        either!(self, link => link.forget(id));
    }

    /// Queues the end of a batch (`Sync`); does nothing for MariaDB, which answers each command separately.
    #[inline]
    pub fn queue_sync(&mut self) {
        if let Self::Postgres(link) = self {
            link.queue_sync();
        }
    }

    /// Queues a request to send the answers so far (`Flush`); does nothing for MariaDB.
    pub fn queue_flush(&mut self) {
        if let Self::Postgres(link) = self {
            link.queue_flush();
        }
    }

    /// Sends everything that is queued, usually in one write.
    ///
    /// # Errors
    /// The connection is lost.
    #[inline]
    pub fn send(&mut self) -> Result<(), WireError> {
        either!(self, link => link.send())
    }

    /// Waits for the next event; an error message that ends the connection is returned as [`WireError::Server`].
    ///
    /// # Errors
    /// The connection is lost, or the server violates the protocol.
    #[inline]
    pub async fn event(&mut self, pulse: &Pulse) -> Result<Event, WireError> {
        loop {
            if let Some(event) = either!(self, link => link.step())? {
                return Ok(event);
            }
            let (flow, buffer, socket) = self.incoming();
            while !flow.receive(buffer, socket, pulse).await? {}
        }
    }

    /// Makes the next read check the socket even without an event.
    ///
    /// Needed after the session has waited on its other connections: an event of this connection could have been
    /// consumed there.
    pub fn doubt(&mut self) {
        self.incoming().0.doubt();
    }

    /// Runs SQL as text; returns the server's error if the SQL failed, otherwise `None`.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn run(&mut self, sql: &str, pulse: &Pulse) -> Result<Option<Box<ServerError>>, WireError> {
        either!(self, link => link.queue_text(sql));
        self.send()?;
        let mut first = None;
        loop {
            match self.event(pulse).await? {
                Event::Done { .. } => {}
                Event::Failed(error) => first = first.or(Some(error)),
                Event::Ready => return Ok(first),
            }
        }
    }

    /// Makes the socket non-blocking; from now on a reactor waits for it.
    pub fn unblock(&mut self) {
        self.incoming().2.set_patience(None);
    }

    /// Tells the server that the session ends, and closes the connection.
    pub fn terminate(self) {
        either!(self, link => link.terminate());
    }
}
