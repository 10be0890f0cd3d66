//! Times of round trips, chosen within the resolution of the log's stamps.
//!
//! If a statement ended after a commit was sent, `trace replay --order commit` sends the statement only after that
//! commit. A statement that waited for a lock ended while the commit that released the lock was being executed, often
//! within the same millisecond. So the stamps alone do not show the order. The order of the lines does, with these
//! rules:
//!
//! - A statement that is logged after a commit ended after that commit was sent.
//! - A statement that is logged shortly before a commit may have waited for it, since a commit releases its locks
//!   before its own line is written. If the statement's stamp allows that it ended after the commit was sent, its end
//!   is moved there. Its transaction commits later, so the commit has not waited for it.
//! - A commit was sent as early as its stamp and its duration allow.
//!
//! So the answer of a statement is written when the next entry of its session is known.

use super::super::command::{Command, Effect};
use super::super::event::Step;
use super::{Counts, Ending, Session};
use crate::shared::Shared;

/// Range of times that the current entry allows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamp {
    /// Earliest time of the entry [ns].
    pub floor_ns: u64,
    /// Latest time of the entry [ns].
    pub latest_ns: u64,
    /// Time after which the statement ended, according to commits logged before it [ns].
    pub least_ns: u64,
}

/// Answer that is not written yet.
pub(super) struct Closing {
    pub(super) step: Step,
    pub(super) commands: Vec<Command>,
    pub(super) ending: Ending,
    sent_ns: u64,
    done_ns: u64,
    least_ns: u64,
    latest_ns: u64,
    is_bare: bool,
    ends_idle: bool,
}

/// Returns true for a lone COMMIT or ROLLBACK that leaves the session outside a transaction.
fn is_bare(commands: &[Command], ending: Ending) -> bool {
    ending == Ending::Done
        && matches!(commands, [Command { tag, effect: Effect::End { chains: false, .. } }] if tag == "COMMIT" || tag == "ROLLBACK")
}

impl Session {
    /// Sets the range of times from the current entry.
    pub fn stamp(&mut self, stamp: Stamp) {
        self.stamp = stamp;
    }

    /// Chooses the times of a round trip, and writes the answer of the previous one; returns when the new round trip
    /// was sent and answered [ns].
    pub(super) fn place(
        &mut self,
        (begun_ns, until_ns): (u64, u64),
        commands: &[Command],
        ending: Ending,
        shared: &mut Shared,
        counts: &mut Counts,
    ) -> (u64, u64) {
        let length_ns = until_ns.saturating_sub(begun_ns);
        let is_bare = is_bare(commands, ending);
        let before = self.closing.as_ref();
        let sent_ns = if is_bare {
            let earliest_ns = self.stamp.floor_ns.min(until_ns).saturating_sub(length_ns);
            before.map_or(earliest_ns, |before| earliest_ns.max(before.sent_ns).max(before.least_ns))
        } else {
            let until_ns = until_ns.max(self.stamp.least_ns);
            let since_ns = until_ns.saturating_sub(length_ns);
            before.map_or(since_ns, |before| since_ns.max(before.done_ns))
        };
        self.close(sent_ns, shared, counts);
        let sent_ns = sent_ns.max(self.free_ns);
        (sent_ns, sent_ns.saturating_add(length_ns))
    }

    /// Keeps an answer until the next entry of the session.
    pub(super) fn answer(
        &mut self,
        step: Step,
        commands: Vec<Command>,
        ending: Ending,
        (sent_ns, done_ns): (u64, u64),
    ) {
        let is_bare = is_bare(&commands, ending);
        let mut status = self.status;
        for command in &commands {
            match &command.effect {
                Effect::Begin => status = b'T',
                Effect::End { chains, .. } => status = if *chains { b'T' } else { b'I' },
                _ => {}
            }
        }
        let ends_idle = status == b'I';
        let Stamp { least_ns, latest_ns, .. } = self.stamp;
        self.moment_ns = ends_idle.then_some(if is_bare { sent_ns } else { done_ns });
        self.committed_ns = (ends_idle && is_bare).then_some(sent_ns);
        self.closing =
            Some(Closing { step, commands, ending, sent_ns, done_ns, least_ns, latest_ns, is_bare, ends_idle });
    }

    /// Writes the last answer, which came before `limit_ns`.
    pub(super) fn close(&mut self, limit_ns: u64, shared: &mut Shared, counts: &mut Counts) {
        let Some(closing) = self.closing.take() else { return };
        let Closing { step, commands, ending, sent_ns, done_ns, least_ns, .. } = closing;
        let done_ns = done_ns.min(limit_ns).max(least_ns).max(sent_ns);
        self.end(step, &commands, ending, done_ns, shared, counts);
    }

    /// Returns the moment of the last round trip if it ended outside a transaction [ns]: for a lone COMMIT, when it was
    /// sent; for any other round trip, when it ended. Later calls return `None`.
    pub fn take_moment(&mut self) -> Option<u64> {
        self.moment_ns.take()
    }

    /// Returns when the last round trip was sent, if it was a lone COMMIT [ns]. Later calls return `None`.
    pub fn take_commit(&mut self) -> Option<u64> {
        self.committed_ns.take()
    }

    /// Moves the end of the last round trip to just after a commit of another session, if the round trip's stamp allows
    /// it; returns the new end if the round trip ended outside a transaction.
    pub fn follow_commit(&mut self, commit_ns: u64) -> Option<u64> {
        let closing = self.closing.as_mut()?;
        if closing.is_bare || closing.done_ns > commit_ns || closing.latest_ns <= commit_ns {
            return None;
        }
        closing.done_ns = commit_ns + 1;
        closing.ends_idle.then_some(closing.done_ns)
    }
}
