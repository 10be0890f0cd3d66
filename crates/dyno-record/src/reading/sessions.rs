//! Sessions of a server that is read: changes found by looks become calls and waits.

use std::collections::HashMap;

use crate::process;
use crate::recording::{Wanted, who};
use crate::session::{Known, Session, Who};
use crate::store::Store;

use super::capture::Found;
use super::seen::{Before, Change, Seen, Status};

/// Age up to which the title of a process is read again [ns].
const YOUNG_NS: u64 = 10_000_000_000;

/// Known facts of a process.
struct Process {
    pid: i32,
    /// Index of the process's session; `None` while it is unknown whether the process is to be recorded.
    at: Option<usize>,
    /// Changes that are kept until it is known whether the process is to be recorded; `None` if it is not to be
    /// recorded.
    kept: Option<Vec<(u64, Seen)>>,
    begun_ns: u64,
    event: u32,
    event_ns: u64,
    status: Status,
    is_idle: bool,
    /// True if the process has waited since its statement began.
    has_waited: bool,
    /// True from a gap in the looks on, until the event that the process waits for is known again.
    is_torn: bool,
}

/// All sessions of a recording by reading.
pub struct Sessions {
    /// Sessions so far.
    pub all: Vec<Session>,
    /// Store to which the evidence is written.
    pub store: Store,
    /// Waits found so far, by the number of their event.
    pub found: HashMap<u32, Found>,
    wanted: Wanted,
    known: Known,
    processes: HashMap<u32, Process>,
}

impl Sessions {
    /// Returns an empty set of sessions.
    pub fn new(wanted: Wanted, store: Store, client_read: u32) -> Self {
        Self {
            all: Vec::new(),
            store,
            found: HashMap::new(),
            wanted,
            known: Known::of(client_read),
            processes: HashMap::new(),
        }
    }

    /// Processes changes, in time order.
    pub fn process(&mut self, changes: Vec<Change>) {
        for (number, at_ns, seen) in changes {
            if let Seen::Begin { pid, event, is_new } = seen {
                self.begin(number, pid, (at_ns, event, is_new));
                continue;
            }
            let Some(one) = self.processes.get_mut(&number) else { continue };
            match (&mut one.kept, one.at) {
                (_, Some(at)) => self.give(number, at, at_ns, seen),
                (Some(kept), None) => {
                    kept.push((at_ns, seen));
                    self.settle(number, at_ns);
                }
                (None, None) if seen == Seen::End => drop(self.processes.remove(&number)),
                (None, None) => {}
            }
        }
    }

    fn begin(&mut self, number: u32, pid: i32, (at_ns, event, is_new): (u64, u32, bool)) {
        let one = Process {
            pid,
            at: None,
            kept: Some(vec![(at_ns, Seen::Begin { pid, event, is_new })]),
            begun_ns: at_ns,
            event,
            event_ns: at_ns,
            status: Status::default(),
            is_idle: true,
            has_waited: false,
            is_torn: false,
        };
        self.processes.insert(number, one);
        if self.wanted.all() {
            self.open(number, title_of(pid));
        } else {
            self.settle(number, at_ns);
        }
    }

    /// Decides whether a process is to be recorded, once its title identifies it.
    fn settle(&mut self, number: u32, at_ns: u64) {
        let Some(one) = self.processes.get_mut(&number) else { return };
        let is_over = one.kept.as_ref().is_some_and(|kept| matches!(kept.last(), Some((_, Seen::End))));
        let Some(found) = title_of(one.pid) else {
            if is_over || at_ns.saturating_sub(one.begun_ns) > YOUNG_NS {
                self.processes.remove(&number);
            }
            return;
        };
        let (pid, found) = (one.pid, self.followed(found));
        if self.wanted.fits(pid, &found) {
            self.open(number, Some(found));
        } else if let Some(one) = self.processes.get_mut(&number) {
            one.kept = None;
        }
    }

    /// Creates a session for a process, and replays the kept changes into it.
    fn open(&mut self, number: u32, found: Option<Who>) {
        let found = found.map(|found| self.followed(found));
        let Some(one) = self.processes.get_mut(&number) else { return };
        let kept = one.kept.take().unwrap_or_default();
        let Some((at_ns, Seen::Begin { pid, event, is_new })) = kept.first().cloned() else { return };
        let at = self.all.len();
        one.at = Some(at);
        let mut session = Session::unseen(at as u32, pid, found.unwrap_or_default(), at_ns, is_new);
        session.observe(at_ns, event, &mut self.store, &mut self.known);
        session.is_at_work(event == 0);
        self.all.push(session);
        for (at_ns, seen) in kept.into_iter().skip(1) {
            self.give(number, at, at_ns, seen);
        }
    }

