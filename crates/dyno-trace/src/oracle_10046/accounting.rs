//! Who called whom, and who waited: containment of spans, in one pass and bounded memory.
//!
//! A record is written when the thing it names has ended, so children stand before their parents
//! and waits before the call that waited. A call spans `[tim - e, tim]`.
//!
//! * The parent of a call at depth d is the first later call at depth d - 1 whose span contains its
//!   span; a call at depth > 0 without one is an orphan and counts as the session's own time.
//! * The owner of a wait is the first later call, of any depth, whose span contains its span.
//! * Exclusive figures are the inclusive ones less those of the children.
//!
//! [`Pending`] holds what has no parent or owner yet. It is a stack in file order with the latest
//! start up to each entry, so that a call which contains nothing costs one comparison. It never
//! holds more than [`CAP`] entries: first the entries that no later call of a consistent trace can
//! contain go (they ended before the last call one level up did), then the oldest half is merged,
//! sixteen to one. The cost of a merge: if only some of the sixteen lie inside the call that comes
//! at last, none of them is counted as its own.

use super::rows::Figures;

/// The most entries that wait for a parent, per depth, and for an owner.
pub const CAP: usize = 1 << 15;

/// How many old entries are merged into one.
const MERGE: usize = 16;

/// Sums that merged entries need.
pub trait Sum: Copy {
    /// Takes in another's.
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

/// A span that waits for the call that contains it.
#[derive(Clone, Copy, Debug)]
pub struct Entry<F> {
    /// Start, ns.
    pub start: i64,
    /// End, ns.
    pub end: i64,
    /// The latest start of this and all entries before it.
    latest: i64,
    /// The row's number, or what the sink made of several.
    pub item: u64,
    /// Number of rows.
    pub rows: u64,
    /// What the parent has to subtract.
    pub figures: F,
}

/// Spans that wait for the call that contains them, in the order of the file.
#[derive(Clone, Debug)]
pub struct Pending<F> {
    entries: Vec<Entry<F>>,
    /// End of the last call that could have contained any of these.
    floor: i64,
}

impl<F> Default for Pending<F> {
    fn default() -> Self {
        Self { entries: Vec::new(), floor: i64::MIN }
    }
}

impl<F: Sum> Pending<F> {
    /// Adds a span that ended now.
    #[inline]
    pub fn push(&mut self, start: i64, end: i64, item: u64, figures: F) {
        let latest = self.entries.last().map_or(start, |last| last.latest.max(start));
        self.entries.push(Entry { start, end, latest, item, rows: 1, figures });
    }

    /// Whether [`Pending::shorten`] should be called.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.entries.len() >= CAP
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Notes the end of a call that contains all it can of what is here.
    #[inline]
    pub fn pass(&mut self, end: i64) {
        self.floor = end;
    }

    /// Takes out every entry inside `[start, end]`, in the order of the file.
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

    /// Takes out all that is left: nothing later can contain it.
    pub fn drain(&mut self, mut take: impl FnMut(&Entry<F>)) {
        self.entries.drain(..).for_each(|entry| take(&entry));
        self.floor = i64::MIN;
    }

    /// Makes room: `take` gets what nothing later can contain, `merge` puts items under one number.
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
        if self.entries.len() < CAP - CAP / 4 {
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

    /// Puts an entry at a place at or before its own.
    #[inline]
    fn keep(&mut self, at: usize, mut entry: Entry<F>) {
        let before = if at == 0 { i64::MIN } else { self.entries[at - 1].latest };
        entry.latest = before.max(entry.start);
        self.entries[at] = entry;
    }
}

/// A stretch of `tim` that runs forward: from the first start to the last end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    span: Option<(i64, i64)>,
}

/// How far `tim` may go back within a segment: records of one session are written a little late.
pub const BACK_MAX_NS: i64 = 1_000_000_000;

impl Segment {
    /// Whether a record that ended at `end` belongs to a new segment; `back_max_ns` is how far
    /// behind the last one it may be.
    #[inline]
    pub fn breaks(&self, end: i64, back_max_ns: i64) -> bool {
        self.span.is_some_and(|(_, last)| end < last.saturating_sub(back_max_ns))
    }

    /// Takes a span in.
    #[inline]
    pub fn extend(&mut self, start: i64, end: i64) {
        self.span = Some(match self.span {
            Some((first, last)) => (first.min(start), last.max(end)),
            None => (start, end),
        });
    }

    /// End of the last record; `None` before the first.
    pub fn last(&self) -> Option<i64> {
        self.span.map(|(_, last)| last)
    }

    /// Start of the first record; `None` before the first.
    pub fn first(&self) -> Option<i64> {
        self.span.map(|(first, _)| first)
    }

    /// Its length; 0 before the first record.
    pub fn elapsed_ns(&self) -> i64 {
        self.span.map_or(0, |(first, last)| last.saturating_sub(first))
    }
}

/// The account of a session. All identities hold by how it is made:
/// `elapsed = calls + between + unexplained`, `calls = cpu + wait_inside + unaccounted`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Sum of the segments' lengths: R.
    pub elapsed_ns: i128,
    /// Elapsed time of all roots, which is the exclusive time of all calls.
    pub calls_ns: i128,
    /// CPU of all roots, which is the exclusive CPU of all calls.
    pub cpu_ns: i128,
    /// Waits that a call owns.
    pub wait_inside_ns: i128,
    /// All waits.
    pub wait_ns: i128,
    /// Elapsed time of all calls at all depths: recursive time counted again and again.
    pub all_depths_ns: i128,
    /// Calls.
    pub calls: u64,
    /// Waits.
    pub waits: u64,
    /// Waits that a call owns.
    pub waits_inside: u64,
    /// Calls at depth > 0.
    pub recursive: u64,
    /// Calls with a parent.
    pub adopted: u64,
    /// Calls whose children took longer than they did: overlapping spans, damage.
    pub negative: u64,
    /// Segments.
    pub segments: u64,
}

impl Account {
    /// Waits between calls.
    pub fn between_ns(&self) -> i128 {
        self.wait_ns - self.wait_inside_ns
    }

    /// Time between calls that no wait explains; with level 1 or 4 the client's time as well.
    pub fn unexplained_ns(&self) -> i128 {
        self.elapsed_ns - self.calls_ns - self.between_ns()
    }

    /// Time within calls that neither CPU nor waits explain.
    pub fn unaccounted_ns(&self) -> i128 {
        self.calls_ns - self.cpu_ns - self.wait_inside_ns
    }

    /// Calls at depth > 0 without a parent.
    pub fn orphans(&self) -> u64 {
        self.recursive - self.adopted.min(self.recursive)
    }

    /// Takes in another's.
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
