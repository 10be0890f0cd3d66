//! Calls on their way into `calls/`.

use dyno_evidence::table::Values;

use super::super::events::KINDS;
use super::super::record::NONE;
use super::super::rows::{CallRow, NO_STATEMENT};
use super::buffer::Words;
use super::row_id;

/// A call and the parent found so far.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// The call.
    pub row: CallRow,
    /// Running number of its parent; `u64::MAX` for none.
    pub parent: u64,
}

/// What words stand for.
pub struct Names<'a> {
    /// Name of the arm.
    pub arm: &'a str,
    /// Names of LOB calls, in lower case.
    pub lob_calls: &'a [String],
    /// Types of LOBs.
    pub lob_types: &'a [String],
    /// Key of a statement.
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
}

#[derive(Default)]
struct Columns {
    kind: Words,
    statement: Words,
    lob_type: Words,
    numbers: [Vec<i64>; NUMBERS.len()],
    tiny: [Vec<u8>; TINY.len()],
    session: Vec<u32>,
    context: Vec<u32>,
    cursor: Vec<u64>,
    orphan: Vec<bool>,
}

type Number = fn(&CallRow) -> i64;
type Tiny = fn(&CallRow) -> u8;

/// Columns of numbers that a row has as they are.
const NUMBERS: [Number; 20] = [
    |r| r.started_ns,
    |r| r.elapsed_ns,
    |r| r.cpu_ns,
    |r| r.rows,
    |r| r.physical,
    |r| r.consistent,
    |r| r.current,
    |r| r.own.elapsed_ns,
    |r| r.own.cpu_ns,
    |r| r.own_wait_ns,
    |r| r.own.physical,
    |r| r.own.consistent,
    |r| r.own.current,
    |r| r.plan_hash,
    |r| r.lob_bytes,
    |r| r.user_id,
    |r| r.place.line,
    |r| r.place.byte_offset,
    |r| r.tim,
    |r| r.number as i64,
];

/// Columns of tiny numbers.
const TINY: [Tiny; 4] = [|r| r.misses, |r| r.depth, |r| r.goal, |r| r.close_type];

/// Rows that stay in the cache while their columns are filled.
const STRETCH: usize = 512;

/// The columns of these rows, in the order of the table.
pub fn columns(rows: &[Kept], file: u32, names: &Names<'_>) -> Vec<Values> {
    let len = rows.len();
    let mut to = Columns::default();
    to.numbers.iter_mut().for_each(|column| column.reserve_exact(len));
    let mut parents = Vec::with_capacity(len);
    let id = |number| row_id(file, number);
    for stretch in rows.chunks(STRETCH) {
        for kept in stretch {
            let row = &kept.row;
            to.kind.push(u32::from(row.kind), |kind| names.kind(kind));
            if row.statement == NO_STATEMENT {
                to.statement.push_none();
            } else {
                to.statement.push(row.statement, names.statement);
            }
            if row.lob_type == 0 {
                to.lob_type.push_none();
            } else {
                let name = |at: u32| names.lob_types.get(at as usize).cloned().unwrap_or_default();
                to.lob_type.push(u32::from(row.lob_type) - 1, name);
            }
        }
        for (column, number) in to.numbers.iter_mut().zip(NUMBERS) {
            column.extend(stretch.iter().map(|kept| number(&kept.row)));
        }
        for (column, tiny) in to.tiny.iter_mut().zip(TINY) {
            column.extend(stretch.iter().map(|kept| tiny(&kept.row)));
        }
        let none = u64::MAX;
        let parent = |kept: &Kept| if kept.parent == none { NONE } else { id(kept.parent) };
        parents.extend(stretch.iter().map(parent));
        to.session.extend(stretch.iter().map(|kept| kept.row.session));
        to.context.extend(stretch.iter().map(|kept| kept.row.context));
        to.cursor.extend(stretch.iter().map(|kept| kept.row.cursor));
        to.orphan.extend(stretch.iter().map(|kept| kept.row.depth > 0 && kept.parent == none));
    }
    in_order(to, parents, file, len, names.arm)
}

fn in_order(to: Columns, parents: Vec<i64>, file: u32, len: usize, arm: &str) -> Vec<Values> {
    let Columns { mut kind, mut statement, mut lob_type, numbers, tiny, .. } = to;
    let [started, elapsed, cpu, rows, physical, consistent, current, own @ ..] = numbers.map(Values::I64);
    let [own_elapsed, own_cpu, own_wait, own_physical, own_consistent, own_current, rest @ ..] = own;
    let [plan, lob_bytes, user, line, offset, tim, number] = rest;
    let [misses, depth, goal, close_type] = tiny.map(Values::U8);
    let ids = match number {
        Values::I64(numbers) => numbers.into_iter().map(|n| row_id(file, n as u64)).collect(),
        _ => Vec::new(),
    };
    vec![
        Values::Words(vec![0; len], vec![arm.to_owned()]),
        Values::U32(vec![file; len]),
        Values::U32(to.session),
        Values::I64(ids),
        kind.take(),
        statement.take(),
        started,
        elapsed,
        cpu,
        rows,
        physical,
        consistent,
        current,
        misses,
        depth,
        Values::I64(parents),
        own_elapsed,
        own_cpu,
        own_wait,
        own_physical,
        own_consistent,
        own_current,
        Values::Bool(to.orphan),
        plan,
        goal,
        close_type,
        lob_bytes,
        lob_type.take(),
        Values::U64(to.cursor),
        user,
        Values::U32(to.context),
        Values::U32(vec![file; len]),
        line,
        offset,
        tim,
    ]
}
