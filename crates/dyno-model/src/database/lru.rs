//! Replacement of buffers: lists of buffers by use.
//!
//! ```text
//!   head of hot ... tail of hot | head of cold ... tail of cold      write list
//!        ^ promoted when found        ^ read here        ^ search begins here
//!          often touched              (the middle)         dirty ones leave for the write list
//! ```
//!
//! **Touch counts** (Oracle 8i and later): a block is read into the middle of the list. A touch only increments the
//! buffer's count, at most once within some seconds; it does not move the buffer. The search for a buffer to reuse
//! starts at the cold end: a buffer touched often enough moves to the hot end, where its count starts again at 0; a
//! dirty one moves to the write list; a clean one is reused. When a buffer is pushed from the hot into the cold part,
//! its count starts again at 1.
//!
//! **Least recently used** (before 8i): a touch moves the buffer to the head, where blocks are also read in.

use serde::{Deserialize, Serialize};

/// Replacement policy of buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// Touch counts, with a hot and a cold part.
    #[default]
    TouchCount,
    /// Least recently used.
    Lru,
}

/// Parameters of the replacement.
#[derive(Clone, Copy, Debug)]
pub struct Aging {
    /// Replacement policy.
    pub replacement: Replacement,
    /// Largest number of buffers in the hot part.
    pub hot_max: u32,
    /// Number of touches that make a buffer hot.
    pub hot_touches: u32,
    /// Shortest time between two touches that both count [ns].
    pub touch_ns: u64,
}

/// List that a buffer is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In no list: pinned, or never used.
    #[default]
    Out,
    /// In the hot part.
    Hot,
    /// In the cold part.
    Cold,
    /// In the write list.
    Write,
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
    place: Place,
    touches: u32,
    touched_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
    len: u32,
}

/// What the search may do with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The buffer can be taken.
    Clean,
    /// The buffer must be written before it can be taken.
    Dirty,
    /// The buffer is being read or written.
    Busy,
}

/// Buffers `0..n` in their lists.
#[derive(Debug)]
pub struct Lru {
    aging: Aging,
    links: Vec<Link>,
    hot: List,
    cold: List,
    write: List,
}

const EMPTY: List = List { head: NONE, tail: NONE, len: 0 };

impl Lru {
    /// Returns the lists with no buffer in any of them.
    pub fn new(buffers: u32, aging: Aging) -> Self {
        let link = Link { before: NONE, after: NONE, place: Place::Out, touches: 0, touched_ns: 0 };
        Self { aging, links: vec![link; buffers as usize], hot: EMPTY, cold: EMPTY, write: EMPTY }
    }

    /// Returns the list that a buffer is in.
    pub fn place(&self, buffer: u32) -> Place {
        self.links[buffer as usize].place
    }

    /// Returns the number of buffers in the write list.
    pub fn to_write(&self) -> u32 {
        self.write.len
    }

    /// Returns the buffer that has been in the write list longest among those that are ready.
    pub fn next_to_write(&self, ready: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = self.write.tail;
        while at != NONE && !ready(at) {
            at = self.links[at as usize].before;
        }
        (at != NONE).then_some(at)
    }

    /// Inserts a buffer into which a single read has read a block.
    pub fn insert(&mut self, buffer: u32, now_ns: u64) {
        let link = &mut self.links[buffer as usize];
        (link.touches, link.touched_ns) = (1, now_ns);
        self.push_front(buffer, Place::Cold);
    }

    /// Inserts a buffer at the cold end: a scan read its block, or it was written because free buffers were needed.
    pub fn insert_coldest(&mut self, buffer: u32, now_ns: u64) {
        let link = &mut self.links[buffer as usize];
        (link.touches, link.touched_ns) = (1, now_ns);
        self.push_back_cold(buffer);
    }

    /// Records a use of the block in a buffer.
    pub fn touch(&mut self, buffer: u32, now_ns: u64) {
        match self.aging.replacement {
            Replacement::TouchCount => {
                let link = &mut self.links[buffer as usize];
                if now_ns >= link.touched_ns + self.aging.touch_ns {
                    link.touches += 1;
                    link.touched_ns = now_ns;
                }
            }
            Replacement::Lru if self.place(buffer) == Place::Cold => {
                self.remove(buffer);
                self.push_front(buffer, Place::Cold);
            }
            Replacement::Lru => {}
        }
    }

