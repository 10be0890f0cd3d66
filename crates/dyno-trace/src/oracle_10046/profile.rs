//! Response-time profile: how the sessions spent their time.
//!
//! Every nanosecond of a session is in exactly one line: a call's own CPU time, a wait, what neither explains within
//! calls (with its sign), and what no wait explains between calls. So the lines of a profile without a filter add up to
//! the elapsed time of the sessions.
//!
//! If items are grouped by event, which is the usual request, an item costs an access to an array; if they are grouped
//! by anything else, it costs a look-up in a small hash map.

mod from_run;
mod item;
mod line;
mod merged;
mod request;
mod run_tables;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::events::class_of;
use super::evidence::NumberHasher;
use super::filter::Field;
use super::force::force_match;
use super::parameters::Parameters;
use super::record::{Batch, Cursor};
use super::rows::{Belongs, CallRow, Context, Named, NewStatement, Owner, Sink, WaitRow};
pub use from_run::profile_run;
use item::Seen;
pub use item::{BETWEEN, CPU_NAME, Dictionary, Item, NONE, THINK, UNACCOUNTED, What};
pub use line::{DECADES, Line, bounds_of};
pub use merged::{Profile, profile_json};
pub use request::Request;

/// Largest number of fields to group by at once.
pub const BY_MAX: usize = 4;

/// Largest number of items buffered until the first stamp of their session.
const EARLY_MAX: usize = 1 << 15;

/// Longest beginning of a statement that a profile shows [bytes].
const TEXT_MAX: usize = 200;

/// Sums over the calls of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct KindSum {
    /// Number of calls.
    pub count: u64,
    /// Sums: elapsed, CPU, own elapsed, own CPU, own waits, rows, misses, and blocks.
    pub sums: [i128; KIND_SUMS.len()],
}

/// Names of [`KindSum::sums`].
pub const KIND_SUMS: [&str; 10] = [
    "elapsed_ns",
    "cpu_ns",
    "self_elapsed_ns",
    "self_cpu_ns",
    "self_wait_ns",
    "rows",
    "misses",
    "self_physical_reads",
    "self_consistent_reads",
    "self_current_reads",
];

/// Durations of a group: those of its waits, those of its calls' CPU time, and those of the unexplained time in its
/// calls. They are kept apart, since a quantile over all three would mean nothing.
pub type Lines = [Line; 3];

/// Returns the index into [`Lines`] of an item.
pub(super) fn slot(what: What) -> usize {
    match what {
        What::Wait(_) | What::Think => 0,
        What::Cpu => 1,
        What::Unaccounted => 2,
    }
}

/// A map from the numbers that identify a group to the group's line.
type Groups = HashMap<[i64; BY_MAX], (Item, usize), BuildHasherDefault<NumberHasher>>;

/// Sums over the items of one file.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // What of the request matters at every item.
pub struct Summing {
    request: Request,
    by_event: bool,
    defers: bool,
    keeps_texts: bool,
    takes_parameters: bool,
    dictionary: Dictionary,
    events: Vec<Line>,
    think: Line,
    cpu: Line,
    unaccounted: Line,
    groups: Groups,
    lines: Vec<Lines>,
    kinds: Vec<KindSum>,
    /// Items whose session has no stamp yet; buffered if the request needs their times.
    early: Vec<Item>,
    needs_times: bool,
    /// Sessions whose clock is anchored.
    anchored: Vec<u32>,
    waiting: HashMap<u64, Item, BuildHasherDefault<NumberHasher>>,
    forces: HashMap<String, u32>,
    texts: HashMap<u32, String>,
}

impl Summing {
    /// Returns empty sums.
    pub fn new(request: &Request, file: &str) -> Self {
        let sessions = vec![String::new()];
        let dictionary = Dictionary { file: file.to_owned(), sessions, ..Dictionary::default() };
        Self {
            by_event: request.is_by_event(),
            defers: request.needs_owners(),
            keeps_texts: request.needs_statements(),
            takes_parameters: request.uses(|field| matches!(field, Field::P1 | Field::P2 | Field::P3)),
            request: request.clone(),
            dictionary,
            events: Vec::new(),
            think: Line::default(),
            cpu: Line::default(),
            unaccounted: Line::default(),
            groups: Groups::default(),
            lines: Vec::new(),
            kinds: Vec::new(),
            early: Vec::new(),
            needs_times: request.needs_times(),
            anchored: Vec::new(),
            waiting: HashMap::default(),
            forces: HashMap::new(),
            texts: HashMap::new(),
        }
    }

