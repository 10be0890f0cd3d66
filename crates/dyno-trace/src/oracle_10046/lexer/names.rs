//! Cache of event names that recur line after line: a known name is compared instead of scanned.

/// Number of names in the cache.
const SLOTS: usize = 16;
/// Length compared [bytes]: a name and the bytes after it. Longer names are scanned.
const BYTES: usize = 64;
const WORDS: usize = BYTES / 8;
/// Bytes that follow a name.
pub(super) const BEHIND: &[u8; 6] = b"' ela=";
const QUOTES: u64 = 0x2727_2727_2727_2727;
const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Returns a hash of an event's name: equal names have equal hashes.
#[inline]
pub(super) fn hash(name: &[u8]) -> u32 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |state: u64, word: u64| (state.rotate_left(29) ^ word).wrapping_mul(FACTOR);
    let mut state = name.len() as u64;
    let mut words = name.chunks_exact(8);
    for word in &mut words {
        state = mix(state, u64::from_le_bytes(word.try_into().unwrap_or_default()));
    }
    // The last word overlaps the one before it, so no byte is left over.
    if let Some(last) = name.last_chunk() {
        state = mix(state, u64::from_le_bytes(*last));
    } else {
        state = name.iter().fold(state, |state, byte| mix(state, u64::from(*byte)));
    }
    (state ^ (state >> 32)) as u32
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The name followed by [`BEHIND`], in words; a bit of `masks` is 1 where a word holds bytes of this text.
    words: [u64; WORDS],
    masks: [u64; WORDS],
    /// Number of words in use; 0 if the slot is empty.
    used: usize,
    name: Name,
}

/// A known name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Name {
    pub len: usize,
    pub hash: u32,
    /// Number of the name in the batch.
    pub number: u32,
}

/// Cache of the latest names.
#[derive(Clone, Debug, Default)]
pub(super) struct NameMemo {
    known: [Known; SLOTS],
}

#[inline(always)]
fn word(bytes: &[u8; BYTES], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at * 8..at * 8 + 8]);
    u64::from_le_bytes(word)
}

/// Returns true if a quote is among the eight bytes.
#[inline(always)]
fn has_quote(word: u64) -> bool {
    let other = word ^ QUOTES;
    other.wrapping_sub(LOW) & !other & HIGH != 0
}

/// Returns the slot of a name, computed from its first and third word; the third counts as 0 if the name ends before
/// it.
#[inline(always)]
fn slot(bytes: &[u8; BYTES]) -> usize {
    let (first, second) = (word(bytes, 0), word(bytes, 1));
    let third = if has_quote(first) || has_quote(second) { 0 } else { word(bytes, 2) };
    let mixed = (first ^ third.rotate_left(21)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 60) as usize % SLOTS
}

impl NameMemo {
    /// Returns the name at `at` in `rest`, if it is known and followed by [`BEHIND`].
    #[inline(always)]
    pub(super) fn find(&self, rest: &[u8], at: usize) -> Option<Name> {
        let bytes: &[u8; BYTES] = rest.get(at..)?.first_chunk()?;
        let known = &self.known[slot(bytes)];
        let mut other = u64::from(known.used == 0);
        for at in 0..known.used.min(WORDS) {
            other |= (word(bytes, at) ^ known.words[at]) & known.masks[at];
        }
        (other == 0).then_some(known.name)
    }

    /// Adds the name of `len` bytes at `at`, which is followed by [`BEHIND`], with its number in the batch.
    pub(super) fn learn(&mut self, rest: &[u8], at: usize, len: usize, number: u32) -> Name {
        let name = Name { len, hash: hash(&rest[at..at + len]), number };
        let whole = len + BEHIND.len();
        if let Some(bytes) = rest[at..].first_chunk::<BYTES>().filter(|_| whole <= BYTES) {
            let mut known = Known { used: whole.div_ceil(8), name, ..Known::default() };
            for at in 0..known.used {
                let bits = 8 * (whole - at * 8).min(8);
                known.masks[at] = u64::MAX >> (64 - bits);
                known.words[at] = word(bytes, at) & known.masks[at];
            }
            self.known[slot(bytes)] = known;
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_name_is_found_where_it_stands_and_nowhere_else(
            names in proptest::collection::vec("[a-c*: ]{0,60}", 1..12),
            order in proptest::collection::vec(any::<proptest::sample::Index>(), 1..60),
            cut in 0..70_usize,
        ) {
            let mut memo = NameMemo::default();
            for (number, index) in (0..).zip(order) {
                let name = index.get(&names);
                let line = format!("{name}' ela= 17 p1=1 p2=2 p3=3 obj#=-1 tim=12345678901234567890 and so on until it is enough");
                let found = memo.find(line.as_bytes(), 0);
                let is_right = |found: Name| (found.len, found.hash) == (name.len(), hash(name.as_bytes()));
                prop_assert!(found.is_none_or(is_right), "{name}");
                let learnt = memo.learn(line.as_bytes(), 0, name.len(), number);
                prop_assert!(is_right(learnt) && learnt.number == number);
                let is_kept = name.len() + BEHIND.len() <= BYTES;
                prop_assert_eq!(memo.find(line.as_bytes(), 0), is_kept.then_some(learnt));
                // A line that ends before is none that is known.
                prop_assert_eq!(memo.find(&line.as_bytes()[..cut.min(63)], 0), None);
                let torn = line.replacen("' ela=", "\n ela=", 1);
                prop_assert_eq!(memo.find(torn.as_bytes(), 0), None);
            }
        }
    }
}
