//! Sorts through temporary space: E14.

use serde::{Deserialize, Serialize};

use super::{dice, think};
use crate::database::{CallKind, Instance, ParameterError, Session, Sort};
use crate::device::{Parameter, parameter};
use crate::kernel::Stream;
use crate::kernel::sample::whole_ns;

/// Sorts, one after the other.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct SortLoad {
    /// Rows to sort.
    pub bytes: u64,
    /// Memory for it.
    pub area_kb: u64,
    /// One I/O.
    pub io_kb: u64,
    /// I/Os at once, each way.
    pub ahead: u64,
    /// CPU for each KB, in each phase.
    pub cpu_us_per_kb: f64,
    /// Mean time between sorts.
    pub think_ms: f64,
}

/// Runs of a sort, each of which takes memory.
const RUNS_MOST: u64 = 1_000_000;

impl SortLoad {
    /// Meaning and source of each.
    pub const TABLE: [Parameter; 6] = [
        parameter("bytes", "rows to sort", "chosen").within(1.0, 1e12),
        parameter("area_kb", "memory for it", "E14: the factor").within(1.0, 1e9),
        parameter("io_kb", "one I/O", "assumed: 8 blocks of 8 KB").within(1.0, 1e6),
        parameter("ahead", "I/Os at once, each way", "chosen: one after the other").within(1.0, 1_024.0),
        parameter("cpu_us_per_kb", "CPU for each KB, in each phase", "assumed: 100 MB/s a core"),
        parameter("think_ms", "mean time between sorts, exponential", "E14: none"),
    ];

    pub(super) fn check(&self) -> Result<(), ParameterError> {
        let runs = self.bytes / (self.area_kb << 10);
        if runs > RUNS_MOST {
            let allowed = format!("{RUNS_MOST} times area_kb or less: each area is a run on temporary space");
            return Err(super::wrong("bytes", self.bytes, allowed));
        }
        Ok(())
    }

    pub(super) fn work(&self, instance: &Instance, session: u32) -> Work {
        let sort = Sort {
            bytes: self.bytes,
            area_bytes: self.area_kb << 10,
            io_bytes: self.io_kb << 10,
            ahead: self.ahead,
            cpu_ns_per_kb: whole_ns(self.cpu_us_per_kb * 1e3),
        };
        Work { think: dice(instance, session, "think"), think_ms: self.think_ms, sort }
    }
}

impl Default for SortLoad {
    fn default() -> Self {
        Self { bytes: 64 << 20, area_kb: 2_048, io_kb: 64, ahead: 1, cpu_us_per_kb: 10.0, think_ms: 0.0 }
    }
}

pub(super) struct Work {
    think: Stream,
    think_ms: f64,
    sort: Sort,
}

impl Work {
    pub async fn transaction(&mut self, session: &mut Session) {
        think(session, self.think_ms, &mut self.think).await;
        let all = session.open(CallKind::Transaction, 0);
        let exec = session.open(CallKind::Exec, 1);
        session.sort(&self.sort).await;
        session.close(&exec, 0);
        session.close(&all, 0);
    }
}
