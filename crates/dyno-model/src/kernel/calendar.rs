//! Calendar of future events, in the order of (time, number).
//!
//! The calendar is a four-way heap in one vector. Two things differ from the standard heap, both for speed at the few
//! hundred pending events of a model: the four children of an entry are adjacent in memory, and taking the first event
//! leaves a hole at the top that the next new event may fill, so that the usual "take one, put one" moves entries once
//! instead of twice.

use std::collections::BTreeSet;

/// A future event.
#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    /// Time in the upper half, number in the lower half: one comparison orders by both.
    key: u128,
    event: E,
}

/// Calendar of future events.
#[derive(Debug)]
pub struct Calendar<E> {
    heap: Vec<Entry<E>>,
    /// True if the entry at the top was taken and its place is free.
    hole: bool,
    number: u64,
    cancelled: BTreeSet<u64>,
}

impl<E> Default for Calendar<E> {
    fn default() -> Self {
        Self { heap: Vec::new(), hole: false, number: 0, cancelled: BTreeSet::new() }
    }
}

/// Result of [`Calendar::take_until`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front<E> {
    /// Time [ns], number, and the event.
    Event(u64, u64, E),
    /// The first event is later than the limit.
    Later,
    /// No event is pending.
    Nothing,
}

const WAYS: usize = 4;

fn key(time_ns: u64, number: u64) -> u128 {
    u128::from(time_ns) << 64 | u128::from(number)
}

impl<E: Copy> Calendar<E> {
    /// Adds an event; returns its number for [`Calendar::cancel`].
    #[inline]
    pub fn put(&mut self, time_ns: u64, event: E) -> u64 {
        let number = self.number;
        self.number += 1;
        let key = key(time_ns, number);
        if self.hole {
            self.hole = false;
            self.sift_down(key, event);
        } else {
            self.heap.push(Entry { key, event });
            self.sift_up(self.heap.len() - 1, key, event);
        }
        number
    }

    /// Returns the time of the first event [ns].
    #[inline]
    pub fn first_ns(&mut self) -> Option<u64> {
        self.close();
        self.heap.first().map(|entry| (entry.key >> 64) as u64)
    }

    /// Removes the first event if it is not later than `limit_ns`.
    #[inline]
    pub fn take_until(&mut self, limit_ns: u64) -> Front<E> {
        self.close();
        let Some(first) = self.heap.first() else { return Front::Nothing };
        let time_ns = (first.key >> 64) as u64;
        if time_ns > limit_ns {
            return Front::Later;
        }
        self.hole = true;
        Front::Event(time_ns, first.key as u64, first.event)
    }

    /// Returns true if an event of that time is in the calendar, even a cancelled one; the calendar must have no
    /// earlier event.
    #[inline]
    pub fn may_have(&self, time_ns: u64) -> bool {
        let firsts = if self.hole { self.heap.get(1..self.heap.len().min(1 + WAYS)) } else { self.heap.get(..1) };
        firsts.unwrap_or_default().iter().any(|entry| (entry.key >> 64) as u64 == time_ns)
    }

    /// Cancels a pending event by its number. The event leaves no trace: the clock does not stop at its time. The
    /// caller must know that the event is pending.
    pub fn cancel(&mut self, number: u64) {
        self.cancelled.insert(number);
    }

    /// Returns the number of pending events.
    pub fn len(&self) -> usize {
        self.heap.len() - usize::from(self.hole) - self.cancelled.len()
    }

    /// Returns true if no event is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills the hole and drops cancelled events, until the top is a pending event.
    #[inline]
    fn close(&mut self) {
        self.fill();
        if !self.cancelled.is_empty() {
            self.drop_cancelled();
        }
    }

    #[cold]
    fn drop_cancelled(&mut self) {
        while let Some(first) = self.heap.first() {
            self.hole = self.cancelled.remove(&(first.key as u64));
            if !self.hole {
                return;
            }
            self.fill();
        }
    }

    /// Fills the hole with the last entry.
    #[inline]
    fn fill(&mut self) {
        if self.hole {
            self.hole = false;
            if let Some(last) = self.heap.pop()
                && !self.heap.is_empty()
            {
                self.sift_down(last.key, last.event);
            }
        }
    }

    // The entry that is moved is passed as its parts: in registers, not through memory.

    #[inline]
    fn sift_up(&mut self, mut at: usize, key: u128, event: E) {
        while at > 0 {
            let parent = (at - 1) / WAYS;
            if self.heap[parent].key <= key {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = Entry { key, event };
    }

    /// Inserts an entry at the top, and moves it down to its place.
    #[inline]
    fn sift_down(&mut self, key: u128, event: E) {
        let heap = self.heap.as_mut_slice();
        let mut at = 0;
        loop {
            let first = at << 2 | 1; // at * WAYS + 1
            let child = match heap.get(first..) {
                Some([a, b, c, d, ..]) => {
                    let left = if b.key < a.key { (b.key, 1) } else { (a.key, 0) };
                    let right = if d.key < c.key { (d.key, 3) } else { (c.key, 2) };
                    first + if right.0 < left.0 { right.1 } else { left.1 }
                }
                Some([a, b, c]) => {
                    let left = if b.key < a.key { (b.key, 1) } else { (a.key, 0) };
                    first + if c.key < left.0 { 2 } else { left.1 }
                }
                Some([a, b]) => first + usize::from(b.key < a.key),
                Some([_]) => first,
                Some([]) | None => break,
            };
            if heap[child].key >= key {
                break;
            }
            heap[at] = heap[child];
            at = child;
        }
        heap[at] = Entry { key, event };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_stats::rng::Xoshiro256;

    fn take<E: Copy>(calendar: &mut Calendar<E>) -> Option<(u64, u64, E)> {
        match calendar.take_until(u64::MAX) {
            Front::Event(time, number, event) => Some((time, number, event)),
            Front::Later | Front::Nothing => None,
        }
    }

    #[test]
    fn simultaneous_events_come_in_the_order_they_were_put_in() {
        let mut calendar = Calendar::default();
        for event in 0..100 {
            calendar.put(7, event);
        }
        let taken: Vec<i32> = std::iter::from_fn(|| take(&mut calendar)).map(|(_, _, event)| event).collect();
        assert_eq!(taken, (0..100).collect::<Vec<_>>());
        assert!(calendar.is_empty());
    }

    /// Compares the calendar with a sorted list, with puts, takes and cancellations mixed.
    #[test]
    fn it_agrees_with_a_sorted_list() {
        for seed in 0..200 {
            println!("seed {seed}");
            let mut rng = Xoshiro256::new(seed);
            let (mut calendar, mut list) = (Calendar::default(), BTreeSet::new());
            for _ in 0..400 {
                match rng.below(5) {
                    0 | 1 => {
                        let time = rng.below(50);
                        list.insert((time, calendar.put(time, time)));
                    }
                    2 | 3 => {
                        assert_eq!(calendar.first_ns(), list.first().map(|&(time, _)| time));
                        let taken = take(&mut calendar);
                        assert_eq!(taken.map(|(time, number, _)| (time, number)), list.pop_first());
                        assert!(taken.is_none_or(|(time, _, event)| time == event));
                    }
                    _ => {
                        let Some(&entry) = list.iter().nth(rng.below(8) as usize) else { continue };
                        list.remove(&entry);
                        calendar.cancel(entry.1);
                    }
                }
                assert_eq!(calendar.len(), list.len());
            }
        }
    }
}
