//! Attribution of calls to their parents and waits to their owners: containment of spans, in one pass and bounded
//! memory.
//!
//! A record is written when its call or wait has ended, so children precede their parents, and waits precede the call
//! that waited. A call spans `[tim - e, tim]`.
//!
//! * The parent of a call at depth d is the first later call at depth d - 1 whose span contains its span; a call at
//!   depth > 0 without a parent is an orphan and counts as the session's own time.
//! * The owner of a wait is the first later call, of any depth, whose span contains its span.
//! * Exclusive figures are the inclusive ones less those of the children.
//!
//! [`Pending`] holds what has no parent or owner yet. It is a stack in file order with the latest start up to each
//! entry, so that a call which contains nothing costs one comparison. It never holds more than [`CAP`] entries: entries
//! that no later call of a consistent trace can contain are removed first (they ended before the last call one level up
//! did), then the oldest half is merged, sixteen into one. The cost of a merge: if only some of the sixteen are inside
//! the call that follows, none of them is attributed to that call.

use super::rows::Figures;

/// Largest number of entries without a parent that are kept at each depth, and of entries without an owner.
pub const CAP: usize = 1 << 15;

/// Number of entries at which a list is first searched for entries that can be dropped. It is doubled, up to [`CAP`],
/// if too few can be dropped. A short list stays in the processor's cache.
const FIRST_CAP: usize = 1 << 11;

/// Number of old entries that are merged into one.
const MERGE: usize = 16;

/// Figures that are summed when entries are merged.
pub trait Sum: Copy {
    /// Adds the figures of another entry.
    fn sum(&mut self, other: &Self);
}

impl Sum for Figures {
    #[inline]
    fn sum(&mut self, other: &Self) {
        self.add(other);
    }
}

impl Sum for i64 {
    #[inline]
    fn sum(&mut self, other: &Self) {
        *self = self.saturating_add(*other);
    }
}

/// A span whose containing call comes later in the file.
#[derive(Clone, Copy, Debug)]
pub struct Entry<F> {
    /// Start [ns].
    pub start: i64,
    /// End [ns].
    pub end: i64,
    /// Latest start of this entry and of all entries before it [ns].
    latest: i64,
    /// Number of the row, or the number under which the sink merged several rows.
    pub item: u64,
    /// Number of rows.
    pub rows: u64,
    /// Figures that the parent has to subtract.
    pub figures: F,
}

/// Spans whose containing call comes later in the file, in the order of the file.
#[derive(Clone, Debug)]
pub struct Pending<F> {
    entries: Vec<Entry<F>>,
    /// End of the last call that could have contained any of these entries [ns].
    floor: i64,
    /// Number of entries at which the list is shortened; at most [`CAP`].
    most: usize,
}

impl<F> Default for Pending<F> {
    fn default() -> Self {
        Self { entries: Vec::new(), floor: i64::MIN, most: FIRST_CAP }
    }
}

impl<F: Sum> Pending<F> {
    /// Adds a span that has just ended.
    #[inline]
    pub fn push(&mut self, start: i64, end: i64, item: u64, figures: F) {
        let latest = self.entries.last().map_or(start, |last| last.latest.max(start));
        self.entries.push(Entry { start, end, latest, item, rows: 1, figures });
    }

    /// Returns true if [`Pending::shorten`] should be called.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.entries.len() >= self.most
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Records the end of a call. Entries that ended before that time and are not inside this call cannot be inside a
    /// later call.
    #[inline]
    pub fn pass(&mut self, end: i64) {
        self.floor = end;
    }

    /// Removes every entry inside `[start, end]` and passes it to `take`, in the order of the file.
    #[inline]
    pub fn claim(&mut self, start: i64, end: i64, mut take: impl FnMut(&Entry<F>)) {
        let mut first = self.entries.len();
        while first > 0 && self.entries[first - 1].latest >= start {
            first -= 1;
        }
        let mut kept = first;
        for at in first..self.entries.len() {
            let entry = self.entries[at];
            if entry.start >= start && entry.end <= end {
                take(&entry);
            } else {
                self.keep(kept, entry);
                kept += 1;
            }
        }
        self.entries.truncate(kept);
    }

