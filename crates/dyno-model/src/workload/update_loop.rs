//! Workload of updates of random blocks, with a commit after some of them: published experiment E11.

use std::rc::Rc;

use super::{dice, think};
use crate::database::{CallKind, Instance, Session};
use crate::device::parameters;
use crate::kernel::Stream;
use crate::kernel::zipf::Zipf;

parameters! {
    /// A loop of updates.
    pub struct UpdateLoop {
        /// number of blocks of the table
        blocks: u64 = 1_000_000, from "chosen: larger than the buffer cache", in 1.0..=4_294_967_295.0;
        /// popularity of block i (from 1) is proportional to i ^ -skew
        skew: f64 = 0.0, from "chosen: 0, even", in 0.0..=10.0;
        /// number of blocks changed by a transaction
        blocks_per_commit: u64 = 1, from "chosen", in 1.0..=1e6;
        /// size of the redo of one change, in bytes
        redo_per_block: u64 = 512, from "assumed: one row and its undo", in 1.0..=16_384.0;
        /// median CPU time of one change
        cpu_us: f64 = 100.0, from "assumed: one update by key";
        /// spread of the CPU time: standard deviation of its natural logarithm
        cpu_sigma: f64 = 0.3, from "assumed", in 0.0..=5.0;
        /// mean think time between transactions, exponentially distributed
        think_ms: f64 = 0.0, from "E11: none";
    }
}

impl UpdateLoop {
    pub(super) fn work(&self, instance: &Instance, session: u32, zipf: Option<Rc<Zipf>>) -> Work {
        Work {
            zipf,
            think: dice(instance, session, "think"),
            cpu: dice(instance, session, "cpu"),
            blocks: dice(instance, session, "blocks"),
            load: self.clone(),
        }
    }
}

pub(super) struct Work {
    load: UpdateLoop,
    zipf: Option<Rc<Zipf>>,
    think: Stream,
    cpu: Stream,
    blocks: Stream,
}

impl Work {
    pub async fn transaction(&mut self, session: &mut Session) {
        think(session, self.load.think_ms, &mut self.think).await;
        let all = session.open(CallKind::Transaction, 0);
        let rows = self.load.blocks_per_commit;
        for _ in 0..rows {
            let exec = session.open(CallKind::Exec, 1);
            super::compute(session, self.load.cpu_us, self.load.cpu_sigma, &mut self.cpu).await;
            let block = super::block(self.load.blocks, self.zipf.as_deref(), &mut self.blocks);
            session.update(block, self.load.redo_per_block).await;
            session.close(&exec, 1);
        }
        session.commit(2).await;
        session.close(&all, rows);
    }
}