    /// Returns the dictionary of the numbers in items; a caller that adds items itself must fill it.
    pub fn dictionary(&mut self) -> &mut Dictionary {
        &mut self.dictionary
    }

    /// Adds an item to the line of its group, if the filter selects it.
    pub fn add(&mut self, item: &Item) {
        if self.needs_times && self.early.len() < EARLY_MAX && !self.anchored.contains(&item.session) {
            self.early.push(*item);
        } else {
            self.add_now(item);
        }
    }

    /// Adds the items that were buffered until the first stamp of `session` (of all sessions if it is `None`): their
    /// times are known now.
    fn add_early(&mut self, session: Option<u32>) {
        for item in std::mem::take(&mut self.early) {
            if session.is_none_or(|session| item.session == session) {
                self.add_now(&item);
            } else {
                self.early.push(item);
            }
        }
    }

    fn add_now(&mut self, item: &Item) {
        let request = &self.request;
        let counts = request.from_ns.is_none_or(|from| item.started_ns >= from)
            && request.to_ns.is_none_or(|to| item.started_ns < to)
            && request.depth.is_none_or(|most| item.depth == u8::MAX || item.depth <= most)
            && request.filter.as_ref().is_none_or(|filter| filter.passes(&Seen(item, &self.dictionary)));
        if !counts {
            return;
        }
        let mut key = [0; BY_MAX];
        for (code, field) in key.iter_mut().zip(&request.by) {
            *code = self.dictionary.code(item, *field);
        }
        let lines = &mut self.lines;
        let (_, line) = self.groups.entry(key).or_insert_with(|| {
            lines.push(Lines::default());
            (*item, lines.len() - 1)
        });
        self.lines[*line][slot(item.what)].record(item.duration_ns);
    }

    /// Adds a wait.
    #[inline]
    pub fn add_wait(&mut self, item: &Item) {
        if !self.by_event {
            self.add(item);
            return;
        }
        match item.what {
            What::Wait(event) => {
                let at = event as usize;
                if at >= self.events.len() {
                    self.events.resize_with(at + 1, Line::default);
                }
                self.events[at].record(item.duration_ns);
            }
            _ => self.think.record(item.duration_ns),
        }
    }

    /// Adds a call: its own CPU time and its unexplained time.
    #[inline]
    pub fn add_call(&mut self, row: &CallRow) {
        self.count_kind(row);
        if self.by_event {
            self.cpu.record(row.own.cpu_ns);
            self.unaccounted.record(row.unaccounted_ns());
            return;
        }
        let mut item = Item {
            what: What::Cpu,
            duration_ns: row.own.cpu_ns,
            elapsed_ns: row.elapsed_ns,
            started_ns: row.started_ns,
            kind: row.kind,
            depth: row.depth,
            statement: row.statement,
            context: row.context,
            session: row.session,
            object: NONE,
            parameters: [NONE; 3],
            rows: row.rows,
        };
        self.add(&item);
        item.what = What::Unaccounted;
        item.duration_ns = row.unaccounted_ns();
        self.add(&item);
    }

    #[inline]
    fn count_kind(&mut self, row: &CallRow) {
        let at = usize::from(row.kind);
        if at >= self.kinds.len() {
            self.kinds.resize_with(at + 1, KindSum::default);
        }
        let known = |value: i64| if value == NONE { 0 } else { i128::from(value) };
        let kind = &mut self.kinds[at];
        kind.count += 1;
        let values = [
            i128::from(row.elapsed_ns),
            known(row.cpu_ns),
            i128::from(row.own.elapsed_ns),
            i128::from(row.own.cpu_ns),
            i128::from(row.own_wait_ns),
            known(row.rows),
            if row.misses == u8::MAX { 0 } else { i128::from(row.misses) },
            i128::from(row.own.physical),
            i128::from(row.own.consistent),
            i128::from(row.own.current),
        ];
        for (sum, value) in kind.sums.iter_mut().zip(values) {
            *sum += value;
        }
    }

    /// Adds waits whose owner was never found as waits between calls.
    pub fn settle(&mut self) {
        for (_, item) in std::mem::take(&mut self.waiting) {
            self.add_wait(&item);
        }
        self.add_early(None);
    }

