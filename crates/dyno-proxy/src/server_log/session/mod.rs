//! A session of a log, as the messages that its client must have sent.
//!
//! The messages are passed to the proxy's [`Follower`], which turns them into calls, think times and a capture. A log
//! shows when a statement ended and how long it took; parse, bind and execute of one execution are one round trip. What
//! a log does not have (numbers of rows, results, the types of parameters, rows of a COPY) is not made up: command tags
//! have no number, and messages that cannot be sent again are kept incompletely, as the proxy keeps those that mention
//! a password.

mod messages;
mod placing;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::command::{commands, has_parameters};
use super::entry::Who;
use super::event::{Failure, Said, Step};
use super::parameters::Parameters;
use placing::Closing;
pub use placing::Stamp;

use crate::follow::Follower;
use crate::framing::Message;
use crate::shared::Shared;
use crate::statement::NO_STATE;

/// How a round trip ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The round trip ended without an error.
    Done,
    /// The round trip ended with an error of this SQLSTATE.
    Failed([u8; 5]),
    /// The log ends before the round trip does.
    Never,
}

/// Parse and bind of a statement that has not been executed yet.
struct Pending {
    said: Said,
    /// Start of the statement's first step [ns].
    begun_ns: u64,
    /// True if the log shows that the statement was parsed just before; false if it had been prepared earlier.
    is_parsed: bool,
    is_bound: bool,
}

/// Statement that `log_statement` announced.
struct Open {
    said: Said,
    begun_ns: u64,
}

/// Reason why a message cannot be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// The log does not have the rows of a COPY.
    Rows,
    /// The log does not have the parameters.
    Parameters,
    /// The parameters may have been truncated.
    Cut,
}

/// Totals of a session for the report.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Number of executions.
    pub executions: u64,
    /// Number of executions that failed.
    pub failed: u64,
    /// Number of failures without SQLSTATE.
    pub stateless: u64,
    /// Number of executions without a duration.
    pub untimed: u64,
    /// Number of sessions whose first transaction had begun before the log.
    pub begun_before: u64,
    /// Number of statements that had been prepared before the log.
    pub prepared_before: u64,
    /// Number of executions with parameters.
    pub with_parameters: u64,
    /// Shortest duration of an execution [ns].
    pub shortest_ns: Option<u64>,
    /// Length of the longest parameter that was certainly complete [bytes].
    pub longest: usize,
}

/// Session of a log.
pub struct Session {
    /// Follower, which writes what the session did.
    pub follower: Box<Follower>,
    /// Distinguishes this session from other sessions with the same process number; 0 if unknown.
    pub start: u64,
    /// User and database, if known.
    pub who: Option<Arc<Who>>,
    /// Time of the last entry [ns].
    pub seen_ns: u64,
    /// End of the last round trip [ns].
    free_ns: u64,
    pending: Option<Pending>,
    open: Option<Open>,
    /// Start of the first duration that cannot be assigned to a text yet [ns], and the number of such durations.
    bare: Option<(u64, u64)>,
    /// Prepared statements, by the hash of their text.
    named: HashMap<Vec<u8>, u64>,
    /// Names of the statements that SQL's PREPARE has prepared.
    prepared: HashSet<Vec<u8>>,
    status: u8,
    has_begun: bool,
    stamp: Stamp,
    closing: Option<Closing>,
    moment_ns: Option<u64>,
    committed_ns: Option<u64>,
    body: Vec<u8>,
}

fn is_same(pending: &Pending, said: &Said) -> bool {
    pending.said.name == said.name && pending.said.sql == said.sql
}

impl Session {
    /// Begins a session.
    pub fn new(number: u32, at_ns: u64, pid: u32, start: u64, shared: &mut Shared) -> Self {
        let mut follower = Box::new(Follower::new(number, at_ns));
        follower.row.pid = pid as i32;
        follower.server(at_ns, Message { tag: b'Z', length: 1, body: b"I" }, shared);
        follower.settle(at_ns, shared);
        Self {
            follower,
            start,
            who: None,
            seen_ns: at_ns,
            free_ns: at_ns,
            pending: None,
            open: None,
            bare: None,
            named: HashMap::new(),
            prepared: HashSet::new(),
            status: b'I',
            has_begun: false,
            stamp: Stamp::default(),
            closing: None,
            moment_ns: None,
            committed_ns: None,
            body: Vec::new(),
        }
    }

