//! Machine in TOML: a database instance, storage devices that stack, and the placement of files.
//!
//! ```toml
//! title = "a server with one disk"
//!
//! [database]
//! cores = 8
//!
//! [devices.platter]
//! kind = "disk"
//! rotation_rpm = { value = 7_200, source = "data sheet" }
//!
//! [devices.controller]
//! kind = "cache"
//! over = "platter"
//!
//! [storage]
//! redo = "controller"
//! data = "controller"
//! ```
//!
//! Every parameter has a dotted path (`devices.platter.rotation_rpm`), a default and a source. A setting changes one
//! parameter, which is named by its path, or by the end of its path if that is unambiguous. An impossible value is
//! refused before anything runs; the error has its line, its key and the allowed values.
//!
//! **Stacks.** `over` names the devices below. Each cache or LUN is over one device: over a part with `count = 8` there
//! are 8 caches or LUNs. One stripe or mirror is over all devices below; with `count = 4` there are four, each over a
//! quarter of the devices, in order. `NAME.0` is the first of several devices.
//!
//! Other databases on the same storage: `beside.rs`; a `PostgreSQL`: `postgres.rs`.
//!
//! Limits: values are plain numbers, not expressions. Only one instance is studied; the others are load.

mod beside;
mod build;
mod built_in;
mod describe;
mod error;
mod instance;
mod kind;
mod links;
pub mod postgres;
mod schema;
mod sections;
mod size;
mod tree;

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use beside::Beside;
pub use beside::{DATABASE, Load};
pub use build::{Built, Neighbour};
pub use built_in::{built_in, built_in_names};
pub use describe::{DatabaseLine, Description, ParameterLine, PartLine};
pub use error::MachineError;
use error::choices;
use schema::{Form, Row};
use sections::Part;
use tree::GivenValue;

/// A machine that can be built.
#[derive(Clone, Debug)]
pub struct Machine {
    title: String,
    parts: Vec<Part>,
    beside: Vec<Beside>,
    has_cells: bool,
    has_postgres: bool,
    rows: Vec<Row>,
    given: BTreeMap<String, GivenValue>,
}

impl Machine {
    /// Reads and checks a machine.
    ///
    /// # Errors
    /// The machine is invalid: the error names the place and what is allowed.
    pub fn parse(text: &str) -> Result<Self, MachineError> {
        let mut tree = tree::read(text)?;
        let title = match tree.values.remove("title") {
            Some(GivenValue { value: Value::String(title), .. }) => title,
            Some(given) => {
                return Err(MachineError::at(given.place("title"), "a title must be text", ""));
            }
            None => {
                let message = "the machine has no title";
                return Err(MachineError::at("line 1", message, "add `title = \"...\"`"));
            }
        };
        let parts = sections::parts(&mut tree)?;
        let beside = beside::beside(&mut tree)?;
        let has_cells = tree.tables.contains_key("cells");
        let has_postgres = tree.tables.contains_key(postgres::SECTION);
        let mut rows = sections::rows(&parts, &beside, has_cells, &tree);
        if has_postgres {
            rows.extend(postgres::rows());
        }
        tree.fold(rows.iter().filter(|row| row.form == Form::Structure).map(|row| &*row.path));
        let mut machine = Self { title, parts, beside, has_cells, has_postgres, rows, given: BTreeMap::new() };
        machine.check_tables(&tree.tables)?;
        let mut values: Vec<(String, GivenValue)> = tree.values.into_iter().collect();
        values.sort_by_key(|(_, given)| given.line);
        for (path, given) in values {
            let row = machine.row(&path, &given.place(&path))?;
            let value = schema::fitting(row, &given.place(&path), &given.value)?;
            machine.given.insert(path, GivenValue { value, ..given });
        }
        machine.check()?;
        Ok(machine)
    }

