//! Buffer of waits to be written into `waits/`.

use dyno_evidence::table::Values;

use super::super::events::{IDLE, Names as ParameterNames, OTHER, class_name};
use super::super::record::NONE;
use super::super::rows::{Owner, WaitRow};
use super::buffer::Buffer;
use super::{row_id, tables};

/// Number of rows that stay in the processor's cache until their columns are filled.
const STRETCH: usize = 64;
/// Index of the first column that later rows may still change.
const CALL: usize = 14;
const DEPTH: usize = 15;

/// A wait with its parameters and the owner found so far.
#[derive(Clone, Copy, Debug)]
struct Kept {
    row: WaitRow,
    /// First three parameters; [`NONE`] if missing.
    values: [i64; 3],
    /// Number of the parameters' names.
    names: u32,
    /// Id of its owner; [`NONE`] without one.
    owner: i64,
    /// Depth of its owner; 255 without one.
    depth: u8,
}

/// Texts for the numbers in rows.
pub struct Names<'a> {
    /// Name of the arm.
    pub arm: &'a str,
    /// Events: names and classes.
    pub events: &'a [(String, u8)],
    /// Names of parameters.
    pub parameters: &'a ParameterNames,
    /// Returns the key of a statement.
    pub statement: &'a dyn Fn(u32) -> String,
}

impl Names<'_> {
    fn event(&self, at: u32) -> String {
        self.events.get(at as usize).map_or_else(String::new, |(name, _)| name.clone())
    }

    fn class(&self, row: &WaitRow) -> u32 {
        let known = || self.events.get(row.event as usize).map_or(OTHER, |(_, class)| *class);
        u32::from(if row.think { IDLE } else { known() })
    }

    fn parameters(&self, at: u32) -> String {
        String::from_utf8_lossy(self.parameters.name(at)).into_owned()
    }
}

/// Waits whose owners are still to come.
pub struct Waits {
    file: u32,
    recent: Vec<Kept>,
    columns: Buffer,
}

impl Waits {
    /// Returns an empty buffer.
    pub fn new(file: u32) -> Self {
        Self { file, recent: Vec::with_capacity(STRETCH), columns: Buffer::new(&tables::WAITS) }
    }

    /// Returns the number of buffered waits.
    #[inline]
    pub fn len(&self) -> usize {
        self.columns.rows() + self.recent.len()
    }

    /// Adds a wait with its first parameters and the number of their names; `base` is added to the numbers of its
    /// session and context.
    #[inline]
    pub fn push(&mut self, row: &WaitRow, base: u32, values: [i64; 3], names: u32, words: &Names<'_>) {
        self.recent.push(Kept { row: *row, values, names, owner: NONE, depth: u8::MAX }); // copied once
        if let Some(Kept { row, .. }) = self.recent.last_mut() {
            row.session += base;
            row.context += base;
        }
        if self.recent.len() == STRETCH {
            self.settle(words);
        }
    }

    /// Sets the owner of a buffered wait.
    pub fn own(&mut self, at: usize, owner: Owner) {
        let (settled, id) = (self.columns.rows(), row_id(self.file, owner.number));
        if let Some(kept) = at.checked_sub(settled).and_then(|at| self.recent.get_mut(at)) {
            kept.owner = id;
            kept.depth = owner.depth;
        } else if let [Values::I64(calls), Values::U8(depths)] = &mut self.columns.values()[CALL..=DEPTH]
            && at < calls.len()
        {
            calls[at] = id;
            depths[at] = owner.depth;
        }
    }

    /// Shifts the starts of a session's waits, from the one at `from` on.
    pub fn shift(&mut self, session: u32, from: usize, by_ns: i64) {
        let settled = self.columns.rows();
        self.columns.shift(session, from, by_ns);
        for kept in self.recent.iter_mut().skip(from.saturating_sub(settled)) {
            if kept.row.session == session {
                kept.row.started_ns = kept.row.started_ns.saturating_add(by_ns);
            }
        }
    }

    /// Passes the columns of all buffered waits to `write`.
    pub fn drain<T>(&mut self, names: &Names<'_>, write: impl FnOnce(&mut [Values]) -> T) -> T {
        self.settle(names);
        self.columns.drain(write)
    }

    /// Fills the columns from the recent rows, in the order of the table.
    fn settle(&mut self, names: &Names<'_>) {
        dyno_cpu::run(Settle { rows: self, names });
    }

    #[inline(always)]
    fn fill(&mut self, names: &Names<'_>) {
        let file = self.file;
        self.columns
            .stretch(&self.recent)
            .words(|_| 0, |_| names.arm.to_owned())
            .u32(|_| file)
            .u32(|k| k.row.session)
            .i64(|k| row_id(file, k.row.number))
            .words(|k| k.row.event, |at| names.event(at))
            .words(|k| names.class(&k.row), |class| class_name(class as u8).to_owned())
            .i64(|k| k.row.started_ns)
            .i64(|k| k.row.elapsed_ns)
            .i64(|k| k.values[0])
            .i64(|k| k.values[1])
            .i64(|k| k.values[2])
            .words(|k| k.names, |at| names.parameters(at))
            .i64(|k| k.row.object)
            .words(|k| k.row.statement, names.statement)
            .i64(|k| k.owner)
            .u8(|k| k.depth)
            .bool(|k| k.row.think)
            .u64(|k| k.row.cursor)
            .u32(|k| k.row.context)
            .u32(|_| file)
            .i64(|k| k.row.place.line)
            .i64(|k| k.row.place.byte_offset)
            .i64(|k| k.row.tim)
            .words(|_| 0, |_| "exact".to_owned());
        self.recent.clear();
    }
}

/// Converter of recent rows into columns.
struct Settle<'s, 'a> {
    rows: &'s mut Waits,
    names: &'s Names<'a>,
}

impl dyno_cpu::Work for Settle<'_, '_> {
    type Done = ();

    #[inline(always)]
    fn run(self) {
        self.rows.fill(self.names);
    }
}

#[cfg(test)]
mod tests {
    use super::super::buffer::{SESSION, STARTED_NS};
    use super::*;

    #[test]
    fn columns_that_change_later_are_where_the_table_has_them() {
        let name = |at: usize| tables::WAITS[at].name;
        assert_eq!([SESSION, STARTED_NS, CALL, DEPTH].map(name), ["session", "started_ns", "call", "depth"]);
    }
}
