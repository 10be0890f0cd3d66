//! Entries of a log in a common form for all formats, and counts of those that could not be used.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::reason::Reason;
use super::stamp::Clock;

/// Maximum number of places kept per reason.
const PLACES_MOST: usize = 5;
/// Maximum number of distinct users and databases.
const WHO_MOST: usize = 100_000;

/// User, database and application of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// User, empty if not known.
    pub user: String,
    /// Database, empty if not known.
    pub database: String,
    /// Application name, empty if not known.
    pub application: String,
}

/// Severity of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Severity {
    /// LOG.
    #[default]
    Log,
    /// ERROR.
    Error,
    /// FATAL or PANIC: the session ends.
    Fatal,
    /// Any other severity, which does not concern the load.
    Other,
}

impl Severity {
    /// Returns the severity that this word names.
    pub fn of(word: &[u8]) -> Self {
        match word {
            b"LOG" => Self::Log,
            b"ERROR" => Self::Error,
            b"FATAL" | b"PANIC" => Self::Fatal,
            _ => Self::Other,
        }
    }
}

/// Entry of a log.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// Time [ns since 1970].
    pub at_ns: u64,
    /// Number of the entry's first line.
    pub line: u64,
    /// Process id of the session at the server.
    pub pid: u32,
    /// Distinguishes sessions with the same process number, for example by their start; 0 if unknown.
    pub start: u64,
    /// User, database and application of the session, if known.
    pub who: Option<Arc<Who>>,
    /// Severity of the entry.
    pub severity: Severity,
    /// SQLSTATE, if known.
    pub state: Option<[u8; 5]>,
    /// Message of the entry.
    pub message: Vec<u8>,
    /// DETAIL part of the entry.
    pub detail: Vec<u8>,
    /// STATEMENT part of the entry.
    pub statement: Vec<u8>,
    /// CONTEXT part of the entry, which may have the parameters of a failed statement.
    pub context: Vec<u8>,
}

/// Entries and statements that could not be used: their number by reason, and the places of the first ones.
#[derive(Clone, Debug, Default)]
pub struct Unused {
    found: BTreeMap<Reason, (u64, Vec<String>)>,
}

impl Unused {
    /// Counts an entry or statement that could not be used, and records its place if it is among the first ones.
    pub fn add(&mut self, reason: Reason, file: &str, line: u64) {
        let (count, places) = self.found.entry(reason).or_default();
        *count += 1;
        if places.len() < PLACES_MOST {
            places.push(if line > 0 { format!("{file}:{line}") } else { file.to_owned() });
        }
    }

    /// Adds the counts and places of another collection.
    pub fn merge(&mut self, other: Self) {
        for (reason, (count, places)) in other.found {
            let mine = self.found.entry(reason).or_default();
            mine.0 += count;
            mine.1.extend(places);
            mine.1.truncate(PLACES_MOST);
        }
    }

    /// Returns how many entries and statements could not be used for this reason.
    pub fn count(&self, reason: Reason) -> u64 {
        self.found.get(&reason).map_or(0, |found| found.0)
    }

    /// Returns the counts as JSON.
    pub fn to_json(&self) -> Json {
        let each = self.found.iter().map(|(reason, (count, places))| {
            json!({
                "reason": reason.words(), "count": count, "places": places,
                "unread": reason.is_unread(), "left_out": reason.is_left_out(),
            })
        });
        Json::Array(each.collect())
    }
}

/// State that all formats share while they are read.
#[derive(Default)]
pub struct Reading {
    /// Reader of times.
    pub clock: Clock,
    /// Entries that could not be used.
    pub unused: Unused,
    /// Name of the current file.
    pub file: Arc<str>,
    /// Number of entries of the current file.
    pub entries: u64,
    /// Year for times that have no year.
    pub year: i64,
    known: HashMap<Vec<u8>, Arc<Who>>,
    last: Option<(Vec<u8>, Arc<Who>)>,
    key: Vec<u8>,
}

impl Reading {
    /// Counts an entry that could not be used.
    pub fn skip(&mut self, reason: Reason, line: u64) {
        self.unused.add(reason, &self.file, line);
    }

    /// Returns the user, database and application, shared by all entries that have the same; `None` if all are empty.
    pub fn who(&mut self, user: &[u8], database: &[u8], application: &[u8]) -> Option<Arc<Who>> {
        let known = |text: &'static [u8]| move |given: &[u8]| given == text;
        let (unknown, empty) = (known(b"[unknown]"), known(b""));
        let clear = |text: &[u8]| unknown(text) || empty(text);
        if clear(user) && clear(database) && clear(application) {
            return None;
        }
        self.key.clear();
        for part in [user, database, application] {
            self.key.extend_from_slice(part);
            self.key.push(0);
        }
        if let Some((key, who)) = &self.last
            && *key == self.key
        {
            return Some(Arc::clone(who));
        }
        if self.known.len() > WHO_MOST {
            self.known.clear();
        }
        let who = self.known.entry(self.key.clone()).or_insert_with(|| {
            let text =
                |bytes: &[u8]| if clear(bytes) { String::new() } else { String::from_utf8_lossy(bytes).into_owned() };
            Arc::new(Who { user: text(user), database: text(database), application: text(application) })
        });
        self.last = Some((self.key.clone(), Arc::clone(who)));
        Some(Arc::clone(who))
    }
}

/// Returns the session's distinguishing start from a session identifier (`%c`: start and process, hexadecimal).
pub fn start_of(identifier: &[u8]) -> u64 {
    let start = identifier.split(|byte| *byte == b'.').next().unwrap_or_default();
    std::str::from_utf8(start).ok().and_then(|text| u64::from_str_radix(text, 16).ok()).unwrap_or(0)
}

/// Returns the process number from a session identifier.
pub fn pid_of(identifier: &[u8]) -> Option<u32> {
    let (_, pid) = std::str::from_utf8(identifier).ok()?.split_once('.')?;
    u32::from_str_radix(pid, 16).ok()
}

/// Parses a whole number; returns 0 if the text is not one.
pub fn number(text: &[u8]) -> u32 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Returns a SQLSTATE; `None` if the text is not one, or indicates success.
pub fn state(text: &[u8]) -> Option<[u8; 5]> {
    let state: [u8; 5] = text.try_into().ok()?;
    (state != *b"00000" && state.iter().all(u8::is_ascii_alphanumeric)).then_some(state)
}
