//! A session of a trace: its cursors, its clock, its account.
//!
//! A file may hold several: those of a shared server, or those merged by trcsess. Each has its own stack of calls
//! without a parent and waits without an owner.
//!
//! Waits of 8i and 9i have no `tim`. Their position decides: a message from the client is between calls, any other wait
//! is inside the next call of its cursor.

use super::accounting::{Account, Pending, Segment};
use super::clock::Clock;
use super::rows::{Context, Figures, Owner, Sink};
use super::statements::Cursors;

/// Largest number of waits without `tim` that are buffered for their cursor's next call.
const UNTIMED_MAX: usize = 1 << 14;

/// A wait without `tim`.
#[derive(Clone, Copy, Debug)]
struct Untimed {
    cursor: u64,
    number: u64,
    elapsed_ns: i64,
}

/// A span on the trace's clock [ns].
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Start of the span.
    pub start: i64,
    /// End of the span.
    pub end: i64,
}

/// One session.
#[derive(Debug, Default)]
pub struct Session {
    /// SESSION ID; empty if unknown.
    pub name: String,
    /// Process id, from the header or from trcsess; empty if unknown.
    pub process: String,
    /// Cursors of the session, and their statements.
    pub cursors: Cursors,
    /// Wall clock of the session.
    pub clock: Clock,
    /// Current attributes of the session.
    pub context: Context,
    /// Number of the attributes in the file; `None` after a change.
    pub context_number: Option<u32>,
    /// The account of all segments closed so far.
    pub account: Account,
    /// First `tim` of the first segment and last `tim` of the last segment [ns].
    pub tims: Option<(i64, i64)>,
    /// Wall clock of the first row [ns]; `None` before the first row.
    pub started_ns: Option<i64>,
    /// Running numbers of the first call and the first wait whose times have no anchor.
    pub unanchored: (u64, u64),
    segment: Segment,
    calls: Vec<Pending<Figures>>,
    waits: Pending<i64>,
    untimed: Vec<Untimed>,
}

impl Session {
    /// Returns the end of the last record on the trace's clock [ns].
    #[inline]
    pub fn last(&self) -> Option<i64> {
        self.segment.last()
    }

    /// Returns true if a record that ended at `end` begins a new segment.
    #[inline]
    pub fn breaks(&self, end: i64, back_max_ns: i64) -> bool {
        self.segment.breaks(end, back_max_ns)
    }

    /// Returns true if nothing has been counted yet.
    pub fn is_fresh(&self) -> bool {
        self.account.calls + self.account.waits == 0
    }

    /// Counts a call and claims its children and waits; returns its exclusive figures and the time of the waits
    /// directly inside [ns]. `inclusive` holds 0 for missing figures.
    #[inline]
    pub fn call<S: Sink>(
        &mut self,
        sink: &mut S,
        owner: Owner,
        cursor: u64,
        span: Span,
        inclusive: &Figures,
    ) -> (Figures, i64) {
        let (mut children, mut waited) = (Figures::default(), 0i64);
        let depth = usize::from(owner.depth);
        let account = &mut self.account;
        if let Some(below) = self.calls.get_mut(depth + 1) {
            below.claim(span.start, span.end, |child| {
                children.add(&child.figures);
                account.adopted += child.rows;
                sink.adopt(child.item, owner);
            });
            below.pass(span.end);
        }
        self.waits.claim(span.start, span.end, |wait| {
            waited = waited.saturating_add(wait.figures);
            account.waits_inside += wait.rows;
            sink.own(wait.item, owner);
        });
        if depth == 0 {
            self.waits.pass(span.end);
        }
        if !self.untimed.is_empty() {
            waited = waited.saturating_add(self.own_untimed(sink, owner, cursor));
        }
        let own = inclusive.without(&children);
        self.count_call(owner.depth, inclusive, &own, waited);
        self.segment.extend(span.start, span.end);
        if depth > 0 {
            self.push_call(sink, depth, span, owner.number, *inclusive);
        }
        (own, waited)
    }

