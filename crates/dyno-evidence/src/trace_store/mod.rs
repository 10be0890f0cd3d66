//! Writer of the tables of a trace (calls, waits, statements, sessions) for tools that watch a live server
//! (`dyno-record`) or its connections (`dyno-proxy`).

mod rows;
pub mod small;

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::catalogue::{Class, Engine, class_of};
use crate::table::{Column, Table, Values};
use crate::{EvidenceError, NONE, trace_tables};

use rows::fnv;
pub use rows::{CallRow, Server, SessionRow, Sums, WaitRow, state_text};

/// Number of the event for unobserved time.
pub const UNOBSERVED: u32 = u32::MAX;

/// Number of rows in a part.
const PART_ROWS: usize = 1 << 17;
/// Number of rows that are buffered before they are converted to columns.
const KEPT: usize = 1 << 14;

struct Statement {
    key: String,
    text: String,
}

/// Writer of a trace's tables.
pub struct Store {
    dir: PathBuf,
    /// Difference between the wall clock and the monotonic clock [ns].
    offset_ns: i64,
    waits: Vec<WaitRow>,
    calls: Vec<CallRow>,
    parts: HashMap<&'static str, (Table, u32)>,
    next_part: HashMap<&'static str, u32>,
    statements: Vec<Statement>,
    by_text: HashMap<Vec<u8>, u32>,
    by_id: HashMap<u64, u32>,
    /// For a statement first known by its text, the number of the statement that has its query id.
    of_text: HashMap<u32, u32>,
    /// Number of statements to which rows on disk can refer.
    written: usize,
    events: HashMap<u32, (String, &'static str)>,
    errors: Vec<(CallRow, u32)>,
    /// First error that occurred while writing.
    pub failed: Option<EvidenceError>,
    /// Numbers of rows written: calls and waits.
    pub rows: (u64, u64),
    /// Number of calls whose statement is unknown, and their total time [ns].
    pub unnamed: (u64, u64),
    /// True if waits are found by periodic looks at the server: their lengths are then known only to within the time
    /// between two looks.
    pub is_read: bool,
    /// Reason why statements have no text, shown in place of the text; empty if no reason is known.
    pub textless: &'static str,
    /// For each statement whose text was unknown when a call ended: the number of such calls, and their total time
    /// [ns].
    without_text: HashMap<u32, (u64, u64)>,
}

/// Maximum number of distinct texts; calls with further texts are counted for the last statement.
const TEXTS_MAX: usize = 200_000;

impl Store {
    /// Returns a writer into a folder; `offset_ns` is added to monotonic times to get wall clock times [ns].
    pub fn new(dir: &Path, offset_ns: i64) -> Self {
        Self {
            dir: dir.to_owned(),
            offset_ns,
            waits: Vec::new(),
            calls: Vec::new(),
            parts: HashMap::new(),
            next_part: HashMap::new(),
            statements: Vec::new(),
            by_text: HashMap::new(),
            by_id: HashMap::new(),
            of_text: HashMap::new(),
            written: 0,
            events: HashMap::from([(UNOBSERVED, ("unobserved".to_owned(), Class::Other.name()))]),
            errors: Vec::new(),
            failed: None,
            rows: (0, 0),
            unnamed: (0, 0),
            is_read: false,
            textless: "",
            without_text: HashMap::new(),
        }
    }

    /// Sets the class and name of an event, if the event is new.
    pub fn name_event(&mut self, number: u32, name: impl FnOnce() -> (String, String)) {
        self.events.entry(number).or_insert_with(|| {
            let (kind, name) = name();
            let class = class_of(Engine::PostgreSql, &kind, &name).name();
            (if kind == name { name } else { format!("{kind}:{name}") }, class)
        });
    }

    /// Sets the name of an event whose class is known.
    pub fn name_event_as(&mut self, number: u32, name: &str, class: Class) {
        self.events.entry(number).or_insert_with(|| (name.to_owned(), class.name()));
    }

