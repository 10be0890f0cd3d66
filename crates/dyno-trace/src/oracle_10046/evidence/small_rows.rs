//! Buffer of the rarer records of one file, to be written into the small tables.

use std::sync::Arc;

use dyno_evidence::EvidenceError;

use super::super::force::force_match;
use super::super::record::{Batch, Bind, Cursor, NONE, Stamp, StampKind, Stat, Text};
use super::super::rows::{Belongs, Context, NewStatement, Place};
use super::super::statements::{Registry, hash64};
use super::super::tally::{sample_of, word_of};
use super::FileOptions;
use super::buffer::{Buffer, Row};
use super::folder::{Folder, Small};
use super::plan_text::plan_text;

/// Number of rows of a small table that are written at once.
const SMALL_ROWS: usize = 1 << 14;

/// A `***` line whose record may come later.
#[derive(Debug)]
struct StampRow {
    at: Belongs,
    /// Kind of the stamp; `None` for a header line in the middle of the file.
    kind: Option<StampKind>,
    value: Vec<u8>,
    zone: i64,
    digits: u8,
    container: Vec<u8>,
    tim_next: i64,
    residual_ns: i64,
}

/// Buffered rows of the small tables.
pub struct SmallRows {
    folder: Arc<Folder>,
    registry: Registry,
    file: u32,
    base: u32,
    keep_binds: bool,
    buffers: Vec<Buffer>,
    stamps: Vec<StampRow>,
    /// Index of the latest plain stamp's row, until the record of that stamp has been read.
    waiting: Option<usize>,
}

/// Returns the word for a kind of stamp in the tables.
pub fn stamp_word(kind: StampKind) -> &'static str {
    match kind {
        StampKind::Clock => "clock",
        StampKind::Session => "session",
        StampKind::Client => "client",
        StampKind::Service => "service",
        StampKind::Module => "module",
        StampKind::Action => "action",
        StampKind::Driver => "driver",
        StampKind::Container => "container",
        StampKind::ClientIp => "client ip",
        StampKind::Connection => "connection",
        StampKind::Process => "process",
        StampKind::ContinuedFrom => "continued from",
        StampKind::ContinuesIn => "continues in",
        StampKind::SizeLimit => "size limit",
        StampKind::Appname => "appname",
        StampKind::Unknown => "unknown",
    }
}

impl SmallRows {
    /// Returns empty buffers.
    pub fn new(folder: Arc<Folder>, registry: Registry, options: &FileOptions) -> Self {
        Self {
            folder,
            registry,
            file: options.file,
            base: options.base,
            keep_binds: options.binds,
            buffers: Small::ALL.iter().map(|table| Buffer::new(table.columns())).collect(),
            stamps: Vec::new(),
            waiting: None,
        }
    }

    /// Returns the buffer of a table.
    pub fn buffer(&mut self, table: Small) -> &mut Buffer {
        &mut self.buffers[table as usize]
    }

    /// Writes the tables with many buffered rows.
    ///
    /// # Errors
    /// A part cannot be written.
    pub fn flush_full(&mut self) -> Result<(), EvidenceError> {
        if self.stamps.len() >= SMALL_ROWS {
            self.settle_stamps();
        }
        self.flush(SMALL_ROWS)
    }

    /// Writes all buffered rows.
    ///
    /// # Errors
    /// A part cannot be written.
    pub fn flush_all(&mut self) -> Result<(), EvidenceError> {
        self.settle_stamps();
        self.flush(1)
    }

    fn flush(&mut self, least: usize) -> Result<(), EvidenceError> {
        for (table, buffer) in Small::ALL.into_iter().zip(&mut self.buffers) {
            if buffer.rows() >= least {
                buffer.drain(|values| self.folder.write(table, values))?;
            }
        }
        Ok(())
    }

