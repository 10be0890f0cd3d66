//! Workload of transactions that make redo and commit: published experiments E5 to E10.

use super::sizes::Sizes;
use super::{dice, think};
use crate::database::{CallKind, Instance, ParameterError, Session};
use crate::device::parameters;
use crate::kernel::Stream;
use crate::kernel::sample::whole_ns;

parameters! {
    /// A loop of commits.
    pub struct CommitLoop {
        /// size of the redo of a transaction: a size (512), a range (4KiB..12MiB) or a list (4KiB,1MiB)
        redo_bytes: String = "512".into(), from "E9: one row";
        /// size of the pieces in which redo is made
        piece_bytes: u64 = 8_192, from "as in the live redo-size", in 1.0..=1e9;
        /// rate at which a session makes redo
        redo_mb_s: f64 = 50.0, from "assumed: row changes of a core";
        /// median CPU time of a transaction, without that of its redo
        cpu_us: f64 = 100.0, from "assumed: one update by key";
        /// spread of the CPU time: standard deviation of its natural logarithm
        cpu_sigma: f64 = 0.3, from "assumed", in 0.0..=5.0;
        /// mean think time between transactions, exponentially distributed
        think_ms: f64 = 0.0, from "E9: none";
    }
}

impl CommitLoop {
    pub(super) fn check(&self) -> Result<(), ParameterError> {
        Sizes::parse("redo_bytes", &self.redo_bytes).map(|_| ())
    }

    pub(super) fn work(&self, instance: &Instance, session: u32) -> Result<Work, ParameterError> {
        Ok(Work {
            sizes: Sizes::parse("redo_bytes", &self.redo_bytes)?,
            think: dice(instance, session, "think"),
            cpu: dice(instance, session, "cpu"),
            size: dice(instance, session, "redo"),
            piece_ns: whole_ns(self.piece_bytes as f64 / self.redo_mb_s * 1e3),
            load: self.clone(),
        })
    }
}

pub(super) struct Work {
    load: CommitLoop,
    sizes: Sizes,
    think: Stream,
    cpu: Stream,
    size: Stream,
    piece_ns: u64,
}

impl Work {
    pub async fn transaction(&mut self, session: &mut Session) {
        think(session, self.load.think_ms, &mut self.think).await;
        let all = session.open(CallKind::Transaction, 0);
        super::compute(session, self.load.cpu_us, self.load.cpu_sigma, &mut self.cpu).await;
        let bytes = self.sizes.draw(&mut self.size);
        session.change(bytes, self.load.piece_bytes, self.piece_ns).await;
        session.commit(1).await;
        session.close(&all, 1);
    }
}
