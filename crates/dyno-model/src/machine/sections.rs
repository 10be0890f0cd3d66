//! Sections of a machine: the rows of each, and the rules between values.

use serde::de::DeserializeOwned;
use toml::Value;

use super::beside::{self, Beside};
use super::error::choices;
use super::instance::instance_rows;
use super::kind::PartKind;
use super::schema::{self, Form, LunParameters, Row, StripeParameters, row};
use super::tree::{GivenValue, Tree};
use super::{Machine, MachineError};
use crate::cell::iorm::{Directive, IormParameters};
use crate::cell::parameters::{FlashCacheParameters, FlashLogParameters, NetworkParameters, ScanParameters};
use crate::cell::{CellError, GroupParameters, RackParameters};
use crate::database::InstanceParameters;
use crate::device::cache::CacheParameters;
use crate::device::disk::DiskParameters;
use crate::device::empirical::EmpiricalParameters;
use crate::device::flash::FlashParameters;
use crate::device::lun::ChannelParameters;
use crate::device::raid5::Raid5Parameters;
use crate::device::volume::VolumeParameters;

/// Keys at the top level of a machine.
pub const TOP: [&str; 7] = ["title", "database", "databases", "postgres", "devices", "cells", "storage"];

/// A part of a machine's storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub name: String,
    pub kind: PartKind,
    pub line: usize,
}

impl Part {
    /// Returns the path of the part's section.
    pub fn prefix(&self) -> String {
        format!("devices.{}", self.name)
    }

    /// Returns the kind of the part with an article, for use in a sentence.
    pub fn called(&self) -> String {
        if self.kind == PartKind::Empirical { "an empirical device".into() } else { format!("a {}", self.kind) }
    }

    /// Returns the path of one of the part's parameters.
    pub fn path(&self, key: &str) -> String {
        format!("devices.{}.{key}", self.name)
    }
}

/// Returns the parts of the storage that a machine's text defines, and removes their kinds from `tree`.
///
/// # Errors
/// The machine is invalid: the error names the place and what is allowed.
pub fn parts(tree: &mut Tree) -> Result<Vec<Part>, MachineError> {
    let devices: Vec<(String, usize)> = tree
        .tables
        .iter()
        .filter_map(|(path, &line)| Some((path.strip_prefix("devices.")?, line)))
        .filter(|(name, _)| !name.contains('.'))
        .map(|(name, line)| (name.to_owned(), line))
        .collect();
    let kinds = PartKind::ALL.map(PartKind::name);
    let mut parts = Vec::new();
    for (name, line) in devices {
        let path = format!("devices.{name}.kind");
        let Some(GivenValue { value, line: at, .. }) = tree.values.remove(&path) else {
            let place = format!("line {line}, devices.{name}");
            let step = format!("add `kind = ...`: {}", kinds.join(", "));
            return Err(MachineError::at(place, "the device has no kind", step));
        };
        let word = value.as_str().unwrap_or_default();
        let Some(kind) = PartKind::ALL.into_iter().find(|kind| kind.name() == word) else {
            let place = format!("line {at}, {path}");
            let message = format!("no such kind of device: {}", schema::text(&value));
            return Err(MachineError::at(place, message, choices(word, &kinds)));
        };
        parts.push(Part { name, kind, line });
    }
    parts.sort_by_key(|part| part.line);
    Ok(parts)
}

/// Returns the names of the tables directly below the table `prefix`, such as the groups of cells.
fn below(tree: &Tree, prefix: &str) -> Vec<String> {
    let start = format!("{prefix}.");
    let names = tree.tables.keys().filter_map(|path| path.strip_prefix(&start));
    names.filter(|name| !name.contains('.')).map(str::to_owned).collect()
}

/// Returns all rows in the order in which they are shown.
pub fn rows(parts: &[Part], beside: &[Beside], has_cells: bool, tree: &Tree) -> Vec<Row> {
    let mut all = instance_rows("database", has_cells);
    if has_cells {
        all.extend(cell_rows(tree));
    }
    for part in parts {
        all.extend(part_rows(part));
    }
    let storage = schema::STORAGE.iter().map(|place| row("storage", place, None, Form::Names));
    all.extend(storage);
    if has_cells {
        let policy = Some(Value::String("default".into()));
        all.push(row("storage", &schema::CACHING, policy, Form::Word));
    }
    all.extend(beside.iter().flat_map(|database| database.rows(has_cells)));
    all
}

