//! Assignment of notes (records of fired probes, in time order) to the sessions of a server.

use std::collections::HashMap;

use crate::attach::Attached;
use crate::perf::{Note, Record};
use crate::probes::{Probe, What};
use crate::process;
use crate::session::{Known, Session, Who};
use crate::shed::{Step, Tally};
use crate::store::Store;
use crate::tracefs::{FIELDS, number, text};

/// Filter of the backends to record.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Process id of the only backend to record, together with its parallel workers; `None` for all backends.
    pub pid: Option<i32>,
    /// Name of the only database whose backends are recorded; `None` for all databases.
    pub database: Option<String>,
    /// Name of the only user whose backends are recorded; `None` for all users.
    pub user: Option<String>,
}

impl Wanted {
    pub(crate) fn all(&self) -> bool {
        self.pid.is_none() && self.database.is_none() && self.user.is_none()
    }

    pub(crate) fn fits(&self, pid: i32, who: &Who) -> bool {
        let same = |wanted: &Option<String>, has: &str| wanted.as_deref().is_none_or(|wanted| wanted == has);
        self.pid.is_none_or(|wanted| wanted == pid || who.leader == Some(wanted))
            && same(&self.database, &who.database)
            && same(&self.user, &who.user)
    }
}

/// Counters of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Number of notes from probes in this server's processes.
    pub notes: u64,
    /// Number of notes from probes in other servers that run the same program file.
    pub foreign: u64,
    /// Number of notes that the kernel lost.
    pub lost: u64,
    /// Time that the probes cost the server's processes [ns].
    pub probes_ns: u64,
}

/// Running recording.
pub struct Recording {
    /// Filter of the backends to record.
    pub wanted: Wanted,
    /// All sessions so far.
    pub sessions: Vec<Session>,
    /// Store that receives the evidence.
    pub store: Store,
    /// Counters.
    pub counts: Counts,
    /// Gaps caused by lost notes: number of notes, start and end [ns].
    pub gaps: Vec<(u64, u64, u64)>,
    /// Number of notes for each probe, by the probe's address.
    pub places: HashMap<u64, u64>,
    /// Cost of probes for each session since the last check [ns], by the session's index.
    pub busy: HashMap<usize, u64>,
    /// Cost of probes [ns] by the step that would remove them; the key `None` stands for probes that no step removes.
    costs: HashMap<Option<Step>, u64>,
    known: Known,
    live: HashMap<i32, usize>,
    /// Server processes without a session, by process id. The notes of a process are buffered until it is known whether
    /// the process is to be recorded; `None` if it is not to be recorded.
    others: HashMap<i32, Option<Vec<Record>>>,
}

impl Recording {
    /// Returns a recording of a server, without sessions.
    pub fn new(attached: &Attached, wanted: Wanted, mut store: Store) -> Self {
        for (event, name) in &attached.names {
            store.name_event(*event, || name.clone());
        }
        let known = Known { price_ns: attached.trap.emulated_ns, ..Known::of(attached.client_read) };
        Self {
            wanted,
            sessions: Vec::new(),
            store,
            counts: Counts::default(),
            gaps: Vec::new(),
            places: HashMap::new(),
            busy: HashMap::new(),
            costs: HashMap::new(),
            known,
            live: HashMap::new(),
            others: HashMap::new(),
        }
    }

    /// Returns the number of live sessions.
    pub fn alive(&self) -> usize {
        self.live.len()
    }

    /// Adds the processes that exist now; their first call began before the recording.
    pub fn take_up(&mut self, attached: &Attached) {
        for pid in process::children(attached.postmaster) {
            let mut event = [0; 4];
            let Some(place) = process::pointer(pid, attached.pointer) else { continue };
            if process::read(pid, place, &mut event).is_none() {
                continue;
            }
            let at_ns = crate::perf::now_ns();
            let event = u32::from_le_bytes(event);
            let who = process::title(pid).map_or_else(Who::default, |title| who(&title));
            if !self.wanted.fits(pid, &who) {
                self.others.insert(pid, None);
                continue;
            }
            let at = self.add(pid, who, at_ns, Some(event));
            let client = self.sessions[at].who.kind == "client backend";
            if client
                && event != attached.client_read
                && let Some(query) = process::pointer(pid, attached.query)
                && let Some(text) = process::text(pid, query, 4096).filter(|text| !text.is_empty())
            {
                self.sessions[at].recall(text.as_bytes(), &mut self.store);
            }
        }
    }

