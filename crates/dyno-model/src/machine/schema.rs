//! Schema of a machine: every parameter with its default, form, range and source.
//!
//! The rows of a section are made from the parameter structure itself: its default, as TOML, gives keys, forms and
//! defaults; its `TABLE` gives meanings, sources and ranges.

use serde::Serialize;
use toml::Value;

use super::error::MachineError;
use crate::device::{Parameter, number, parameter, parameters, shown, unit_of};

/// Form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Whole,
    Number,
    Flag,
    Word,
    /// One name or a list of names.
    Names,
    /// Any structure; the reader of the section checks it.
    Structure,
}

/// Parameter of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub path: String,
    /// Default; `None` if the parameter is required or if its default follows from others.
    pub default: Option<Value>,
    pub form: Form,
    pub meaning: &'static str,
    pub source: &'static str,
    pub unit: &'static str,
    /// Bounds of a number.
    pub range: (f64, f64),
}

impl Row {
    /// Returns the last word of the path.
    pub fn key(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(&self.path)
    }
}

/// Returns the rows of a parameter structure. A key without a default may hold any structure. The keys in `tables` are
/// not included, because each has its own table of parameters.
pub fn rows<T: Serialize>(prefix: &str, defaults: &T, table: &[Parameter], tables: &[&str]) -> Vec<Row> {
    let defaults = Value::try_from(defaults).ok();
    let of = |parameter: &Parameter| {
        let default = defaults.as_ref().and_then(|all| find(all, parameter.key)).cloned();
        let form = match default {
            Some(Value::Integer(_)) => Form::Whole,
            Some(Value::Float(_)) => Form::Number,
            Some(Value::Boolean(_)) => Form::Flag,
            Some(Value::String(_)) => Form::Word,
            _ => Form::Structure,
        };
        row(prefix, parameter, default, form)
    };
    table.iter().filter(|own| !tables.contains(&own.key)).map(of).collect()
}

/// Returns a value by its dotted path.
fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| value.as_table()?.get(key))
}

/// Returns the row of a parameter in the section `prefix`.
pub fn row(prefix: &str, own: &Parameter, default: Option<Value>, form: Form) -> Row {
    let path = format!("{prefix}.{}", own.key);
    Row { path, default, form, meaning: own.meaning, source: own.source, unit: own.unit(), range: own.range() }
}

pub const OVER: Parameter =
    parameter("over", "the devices below: names, or NAME.NUMBER for one of several", "the machine");
pub const COUNT: Parameter = parameter("count", "number of identical components", "the machine").within(1.0..=4_096.0);
pub const CHANNEL: Parameter =
    parameter("channel", "the channel, or channels in turn, that it is reached by", "the machine");
pub const CACHING: Parameter = parameter(
    "caching",
    "caching policy of the segments in data files: none, default or keep",
    "Oracle: CELL_FLASH_CACHE, default by default",
);
pub const STORAGE: [Parameter; 3] = [
    parameter("redo", "where redo is stored: every member of a log group is written", "the machine"),
    parameter("data", "where data files lie; several are laid end to end", "the machine"),
    parameter("temp", "where sorts spill to; without it, where data files lie", "the machine"),
];

parameters! {
    /// Parameters of a stripe.
    pub struct StripeParameters {
        /// size of the piece that goes to one member
        stripe_kb: u64 = 64, from "chosen: a usual width of the time", in 1.0..=1e9;
    }
}

parameters! {
    /// Parameters of a LUN.
    pub struct LunParameters {
        /// number of requests of a LUN that the host sends at once
        sd_max_throttle: u64 = 256, from "Solaris: sd_max_throttle, 256 by default", in 1.0..=1e6;
    }
}