    #[inline]
    fn count_call(&mut self, depth: u8, inclusive: &Figures, own: &Figures, waited: i64) {
        let account = &mut self.account;
        account.calls += 1;
        account.recursive += u64::from(depth > 0);
        account.negative += u64::from(own.elapsed_ns < 0);
        account.calls_ns += i128::from(own.elapsed_ns);
        account.cpu_ns += i128::from(own.cpu_ns);
        account.all_depths_ns += i128::from(inclusive.elapsed_ns);
        account.wait_inside_ns += i128::from(waited);
    }

    #[inline]
    fn push_call<S: Sink>(&mut self, sink: &mut S, depth: usize, span: Span, number: u64, inclusive: Figures) {
        if depth >= self.calls.len() {
            self.deepen(depth);
        }
        let pending = &mut self.calls[depth];
        pending.push(span.start, span.end, number, inclusive);
        if pending.is_full() {
            self.shorten_calls(sink, depth);
        }
    }

    #[cold]
    fn deepen(&mut self, depth: usize) {
        self.calls.resize_with(depth + 1, Pending::default);
    }

    #[cold]
    fn shorten_calls<S: Sink>(&mut self, sink: &mut S, depth: usize) {
        self.calls[depth].shorten(|_| {}, |calls| sink.merge_calls(calls));
    }

    /// Counts a wait whose owner is still to come.
    #[inline]
    pub fn wait<S: Sink>(&mut self, sink: &mut S, number: u64, span: Span, elapsed_ns: i64) {
        self.account.waits += 1;
        self.account.wait_ns += i128::from(elapsed_ns);
        self.segment.extend(span.start, span.end);
        self.waits.push(span.start, span.end, number, elapsed_ns);
        if self.waits.is_full() {
            self.shorten_waits(sink);
        }
    }

    #[cold]
    fn shorten_waits<S: Sink>(&mut self, sink: &mut S) {
        let mut settled = Vec::new();
        self.waits.shorten(|wait| settled.push(wait.item), |waits| sink.merge_waits(waits));
        for wait in settled {
            sink.between(wait);
        }
    }

    /// Counts a wait without `tim`.
    pub fn untimed_wait<S: Sink>(
        &mut self,
        sink: &mut S,
        number: u64,
        cursor: u64,
        elapsed_ns: i64,
        from_client: bool,
    ) {
        self.account.waits += 1;
        self.account.wait_ns += i128::from(elapsed_ns);
        if from_client || self.untimed.len() >= UNTIMED_MAX {
            sink.between(number);
        } else {
            self.untimed.push(Untimed { cursor, number, elapsed_ns });
        }
    }

    fn own_untimed<S: Sink>(&mut self, sink: &mut S, owner: Owner, cursor: u64) -> i64 {
        let (mut waited, account) = (0i64, &mut self.account);
        self.untimed.retain(|wait| {
            if wait.cursor != cursor {
                return true;
            }
            waited = waited.saturating_add(wait.elapsed_ns);
            account.waits_inside += 1;
            sink.own(wait.number, owner);
            false
        });
        waited
    }

    /// Ends the segment: entries without a parent or owner will not get one.
    pub fn end_segment<S: Sink>(&mut self, sink: &mut S) {
        self.calls.iter_mut().for_each(|pending| pending.drain(|_| {}));
        self.waits.drain(|wait| sink.between(wait.item));
        self.untimed.drain(..).for_each(|wait| sink.between(wait.number));
        if let (Some(first), Some(last)) = (self.segment.first(), self.segment.last()) {
            self.account.elapsed_ns += i128::from(self.segment.elapsed_ns());
            self.account.segments += 1;
            self.tims = Some((self.tims.map_or(first, |(known, _)| known), last));
        }
        self.segment = Segment::default();
        self.clock.restart();
    }
}
