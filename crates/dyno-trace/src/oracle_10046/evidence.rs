//! Rows of a trace as Parquet: the tables of an import.
//!
//! A call's parent and a wait's owner come later in the file than the call or wait itself. So rows stay in a buffer of
//! [`FLUSH_ROWS`] (of [`EARLY_ROWS`] before a session's first stamp) and are completed there. A link that is found
//! after its row was written goes to the table `links`. A row in `calls` is marked `orphan` if no parent was known when
//! it was written; a link overrides that.

#![allow(clippy::inline_always)] // what fills columns is compiled twice (`dyno_cpu`)

mod buffer;
mod call_rows;
mod endings;
mod folder;
mod late_rows;
mod parts;
mod plan_text;
mod small_rows;
mod spill;
mod wait_rows;

use std::sync::Arc;

use dyno_evidence::EvidenceError;
use dyno_evidence::table::Values;

use super::events::class_of;
use super::parameters::Layouts;
use super::record::{Batch, Bind, Cursor, NONE, Stamp, Stat};
use super::rows::{Belongs, CallRow, Context, Named, NewStatement, Owner, Sink, WaitRow};
use super::statements::Registry;
pub use buffer::{NumberHasher, narrow};
use call_rows::Calls;
pub use dyno_evidence::trace_tables as tables;
pub use endings::finish;
pub use folder::{Folder, Small, shared_part};
use parts::{Linked, Links, Parts};
pub use plan_text::{FIGURES, PlanText, plan_text};
use small_rows::SmallRows;
use spill::Spill;
pub use tables::*;
use wait_rows::Waits;

/// Number of rows buffered for their links before they are written. More would not fit in the processor's cache.
pub const FLUSH_ROWS: usize = 1 << 12;

/// Number of rows buffered while a session's clock has no stamp: the first stamp shifts the rows still buffered.
pub const EARLY_ROWS: usize = 1 << 15;

/// Returns the id of a row in the run: the file's number, then the row's.
#[inline]
pub fn row_id(file: u32, number: u64) -> i64 {
    (i64::from(file) << 40) | (number as i64 & ((1 << 40) - 1))
}

#[inline]
fn most_rows(early: bool) -> usize {
    if early { EARLY_ROWS } else { FLUSH_ROWS }
}

/// Options for one file of an import.
#[derive(Clone, Debug, Default)]
pub struct FileOptions {
    /// File number in the run.
    pub file: u32,
    /// Number that is added to the file's session and context numbers to make them unique in the run.
    pub base: u32,
    /// Name of the arm.
    pub arm: String,
    /// True if bind values are written.
    pub binds: bool,
}

/// Writer of the rows of one file.
pub struct Evidence {
    options: FileOptions,
    registry: Registry,
    small: SmallRows,
    calls: Calls,
    /// Running number of the first buffered call.
    calls_from: u64,
    call_parts: Parts,
    waits: Waits,
    /// Running number of the first buffered wait.
    waits_from: u64,
    wait_parts: Parts,
    /// For calls and for waits: true if a buffered row can still be shifted.
    early: (bool, bool),
    links: Links,
    spill: Spill,
    events: Vec<(String, u8)>,
    parameters: Layouts,
    lob_calls: Vec<String>,
    lob_types: Vec<String>,
    error: Option<EvidenceError>,
}

/// Resolves the numbers in calls to words; a macro, because a function would borrow all fields of the writer.
macro_rules! call_names {
    ($own:expr) => {
        call_rows::Names {
            arm: &$own.options.arm,
            lob_calls: &$own.lob_calls,
            lob_types: &$own.lob_types,
            statement: &|number| $own.registry.key(number),
        }
    };
}

/// Resolves the numbers in waits to words.
macro_rules! wait_names {
    ($own:expr) => {
        wait_rows::Names {
            arm: &$own.options.arm,
            events: &$own.events,
            parameters: $own.parameters.names(),
            statement: &|number| $own.registry.key(number),
        }
    };
}

impl Evidence {
    /// Returns a writer for one file of an import.
    pub fn new(folder: &Arc<Folder>, registry: &Registry, options: FileOptions) -> Self {
        let parts = |name, columns| Parts::new(Arc::clone(folder), name, columns, options.file);
        Self {
            small: SmallRows::new(Arc::clone(folder), registry.clone(), &options),
            call_parts: parts("calls", &tables::CALLS),
            wait_parts: parts("waits", &tables::WAITS),
            links: Links::new(Arc::clone(folder), options.file),
            spill: Spill::new(folder.dir(), options.file),
            registry: registry.clone(),
            calls: Calls::new(options.file),
            calls_from: 0,
            waits: Waits::new(options.file),
            waits_from: 0,
            early: (false, false),
            events: Vec::new(),
            parameters: Layouts::default(),
            lob_calls: Vec::new(),
            lob_types: Vec::new(),
            error: None,
            options,
        }
    }

    fn keep(&mut self, result: Result<(), EvidenceError>) {
        if let Err(error) = result
            && self.error.is_none()
        {
            self.error = Some(error);
        }
    }

    fn flush_calls(&mut self, last: bool) {
        let rows = self.calls.len() as u64;
        if rows > 0 {
            let names = call_names!(self);
            let parts = &mut self.call_parts;
            let put = |values: &mut [Values]| if last { parts.write_last(values) } else { parts.write(values) };
            let result = self.calls.drain(&names, put);
            self.calls_from += rows;
            self.early.0 = false;
            self.keep(result);
        }
    }

