//! A parameter of a machine or a workload: its meaning, source and bounds.
//!
//! A structure of parameters is declared once, by `parameters!`: the reader of machines, the output of `model check`
//! and docs/reference/model-parameters.md are made from that declaration.
//!
//! The unit is the last word of the key, and bounds follow from the unit: a time is at most an hour, a share is from 0
//! to 1. A parameter with other bounds declares them (`in 1.0..=4_096.0`).
//!
//! ```
//! use dyno_model::device::{flash::FlashParameters, parameter};
//!
//! let dies = FlashParameters::TABLE.iter().find(|row| row.key == "dies").unwrap();
//! assert_eq!(dies.range(), (1.0, 4_096.0));
//! assert_eq!(parameter("read_us", "read of a page", "data sheet").range(), (0.0, 3.6e9));
//! ```
//!
//! The bounds are those that the model was tested with: every value within them runs, or is refused with a reason
//! (`tests/run_swarm.rs`). They do not say which values are reasonable for a device.

use std::ops::RangeInclusive;

use serde::Serialize;
use toml::Value;

/// Parameter of a machine: its meaning and its source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Key in the parameter file; the unit is its last word.
    pub key: &'static str,
    /// Meaning of the parameter.
    pub meaning: &'static str,
    /// Source of the parameter's default.
    pub source: &'static str,
    /// Bounds of the parameter, if they differ from the bounds of its unit.
    own: Option<(f64, f64)>,
}

/// Declares a structure of parameters. Each parameter has a meaning (the doc comment), a type, a default, a source and,
/// if it differs from that of its unit, a range. Without defaults all values are required. The macro makes the
/// structure, its reader and writer, its defaults and its `TABLE`.
macro_rules! parameters {
    (
        $(#[doc = $about:literal])+
        pub struct $name:ident {
            $(
                $(#[doc = $meaning:literal])+
                $key:ident: $type:ty = $default:expr, from $source:expr $(, in $range:expr)?;
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[doc = $meaning])+ pub $key: $type,)+
        }

        $crate::device::parameters!(@table $name $($($meaning)+, $key, $source $(, $range)?;)+);

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)+ }
            }
        }
    };
    (
        $(#[doc = $about:literal])+
        pub struct $name:ident {
            $(
                $(#[doc = $meaning:literal])+
                $key:ident: $type:ty, from $source:expr $(, in $range:expr)?;
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[doc = $meaning])+ pub $key: $type,)+
        }

        $crate::device::parameters!(@table $name $($($meaning)+, $key, $source $(, $range)?;)+);
    };
    (@table $name:ident $($($meaning:literal)+, $key:ident, $source:expr $(, $range:expr)?;)+) => {
        impl $name {
            /// Key, meaning, source and bounds of each parameter.
            pub const TABLE: &'static [$crate::device::Parameter] = &[$(
                $crate::device::parameter(stringify!($key), concat!($($meaning),+).trim_ascii_start(), $source)
                    $(.within($range))?,
            )+];
        }
    };
}
pub(crate) use parameters;

/// Returns a row of a table of parameters.
pub const fn parameter(key: &'static str, meaning: &'static str, source: &'static str) -> Parameter {
    Parameter { key, meaning, source, own: None }
}

impl Parameter {
    /// Sets bounds, both of which are allowed values.
    #[must_use]
    pub const fn within(self, range: RangeInclusive<f64>) -> Self {
        Self { own: Some((*range.start(), *range.end())), ..self }
    }

    /// Returns the bounds, both of which are allowed values.
    pub fn range(&self) -> (f64, f64) {
        self.own.unwrap_or_else(|| unit_of(self.key).1)
    }

    /// Returns the unit; empty for counts and words.
    pub fn unit(&self) -> &'static str {
        unit_of(self.key).0
    }
}

/// A number out of its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outside {
    /// Key of the parameter.
    pub key: &'static str,
    /// Value that was found.
    pub found: f64,
    /// Allowed range.
    pub range: (f64, f64),
}

