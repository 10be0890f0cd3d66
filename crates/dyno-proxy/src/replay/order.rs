//! Order of commits: a round trip that ended after a commit in the capture is sent after that commit in the replay.
//!
//! A statement that was blocked by a lock ended after the commit that released the lock was sent, so the session that
//! had a lock first in the capture gets it first in the replay. Each round trip has one moment. For a bare COMMIT or
//! ROLLBACK, which waits for nobody, it is the time of sending, because its answer may reach the wire after that of
//! the session it unblocked; for any other it is its end. A round trip waits for all commits of earlier moments.
//! Since the moments of a session increase, there are no circular waits.
//!
//! Limits: for single-statement transactions that end at nearly the same moment the wire may show the wrong order.
//! Waits have a timeout, and expired ones are counted.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::read::{Session, Turn};

/// Longest time that a round trip waits for earlier commits.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Commits of a capture, and which of them are done.
#[derive(Debug, Default)]
pub struct Order {
    /// Moments of the commits, sorted [ns].
    moments_ns: Vec<u64>,
    done: Mutex<Done>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Done {
    each: Vec<bool>,
    /// Number of leading commits that are all done.
    prefix: usize,
}

/// Returns the moment of a round trip [ns], or `None` if it was never answered.
pub fn moment(turn: &Turn) -> Option<u64> {
    let ends = |tag: &[u8]| tag.starts_with(b"COMMIT") || tag.starts_with(b"ROLLBACK\0");
    let is_bare = !turn.answers.is_empty() && turn.answers.iter().all(|said| said.tag == b'C' && ends(&said.body));
    turn.done_ns.map(|done_ns| if is_bare && turn.status == b'I' { turn.sent_ns } else { done_ns })
}

impl Order {
    /// Returns the commits of these sessions, and the index of each round trip's commit, by session and round trip.
    pub fn of(sessions: &[Session]) -> (Self, Vec<Vec<Option<usize>>>) {
        let mut commits = Vec::new();
        for (session, found) in sessions.iter().enumerate() {
            let (mut was_within, mut has_written) = (false, false);
            for (at, turn) in found.turns.iter().enumerate() {
                has_written = turn.writes() || (was_within && has_written);
                if let Some(at_ns) = moment(turn).filter(|_| turn.status == b'I' && has_written) {
                    commits.push((at_ns, session, at));
                }
                was_within = turn.status != b'I';
            }
        }
        commits.sort_unstable();
        let mut places: Vec<Vec<Option<usize>>> = sessions.iter().map(|one| vec![None; one.turns.len()]).collect();
        for (place, (_, session, at)) in commits.iter().enumerate() {
            places[*session][*at] = Some(place);
        }
        let moments_ns: Vec<u64> = commits.iter().map(|commit| commit.0).collect();
        let done = Done { each: vec![false; moments_ns.len()], prefix: 0 };
        (Self { moments_ns, done: Mutex::new(done), moved: Condvar::new() }, places)
    }

    fn lock(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of commits.
    pub fn len(&self) -> usize {
        self.moments_ns.len()
    }

    /// Returns true if there are no commits.
    pub fn is_empty(&self) -> bool {
        self.moments_ns.is_empty()
    }

    /// Waits for all commits of earlier moments; returns false after the timeout.
    pub fn wait(&self, before_ns: u64) -> bool {
        let needed = self.moments_ns.partition_point(|moment_ns| *moment_ns < before_ns);
        let guard = self.lock();
        let waited = self.moved.wait_timeout_while(guard, PATIENCE, |done| done.prefix < needed);
        waited.is_ok_and(|(_, limit)| !limit.timed_out())
    }

    /// Marks a commit as done, also one that will never happen.
    pub fn finish(&self, place: usize) {
        let mut done = self.lock();
        done.each[place] = true;
        while done.each.get(done.prefix) == Some(&true) {
            done.prefix += 1;
        }
        drop(done);
        self.moved.notify_all();
    }
}
