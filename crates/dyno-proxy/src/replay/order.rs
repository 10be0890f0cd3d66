//! Commits in the order in which they were: a round trip that ended after a commit then is sent after it now.
//!
//! What was blocked by a lock ended after the commit that freed it, so whoever had a lock first then gets it first now.
//! Two ends that lie so near that the wire showed them the other way round could still wait for each other: a wait has a
//! limit, and those that ran into it are counted.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::read::Session;

/// How long a round trip waits for a commit that should come first.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The commits of a capture, and which of them were done.
#[derive(Debug, Default)]
pub struct Order {
    /// When each ended then, sorted.
    ends_ns: Vec<u64>,
    done: Mutex<Done>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Done {
    each: Vec<bool>,
    /// So many from the first on are done.
    prefix: usize,
}

impl Order {
    /// The commits of these sessions, and for each session the place of each round trip's commit.
    pub fn of(sessions: &[Session]) -> (Self, Vec<Vec<Option<usize>>>) {
        let mut commits = Vec::new();
        for (session, found) in sessions.iter().enumerate() {
            let (mut was_within, mut has_written) = (false, false);
            for (at, turn) in found.turns.iter().enumerate() {
                has_written = turn.writes() || (was_within && has_written);
                if let Some(done_ns) = turn.done_ns.filter(|_| turn.status == b'I' && has_written) {
                    commits.push((done_ns, session, at));
                }
                was_within = turn.status != b'I';
            }
        }
        commits.sort_unstable();
        let mut places: Vec<Vec<Option<usize>>> = sessions.iter().map(|one| vec![None; one.turns.len()]).collect();
        for (place, (_, session, at)) in commits.iter().enumerate() {
            places[*session][*at] = Some(place);
        }
        let ends_ns: Vec<u64> = commits.iter().map(|commit| commit.0).collect();
        let done = Done { each: vec![false; ends_ns.len()], prefix: 0 };
        (Self { ends_ns, done: Mutex::new(done), moved: Condvar::new() }, places)
    }

    fn lock(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends_ns.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends_ns.is_empty()
    }

    /// Waits for all commits that had ended before this moment; false where that took too long.
    pub fn wait(&self, before_ns: u64) -> bool {
        let needed = self.ends_ns.partition_point(|end_ns| *end_ns < before_ns);
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
