//! The sections of a machine: which rows each has, and what must hold between values.

use toml::Value;

use super::error::choices;
use super::schema::{self, Form, KINDS, Row, row};
use super::tree::{Given, Tree};
use super::{Machine, MachineError};
use crate::database::{BufferParameters, RedoParameters};
use crate::device::cache::CacheParameters;
use crate::device::disk::DiskParameters;
use crate::device::empirical::EmpiricalParameters;
use crate::device::flash::FlashParameters;
use crate::device::lun::ChannelParameters;
use crate::device::{Parameter, parameter};

/// The keys at the top of a machine.
pub const TOP: [&str; 5] = ["title", "database", "devices", "cells", "storage"];

/// A part of a machine's storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub name: String,
    pub kind: &'static str,
    pub line: usize,
}

impl Part {
    /// Its section.
    pub fn prefix(&self) -> String {
        format!("devices.{}", self.name)
    }

    /// A parameter of it.
    pub fn path(&self, key: &str) -> String {
        format!("devices.{}.{key}", self.name)
    }

    /// Does it stand over others?
    pub fn is_over(&self) -> bool {
        matches!(self.kind, "cache" | "stripe" | "mirror" | "lun")
    }

    /// Does it stand over one each?
    pub fn is_single(&self) -> bool {
        matches!(self.kind, "cache" | "lun")
    }
}

/// Takes the kinds of the devices out of a text.
pub fn parts(tree: &mut Tree) -> Result<Vec<Part>, MachineError> {
    let devices: Vec<(String, usize)> = tree
        .tables
        .iter()
        .filter_map(|(path, &line)| Some((path.strip_prefix("devices.")?, line)))
        .filter(|(name, _)| !name.contains('.'))
        .map(|(name, line)| (name.to_owned(), line))
        .collect();
    let mut parts = Vec::new();
    for (name, line) in devices {
        let path = format!("devices.{name}.kind");
        let Some(Given { value, line: at, .. }) = tree.values.remove(&path) else {
            let place = format!("line {line}, devices.{name}");
            let step = format!("add `kind = ...`: {}", KINDS.join(", "));
            return Err(MachineError::at(place, "a device says what it is", step));
        };
        let word = value.as_str().unwrap_or_default();
        let Some(kind) = KINDS.into_iter().find(|kind| *kind == word) else {
            let place = format!("line {at}, {path}");
            let message = format!("no such kind of device: {}", schema::text(&value));
            return Err(MachineError::at(place, message, choices(word, &KINDS)));
        };
        parts.push(Part { name, kind, line });
    }
    parts.sort_by_key(|part| part.line);
    Ok(parts)
}

/// Cores of the instance.
const CORES: Parameter = parameter("cores", "cores that sessions and writers share", "chosen");

/// All rows, in the order in which they are shown.
pub fn rows(parts: &[Part], _has_cells: bool, _tree: &Tree) -> Vec<Row> {
    let mut all = vec![row("database", &CORES, Some(Value::Integer(8)), Form::Whole)];
    all.extend(schema::rows("database.redo", &RedoParameters::default(), &RedoParameters::TABLE));
    let buffers = BufferParameters::default();
    all.extend(schema::rows("database.buffers", &buffers, &BufferParameters::TABLE));
    for part in parts {
        all.extend(part_rows(part));
    }
    let storage = schema::STORAGE.iter().map(|place| row("storage", place, None, Form::Names));
    all.extend(storage);
    all
}

fn part_rows(part: &Part) -> Vec<Row> {
    let prefix = part.prefix();
    let whole =
        |own: &Parameter, value| row(&prefix, own, Some(Value::Integer(value)), Form::Whole);
    let mut own = Vec::new();
    if part.is_over() {
        own.push(row(&prefix, &schema::OVER, None, Form::Names));
    }
    if part.kind == "lun" {
        own.push(row(&prefix, &schema::CHANNEL, None, Form::Names));
        own.push(whole(&schema::SD_MAX_THROTTLE, 256));
    }
    if part.kind == "stripe" {
        own.push(whole(&schema::STRIPE_KB, 64));
    }
    if part.is_single() {
        own.push(row(&prefix, &schema::COUNT, None, Form::Whole));
    } else {
        own.push(whole(&schema::COUNT, 1));
    }
    own.extend(match part.kind {
        "disk" => schema::rows(&prefix, &DiskParameters::default(), &DiskParameters::TABLE),
        "flash" => schema::rows(&prefix, &FlashParameters::default(), &FlashParameters::TABLE),
        "cache" => schema::rows(&prefix, &CacheParameters::default(), &CacheParameters::TABLE),
        "channel" => {
            schema::rows(&prefix, &ChannelParameters::default(), &ChannelParameters::TABLE)
        }
        "empirical" => {
            let defaults = EmpiricalParameters { capacity_gb: 100.0, servers: 1, regimes: vec![] };
            let mut rows = schema::rows(&prefix, &defaults, &EmpiricalParameters::TABLE);
            rows.iter_mut().for_each(|row| row.default = None);
            rows
        }
        _ => Vec::new(),
    });
    own
}

/// Is it a row of the machine itself, not of a parameter structure?
pub fn is_own(path: &str) -> bool {
    let key = path.rsplit('.').next().unwrap_or(path);
    let own = [
        &schema::OVER,
        &schema::COUNT,
        &schema::CHANNEL,
        &schema::STRIPE_KB,
        &schema::SD_MAX_THROTTLE,
    ];
    path.starts_with("devices.") && own.iter().any(|row| row.key == key)
}

/// Reads every section once: words and structures are checked by their own readers.
pub fn check(machine: &Machine) -> Result<(), MachineError> {
    machine.section::<RedoParameters>("database.redo")?;
    machine.section::<BufferParameters>("database.buffers")?;
    for part in &machine.parts {
        let prefix = part.prefix();
        match part.kind {
            "disk" => drop(machine.section::<DiskParameters>(&prefix)?),
            "flash" => drop(machine.section::<FlashParameters>(&prefix)?),
            "cache" => drop(machine.section::<CacheParameters>(&prefix)?),
            "channel" => drop(machine.section::<ChannelParameters>(&prefix)?),
            "empirical" => drop(machine.section::<EmpiricalParameters>(&prefix)?),
            _ => {}
        }
    }
    Ok(())
}
