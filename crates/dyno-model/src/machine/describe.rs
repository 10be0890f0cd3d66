//! A machine as it is shown: parts, and every parameter with its value and source.

use serde::Serialize;
use toml::Value;

use super::{Machine, schema};

/// A machine as it is shown.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    /// What it is.
    pub title: String,
    /// Parts of its storage, as in the text.
    pub parts: Vec<PartLine>,
    /// All parameters.
    pub parameters: Vec<ParameterLine>,
}

/// A part.
#[derive(Clone, Debug, Serialize)]
pub struct PartLine {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// What it stands over.
    pub over: Vec<String>,
    /// How many there are.
    pub count: u64,
    /// What it is, in a line.
    pub text: String,
}

/// A parameter.
#[derive(Clone, Debug, Serialize)]
pub struct ParameterLine {
    /// Dotted path.
    pub path: String,
    /// Present value, as TOML has it; none where it must be given and is not.
    pub value: Option<Value>,
    /// What it is if nobody says anything.
    pub default: Option<Value>,
    /// Its unit; empty for counts and words.
    pub unit: String,
    /// What it means.
    pub meaning: String,
    /// Who says so.
    pub source: String,
    /// Was it given by the machine or by a setting?
    pub given: bool,
}

impl Machine {
    /// Parts and parameters.
    pub fn describe(&self) -> Description {
        let parts = self.parts.iter().map(|part| self.part_line(part)).collect();
        let parameters = self.rows.iter().map(|row| {
            let given = self.given.get(&row.path);
            // A value that differs from its default and names nobody was chosen by the machine.
            let source = match given {
                Some(given) if Some(&given.value) != row.default.as_ref() => {
                    given.source.clone().unwrap_or_else(|| "chosen by the machine".into())
                }
                Some(given) => given.source.clone().unwrap_or_else(|| row.source.into()),
                None => row.source.into(),
            };
            ParameterLine {
                path: row.path.clone(),
                value: self.value(&row.path).cloned(),
                default: row.default.clone(),
                unit: row.unit().into(),
                meaning: row.meaning.into(),
                source,
                given: given.is_some(),
            }
        });
        Description { title: self.title.clone(), parts, parameters: parameters.collect() }
    }

    fn part_line(&self, part: &super::Part) -> PartLine {
        let count = self.count(part);
        let over = self.names(&part.path("over"));
        let channel = self.names(&part.path("channel"));
        let mut text = if count == 1 { String::new() } else { format!("{count} x ") };
        text.push_str(part.kind);
        for (word, value) in self.telling(part) {
            text.push_str(&format!(", {word} {value}"));
        }
        if !channel.is_empty() {
            text.push_str(&format!(", by {}", channel.join(", ")));
        }
        PartLine { name: part.name.clone(), kind: part.kind.into(), over, count, text }
    }

    /// What is most telling about a part.
    fn telling(&self, part: &super::Part) -> Vec<(String, String)> {
        let keys: &[&str] = match part.kind {
            "disk" => &["capacity_gb", "rotation_rpm"],
            "flash" => &["capacity_mb", "dies", "page_bytes"],
            "cache" => &["capacity_kb", "battery"],
            "stripe" => &["stripe_kb"],
            "lun" => &["sd_max_throttle"],
            "channel" => &["queue_limit", "rate_mb_s"],
            _ => &[],
        };
        let shown = |key: &&str| {
            let value = self.value(&part.path(key))?;
            let row = self.rows.iter().find(|row| row.path == part.path(key))?;
            let name = key.strip_suffix(&format!("_{}", key.rsplit('_').next()?)).unwrap_or(key);
            let name = if row.unit().is_empty() { key } else { name };
            let value = format!("{} {}", schema::text(value), row.unit());
            Some((name.replace('_', " "), value.trim().to_owned()))
        };
        keys.iter().filter_map(shown).collect()
    }
}
