//! Order of a replay: events happen in the same order as in the capture.
//!
//! Two orders are kept, both by a [`Front`], which lets an event pass once all earlier events are done:
//!
//! - A session begins when all sessions that had ended before it began in the capture have ended ([`Ends`]).
//! - On request, writing transactions commit in the captured order, and every round trip sees the same commits
//!   ([`Order`]).
//!
//! For the second order each round trip has one moment. For a bare COMMIT or ROLLBACK, which waits for nobody, the
//! moment is the time of sending, because its answer may reach the wire after that of the session it unblocked. For any
//! other round trip it is the end: a statement that was blocked by a lock ended after the commit that released the lock
//! was sent. So the session that had a lock first in the capture gets it first in the replay. A round trip waits for
//! all commits of earlier moments. A commit waits for all round trips of earlier moments in transactions that write, so
//! that none of these sees changes that it did not see in the capture. Since the moments of a session increase, there
//! are no circular waits.
//!
//! Limits: a SELECT is known to write only if the request says so ([`super::places::Places`]). Of transactions that
//! overlap, the wire shows the order in which they were answered. If their last statements end at nearly the same
//! moment, the server may have committed them in the opposite order. A wait for a round trip that the server does not
//! answer stops after [`PATIENCE`], and is counted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::read::{Session, Turn};

/// Time for which the server may work on a round trip that others wait for; shorter than `lock_timeout`.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Longest uninterrupted wait, so that a request to stop is noticed.
const NAP: Duration = Duration::from_millis(100);

/// Place in the order: time by the monotonic clock of the capture [ns], index of the session, and of the round trip.
pub type Moment = (u64, usize, usize);

