//! Space of the flash log on the modules of a cell, and the races under way.

use super::counts::{LogCounts, Skip};
use super::parameters::FlashLogParameters;
use crate::kernel::sample::whole_ns;

/// A raced write, or a redo write that was not raced.
#[derive(Clone, Copy)]
pub(super) struct Race {
    pub began_ns: u64,
    pub module: u16,
    pub flash_bytes: u64,
    /// Time of each copy [ns], once it is complete.
    pub disk_ns: Option<u64>,
    pub flash_ns: Option<u64>,
    pub skip: Option<Skip>,
}

/// The flash log of a cell.
pub(super) struct LogSpace {
    /// True if the cell has a flash log.
    pub exists: bool,
    pub room_bytes: u64,
    /// Bytes on each module that are not on disk yet, and the offset of the next copy.
    pub used_bytes: Vec<u64>,
    next_bytes: Vec<u64>,
    turn: usize,
    pub outlier_ns: u64,
    pub counts: LogCounts,
}

impl LogSpace {
    pub fn new(parameters: &FlashLogParameters, modules: usize) -> Self {
        Self {
            exists: parameters.enabled,
            room_bytes: parameters.module_mb << 20,
            used_bytes: vec![0; modules],
            next_bytes: vec![0; modules],
            turn: 0,
            outlier_ns: whole_ns(parameters.outlier_ms * 1e6),
            counts: LogCounts::default(),
        }
    }

    /// Returns the space on all modules [bytes].
    pub fn bytes(&self) -> u64 {
        if self.exists { self.room_bytes * self.used_bytes.len() as u64 } else { 0 }
    }

    /// Returns true if no module is overfull.
    pub fn holds(&self) -> bool {
        self.used_bytes.iter().all(|&used| used <= self.room_bytes)
    }

    /// Returns the bytes on flash that are not on disk yet.
    pub fn used(&self) -> u64 {
        self.used_bytes.iter().sum()
    }

    /// Returns a module with room, and the offset there.
    pub fn place(&mut self, bytes: u64) -> Option<(usize, u64)> {
        let modules = self.used_bytes.len();
        for _ in 0..modules {
            let module = self.turn;
            self.turn = if module + 1 == modules { 0 } else { module + 1 };
            if self.used_bytes[module] + bytes > self.room_bytes {
                continue;
            }
            self.used_bytes[module] += bytes;
            let next = self.next_bytes[module];
            let at = if next + bytes > self.room_bytes { 0 } else { next };
            self.next_bytes[module] = at + bytes;
            return Some((module, at));
        }
        None
    }
}