/// Tables of a rack that have a table of parameters of their own.
const CELL_TABLES: [&str; 9] =
    ["disk", "controller", "flash", "network", "flash_log", "flash_cache", "scan", "iorm", "groups"];

fn cell_rows(tree: &Tree) -> Vec<Row> {
    let rack = RackParameters::default();
    let mut all = schema::rows("cells", &rack, RackParameters::TABLE, &CELL_TABLES);
    all.extend(schema::rows("cells.disk", &rack.disk, DiskParameters::TABLE, &[]));
    all.extend(schema::rows("cells.controller", &rack.controller, CacheParameters::TABLE, &[]));
    all.extend(schema::rows("cells.flash", &rack.flash, FlashParameters::TABLE, &[]));
    all.extend(schema::rows("cells.network", &rack.network, NetworkParameters::TABLE, &[]));
    all.extend(schema::rows("cells.flash_log", &rack.flash_log, FlashLogParameters::TABLE, &[]));
    let cache = &rack.flash_cache;
    all.extend(schema::rows("cells.flash_cache", cache, FlashCacheParameters::TABLE, &[]));
    all.extend(schema::rows("cells.scan", &rack.scan, ScanParameters::TABLE, &[]));
    all.extend(schema::rows("cells.iorm", &rack.iorm, IormParameters::TABLE, &["plan"]));
    for name in below(tree, "cells.iorm.plan") {
        let prefix = format!("cells.iorm.plan.{name}");
        all.extend(schema::rows(&prefix, &Directive::default(), Directive::TABLE, &[]));
    }
    let given = below(tree, "cells.groups");
    // Groups that are given stand for all; a group of the default keeps its own size.
    let names = if given.is_empty() { rack.groups.keys().cloned().collect() } else { given };
    for name in names {
        let group = rack.groups.get(&name).cloned().unwrap_or_default();
        let prefix = format!("cells.groups.{name}");
        all.extend(schema::rows(&prefix, &group, GroupParameters::TABLE, &[]));
    }
    all
}

fn part_rows(part: &Part) -> Vec<Row> {
    let prefix = part.prefix();
    let mut own = Vec::new();
    if part.kind.is_over() {
        own.push(row(&prefix, &schema::OVER, None, Form::Names));
    }
    if part.kind == PartKind::Lun {
        own.push(row(&prefix, &schema::CHANNEL, None, Form::Names));
    }
    if part.kind.is_single() {
        own.push(row(&prefix, &schema::COUNT, None, Form::Whole));
    } else {
        own.push(row(&prefix, &schema::COUNT, Some(Value::Integer(1)), Form::Whole));
    }
    own.extend(match part.kind {
        PartKind::Disk => schema::rows(&prefix, &DiskParameters::default(), DiskParameters::TABLE, &[]),
        PartKind::Flash => schema::rows(&prefix, &FlashParameters::default(), FlashParameters::TABLE, &[]),
        PartKind::Cache => schema::rows(&prefix, &CacheParameters::default(), CacheParameters::TABLE, &[]),
        PartKind::Channel => schema::rows(&prefix, &ChannelParameters::default(), ChannelParameters::TABLE, &[]),
        PartKind::Empirical => {
            let defaults = EmpiricalParameters { capacity_gb: 100.0, servers: 1, regimes: vec![] };
            let mut rows = schema::rows(&prefix, &defaults, EmpiricalParameters::TABLE, &[]);
            for row in &mut rows {
                row.default = None;
            }
            rows
        }
        PartKind::Stripe => schema::rows(&prefix, &StripeParameters::default(), StripeParameters::TABLE, &[]),
        PartKind::Raid5 => schema::rows(&prefix, &Raid5Parameters::default(), Raid5Parameters::TABLE, &[]),
        PartKind::Lun => schema::rows(&prefix, &LunParameters::default(), LunParameters::TABLE, &[]),
        PartKind::Volume => schema::rows(&prefix, &VolumeParameters::default(), VolumeParameters::TABLE, &[]),
        PartKind::Mirror | PartKind::Race => Vec::new(),
    });
    own
}

/// Returns true if the path is a row of the machine itself, not of a parameter structure.
pub fn is_own(path: &str) -> bool {
    let key = path.rsplit('.').next().unwrap_or(path);
    let own = [&schema::OVER, &schema::COUNT, &schema::CHANNEL];
    beside::is_load(path) || path.starts_with("devices.") && own.iter().any(|row| row.key == key)
}

