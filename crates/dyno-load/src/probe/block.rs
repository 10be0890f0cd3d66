//! Blocks of a log: their headers, by which each block can be identified after a crash.
//!
//! A file begins with a head of 4096 bytes, followed by slots of one block each. One *write* of the log fills
//! neighbouring slots. Each of its blocks begins with a header of 48 bytes, little endian:
//!
//! ```text
//!   0  4  magic "dlgb"          16  8  sequence: number of the write, from 1
//!   4  4  CRC-32 of the block   24  8  slot in which the block belongs
//!   8  8  run id                32  4  number of this block in its write   36  4  blocks of the write
//!                               40  8  commits that are complete with this write
//! ```
//!
//! The checksum covers the whole block except itself, so a torn block is not accepted, nor is a block in the wrong
//! slot. A write counts only if all of its blocks are accepted.

use std::fmt::Write as _;

use crc32fast::Hasher;

/// Size of a block's header \[bytes\].
pub(super) const HEADER: usize = 48;
/// Size of a file's head, which precedes the first slot \[bytes\].
pub(super) const HEAD: usize = 4096;

const MAGIC: [u8; 4] = *b"dlgb";
const FIRST_LINE: &str = "dbdyno redo probe 1";

/// Contents of a block's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Id of the run that wrote the block.
    pub run: u64,
    /// Number of the write to which the block belongs.
    pub sequence: u64,
    /// Slot in which the block belongs.
    pub slot: u64,
    /// Block number within the write.
    pub part: u32,
    /// Number of blocks in the write.
    pub parts: u32,
    /// Number of commits that are complete with this write.
    pub commits: u64,
}

impl Stamp {
    /// Writes header and checksum into the beginning of `block`.
    pub fn put(&self, block: &mut [u8]) {
        block[0..4].copy_from_slice(&MAGIC);
        block[8..16].copy_from_slice(&self.run.to_le_bytes());
        block[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        block[24..32].copy_from_slice(&self.slot.to_le_bytes());
        block[32..36].copy_from_slice(&self.part.to_le_bytes());
        block[36..40].copy_from_slice(&self.parts.to_le_bytes());
        block[40..48].copy_from_slice(&self.commits.to_le_bytes());
        let sum = checksum(block);
        block[4..8].copy_from_slice(&sum.to_le_bytes());
    }

    /// Returns the header of an intact block of this run in its own slot, or `None` for anything else.
    pub fn read(block: &[u8], run: u64, slot: u64) -> Option<Self> {
        let long = |at: usize| block[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let short = |at: usize| block[at..at + 4].try_into().map(u32::from_le_bytes).ok();
        let ours = block[0..4] == MAGIC && long(8)? == run && long(24)? == slot;
        if !ours || short(4)? != checksum(block) {
            return None;
        }
        let (part, parts) = (short(32)?, short(36)?);
        Some(Self { run, sequence: long(16)?, slot, part, parts, commits: long(40)? })
    }
}

fn checksum(block: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&block[0..4]);
    hasher.update(&block[8..]);
    hasher.finalize()
}

/// Head of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    /// Id of the run that wrote the file.
    pub run: u64,
    /// Size of a block \[bytes\].
    pub block_bytes: usize,
    /// Number of slots; after the last one, the log continues at the first.
    pub slots: u64,
    /// Number of the copy that this file holds, from 1.
    pub copy: u32,
    /// Number of copies.
    pub copies: u32,
}

impl Head {
    /// Returns the head's bytes: a few readable lines, then zeros.
    pub fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{FIRST_LINE}\nrun {:016x}\n", self.run);
        // Writing to a String cannot fail.
        let _ = write!(text, "block_bytes {}\nslots {}\n", self.block_bytes, self.slots);
        let _ = write!(text, "copy {}\ncopies {}\n", self.copy, self.copies);
        let mut bytes = text.into_bytes();
        bytes.resize(HEAD, 0);
        bytes
    }

    /// Parses a head; returns `None` if the bytes are not a head of the probe.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        let text = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = text.lines();
        if lines.next() != Some(FIRST_LINE) {
            return None;
        }
        let mut value = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let head = Self {
            run: u64::from_str_radix(value("run")?, 16).ok()?,
            block_bytes: value("block_bytes")?.parse().ok()?,
            slots: value("slots")?.parse().ok()?,
            copy: value("copy")?.parse().ok()?,
            copies: value("copies")?.parse().ok()?,
        };
        (head.block_bytes > HEADER && head.block_bytes <= 1 << 20).then_some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp { run: 0xfeed, sequence: 9, slot: 4, part: 1, parts: 3, commits: 77 };

    fn block() -> Vec<u8> {
        let mut block: Vec<u8> = (0..512).map(|at| at as u8).collect();
        STAMP.put(&mut block);
        block
    }

    #[test]
    fn a_block_comes_back_as_it_went() {
        assert_eq!(Stamp::read(&block(), 0xfeed, 4), Some(STAMP));
    }

    #[test]
    fn a_block_of_another_run_or_slot_is_not_taken() {
        assert_eq!(Stamp::read(&block(), 0xfeee, 4), None);
        assert_eq!(Stamp::read(&block(), 0xfeed, 5), None);
    }

    #[test]
    fn no_flipped_bit_goes_unseen() {
        for at in 0..512 {
            let mut torn = block();
            torn[at] ^= 1 << (at % 8);
            assert_eq!(Stamp::read(&torn, 0xfeed, 4), None, "byte {at}");
        }
    }

    #[test]
    fn a_head_comes_back_and_nothing_else_is_one() {
        let head = Head { run: 0xabc, block_bytes: 4096, slots: 99, copy: 2, copies: 2 };
        assert_eq!(Head::read(&head.bytes()), Some(head.clone()));
        assert_eq!(head.bytes().len(), HEAD);
        for other in ["", "dbdyno redo probe 2\n", "root:x:0:0", "dbdyno redo probe 1\nrun zz\n"] {
            assert_eq!(Head::read(other.as_bytes()), None, "{other}");
        }
        assert_eq!(Head::read(&[0xff; 4096]), None);
    }
}
