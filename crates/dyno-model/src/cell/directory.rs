//! Directory of a flash cache: lists of lines in order of use, separate for KEEP and other lines, and for clean and
//! dirty ones.
//!
//! ```text
//!               most recent                        least recent
//!   default     clean o--o--o--o--o--o--o--o--o--o--> evicted first
//!               dirty o--o--o--o--o--o--o--o--o--o--> destaged first, then evicted next
//!   keep        clean, dirty: the same two lists, within the limit for KEEP
//! ```
//!
//! The directory knows neither time nor bytes: lines are numbers, and a line's place is its address on flash. If all
//! lines are clean, eviction is exactly LRU (tested against Che's approximation). Dirty lines are never evicted; a
//! destaged line becomes the next to be evicted, because it was the least recently used of the dirty ones. Nothing
//! depends on the order of a hash map: every choice follows the lists.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Hash by one multiplication: keys are numbers, and nobody tries to make them collide.
#[derive(Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let product = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }
}

const NONE: u32 = u32::MAX;

/// State of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// On flash and on disk.
    Clean,
    /// On flash only.
    Dirty,
    /// Being written to disk.
    Destaging,
    /// Written again while being written to disk.
    Again,
}

#[derive(Clone, Copy)]
struct Node {
    key: u64,
    newer: u32,
    older: u32,
    line: Line,
    keep: bool,
}

#[derive(Clone, Copy)]
struct List {
    newest: u32,
    oldest: u32,
}

/// Result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// The line is at this place.
    At(u32),
    /// The line is at this place, from which a line of KEEP was evicted.
    OverKeep(u32),
    /// There is no room: all candidates are dirty or kept.
    NoRoom,
}

/// Directory of a flash cache.
pub struct Directory {
    places: HashMap<u64, u32, BuildHasherDefault<Mix>>,
    nodes: Vec<Node>,
    free: Vec<u32>,
    /// Four lists, in the order of [`Directory::list`]: clean and dirty lines, then clean and dirty lines of KEEP.
    lists: [List; 4],
    room: u64,
    keep_room: u64,
    keep: u64,
    dirty: u64,
    evictions: u64,
}

impl Directory {
    /// Returns an empty directory for `room` lines, `keep_room` of them for KEEP.
    pub fn new(room: u64, keep_room: u64) -> Self {
        let lists = [List { newest: NONE, oldest: NONE }; 4];
        let (places, nodes, free) = (HashMap::default(), Vec::new(), Vec::new());
        Self { places, nodes, free, lists, room, keep_room, keep: 0, dirty: 0, evictions: 0 }
    }

    /// Returns the number of lines in the cache.
    pub fn len(&self) -> u64 {
        self.places.len() as u64
    }

    /// Returns true if the cache has no line.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the largest number of lines that the cache can hold.
    pub fn room(&self) -> u64 {
        self.room
    }

    /// Returns the number of lines of KEEP segments.
    pub fn kept(&self) -> u64 {
        self.keep
    }

    /// Returns the number of lines whose content is not on disk.
    pub fn dirty(&self) -> u64 {
        self.dirty
    }

    /// Returns the number of evictions.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Returns the place of a line; this does not count as a use of the line.
    #[inline]
    pub fn find(&self, key: u64) -> Option<u32> {
        self.places.get(&key).copied()
    }

    /// Returns the key of the line at a place.
    pub fn key(&self, place: u32) -> u64 {
        self.nodes[place as usize].key
    }

    fn list(node: &Node) -> usize {
        usize::from(node.line != Line::Clean) + 2 * usize::from(node.keep)
    }

    fn unlink(&mut self, place: u32) {
        let node = self.nodes[place as usize];
        let list = &mut self.lists[Self::list(&node)];
        match node.newer {
            NONE => list.newest = node.older,
            newer => self.nodes[newer as usize].older = node.older,
        }
        match node.older {
            NONE => list.oldest = node.newer,
            older => self.nodes[older as usize].newer = node.newer,
        }
    }

    fn link_newest(&mut self, place: u32) {
        let index = Self::list(&self.nodes[place as usize]);
        let next = self.lists[index].newest;
        let node = &mut self.nodes[place as usize];
        (node.newer, node.older) = (NONE, next);
        match next {
            NONE => self.lists[index].oldest = place,
            next => self.nodes[next as usize].newer = place,
        }
        self.lists[index].newest = place;
    }

    fn link_oldest(&mut self, place: u32) {
        let index = Self::list(&self.nodes[place as usize]);
        let next = self.lists[index].oldest;
        let node = &mut self.nodes[place as usize];
        (node.newer, node.older) = (next, NONE);
        match next {
            NONE => self.lists[index].newest = place,
            next => self.nodes[next as usize].older = place,
        }
        self.lists[index].oldest = place;
    }

