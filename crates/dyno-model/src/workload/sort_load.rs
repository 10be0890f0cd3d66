//! Workload of sorts through temporary space: published experiment E14.

use super::{dice, think};
use crate::database::{CallKind, Instance, ParameterError, Session, Sort};
use crate::device::parameters;
use crate::kernel::Stream;
use crate::kernel::sample::whole_ns;

parameters! {
    /// Sorts, one after the other.
    pub struct SortLoad {
        /// size of the rows to sort
        bytes: u64 = 64 << 20, from "chosen", in 1.0..=1e12;
        /// memory for a sort
        area_kb: u64 = 2_048, from "E14: the factor", in 1.0..=1e9;
        /// size of an I/O
        io_kb: u64 = 64, from "assumed: 8 blocks of 8 KB", in 1.0..=1e6;
        /// number of I/Os at once, in each direction
        ahead: u64 = 1, from "chosen: one after the other", in 1.0..=1_024.0;
        /// CPU time for each KB, in each phase
        cpu_us_per_kb: f64 = 10.0, from "assumed: 100 MB/s a core";
        /// mean think time between sorts, exponentially distributed
        think_ms: f64 = 0.0, from "E14: none";
    }
}

/// Largest number of runs of a sort, each of which takes memory.
const RUNS_MOST: u64 = 1_000_000;

impl SortLoad {
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
