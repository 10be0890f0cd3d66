//! Description of a machine: parts, and every parameter with its value and source.

use serde::Serialize;
use toml::Value;

use super::Machine;
use super::kind::PartKind;
use super::schema::{self, Form};

/// Description of a machine.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    /// Title of the machine.
    pub title: String,
    /// Databases beside `ORCL`.
    pub databases: Vec<DatabaseLine>,
    /// Parts of the machine's storage, in the order of the text.
    pub parts: Vec<PartLine>,
    /// All parameters.
    pub parameters: Vec<ParameterLine>,
}

/// A database beside `ORCL`.
#[derive(Clone, Debug, Serialize)]
pub struct DatabaseLine {
    /// Name of the database.
    pub name: String,
    /// Description in one line.
    pub text: String,
}

/// A part of the storage.
#[derive(Clone, Debug, Serialize)]
pub struct PartLine {
    /// Name of the part.
    pub name: String,
    /// Kind of the part.
    pub kind: String,
    /// Names of the parts below it.
    pub over: Vec<String>,
    /// Number of the part's devices.
    pub count: u64,
    /// Description in one line.
    pub text: String,
}

/// A parameter.
#[derive(Clone, Debug, Serialize)]
pub struct ParameterLine {
    /// Dotted path.
    pub path: String,
    /// Current value as TOML; `None` if it is required and missing.
    pub value: Option<Value>,
    /// Default value.
    pub default: Option<Value>,
    /// Unit; empty for counts and words.
    pub unit: String,
    /// Bounds; `None` if the parameter is not a number.
    pub range: Option<(f64, f64)>,
    /// Meaning.
    pub meaning: String,
    /// Source of the value.
    pub source: String,
    /// Interval in which the value is known to lie, if the machine states one.
    pub interval: Option<(f64, f64)>,
    /// True if the machine or a setting sets the value.
    pub given: bool,
}

impl Machine {
    /// Returns the description of the machine.
    pub fn describe(&self) -> Description {
        let cells = self.cell_lines();
        let parts = cells.into_iter().chain(self.parts.iter().map(|part| self.part_line(part)));
        let parts = parts.collect();
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
                unit: row.unit.into(),
                range: matches!(row.form, Form::Whole | Form::Number).then_some(row.range),
                meaning: row.meaning.into(),
                source,
                interval: given.and_then(|given| given.interval),
                given: given.is_some(),
            }
        });
        let (databases, parameters) = (self.database_lines(), parameters.collect());
        Description { title: self.title.clone(), databases, parts, parameters }
    }

    /// Returns the storage cells as parts: groups over cells, cells over disks and flash.
    fn cell_lines(&self) -> Vec<PartLine> {
        let Ok(Some(rack)) = self.rack() else { return Vec::new() };
        let line = |name: &str, kind: &str, over: &[&str], count, text| PartLine {
            name: name.into(),
            kind: kind.into(),
            over: over.iter().map(|&below| below.into()).collect(),
            count,
            text,
        };
        let groups = rack.groups.iter().map(|(name, group)| {
            let (copies, size_gb) = (group.redundancy.copies(), group.size_gb);
            let text = format!("disk group, {copies} copies, grid disks of {size_gb} GB");
            line(name, "group", &["cells"], 1, text)
        });
        let mut lines: Vec<PartLine> = groups.collect();
        let (disks, modules) = (rack.count * rack.disks, rack.count * rack.modules);
        let (log, cache) = (&rack.flash_log, &rack.flash_cache);
        let word = |path: &str| self.value(path).map(schema::text).unwrap_or_default();
        let text = format!(
            "{} x storage cell, flash log {}, flash cache {} of {} GB",
            rack.count,
            if log.enabled { "on" } else { "off" },
            word("cells.flash_cache.mode").trim_matches('"'),
            cache.size_gb
        );
        lines.push(line("cells", "cells", &["cells.disk", "cells.flash"], rack.count, text));
        let rpm = rack.disk.rotation_rpm;
        let text = format!(
            "{disks} x disk, {} GB, {rpm} rpm, behind a controller of {} KB a cell",
            rack.disk.capacity_gb, rack.controller.capacity_kb
        );
        lines.push(line("cells.disk", "disk", &[], disks, text));
        let text = format!("{modules} x flash module, {} dies", rack.flash.dies);
        lines.push(line("cells.flash", "flash", &[], modules, text));
        lines
    }

    fn part_line(&self, part: &super::Part) -> PartLine {
        let count = self.count(part);
        let over = self.names(&part.path("over"));
        let channel = self.names(&part.path("channel"));
        let mut text = if count == 1 { String::new() } else { format!("{count} x ") };
        text.push_str(part.kind.name());
        for (word, value) in self.telling(part) {
            text = format!("{text}, {word} {value}");
        }
        if !channel.is_empty() {
            text = format!("{text}, by {}", channel.join(", "));
        }
        PartLine { name: part.name.clone(), kind: part.kind.name().into(), over, count, text }
    }

    /// Returns the most informative parameters of a part.
    fn telling(&self, part: &super::Part) -> Vec<(String, String)> {
        let keys: &[&str] = match part.kind {
            PartKind::Disk => &["capacity_gb", "rotation_rpm"],
            PartKind::Flash => &["capacity_mb", "dies", "page_bytes"],
            PartKind::Cache => &["capacity_kb", "battery"],
            PartKind::Stripe | PartKind::Raid5 => &["stripe_kb"],
            PartKind::Lun => &["sd_max_throttle"],
            PartKind::Channel => &["queue_limit", "rate_mb_s"],
            PartKind::Volume => &["capacity_gb", "iops", "throughput_mb_s"],
            PartKind::Mirror | PartKind::Race | PartKind::Empirical => &[],
        };
        let shown = |key: &&str| {
            let value = self.value(&part.path(key))?;
            let row = self.rows.iter().find(|row| row.path == part.path(key))?;
            let name = key.strip_suffix(&format!("_{}", key.rsplit('_').next()?)).unwrap_or(key);
            let name = if row.unit.is_empty() { key } else { name };
            let value = format!("{} {}", schema::text(value), row.unit);
            Some((name.replace('_', " "), value.trim().to_owned()))
        };
        keys.iter().filter_map(shown).collect()
    }
}