    /// Returns the number of the statement with exactly this text, including literals.
    pub fn statement_of_text(&mut self, text: &[u8]) -> u32 {
        if let Some(number) = self.by_text.get(text) {
            return *number;
        }
        if self.statements.len() >= TEXTS_MAX {
            return self.statements.len() as u32 - 1;
        }
        let key = format!("{:016x}", fnv(text));
        let number = self.add(key, String::from_utf8_lossy(text).into_owned());
        self.by_text.insert(text.to_vec(), number);
        number
    }

    /// Returns the number of the statement with this query id; its text is that of the first call whose text is known.
    pub fn statement_of_id(&mut self, id: u64, text: u32) -> u32 {
        let number = match self.by_id.get(&id) {
            Some(number) => *number,
            None if self.takes_id(text) => {
                self.statements[text as usize].key = (id as i64).to_string();
                text
            }
            None => self.add((id as i64).to_string(), String::new()),
        };
        self.by_id.insert(id, number);
        if (text as usize) < self.statements.len() {
            self.of_text.insert(text, number);
            if !self.has_text(number) {
                self.statements[number as usize].text = self.statements[text as usize].text.clone();
            }
        }
        number
    }

    /// Returns true if a statement known only by its text can get a query id: no row with its key has been written, and
    /// it has no query id yet.
    fn takes_id(&self, text: u32) -> bool {
        (self.written..self.statements.len()).contains(&(text as usize)) && !self.of_text.contains_key(&text)
    }

    /// Returns true if the text of a statement is known.
    pub fn has_text(&self, statement: u32) -> bool {
        self.statements.get(statement as usize).is_some_and(|known| !known.text.is_empty())
    }

    /// Returns true if a query id and the text of its statement are known.
    pub fn knows_id(&self, id: u64) -> bool {
        self.by_id.get(&id).is_some_and(|number| self.has_text(*number))
    }

    /// Returns the statement whose query id was seen with the same text, or the statement itself. Used for a call that
    /// reported no query id: for a prepared statement the server reports it only at bind or execute.
    pub fn settled(&self, statement: u32) -> u32 {
        self.of_text.get(&statement).copied().unwrap_or(statement)
    }

    fn add(&mut self, key: String, text: String) -> u32 {
        self.statements.push(Statement { key, text });
        self.statements.len() as u32 - 1
    }

    fn keep(&mut self, result: Result<(), EvidenceError>) {
        if let Err(error) = result
            && self.failed.is_none()
        {
            self.failed = Some(error);
        }
    }

    /// Adds a finished wait.
    pub fn wait(&mut self, row: WaitRow) {
        self.waits.push(row);
        self.rows.1 += 1;
        if self.waits.len() >= KEPT {
            let result = self.flush_waits();
            self.keep(result);
        }
    }

    /// Adds a finished call.
    pub fn call(&mut self, row: CallRow) {
        if let Some(state) = row.state {
            self.errors.push((row, state));
        }
        if row.statement == u32::MAX && matches!(row.kind, "exec" | "parse" | "bind") {
            self.unnamed.0 += 1;
            self.unnamed.1 += row.elapsed_ns;
        }
        if self.statements.get(row.statement as usize).is_some_and(|known| known.text.is_empty()) {
            let counted = self.without_text.entry(row.statement).or_default();
            *counted = (counted.0 + 1, counted.1 + row.elapsed_ns);
        }
        self.calls.push(row);
        self.rows.0 += 1;
        if self.calls.len() >= KEPT {
            let result = self.flush_calls();
            self.keep(result);
        }
    }

    fn wall(&self, at_ns: u64) -> i64 {
        at_ns as i64 + self.offset_ns
    }

