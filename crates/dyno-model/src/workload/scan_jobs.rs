//! Workload of jobs that scan: published experiments E12 and E22.

use super::{dice, think};
use crate::database::{CallKind, Instance, Scan, Session};
use crate::device::parameters;
use crate::kernel::Stream;
use crate::kernel::sample::whole_ns;

parameters! {
    /// Scans, one after the other; each session is a job.
    pub struct ScanJobs {
        /// size of a scan
        bytes: u64 = 64 << 20, from "chosen", in 1.0..=1e12;
        /// size of an I/O
        io_bytes: u64 = 1 << 20, from "E22: 1 MB", in 512.0..=1e9;
        /// number of I/Os of a job at once
        ahead: u64 = 1, from "E22: 1; direct reads of Oracle begin with 2", in 1.0..=1_024.0;
        /// true if all jobs scan the same bytes
        shared: bool = false, from "E22: each its own";
        /// true if scans go through the buffers
        buffered: bool = false, from "Oracle: large tables are read past them";
        /// CPU time for each I/O
        cpu_us_per_io: f64 = 1_000.0, from "assumed: rows of 1 MB at 1 GB/s";
        /// mean think time between scans, exponentially distributed
        think_ms: f64 = 0.0, from "E22: none";
    }
}

impl ScanJobs {
    pub(super) fn work(&self, instance: &Instance, session: u32) -> Work {
        let block_bytes = instance.parameters().buffers.block_bytes;
        Work { think: dice(instance, session, "think"), load: self.clone(), block_bytes }
    }
}

pub(super) struct Work {
    load: ScanJobs,
    think: Stream,
    block_bytes: u64,
}

impl Work {
    pub async fn transaction(&mut self, session: &mut Session) {
        think(session, self.load.think_ms, &mut self.think).await;
        let all = session.open(CallKind::Transaction, 0);
        let fetch = session.open(CallKind::Fetch, 1);
        let ScanJobs { bytes, io_bytes, ahead, shared, buffered, cpu_us_per_io, .. } = self.load;
        let number = if shared { 0 } else { u64::from(session.number()) };
        if buffered {
            let blocks = bytes.div_ceil(self.block_bytes);
            session.scan_blocks(number * blocks..(number + 1) * blocks).await;
        } else {
            let cpu_ns_per_io = whole_ns(cpu_us_per_io * 1e3);
            let offset_bytes = number * bytes;
            session.scan(&Scan { offset_bytes, bytes, io_bytes, ahead, cpu_ns_per_io }).await;
        }
        session.close(&fetch, 0);
        session.close(&all, 0);
    }
}