    /// Sets user and database, once they are known.
    pub fn belongs_to(&mut self, who: &Arc<Who>) {
        if self.who.as_ref().is_some_and(|known| Arc::ptr_eq(known, who)) {
            return;
        }
        let row = &mut self.follower.row;
        row.user.clone_from(&who.user);
        // A session of MariaDB may change its database: that of its begin counts.
        if row.database.is_empty() {
            row.database.clone_from(&who.database);
        }
        if !who.application.is_empty() {
            self.follower.application.clone_from(&who.application);
        }
        self.who = Some(Arc::clone(who));
    }

    /// Records that a statement begins.
    pub fn begun(&mut self, said: Said, at_ns: u64, shared: &mut Shared, counts: &mut Counts) -> Vec<Lack> {
        let lacks = self.unfinished(at_ns, shared, counts);
        let bare = self.bare.take();
        let mut begun_ns = at_ns;
        if said.step != Step::Simple {
            if let Some((bare_ns, _)) = bare {
                begun_ns = bare_ns;
            }
            // `log_min_duration_statement` has logged its parse and bind.
            if let Some(pending) = self.pending.as_ref().filter(|pending| is_same(pending, &said)) {
                begun_ns = pending.begun_ns;
            } else {
                self.flush(shared, counts);
            }
        }
        self.open = Some(Open { said, begun_ns });
        lacks
    }

    /// Ends a statement without a logged end.
    fn unfinished(&mut self, at_ns: u64, shared: &mut Shared, counts: &mut Counts) -> Vec<Lack> {
        let Some(open) = self.open.take() else { return Vec::new() };
        counts.untimed += 1;
        let until_ns = open.begun_ns.min(at_ns);
        self.executed(&open.said, (open.begun_ns, until_ns), Ending::Done, shared, counts)
    }

    /// Records that a step has ended whose statement may become known later.
    pub fn ended(&mut self, at_ns: u64, duration_ns: u64, shared: &mut Shared, counts: &mut Counts) -> Vec<Lack> {
        let Some(open) = self.open.take() else {
            let begun_ns = at_ns.saturating_sub(duration_ns);
            let bare = self.bare.get_or_insert((begun_ns, 0));
            bare.1 += 1;
            return Vec::new();
        };
        counts.shortest_ns = Some(counts.shortest_ns.map_or(duration_ns, |shortest| shortest.min(duration_ns)));
        let until_ns = at_ns.max(open.begun_ns.saturating_add(duration_ns));
        self.executed(&open.said, (open.begun_ns, until_ns), Ending::Done, shared, counts)
    }

    /// Returns and resets the number of durations without a text; at most two belong to the parse and the bind of a
    /// failed statement.
    pub fn take_bare(&mut self) -> u64 {
        self.bare.take().map_or(0, |bare| bare.1)
    }

    /// Records that a step has ended, and its duration.
    pub fn done(
        &mut self,
        said: Said,
        at_ns: u64,
        duration_ns: u64,
        shared: &mut Shared,
        counts: &mut Counts,
    ) -> Vec<Lack> {
        let mut lacks = self.unfinished(at_ns, shared, counts);
        let mut begun_ns = at_ns.saturating_sub(duration_ns);
        let is_same = self.pending.as_ref().is_some_and(|pending| is_same(pending, &said));
        match said.step {
            Step::Parse => {
                self.flush(shared, counts);
                self.pending = Some(Pending { said, begun_ns, is_parsed: true, is_bound: false });
            }
            Step::Bind => {
                if let Some(pending) = self.pending.as_mut().filter(|pending| is_same && !pending.is_bound) {
                    pending.said.parameters = said.parameters;
                    pending.is_bound = true;
                } else {
                    self.flush(shared, counts);
                    self.pending = Some(Pending { said, begun_ns, is_parsed: false, is_bound: true });
                }
            }
            Step::Simple | Step::Execute | Step::Fetch => {
                if said.step == Step::Simple || !is_same {
                    self.flush(shared, counts);
                } else if let Some(pending) = &self.pending {
                    begun_ns = pending.begun_ns;
                }
                counts.shortest_ns = Some(counts.shortest_ns.map_or(duration_ns, |shortest| shortest.min(duration_ns)));
                let until_ns = at_ns.max(begun_ns.saturating_add(duration_ns));
                lacks.extend(self.executed(&said, (begun_ns, until_ns), Ending::Done, shared, counts));
            }
        }
        lacks
    }