    /// Returns the title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Sets a parameter, named by its dotted path or an unambiguous end of it, to a value given as text.
    ///
    /// # Errors
    /// The name is unknown or ambiguous, or the result is not a valid machine.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), MachineError> {
        self.set_all([(name, text)])
    }

    /// Sets parameters together: only the result must be a valid machine, not the states in between. If one is refused,
    /// nothing changes.
    ///
    /// # Errors
    /// A name is unknown or ambiguous, or the result is not a valid machine.
    pub fn set_all<'a>(&mut self, settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<(), MachineError> {
        let before = self.given.clone();
        let changed = settings.into_iter().try_for_each(|(name, text)| self.give(name, text));
        let checked = changed.and_then(|()| self.check());
        if checked.is_err() {
            self.given = before;
        }
        checked
    }

    fn give(&mut self, name: &str, text: &str) -> Result<(), MachineError> {
        let path = self.resolve(name)?;
        let row = self.row(&path, name)?;
        let value = schema::fitting(row, &path, &schema::from_text(row, text))?;
        let source = Some("a setting of the run".into());
        self.given.insert(path, GivenValue { value, source, interval: None, line: 0 });
        Ok(())
    }

    /// Returns the dotted path of the parameter that a setting's name means. If several instances have a parameter of
    /// that name, the parameter of `[database]` is meant.
    ///
    /// # Errors
    /// The name is unknown or ambiguous.
    pub fn resolve(&self, name: &str) -> Result<String, MachineError> {
        if self.rows.iter().any(|row| row.path == name) {
            return Ok(name.into());
        }
        let end = format!(".{name}");
        let found: Vec<&str> =
            self.rows.iter().map(|row| row.path.as_str()).filter(|path| path.ends_with(&end)).collect();
        let (beside, own): (Vec<&str>, Vec<&str>) = found.into_iter().partition(|path| path.starts_with("databases."));
        let found = if own.is_empty() { beside } else { own };
        match found[..] {
            [one] => Ok(one.into()),
            [] => Err(self.unknown(name, name)),
            _ => {
                let message = format!("`{name}` names {} parameters", found.len());
                let step = format!("say which: {}", found.join(", "));
                Err(MachineError::at(name, message, step))
            }
        }
    }

    fn row(&self, path: &str, place: &str) -> Result<&Row, MachineError> {
        self.rows.iter().find(|row| row.path == path).ok_or_else(|| self.unknown(path, place))
    }

    /// Returns the error about an unknown key.
    fn unknown(&self, path: &str, place: &str) -> MachineError {
        let (section, key) = path.rsplit_once('.').unwrap_or(("", path));
        let inside = |row: &'_ &Row| row.path.rsplit_once('.').is_some_and(|at| at.0 == section);
        let names: Vec<&str> = self.rows.iter().filter(inside).map(Row::key).collect();
        if names.is_empty() {
            return self.unknown_section(path, place);
        }
        if let Some(part) = self.parts.iter().find(|part| part.prefix() == section) {
            let message = format!("{} has no `{key}`", part.called());
            return MachineError::at(place, message, choices(key, &names));
        }
        let message = format!("unknown key `{key}` in [{section}]");
        MachineError::at(place, message, choices(key, &names))
    }

    /// Returns the error about a name that is no key, no section, and no end of a path.
    fn unknown_section(&self, path: &str, place: &str) -> MachineError {
        let key = path.rsplit('.').next().unwrap_or(path);
        let mut sections: Vec<&str> = sections::TOP.to_vec();
        for section in self.rows.iter().filter_map(|row| Some(row.path.rsplit_once('.')?.0)) {
            if !sections.contains(&section) {
                sections.push(section);
            }
        }
        let ends: Vec<&str> = self.rows.iter().map(Row::key).collect();
        let near = error::nearest(key, ends).map_or_else(String::new, |near| {
            let found = self.rows.iter().filter(|row| row.key() == near);
            let paths: Vec<&str> = found.map(|row| row.path.as_str()).take(6).collect();
            format!("did you mean {}? ", paths.join(", "))
        });
        let step =
            if near.is_empty() { choices(path, &sections) } else { format!("{near}sections: {}", sections.join(", ")) };
        MachineError::at(place, format!("there is no `{path}`"), step)
    }

    /// Checks that every TOML table of the machine file is a known section.
    fn check_tables(&self, tables: &BTreeMap<String, usize>) -> Result<(), MachineError> {
        for (path, line) in tables {
            let inside = format!("{path}.");
            let known =
                self.rows.iter().any(|row| row.path.starts_with(&inside)) || sections::TOP.contains(&path.as_str());
            if !known {
                return Err(self.unknown(path, &format!("line {line}, {path}")));
            }
        }
        Ok(())
    }

    /// Checks rules that involve more than one value.
    fn check(&self) -> Result<(), MachineError> {
        sections::check(self)?;
        self.postgres()?;
        self.check_links()?;
        size::check(self)
    }

    /// Returns the current value of a parameter.
    fn value(&self, path: &str) -> Option<&Value> {
        let given = self.given.get(path).map(|given| &given.value);
        given.or_else(|| self.rows.iter().find(|row| row.path == path)?.default.as_ref())
    }

    fn whole(&self, path: &str) -> Option<u64> {
        self.value(path)?.as_integer().map(|whole| whole as u64)
    }

    /// Returns the names that a parameter contains.
    fn names(&self, path: &str) -> Vec<String> {
        self.value(path).and_then(schema::names).unwrap_or_default()
    }

    /// Returns the place of a parameter for a message.
    fn place(&self, path: &str) -> String {
        self.given.get(path).map_or_else(|| path.to_owned(), |given| given.place(path))
    }

    /// Returns a section as its parameter structure: the given values, and defaults for all others. Parameters of the
    /// machine itself, such as `over` and `count`, are not included.
    fn section<T: DeserializeOwned>(&self, prefix: &str) -> Result<T, MachineError> {
        let start = format!("{prefix}.");
        let mut table = Table::new();
        let mut lines = Vec::new();
        for (path, given) in &self.given {
            let Some(key) = path.strip_prefix(&start) else { continue };
            if sections::is_own(path) {
                continue;
            }
            tree::insert(&mut table, key, given.value.clone());
            lines.push((path, given));
        }
        Value::Table(table).try_into().map_err(|error: toml::de::Error| {
            // The reader of values knows no lines: the key or word that it names, or the only thing
            // that has an inside, or the only thing there is.
            let message = error.message().trim().to_owned();
            let blamed = lines.iter().find(|(path, given)| {
                let key = path.rsplit('.').next().unwrap_or(path);
                let word = given.value.as_str();
                message.contains(&format!("`{key}`")) || word.is_some_and(|word| message.contains(&format!("`{word}`")))
            });
            let deep = lines.iter().find(|(_, given)| {
                !message.starts_with("missing") && (given.value.is_array() || given.value.is_table())
            });
            let only = lines.first().filter(|_| lines.len() == 1);
            let place = blamed.or(deep).or(only).map(|(path, given)| given.place(path));
            let part = self.parts.iter().find(|part| part.prefix() == prefix);
            let place = place.or_else(|| part.map(|part| format!("line {}, {prefix}", part.line)));
            MachineError::at(place.unwrap_or_else(|| prefix.into()), message, "")
        })
    }
}
