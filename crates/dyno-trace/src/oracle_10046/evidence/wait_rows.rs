//! Waits on their way into `waits/`.

use dyno_evidence::table::Values;

use super::super::events::{CLASSES, IDLE};
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

/// The columns of these rows, in the order of the table.
pub fn columns(rows: &[Kept], file: u32, names: &Names<'_>) -> Vec<Values> {
    let numbers = |value: fn(&Kept) -> i64| Values::I64(rows.iter().map(value).collect());
    let len = rows.len();
    let (mut event, mut class, mut parameters, mut statement) =
        (Words::default(), Words::default(), Words::default(), Words::default());
    for kept in rows {
        let row = &kept.row;
        let known = names.events.get(row.event as usize);
        event.push(row.event, |_| known.map_or_else(String::new, |(name, _)| name.clone()));
        let class_number = if row.think { IDLE } else { known.map_or(0, |(_, class)| *class) };
        class.push(u32::from(class_number), |at| CLASSES[at as usize].to_owned());
        let word = |at: u32| names.parameters.get(at as usize).cloned().unwrap_or_default();
        parameters.push(kept.names, word);
        if row.statement == NO_STATEMENT {
            statement.push_none();
        } else {
            statement.push(row.statement, names.statement);
        }
    }
    let owner = |kept: &Kept| if kept.owner == u64::MAX { NONE } else { row_id(file, kept.owner) };
    vec![
        Values::Words(vec![0; len], vec![names.arm.to_owned()]),
        Values::U32(vec![file; len]),
        Values::U32(rows.iter().map(|kept| kept.row.session).collect()),
        Values::I64(rows.iter().map(|kept| row_id(file, kept.row.number)).collect()),
        event.take(),
        class.take(),
        numbers(|kept| kept.row.started_ns),
        numbers(|kept| kept.row.elapsed_ns),
        numbers(|kept| kept.values[0]),
        numbers(|kept| kept.values[1]),
        numbers(|kept| kept.values[2]),
        parameters.take(),
        numbers(|kept| kept.row.object),
        statement.take(),
        Values::I64(rows.iter().map(owner).collect()),
        Values::U8(rows.iter().map(|kept| kept.depth).collect()),
        Values::Bool(rows.iter().map(|kept| kept.row.think).collect()),
        Values::U64(rows.iter().map(|kept| kept.row.cursor).collect()),
        Values::U32(rows.iter().map(|kept| kept.row.context).collect()),
        Values::U32(vec![file; len]),
        numbers(|kept| kept.row.place.line),
        numbers(|kept| kept.row.place.byte_offset),
        numbers(|kept| kept.row.tim),
        Values::Words(vec![0; len], vec!["exact".to_owned()]),
    ]
}