    /// Removes all remaining entries and passes them to `take`: no later call can contain them.
    pub fn drain(&mut self, mut take: impl FnMut(&Entry<F>)) {
        self.entries.drain(..).for_each(|entry| take(&entry));
        self.floor = i64::MIN;
    }

    /// Frees space: passes the entries that no later call can contain to `take`, and replaces old items by the number
    /// that `merge` returns for them.
    pub fn shorten(&mut self, mut take: impl FnMut(&Entry<F>), mut merge: impl FnMut(&[u64]) -> u64) {
        let (mut kept, floor) = (0, self.floor);
        for at in 0..self.entries.len() {
            let entry = self.entries[at];
            if entry.end <= floor {
                take(&entry);
            } else {
                self.keep(kept, entry);
                kept += 1;
            }
        }
        self.entries.truncate(kept);
        if kept < self.most - self.most / 4 {
            return;
        }
        if self.most < CAP {
            self.most *= 2;
            return;
        }
        let (old, mut kept) = (self.entries.len() / 2 / MERGE * MERGE, 0);
        for from in (0..old).step_by(MERGE) {
            let entry = self.merged(from, &mut merge);
            self.keep(kept, entry);
            kept += 1;
        }
        for at in old..self.entries.len() {
            let entry = self.entries[at];
            self.keep(kept, entry);
            kept += 1;
        }
        self.entries.truncate(kept);
    }

    fn merged(&self, from: usize, merge: &mut impl FnMut(&[u64]) -> u64) -> Entry<F> {
        let group = &self.entries[from..from + MERGE];
        let mut whole = group[0];
        let mut items = [0; MERGE];
        for (item, entry) in items.iter_mut().zip(group) {
            *item = entry.item;
        }
        for entry in &group[1..] {
            whole.start = whole.start.min(entry.start);
            whole.end = whole.end.max(entry.end);
            whole.figures.sum(&entry.figures);
            whole.rows += entry.rows;
        }
        whole.item = merge(&items);
        whole
    }

    /// Moves an entry to index `at`, which is at or before its current index, and updates its latest start.
    #[inline]
    fn keep(&mut self, at: usize, mut entry: Entry<F>) {
        let before = if at == 0 { i64::MIN } else { self.entries[at - 1].latest };
        entry.latest = before.max(entry.start);
        self.entries[at] = entry;
    }
}

/// A stretch in which `tim` runs forward: from the first start to the last end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    span: Option<(i64, i64)>,
}

/// Largest backward step of `tim` within a segment [ns]: records of one session may be written slightly late.
pub const BACK_MAX_NS: i64 = 1_000_000_000;

impl Segment {
    /// Returns true if a record that ended at `end` begins a new segment; `back_max_ns` is how far before the end of
    /// the last record it may have ended.
    #[inline]
    pub fn breaks(&self, end: i64, back_max_ns: i64) -> bool {
        self.span.is_some_and(|(_, last)| end < last.saturating_sub(back_max_ns))
    }

    /// Extends the segment by a span.
    #[inline]
    pub fn extend(&mut self, start: i64, end: i64) {
        self.span = Some(match self.span {
            Some((first, last)) => (first.min(start), last.max(end)),
            None => (start, end),
        });
    }

    /// Returns the end of the last record; `None` before the first.
    pub fn last(&self) -> Option<i64> {
        self.span.map(|(_, last)| last)
    }

    /// Returns the start of the first record; `None` before the first.
    pub fn first(&self) -> Option<i64> {
        self.span.map(|(first, _)| first)
    }

    /// Returns the length [ns]; 0 before the first record.
    pub fn elapsed_ns(&self) -> i64 {
        self.span.map_or(0, |(first, last)| last.saturating_sub(first))
    }
}