/// Returns the value in the form of the row; a whole number is converted if the row allows a decimal point.
///
/// # Errors
/// The value has another form, or is out of range.
pub fn fitting(row: &Row, place: &str, value: &Value) -> Result<Value, MachineError> {
    let (low, high) = row.range;
    let wrong = |expected: String| {
        let shown = row.default.as_ref().map(|value| format!("default: {}", text(value)));
        let message = format!("expected {expected}, found {}", text(value));
        MachineError::at(place, message, shown.unwrap_or_else(|| row.meaning.into()))
    };
    let bounds = || format!("from {} to {}", shown(low), shown(high));
    let inside = |found: f64| found >= low && found <= high;
    match (row.form, value) {
        (Form::Whole, Value::Integer(whole)) if inside(*whole as f64) => Ok(value.clone()),
        (Form::Number, Value::Float(float)) if inside(*float) => Ok(value.clone()),
        (Form::Number, Value::Integer(whole)) if inside(*whole as f64) => Ok(Value::Float(*whole as f64)),
        (Form::Flag, Value::Boolean(_)) | (Form::Word, Value::String(_)) => Ok(value.clone()),
        (Form::Structure, _) => match outside_within(row.key(), value) {
            Some((key, found, (low, high))) => {
                let message =
                    format!("expected `{key}` from {} to {}, found {}", shown(low), shown(high), shown(found));
                Err(MachineError::at(place, message, row.meaning))
            }
            None => Ok(value.clone()),
        },
        (Form::Names, _) => {
            names(value).map(|_| value.clone()).ok_or_else(|| wrong("a name, or a list of names".into()))
        }
        (Form::Whole, _) => Err(wrong(format!("a whole number {}", bounds()))),
        (Form::Number, _) => Err(wrong(format!("a number {}", bounds()))),
        (Form::Flag, _) => Err(wrong("true or false".into())),
        (Form::Word, _) => Err(wrong("a word in quotes".into())),
    }
}

/// Searches a structure for the first number outside of the bounds of its key; returns it with these bounds.
fn outside_within(key: &str, value: &Value) -> Option<(String, f64, (f64, f64))> {
    match value {
        Value::Table(table) => table.iter().find_map(|(key, value)| outside_within(key, value)),
        Value::Array(items) => items.iter().find_map(|item| outside_within(key, item)),
        _ => {
            let found = number(value)?;
            let range = WITHIN.iter().find(|row| row.key == key).map_or(unit_of(key).1, Parameter::range);
            let inside = found >= range.0 && found <= range.1;
            (!inside).then(|| (key.into(), found, range))
        }
    }
}

/// Keys of numbers within structures that have bounds of their own, instead of the bounds of their unit.
const WITHIN: [Parameter; 5] = [
    parameter("pages", "numbers of pages of equal popularity", "calibrated from a run").within(1.0..=1e12),
    parameter("rows", "numbers of rows that a script drew", "calibrated from a run").within(0.0..=1e19),
    parameter("table", "number of a table", "calibrated from a run").within(0.0..=4_294_967_295.0),
    parameter("probability", "of the other of two", "the machine").within(0.0..=1.0),
    parameter("sigma", "spread: of the natural logarithm", "the machine").within(0.0..=5.0),
];

/// Returns a setting's text as a value of the row's form.
pub fn from_text(row: &Row, text: &str) -> Value {
    let text = text.trim();
    let listed = || {
        let names = text.split(',').map(|name| Value::String(name.trim().into()));
        Value::Array(names.collect())
    };
    let parsed = || text.parse::<i64>().map(Value::Integer).ok();
    let float = || text.parse::<f64>().map(Value::Float).ok();
    let bare = || Value::String(text.into());
    match row.form {
        Form::Whole | Form::Number => parsed().or_else(float).unwrap_or_else(bare),
        Form::Flag => match text {
            "true" | "on" => Value::Boolean(true),
            "false" | "off" => Value::Boolean(false),
            _ => bare(),
        },
        Form::Names if text.contains(',') => listed(),
        Form::Names | Form::Word => bare(),
        Form::Structure => {
            let wrapped = format!("value = {text}").parse::<toml::Table>().ok();
            wrapped.and_then(|mut table| table.remove("value")).unwrap_or_else(bare)
        }
    }
}

/// Returns the names in a value that contains one name or several.
pub fn names(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(name) => Some(vec![name.clone()]),
        Value::Array(items) if !items.is_empty() => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

/// Returns a value as a user would write it.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(word) => format!("\"{word}\""),
        Value::Float(float) => shown(*float),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", "))
        }
        Value::Table(_) => "a table".into(),
        other => other.to_string(),
    }
}