/// Sorted events, and which of them are done.
#[derive(Debug, Default)]
pub struct Front {
    moments: Vec<Moment>,
    done: Mutex<Done>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Done {
    each: Vec<bool>,
    /// Number of leading events that are all done.
    prefix: usize,
}

impl Front {
    /// Sorts these events, none of which is done yet.
    pub fn of(mut moments: Vec<Moment>) -> Self {
        moments.sort_unstable();
        let done = Done { each: vec![false; moments.len()], prefix: 0 };
        Self { moments, done: Mutex::new(done), moved: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all events before a moment are done. Returns false if `gives_up` returns true for the session of the
    /// first pending event.
    fn wait(&self, before: Moment, gives_up: impl Fn(usize) -> bool) -> bool {
        let needed = self.moments.partition_point(|moment| *moment < before);
        let mut done = self.lock();
        while done.prefix < needed {
            if gives_up(self.moments[done.prefix].1) {
                return false;
            }
            done = self.moved.wait_timeout(done, NAP).map_or_else(|error| error.into_inner().0, |waited| waited.0);
        }
        true
    }

    /// Marks an event as done, even if the event will never happen; moments without an event are ignored.
    fn finish(&self, moment: Moment) {
        let Ok(place) = self.moments.binary_search(&moment) else { return };
        let mut done = self.lock();
        done.each[place] = true;
        while done.each.get(done.prefix) == Some(&true) {
            done.prefix += 1;
        }
        drop(done);
        self.moved.notify_all();
    }
}

/// Ends of sessions.
#[derive(Debug)]
pub struct Ends {
    front: Front,
    ends_ns: Vec<u64>,
}

impl Ends {
    /// Returns the ends of these sessions.
    pub fn of(sessions: &[Session]) -> Self {
        let ends_ns: Vec<u64> = sessions.iter().map(|session| session.span_ns().1).collect();
        let front = Front::of(ends_ns.iter().enumerate().map(|(session, end_ns)| (*end_ns, session, 0)).collect());
        Self { front, ends_ns }
    }

    /// Waits until all sessions that ended before this time in the capture have ended; returns false if `stop` becomes
    /// true.
    pub fn wait(&self, begin_ns: u64, stop: &AtomicBool) -> bool {
        self.front.wait((begin_ns, 0, 0), |_| stop.load(Ordering::Relaxed))
    }

    /// Marks the end of a session.
    pub fn finish(&self, session: usize) {
        self.front.finish((self.ends_ns[session], session, 0));
    }
}

/// Role of a round trip in the order of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// Moment of the round trip; `None` if the round trip was never answered.
    pub moment: Option<Moment>,
    /// True if the round trip is in a transaction that writes.
    pub is_step: bool,
    /// True if the round trip ends such a transaction.
    pub is_commit: bool,
}

/// Commits of a capture and the round trips before them, and which of them are done.
#[derive(Debug)]
pub struct Order {
    commits: Front,
    steps: Front,
    roles: Vec<Vec<Role>>,
    /// For each session, the time since which the server has been working on one of its round trips, relative to
    /// `begun` [ns]; 0 for none.
    asked_ns: Vec<AtomicU64>,
    begun: Instant,
    patience: Duration,
}

/// Returns the time of a round trip in the order [ns], or `None` if it was never answered.
fn time_ns(turn: &Turn) -> Option<u64> {
    let ends = |tag: &[u8]| tag.starts_with(b"COMMIT") || tag.starts_with(b"ROLLBACK\0");
    let is_bare = !turn.answers.is_empty() && turn.answers.iter().all(|said| said.tag == b'C' && ends(&said.body));
    turn.done_ns.map(|done_ns| if is_bare && turn.status == b'I' { turn.sent_ns } else { done_ns })
}

/// Returns the roles of a session's round trips.
fn roles(session: usize, turns: &[Turn]) -> Vec<Role> {
    let mut roles: Vec<Role> = Vec::with_capacity(turns.len());
    let (mut begin, mut has_written) = (0, false);
    for (at, turn) in turns.iter().enumerate() {
        let moment = time_ns(turn).map(|at_ns| (at_ns, session, at));
        roles.push(Role { moment, ..Role::default() });
        has_written |= turn.writes();
        if moment.is_some() && turn.status == b'I' {
            if has_written {
                roles[begin..].iter_mut().for_each(|role| role.is_step = role.moment.is_some());
                roles[at].is_commit = true;
            }
            (begin, has_written) = (at + 1, false);
        }
    }
    roles
}

impl Order {
    /// Returns the order of the commits of these sessions.
    pub fn of(sessions: &[Session], patience: Duration) -> Self {
        let roles: Vec<_> = sessions.iter().enumerate().map(|(at, session)| roles(at, &session.turns)).collect();
        let those = |which: fn(&Role) -> bool| {
            Front::of(roles.iter().flatten().filter(|role| which(role)).filter_map(|role| role.moment).collect())
        };
        Self {
            commits: those(|role| role.is_commit),
            steps: those(|role| role.is_step),
            asked_ns: sessions.iter().map(|_| AtomicU64::default()).collect(),
            begun: Instant::now(),
            roles,
            patience,
        }
    }

    /// Returns the roles of a session's round trips.
    pub fn roles(&self, session: usize) -> &[Role] {
        &self.roles[session]
    }

    /// Returns the number of commits.
    pub fn len(&self) -> usize {
        self.commits.moments.len()
    }

    /// Returns true if there are no commits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// Waits for everything that precedes a round trip; returns false if that took too long. From then on, the server
    /// is considered to be working on the round trip.
    pub fn begin(&self, session: usize, turn: usize, stop: &AtomicBool) -> bool {
        let role = self.roles[session][turn];
        let kept = role.moment.is_none_or(|moment| {
            let gives_up = |other: usize| {
                let since_ns = self.asked_ns[other].load(Ordering::Relaxed);
                let is_stuck = since_ns > 0 && self.now_ns().saturating_sub(since_ns) > self.patience.as_nanos() as u64;
                is_stuck || stop.load(Ordering::Relaxed)
            };
            self.commits.wait(moment, gives_up) && (!role.is_commit || self.steps.wait(moment, gives_up))
        });
        self.asked_ns[session].store(self.now_ns().max(1), Ordering::Relaxed);
        kept
    }

    /// Marks a round trip as done, even if the round trip will never happen.
    pub fn finish(&self, session: usize, turn: usize) {
        self.asked_ns[session].store(0, Ordering::Relaxed);
        let role = self.roles[session][turn];
        let Some(moment) = role.moment else { return };
        if role.is_step {
            self.steps.finish(moment);
        }
        if role.is_commit {
            self.commits.finish(moment);
        }
    }
}
