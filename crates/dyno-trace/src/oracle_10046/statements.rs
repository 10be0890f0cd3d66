//! Statements: one number and one key for each, whatever cursor executes them.
//!
//! The key is the `sqlid`; before 11.1 `hv:<hash value>`; for a PARSE ERROR, which has neither, `text:<64-bit hash>`;
//! for a cursor whose PARSING IN CURSOR is not in the trace `unknown:<cursor>`. If a key occurs with another text (two
//! texts with one hash value, or damage), it is followed by `~2`, `~3` and so on.
//!
//! Files read in parallel share the registry. The order of the files decides which of two texts has the bare key; if
//! the threads registered the texts in another order, [`Registry::is_disordered`] returns true, and the files are read
//! again one after the other.
//!
//! Limits: texts are distinguished by a 64-bit hash. A statement costs about a hundred bytes of memory, not its text.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::record::{Batch, Cursor, NONE};
use super::rows::NO_STATEMENT;

/// Returns a fast hash of bytes: eight at a time, folded multiplication; not safe against adversaries.
pub fn hash64(bytes: &[u8]) -> u64 {
    const FIRST: u64 = 0x9E37_79B9_7F4A_7C15;
    const SECOND: u64 = 0xD6E8_FEB8_6659_FD93;
    let fold = |a: u64, b: u64| {
        let wide = u128::from(a) * u128::from(b);
        (wide as u64) ^ ((wide >> 64) as u64)
    };
    let mut state = FIRST ^ (bytes.len() as u64);
    let chunks = bytes.chunks_exact(8);
    let mut tail = [0; 8];
    tail[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    for chunk in chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        state = fold(state ^ u64::from_le_bytes(word), SECOND);
    }
    fold(fold(state ^ u64::from_le_bytes(tail), SECOND) ^ FIRST, SECOND)
}

/// Keys of all statements of a run, shared by the readers of its files.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    keys: Vec<Box<str>>,
    /// Numbers by the hash of key and text.
    numbers: HashMap<u64, u32>,
    /// Texts of a key in the order of their suffixes, by the key's hash: hash of the text, and the first file that has
    /// it.
    texts: HashMap<u64, Vec<(u64, u32)>>,
    disordered: bool,
}

impl Registry {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of the statement with this key and text in this file, and true if it is new.
    pub fn number(&self, key: &str, text_hash: u64, file: u32) -> (u32, bool) {
        let key_hash = hash64(key.as_bytes());
        let both = key_hash.rotate_left(32) ^ text_hash;
        let mut shared = self.shared();
        let known = shared.numbers.get(&both).copied();
        let texts = shared.texts.entry(key_hash).or_default();
        match texts.iter_mut().find(|(hash, _)| *hash == text_hash) {
            Some((_, first)) => *first = file.min(*first),
            None => texts.push((text_hash, file)),
        }
        let (count, in_order) = (texts.len(), texts.is_sorted_by_key(|(_, first)| *first));
        shared.disordered |= !in_order;
        if let Some(number) = known {
            return (number, false);
        }
        let number = shared.keys.len() as u32;
        let key = if count == 1 { key.to_owned() } else { format!("{key}~{count}") };
        shared.keys.push(key.into_boxed_str());
        shared.numbers.insert(both, number);
        (number, true)
    }

    /// Returns true if the text of a later file got the key that the text of an earlier file should have.
    pub fn is_disordered(&self) -> bool {
        self.shared().disordered
    }

    /// Returns the key of a statement, or an empty one if the number is unknown.
    pub fn key(&self, number: u32) -> String {
        self.shared().keys.get(number as usize).map_or_else(String::new, ToString::to_string)
    }

    /// Returns the number of statements.
    pub fn len(&self) -> usize {
        self.shared().keys.len()
    }

    /// Returns true if there are no statements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Registry as one file's reader sees it: lock-free for known statements.
#[derive(Debug)]
pub struct Statements {
    registry: Registry,
    file: u32,
    known: HashMap<u64, u32>,
    news: News,
}

/// Novelty of the last statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The statement is already known.
    Known,
    /// The statement is new in this file.
    InFile,
    /// The statement is new in the run: no file has had it before.
    InRun,
}

impl Statements {
    /// Returns a registry for the reader of this file.
    pub fn new(registry: Registry, file: u32) -> Self {
        Self { registry, file, known: HashMap::new(), news: News::Known }
    }

    /// Returns the number of the statement of a PARSING IN CURSOR or PARSE ERROR.
    pub fn number(&mut self, batch: &Batch, cursor: &Cursor) -> u32 {
        let text = batch.bytes_of(cursor.sql);
        let text_hash = hash64(text);
        let sqlid = batch.bytes_of(cursor.sqlid);
        let key_hash = if sqlid.is_empty() { cursor.hv as u64 } else { hash64(sqlid) };
        let both = key_hash.rotate_left(29) ^ text_hash;
        self.news = News::Known;
        if let Some(&number) = self.known.get(&both) {
            return number;
        }
        let key = if !sqlid.is_empty() {
            String::from_utf8_lossy(sqlid).into_owned()
        } else if cursor.hv == NONE {
            // As the text is kept, so that it has the same key when it is written and read again.
            format!("text:{:016x}", hash64(String::from_utf8_lossy(text).as_bytes()))
        } else {
            format!("hv:{}", cursor.hv)
        };
        let (number, new) = self.registry.number(&key, text_hash, self.file);
        self.known.insert(both, number);
        self.news = if new { News::InRun } else { News::InFile };
        number
    }

