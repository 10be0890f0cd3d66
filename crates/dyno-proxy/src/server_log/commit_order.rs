//! Order of commits and of nearby round trips, as far as the lines of a log show it; see [`super::session`] for the
//! rules.

use std::collections::{HashMap, VecDeque};

use super::session::{Session, Stamp};

/// Time by which lines of a log may be out of order, in addition to the resolution of their stamps [ns].
const SLACK_NS: u64 = 10_000_000;
/// Number of recent round trips that are examined.
const RECENT: usize = 64;
/// Age up to which round trips count as recent [ns].
const RECENT_NS: u64 = 2_000_000;

/// Commits so far, and sessions whose last round trip has just ended.
#[derive(Default)]
pub struct Order {
    /// Latest time at which something ended outside a transaction [ns].
    last_ns: u64,
    recent: VecDeque<(u32, u64)>,
}

impl Order {
    /// Returns the range of times that are possible for an entry with this earliest and this latest time.
    pub fn stamp(&self, floor_ns: u64, latest_ns: u64) -> Stamp {
        // Clocks are set back.
        let is_near = self.last_ns <= latest_ns.saturating_add(SLACK_NS);
        Stamp { floor_ns, latest_ns, least_ns: if is_near { self.last_ns + 1 } else { 0 } }
    }

    /// Records the round trip that has ended with a session's last entry.
    pub fn note(&mut self, pid: u32, (floor_ns, latest_ns): (u64, u64), sessions: &mut HashMap<u32, Session>) {
        while self.recent.len() > RECENT
            || self.recent.front().is_some_and(|(_, latest_ns)| latest_ns.saturating_add(RECENT_NS) < floor_ns)
        {
            self.recent.pop_front();
        }
        let Some(session) = sessions.get_mut(&pid) else { return };
        if let Some(moment_ns) = session.take_moment() {
            self.commit(moment_ns, floor_ns);
        }
        let commit_ns = session.take_commit();
        if let Some(commit_ns) = commit_ns {
            for at in 0..self.recent.len() {
                let other = self.recent[at].0;
                if other != pid
                    && let Some(moment_ns) = sessions.get_mut(&other).and_then(|one| one.follow_commit(commit_ns))
                {
                    self.commit(moment_ns, floor_ns);
                }
            }
        } else {
            self.recent.push_back((pid, latest_ns));
        }
    }

    fn commit(&mut self, moment_ns: u64, floor_ns: u64) {
        let is_set_back = self.last_ns > floor_ns.saturating_add(1_000 * SLACK_NS);
        self.last_ns = if is_set_back { moment_ns } else { self.last_ns.max(moment_ns) };
    }
}
