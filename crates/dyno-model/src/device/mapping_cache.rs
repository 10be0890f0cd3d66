//! Part of a card's mapping that its controller has in memory: pages of entries, of which the least recently
//! used is evicted.
//!
//! A drive without memory for its entire mapping keeps the mapping in flash, and reads a page of it when it needs an
//! entry that is not in memory. A real drive also writes changed pages of the mapping back to flash; that is not
//! modelled.

const NONE: u32 = u32::MAX;
/// Size of an entry [bytes].
const ENTRY_BYTES: u64 = 4;

/// Pages of a mapping in memory, in the order of their last use.
pub(super) struct MappingCache {
    entries: u64,
    room: u32,
    used: u32,
    /// Neighbour of each page towards the head; a page that points at itself is not in memory.
    before: Vec<u32>,
    /// Neighbour of each page towards the tail; a page that points at itself is not in memory.
    after: Vec<u32>,
    head: u32,
    tail: u32,
}

impl MappingCache {
    /// Returns an empty cache with room for `ratio` of a mapping of `pages` pages; `None` if the whole mapping fits.
    pub fn new(pages: u64, page_bytes: u64, ratio: f64) -> Option<Self> {
        if ratio >= 1.0 {
            return None;
        }
        let entries = (page_bytes / ENTRY_BYTES).max(1);
        let all = pages.div_ceil(entries) as u32;
        let alone: Vec<u32> = (0..all).collect();
        let room = ((f64::from(all) * ratio) as u32).max(1);
        Some(Self { entries, room, used: 0, before: alone.clone(), after: alone, head: NONE, tail: NONE })
    }

    /// Uses the mapping entry of a page; returns true if it was not in memory and must be read.
    pub fn misses(&mut self, page: u64) -> bool {
        let own = (page / self.entries) as u32;
        if own == self.head {
            return false;
        }
        let has = self.before[own as usize] != own;
        if has {
            self.unlink(own);
        } else if self.used == self.room {
            let last = self.tail;
            self.unlink(last);
            (self.before[last as usize], self.after[last as usize]) = (last, last);
        } else {
            self.used += 1;
        }
        (self.before[own as usize], self.after[own as usize]) = (NONE, self.head);
        match self.head {
            NONE => self.tail = own,
            head => self.before[head as usize] = own,
        }
        self.head = own;
        !has
    }

    fn unlink(&mut self, own: u32) {
        let (before, after) = (self.before[own as usize], self.after[own as usize]);
        match before {
            NONE => self.head = after,
            other => self.after[other as usize] = after,
        }
        match after {
            NONE => self.tail = before,
            other => self.before[other as usize] = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_mapping_that_was_used_longest_ago_leaves() {
        // Two of four pages of 1,024 entries.
        let mut cache = MappingCache::new(4_096, 4_096, 0.5).unwrap_or_else(|| panic!("it has a part"));
        let found = [0, 1_024, 5, 2_048, 1_024, 0, 2_048].map(|page| cache.misses(page));
        assert_eq!(found, [true, true, false, true, true, true, true]);
        assert_eq!([0, 2_048, 0].map(|page| cache.misses(page)), [false, false, false]);
    }

    #[test]
    fn one_page_is_replaced_by_the_next() {
        let mut cache = MappingCache::new(4_096, 4_096, 0.0).unwrap_or_else(|| panic!("it has a part"));
        assert_eq!([0, 0, 1_024, 0].map(|page| cache.misses(page)), [true, false, true, true]);
        assert!(MappingCache::new(4_096, 4_096, 1.0).is_none());
    }
}
