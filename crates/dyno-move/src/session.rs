//! Session of either engine, with the same few operations.
//!
//! Rows are received in COPY's binary form from either engine: MariaDB's are converted row by row (`mariadb.rs`), so
//! that the rest of the crate has only one form to read. Rows are sent in the form of the engine: COPY's binary form,
//! or lines.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dyno_load::{ConnectionSpec, CopySession, Engine, LONG_BYTES, RowSession, WireError};

use crate::encode::{end, head};
use crate::error::MoveError;
use crate::mariadb::write_row;
use crate::spec::TableSpec;

/// Size of a message to the server [bytes].
pub(crate) const SEND_BYTES: usize = 64 << 10;

/// Logged-in session.
pub(crate) enum Session {
    Postgres(Box<CopySession>),
    Mariadb(Box<RowSession>),
}

impl Session {
    /// Opens a socket and logs in; `stop` interrupts this and every later operation.
    ///
    /// # Errors
    /// The connection or the login fails.
    pub fn connect(spec: &ConnectionSpec, stop: &Arc<AtomicBool>) -> Result<Self, MoveError> {
        Ok(match spec.engine {
            Engine::Postgres => Self::Postgres(Box::new(CopySession::connect(spec, stop)?)),
            Engine::Mariadb => Self::Mariadb(Box::new(RowSession::connect(spec, stop)?)),
        })
    }

    /// Returns true if rows are sent as lines.
    pub fn takes_lines(&self) -> bool {
        matches!(self, Self::Mariadb(_))
    }

    /// Returns the server's number for this session.
    pub fn process(&self) -> u32 {
        match self {
            Self::Postgres(session) => session.process(),
            Self::Mariadb(session) => session.process(),
        }
    }

    /// Runs one statement and ignores its rows.
    ///
    /// # Errors
    /// The server refuses the statement, or the connection is lost.
    pub fn run(&mut self, sql: &str) -> Result<(), MoveError> {
        match self {
            Self::Postgres(session) => session.run(sql)?,
            Self::Mariadb(session) => drop(session.run(sql)?),
        }
        Ok(())
    }

    /// Asks the server to cancel what this session is doing.
    pub fn cancel(&self) {
        match self {
            Self::Postgres(session) => session.cancel(),
            Self::Mariadb(session) => session.cancel(),
        }
    }

    /// Runs a query on this table and calls `each` with pieces of COPY's binary form; returns the server's row count.
    ///
    /// An empty piece means that the memory of the long piece before it was released.
    ///
    /// # Errors
    /// The server refuses the query, the connection is lost, or `each` fails.
    pub fn copy_out(
        &mut self,
        sql: &str,
        table: &TableSpec,
        mut each: impl FnMut(&[u8]) -> Result<(), MoveError>,
    ) -> Result<u64, MoveError> {
        let session = match self {
            Self::Postgres(session) => return session.copy_out(sql, each),
            Self::Mariadb(session) => session,
        };
        let mut out = Vec::with_capacity(2 * SEND_BYTES);
        head(&mut out);
        let counted = session.read(sql, |row| {
            write_row(table, row, &mut out)?;
            if out.len() >= SEND_BYTES {
                each(&out)?;
                let was_long = out.len() >= LONG_BYTES;
                out.clear();
                // The space of one long row is not kept for the rest.
                out.shrink_to(2 * SEND_BYTES);
                if was_long {
                    each(&out)?;
                }
            }
            Ok::<(), MoveError>(())
        })?;
        end(&mut out);
        each(&out)?;
        Ok(counted)
    }

    /// Runs a statement and returns one line of text: from PostgreSQL the line that COPY sends, from MariaDB the first
    /// value of the first row.
    ///
    /// # Errors
    /// The server refuses the statement, or the connection is lost.
    pub fn line(&mut self, sql: &str) -> Result<String, MoveError> {
        let session = match self {
            Self::Postgres(session) => session,
            Self::Mariadb(session) => {
                let first = session.run(sql)?.into_iter().next().and_then(|row| row.into_iter().next());
                return Ok(first.flatten().unwrap_or_default());
            }
        };
        let mut line = Vec::new();
        session.copy_out(sql, |part| {
            line.extend_from_slice(part);
            Ok::<(), MoveError>(())
        })?;
        Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
    }

    /// Runs a statement that loads rows; returns the number of rows that the server counted.
    ///
    /// `more` appends to the buffer that it receives, and returns true if there is more to come.
    ///
    /// # Errors
    /// The server refuses the statement or the rows, the connection is lost, or `more` fails.
    pub fn copy_in(
        &mut self,
        sql: &str,
        mut more: impl FnMut(&mut Vec<u8>) -> Result<bool, MoveError>,
    ) -> Result<u64, MoveError> {
        self.begin_in(sql)?;
        let mut body = Vec::with_capacity(2 * SEND_BYTES);
        loop {
            body.clear();
            let goes_on = more(&mut body)?;
            self.send_in(&body)?;
            body.shrink_to(2 * SEND_BYTES);
            if !goes_on {
                return self.end_in();
            }
        }
    }

    /// Begins a statement that loads rows.
    ///
    /// # Errors
    /// The server refuses the statement, or the connection is lost.
    pub fn begin_in(&mut self, sql: &str) -> Result<(), MoveError> {
        match self {
            Self::Postgres(session) => session.begin_in(sql)?,
            Self::Mariadb(session) => session.begin_in(sql)?,
        }
        Ok(())
    }

    /// Sends bytes of rows, which may be cut at any position.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send_in(&mut self, bytes: &[u8]) -> Result<(), MoveError> {
        match self {
            Self::Postgres(session) => session.send_in(bytes)?,
            Self::Mariadb(session) => session.send_in(bytes)?,
        }
        Ok(())
    }

    /// Ends the statement; returns the number of rows that the server counted.
    ///
    /// # Errors
    /// The server refuses the rows, warns that it altered values (MariaDB), or the connection is lost.
    pub fn end_in(&mut self) -> Result<u64, MoveError> {
        match self {
            Self::Postgres(session) => Ok(session.end_in()?),
            Self::Mariadb(session) => match session.end_in()? {
                (rows, warnings) if warnings.is_empty() => Ok(rows),
                (_, warnings) => Err(MoveError::Bent(warnings.join("; "))),
            },
        }
    }
}

/// Cancels the query after an error on our side, so that the server stops sending.
pub(crate) fn give_up(session: &Session, error: &MoveError) {
    if !matches!(error, MoveError::Wire(WireError::Server(_) | WireError::Closed)) {
        session.cancel();
    }
}
