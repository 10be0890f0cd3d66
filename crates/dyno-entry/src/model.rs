//! Data of a profile's page (its model), for profiles without warnings; `trace/profile.py` makes the models of all
//! others.

use std::path::Path;

use serde_json::Value;

use crate::json::{self, Out};
use crate::reading::Found;

/// A profile without a warning.
pub struct Model<'a> {
    found: &'a Found,
    /// Title: the files that were read.
    pub title: String,
}

impl<'a> Model<'a> {
    /// Builds the model from the core's answer; `None` if the page must show a warning.
    pub fn of(found: &'a Found, names: &[String]) -> Option<Self> {
        let empty = |name: &str| found.get(name).is_some_and(json::is_empty);
        let quiet = empty("refused") && empty("warnings") && empty("unread");
        let files = found.get("files")?.as_u64()?;
        let model = Self { found, title: title(names, files) };
        let waits = model.rows().iter().any(|row| row["what"] == "wait");
        (quiet && files > 0 && waits).then_some(model)
    }

    /// Returns the lines of the profile, longest time first.
    pub fn rows(&self) -> &'a [Value] {
        self.list("rows")
    }

    /// Returns the calls, grouped by kind.
    pub fn calls(&self) -> &'a [Value] {
        self.list("calls")
    }

    fn list(&self, name: &str) -> &'a [Value] {
        self.found.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Returns the value of the profile's fact with this name.
    pub fn fact(&self, name: &str) -> &'a Value {
        self.found.get(name).unwrap_or(&Value::Null)
    }

    /// Returns the model as `--format json` prints it.
    pub fn json(&self) -> String {
        let mut out = Out::default();
        out.open('{');
        for (name, value) in [("schema", Value::from(1)), ("kind", "trace".into()), ("page", "profile".into())] {
            out.entry(name, &value);
        }
        out.key("facts");
        out.open('{');
        for name in ["files", "bytes", "lines", "sessions", "elapsed_ns", "from_ns", "to_ns"] {
            out.entry(name, self.fact(name));
        }
        out.entry("title", &self.title.as_str().into());
        out.entry("versions", &Value::Array(Vec::new()));
        out.entry("levels", &Value::Array(Vec::new()));
        out.close('}');
        self.profile(&mut out);
        out.entry("calls", self.fact("calls"));
        out.entry("statements", self.fact("statements"));
        out.entry("warnings", &Value::Array(Vec::new()));
        out.entry("refused", &Value::Array(Vec::new()));
        out.entry("torn", &0.into());
        out.close('}');
        out.end()
    }

    fn profile(&self, out: &mut Out) {
        let left = self.fact("left_out_by_top");
        let of = |row: &Value| row["total_ns"].as_i64().unwrap_or(0);
        let shown: i64 = self.rows().iter().map(of).fold(of(left), i64::saturating_add);
        out.key("profile");
        out.open('{');
        out.entry("by", self.fact("by"));
        out.entry("rows", self.fact("rows"));
        out.entry("left_out", left);
        out.entry("elapsed_ns", self.fact("elapsed_ns"));
        out.entry("shown_ns", &shown.into());
        out.entry("is_part", &false.into());
        out.close('}');
    }
}

/// Returns the name of the first file and how many more files there are; if the core read more or fewer files than
/// there are names, the first three names as they are.
fn title(names: &[String], files: u64) -> String {
    let short = |name: &String| {
        Path::new(name).file_name().map_or_else(|| name.clone(), |own| own.to_string_lossy().into_owned())
    };
    match names {
        [only] => short(only),
        [first, ..] if names.len() as u64 == files => format!("{} and {} more", short(first), names.len() - 1),
        _ => names.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", "),
    }
}