    fn add(&mut self, pid: i32, who: Who, at_ns: u64, event: Option<u32>) -> usize {
        let at = self.sessions.len();
        self.sessions.push(Session::new(at as u32, pid, who, at_ns, event, &mut self.known));
        self.live.insert(pid, at);
        at
    }

    /// Processes one note.
    pub fn note(&mut self, attached: &Attached, record: Record) {
        match &record.note {
            Note::Lost(count) => return self.lost(*count, record.at_ns),
            Note::Fork { parent } if *parent == attached.postmaster => {
                if self.wanted.all() {
                    self.add(record.pid, Who::default(), record.at_ns, None);
                } else {
                    self.others.insert(record.pid, Some(vec![record]));
                }
                return;
            }
            _ => {}
        }
        if let Some(at) = self.live.get(&record.pid) {
            return self.give(attached, *at, record);
        }
        let is_sample = matches!(record.note, Note::Sample { .. });
        match self.others.get_mut(&record.pid) {
            Some(_) if record.note == Note::Exit => drop(self.others.remove(&record.pid)),
            Some(Some(kept)) => {
                kept.push(record.clone());
                self.settle(attached, &record);
            }
            Some(None) => self.counts.notes += u64::from(is_sample),
            None => self.counts.foreign += u64::from(is_sample),
        }
    }

    /// Decides whether a new process is recorded, once the process has identified itself.
    fn settle(&mut self, attached: &Attached, record: &Record) {
        let mut found = Who::default();
        let Note::Sample { id, register, raw } = &record.note else { return };
        match attached.meaning(*id, *register, raw) {
            Some((What::Login, _)) => login(&mut found, raw),
            Some((What::Leader, leader)) => self.follow(&mut found, leader as i32),
            _ => return,
        }
        if found.user.is_empty() && found.leader.is_none() {
            return;
        }
        let fits = self.wanted.fits(record.pid, &found);
        let kept = self.others.insert(record.pid, None).flatten().unwrap_or_default();
        if fits && let Some(first) = kept.first() {
            self.others.remove(&record.pid);
            let at = self.add(record.pid, found, first.at_ns, None);
            kept.into_iter().skip(1).for_each(|record| self.give(attached, at, record));
        }
    }

    /// Marks a process as a parallel worker and copies its leader's database and user.
    fn follow(&self, found: &mut Who, leader: i32) {
        "parallel worker".clone_into(&mut found.kind);
        found.leader = Some(leader);
        if let Some(at) = self.live.get(&leader) {
            found.database.clone_from(&self.sessions[*at].who.database);
            found.user.clone_from(&self.sessions[*at].who.user);
        }
    }

    fn give(&mut self, attached: &Attached, at: usize, record: Record) {
        let at_ns = record.at_ns;
        let mut leader = None;
        if at_ns < self.sessions[at].since_ns {
            return;
        }
        let (session, store, known) = (&mut self.sessions[at], &mut self.store, &mut self.known);
        match record.note {
            Note::Switch(off) => session.switched(at_ns, off),
            Note::Exit => {
                session.end(at_ns, true, store, known);
                self.live.remove(&record.pid);
            }
            Note::Sample { id, register, raw } => {
                let Some((what, value)) = attached.meaning(id, register, &raw) else { return };
                self.counts.notes += 1;
                let place = attached.place(id, &raw);
                let probe = attached.places.get(&place);
                (known.price_ns, known.class) = (attached.price_ns(place), probe.map_or(0, |probe| probe.class));
                self.counts.probes_ns += known.price_ns;
                *self.places.entry(place).or_default() += 1;
                *self.busy.entry(at).or_default() += known.price_ns;
                *self.costs.entry(probe.and_then(Probe::step)).or_default() += known.price_ns;
                match what {
                    What::Wait(_) => session.wait(at_ns, value as u32, store, known),
                    What::Running(kind) => session.take_up(at_ns, kind, text(&raw, FIELDS), store, known),
                    What::Done => {
                        let rows = number(&raw, FIELDS);
                        session.finish_statement(at_ns, rows, store, known);
                    }
                    What::QueryId => session.query_id(at_ns, value, store, known),
                    What::State(_) => session.state(at_ns, value as u32, text(&raw, FIELDS + 8), store, known),
                    What::Abort => session.abort(at_ns, store, known),
                    What::Login => login(&mut session.who, &raw),
                    What::Leader => leader = Some(value as i32),
                }
            }
            Note::Fork { .. } | Note::Lost(_) => {}
        }
        if let Some(leader) = leader {
            let mut found = self.sessions[at].who.clone();
            self.follow(&mut found, leader);
            self.sessions[at].who = found;
        }
    }

