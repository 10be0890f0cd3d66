//! Conversion of all sessions' events, in the order of the log, into the tables of a capture.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use dyno_evidence::EvidenceError;
use dyno_evidence::normal::Dialect;
use dyno_evidence::trace_store::{Server, SessionRow, Store, small};

use super::commit_order::Order;
use super::entry::{Unused, Who};
use super::event::{Event, Said, Step, What};
use super::mariadb;
use super::reason::Reason;
use super::session::{Counts, Lack, Session};
use crate::job::row_of;
use crate::shared::Shared;

/// Silence after which a process number is assumed to belong to a new session, if the log does not show where sessions
/// begin [ns].
const GAP_NS: u64 = 3_600_000_000_000;

/// A running import of events.
pub struct Import {
    shared: Shared,
    sessions: HashMap<u32, Session>,
    /// Clients that have logged in and sent nothing yet: since when, and who they are.
    idle: HashMap<u32, (u64, Option<Arc<Who>>)>,
    over: Vec<SessionRow>,
    /// Name of the database whose sessions are kept; `None` for all.
    database: Option<String>,
    /// Totals for the report.
    pub counts: Counts,
    /// Entries that could not be used.
    pub unused: Unused,
    /// Number of statements by database; statements without a database are counted under the empty name.
    pub databases: BTreeMap<String, u64>,
    order: Order,
    /// Time of the first and of the last statement [ns].
    pub span_ns: Option<(u64, u64)>,
    /// Version of the server, if the log contains it.
    pub version: String,
    /// True if sessions with the same process number are distinguished only by gaps and ends.
    pub is_by_gaps: bool,
}

impl Import {
    /// Begins an import into a store.
    pub fn new(store: Store, database: Option<String>, dialect: Dialect) -> Self {
        let mut shared = Shared::new(store, true);
        (shared.bytes, shared.dialect) = (None, dialect);
        Self {
            shared,
            sessions: HashMap::new(),
            idle: HashMap::new(),
            over: Vec::new(),
            database,
            counts: Counts::default(),
            unused: Unused::default(),
            databases: BTreeMap::new(),
            order: Order::default(),
            span_ns: None,
            version: String::new(),
            is_by_gaps: false,
        }
    }

    /// Adds an event.
    pub fn add(&mut self, event: Event) {
        let Event { at_ns, floor_ns, latest_ns, file, line, pid, start, who, what } = event;
        // A stamp of a whole second would make statements as long as a second where they may have waited for a commit.
        let (floor_ns, latest_ns) = if start == mariadb::START { (at_ns, at_ns) } else { (floor_ns, latest_ns) };
        let place = (&*file, line);
        if let What::Restarted(version) = what {
            self.version = version.unwrap_or_else(|| std::mem::take(&mut self.version));
            self.end_all();
            return;
        }
        let is_other = self.sessions.get(&pid).is_some_and(|known| {
            let is_another_user = match (&known.who, &who) {
                (Some(before), Some(now)) => {
                    before.user != now.user || (start != mariadb::START && before.database != now.database)
                }
                _ => false,
            };
            let is_gap = start == 0 && at_ns.saturating_sub(known.seen_ns) > GAP_NS;
            known.start != start || is_another_user || is_gap || matches!(what, What::Connected)
        });
        if is_other || matches!(what, What::Disconnected) {
            self.end(pid, Some(at_ns).filter(|_| !is_other), place);
        }
        match &what {
            What::Disconnected | What::Restarted(_) => return,
            What::Connected | What::Authorized => {
                self.idle.insert(pid, (at_ns, who));
                return;
            }
            What::Failed(failure) if failure.sql.is_empty() && !self.sessions.contains_key(&pid) => return,
            _ => {}
        }
        let who = who.or_else(|| self.known(pid));
        let of = who.as_ref().map_or("", |who| who.database.as_str());
        if let Some(reason) = self.reason_against(of) {
            // Parse and bind belong to the execution that is counted.
            if !matches!(what, What::Done(Said { step: Step::Parse | Step::Bind, .. }, _)) {
                self.unused.add(reason, place.0, place.1);
            }
            return;
        }
        self.is_by_gaps |= start == 0;
        self.begin(pid, start, at_ns.saturating_sub(duration_of(&what)));
        let Some(session) = self.sessions.get_mut(&pid) else { return };
        session.seen_ns = at_ns;
        session.stamp(self.order.stamp(floor_ns, latest_ns));
        if let Some(who) = &who {
            session.belongs_to(who);
        }
        let is_fatal = matches!(&what, What::Failed(failure) if failure.is_fatal);
        let before = self.counts.executions;
        let lacks = take(session, what, at_ns, &mut self.shared, &mut self.counts, &mut self.unused, place);
        if self.counts.executions > before {
            match self.databases.get_mut(of) {
                Some(count) => *count += 1,
                None => drop(self.databases.insert(of.to_owned(), 1)),
            }
            let (first_ns, last_ns) = self.span_ns.unwrap_or((at_ns, at_ns));
            self.span_ns = Some((first_ns.min(at_ns), last_ns.max(at_ns)));
        }
        tell(&mut self.unused, &lacks, place);
        self.order.note(pid, (floor_ns, latest_ns), &mut self.sessions);
        if is_fatal {
            self.end(pid, Some(at_ns), place);
        }
    }