    /// Returns the identity of a process; a parallel worker gets the database and the user of its leader.
    fn followed(&self, mut found: Who) -> Who {
        let of_leader = |leader: i32| self.all.iter().rev().find(|session| session.pid == leader);
        if let Some(leader) = found.leader.and_then(of_leader) {
            (found.database, found.user) = (leader.who.database.clone(), leader.who.user.clone());
        }
        found
    }

    fn give(&mut self, number: u32, at: usize, at_ns: u64, seen: Seen) {
        let Some(one) = self.processes.get_mut(&number) else { return };
        let (session, store, known) = (&mut self.all[at], &mut self.store, &mut self.known);
        match seen {
            Seen::Wait { event, before } => {
                count(&mut self.found, one, at_ns, before);
                (known.holder, known.within_ns) = (before.holder, before.within_ns);
                session.wait(at_ns, event, store, known);
                session.is_at_work(event == 0);
                // The statement goes on after a gap in which its status did not change.
                if std::mem::take(&mut one.is_torn)
                    && one.status.is_running
                    && let Some(text) = &one.status.text
                {
                    session.recall(text, store);
                }
                one.is_idle |= event == known.client_read;
                one.has_waited |= event != 0;
                (one.event, one.event_ns) = (event, at_ns);
            }
            Seen::Status(status) => publish(one, session, at_ns, status, (store, known)),
            Seen::Unseen(since_ns, before) => {
                count(&mut self.found, one, since_ns, before);
                (one.event, one.is_torn) = (0, true);
                (known.holder, known.within_ns) = (before.holder, before.within_ns);
                session.lose(since_ns, store, known);
            }
            Seen::End => {
                count(&mut self.found, one, at_ns, Before::default());
                (known.holder, known.within_ns) = (0, 0);
                session.end(at_ns, true, store, known);
                self.processes.remove(&number);
            }
            Seen::Begin { .. } => {}
        }
    }

    /// Reads the titles of processes that had none yet.
    pub fn ask_titles(&mut self, at_ns: u64) {
        let untitled = |one: &&Process| {
            at_ns < one.begun_ns + YOUNG_NS && one.at.is_some_and(|at| self.all[at].who.kind.is_empty())
        };
        let asked = self.processes.values().filter(untitled);
        let found: Vec<(usize, Who)> =
            asked.filter_map(|one| Some((one.at?, self.followed(title_of(one.pid)?)))).collect();
        for (at, who) in found {
            self.all[at].who = who;
        }
    }

    /// Ends all sessions, because the recording is over or (`is_exit`) their processes have ended.
    pub fn end(&mut self, at_ns: u64, is_exit: bool) {
        for session in self.all.iter_mut().filter(|session| !session.is_over()) {
            session.end(at_ns, is_exit, &mut self.store, &mut self.known);
        }
        self.processes.clear();
    }

    /// Returns the number of processes being recorded.
    pub fn alive(&self) -> usize {
        self.processes.values().filter(|one| one.at.is_some()).count()
    }
}

/// Returns the identity of a process, once its title shows it.
fn title_of(pid: i32) -> Option<Who> {
    let found = who(&process::title(pid)?);
    // Until a session has logged in its title has no database.
    (found.kind != "client backend" || !found.database.is_empty()).then_some(found)
}

/// Counts a wait that has ended.
fn count(found: &mut HashMap<u32, Found>, one: &Process, at_ns: u64, before: Before) {
    if one.event != 0 && before.looks > 0 {
        found.entry(one.event).or_default().add(before.looks, at_ns.saturating_sub(one.event_ns));
    }
}

/// Applies a new status to a session.
///
/// Parse, Bind and Execute each publish the same text: if there is no wait between them, they are one call.
fn publish(one: &mut Process, session: &mut Session, at_ns: u64, status: Status, to: (&mut Store, &mut Known)) {
    let (store, known) = to;
    if status.is_running {
        let is_other = status.statement_us != one.status.statement_us;
        if is_other && (one.is_idle || one.has_waited || status.text != one.status.text) {
            one.has_waited = false;
            let kind = crate::probes::Kind::Exec;
            session.take_up(at_ns, kind, status.text.as_deref(), store, known);
        }
        if status.query_id != 0 {
            session.query_id(at_ns, status.query_id, store, known);
        }
        let text = status.text.or_else(|| one.status.text.take());
        one.status = Status { text, ..status };
        one.is_idle = false;
    } else {
        (one.status.is_running, one.is_idle) = (false, true);
    }
}