    fn settle_one(&mut self, wait: u64, owner: Option<Owner>) {
        if let Some(mut item) = self.waiting.remove(&wait) {
            if let Some(owner) = owner {
                item.kind = owner.kind;
                item.depth = owner.depth;
            }
            self.add_wait(&item);
        }
    }

    /// Adds a statement: its key and, if literals are to be ignored, its normalized text.
    pub fn learn_statement(&mut self, number: u32, key: &str, text: Option<&[u8]>) {
        let mut force = u32::MAX;
        if let Some(text) = text {
            let begin = &text[..text.len().min(TEXT_MAX)];
            self.texts.insert(number, String::from_utf8_lossy(begin).into_owned());
            if self.request.uses(|field| field == Field::Force) {
                let folded = force_match(text);
                let next = self.forces.len() as u32;
                force = *self.forces.entry(folded).or_insert_with_key(|folded| {
                    self.dictionary.forces.push(folded.clone());
                    next
                });
            }
        }
        self.dictionary.statements.insert(number, (key.to_owned(), force));
    }
}

impl Sink for Summing {
    #[inline]
    fn call(&mut self, _batch: &Batch, row: &CallRow) {
        self.add_call(row);
    }

    #[inline]
    fn wait(&mut self, batch: &Batch, row: &WaitRow) {
        let mut item = Item {
            what: if row.think { What::Think } else { What::Wait(row.event) },
            duration_ns: row.elapsed_ns,
            elapsed_ns: row.elapsed_ns,
            started_ns: row.started_ns,
            kind: u16::MAX,
            depth: u8::MAX,
            statement: row.statement,
            context: row.context,
            session: row.session,
            object: row.object,
            parameters: [NONE; 3],
            rows: NONE,
        };
        if self.takes_parameters {
            let values = Parameters::of(batch.bytes_of(row.parameters)).map(|(_, value)| value);
            item.parameters.iter_mut().zip(values).for_each(|(place, value)| *place = value);
        }
        if self.defers {
            self.waiting.insert(row.number, item);
        } else {
            self.add_wait(&item);
        }
    }

    fn own(&mut self, wait: u64, owner: Owner) {
        if self.defers {
            self.settle_one(wait, Some(owner));
        }
    }

    fn between(&mut self, wait: u64) {
        if self.defers {
            self.settle_one(wait, None);
        }
    }

    /// Merges waits without an owner because there are too many of them; the kind and depth of their owner are lost.
    fn merge_waits(&mut self, waits: &[u64]) -> u64 {
        if self.defers {
            for wait in waits {
                self.settle_one(*wait, None);
            }
        }
        u64::MAX
    }

    fn statement(&mut self, new: NewStatement<'_>, _cursor: Option<&Cursor>, _at: Belongs) {
        if self.keeps_texts {
            self.learn_statement(new.number, new.key, new.text);
        }
    }

    fn anchor(&mut self, session: u32, _tim: i64, _residual_ns: i64) {
        if self.needs_times && !self.anchored.contains(&session) {
            self.anchored.push(session);
            self.add_early(Some(session));
        }
    }

    fn shift(&mut self, session: u32, _from_call: u64, _from_wait: u64, by_ns: i64) {
        if self.needs_times && !self.anchored.contains(&session) {
            let waiting = self.waiting.values_mut().chain(&mut self.early);
            for item in waiting.filter(|item| item.session == session) {
                item.started_ns = item.started_ns.saturating_add(by_ns);
            }
        }
    }

    fn session(&mut self, number: u32, name: &str, process: &str) {
        let sessions = &mut self.dictionary.sessions;
        if sessions.len() <= number as usize {
            sessions.resize(number as usize + 1, String::new());
        }
        let told = if name.is_empty() { process } else { name };
        told.clone_into(&mut sessions[number as usize]);
    }

    fn name(&mut self, what: Named, _number: u32, name: &[u8]) {
        let text = String::from_utf8_lossy(name);
        match what {
            Named::Event => {
                let class = class_of(&text);
                self.dictionary.events.push((text.into_owned(), class));
            }
            Named::LobCall => self.dictionary.lob_calls.push(text.to_lowercase()),
            Named::LobType => {}
        }
    }

    fn context(&mut self, _number: u32, context: &Context) {
        self.dictionary.contexts.push(context.clone());
    }
}
