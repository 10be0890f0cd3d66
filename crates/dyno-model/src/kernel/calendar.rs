//! Calendar of future events, in the order of (time, number).
//!
//! A four-way heap in one vector. Two things differ from the standard heap, both for speed at the few hundred pending
//! events of a model: the four children of an entry are adjacent in memory, and taking the first event leaves a hole at
//! the top that the next new event may fill, so that the usual "take one, put one" moves entries once instead of twice.

use std::collections::BTreeSet;

/// A future event.
#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    /// Time in the upper, number in the lower half: one comparison orders by both.
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
        let entry = Entry { key: key(time_ns, number), event };
        if self.hole {
            self.hole = false;
            self.sift_down(entry);
        } else {
            self.heap.push(entry);
            self.sift_up(self.heap.len() - 1, entry);
        }
        number
    }

    /// Returns the time of the first event [ns].
    #[inline]
    pub fn first_ns(&mut self) -> Option<u64> {
        self.close();
        self.heap.first().map(|entry| (entry.key >> 64) as u64)
    }

    /// Removes the first event; returns it with its time and number.
    #[inline]
    pub fn take(&mut self) -> Option<(u64, u64, E)> {
        self.close();
        let first = self.heap.first()?;
        let taken = ((first.key >> 64) as u64, first.key as u64, first.event);
        self.hole = true;
        Some(taken)
    }

    /// Cancels a pending event by its number. It leaves no trace: the clock does not stop at its time. The caller must
    /// know that it is pending.
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
        loop {
            if self.hole {
                self.hole = false;
                let Some(last) = self.heap.pop() else { return };
                if !self.heap.is_empty() {
                    self.sift_down(last);
                }
            }
            if self.cancelled.is_empty() {
                return;
            }
            let Some(first) = self.heap.first() else { return };
            self.hole = self.cancelled.remove(&(first.key as u64));
            if !self.hole {
                return;
            }
        }
    }

    #[inline]
    fn sift_up(&mut self, mut at: usize, entry: Entry<E>) {
        while at > 0 {
            let parent = (at - 1) / WAYS;
            if self.heap[parent].key <= entry.key {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }

    /// Inserts `entry` from the top.
    #[inline]
    fn sift_down(&mut self, entry: Entry<E>) {
        let mut at = 0;
        loop {
            let first = at * WAYS + 1;
            let Some(children) = self.heap.get(first..self.heap.len().min(first + WAYS)) else {
                break;
            };
            let mut least = (u128::MAX, 0);
            for (i, child) in children.iter().enumerate() {
                if child.key < least.0 {
                    least = (child.key, i);
                }
            }
            if least.0 >= entry.key {
                break;
            }
            self.heap[at] = self.heap[first + least.1];
            at = first + least.1;
        }
        self.heap[at] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_stats::rng::Xoshiro256;

    #[test]
    fn simultaneous_events_come_in_the_order_they_were_put_in() {
        let mut calendar = Calendar::default();
        for event in 0..100 {
            calendar.put(7, event);
        }
        let taken: Vec<i32> = std::iter::from_fn(|| calendar.take()).map(|(_, _, event)| event).collect();
        assert_eq!(taken, (0..100).collect::<Vec<_>>());
        assert!(calendar.is_empty());
    }

    /// Against a sorted list, with puts, takes and cancellations mixed.
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
                        let taken = calendar.take();
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
