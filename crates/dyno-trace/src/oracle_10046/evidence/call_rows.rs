//! Buffer of calls to be written into `calls/`.

use dyno_evidence::table::{Column, Values};

use super::super::events::KINDS;
use super::super::record::NONE;
use super::super::rows::CallRow;
use super::buffer::Buffer;
use super::late_rows::{LateRow, LateRows};
use super::{row_id, tables};

/// Index of the first column whose values can still change when later records are read.
const DEPTH: usize = 14;
const PARENT: usize = 15;
const ORPHAN: usize = 22;

/// A call with the id of its parent; [`NONE`] while the parent is unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kept {
    row: CallRow,
    parent: i64,
}

/// Texts for the numbers in rows.
pub struct Names<'a> {
    /// Name of the arm.
    pub arm: &'a str,
    /// Names of LOB calls, in lower case.
    pub lob_calls: &'a [String],
    /// Types of LOBs.
    pub lob_types: &'a [String],
    /// Returns the key of a statement.
    pub statement: &'a dyn Fn(u32) -> String,
}

impl Names<'_> {
    fn kind(&self, kind: u32) -> String {
        let kind = kind as usize;
        KINDS.get(kind).map_or_else(
            || self.lob_calls.get(kind - KINDS.len()).cloned().unwrap_or_default(),
            |name| (*name).to_owned(),
        )
    }

    fn lob_type(&self, at: u32) -> String {
        self.lob_types.get(at as usize).cloned().unwrap_or_default()
    }
}

/// Calls whose parents come later in the file.
pub type Calls = LateRows<Kept>;

impl Calls {
    /// Adds a call; `base` is added to the numbers of its session and context.
    #[inline(always)]
    pub fn push(&mut self, row: &CallRow, base: u32, names: &Names<'_>) {
        let kept = self.add(names);
        kept.row = *row;
        kept.parent = NONE;
        kept.row.session += base;
        kept.row.context += base;
    }

    /// Sets the parent of a buffered call.
    pub fn adopt(&mut self, at: usize, parent: u64) {
        let parent = row_id(self.file, parent);
        if let Some(kept) = self.recent(at) {
            kept.parent = parent;
        } else if let Values::I64(parents) = &mut self.columns.values()[PARENT]
            && let Some(place) = parents.get_mut(at)
        {
            *place = parent;
        }
    }

    /// Passes the columns of all buffered calls to `write`.
    pub fn drain<T>(&mut self, names: &Names<'_>, write: impl FnOnce(&mut [Values]) -> T) -> T {
        self.drain_with(names, mark_orphans, write)
    }
}

/// Marks the recursive calls without a parent.
fn mark_orphans(columns: &mut [Values]) {
    let (before, after) = columns.split_at_mut(ORPHAN);
    if let (Values::U8(depths), Values::I64(parents), Values::Bool(orphans)) =
        (&before[DEPTH], &before[PARENT], &mut after[0])
    {
        for ((orphan, depth), parent) in orphans.iter_mut().zip(depths).zip(parents) {
            *orphan = *depth > 0 && *parent == NONE;
        }
    }
}

impl LateRow for Kept {
    type Names<'a> = Names<'a>;
    const COLUMNS: &'static [Column] = &tables::CALLS;

    fn session_and_start(&mut self) -> (u32, &mut i64) {
        (self.row.session, &mut self.row.started_ns)
    }

    #[inline(always)]
    fn fill(rows: &[Self], columns: &mut Buffer, file: u32, names: &Names<'_>) {
        let lob_type = |at: u16| u32::from(at).wrapping_sub(1);
        columns
            .stretch(rows)
            .words(|_| 0, |_| names.arm.to_owned())
            .u32(|_| file)
            .u32(|k| k.row.session)
            .i64(|k| row_id(file, k.row.number))
            .words(|k| u32::from(k.row.kind), |kind| names.kind(kind))
            .words(|k| k.row.statement, names.statement)
            .i64(|k| k.row.started_ns)
            .i64(|k| k.row.elapsed_ns)
            .i64(|k| k.row.cpu_ns)
            .i64(|k| k.row.rows)
            .i64(|k| k.row.physical)
            .i64(|k| k.row.consistent)
            .i64(|k| k.row.current)
            .u8(|k| k.row.misses)
            .u8(|k| k.row.depth)
            .i64(|k| k.parent)
            .i64(|k| k.row.own.elapsed_ns)
            .i64(|k| k.row.own.cpu_ns)
            .i64(|k| k.row.own_wait_ns)
            .i64(|k| k.row.own.physical)
            .i64(|k| k.row.own.consistent)
            .i64(|k| k.row.own.current)
            .bool(|_| false)
            .i64(|k| k.row.plan_hash)
            .u8(|k| k.row.goal)
            .u8(|k| k.row.close_type)
            .i64(|k| k.row.lob_bytes)
            .words(|k| lob_type(k.row.lob_type), |at| names.lob_type(at))
            .u64(|k| k.row.cursor)
            .i64(|k| k.row.user_id)
            .u32(|k| k.row.context)
            .u32(|_| file)
            .i64(|k| k.row.place.line)
            .i64(|k| k.row.place.byte_offset)
            .i64(|k| k.row.tim);
    }
}

#[cfg(test)]
mod tests {
    use super::super::buffer::{SESSION, STARTED_NS};
    use super::*;

    #[test]
    fn columns_that_change_later_are_where_the_table_has_them() {
        let name = |at: usize| tables::CALLS[at].name;
        assert_eq!(
            [SESSION, STARTED_NS, DEPTH, PARENT, ORPHAN].map(name),
            ["session", "started_ns", "depth", "parent", "orphan"]
        );
    }
}