/// Reads every section once, which checks its words, its structures and the rules between its values.
///
/// # Errors
/// The machine is invalid: the error names the place and what is allowed.
pub fn check(machine: &Machine) -> Result<(), MachineError> {
    machine.instance()?;
    for database in &machine.beside {
        machine.instance_of(database)?;
        machine.load(database)?;
    }
    machine.rack()?;
    for part in &machine.parts {
        let prefix = part.prefix();
        match part.kind {
            PartKind::Disk => machine.reads::<DiskParameters>(&prefix)?,
            PartKind::Flash => machine
                .section::<FlashParameters>(&prefix)?
                .check()
                .map_err(|rule| MachineError::at(machine.place(&part.path("dies")), rule, ""))?,
            PartKind::Cache => machine.reads::<CacheParameters>(&prefix)?,
            PartKind::Channel => machine.reads::<ChannelParameters>(&prefix)?,
            PartKind::Empirical => machine.reads::<EmpiricalParameters>(&prefix)?,
            PartKind::Stripe => machine.reads::<StripeParameters>(&prefix)?,
            PartKind::Raid5 => machine.reads::<Raid5Parameters>(&prefix)?,
            PartKind::Lun => machine.reads::<LunParameters>(&prefix)?,
            PartKind::Volume => machine.reads::<VolumeParameters>(&prefix)?,
            PartKind::Mirror | PartKind::Race => {}
        }
    }
    Ok(())
}

impl Machine {
    /// Checks that the section can be read.
    fn reads<T: DeserializeOwned>(&self, prefix: &str) -> Result<(), MachineError> {
        self.section::<T>(prefix).map(|_| ())
    }

    /// Returns the parameters of the instance.
    ///
    /// # Errors
    /// The machine is invalid: the error names the place and what is allowed.
    pub fn instance(&self) -> Result<InstanceParameters, MachineError> {
        self.instance_at("database")
    }

    /// Returns the parameters of the instance in a section.
    pub(super) fn instance_at(&self, prefix: &str) -> Result<InstanceParameters, MachineError> {
        let mut instance: InstanceParameters = self.section(prefix)?;
        let cells = self.value(&format!("{prefix}.cells"));
        instance.cells = cells.and_then(Value::as_bool).unwrap_or(false);
        instance.check().map_err(|error| {
            let place = self.place(&format!("{prefix}.{}", error.key));
            MachineError::at(place, format!("found {}", error.found), error.allowed)
        })?;
        Ok(instance)
    }

    /// Returns the parameters of the storage cells, if there are any.
    ///
    /// # Errors
    /// The machine is invalid: the error names the place and what is allowed.
    pub fn rack(&self) -> Result<Option<RackParameters>, MachineError> {
        if !self.has_cells {
            return Ok(None);
        }
        let mut rack: RackParameters = self.section("cells")?;
        let groups = std::mem::take(&mut rack.groups);
        // A group's rows know their defaults; what is not given is read from there.
        for name in self.groups() {
            let start = format!("cells.groups.{name}.");
            let mut table = toml::Table::new();
            for row in self.rows.iter().filter(|row| row.path.starts_with(&start)) {
                if let Some(value) = self.value(&row.path) {
                    table.insert(row.key().into(), value.clone());
                }
            }
            let whole = Value::Table(table).try_into().ok();
            let group = whole.or_else(|| groups.get(name).cloned()).unwrap_or_default();
            rack.groups.insert(name.into(), group);
        }
        rack.check().map_err(|error| self.cell_error(&error))?;
        Ok(Some(rack))
    }

    /// Returns the names of the disk groups.
    pub(super) fn groups(&self) -> Vec<&str> {
        let groups = self.rows.iter().filter_map(|row| {
            let (name, _) = row.path.strip_prefix("cells.groups.")?.split_once('.')?;
            Some(name)
        });
        let mut names: Vec<&str> = groups.collect();
        names.dedup();
        names
    }

    pub(super) fn cell_error(&self, error: &CellError) -> MachineError {
        match error {
            CellError::Parameter { key, rule } => MachineError::at(self.place(&format!("cells.{key}")), *rule, ""),
            other => MachineError::at("cells", other.to_string(), ""),
        }
    }
}
