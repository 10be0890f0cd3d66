//! Logged-in connection to MariaDB: its prepared statements, and the events of a round trip.

use std::sync::Arc;

use dyno_evidence::NONE;
use dyno_script::{Scope, Symbols};

use super::packet::{Packet, Packets, Reader};
use super::result::{Column, binary_row, describe, text_row};
use super::stage::Stage;
use super::statement::{LAST_PREPARED, QUIT, Statement, write_close, write_command, write_file, write_text_query};
use crate::spec::Protocol;
use crate::wire::buffer::Buffer;
use crate::wire::flow::Flow;
use crate::wire::link::{CAPTURE_BYTES_MAX, Capture, Event};
use crate::wire::socket::Socket;
use crate::wire::{ServerError, WireError};

const OK: u8 = 0x00;
const LOCAL_FILE: u8 = 0xfb;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;
/// Length from which on a packet of a result is a row even if its first byte marks the end of the rows.
const END_BYTES_MAX: usize = 0xff_ffff;
/// Limits on the bytes that the client keeps of a packet: `OK_BYTES` of an answer without rows, `ERROR_BYTES` of an
/// error, `COLUMN_BYTES` of a column's description.
const OK_BYTES: usize = 64;
const ERROR_BYTES: usize = 16 << 10;
const COLUMN_BYTES: usize = 16 << 10;

const IN_TRANSACTION: u64 = 1;
const MORE_RESULTS: u64 = 8;

/// Logged-in connection to MariaDB.
#[derive(Debug)]
pub struct Link {
    socket: Socket,
    packets: Packets,
    flow: Flow,
    out: Vec<u8>,
    stage: Stage,
    /// Number of values of the command in progress.
    values: usize,
    /// For each command, by its number in the arm: the number of its prepared statement at the server.
    prepared: Vec<Option<u32>>,
    /// For each command, by its number in the arm: the columns of its result, if a script keeps the result.
    known: Vec<Vec<Column>>,
    /// Number of the running command in the arm; `None` for SQL sent as text.
    running: Option<usize>,
    columns: Vec<Column>,
    rows: i64,
    /// True if the command's rows are counted; rows of begin, commit and rollback are not counted.
    counts: bool,
    caches_metadata: bool,
    in_transaction: bool,
    session: u32,
    /// Bytes that `LOAD DATA LOCAL` receives, whatever file the statement names.
    feed: Option<Arc<[u8]>>,
    /// Results that a script keeps, in the form of PostgreSQL's protocol.
    pub capture: Capture,
}

impl Link {
    pub(super) fn new(
        socket: Socket,
        packets: Packets,
        session: u32,
        caches_metadata: bool,
        feed: Option<Arc<[u8]>>,
    ) -> Self {
        Self {
            socket,
            packets,
            flow: Flow::new(),
            out: Vec::with_capacity(1 << 10),
            stage: Stage::Idle,
            values: 0,
            prepared: Vec::new(),
            known: Vec::new(),
            running: None,
            columns: Vec::new(),
            rows: 0,
            counts: true,
            caches_metadata,
            in_transaction: false,
            session,
            feed,
            capture: Capture::default(),
        }
    }

    /// Returns the number of the session at the server, for `KILL`.
    pub fn session(&self) -> u32 {
        self.session
    }

    /// Returns the connection's socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Returns true if a transaction is open according to the server's last answer.
    pub fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// Queues a command; `id` is its number in the arm. Prepares the statement first if the protocol needs it.
    #[inline]
    pub fn queue(&mut self, statement: &Statement, id: usize, protocol: Protocol, scope: &Scope, symbols: &Symbols) {
        self.counts = !statement.is_control;
        if statement.is_control || protocol == Protocol::Simple {
            statement.write_query(scope, symbols, &mut self.out);
            (self.stage, self.running) = (Stage::Head, None);
            return;
        }
        self.running = Some(id);
        match self.prepared.get(id) {
            Some(&Some(number)) if protocol == Protocol::Prepared => {
                self.stage = Stage::Head;
                statement.write_execute(number, scope, &mut self.out);
            }
            _ => self.queue_prepare(statement, id, scope),
        }
    }

