//! Space of the flash log on the modules of a cell, and the races under way.

use super::counts::{LogCounts, Skip};
use super::parameters::FlashLogParameters;
use crate::kernel::sample::whole_ns;

/// State of a redo write, whether it is raced or not.
#[derive(Clone, Copy)]
pub(super) struct Race {
    pub began_ns: u64,
    pub module: u16,
    pub flash_bytes: u64,
    /// Time that the disk copy took [ns]; `None` until it is complete.
    pub disk_ns: Option<u64>,
    /// Time that the flash copy took [ns]; `None` until it is complete.
    pub flash_ns: Option<u64>,
    pub skip: Option<Skip>,
}

/// The flash log of a cell.
pub(super) struct LogSpace {
    /// True if the cell has a flash log.
    pub exists: bool,
    pub room_bytes: u64,
    /// Number of bytes on each module that are not on disk yet.
    pub used_bytes: Vec<u64>,
    /// Offset of the next copy on each module [bytes].
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

    /// Returns the size of the flash log on all modules [bytes]; 0 if there is none.
    pub fn bytes(&self) -> u64 {
        if self.exists { self.room_bytes * self.used_bytes.len() as u64 } else { 0 }
    }

    /// Returns true if no module holds more than its space for the flash log.
    pub fn holds(&self) -> bool {
        self.used_bytes.iter().all(|&used| used <= self.room_bytes)
    }

    /// Returns the bytes on flash that are not on disk yet.
    pub fn used(&self) -> u64 {
        self.used_bytes.iter().sum()
    }

    /// Reserves space on the next module with room; returns the module and the offset on it [bytes].
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
