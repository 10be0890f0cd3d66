//! Session that reads rows from a MariaDB server or loads rows into one, and blocks on its socket.
//!
//! Rows are read by a prepared statement: its binary form keeps every bit of a FLOAT, which the text form would round.
//! Rows are passed on as they arrive; a result is never held completely in memory. Rows are loaded by `LOAD DATA
//! LOCAL`: whatever file the statement names, only the caller's bytes are sent.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::login::LoggedIn;
use super::packet::{self, PART_BYTES, Packets, Reader};
use super::result::Column;
use super::statement::{EXECUTE, PREPARE, write_close, write_command, write_text_query};
use super::values::WireRow;
use crate::connection::ConnectionSpec;
use crate::dialler::Dialler;
use crate::wire::socket::Socket;
use crate::wire::{ServerError, WireError};

const LOCAL_FILE: u8 = 0xfb;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;
/// Size of the receive buffer [bytes].
const ROOM_BYTES: usize = 256 << 10;
/// Size of a packet of loaded data [bytes]: less than the smallest `max_allowed_packet` in use.
const FILE_PART_BYTES: usize = 512 << 10;
const CANCEL_LIMIT: Duration = Duration::from_secs(5);
/// Largest number of warnings that are reported.
const WARNINGS_MOST: usize = 3;

/// Body of a packet: a range of the buffer, or bytes collected from several parts.
enum Body {
    Here(std::ops::Range<usize>),
    Long(Vec<u8>),
}

/// Logged-in session for reading and loading rows.
#[derive(Debug)]
pub struct RowSession {
    dialler: Dialler,
    socket: Socket,
    packets: Packets,
    session: u32,
    caches_metadata: bool,
    out: Vec<u8>,
    /// Number of the last packet received or sent in the current exchange.
    number: u8,
}

impl RowSession {
    /// Opens a socket and logs in; `stop` interrupts this and every later operation.
    ///
    /// # Errors
    /// The connection or the login fails.
    pub fn connect(spec: &ConnectionSpec, stop: &Arc<AtomicBool>) -> Result<Self, WireError> {
        // `LOAD DATA LOCAL` is offered only if there is a feed; the bytes that are sent come from `send_in`.
        let dialler = Dialler::new(spec)?.feeding(Some(Arc::from([])));
        let LoggedIn { socket, mut packets, session, caches_metadata } = dialler.connect_to_rows(stop)?;
        packets.buffer.widen(ROOM_BYTES);
        Ok(Self { dialler, socket, packets, session, caches_metadata, out: Vec::new(), number: 0 })
    }

    /// Returns the number of the session at the server.
    pub fn process(&self) -> u32 {
        self.session
    }

    /// Asks the server to cancel what this session is doing; errors are ignored.
    pub fn cancel(&self) {
        // A server that is gone has nothing to cancel.
        let _ = self.dialler.cancel(self.session, 0, CANCEL_LIMIT);
    }

    /// Runs one statement and returns its rows as text; `None` in a row means NULL.
    ///
    /// # Errors
    /// The server refuses the statement, or the connection is lost.
    pub fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, WireError> {
        self.ask(|out| write_text_query(sql, out))?;
        let head = self.body()?;
        let columns = Reader(self.bytes(&head)).counted()?.unwrap_or(0);
        if columns == 0 {
            return Ok(Vec::new());
        }
        for _ in 0..columns {
            self.body()?;
        }
        let mut rows = Vec::new();
        loop {
            let body = self.body()?;
            let bytes = self.bytes(&body);
            if is_end(bytes) {
                return Ok(rows);
            }
            let mut reader = Reader(bytes);
            let texts = (0..columns)
                .map(|_| Ok(reader.text()?.map(|text| String::from_utf8_lossy(text).into_owned())))
                .collect::<Result<_, WireError>>()?;
            rows.push(texts);
        }
    }

