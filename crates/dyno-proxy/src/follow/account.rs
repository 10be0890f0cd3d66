//! Rows of finished calls: their share of the time, their waits, and the think time before them.

use std::collections::{HashMap, VecDeque};

use dyno_evidence::trace_store::{CallRow, UNOBSERVED, WaitRow};

use super::{Ending, Follower, Op, What};
use crate::shared::{ANSWER, CLIENT_READ, CLIENT_WRITE, COPY_ROWS, ROWS, Shared};

impl Follower {
    /// Ends the calls that were answered by the bytes of one read, which arrived at `at_ns`.
    pub fn settle(&mut self, at_ns: u64, shared: &mut Shared) {
        if self.group.is_empty() {
            return;
        }
        let mut group = std::mem::take(&mut self.group);
        let begin_ns = group[0].sent_ns.max(self.free_ns);
        self.think(begin_ns, 0, shared);
        let is_work = |op: &Op| matches!(op.what, What::Execute | What::Simple);
        let workers = group.iter().filter(|op| is_work(op)).count();
        let span_ns = at_ns.saturating_sub(begin_ns);
        let (mut from_ns, mut left) = (begin_ns, workers.max(1) as u64);
        let mut rest_ns = span_ns;
        for (place, op) in group.iter().enumerate() {
            let takes = if workers == 0 { place == 0 } else { is_work(op) };
            let share_ns = if takes { rest_ns / left } else { 0 };
            if takes {
                rest_ns -= share_ns;
                left -= 1;
            }
            // Close and Describe take no measurable time; a Sync alone may be a commit.
            if share_ns > 0 || !matches!(op.what, What::Close | What::Describe | What::Sync) {
                self.emit(op, from_ns, share_ns, 0, shared);
            }
            from_ns += share_ns;
        }
        self.free_ns = begin_ns + span_ns;
        self.row.until_ns = self.free_ns;
        // The buffer is reused for the next group.
        group.clear();
        self.group = group;
    }

    pub(super) fn emit(&mut self, op: &Op, since_ns: u64, elapsed_ns: u64, cut: i64, shared: &mut Shared) {
        let number = shared.next_call;
        shared.next_call += 1;
        let until_ns = since_ns + elapsed_ns;
        let within = |at_ns: u64| at_ns.clamp(since_ns, until_ns);
        let first_ns = within(op.first_ns.unwrap_or(until_ns));
        let answer = (ANSWER, since_ns, first_ns - since_ns);
        let spans = if let Some((begin_ns, end_ns)) = op.copy_ns {
            let (begin_ns, end_ns) = (within(begin_ns), within(end_ns));
            [answer, (COPY_ROWS, begin_ns, end_ns - begin_ns), (ANSWER, end_ns, until_ns - end_ns)]
        } else {
            let blocked_ns = op.blocked_ns.min(until_ns - first_ns);
            let rows = (ROWS, first_ns, until_ns - first_ns - blocked_ns);
            [answer, rows, (CLIENT_WRITE, until_ns - blocked_ns, blocked_ns)]
        };
        let mut wait_ns = 0;
        for (event, begin_ns, length_ns) in spans.into_iter().filter(|span| span.2 > 0) {
            let call = Some(number);
            self.wait(event, begin_ns, length_ns, cut, (false, op.statement, call), shared);
            wait_ns += length_ns;
        }
        self.row.sums.calls += 1;
        self.row.sums.call_ns += elapsed_ns;
        self.row.sums.wait_inside_ns += wait_ns;
        if matches!(op.what, What::Execute | What::Simple) && shared.recent_ns.len() < 100_000 {
            shared.recent_ns.push(elapsed_ns);
        }
        if let Some(bytes) = &mut shared.bytes {
            bytes.push(self.row.number, number, op.sent_bytes, op.received_bytes, first_ns - since_ns);
        }
        shared.store.call(CallRow {
            session: self.row.number,
            number,
            kind: op.kind,
            statement: op.statement,
            since_ns,
            elapsed_ns,
            cpu_ns: 0,
            wait_ns,
            rows: op.rows,
            state: op.state,
        });
    }

    pub(super) fn wait(
        &mut self,
        event: u32,
        since_ns: u64,
        elapsed_ns: u64,
        cut: i64,
        (think, statement, call): (bool, u32, Option<u64>),
        shared: &mut Shared,
    ) {
        let number = shared.next_wait;
        shared.next_wait += 1;
        self.row.sums.waits += 1;
        if call.is_none() {
            self.row.sums.between_ns += elapsed_ns;
        }
        shared.store.wait(WaitRow {
            holder: 0,
            within_ns: 0,
            session: self.row.number,
            number,
            event,
            since_ns,
            elapsed_ns,
            cpu_ns: 0,
            corrected_ns: elapsed_ns,
            cut,
            think,
            statement,
            call,
        });
    }

    /// Counts the time between the last call and `until_ns` as think time.
    pub(super) fn think(&mut self, until_ns: u64, cut: i64, shared: &mut Shared) {
        if until_ns > self.free_ns {
            let elapsed_ns = until_ns - self.free_ns;
            self.wait(CLIENT_READ, self.free_ns, elapsed_ns, cut, (true, u32::MAX, None), shared);
            self.free_ns = until_ns;
        }
    }

    /// Stops following the session because its bytes are not messages; the rest of its time is unobserved.
    pub fn lose(&mut self, at_ns: u64, shared: &mut Shared) {
        if self.ending != Ending::Followed {
            return;
        }
        self.settle(at_ns, shared);
        self.break_off(at_ns, 2, None, shared);
        self.ending = Ending::Lost;
    }

    pub(super) fn break_off(&mut self, at_ns: u64, cut: i64, state: Option<u32>, shared: &mut Shared) {
        if let Some(mut op) = self.ops.pop_front() {
            let begin_ns = op.sent_ns.max(self.free_ns);
            self.think(begin_ns, 0, shared);
            op.state = op.state.or(state);
            let elapsed_ns = at_ns.saturating_sub(begin_ns);
            self.emit(&op, begin_ns, elapsed_ns, cut, shared);
            self.free_ns = begin_ns + elapsed_ns;
            self.ops.clear();
        }
        self.think(at_ns, cut, shared);
    }

    /// Ends the session; `state` is the SQLSTATE of a call that was not answered, `None` after a regular end.
    pub fn end(&mut self, at_ns: u64, cut: i64, state: Option<u32>, shared: &mut Shared) {
        let was = std::mem::replace(&mut self.ending, Ending::Over);
        if was == Ending::Over {
            return;
        }
        self.settle(at_ns, shared);
        if was == Ending::Lost {
            let elapsed_ns = at_ns.saturating_sub(self.free_ns);
            if elapsed_ns > 0 {
                self.wait(UNOBSERVED, self.free_ns, elapsed_ns, 0, (false, u32::MAX, None), shared);
                self.free_ns = at_ns;
            }
        } else {
            self.break_off(at_ns, cut, state, shared);
        }
        self.row.until_ns = self.free_ns.max(self.row.since_ns);
        if let Some(capture) = &mut shared.capture {
            capture.end(self.row.number, at_ns);
        }
        (self.prepared, self.portals, self.ops) = (HashMap::new(), HashMap::new(), VecDeque::new());
    }
}
