//! Parameters of the buffer cache and its writer, with their sources.

use serde::{Deserialize, Serialize};

use super::lru::Replacement;
use crate::device::{Parameter, parameter};

/// A buffer cache and its writer.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct BufferParameters {
    /// Buffers.
    pub buffers: u64,
    /// Block.
    pub block_bytes: u64,
    /// How buffers age.
    pub replacement: Replacement,
    /// Hot part of the list.
    pub hot_pct: f64,
    /// Touches that make a buffer hot.
    pub hot_touches: u64,
    /// No two touches count within this time.
    pub touch_s: f64,
    /// Part of the buffers that a session searches for a clean one.
    pub scan_pct: f64,
    /// Part of the buffers that the writer looks at when buffers are wanted.
    pub writer_scan_pct: f64,
    /// Dirty buffers found by sessions that start the writer.
    pub dirty_queue: u64,
    /// Writes at once.
    pub writes: u64,
    /// Blocks of one read of a scan.
    pub multiblock: u64,
    /// CPU to get a block.
    pub get_us: f64,
    /// CPU of the writer for a block.
    pub write_us: f64,
}

impl BufferParameters {
    /// Meaning and source of each.
    pub const TABLE: [Parameter; 13] = [
        parameter("buffers", "buffers", "chosen").within(8.0, 1e7),
        parameter("block_bytes", "block", "Oracle: 8192 by default").within(512.0, 1_048_576.0),
        parameter(
            "replacement",
            "how buffers age: touch-count or lru",
            "Oracle: touch counts since 8i, least recently used before",
        ),
        parameter("hot_pct", "hot part of the list", "Oracle: _db_percent_hot_default, 50").within(0.0, 100.0),
        parameter("hot_touches", "touches that make a buffer hot", "Oracle: _db_aging_hot_criteria, 2")
            .within(1.0, 1e6),
        parameter("touch_s", "no two touches count within this time", "Oracle: _db_aging_touch_time, 3 s"),
        parameter("scan_pct", "part searched for a clean buffer", "Oracle: _db_block_max_scan_pct, 40")
            .within(0.0, 100.0),
        parameter(
            "writer_scan_pct",
            "part that the writer looks at when buffers are wanted",
            "Oracle: _db_writer_scan_depth_pct, 25",
        )
        .within(0.0, 100.0),
        parameter(
            "dirty_queue",
            "dirty buffers found by sessions that start the writer",
            "Oracle: _db_large_dirty_queue, 25",
        )
        .within(1.0, 1e6),
        parameter("writes", "writes at once", "assumed: depth of asynchronous I/O in use").within(1.0, 100_000.0),
        parameter("multiblock", "blocks of one read of a scan", "Oracle: db_file_multiblock_read_count, 128 (1 MB)")
            .within(1.0, 4_096.0),
        parameter("get_us", "CPU to get a block", "assumed: order of size of a logical read"),
        parameter("write_us", "CPU of the writer for a block", "assumed: a system call's share"),
    ];
}

impl Default for BufferParameters {
    fn default() -> Self {
        Self {
            buffers: 10_000,
            block_bytes: 8_192,
            replacement: Replacement::TouchCount,
            hot_pct: 50.0,
            hot_touches: 2,
            touch_s: 3.0,
            scan_pct: 40.0,
            writer_scan_pct: 25.0,
            dirty_queue: 25,
            writes: 32,
            multiblock: 128,
            get_us: 5.0,
            write_us: 5.0,
        }
    }
}
