//! Waits on their way into `waits/`.

use dyno_evidence::table::Values;

use super::super::events::{IDLE, OTHER, class_name};
use super::super::record::NONE;
use super::super::rows::{NO_STATEMENT, WaitRow};
use super::buffer::Words;
use super::row_id;

/// A wait with its parameters and the owner found so far.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// The wait.
    pub row: WaitRow,
    /// The first three parameters; `NONE` for none.
    pub values: [i64; 3],
    /// Number of the parameters' names.
    pub names: u32,
    /// Running number of its owner; `u64::MAX` for none.
    pub owner: u64,
    /// Depth of its owner; 255 for none.
    pub depth: u8,
}

/// What words stand for.
pub struct Names<'a> {
    /// Name of the arm.
    pub arm: &'a str,
    /// Events: names and classes.
    pub events: &'a [(String, u8)],
    /// Names of parameters.
    pub parameters: &'a [String],
    /// Key of a statement.
    pub statement: &'a dyn Fn(u32) -> String,
}

type Number = fn(&Kept) -> i64;

/// Columns of numbers that a row has as they are.
const NUMBERS: [Number; 10] = [
    |kept| kept.row.started_ns,
    |kept| kept.row.elapsed_ns,
    |kept| kept.values[0],
    |kept| kept.values[1],
    |kept| kept.values[2],
    |kept| kept.row.object,
    |kept| kept.row.place.line,
    |kept| kept.row.place.byte_offset,
    |kept| kept.row.tim,
    |kept| kept.row.number as i64,
];

/// Rows that stay in the cache while their columns are filled.
const STRETCH: usize = 256;

#[derive(Default)]
struct Columns {
    event: Words,
    class: Words,
    parameters: Words,
    statement: Words,
    numbers: [Vec<i64>; NUMBERS.len()],
    owners: Vec<i64>,
    depth: Vec<u8>,
    session: Vec<u32>,
    context: Vec<u32>,
    cursor: Vec<u64>,
    think: Vec<bool>,
}

impl Columns {
    fn words(&mut self, stretch: &[Kept], names: &Names<'_>) {
        for kept in stretch {
            let row = &kept.row;
            let known = names.events.get(row.event as usize);
            self.event.push(row.event, |_| known.map_or_else(String::new, |(name, _)| name.clone()));
            let class = if row.think { IDLE } else { known.map_or(OTHER, |(_, class)| *class) };
            self.class.push(u32::from(class), |at| class_name(at as u8).to_owned());
            let word = |at: u32| names.parameters.get(at as usize).cloned().unwrap_or_default();
            self.parameters.push(kept.names, word);
            if row.statement == NO_STATEMENT {
                self.statement.push_none();
            } else {
                self.statement.push(row.statement, names.statement);
            }
        }
    }

    fn numbers(&mut self, stretch: &[Kept], file: u32) {
        for (column, number) in self.numbers.iter_mut().zip(NUMBERS) {
            column.extend(stretch.iter().map(number));
        }
        let owner = |kept: &Kept| if kept.owner == u64::MAX { NONE } else { row_id(file, kept.owner) };
        self.owners.extend(stretch.iter().map(owner));
        self.depth.extend(stretch.iter().map(|kept| kept.depth));
        self.session.extend(stretch.iter().map(|kept| kept.row.session));
        self.context.extend(stretch.iter().map(|kept| kept.row.context));
        self.cursor.extend(stretch.iter().map(|kept| kept.row.cursor));
        self.think.extend(stretch.iter().map(|kept| kept.row.think));
    }
}

/// The columns of these rows, in the order of the table.
pub fn columns(rows: &[Kept], file: u32, names: &Names<'_>) -> Vec<Values> {
    let len = rows.len();
    let mut to = Columns::default();
    to.numbers.iter_mut().for_each(|column| column.reserve_exact(len));
    for stretch in rows.chunks(STRETCH) {
        to.words(stretch, names);
        to.numbers(stretch, file);
    }
    let [started, elapsed, p1, p2, p3, object, line, offset, tim, mut numbers] = to.numbers;
    for number in &mut numbers {
        *number = row_id(file, *number as u64);
    }
    vec![
        Values::Words(vec![0; len], vec![names.arm.to_owned()]),
        Values::U32(vec![file; len]),
        Values::U32(to.session),
        Values::I64(numbers),
        to.event.take(),
        to.class.take(),
        Values::I64(started),
        Values::I64(elapsed),
        Values::I64(p1),
        Values::I64(p2),
        Values::I64(p3),
        to.parameters.take(),
        Values::I64(object),
        to.statement.take(),
        Values::I64(to.owners),
        Values::U8(to.depth),
        Values::Bool(to.think),
        Values::U64(to.cursor),
        Values::U32(to.context),
        Values::U32(vec![file; len]),
        Values::I64(line),
        Values::I64(offset),
        Values::I64(tim),
        Values::Words(vec![0; len], vec!["exact".to_owned()]),
    ]
}