    fn lost(&mut self, count: u64, at_ns: u64) {
        // The lost notes are from between the previous drain and now.
        let since_ns = at_ns.saturating_sub(crate::request::DRAIN_EVERY.as_nanos() as u64 * 2);
        self.counts.lost += count;
        self.gaps.push((count, since_ns, at_ns));
        for session in &mut self.sessions {
            session.lose(since_ns, &mut self.store, &mut self.known);
        }
    }

    /// Returns the next group of probes to remove, judged by the probe costs and wait times since the last call.
    pub fn next_step(&mut self, given_up: &[Step]) -> Option<Step> {
        let (costs, waited_ns) = (std::mem::take(&mut self.costs), std::mem::take(&mut self.known.waited_ns));
        let tally = |step| Tally {
            cost_ns: costs.get(&Some(step)).copied().unwrap_or(0),
            waited_ns: if let Step::Class(class) = step { waited_ns[usize::from(class & 0xf)] } else { 0 },
        };
        crate::shed::next(given_up, &tally, costs.values().sum())
    }

    /// Ends the open waits whose probes were removed by a step.
    pub fn give_up(&mut self, step: Step, at_ns: u64) {
        if let Step::Class(class) = step {
            for session in self.sessions.iter_mut().filter(|session| !session.is_over()) {
                session.give_up(class, at_ns, &mut self.store, &mut self.known);
            }
        }
    }

    /// Reads the titles of new processes.
    pub fn ask_titles(&mut self) {
        for at in self.live.values() {
            let session = &mut self.sessions[*at];
            if session.who.kind.is_empty()
                && let Some(title) = process::title(session.pid)
            {
                let found = who(&title);
                if found.kind != "client backend" {
                    session.who.kind = found.kind;
                }
            }
        }
    }

    /// Ends all sessions because the recording is over.
    pub fn end(&mut self, at_ns: u64) {
        for session in self.sessions.iter_mut().filter(|session| !session.is_over()) {
            session.end(at_ns, false, &mut self.store, &mut self.known);
        }
    }
}

fn login(who: &mut Who, raw: &[u8]) {
    let word = |at| text(raw, at).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
    let (database, user) = (word(FIELDS), word(FIELDS + 4));
    if !user.is_empty() {
        "client backend".clone_into(&mut who.kind);
        (who.database, who.user) = (database, user);
    }
}

/// Titles of processes that serve no client.
const OWN: [&str; 16] = [
    "archiver",
    "autovacuum launcher",
    "autovacuum worker",
    "background writer",
    "checkpointer",
    "io worker",
    "logger",
    "logical replication",
    "parallel worker",
    "slotsync worker",
    "startup",
    "stats collector",
    "walreceiver",
    "walsender",
    "walsummarizer",
    "walwriter",
];

/// Returns the identity of a process, read from its title.
pub fn who(title: &str) -> Who {
    // A cluster with a name has the name at the beginning.
    let plain = title.split_once(": ").map_or(title, |(_, rest)| rest);
    for text in [title, plain] {
        if let Some(kind) = OWN.iter().find(|kind| text.starts_with(**kind)) {
            let leader = text.strip_prefix("parallel worker for PID ").and_then(|rest| rest.trim().parse().ok());
            return Who { kind: (*kind).to_owned(), leader, ..Who::default() };
        }
    }
    let mut words = plain.split_whitespace();
    let (user, database) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    Who { kind: "client backend".to_owned(), leader: None, database: database.to_owned(), user: user.to_owned() }
}