    /// Runs a query and calls `each` with every row; returns the number of rows that the server counted.
    ///
    /// # Errors
    /// The server refuses the query, the connection is lost, or `each` fails.
    pub fn read<E: From<WireError>>(
        &mut self,
        sql: &str,
        mut each: impl FnMut(&mut WireRow<'_>) -> Result<(), E>,
    ) -> Result<u64, E> {
        let (statement, columns) = self.prepare(sql)?;
        let columns = self.execute(statement, columns)?;
        loop {
            let body = self.body()?;
            let bytes = self.bytes(&body);
            if is_end(bytes) {
                break;
            }
            each(&mut WireRow::new(bytes, &columns)?)?;
        }
        self.ask(|out| write_close(statement, out))?;
        let counted = self.run("select found_rows()")?;
        let counted = counted.first().and_then(|row| row.first()).and_then(Option::as_ref);
        Ok(counted.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    fn prepare(&mut self, sql: &str) -> Result<(u32, Vec<Column>), WireError> {
        self.ask(|out| write_command(PREPARE, sql.as_bytes(), out))?;
        let body = self.body()?;
        let mut head = Reader(self.bytes(&body));
        head.take(1)?;
        let statement = head.number(4)? as u32;
        let (columns, values) = (head.number(2)?, head.number(2)?);
        for _ in 0..values {
            self.body()?;
        }
        let columns = self.columns(columns)?;
        if values > 0 {
            return Err(WireError::Protocol("a statement with ? outside of quotes".into()));
        }
        if columns.is_empty() {
            return Err(WireError::Protocol("a statement that gives no rows".into()));
        }
        Ok((statement, columns))
    }

    fn columns(&mut self, count: u64) -> Result<Vec<Column>, WireError> {
        (0..count)
            .map(|_| {
                let body = self.body()?;
                Column::parse(self.bytes(&body))
            })
            .collect()
    }

    /// Executes a prepared statement; returns its columns.
    ///
    /// `known` has the columns that the server described when the statement was prepared: the server can omit them
    /// here.
    fn execute(&mut self, statement: u32, known: Vec<Column>) -> Result<Vec<Column>, WireError> {
        self.ask(|out| {
            let start = packet::begin(out);
            out.push(EXECUTE);
            out.extend_from_slice(&statement.to_le_bytes());
            out.extend_from_slice(&[0, 1, 0, 0, 0]); // no cursor, once
            packet::end(out, start, 0);
        })?;
        let body = self.body()?;
        let mut head = Reader(self.bytes(&body));
        let count = head.counted()?.unwrap_or(0);
        if self.caches_metadata && head.number(1)? == 0 {
            return Ok(known);
        }
        self.columns(count)
    }

    /// Begins `LOAD DATA LOCAL`, after which rows can be sent with [`RowSession::send_in`].
    ///
    /// # Errors
    /// The server refuses the statement or does not ask for data, or the connection is lost.
    pub fn begin_in(&mut self, sql: &str) -> Result<(), WireError> {
        self.ask(|out| write_text_query(sql, out))?;
        let body = self.body()?;
        if self.bytes(&body).first() == Some(&LOCAL_FILE) {
            return Ok(());
        }
        Err(WireError::Protocol("no request for rows".into()))
    }

    /// Sends bytes of rows; the bytes can be split between calls at any position.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send_in(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        for part in bytes.chunks(FILE_PART_BYTES) {
            self.send_part(part)?;
        }
        Ok(())
    }

    fn send_part(&mut self, part: &[u8]) -> Result<(), WireError> {
        self.number = self.number.wrapping_add(1);
        self.out.clear();
        let start = packet::begin(&mut self.out);
        self.out.extend_from_slice(part);
        packet::end(&mut self.out, start, self.number);
        let sent = std::mem::take(&mut self.out);
        self.socket.send(&sent)?;
        self.out = sent;
        Ok(())
    }

    /// Ends `LOAD DATA LOCAL`; returns the number of rows that the server counted and the text of its first warnings.
    ///
    /// A value that does not fit only causes a warning, whatever `sql_mode` is.
    ///
    /// # Errors
    /// The server refuses the rows, or the connection is lost.
    pub fn end_in(&mut self) -> Result<(u64, Vec<String>), WireError> {
        self.send_part(&[])?;
        let body = self.body()?;
        let mut reader = Reader(self.bytes(&body));
        reader.take(1)?;
        let rows = reader.counted()?.unwrap_or(0);
        reader.counted()?;
        let (_, warnings) = (reader.number(2)?, reader.number(2)?);
        if warnings == 0 {
            return Ok((rows, Vec::new()));
        }
        let told = self.run(&format!("show warnings limit {WARNINGS_MOST}"))?;
        let words = |row: Vec<Option<String>>| row.into_iter().nth(2).flatten().unwrap_or_default();
        Ok((rows, told.into_iter().map(words).collect()))
    }

    fn ask(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), WireError> {
        self.out.clear();
        write(&mut self.out);
        let sent = std::mem::take(&mut self.out);
        self.socket.send(&sent)?;
        self.out = sent;
        Ok(())
    }

    /// Receives the next complete body; an error packet is returned as an error.
    #[inline]
    fn body(&mut self) -> Result<Body, WireError> {
        let first = self.part()?;
        let body = if first.len() < PART_BYTES { Body::Here(first) } else { Body::Long(self.gather(first)?) };
        let bytes = self.bytes(&body);
        match bytes.first() {
            None => Err(WireError::Protocol("an empty packet".into())),
            Some(&ERROR) => Err(ServerError::mariadb(bytes).into()),
            Some(_) => Ok(body),
        }
    }

    #[cold]
    fn gather(&mut self, first: std::ops::Range<usize>) -> Result<Vec<u8>, WireError> {
        let mut all = self.packets.bytes(&first).to_vec();
        loop {
            let part = self.part()?;
            let bytes = self.packets.bytes(&part);
            all.try_reserve(bytes.len())
                .map_err(|_| WireError::Protocol(format!("no memory for a row after {}", all.len())))?;
            all.extend_from_slice(bytes);
            if part.len() < PART_BYTES {
                return Ok(all);
            }
        }
    }

    #[inline]
    fn part(&mut self) -> Result<std::ops::Range<usize>, WireError> {
        loop {
            if let Some((part, number)) = self.packets.part() {
                self.number = number;
                return Ok(part);
            }
            self.packets.buffer.fill(&mut self.socket)?;
        }
    }

    #[inline]
    fn bytes<'a>(&'a self, body: &'a Body) -> &'a [u8] {
        match body {
            Body::Here(range) => self.packets.bytes(range),
            Body::Long(bytes) => bytes,
        }
    }
}

/// Returns true if a packet marks the end of the rows; a row with the same first byte would be longer.
fn is_end(bytes: &[u8]) -> bool {
    bytes.first() == Some(&END) && bytes.len() < PART_BYTES
}
