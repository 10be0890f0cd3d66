//! What may stand in a machine: every parameter with its default, form, range and source.
//!
//! The rows of a section are made from the parameter structure itself: its default, as TOML, gives
//! keys, forms and defaults; its `TABLE` gives meanings and sources. What counts as out of range is
//! told here, by key.

use serde::Serialize;
use toml::Value;

use super::error::MachineError;
use crate::device::{Parameter, parameter};

/// What a value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Whole,
    Number,
    Flag,
    Word,
    /// One name or a list of names.
    Names,
    /// Anything: the section's own reader decides.
    Structure,
}

/// One parameter of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub path: String,
    /// `None`: it must be given, or follows from others.
    pub default: Option<Value>,
    pub form: Form,
    pub meaning: &'static str,
    pub source: &'static str,
}

impl Row {
    /// The last word of the path.
    pub fn key(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(&self.path)
    }

    /// Unit, from the last word of the key.
    pub fn unit(&self) -> &'static str {
        unit(self.key())
    }

    /// Bounds of a number.
    pub fn range(&self) -> (f64, f64) {
        range(self.key())
    }
}

/// The rows of a parameter structure. What a default leaves out may hold any structure; what has a
/// table of its own is left to it.
pub fn rows<T: Serialize>(prefix: &str, defaults: &T, table: &[Parameter], tables: &[&str]) -> Vec<Row> {
    let defaults = Value::try_from(defaults).ok();
    let row = |parameter: &Parameter| {
        let default = defaults.as_ref().and_then(|all| find(all, parameter.key)).cloned();
        let form = match default {
            Some(Value::Integer(_)) => Form::Whole,
            Some(Value::Float(_)) => Form::Number,
            Some(Value::Boolean(_)) => Form::Flag,
            Some(Value::String(_)) => Form::Word,
            _ => Form::Structure,
        };
        let path = format!("{prefix}.{}", parameter.key);
        Row { path, default, form, meaning: parameter.meaning, source: parameter.source }
    };
    table.iter().filter(|own| !tables.contains(&own.key)).map(row).collect()
}

/// A value by its dotted path.
fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| value.as_table()?.get(key))
}

/// A row of the machine itself.
pub fn row(prefix: &str, own: &Parameter, default: Option<Value>, form: Form) -> Row {
    let path = format!("{prefix}.{}", own.key);
    Row { path, default, form, meaning: own.meaning, source: own.source }
}

pub const OVER: Parameter =
    parameter("over", "the devices below: names, or NAME.NUMBER for one of several", "the machine");
pub const COUNT: Parameter = parameter("count", "how many of it", "the machine");
pub const CHANNEL: Parameter =
    parameter("channel", "the channel, or channels in turn, that it is reached by", "the machine");
pub const STRIPE_KB: Parameter =
    parameter("stripe_kb", "piece that goes to one member", "chosen: a usual width of the time");
pub const SD_MAX_THROTTLE: Parameter = parameter(
    "sd_max_throttle",
    "requests of a LUN that the host lets out at once",
    "Solaris: sd_max_throttle, 256 by default",
);
pub const CACHING: Parameter = parameter(
    "caching",
    "caching policy of the segments in data files: none, default or keep",
    "Oracle: CELL_FLASH_CACHE, default by default",
);
pub const STORAGE: [Parameter; 3] = [
    parameter("redo", "where redo lies: every member of a log group is written", "the machine"),
    parameter("data", "where data files lie; several are laid end to end", "the machine"),
    parameter("temp", "where sorts spill to; without it, where data files lie", "the machine"),
];

/// Which kinds of parts there are.
pub const KINDS: [&str; 8] = ["disk", "flash", "cache", "stripe", "mirror", "lun", "channel", "empirical"];

/// Units by the last word of a key; `MB/s` is two words.
const UNITS: [(&str, &str); 12] = [
    ("mb_s", "MB/s"),
    ("ns", "ns"),
    ("us", "us"),
    ("ms", "ms"),
    ("s", "s"),
    ("bytes", "bytes"),
    ("kb", "KB"),
    ("mb", "MB"),
    ("gb", "GB"),
    ("rpm", "rpm"),
    ("ratio", "share"),
    ("percent", "%"),
];

fn unit(key: &str) -> &'static str {
    let is = |word: &str| key == word || key.ends_with(&format!("_{word}"));
    UNITS.iter().find(|(word, _)| is(word)).map_or("", |&(_, unit)| unit)
}