/// Time account of a session. All identities hold by construction: `elapsed = calls + between + unexplained`,
/// `calls = cpu + wait_inside + unaccounted`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Sum of the segments' lengths, the session's elapsed time [ns].
    pub elapsed_ns: i128,
    /// Elapsed time of all root calls, which equals the sum of the exclusive times of all calls [ns].
    pub calls_ns: i128,
    /// CPU time of all root calls, which equals the sum of the exclusive CPU times of all calls [ns].
    pub cpu_ns: i128,
    /// Time of the waits that are owned by a call [ns].
    pub wait_inside_ns: i128,
    /// Time of all waits [ns].
    pub wait_ns: i128,
    /// Elapsed time of all calls at all depths [ns]; recursive time is counted once per level.
    pub all_depths_ns: i128,
    /// Number of calls.
    pub calls: u64,
    /// Number of waits.
    pub waits: u64,
    /// Number of waits that are owned by a call.
    pub waits_inside: u64,
    /// Number of calls at depth > 0.
    pub recursive: u64,
    /// Number of calls with a parent.
    pub adopted: u64,
    /// Number of calls whose children took longer than the call itself: overlapping spans or damage.
    pub negative: u64,
    /// Number of segments.
    pub segments: u64,
}

impl Account {
    /// Returns the time of the waits between calls [ns].
    pub fn between_ns(&self) -> i128 {
        self.wait_ns - self.wait_inside_ns
    }

    /// Returns the time between calls that no wait explains [ns]; at level 1 or 4 it includes the client's time.
    pub fn unexplained_ns(&self) -> i128 {
        self.elapsed_ns - self.calls_ns - self.between_ns()
    }

    /// Returns the time within calls that neither CPU nor waits explain [ns].
    pub fn unaccounted_ns(&self) -> i128 {
        self.calls_ns - self.cpu_ns - self.wait_inside_ns
    }

    /// Returns the number of calls at depth > 0 without a parent.
    pub fn orphans(&self) -> u64 {
        self.recursive - self.adopted.min(self.recursive)
    }

    /// Adds the figures of another account.
    pub fn add(&mut self, other: &Self) {
        self.elapsed_ns += other.elapsed_ns;
        self.calls_ns += other.calls_ns;
        self.cpu_ns += other.cpu_ns;
        self.wait_inside_ns += other.wait_inside_ns;
        self.wait_ns += other.wait_ns;
        self.all_depths_ns += other.all_depths_ns;
        self.calls += other.calls;
        self.waits += other.waits;
        self.waits_inside += other.waits_inside;
        self.recursive += other.recursive;
        self.adopted += other.adopted;
        self.negative += other.negative;
        self.segments += other.segments;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(pending: &mut Pending<i64>, start: i64, end: i64) -> Vec<u64> {
        let mut items = Vec::new();
        pending.claim(start, end, |entry| items.push(entry.item));
        items
    }

    #[test]
    fn a_call_takes_what_lies_inside_its_span_and_leaves_the_rest() {
        let mut pending = Pending::default();
        for (item, (start, end)) in [(0, 10), (20, 30), (25, 41), (30, 40)].iter().enumerate() {
            pending.push(*start, *end, item as u64, 1);
        }
        assert_eq!(claimed(&mut pending, 20, 40), [1, 3]);
        assert_eq!(claimed(&mut pending, 20, 41), [2]);
        assert_eq!(claimed(&mut pending, 0, 50), [0]);
        assert!(pending.is_empty());
    }

    #[test]
    fn a_full_stack_gives_up_first_what_no_later_call_can_contain() {
        let mut pending = Pending::default();
        (0..CAP as i64).for_each(|at| pending.push(at, at, at as u64, 1));
        pending.pass(CAP as i64 / 2);
        let mut gone = 0;
        pending.shorten(|_| gone += 1, |_| unreachable!("nothing is merged"));
        assert_eq!((gone, pending.len()), (CAP / 2 + 1, CAP / 2 - 1));
    }

    #[test]
    fn merged_entries_keep_their_sums() {
        let mut pending = Pending::default();
        for at in 0..3 * CAP as i64 {
            pending.push(at, at, at as u64, 1);
            if pending.is_full() {
                pending.shorten(|_| {}, |items| items[0]);
            }
        }
        let mut sum = 0;
        pending.claim(0, 3 * CAP as i64, |entry| sum += entry.figures);
        assert_eq!(sum, 3 * CAP as i64);
    }
}
