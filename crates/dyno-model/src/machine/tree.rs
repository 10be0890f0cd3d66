//! Text of a machine as values with their lines.
//!
//! A value may be plain (`rotation_rpm = 7200`) or have a source
//! (`rotation_rpm = { value = 7200, source = "data sheet" }`), and with it the interval in which it is known to lie
//! (`client_us = { value = 9.4, low = 9.1, high = 9.8, source = "measured" }`).

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::error::MachineError;
use crate::device::number;

/// A value as written in a machine's text.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenValue {
    /// The value.
    pub value: Value,
    /// Source of the value; `None` if the text does not state one.
    pub source: Option<String>,
    /// Interval in which the value is known to lie; `None` if the text does not state one.
    pub interval: Option<(f64, f64)>,
    /// Line of the value, from 1; 0 if it did not come from a text.
    pub line: usize,
}

impl GivenValue {
    /// Returns the place of the value for a message.
    pub fn place(&self, path: &str) -> String {
        if self.line == 0 { path.into() } else { format!("line {}, {path}", self.line) }
    }
}

/// All values of a text by dotted path, and the lines of its tables.
#[derive(Debug, Default)]
pub struct Tree {
    pub values: BTreeMap<String, GivenValue>,
    pub tables: BTreeMap<String, usize>,
}

/// Reads the text of a machine.
///
/// # Errors
/// The text is not valid TOML, or names a key twice.
pub fn read(text: &str) -> Result<Tree, MachineError> {
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line(text, span.start));
        MachineError::at(format!("line {line}"), error.message(), "write it as TOML")
    })?;
    let mut tree = Tree::default();
    walk(text, "", table.get_ref(), &mut tree)?;
    Ok(tree)
}

fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count()
}

fn walk(text: &str, prefix: &str, table: &DeTable<'_>, tree: &mut Tree) -> Result<(), MachineError> {
    for (key, value) in table {
        let line = line(text, key.span().start);
        let path = if prefix.is_empty() { key.get_ref().to_string() } else { format!("{prefix}.{}", key.get_ref()) };
        let place = format!("line {line}, {path}");
        match value.get_ref() {
            DeValue::Table(inner) if inner.contains_key("value") => {
                let given = told(&place, inner)?;
                tree.values.insert(path, GivenValue { line, ..given });
            }
            DeValue::Table(inner) => {
                tree.tables.insert(path.clone(), line);
                walk(text, &path, inner, tree)?;
            }
            _ => {
                let value = plain(&place, value)?;
                tree.values.insert(path, GivenValue { value, source: None, interval: None, line });
            }
        }
    }
    Ok(())
}

/// Reads a value that is written as a table with the keys `value`, `source`, `low` and `high`.
fn told(place: &str, table: &DeTable<'_>) -> Result<GivenValue, MachineError> {
    let (mut found, mut source, mut ends) = (None, None, [None, None]);
    for (key, value) in table {
        match (key.get_ref().as_ref(), value.get_ref()) {
            ("value", _) => found = Some(plain(place, value)?),
            ("source", DeValue::String(text)) => source = Some(text.to_string()),
            ("source", _) => {
                return Err(MachineError::at(place, "a source must be text", "put the source in quotes"));
            }
            (end @ ("low" | "high"), _) => ends[usize::from(end == "high")] = number(&plain(place, value)?),
            (other, _) => {
                let message = format!("`{other}` beside a value");
                return Err(MachineError::at(place, message, "use only value, source, low and high"));
            }
        }
    }
    let interval = match ends {
        [None, None] => None,
        [Some(low), Some(high)] if low <= high => Some((low, high)),
        _ => {
            return Err(MachineError::at(
                place,
                "an interval must have two ends, the lower first",
                "give low and high",
            ));
        }
    };
    match found {
        Some(value) => Ok(GivenValue { value, source, interval, line: 0 }),
        None => Err(MachineError::at(place, "a source without a value", "add `value = ...`")),
    }
}

fn plain(place: &str, value: &Spanned<DeValue<'_>>) -> Result<Value, MachineError> {
    Ok(match value.get_ref() {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(digits) => i64::from_str_radix(digits.as_str(), digits.radix())
            .map(Value::Integer)
            .map_err(|_| MachineError::at(place, "a whole number beyond 64 bits", ""))?,
        DeValue::Float(digits) => {
            digits.as_str().parse().map(Value::Float).map_err(|_| MachineError::at(place, "not a number", ""))?
        }
        DeValue::Boolean(flag) => Value::Boolean(*flag),
        DeValue::Datetime(time) => Value::Datetime(*time),
        DeValue::Array(items) => {
            let items: Result<_, _> = items.iter().map(|item| plain(place, item)).collect();
            Value::Array(items?)
        }
        DeValue::Table(table) => {
            let mut inner = Table::new();
            for (key, value) in table {
                inner.insert(key.get_ref().to_string(), plain(place, value)?);
            }
            Value::Table(inner)
        }
    })
}

impl Tree {
    /// Joins all values below each path into one value: a structure, whose keys are not separate parameters.
    pub fn fold<'a>(&mut self, paths: impl Iterator<Item = &'a str>) {
        for path in paths {
            let Some(line) = self.tables.remove(path) else { continue };
            let start = format!("{path}.");
            let inside = |key: &String| key.starts_with(&start);
            let keys: Vec<String> = self.values.keys().filter(|key| inside(key)).cloned().collect();
            let mut table = Table::new();
            for key in keys {
                if let Some(given) = self.values.remove(&key) {
                    insert(&mut table, &key[start.len()..], given.value);
                }
            }
            self.tables.retain(|key, _| !inside(key));
            let given = GivenValue { value: Value::Table(table), source: None, interval: None, line };
            self.values.insert(path.into(), given);
        }
    }
}

/// Puts a value at a dotted path.
pub fn insert(table: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            table.insert(path.into(), value);
        }
        Some((first, rest)) => {
            let inner = table.entry(first).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}