    /// Returns the number of the statement of a cursor whose text is not in the trace.
    pub fn unknown(&mut self, cursor: u64) -> u32 {
        let (number, new) = self.registry.number(&format!("unknown:{cursor}"), 0, self.file);
        self.news = if new { News::InRun } else { News::InFile };
        number
    }

    /// Returns the novelty of the statement whose number was returned last.
    pub fn news(&self) -> News {
        self.news
    }

    /// Returns the key of a statement.
    pub fn key(&self, number: u32) -> String {
        self.registry.key(number)
    }
}

/// Facts about a cursor; kept after CLOSE, since a cached cursor is used again.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Statement number.
    pub statement: u32,
    /// Id of the parsing user; [`NONE`] if the text is unknown.
    pub user_id: i64,
    /// Plan hash value of the last call; [`NONE`] if none was reported.
    pub plan_hash: i64,
    /// Running number of the last call; `u64::MAX` before the first.
    pub last_call: u64,
}

/// Cursors of a session: a small hash table that remembers its last result.
#[derive(Debug)]
pub struct Cursors {
    entries: Vec<(u64, Known)>,
    /// Hash table of the entries' indexes plus one, 0 for an empty slot; its length is a power of two, and at most half
    /// of it is used.
    slots: Vec<u32>,
    last: usize,
}

impl Default for Cursors {
    fn default() -> Self {
        Self { entries: Vec::new(), slots: vec![0; 64], last: 0 }
    }
}

impl Cursors {
    #[inline]
    fn home(&self, cursor: u64) -> usize {
        (cursor.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (self.slots.len() - 1)
    }

    /// Returns the facts about a cursor.
    #[inline]
    pub fn get(&mut self, cursor: u64) -> Option<&mut Known> {
        if self.entries.get(self.last).is_none_or(|(number, _)| *number != cursor) {
            self.last = self.find(cursor)?;
        }
        Some(&mut self.entries[self.last].1)
    }

    fn find(&self, cursor: u64) -> Option<usize> {
        let mut at = self.home(cursor);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            let entry = (slot - 1) as usize;
            if self.entries[entry].0 == cursor {
                return Some(entry);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Sets the statement that the cursor executes from now on.
    pub fn set(&mut self, cursor: u64, statement: u32, user_id: i64) -> &mut Known {
        let fresh = Known { statement, user_id, plan_hash: NONE, last_call: u64::MAX };
        let entry = if let Some(entry) = self.find(cursor) {
            self.entries[entry].1 = fresh;
            entry
        } else {
            self.entries.push((cursor, fresh));
            if self.entries.len() * 2 > self.slots.len() {
                self.slots = vec![0; self.slots.len() * 2];
                (0..self.entries.len() - 1).for_each(|entry| self.place(entry));
            }
            self.place(self.entries.len() - 1);
            self.entries.len() - 1
        };
        self.last = entry;
        &mut self.entries[entry].1
    }

    fn place(&mut self, entry: usize) {
        let mut at = self.home(self.entries[entry].0);
        while self.slots[at] != 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = entry as u32 + 1;
    }

    /// Returns the number of a cursor's statement; [`NO_STATEMENT`] if it is unknown.
    pub fn statement(&mut self, cursor: u64) -> u32 {
        self.get(cursor).map_or(NO_STATEMENT, |known| known.statement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_comes_with_another_text_is_told_apart() {
        let registry = Registry::default();
        assert_eq!(registry.number("hv:1", 10, 0), (0, true));
        assert_eq!(registry.number("hv:1", 11, 0), (1, true));
        assert_eq!(registry.number("hv:1", 10, 1), (0, false));
        assert_eq!(registry.key(1), "hv:1~2");
        assert!(!registry.is_disordered());
    }

    #[test]
    fn a_key_taken_by_a_later_file_is_noticed() {
        let registry = Registry::default();
        registry.number("hv:1", 10, 2);
        registry.number("hv:1", 10, 1);
        assert!(!registry.is_disordered(), "the same text");
        registry.number("hv:1", 11, 3);
        assert!(!registry.is_disordered(), "in order");
        registry.number("hv:1", 11, 0);
        assert!(registry.is_disordered());
    }

    #[test]
    fn cursors_are_found_again_however_many_there_are() {
        let mut cursors = Cursors::default();
        let number = |n: u64| 18_446_744_071_422_692_152_u64.wrapping_add(n * 8);
        (0..3000).for_each(|n| {
            cursors.set(number(n), n as u32, NONE);
        });
        cursors.set(number(7), 70, NONE);
        assert_eq!(cursors.statement(number(7)), 70);
        assert_eq!(cursors.statement(number(2999)), 2999);
        assert_eq!(cursors.statement(1), NO_STATEMENT);
    }

    #[test]
    fn texts_of_every_length_hash_apart() {
        let text = [0u8; 64];
        let mut hashes: Vec<u64> = (0..64).map(|len| hash64(&text[..len])).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 64);
    }
}
