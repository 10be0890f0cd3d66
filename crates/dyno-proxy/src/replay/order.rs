//! Commits in the order in which they were: a round trip that ended after a commit then is sent after it now.
//!
//! What was blocked by a lock ended after the commit that freed it was sent, so whoever had a lock first then gets it first
//! now. A round trip has one moment: a bare COMMIT or ROLLBACK, which waits for nobody, that at which it was sent (its
//! answer may reach the wire after that of whom it freed); any other its end. It waits for all commits of earlier moments;
//! since moments of a session grow, nobody waits in a circle.
//!
//! Limits: of statements that are transactions by themselves and end at nearly the same moment the wire may show the
//! wrong order. A wait has a limit, and those that ran into it are counted.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::read::{Session, Turn};

/// How long a round trip waits for a commit that should come first.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The commits of a capture, and which of them were done.
#[derive(Debug, Default)]
pub struct Order {
    /// Their moments, sorted.
    moments_ns: Vec<u64>,
    done: Mutex<Done>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Done {
    each: Vec<bool>,
    /// So many from the first on are done.
    prefix: usize,
}

/// The moment of a round trip; none of one that was never answered.
pub fn moment(turn: &Turn) -> Option<u64> {
    let ends = |tag: &[u8]| tag.starts_with(b"COMMIT") || tag.starts_with(b"ROLLBACK\0");
    let is_bare = !turn.answers.is_empty() && turn.answers.iter().all(|said| said.tag == b'C' && ends(&said.body));
    turn.done_ns.map(|done_ns| if is_bare && turn.status == b'I' { turn.sent_ns } else { done_ns })
}

impl Order {
    /// The commits of these sessions, and for each session the place of each round trip's commit.
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

    /// How many there are.
    pub fn len(&self) -> usize {
        self.moments_ns.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.moments_ns.is_empty()
    }

    /// Waits for all commits of earlier moments; false where that took too long.
    pub fn wait(&self, before_ns: u64) -> bool {
        let needed = self.moments_ns.partition_point(|moment_ns| *moment_ns < before_ns);
        let guard = self.lock();
        let waited = self.moved.wait_timeout_while(guard, PATIENCE, |done| done.prefix < needed);
        waited.is_ok_and(|(_, limit)| !limit.timed_out())
    }

    /// One is done, or never will be.
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
