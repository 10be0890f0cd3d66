//! Items of a profile: waits, and for each call its own CPU time and its unexplained time.

use super::super::events::{CPU, IDLE, KINDS, OTHER, class_name, class_number};
use super::super::filter::{Field, Fields, Value};
use super::super::rows::{Context, NO_STATEMENT};

/// Name of the line for CPU.
pub const CPU_NAME: &str = "CPU";
/// Name of the line for unexplained time within calls.
pub const UNACCOUNTED: &str = "unaccounted-for within calls";
/// Name of the line for unexplained time between calls.
pub const BETWEEN: &str = "unaccounted-for between calls";
/// Name of the line for long messages from the client.
pub const THINK: &str = "think time";

/// Kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A wait on the event with this number.
    Wait(u32),
    /// Think time, which is a wait, too.
    Think,
    /// A call's own CPU time.
    Cpu,
    /// A call's own unexplained time.
    Unaccounted,
}

/// Stands for no object or no rows.
pub const NONE: i64 = super::super::record::NONE;

/// A span of time with the values it can be grouped by. Numbers are those of the file's [`Dictionary`].
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// Kind of the item.
    pub what: What,
    /// Duration [ns]; negative if the trace counts the same time twice.
    pub duration_ns: i64,
    /// Duration of the wait, or of the call the item belongs to [ns].
    pub elapsed_ns: i64,
    /// Start by the wall clock [ns since the UNIX epoch].
    pub started_ns: i64,
    /// Kind of the call or of the wait's owner; `u16::MAX` for none.
    pub kind: u16,
    /// Depth of the call or of the wait's owner; 255 for none.
    pub depth: u8,
    /// Statement number.
    pub statement: u32,
    /// Context number.
    pub context: u32,
    /// Session number.
    pub session: u32,
    /// Object number of a wait; [`NONE`] if there is none.
    pub object: i64,
    /// First three parameters of a wait.
    pub parameters: [i64; 3],
    /// Number of rows of the call.
    pub rows: i64,
}

/// Names for the numbers in items.
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    /// Path of the file as given.
    pub file: String,
    /// Events: names and classes.
    pub events: Vec<(String, u8)>,
    /// Names of LOB calls in lower case; their numbers follow those of [`KINDS`].
    pub lob_calls: Vec<String>,
    /// Contexts of sessions, by number.
    pub contexts: Vec<Context>,
    /// Sessions: SESSION ID, or the process.
    pub sessions: Vec<String>,
    /// Statements by number: key, and the normalized text's number in `forces`; a map, because the numbers are sparse.
    pub statements: std::collections::HashMap<u32, (String, u32)>,
    /// Texts with literals replaced.
    pub forces: Vec<String>,
}

impl Dictionary {
    fn event(&self, what: What) -> &str {
        match what {
            What::Wait(number) => self.events.get(number as usize).map_or("", |(name, _)| name),
            What::Think => super::super::events::FROM_CLIENT,
            What::Cpu => CPU_NAME,
            What::Unaccounted => UNACCOUNTED,
        }
    }

    /// Returns the name of an item's class.
    pub fn class(&self, what: What) -> &'static str {
        let number = match what {
            What::Wait(number) => self.events.get(number as usize).map_or(OTHER, |(_, class)| *class),
            What::Think => IDLE,
            What::Cpu => CPU,
            What::Unaccounted => OTHER,
        };
        class_name(number)
    }

    /// Returns the name of a call's kind.
    pub fn kind(&self, kind: u16) -> &str {
        let kind = usize::from(kind);
        KINDS
            .get(kind)
            .copied()
            .unwrap_or_else(|| self.lob_calls.get(kind.wrapping_sub(KINDS.len())).map_or("", |name| name))
    }

    fn context(&self, number: u32, field: Field) -> Value<'_> {
        let Some(context) = self.contexts.get(number as usize) else { return Value::Missing };
        Value::Text(match field {
            Field::Module => &context.module,
            Field::Action => &context.action,
            Field::Client => &context.client_id,
            Field::Service => &context.service,
            _ => &context.container,
        })
    }

    fn statement(&self, number: u32, field: Field) -> Value<'_> {
        match self.statements.get(&number) {
            _ if number == NO_STATEMENT => Value::Missing,
            None => Value::Missing,
            Some((key, _)) if field == Field::Statement => Value::Text(key),
            Some((key, force)) => Value::Text(self.forces.get(*force as usize).map_or(key.as_str(), |text| text)),
        }
    }

    /// Returns the value of an item's field.
    pub fn value(&self, item: &Item, field: Field) -> Value<'_> {
        let number = |value: i64| if value == NONE { Value::Missing } else { Value::Number(value) };
        match field {
            Field::Event => Value::Text(self.event(item.what)),
            Field::Class => Value::Text(self.class(item.what)),
            Field::Kind if item.kind == u16::MAX => Value::Missing,
            Field::Kind => Value::Text(self.kind(item.kind)),
            Field::Statement | Field::Force => self.statement(item.statement, field),
            Field::Module | Field::Action | Field::Client | Field::Service | Field::Container => {
                self.context(item.context, field)
            }
            Field::Session => {
                let session = self.sessions.get(item.session as usize);
                session.map_or(Value::Missing, |name| Value::Text(name))
            }
            Field::File => Value::Text(&self.file),
            Field::Depth if item.depth == u8::MAX => Value::Missing,
            Field::Depth => Value::Number(i64::from(item.depth)),
            Field::Object => number(item.object),
            Field::P1 => number(item.parameters[0]),
            Field::P2 => number(item.parameters[1]),
            Field::P3 => number(item.parameters[2]),
            Field::Second => Value::Number(item.started_ns.div_euclid(1_000_000_000)),
            Field::Minute => Value::Number(item.started_ns.div_euclid(60_000_000_000)),
            Field::ElapsedUs => Value::Number(item.elapsed_ns / 1000),
            Field::Rows => number(item.rows),
        }
    }

    /// Returns a number that two items share exactly if they have the same value of a field, so that values can be
    /// compared without their texts.
    pub fn code(&self, item: &Item, field: Field) -> i64 {
        match field {
            Field::Event => match item.what {
                What::Wait(number) => i64::from(number),
                What::Think => -1,
                What::Cpu => -2,
                What::Unaccounted => -3,
            },
            Field::Kind => i64::from(item.kind),
            Field::Statement => i64::from(item.statement),
            Field::Force => self.statements.get(&item.statement).map_or(-1, |(_, force)| i64::from(*force)),
            Field::Module | Field::Action | Field::Client | Field::Service | Field::Container => {
                i64::from(item.context)
            }
            Field::Session => i64::from(item.session),
            Field::File => 0,
            _ => match self.value(item, field) {
                Value::Number(value) => value,
                Value::Missing => NONE,
                Value::Text(text) => i64::from(class_number(text).unwrap_or(0)),
            },
        }
    }
}

/// An item with its dictionary, as filters see it.
pub struct Seen<'a>(pub &'a Item, pub &'a Dictionary);

impl Fields for Seen<'_> {
    fn value(&self, field: Field) -> Value<'_> {
        self.1.value(self.0, field)
    }
}
