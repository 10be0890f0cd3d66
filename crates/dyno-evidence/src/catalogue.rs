//! Catalogue of wait events: one table per engine, which maps every event to a class that all engines share.
//!
//! The tables are data (`catalogue/*.tsv`): an event, its class, the engine's own class, the versions that have it.
//! Rust and Python read this one copy. An event has the same class wherever it occurs: in a trace, a snapshot, a load
//! or a model.
//!
//! An event is looked up by its full name, otherwise by the longest pattern that matches (`%` stands for any text),
//! otherwise by the pattern `%` of the engine's own class. If nothing matches, the class is `other`. Oracle's event
//! names are unique, so the name is enough; `PostgreSQL` and `MariaDB` use the same name in several of their classes,
//! which are part of the key.
//!
//! ```
//! use dyno_evidence::catalogue::{Class, Engine, class_of};
//! assert_eq!(class_of(Engine::Oracle, "", "log file sync"), Class::Commit);
//! assert_eq!(class_of(Engine::PostgreSql, "IO", "WalSync"), Class::Commit);
//! assert_eq!(class_of(Engine::Oracle, "User I/O", "an event of the next release"), Class::DataRead);
//! ```
//!
//! Limits: an event has one class; whatever depends on the individual wait (a long wait for a message from the client
//! is think time, a short one is a round trip) is decided where individual waits are known.

#![allow(clippy::doc_markdown)] // names of products

use std::collections::HashMap;
use std::sync::LazyLock;

/// Class of a wait, shared by all engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// Waiting until the session's own transaction is durable.
    Commit,
    /// Wait of the log writer, or wait for space in the log.
    LogWrite,
    /// Reading data from storage.
    DataRead,
    /// Writing data to storage.
    DataWrite,
    /// Waiting for a free buffer in the buffer cache.
    FreeBuffer,
    /// Waiting for a lock that another transaction or session has.
    Lock,
    /// Waiting for a short lock on shared memory.
    Latch,
    /// Waiting for the client or another server.
    Network,
    /// Running, or ready to run but without a free core.
    Cpu,
    /// Waiting for the client, or sleeping; not database time.
    Idle,
    /// Any wait that is in no other class, or an unknown event.
    Other,
    /// Waiting for another instance of the same database.
    Cluster,
    /// Held back by the engine's resource manager.
    Scheduler,
}

impl Class {
    /// All classes in order of their numbers.
    pub const ALL: [Self; 13] = [
        Self::Commit,
        Self::LogWrite,
        Self::DataRead,
        Self::DataWrite,
        Self::FreeBuffer,
        Self::Lock,
        Self::Latch,
        Self::Network,
        Self::Cpu,
        Self::Idle,
        Self::Other,
        Self::Cluster,
        Self::Scheduler,
    ];

    /// Returns the name of the class in evidence and on pages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::LogWrite => "log write",
            Self::DataRead => "data read",
            Self::DataWrite => "data write",
            Self::FreeBuffer => "free buffer",
            Self::Lock => "lock",
            Self::Latch => "latch",
            Self::Network => "network",
            Self::Cpu => "CPU",
            Self::Idle => "idle",
            Self::Other => "other",
            Self::Cluster => "cluster",
            Self::Scheduler => "scheduler",
        }
    }

    /// Returns the class with this name, or `None`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

/// Engine whose events a table lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Oracle Database.
    Oracle,
    /// `PostgreSQL`.
    PostgreSql,
    /// `MariaDB`.
    MariaDb,
}

impl Engine {
    /// All engines.
    pub const ALL: [Self; 3] = [Self::Oracle, Self::PostgreSql, Self::MariaDb];

    /// Returns the engine's name in lower case, as in Python.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Oracle => "oracle",
            Self::PostgreSql => "postgresql",
            Self::MariaDb => "mariadb",
        }
    }

    /// Returns the engine with this name, or `None` if it has no table.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Oracle => include_str!("../catalogue/oracle.tsv"),
            Self::PostgreSql => include_str!("../catalogue/postgresql.tsv"),
            Self::MariaDb => include_str!("../catalogue/mariadb.tsv"),
        }
    }

    /// Returns the engine's class and the event's name in the spelling used for comparison.
    ///
    /// Versions of `PostgreSQL` spell an event with different case or underscores (`WALSync`, `WalSync`), and an
    /// LWLock's name with or without `Lock` at the end (`WALWriteLock`, `WALWrite`); before version 13 an LWLock's type
    /// was `LWLockNamed` or `LWLockTranche`.
    fn folded(self, engine_class: &str, event: &str) -> (String, String) {
        let (mut kind, mut name) = (engine_class.to_lowercase(), event.to_lowercase());
        match self {
            Self::Oracle if event != "%" => kind.clear(),
            Self::PostgreSql => {
                kind.retain(|c| c != '_' && c != ' ');
                name.retain(|c| c != '_' && c != ' ');
                if kind.starts_with("lwlock") {
                    kind.truncate("lwlock".len());
                    name.truncate(name.strip_suffix("lock").map_or(name.len(), str::len));
                }
            }
            Self::Oracle | Self::MariaDb => {}
        }
        (kind, name)
    }
}