    /// Begins a row of a table whose first columns are file, line and offset.
    fn row_at(&mut self, table: Small, place: Place) -> Row<'_> {
        let file = self.file;
        self.buffer(table).row().u32(file).i64(place.line).i64(place.byte_offset)
    }

    /// Begins a row of a table whose first columns are the place and the session.
    fn row_of_session(&mut self, table: Small, at: Belongs) -> Row<'_> {
        let session = at.session + self.base;
        self.row_at(table, at.place).u32(session)
    }

    /// Begins a row of a table whose first columns are place, session, cursor and statement.
    fn row_of_cursor(&mut self, table: Small, cursor: u64, at: Belongs) -> Row<'_> {
        let registry = self.registry.clone();
        self.row_of_session(table, at).u64(cursor).word(at.statement, |number| registry.key(number))
    }

    pub fn statement(&mut self, new: &NewStatement<'_>, cursor: Option<&Cursor>, at: Belongs) {
        let field = |value: fn(&Cursor) -> i64| cursor.map_or(NONE, value);
        let sqlid = new.key.split('~').next().filter(|key| !key.contains(':'));
        let folded = new.text.map(force_match);
        let key = folded.as_ref().map(|text| format!("{:016x}", hash64(text.as_bytes())));
        let text = new.text.map(String::from_utf8_lossy);
        let file = self.file;
        self.buffer(Small::Statements)
            .row()
            .text(Some(new.key))
            .text(sqlid)
            .i64(field(|c| c.hv))
            .text(text.as_deref())
            .i64(field(|c| c.len))
            .i64(field(|c| c.oct))
            .i64(field(|c| c.uid))
            .i64(field(|c| c.lid))
            .u8(cursor.map_or(u8::MAX, |c| c.dep))
            .u32(file)
            .i64(at.place.line)
            .text(folded.as_deref())
            .text(key.as_deref());
    }

    pub fn cursor(&mut self, batch: &Batch, cursor: &Cursor, at: Belongs) {
        self.row_of_cursor(Small::Cursors, cursor.cursor, at)
            .i64(cursor.len)
            .u8(cursor.dep)
            .i64(cursor.uid)
            .i64(cursor.lid)
            .i64(cursor.oct)
            .i64(cursor.hv)
            .bytes(batch.bytes_of(cursor.ad))
            .bytes(batch.bytes_of(cursor.sqlid))
            .i64(cursor.tim)
            .i64(cursor.err);
    }

    pub fn plan(&mut self, batch: &Batch, stat: &Stat, plan_hash: i64, at: Belongs) {
        let text = batch.bytes_of(stat.op);
        let parts = plan_text(text);
        let [cr, pr, pw, starts, time, cost, size, card, dr, dw] = parts.figures;
        let partition = parts.partition.map(String::from_utf8_lossy);
        self.row_of_cursor(Small::Plans, stat.cursor, at)
            .i64(plan_hash)
            .i64(stat.id)
            .i64(stat.cnt)
            .i64(stat.pid)
            .i64(stat.pos)
            .i64(stat.obj)
            .bytes(parts.operation)
            .i64(cr)
            .i64(pr)
            .i64(pw)
            .i64(starts)
            .i64(time)
            .i64(cost)
            .i64(size)
            .i64(card)
            .i64(dr)
            .i64(dw)
            .text(partition.as_deref())
            .bytes(text);
    }

    pub fn bind_head(&mut self, cursor: u64, at: Belongs) {
        let none = NONE;
        if self.keep_binds {
            self.bind_row(cursor, at.place, [none, none, none], None, "");
        }
    }

    pub fn bind(&mut self, batch: &Batch, cursor: u64, bind: &Bind, at: Belongs) {
        if !self.keep_binds {
            return;
        }
        let text = |text: Text| String::from_utf8_lossy(batch.bytes_of(text)).into_owned();
        let value = bind.has_value.then(|| text(bind.value));
        let numbers = [bind.number, bind.dty, bind.avl];
        self.bind_row(cursor, at.place, numbers, value.as_deref(), &text(bind.head));
    }

    fn bind_row(
        &mut self,
        cursor: u64,
        place: Place,
        [number, data_type, length]: [i64; 3],
        value: Option<&str>,
        head: &str,
    ) {
        self.row_at(Small::Binds, place)
            .u64(cursor)
            .i64(number)
            .i64(data_type)
            .i64(length)
            .text(value)
            .text(Some(head));
    }

    pub fn failure(&mut self, cursor: u64, error: i64, tim: i64, call: i64, at: Belongs) {
        self.row_of_cursor(Small::Errors, cursor, at).i64(error).i64(tim).i64(at.at_ns).i64(call);
    }

    pub fn transaction(&mut self, rollback: bool, read_only: bool, tim: i64, at: Belongs) {
        self.row_of_session(Small::Transactions, at).bool(rollback).bool(read_only).i64(tim).i64(at.at_ns);
    }

    pub fn context(&mut self, number: u32, context: &Context) {
        let (file, base) = (self.file, self.base);
        self.buffer(Small::Contexts)
            .row()
            .u32(file)
            .u32(number + base)
            .text(Some(&context.session_id))
            .text(Some(&context.client_id))
            .text(Some(&context.service))
            .text(Some(&context.module))
            .text(Some(&context.action))
            .text(Some(&context.driver))
            .text(Some(&context.container))
            .text(Some(&context.client_ip))
            .text(Some(&context.connection));
    }

    pub fn stamp(&mut self, batch: &Batch, stamp: &Stamp, at: Belongs) {
        if stamp.kind == StampKind::Clock {
            self.waiting = Some(self.stamps.len());
        }
        self.stamps.push(StampRow {
            at,
            kind: Some(stamp.kind),
            value: batch.bytes_of(stamp.value).to_vec(),
            zone: stamp.zone,
            digits: stamp.digits,
            container: batch.bytes_of(stamp.container).to_vec(),
            tim_next: NONE,
            residual_ns: NONE,
        });
    }

    pub fn header_again(&mut self, line: &str, at: Belongs) {
        self.stamps.push(StampRow {
            at,
            kind: None,
            value: line.as_bytes().to_vec(),
            zone: NONE,
            digits: 0,
            container: Vec::new(),
            tim_next: NONE,
            residual_ns: NONE,
        });
    }

    pub fn anchor(&mut self, tim: i64, residual_ns: i64) {
        if let Some(row) = self.waiting.take().and_then(|at| self.stamps.get_mut(at)) {
            row.tim_next = tim;
            row.residual_ns = residual_ns;
        }
    }

    fn settle_stamps(&mut self) {
        self.waiting = None;
        for row in std::mem::take(&mut self.stamps) {
            self.row_of_session(Small::Stamps, row.at)
                .word(row.kind.map_or(99, |kind| kind as u32), |_| row.kind.map_or("header", stamp_word).to_owned())
                .bytes(&row.value)
                .i64(row.at.at_ns)
                .i64(row.zone)
                .u8(row.digits)
                .bytes(&row.container)
                .i64(row.tim_next)
                .i64(row.residual_ns);
        }
    }

    pub fn unread(&mut self, batch: &Batch) {
        for unread in &batch.unread {
            let sample = sample_of(batch.bytes_of(unread.text));
            let line = batch.line as i64 + i64::from(unread.line);
            let byte_offset = batch.offset as i64 + i64::from(unread.at);
            self.row_at(Small::Unread, Place { line, byte_offset })
                .i64(i64::from(unread.text.len))
                .word(unread.reason as u32, |_| word_of(unread.reason).to_owned())
                .text(Some(&sample));
        }
    }
}