    /// Returns the user and database of a process, as far as earlier entries show.
    fn known(&self, pid: u32) -> Option<Arc<Who>> {
        match self.sessions.get(&pid) {
            Some(session) => session.who.clone(),
            None => self.idle.get(&pid)?.1.clone(),
        }
    }

    /// Returns why sessions of a database are left out; `None` if they are kept.
    fn reason_against(&self, database: &str) -> Option<Reason> {
        let wanted = self.database.as_deref()?;
        match database {
            "" => Some(Reason::NoDatabase),
            _ => (database != wanted).then_some(Reason::OtherDatabase),
        }
    }

    /// Begins a session for a process, unless the process has a session.
    fn begin(&mut self, pid: u32, start: u64, begun_ns: u64) {
        let (shared, idle) = (&mut self.shared, &mut self.idle);
        self.sessions.entry(pid).or_insert_with(|| {
            let since_ns = idle.remove(&pid).map_or(begun_ns, |waiting| waiting.0.min(begun_ns));
            Session::new(shared.take_number(), since_ns, pid, start, shared)
        });
    }

    /// Writes the tables that have enough rows for a part.
    ///
    /// # Errors
    /// The evidence cannot be written.
    pub fn flush(&mut self) -> Result<(), EvidenceError> {
        self.shared.flush(false)
    }

    fn end(&mut self, pid: u32, at_ns: Option<u64>, place: (&str, u64)) {
        self.idle.remove(&pid);
        let Some(mut session) = self.sessions.remove(&pid) else { return };
        let bare = session.take_bare();
        for _ in 0..bare {
            self.unused.add(Reason::Bare, place.0, place.1);
        }
        let at_ns = at_ns.unwrap_or(session.seen_ns);
        let (lacks, is_open) = session.finish(at_ns, &mut self.shared, &mut self.counts);
        tell(&mut self.unused, &lacks, place);
        if is_open {
            self.unused.add(Reason::Unfinished, place.0, place.1);
        }
        self.over.push(row_of(*session.follower));
    }

    fn end_all(&mut self) {
        let mut left: Vec<u32> = self.sessions.keys().copied().collect();
        left.sort_unstable();
        for pid in left {
            self.end(pid, None, ("the end of the log", 0));
        }
    }

    /// Ends all sessions and writes the remaining tables; returns the numbers of sessions, calls and waits.
    ///
    /// # Errors
    /// The evidence cannot be written.
    pub fn finish(&mut self, path: String) -> Result<(u32, u64, u64), EvidenceError> {
        self.end_all();
        self.shared.flush(true)?;
        self.over.sort_by_key(|row| row.number);
        let server = Server { path, version: self.version.clone(), gaps: Vec::new() };
        small::write(&self.shared.store, &self.over, &server)?;
        Ok((self.shared.next_session, self.shared.next_call, self.shared.next_wait))
    }
}

fn duration_of(what: &What) -> u64 {
    match what {
        What::Done(_, duration_ns) | What::Ended(duration_ns) => *duration_ns,
        _ => 0,
    }
}

/// Passes an event to its session; returns what is missing in the resulting messages.
fn take(
    session: &mut Session,
    what: What,
    at_ns: u64,
    shared: &mut Shared,
    counts: &mut Counts,
    unused: &mut Unused,
    place: (&str, u64),
) -> Vec<Lack> {
    match what {
        What::Begun(Said { step: Step::Fetch, .. }) | What::Done(Said { step: Step::Fetch, .. }, _) => {
            unused.add(Reason::Fetch, place.0, place.1);
            Vec::new()
        }
        What::Begun(said) => {
            if said.step == Step::Simple {
                (0..session.take_bare()).for_each(|_| unused.add(Reason::Bare, place.0, place.1));
            }
            session.begun(said, at_ns, shared, counts)
        }
        What::Done(said, duration_ns) => session.done(said, at_ns, duration_ns, shared, counts),
        What::Ended(duration_ns) => session.ended(at_ns, duration_ns, shared, counts),
        What::Failed(failure) => {
            let is_fatal = failure.is_fatal;
            session.failed(failure, at_ns, shared, counts).unwrap_or_else(|| {
                // The end of a session that did nothing is no statement.
                if !is_fatal {
                    unused.add(Reason::Textless, place.0, place.1);
                }
                Vec::new()
            })
        }
        What::Connected | What::Authorized | What::Disconnected | What::Restarted(_) => Vec::new(),
    }
}

fn tell(unused: &mut Unused, lacks: &[Lack], place: (&str, u64)) {
    for lack in lacks {
        let reason = match lack {
            Lack::Rows => Reason::NoRows,
            Lack::Parameters => Reason::NoParameters,
            Lack::Cut => Reason::CutParameters,
        };
        unused.add(reason, place.0, place.1);
    }
}