    #[cold]
    fn queue_prepare(&mut self, statement: &Statement, id: usize, scope: &Scope) {
        if id >= self.prepared.len() {
            self.prepared.resize(id + 1, None);
            self.known.resize(id + 1, Vec::new());
        }
        if let Some(number) = self.prepared[id].take() {
            write_close(number, &mut self.out);
        }
        self.values = statement.values();
        self.stage = Stage::Prepared;
        statement.write_prepare(&mut self.out);
        statement.write_execute(LAST_PREPARED, scope, &mut self.out);
    }

    /// Marks a command as not prepared, so that it is prepared again before its next use.
    pub fn forget(&mut self, id: usize) {
        if let Some(number) = self.prepared.get_mut(id) {
            *number = None;
        }
    }

    /// Sends everything that is queued, usually in one write.
    ///
    /// # Errors
    /// The connection is lost.
    #[inline]
    pub fn send(&mut self) -> Result<(), WireError> {
        let sent = self.socket.send(&self.out);
        self.out.clear();
        sent.map_err(Into::into)
    }

    /// Returns what a read needs: the state of reading, the buffer to fill, and the socket.
    #[inline]
    pub fn incoming(&mut self) -> (&mut Flow, &mut Buffer, &mut Socket) {
        (&mut self.flow, &mut self.packets.buffer, &mut self.socket)
    }

    /// Returns the next event in the received bytes, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// The server violates the protocol, or an error message ends the connection ([`WireError::Server`]).
    #[inline]
    pub fn step(&mut self) -> Result<Option<Event>, WireError> {
        if self.stage == Stage::Done {
            self.stage = Stage::Idle;
            return Ok(Some(Event::Ready));
        }
        loop {
            let (stage, captures) = (self.stage, self.capture.on);
            let wanted = |first| match (first, stage) {
                (ERROR, _) => ERROR_BYTES,
                (END, Stage::Rows) | (_, Stage::Prepared | Stage::Head) => OK_BYTES,
                (_, Stage::Rows) if captures => CAPTURE_BYTES_MAX,
                (_, Stage::Columns { .. } | Stage::Described { .. }) if captures => COLUMN_BYTES,
                _ => 1,
            };
            let Some(packet) = self.packets.next(wanted)? else { return Ok(None) };
            if packet.first == ERROR {
                return self.refused(&packet).map(Some);
            }
            if stage == Stage::Rows && (packet.first != END || packet.length >= END_BYTES_MAX) {
                self.rows += 1;
                if captures {
                    self.keep_row(&packet)?;
                }
            } else if let Some(event) = self.advance(&packet)? {
                return Ok(Some(event));
            }
        }
    }

    /// Processes one packet that is neither a row nor an error.
    fn advance(&mut self, packet: &Packet) -> Result<Option<Event>, WireError> {
        match self.stage {
            Stage::Head if packet.first == OK => return self.end_of_result(packet).map(Some),
            Stage::Rows => return self.end_of_result(packet).map(Some),
            Stage::Head => self.head(packet)?,
            Stage::Prepared => self.take_prepared(packet)?,
            Stage::Described { values, columns } => {
                if values == 0 {
                    self.keep_column(packet)?;
                }
                let (values, columns) = if values > 0 { (values - 1, columns) } else { (0, columns - 1) };
                self.describe_next(values, columns);
            }
            Stage::Columns { left } => {
                self.keep_column(packet)?;
                self.columns_next(left - 1);
            }
            Stage::Idle | Stage::Refused | Stage::Done => {
                return Err(WireError::Protocol("an answer to no question".into()));
            }
        }
        Ok(None)
    }

    /// Processes the head of a result: rows or column descriptions follow, or the server asks for a file.
    fn head(&mut self, packet: &Packet) -> Result<(), WireError> {
        if packet.first == LOCAL_FILE {
            let Some(feed) = &self.feed else {
                return Err(WireError::Protocol("the server asks for a file of this machine".into()));
            };
            self.out.clear();
            write_file(feed, packet.number, &mut self.out);
            return self.send();
        }
        let mut body = Reader(self.packets.bytes(&packet.body));
        let count = body.counted()?.unwrap_or(0);
        if count == 0 || count > u64::from(u16::MAX) {
            return Err(WireError::Protocol(format!("a result of {count} columns")));
        }
        let described = !(self.caches_metadata && body.number(1)? == 0);
        self.rows = 0;
        if described {
            self.columns.clear();
            self.stage = Stage::Columns { left: count };
            return Ok(());
        }
        if self.capture.on {
            let known = self.running.and_then(|id| self.known.get(id)).map(Vec::as_slice).unwrap_or_default();
            if known.len() as u64 != count {
                return Err(WireError::Protocol("a result that was never described".into()));
            }
            self.columns = known.to_vec();
            describe(&self.columns, &mut self.capture.description);
        }
        self.stage = Stage::Rows;
        Ok(())
    }