    /// Appends rows to a table that consists of several parts.
    pub fn put(
        &mut self,
        table: &'static str,
        columns: &'static [Column],
        mut values: Vec<Values>,
    ) -> Result<(), EvidenceError> {
        if !self.parts.contains_key(table) {
            let number = self.next_part.entry(table).or_default();
            let part = Table::create(&self.dir.join(table), &format!("f000000-{number:06}"), columns)?;
            *number += 1;
            self.parts.insert(table, (part, 0));
        }
        let Some((part, _)) = self.parts.get_mut(table) else { return Ok(()) };
        part.write(&mut values)?;
        if part.rows() as usize >= PART_ROWS
            && let Some((part, _)) = self.parts.remove(table)
        {
            part.finish()?;
        }
        Ok(())
    }

    /// Returns the keys of the rows' statements as words; the dictionary contains only those that occur.
    fn keys(&self, statements: impl Iterator<Item = u32>) -> Values {
        let (mut places, mut words) = (HashMap::new(), Vec::new());
        let numbers = statements
            .map(|number| match self.statements.get(number as usize) {
                None => u32::MAX,
                Some(statement) => *places.entry(number).or_insert_with(|| {
                    words.push(statement.key.clone());
                    words.len() as u32 - 1
                }),
            })
            .collect();
        Values::Words(numbers, words)
    }

    fn flush_waits(&mut self) -> Result<(), EvidenceError> {
        let mut rows = std::mem::take(&mut self.waits);
        if rows.is_empty() {
            return Ok(());
        }
        self.written = self.statements.len();
        let n = rows.len();
        let numbers = |get: &dyn Fn(&WaitRow) -> i64| Values::I64(rows.iter().map(get).collect());
        let mut words: Vec<String> = Vec::new();
        let mut classes: Vec<String> = Vec::new();
        let mut places: HashMap<u32, u32> = HashMap::new();
        let events: Vec<u32> = rows
            .iter()
            .map(|row| {
                *places.entry(row.event).or_insert_with(|| {
                    let known = self.events.get(&row.event);
                    words.push(known.map_or_else(|| format!("event {:#010x}", row.event), |known| known.0.clone()));
                    classes.push(known.map_or(Class::Other.name(), |known| known.1).to_owned());
                    words.len() as u32 - 1
                })
            })
            .collect();
        let idle = classes.len() as u32;
        classes.push(Class::Idle.name().to_owned());
        let class = rows.iter().zip(&events).map(|(row, event)| if row.think { idle } else { *event }).collect();
        let (parameters, fidelity) = rows::words(self.is_read);
        let none = || Values::I64(vec![NONE; n]);
        let zero = || Values::I64(vec![0; n]);
        let values = vec![
            Values::Words(vec![0; n], vec![String::new()]),
            Values::U32(vec![0; n]),
            Values::U32(rows.iter().map(|row| row.session).collect()),
            numbers(&|row| row.number as i64),
            Values::Words(events, words),
            Values::Words(class, classes),
            numbers(&|row| self.wall(row.since_ns)),
            numbers(&|row| row.elapsed_ns as i64),
            numbers(&|row| row.parameters(self.is_read).0),
            numbers(&|row| row.parameters(self.is_read).1),
            numbers(&|row| row.cut),
            Values::Words(vec![0; n], vec![parameters.to_owned()]),
            none(),
            self.keys(rows.iter().map(|row| row.statement)),
            numbers(&|row| row.call.map_or(NONE, |call| call as i64)),
            Values::U8(rows.iter().map(|row| if row.call.is_some() { 0 } else { u8::MAX }).collect()),
            Values::Bool(rows.iter().map(|row| row.think).collect()),
            Values::U64(vec![0; n]),
            Values::U32(rows.iter().map(|row| row.session).collect()),
            Values::U32(vec![0; n]),
            zero(),
            zero(),
            numbers(&|row| row.since_ns as i64),
            Values::Words(vec![0; n], vec![fidelity.to_owned()]),
        ];
        // Its room serves the next ones: a megabyte that grows again costs more than what is put into it.
        rows.clear();
        self.waits = rows;
        self.put("waits", &trace_tables::WAITS, values)
    }

