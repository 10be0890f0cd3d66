//! Databases beside `ORCL`: other instances on the same storage, each with its own server and load.
//!
//! ```toml
//! [databases.BATCH]
//! cores = 12
//!
//! [databases.BATCH.workload]
//! kind = "key-lookup"
//! sessions = 64
//! ```
//!
//! All instances keep their files on the devices in `[storage]`; each has an equal part of them, `ORCL` the first.
//! Cells know them by their names, so that a directive in `[cells.iorm.plan]` with that name applies to them. Their
//! sessions work from the first instant to the end of the run. A run records none of their waits and calls; the cells'
//! metrics and the number of their transactions show what they did.

use toml::{Table, Value};

use super::describe::DatabaseLine;
use super::error::choices;
use super::instance::instance_rows;
use super::schema::{self, Form, Row};
use super::tree::{self, GivenValue, Tree};
use super::{Machine, MachineError};
use crate::database::InstanceParameters;
use crate::device::{Parameter, parameter};
use crate::workload::Workload;

/// A database beside `ORCL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    pub name: String,
    kind: &'static str,
}

/// Load of a database beside `ORCL`.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Number of sessions.
    pub sessions: u32,
    /// Workload that each session repeats.
    pub workload: Workload,
}

const SESSIONS: Parameter =
    parameter("sessions", "sessions, from the start to the end", "chosen").within(1.0..=65_535.0);

/// Name of the database on the cells.
pub const DATABASE: &str = "ORCL";

/// Names that a database beside `ORCL` must not have: that of the studied database, and those that cells use for all
/// other databases.
const TAKEN: [&str; 3] = [DATABASE, "other", "_OTHER_DATABASE_"];

impl Beside {
    fn prefix(&self) -> String {
        format!("databases.{}", self.name)
    }

    fn load_prefix(&self) -> String {
        format!("databases.{}.workload", self.name)
    }

    /// Returns all rows of the database: those of its server, then those of its load.
    pub fn rows(&self, has_cells: bool) -> Vec<Row> {
        let mut all = instance_rows(&self.prefix(), has_cells);
        let prefix = self.load_prefix();
        all.push(schema::row(&prefix, &SESSIONS, Some(Value::Integer(20)), Form::Whole));
        if let Some(workload) = workload(self.kind, Table::new()) {
            all.extend(schema::rows(&prefix, &workload, workload.table(), &[]));
        }
        all
    }
}

/// Returns a workload of this kind, with defaults for missing parameters.
fn workload(kind: &str, mut given: Table) -> Option<Workload> {
    given.insert("kind".into(), Value::String(kind.into()));
    Value::Table(given).try_into().ok()
}

/// Returns the databases beside `ORCL` that a machine's text defines, and removes the kinds of their workloads from
/// `tree`.
///
/// # Errors
/// The machine is invalid: the error names the place and what is allowed.
pub fn beside(tree: &mut Tree) -> Result<Vec<Beside>, MachineError> {
    let named = tree.tables.iter().filter_map(|(path, &line)| {
        let name = path.strip_prefix("databases.")?;
        (!name.contains('.')).then(|| (name.to_owned(), line))
    });
    let mut named: Vec<(String, usize)> = named.collect();
    named.sort_by_key(|(_, line)| *line);
    let mut all = Vec::new();
    for (name, line) in named {
        let place = format!("line {line}, databases.{name}");
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        if !name.chars().all(plain) || TAKEN.contains(&&*name) {
            let message = format!("a database beside {DATABASE} cannot be called `{name}`");
            let step = format!("letters, digits, _ and -; not {}", TAKEN.join(", "));
            return Err(MachineError::at(place, message, step));
        }
        let path = format!("databases.{name}.workload.kind");
        let Some(GivenValue { value, line, .. }) = tree.values.remove(&path) else {
            let kinds = Workload::KINDS.join(", ");
            let step = format!("add `kind = ...` to [databases.{name}.workload]: {kinds}");
            return Err(MachineError::at(place, "the database has no kind of workload", step));
        };
        let word = value.as_str().unwrap_or_default();
        let Some(kind) = Workload::KINDS.into_iter().find(|kind| *kind == word) else {
            let place = format!("line {line}, {path}");
            let message = format!("no such kind of workload: {}", schema::text(&value));
            return Err(MachineError::at(place, message, choices(word, &Workload::KINDS)));
        };
        all.push(Beside { name, kind });
    }
    Ok(all)
}

/// Returns true if the path is a row of a load, not of an instance.
pub fn is_load(path: &str) -> bool {
    path.starts_with("databases.") && path.contains(".workload.")
}

impl Machine {
    /// Returns the load of a database.
    pub(super) fn load(&self, of: &Beside) -> Result<Load, MachineError> {
        let prefix = of.load_prefix();
        let start = format!("{prefix}.");
        let mut table = Table::new();
        for (path, given) in &self.given {
            if let Some(key) = path.strip_prefix(&start) {
                tree::insert(&mut table, key, given.value.clone());
            }
        }
        table.remove("sessions");
        let wrong = || MachineError::at(prefix.clone(), "cannot be read", "");
        let workload = workload(of.kind, table).ok_or_else(wrong)?;
        workload.check().map_err(|error| {
            let place = self.place(&format!("{start}{}", error.key));
            MachineError::at(place, format!("found {}", error.found), error.allowed)
        })?;
        let sessions = self.whole(&format!("{start}sessions")).unwrap_or(1) as u32;
        Ok(Load { sessions, workload })
    }

    /// Returns the instance of a database beside `ORCL`.
    pub(super) fn instance_of(&self, of: &Beside) -> Result<InstanceParameters, MachineError> {
        self.instance_at(&of.prefix())
    }

    /// Returns one line for each database beside `ORCL`.
    pub(super) fn database_lines(&self) -> Vec<DatabaseLine> {
        let line = |of: &Beside| {
            let word = |path: &str| self.value(path).map(schema::text).unwrap_or_default();
            let sessions = word(&format!("{}.sessions", of.load_prefix()));
            let cores = word(&format!("{}.cores", of.prefix()));
            let text = format!("{sessions} sessions of {}, {cores} cores", of.kind);
            DatabaseLine { name: of.name.clone(), text }
        };
        self.beside.iter().map(line).collect()
    }
}