    fn columns_next(&mut self, left: u64) {
        self.stage = if left > 0 { Stage::Columns { left } } else { Stage::Rows };
        if left == 0 && self.capture.on {
            describe(&self.columns, &mut self.capture.description);
            self.remember_columns();
        }
    }

    fn describe_next(&mut self, values: u64, columns: u64) {
        if values + columns > 0 {
            self.stage = Stage::Described { values, columns };
            return;
        }
        self.stage = Stage::Head;
        if self.capture.on {
            self.remember_columns();
        }
    }

    fn remember_columns(&mut self) {
        if let Some(known) = self.running.and_then(|id| self.known.get_mut(id)) {
            known.clone_from(&self.columns);
        }
    }

    fn take_prepared(&mut self, packet: &Packet) -> Result<(), WireError> {
        let mut body = Reader(self.packets.bytes(&packet.body));
        body.take(1)?;
        let number = body.number(4)? as u32;
        let (columns, values) = (body.number(2)?, body.number(2)?);
        if values != self.values as u64 {
            return Err(WireError::Protocol(format!(
                "the server counts {values} places for values where the command has {}: a ? outside of quotes?",
                self.values
            )));
        }
        if let Some(slot) = self.running.and_then(|id| self.prepared.get_mut(id)) {
            *slot = Some(number);
        }
        self.columns.clear();
        self.describe_next(values, columns);
        Ok(())
    }

    fn keep_column(&mut self, packet: &Packet) -> Result<(), WireError> {
        if self.capture.on {
            self.columns.push(Column::parse(self.packets.bytes(&packet.body))?);
        }
        Ok(())
    }

    #[cold]
    fn keep_row(&mut self, packet: &Packet) -> Result<(), WireError> {
        self.capture.rows += 1;
        if packet.cut {
            self.capture.too_long = true;
            return Ok(());
        }
        let body = self.packets.bytes(&packet.body);
        match self.running {
            Some(_) => binary_row(body, &self.columns, &mut self.capture.row),
            None => text_row(body, self.columns.len(), &mut self.capture.row),
        }
    }

    /// Processes the end of a result, with or without preceding rows.
    fn end_of_result(&mut self, packet: &Packet) -> Result<Event, WireError> {
        let mut body = Reader(self.packets.bytes(&packet.body));
        body.take(1)?;
        let affected = body.counted()?.unwrap_or(0);
        body.counted()?;
        let status = body.number(2)?;
        self.in_transaction = status & IN_TRANSACTION != 0;
        let rows = if self.stage == Stage::Rows { self.rows } else { affected as i64 };
        self.stage = if status & MORE_RESULTS != 0 { Stage::Head } else { Stage::Done };
        Ok(Event::Done { rows: if self.counts { rows } else { NONE } })
    }

    /// Processes an error packet. If a statement could not be prepared, its execution causes a second error.
    #[cold]
    fn refused(&mut self, packet: &Packet) -> Result<Event, WireError> {
        let error = ServerError::mariadb(self.packets.bytes(&packet.body));
        let stage = self.stage;
        self.stage = if stage == Stage::Prepared { Stage::Refused } else { Stage::Done };
        match stage {
            Stage::Idle => Err(error.into()),
            _ if error.is_fatal() => Err(error.into()),
            Stage::Refused => {
                self.stage = Stage::Idle;
                Ok(Event::Ready)
            }
            _ => Ok(Event::Failed(Box::new(error))),
        }
    }

    /// Queues SQL as text.
    pub fn queue_text(&mut self, sql: &str) {
        write_text_query(sql, &mut self.out);
        (self.stage, self.running) = (Stage::Head, None);
    }

    /// Tells the server that the session ends, and closes the connection.
    pub fn terminate(mut self) {
        self.out.clear();
        write_command(QUIT, &[], &mut self.out);
        // The server also notices the closed socket.
        let _ = self.send();
    }
}