    fn flush_calls(&mut self) -> Result<(), EvidenceError> {
        let mut rows = std::mem::take(&mut self.calls);
        if rows.is_empty() {
            return Ok(());
        }
        self.written = self.statements.len();
        let n = rows.len();
        let numbers = |get: &dyn Fn(&CallRow) -> i64| Values::I64(rows.iter().map(get).collect());
        let mut kinds: Vec<&'static str> = Vec::new();
        let kind = rows
            .iter()
            .map(|row| {
                let is_it = |kind: &&str| std::ptr::eq(*kind, row.kind) || *kind == row.kind;
                let at = kinds.iter().position(is_it).unwrap_or_else(|| {
                    kinds.push(row.kind);
                    kinds.len() - 1
                });
                at as u32
            })
            .collect();
        let kinds = kinds.into_iter().map(str::to_owned).collect();
        let none = || Values::I64(vec![NONE; n]);
        let zero = || Values::I64(vec![0; n]);
        let values = vec![
            Values::Words(vec![0; n], vec![String::new()]),
            Values::U32(vec![0; n]),
            Values::U32(rows.iter().map(|row| row.session).collect()),
            numbers(&|row| row.number as i64),
            Values::Words(kind, kinds),
            self.keys(rows.iter().map(|row| row.statement)),
            numbers(&|row| self.wall(row.since_ns)),
            numbers(&|row| row.elapsed_ns as i64),
            numbers(&|row| row.cpu_ns as i64),
            numbers(&|row| row.rows.map_or(NONE, |rows| rows as i64)),
            none(),
            none(),
            none(),
            Values::U8(vec![u8::MAX; n]),
            Values::U8(vec![0; n]),
            none(),
            numbers(&|row| row.elapsed_ns as i64),
            numbers(&|row| row.cpu_ns as i64),
            numbers(&|row| row.wait_ns as i64),
            zero(),
            zero(),
            zero(),
            Values::Bool(vec![false; n]),
            none(),
            Values::U8(vec![u8::MAX; n]),
            Values::U8(vec![u8::MAX; n]),
            none(),
            Values::Words(vec![u32::MAX; n], Vec::new()),
            Values::U64(vec![0; n]),
            none(),
            Values::U32(rows.iter().map(|row| row.session).collect()),
            Values::U32(vec![0; n]),
            zero(),
            zero(),
            numbers(&|row| row.since_ns as i64),
        ];
        rows.clear();
        self.calls = rows;
        self.put("calls", &trace_tables::CALLS, values)
    }

    /// Writes everything that is still buffered.
    pub fn finish(&mut self) -> Result<(), EvidenceError> {
        self.flush_waits()?;
        self.flush_calls()?;
        for (_, (part, _)) in std::mem::take(&mut self.parts) {
            part.finish()?;
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Returns the folder of the trace.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the key and text of each statement; an unknown text is replaced by the reason.
    pub fn texts(&self) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
        self.statements.iter().map(|statement| {
            let is_told = !statement.text.is_empty() || self.textless.is_empty();
            let why = || format!("(text not seen: {}; query id {})", self.textless, statement.key);
            (statement.key.as_str(), if is_told { Cow::from(&statement.text) } else { why().into() })
        })
    }

    /// Returns the statements whose text is unknown: key, number of calls, and their time [ns].
    pub fn without_text(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        let still = self.without_text.iter().filter(|(number, _)| !self.has_text(**number));
        still.map(|(number, (calls, ns))| (self.statements[*number as usize].key.as_str(), *calls, *ns))
    }

    /// Returns the failed calls with their SQLSTATE, their start on the wall clock [ns], and the key of their
    /// statement.
    pub fn failures(&self) -> impl Iterator<Item = (&CallRow, u32, i64, Option<&str>)> {
        self.errors.iter().map(|(row, state)| {
            let key = self.statements.get(row.statement as usize).map(|statement| statement.key.as_str());
            (row, *state, self.wall(row.since_ns), key)
        })
    }

    /// Converts a monotonic time to the wall clock [ns].
    pub fn at(&self, at_ns: u64) -> i64 {
        self.wall(at_ns)
    }
}
