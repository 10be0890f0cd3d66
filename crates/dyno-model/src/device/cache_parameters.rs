//! Parameters of a disk controller and its cache, and the sources of their values.

use super::parameters;

parameters! {
    /// Parameters of a controller and its cache.
    pub struct CacheParameters {
        /// size of the memory for dirty lines
        capacity_kb: u64 = 512 << 10, from "512 MB a cell up to X4 (Expert Oracle Exadata, ch. 5)";
        /// size of a line
        line_kb: u64 = 8, from "chosen: a database block", in 1.0..=1e6;
        /// time of a hit without the transfer of its bytes
        hit_us: f64 = 60.0, from "assumed: command and memory of a SAS controller";
        /// time for which each command occupies the controller, which works on one command at a time
        command_us: f64 = 10.0, from "assumed: order of 100,000 commands a second of a controller of the time";
        /// rate of the path of the controller between host, memory and disks, which serves one transfer at a time
        rate_mb_s: f64 = 1_800.0,
            from "Exadata technical overview 2013: 1.8 GB/s of a cell's 12 disks, less than the disks' sum";
        /// number of writes at once to each device below
        destages: u64 = 16, from "chosen: what tagged queueing makes use of", in 1.0..=1e6;
        /// size of the longest write to a device below
        destage_kb: u64 = 256, from "chosen", in 1.0..=1e6;
        /// filled part of the memory at which writing dirty lines to disk begins; 0: at once
        start_ratio: f64 = 0.8, from "manual of another controller (MD3000i), as an example: start at 80 %";
        /// filled part of the memory at which writing dirty lines stops
        stop_ratio: f64 = 0.16, from "the same example: stop at 16 %";
        /// interval at which all dirty lines are written to disk; 0: never
        flush_s: f64 = 4.0, from "MegaRAID: cache flush interval, 4 s by default, from memory";
        /// true if a line that is being written to disk cannot be changed until the write is complete
        locks: bool = true, from "a buffer that is being transferred must not change; Linux: stable pages";
        /// true if the controller has a battery; without one, every write goes through to the device
        battery: bool = true, from "X2 to X4: yes";
        /// interval between two learn cycles of the battery; 0: never
        learn_every_s: f64 = 0.0, from "cells: four times a year; 0 here", in 0.0..=1e7;
        /// length of a learn cycle
        learn_s: f64 = 0.0, from "cells: 1 to 12 hours (Oracle's manual)", in 0.0..=1e7;
    }
}