    /// Searches for a buffer to reuse among the coldest `depth` buffers, and removes it from its list. On the way, hot
    /// buffers move to the hot part and dirty ones to the write list.
    pub fn search(&mut self, depth: u32, state: impl Fn(u32) -> State) -> Option<u32> {
        let mut at = self.coldest();
        for _ in 0..depth {
            if at == NONE {
                return None;
            }
            let before = self.links[at as usize].before;
            match state(at) {
                State::Busy => {}
                _ if self.is_hot(at) => self.promote(at),
                State::Dirty => {
                    self.remove(at);
                    self.push_front(at, Place::Write);
                }
                State::Clean => {
                    self.remove(at);
                    return Some(at);
                }
            }
            at = if before == NONE && self.cold.len == 0 { self.coldest() } else { before };
        }
        None
    }

    /// Moves dirty buffers among the coldest `depth` to the write list.
    pub fn collect_dirty(&mut self, depth: u32, state: impl Fn(u32) -> State) {
        let mut at = self.coldest();
        for _ in 0..depth {
            if at == NONE {
                return;
            }
            let before = self.links[at as usize].before;
            if state(at) == State::Dirty && !self.is_hot(at) {
                self.remove(at);
                self.push_front(at, Place::Write);
            }
            at = before;
        }
    }

    fn is_hot(&self, buffer: u32) -> bool {
        self.aging.replacement == Replacement::TouchCount
            && self.aging.hot_max > 0
            && self.links[buffer as usize].touches >= self.aging.hot_touches
    }

    /// Returns the tail of the cold part; if the cold part is empty, the tail of the hot part is moved there first.
    fn coldest(&mut self) -> u32 {
        if self.cold.len == 0 && self.hot.len > 0 {
            self.cool();
        }
        self.cold.tail
    }

    fn promote(&mut self, buffer: u32) {
        self.remove(buffer);
        self.links[buffer as usize].touches = 0;
        self.push_front(buffer, Place::Hot);
        if self.hot.len > self.aging.hot_max {
            self.cool();
        }
    }

    fn cool(&mut self) {
        let buffer = self.hot.tail;
        self.remove(buffer);
        // Below what makes it hot: a search would else promote and cool the same two for ever.
        self.links[buffer as usize].touches = 1.min(self.aging.hot_touches.saturating_sub(1));
        self.push_front(buffer, Place::Cold);
    }

    fn list(&mut self, place: Place) -> &mut List {
        match place {
            Place::Hot => &mut self.hot,
            Place::Cold | Place::Out => &mut self.cold,
            Place::Write => &mut self.write,
        }
    }

    /// Removes a buffer from its list, if the buffer is in a list.
    pub fn remove(&mut self, buffer: u32) {
        let Link { before, after, place, .. } = self.links[buffer as usize];
        if place == Place::Out {
            return;
        }
        if before != NONE {
            self.links[before as usize].after = after;
        }
        if after != NONE {
            self.links[after as usize].before = before;
        }
        let list = self.list(place);
        list.len -= 1;
        if list.head == buffer {
            list.head = after;
        }
        if list.tail == buffer {
            list.tail = before;
        }
        self.links[buffer as usize].place = Place::Out;
    }

    fn push_front(&mut self, buffer: u32, place: Place) {
        let list = self.list(place);
        let old = list.head;
        list.head = buffer;
        list.len += 1;
        if old == NONE {
            list.tail = buffer;
        } else {
            self.links[old as usize].before = buffer;
        }
        let link = &mut self.links[buffer as usize];
        (link.before, link.after, link.place) = (NONE, old, place);
    }

    fn push_back_cold(&mut self, buffer: u32) {
        let old = self.cold.tail;
        self.cold.tail = buffer;
        self.cold.len += 1;
        if old == NONE {
            self.cold.head = buffer;
        } else {
            self.links[old as usize].after = buffer;
        }
        let link = &mut self.links[buffer as usize];
        (link.before, link.after, link.place) = (old, NONE, Place::Cold);
    }
}