impl Outside {
    /// Returns the allowed range as text.
    pub fn allowed(&self) -> String {
        format!("from {} to {}", shown(self.range.0), shown(self.range.1))
    }
}

/// Returns a number as a user would write it; a number with many digits has an exponent.
pub fn shown(value: f64) -> String {
    let plain = value == 0.0 || (1e-4..1e15).contains(&value.abs()) || !value.is_finite();
    if plain { format!("{value}") } else { format!("{value:e}") }
}

/// Returns the first number of a parameter structure that is out of the bounds of its row in the table.
pub fn outside<T: Serialize>(parameters: &T, table: &[Parameter]) -> Option<Outside> {
    let values = Value::try_from(parameters).ok()?;
    table.iter().find_map(|row| {
        let found = number(values.as_table()?.get(row.key)?)?;
        let (low, high) = row.range();
        let inside = found >= low && found <= high;
        (!inside).then_some(Outside { key: row.key, found, range: (low, high) })
    })
}

/// Returns the value as a number, whether it is written as a whole number or not.
pub fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

/// An hour: the longest time of a parameter [s].
const HOUR_S: f64 = 3_600.0;

/// Units by the last words of a key, and the bounds of values in this unit.
const UNITS: [(&str, &str, (f64, f64)); 14] = [
    ("us_per_kb", "us/KB", (0.0, 1e6)),
    ("us_per_io", "us", (0.0, HOUR_S * 1e6)),
    ("mb_s", "MB/s", (0.001, 1e6)),
    ("ns", "ns", (0.0, HOUR_S * 1e9)),
    ("us", "us", (0.0, HOUR_S * 1e6)),
    ("ms", "ms", (0.0, HOUR_S * 1e3)),
    ("s", "s", (0.0, HOUR_S)),
    ("bytes", "bytes", (0.0, 1e12)),
    ("kb", "KB", (0.0, 1e9)),
    ("mb", "MB", (0.0, 1e6)),
    ("gb", "GB", (0.0, 1e6)),
    ("rpm", "rpm", (1.0, 1e6)),
    ("ratio", "share", (0.0, 1.0)),
    ("percent", "%", (0.0, 100.0)),
];

/// Returns the unit and the bounds that follow from the end of a key; without a unit, a number is at most a million.
pub fn unit_of(key: &str) -> (&'static str, (f64, f64)) {
    let is = |word: &str| key.strip_suffix(word).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'));
    let found = UNITS.iter().find(|(word, ..)| is(word));
    found.map_or(("", (0.0, 1e6)), |&(_, unit, range)| (unit, range))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_the_last_word_of_the_key() {
        let unit = |key| unit_of(key).0;
        assert_eq!((unit("rate_mb_s"), unit("learn_every_s"), unit("s")), ("MB/s", "s", "s"));
        assert_eq!((unit("capacity_mb"), unit("scan_ratio"), unit("zones")), ("MB", "share", ""));
        assert_eq!((unit("copy_us_per_kb"), unit("cpu_us_per_io"), unit("us")), ("us/KB", "us", "us"));
    }

    #[test]
    fn a_number_of_300_digits_is_written_in_a_few() {
        assert_eq!(shown(1e300), "1e300");
        assert_eq!((&*shown(3.6e9), &*shown(0.001), &*shown(0.0)), ("3600000000", "0.001", "0"));
        assert_eq!(shown(1.5e-9), "1.5e-9");
    }

    #[test]
    fn a_number_out_of_its_bounds_is_found() {
        #[derive(Serialize)]
        struct Two {
            wait_us: f64,
            dies: u64,
        }
        let table = [parameter("wait_us", "", ""), parameter("dies", "", "").within(1.0..=8.0)];
        let found = |wait_us, dies| outside(&Two { wait_us, dies }, &table).map(|wrong| wrong.key);
        assert_eq!((found(1.0, 8), found(4e9, 8), found(1.0, 0)), (None, Some("wait_us"), Some("dies")));
        assert_eq!((found(f64::NAN, 8), found(f64::INFINITY, 8)), (Some("wait_us"), Some("wait_us")));
    }
}
