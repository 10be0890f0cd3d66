//! Log files: where the next block goes, when a switch is due, and which file is free again.
//!
//! The free space of the file limits the redo that may be put into the log buffer: all redo in the buffer fits into the
//! current file, so that the log writer can always empty the buffer.

use std::collections::VecDeque;

use super::redo_parameters::RedoParameters;

/// Size of the header of each block, which holds no redo [bytes].
pub const HEADER_BYTES: u64 = 16;

/// Log files, used cyclically.
pub struct LogFiles {
    block_bytes: u64,
    file_blocks: u64,
    /// Redo position at the end of each file.
    ends: Vec<u64>,
    current: usize,
    /// Number of blocks used in the current file.
    used: u64,
    /// Number of blocks used in all files so far.
    total: u64,
    lag_blocks: u64,
    /// Pairs of the total number of blocks and the redo position, recorded several times in each file.
    marks: VecDeque<(u64, u64)>,
}

impl LogFiles {
    /// Returns empty files; the first is current.
    pub fn new(parameters: &RedoParameters) -> Self {
        let RedoParameters { block_bytes, file_mb, groups, checkpoint_lag, .. } = *parameters;
        let file_blocks = (file_mb << 20) / block_bytes;
        Self {
            block_bytes,
            file_blocks,
            ends: vec![0; groups as usize],
            current: 0,
            used: 0,
            total: 0,
            lag_blocks: (file_blocks as f64 * checkpoint_lag) as u64,
            marks: VecDeque::new(),
        }
    }

    /// Returns the number of blocks for this much redo.
    #[inline]
    pub fn blocks(&self, redo_bytes: u64) -> u64 {
        redo_bytes.div_ceil(self.block_bytes - HEADER_BYTES)
    }

    /// Returns true if this much redo fits into the current file.
    #[inline]
    pub fn fits(&self, redo_bytes: u64) -> bool {
        self.used + self.blocks(redo_bytes) <= self.file_blocks
    }

    /// Takes the next blocks of the current file; returns the offset at which they begin on the device [bytes].
    pub fn take(&mut self, blocks: u64, position: u64) -> u64 {
        let at = self.current as u64 * self.file_blocks + self.used;
        self.used += blocks;
        self.total += blocks;
        let gap = (self.lag_blocks / 64).max(1);
        if self.marks.back().is_none_or(|&(total, _)| self.total >= total + gap) {
            self.marks.push_back((self.total, position));
        }
        at * self.block_bytes
    }

    /// Returns the redo position before which blocks must be written, because the incremental checkpoint may not lag
    /// further.
    pub fn checkpoint_target(&mut self) -> u64 {
        let mut target = 0;
        while let Some(&(total, position)) = self.marks.front() {
            if total + self.lag_blocks > self.total {
                break;
            }
            target = position;
            self.marks.pop_front();
        }
        target
    }

    /// Returns the redo position that the checkpoint must reach before the next file is free.
    pub fn next_needs(&self) -> u64 {
        self.ends[(self.current + 1) % self.ends.len()]
    }

    /// Switches to the next file; the current one ends at `position`.
    pub fn switch(&mut self, position: u64) {
        self.ends[self.current] = position;
        self.current = (self.current + 1) % self.ends.len();
        self.used = 0;
    }
}