    /// Records a use of the line; with `keep`, the line belongs to KEEP from now on if the limit allows.
    #[inline]
    pub fn touch(&mut self, place: u32, keep: bool) {
        let kept = self.nodes[place as usize].keep;
        if keep && !kept && self.keep < self.keep_room {
            self.unlink(place);
            self.nodes[place as usize].keep = true;
            self.keep += 1;
            self.link_newest(place);
        } else if self.nodes[place as usize].newer != NONE {
            self.unlink(place);
            self.link_newest(place);
        }
    }

    /// Marks the line as written; returns true if it was dirty already.
    pub fn soil(&mut self, place: u32) -> bool {
        let was = self.nodes[place as usize].line;
        let line = match was {
            Line::Clean | Line::Dirty => Line::Dirty,
            Line::Destaging | Line::Again => Line::Again,
        };
        self.unlink(place);
        self.nodes[place as usize].line = line;
        self.link_newest(place);
        self.dirty += u64::from(was == Line::Clean);
        was != Line::Clean
    }

    /// Inserts a clean line; with `spare`, only if there is free room for it.
    pub fn insert(&mut self, key: u64, keep: bool, spare: bool) -> Placed {
        let mut over_keep = false;
        let free = self.len() < self.room;
        if keep && self.keep >= self.keep_room {
            let Some(()) = self.evict(2) else { return Placed::NoRoom };
            over_keep = true;
        } else if !free && (spare || self.evict(0).is_none()) {
            return Placed::NoRoom;
        }
        let node = Node { key, newer: NONE, older: NONE, line: Line::Clean, keep };
        let place = if let Some(place) = self.free.pop() {
            self.nodes[place as usize] = node;
            place
        } else {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        };
        self.keep += u64::from(keep);
        self.places.insert(key, place);
        self.link_newest(place);
        if over_keep { Placed::OverKeep(place) } else { Placed::At(place) }
    }

    fn evict(&mut self, list: usize) -> Option<()> {
        let oldest = self.lists[list].oldest;
        if oldest == NONE {
            return None;
        }
        self.unlink(oldest);
        let node = self.nodes[oldest as usize];
        self.places.remove(&node.key);
        self.keep -= u64::from(node.keep);
        self.free.push(oldest);
        self.evictions += 1;
        Some(())
    }

    /// Removes the line, unless the line is being written to disk; returns true if the line was removed.
    pub fn remove(&mut self, place: u32) -> bool {
        let node = self.nodes[place as usize];
        if matches!(node.line, Line::Destaging | Line::Again) {
            return false;
        }
        self.unlink(place);
        self.places.remove(&node.key);
        self.keep -= u64::from(node.keep);
        self.dirty -= u64::from(node.line == Line::Dirty);
        self.free.push(place);
        true
    }

    /// Returns true if the line is on flash only.
    pub fn is_dirty(&self, place: u32) -> bool {
        self.nodes[place as usize].line != Line::Clean
    }

    /// Marks the least recently used dirty line as being written to disk; returns its place.
    pub fn destage(&mut self) -> Option<u32> {
        for list in [1, 3] {
            // Those on their way stand at the newest end until they are done.
            let oldest = self.lists[list].oldest;
            if oldest == NONE || self.nodes[oldest as usize].line != Line::Dirty {
                continue;
            }
            self.unlink(oldest);
            self.nodes[oldest as usize].line = Line::Destaging;
            self.link_newest(oldest);
            return Some(oldest);
        }
        None
    }

    /// Marks the line as written to disk: it becomes clean and the next to be evicted, or stays dirty if it was written
    /// again.
    pub fn destaged(&mut self, place: u32) {
        self.unlink(place);
        if self.nodes[place as usize].line == Line::Again {
            self.nodes[place as usize].line = Line::Dirty;
            self.link_newest(place);
        } else {
            self.nodes[place as usize].line = Line::Clean;
            self.dirty -= 1;
            self.link_oldest(place);
        }
    }

    /// Returns true if lists, counts and limits agree.
    pub fn holds(&self) -> bool {
        let mut seen = [0_u64; 4];
        for (index, list) in self.lists.iter().enumerate() {
            let mut at = list.newest;
            while at != NONE {
                let node = &self.nodes[at as usize];
                if Self::list(node) != index || self.find(node.key) != Some(at) {
                    return false;
                }
                seen[index] += 1;
                at = node.older;
            }
        }
        seen.iter().sum::<u64>() == self.len()
            && seen[1] + seen[3] == self.dirty
            && seen[2] + seen[3] == self.keep
            && self.len() <= self.room
            && self.keep <= self.keep_room
    }
}