    /// Records a failed statement; returns `None` if it is unknown which statement failed.
    pub fn failed(
        &mut self,
        failure: Failure,
        at_ns: u64,
        shared: &mut Shared,
        counts: &mut Counts,
    ) -> Option<Vec<Lack>> {
        let Failure { sql, state, parameters, .. } = failure;
        self.bare = None;
        let open = self.open.take();
        let pending = self.pending.as_ref().filter(|pending| pending.said.sql == sql || sql.is_empty());
        let (said, begun_ns) = match (open, pending) {
            (Some(open), _) => (open.said, open.begun_ns),
            (None, Some(pending)) => (pending.said.clone(), pending.begun_ns),
            (None, None) if sql.is_empty() => return None,
            (None, None) => {
                let step = if has_parameters(&sql) { Step::Execute } else { Step::Simple };
                (Said { step, name: Vec::new(), sql, parameters: Parameters::default(), prepare: Vec::new() }, at_ns)
            }
        };
        let mut said = Said { step: if said.step == Step::Simple { Step::Simple } else { Step::Execute }, ..said };
        if parameters.count > 0 && said.parameters.count == 0 {
            said.parameters = parameters;
        }
        counts.failed += 1;
        counts.stateless += u64::from(state.is_none());
        let ending = Ending::Failed(state.unwrap_or(NO_STATE));
        let mut lacks = Vec::new();
        if !self.pending.as_ref().is_some_and(|pending| is_same(pending, &said)) {
            self.flush(shared, counts);
        }
        lacks.extend(self.executed(&said, (begun_ns, at_ns.max(begun_ns)), ending, shared, counts));
        Some(lacks)
    }

    /// Sends statements that were parsed under a name and not executed; other pending steps have no effect.
    fn flush(&mut self, shared: &mut Shared, counts: &mut Counts) {
        let Some(pending) = self.pending.take() else { return };
        if !pending.is_parsed || pending.said.name.is_empty() {
            return;
        }
        self.close(pending.begun_ns, shared, counts);
        let begun_ns = pending.begun_ns.max(self.free_ns);
        self.parse(&pending.said, begun_ns, shared);
        self.client(begun_ns, b'S', &[], shared);
        self.server(begun_ns, b'1', &[], shared);
        self.ready(begun_ns, shared);
    }

    /// Writes a whole round trip.
    fn executed(
        &mut self,
        said: &Said,
        span: (u64, u64),
        ending: Ending,
        shared: &mut Shared,
        counts: &mut Counts,
    ) -> Vec<Lack> {
        counts.executions += 1;
        let mut found = commands(&said.sql, shared.dialect);
        let (sent_ns, done_ns) = self.place(span, &found, ending, shared, counts);
        let mut lacks = Vec::new();
        if said.step == Step::Simple {
            self.prepare_before(said, &found, sent_ns, shared, counts);
            self.simple(said, &found, sent_ns, shared, &mut lacks);
        } else {
            self.extended(said, sent_ns, shared, counts, &mut lacks);
        }
        self.pending = None;
        if ending == Ending::Never {
            return lacks;
        }
        if ending != Ending::Done {
            found.clear();
        }
        self.answer(said.step, found, ending, (sent_ns, done_ns));
        lacks
    }

    /// Ends the session; an unfinished statement is never answered.
    ///
    /// Returns what could not be kept, and true if a statement was unfinished.
    pub fn finish(&mut self, at_ns: u64, shared: &mut Shared, counts: &mut Counts) -> (Vec<Lack>, bool) {
        let mut lacks = Vec::new();
        let open = self.open.take();
        let is_open = open.is_some();
        if let Some(open) = open {
            lacks = self.executed(&open.said, (open.begun_ns, open.begun_ns), Ending::Never, shared, counts);
        }
        self.flush(shared, counts);
        self.close(u64::MAX, shared, counts);
        let at_ns = at_ns.max(self.free_ns);
        self.follower.end(at_ns, 0, None, shared);
        (lacks, is_open)
    }
}