/// Ranges of keys that are narrower than their unit's.
const RANGES: [(&str, f64, f64); 34] = [
    ("count", 1.0, 4_096.0),
    ("cores", 1.0, 1e6),
    ("rotation_rpm", 1.0, 1e6),
    ("capacity_gb", 0.001, 1e9),
    ("capacity_mb", 1.0, 1e6),
    ("zones", 1.0, 1e4),
    ("cylinders", 1.0, 1e9),
    ("page_bytes", 512.0, 1_048_576.0),
    ("pages_per_block", 1.0, 65_536.0),
    ("over_provisioning_ratio", 0.01, 10.0),
    ("dies", 1.0, 4_096.0),
    ("line_kb", 1.0, 1e6),
    ("stripe_kb", 1.0, 1e9),
    ("sd_max_throttle", 1.0, 1e6),
    ("queue_limit", 1.0, 1e6),
    ("servers", 1.0, 1e6),
    ("destages", 1.0, 1e6),
    ("block_bytes", 512.0, 1_048_576.0),
    ("buffer_kb", 64.0, 1e7),
    ("trigger_kb", 1.0, 1e7),
    ("timeout_s", 0.001, 1e6),
    ("buffers", 8.0, 1e9),
    ("writes", 1.0, 1e5),
    ("write_kb", 1.0, 1e6),
    ("groups", 2.0, 1_000.0),
    ("file_mb", 1.0, 1e7),
    ("slice_ms", 0.001, 1e6),
    ("disks", 1.0, 4_096.0),
    ("modules", 0.0, 4_096.0),
    ("simulated_mb", 1.0, 1e5),
    ("extent_mb", 1.0, 1e6),
    ("warm_mb", 0.0, 1e6),
    ("share", 0.0, 32.0),
    ("sessions", 1.0, 65_535.0),
];

fn range(key: &str) -> (f64, f64) {
    if let Some(&(_, low, high)) = RANGES.iter().find(|(name, ..)| *name == key) {
        return (low, high);
    }
    match unit(key) {
        "MB/s" => (0.001, 1e9),
        "share" => (0.0, 1.0),
        "%" => (0.0, 100.0),
        _ => (0.0, 1e15),
    }
}

/// The value as the row wants it: a whole number where a number may have a point is widened.
pub fn fitting(row: &Row, place: &str, value: &Value) -> Result<Value, MachineError> {
    let (low, high) = row.range();
    let wrong = |expected: String| {
        let shown = row.default.as_ref().map(|value| format!("default: {}", text(value)));
        let message = format!("expected {expected}, found {}", text(value));
        MachineError::at(place, message, shown.unwrap_or_else(|| row.meaning.into()))
    };
    let bounds = || format!("from {} to {}", number(low), number(high));
    let inside = |number: f64| number.is_finite() && number >= low && number <= high;
    match (row.form, value) {
        (Form::Whole, Value::Integer(whole)) if inside(*whole as f64) => Ok(value.clone()),
        (Form::Number, Value::Float(float)) if inside(*float) => Ok(value.clone()),
        (Form::Number, Value::Integer(whole)) if inside(*whole as f64) => Ok(Value::Float(*whole as f64)),
        (Form::Flag, Value::Boolean(_)) | (Form::Word, Value::String(_)) | (Form::Structure, _) => Ok(value.clone()),
        (Form::Names, _) => {
            names(value).map(|_| value.clone()).ok_or_else(|| wrong("a name, or a list of names".into()))
        }
        (Form::Whole, _) => Err(wrong(format!("a whole number {}", bounds()))),
        (Form::Number, _) => Err(wrong(format!("a number {}", bounds()))),
        (Form::Flag, _) => Err(wrong("true or false".into())),
        (Form::Word, _) => Err(wrong("a word in quotes".into())),
    }
}

/// A setting's text as the row wants it.
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

/// The names of a value that holds one or several.
pub fn names(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(name) => Some(vec![name.clone()]),
        Value::Array(items) if !items.is_empty() => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

/// A value as it would be written.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(word) => format!("\"{word}\""),
        Value::Float(float) => number(*float),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", "))
        }
        Value::Table(_) => "a table".into(),
        other => other.to_string(),
    }
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value:.0}") } else { format!("{value}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_the_last_word_of_the_key() {
        assert_eq!((unit("rate_mb_s"), unit("learn_every_s"), unit("s")), ("MB/s", "s", "s"));
        assert_eq!((unit("capacity_mb"), unit("scan_ratio"), unit("zones")), ("MB", "share", ""));
    }
}