    fn flush_waits(&mut self, last: bool) {
        let rows = self.waits.len() as u64;
        if rows > 0 {
            let names = wait_names!(self);
            let parts = &mut self.wait_parts;
            let put = |values: &mut [Values]| if last { parts.write_last(values) } else { parts.write(values) };
            let result = self.waits.drain(&names, put);
            self.waits_from += rows;
            self.early.1 = false;
            self.keep(result);
        }
    }

    fn adopt_one(&mut self, child: u64, parent: Owner) {
        let Some(at) = child.checked_sub(self.calls_from) else {
            let result = self.links.push(Linked::Call, child, parent.number);
            return self.keep(result);
        };
        self.calls.adopt(at as usize, parent.number);
    }

    fn own_one(&mut self, wait: u64, owner: Owner) {
        let Some(at) = wait.checked_sub(self.waits_from) else {
            let result = self.links.push(Linked::Wait, wait, owner.number);
            return self.keep(result);
        };
        self.waits.own(at as usize, owner);
    }
}

impl Sink for Evidence {
    #[inline(always)]
    fn call(&mut self, _batch: &Batch, row: &CallRow) {
        self.calls.push(row, self.options.base, &call_names!(self));
        self.early.0 |= row.early;
        if self.calls.len() >= most_rows(self.early.0) {
            self.flush_calls(false);
        }
    }

    #[inline(always)]
    fn wait(&mut self, batch: &Batch, row: &WaitRow) {
        let (bytes, len) = batch.bytes_from(row.parameters);
        let (number, values) = self.parameters.take_apart(row.event, bytes, len);
        self.waits.push(row, self.options.base, values, number, &wait_names!(self));
        self.early.1 |= row.early;
        if self.waits.len() >= most_rows(self.early.1) {
            self.flush_waits(false);
        }
    }

    fn adopt(&mut self, child: u64, parent: Owner) {
        if Spill::holds(child) {
            let mut spill = std::mem::take(&mut self.spill);
            let result = spill.each(child, |number| self.adopt_one(number, parent));
            self.spill = spill;
            self.keep(result);
        } else {
            self.adopt_one(child, parent);
        }
    }

    fn own(&mut self, wait: u64, owner: Owner) {
        if Spill::holds(wait) {
            let mut spill = std::mem::take(&mut self.spill);
            let result = spill.each(wait, |number| self.own_one(number, owner));
            self.spill = spill;
            self.keep(result);
        } else {
            self.own_one(wait, owner);
        }
    }

    fn merge_calls(&mut self, calls: &[u64]) -> u64 {
        self.spill.put(calls).unwrap_or_else(|error| {
            self.keep(Err(error));
            calls[0]
        })
    }

    fn merge_waits(&mut self, waits: &[u64]) -> u64 {
        self.merge_calls(waits)
    }

    fn statement(&mut self, new: NewStatement<'_>, cursor: Option<&Cursor>, at: Belongs) {
        if new.first {
            self.small.statement(&new, cursor, at);
        }
    }

    fn cursor(&mut self, batch: &Batch, cursor: &Cursor, at: Belongs) {
        self.small.cursor(batch, cursor, at);
    }

    fn plan(&mut self, batch: &Batch, stat: &Stat, plan_hash: i64, at: Belongs) {
        self.small.plan(batch, stat, plan_hash, at);
    }

    fn binds(&mut self, cursor: u64, at: Belongs) {
        self.small.bind_head(cursor, at);
    }

    fn bind(&mut self, batch: &Batch, cursor: u64, bind: &Bind, at: Belongs) {
        self.small.bind(batch, cursor, bind, at);
    }

    fn failure(&mut self, cursor: u64, error: i64, tim: i64, call: Option<u64>, at: Belongs) {
        let call = call.map_or(NONE, |number| row_id(self.options.file, number));
        self.small.failure(cursor, error, tim, call, at);
    }

    fn transaction(&mut self, rollback: bool, read_only: bool, tim: i64, at: Belongs) {
        self.small.transaction(rollback, read_only, tim, at);
    }

    fn stamp(&mut self, batch: &Batch, stamp: &Stamp, at: Belongs) {
        self.small.stamp(batch, stamp, at);
    }

    fn header_again(&mut self, line: &str, at: Belongs) {
        self.small.header_again(line, at);
    }

    fn anchor(&mut self, _session: u32, tim: i64, residual_ns: i64) {
        self.small.anchor(tim, residual_ns);
    }

    fn shift(&mut self, session: u32, from_call: u64, from_wait: u64, by_ns: i64) {
        let session = session + self.options.base;
        self.calls.shift(session, from_call.saturating_sub(self.calls_from) as usize, by_ns);
        self.waits.shift(session, from_wait.saturating_sub(self.waits_from) as usize, by_ns);
    }

    fn name(&mut self, what: Named, _number: u32, name: &[u8]) {
        let text = String::from_utf8_lossy(name);
        match what {
            Named::Event => self.events.push((text.clone().into_owned(), class_of(&text))),
            Named::LobCall => self.lob_calls.push(text.to_lowercase()),
            Named::LobType => self.lob_types.push(text.into_owned()),
        }
    }

    fn context(&mut self, number: u32, context: &Context) {
        self.small.context(number, context);
    }

    fn end_batch(&mut self, batch: &Batch) -> Result<(), EvidenceError> {
        self.small.unread(batch);
        let result = self.small.flush_full();
        self.keep(result);
        self.error.take().map_or(Ok(()), Err)
    }
}
