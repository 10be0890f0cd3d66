//! The K largest values, each with a payload (time, session, block).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// List of the `capacity` largest values. Of equal values, the one with the larger payload stays, so that the result
/// does not depend on the order of arrival or of merging.
#[derive(Clone, Debug)]
pub struct Largest<T: Ord> {
    capacity: usize,
    heap: BinaryHeap<Reverse<(u64, T)>>,
}

impl<T: Ord> Largest<T> {
    /// Returns an empty list for the `capacity` largest values.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, heap: BinaryHeap::new() }
    }

    /// Offers a value; it stays if it is among the largest so far.
    pub fn offer(&mut self, value: u64, payload: T) {
        if self.heap.len() < self.capacity {
            self.heap.push(Reverse((value, payload)));
            return;
        }
        match self.heap.peek_mut() {
            Some(mut least) if (value, &payload) > (least.0.0, &least.0.1) => {
                *least = Reverse((value, payload));
            }
            _ => {}
        }
    }

    /// Adds the values of another list.
    pub fn merge(&mut self, other: Self) {
        for Reverse((value, payload)) in other.heap {
            self.offer(value, payload);
        }
    }

    /// Returns the values, largest first.
    pub fn into_sorted(self) -> Vec<(u64, T)> {
        // A vector sorted by `Reverse` runs from the largest to the smallest.
        self.heap.into_sorted_vec().into_iter().map(|Reverse(kept)| kept).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kept(values: &[(u64, u8)], capacity: usize) -> Largest<u8> {
        let mut largest = Largest::new(capacity);
        for &(v, p) in values {
            largest.offer(v, p);
        }
        largest
    }

    #[test]
    fn no_room_keeps_nothing() {
        assert!(kept(&[(5, 0)], 0).into_sorted().is_empty());
    }

    proptest! {
        #[test]
        fn it_is_the_head_of_the_sorted_list_however_merged(
            a in prop::collection::vec((0u64..20, any::<u8>()), 0..40),
            b in prop::collection::vec((0u64..20, any::<u8>()), 0..40),
            capacity in 0usize..12,
        ) {
            let mut all = [a.clone(), b.clone()].concat();
            all.sort_unstable_by(|x, y| y.cmp(x));
            all.truncate(capacity);
            let mut merged = kept(&a, capacity);
            merged.merge(kept(&b, capacity));
            prop_assert_eq!(merged.into_sorted(), all);
        }
    }
}
