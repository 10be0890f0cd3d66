//! Buffer of waits to be written into `waits/`.

use dyno_evidence::table::{Column, Values};

use super::super::events::{IDLE, Names as ParameterNames, OTHER, class_name};
use super::super::record::NONE;
use super::super::rows::{Owner, WaitRow};
use super::buffer::Buffer;
use super::late_rows::{LateRow, LateRows};
use super::{row_id, tables};

/// Index of the first column whose values can still change when later records are read.
const CALL: usize = 14;
const DEPTH: usize = 15;

/// A wait with its parameters, and with its owner if that has been found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kept {
    row: WaitRow,
    /// First three parameters; [`NONE`] if missing.
    values: [i64; 3],
    /// Number that identifies the parameters' names.
    names: u32,
    /// Id of the wait's owner; [`NONE`] if there is no owner.
    owner: i64,
    /// Depth of the wait's owner; 255 if there is no owner.
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

/// Waits whose owners come later in the file.
pub type Waits = LateRows<Kept>;

impl Waits {
    /// Adds a wait with its first three parameters; `names` identifies their names, and `base` is added to the numbers
    /// of the wait's session and context.
    #[inline(always)]
    pub fn push(&mut self, row: &WaitRow, base: u32, values: [i64; 3], names: u32, words: &Names<'_>) {
        let kept = self.add(words);
        kept.row = *row;
        (kept.values, kept.names, kept.owner, kept.depth) = (values, names, NONE, u8::MAX);
        kept.row.session += base;
        kept.row.context += base;
    }

    /// Sets the owner of a buffered wait.
    pub fn own(&mut self, at: usize, owner: Owner) {
        let id = row_id(self.file, owner.number);
        if let Some(kept) = self.recent(at) {
            kept.owner = id;
            kept.depth = owner.depth;
        } else if let [Values::I64(calls), Values::U8(depths)] = &mut self.columns.values()[CALL..=DEPTH]
            && at < calls.len()
        {
            calls[at] = id;
            depths[at] = owner.depth;
        }
    }

    /// Passes the columns of all buffered waits to `write`.
    pub fn drain<T>(&mut self, names: &Names<'_>, write: impl FnOnce(&mut [Values]) -> T) -> T {
        self.drain_with(names, |_| (), write)
    }
}

impl LateRow for Kept {
    type Names<'a> = Names<'a>;
    const COLUMNS: &'static [Column] = &tables::WAITS;

    fn session_and_start(&mut self) -> (u32, &mut i64) {
        (self.row.session, &mut self.row.started_ns)
    }

    #[inline(always)]
    fn fill(rows: &[Self], columns: &mut Buffer, file: u32, names: &Names<'_>) {
        columns
            .stretch(rows)
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
