//! Recovery of a log after a crash: which copy is newer, where each copy ends, and which writes the two contain
//! together.
//!
//! A write is complete in a copy if all of its blocks are there and have correct checksums. The first path has no holes
//! (see [`writer`](super::writer)), so the recovered log is the first path up to its last complete write, and then the
//! second path as far as its writes continue without a gap.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::ProbeError;
use super::block::{HEAD, Head, Stamp};
use super::file::read_head;

/// Size of each read \[bytes\].
const PIECE: usize = 1 << 20;

/// Contents of one copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Copy {
    /// Path of the copy's file.
    pub path: PathBuf,
    /// Copy number, from 1.
    pub copy: u32,
    /// Number of complete writes.
    pub writes: u64,
    /// Number of writes with missing blocks: torn at the end, or partly overwritten by a later lap.
    pub broken: u64,
    /// Number of the last complete write; 0 for none.
    pub last_sequence: u64,
    /// Number of commits whose last byte lies in or before the last complete write.
    pub last_commit: u64,
    /// Number of complete writes that are missing between the copy's first and last one.
    pub holes: u64,
}

/// Recovered log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// Copies, the first path first.
    pub copies: Vec<Copy>,
    /// Number of the newer copy, from 1; 0 if both end at the same write or there is only one.
    pub newer: u32,
    /// Number of the first write in the recovered log; 0 for none.
    pub first_sequence: u64,
    /// Number of the last write in the recovered log.
    pub last_sequence: u64,
    /// Number of commits that are complete with the last write: all acknowledged ones, and perhaps those of one more
    /// write.
    pub last_commit: u64,
    /// Number of writes at the end of the recovered log that only the second path has.
    pub from_second: u64,
}

/// Complete writes of a copy: for the number of each write, how many commits are complete with it.
type Whole = BTreeMap<u64, u64>;

/// Reads one copy or both, in any order.
///
/// # Errors
/// A file cannot be read, was not written by a probe, or the two are not copies of the same log.
pub fn recover(paths: &[PathBuf]) -> Result<Recovery, ProbeError> {
    let mut found = Vec::new();
    for path in paths {
        let head = read_head(path)?.ok_or_else(|| {
            ProbeError::refused(path, "is not a log of a probe", "name a file that `dbdyno probe redo --keep` left")
        })?;
        let (whole, broken) = scan(path, &head).map_err(|e| ProbeError::io(path, "cannot be read", e))?;
        found.push((path.clone(), head, whole, broken));
    }
    found.sort_by_key(|(_, head, _, _)| head.copy);
    for (path, head, _, _) in found.iter().skip(1) {
        if head.run != found[0].1.run || head.copy == found[0].1.copy {
            return Err(ProbeError::refused(
                path,
                format!("is not the other copy of the log {}", found[0].0.display()),
                "name the two files of one run",
            ));
        }
    }
    Ok(joined(&found))
}

fn joined(found: &[(PathBuf, Head, Whole, u64)]) -> Recovery {
    let copies: Vec<Copy> = found
        .iter()
        .map(|(path, head, whole, broken)| {
            let last = whole.last_key_value().map_or((0, 0), |(s, c)| (*s, *c));
            let first = whole.first_key_value().map_or(1, |(s, _)| *s);
            Copy {
                path: path.clone(),
                copy: head.copy,
                writes: whole.len() as u64,
                broken: *broken,
                last_sequence: last.0,
                last_commit: last.1,
                holes: (last.0 + 1 - first.min(last.0 + 1)) - whole.len() as u64,
            }
        })
        .collect();
    let empty = Whole::new();
    let first = found.first().map_or(&empty, |f| &f.2);
    let second = found.get(1).map_or(&empty, |f| &f.2);
    let end = first.last_key_value().map(|(s, c)| (*s, *c));
    // If the first path has no complete write, the log begins on the second.
    let (mut last, mut commit) = end.unwrap_or((0, 0));
    let mut from_second = 0;
    while let Some(commits) = second.get(&(last + 1)) {
        (last, commit, from_second) = (last + 1, *commits, from_second + 1);
    }
    let mut start = last;
    while start > 1 && (first.contains_key(&(start - 1)) || second.contains_key(&(start - 1))) {
        start -= 1;
    }
    let newer = match copies.as_slice() {
        [one, two] if one.last_sequence > two.last_sequence => one.copy,
        [one, two] if one.last_sequence < two.last_sequence => two.copy,
        _ => 0,
    };
    Recovery { copies, newer, first_sequence: start, last_sequence: last, last_commit: commit, from_second }
}

/// Returns the complete writes of a file, and the number of incomplete ones.
fn scan(path: &Path, head: &Head) -> io::Result<(Whole, u64)> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(HEAD as u64))?;
    let mut seen: BTreeMap<u64, Found> = BTreeMap::new();
    let mut piece = vec![0; PIECE / head.block_bytes * head.block_bytes];
    let mut slot = 0;
    while slot < head.slots {
        let read = fill(&mut file, &mut piece)?;
        for block in piece[..read].chunks_exact(head.block_bytes) {
            if slot < head.slots
                && let Some(stamp) = Stamp::read(block, head.run, slot)
            {
                let found = seen.entry(stamp.sequence).or_insert(Found { blocks: 0, slot, stamp });
                found.blocks += 1;
            }
            slot += 1;
        }
        if read < piece.len() {
            break;
        }
    }
    drop_earlier_laps(&mut seen, head.slots);
    let all = seen.len() as u64;
    let whole: Whole = seen
        .into_iter()
        .filter(|(_, found)| found.blocks == found.stamp.parts)
        .map(|(sequence, found)| (sequence, found.stamp.commits))
        .collect();
    let broken = all - whole.len() as u64;
    Ok((whole, broken))
}

/// Number of blocks of a write that were found, and the slot of the first of these blocks.
struct Found {
    blocks: u32,
    slot: u64,
    stamp: Stamp,
}

/// Removes writes of earlier laps that a later lap did not overwrite.
///
/// Such writes remain at the end of the ring, if the next write did not fit there, and where the second path was
/// skipped. If the ring is read forward from the slot after the newest write, numbers rise; a write whose number is
/// lower than that of a write read before it is from an earlier lap.
fn drop_earlier_laps(seen: &mut BTreeMap<u64, Found>, slots: u64) {
    let Some(newest) = seen.last_key_value().map(|(_, found)| found.slot) else { return };
    let mut around: Vec<(u64, u64)> =
        seen.iter().map(|(&sequence, found)| ((found.slot + slots - newest - 1) % slots, sequence)).collect();
    around.sort_unstable();
    let mut highest = 0;
    for (_, sequence) in around {
        if sequence < highest {
            seen.remove(&sequence);
        }
        highest = highest.max(sequence);
    }
}

/// Reads until the buffer is full or the file ends; returns the number of bytes read.
fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read(&mut buffer[read..])? {
            0 => break,
            now => read += now,
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Write 3 is in the last slot, which the next lap did not use because write 5 did not fit there.
    #[test]
    fn what_an_earlier_lap_left_at_the_end_of_the_ring_is_no_hole() {
        let found = |slot, sequence| {
            let stamp = Stamp { run: 1, sequence, slot, part: 0, parts: 1, commits: sequence };
            (sequence, Found { blocks: 1, slot, stamp })
        };
        let mut seen = BTreeMap::from([found(9, 3), found(7, 4), found(0, 5), found(4, 6)]);
        drop_earlier_laps(&mut seen, 10);
        assert_eq!(seen.into_keys().collect::<Vec<_>>(), [4, 5, 6]);
    }
}