/// Row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Name of the event; `%` stands for any text.
    pub event: &'static str,
    /// Class shared by all engines.
    pub class: Class,
    /// Engine's own class: Oracle's wait class, `PostgreSQL`'s wait event type, the source of `MariaDB`'s wait.
    pub engine_class: &'static str,
    /// First and last version of the engine that has the event, as far as known.
    pub versions: &'static str,
}

/// Returns the rows of an engine's table.
#[must_use]
pub fn events(engine: Engine) -> &'static [Event] {
    &table(engine).rows
}

/// Returns the row of an event, found by its full name, by a pattern, or by the engine's own class; `None` if there is
/// no such row.
#[must_use]
pub fn find(engine: Engine, engine_class: &str, event: &str) -> Option<&'static Event> {
    table(engine).find(engine, engine_class, event)
}

/// Returns the class of an event; an empty event means that the session runs and waits for nothing that the engine
/// knows of.
///
/// `engine_class` is the engine's own class, as in the tables; it may be empty for Oracle.
#[must_use]
pub fn class_of(engine: Engine, engine_class: &str, event: &str) -> Class {
    if event.is_empty() || event == Class::Cpu.name() {
        return Class::Cpu;
    }
    find(engine, engine_class, event).map_or(Class::Other, |row| row.class)
}

struct Table {
    rows: Vec<Event>,
    /// Row numbers of the names without `%`; the key is the engine's class and the event, in the spelling used for
    /// comparison.
    names: HashMap<(String, String), usize>,
    /// Patterns with `%` in the same spelling, the longest first.
    patterns: Vec<(String, String, usize)>,
}

fn table(engine: Engine) -> &'static Table {
    static TABLES: [LazyLock<Table>; 3] = [
        LazyLock::new(|| Table::read(Engine::Oracle)),
        LazyLock::new(|| Table::read(Engine::PostgreSql)),
        LazyLock::new(|| Table::read(Engine::MariaDb)),
    ];
    &TABLES[engine as usize]
}

impl Table {
    fn read(engine: Engine) -> Self {
        let rows: Vec<Event> = lines(engine.text()).map(row).collect();
        let mut names = HashMap::new();
        let mut patterns = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let (kind, name) = engine.folded(row.engine_class, row.event);
            if row.event.contains('%') {
                patterns.push((kind, name, at));
            } else {
                names.insert((kind, name), at);
            }
        }
        patterns.sort_by_key(|(_, name, _)| std::cmp::Reverse(name.len()));
        Self { rows, names, patterns }
    }

    fn find(&self, engine: Engine, engine_class: &str, event: &str) -> Option<&Event> {
        let (kind, name) = engine.folded(engine_class, event);
        let whole = engine_class.to_lowercase();
        let by_pattern = || {
            let suits = |(own, pattern, _): &&(String, String, usize)| {
                let kind = if engine == Engine::Oracle && pattern == "%" { &whole } else { &kind };
                own == kind && matches(pattern, &name)
            };
            self.patterns.iter().find(suits).map(|(_, _, at)| *at)
        };
        self.names.get(&(kind.clone(), name.clone())).copied().or_else(by_pattern).map(|at| &self.rows[at])
    }
}

/// Returns the lines of a table that contain rows.
fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.starts_with('#')).skip(1)
}

/// Parses one row; a row that cannot be parsed is a bug in this program, which its tests detect.
fn row(line: &'static str) -> Event {
    let mut fields = line.split('\t');
    let mut field = || fields.next().unwrap_or_default();
    let (event, class) = (field(), field());
    let class = Class::named(class).unwrap_or_else(|| panic!("catalogue: {class:?} of {event:?} is not a class"));
    Event { event, class, engine_class: field(), versions: field() }
}

/// Returns true if a text matches a pattern, in which `%` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('%') else { return pattern == text };
    let Some(text) = text.strip_prefix(first) else { return false };
    text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| matches(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_stands_for_any_text() {
        assert!(matches("gc %", "gc cr request"));
        assert!(matches("waiting for % lock", "waiting for global read lock"));
        assert!(matches("%prior transaction%", "waiting for prior transaction to commit"));
        assert!(matches("%", ""));
        assert!(!matches("gc %", "gcs remote message"));
        assert!(!matches("waiting for % lock", "waiting for lock"));
        assert!(!matches("gc", "gc "));
    }
}
