//! Jobs that scan: E12 and E22.

use serde::{Deserialize, Serialize};

use super::{dice, think};
use crate::database::{CallKind, Instance, Scan, Session};
use crate::device::{Parameter, parameter};
use crate::kernel::Stream;
use crate::kernel::sample::whole_ns;

/// Scans, one after the other; each session is a job.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScanJobs {
    /// What a scan reads.
    pub bytes: u64,
    /// One I/O.
    pub io_bytes: u64,
    /// I/Os of a job at once.
    pub ahead: u64,
    /// Do all jobs scan the same bytes? Otherwise each its own.
    pub shared: bool,
    /// Through the buffers? Otherwise past them.
    pub buffered: bool,
    /// CPU for each I/O.
    pub cpu_us_per_io: f64,
    /// Mean time between scans.
    pub think_ms: f64,
}

impl ScanJobs {
    /// Meaning and source of each.
    pub const TABLE: [Parameter; 7] = [
        parameter("bytes", "what a scan reads", "chosen").within(1.0, 1e12),
        parameter("io_bytes", "one I/O", "E22: 1 MB").within(512.0, 1e9),
        parameter("ahead", "I/Os of a job at once", "E22: 1; direct reads of Oracle begin with 2").within(1.0, 1_024.0),
        parameter("shared", "do all jobs scan the same bytes", "E22: each its own"),
        parameter("buffered", "through the buffers", "Oracle: large tables are read past them"),
        parameter("cpu_us_per_io", "CPU for each I/O", "assumed: rows of 1 MB at 1 GB/s"),
        parameter("think_ms", "mean time between scans, exponential", "E22: none"),
    ];

    pub(super) fn work(&self, instance: &Instance, session: u32) -> Work {
        let block_bytes = instance.parameters().buffers.block_bytes;
        Work { think: dice(instance, session, "think"), load: self.clone(), block_bytes }
    }
}

impl Default for ScanJobs {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            io_bytes: 1 << 20,
            ahead: 1,
            shared: false,
            buffered: false,
            cpu_us_per_io: 1_000.0,
            think_ms: 0.0,
        }
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
