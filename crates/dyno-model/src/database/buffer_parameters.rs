//! Parameters of the buffer cache and its writer, with the sources of their values.

use super::lru::Replacement;
use crate::device::parameters;

parameters! {
    /// A buffer cache and its writer.
    pub struct BufferParameters {
        /// number of buffers
        buffers: u64 = 10_000, from "chosen", in 8.0..=1e7;
        /// size of a block
        block_bytes: u64 = 8_192, from "Oracle: 8192 by default", in 512.0..=1_048_576.0;
        /// how buffers age: touch-count or lru
        replacement: Replacement = Replacement::TouchCount,
            from "Oracle: touch counts since 8i, least recently used before";
        /// part of all buffers that may be in the hot part of the list, in percent
        hot_pct: f64 = 50.0, from "Oracle: _db_percent_hot_default, 50", in 0.0..=100.0;
        /// touches that make a buffer hot
        hot_touches: u64 = 2, from "Oracle: _db_aging_hot_criteria, 2", in 1.0..=1e6;
        /// shortest time between two touches that both count
        touch_s: f64 = 3.0, from "Oracle: _db_aging_touch_time, 3 s";
        /// part of all buffers that a session searches for a clean one, in percent
        scan_pct: f64 = 40.0, from "Oracle: _db_block_max_scan_pct, 40", in 0.0..=100.0;
        /// part of all buffers that the writer searches for dirty ones when sessions need buffers, in percent
        writer_scan_pct: f64 = 25.0, from "Oracle: _db_writer_scan_depth_pct, 25", in 0.0..=100.0;
        /// number of dirty buffers found by sessions at which the writer starts
        dirty_queue: u64 = 25, from "Oracle: _db_large_dirty_queue, 25", in 1.0..=1e6;
        /// writes of the database writer at once
        writes: u64 = 32, from "assumed: depth of asynchronous I/O in use", in 1.0..=100_000.0;
        /// largest number of blocks that a scan reads with one I/O
        multiblock: u64 = 128, from "Oracle: db_file_multiblock_read_count, 128 (1 MB)", in 1.0..=4_096.0;
        /// CPU time to get a block
        get_us: f64 = 5.0, from "assumed: order of size of a logical read";
        /// CPU time of the writer per block
        write_us: f64 = 5.0, from "assumed: a system call's share";
    }
}
