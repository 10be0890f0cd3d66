//! Updates of random blocks, a commit after some of them: E11.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::{dice, think};
use crate::database::{CallKind, Instance, ParameterError, Session};
use crate::device::{Parameter, parameter};
use crate::kernel::Stream;
use crate::kernel::zipf::Zipf;

/// A loop of updates.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct UpdateLoop {
    /// Blocks of the table.
    pub blocks: u64,
    /// How unevenly they are asked for.
    pub skew: f64,
    /// Blocks changed by a transaction.
    pub blocks_per_commit: u64,
    /// Redo of one change.
    pub redo_per_block: u64,
    /// CPU of one change: median.
    pub cpu_us: f64,
    /// Spread of it.
    pub cpu_sigma: f64,
    /// Mean time between transactions.
    pub think_ms: f64,
}

impl UpdateLoop {
    /// Meaning and source of each.
    pub const TABLE: [Parameter; 7] = [
        parameter("blocks", "blocks of the table", "chosen: larger than the buffer cache").within(1.0, 4_294_967_295.0),
        parameter("skew", "popularity of block i is in proportion to i ^ -skew", "chosen: 0, even").within(0.0, 10.0),
        parameter("blocks_per_commit", "blocks changed by a transaction", "chosen").within(1.0, 1e6),
        parameter("redo_per_block", "redo of one change", "assumed: one row and its undo").within(1.0, 16_384.0),
        parameter("cpu_us", "CPU of one change; median", "assumed: one update by key"),
        parameter("cpu_sigma", "spread of it: of the natural logarithm", "assumed").within(0.0, 5.0),
        parameter("think_ms", "mean time between transactions, exponential", "E11: none"),
    ];

    pub(super) fn check(&self) -> Result<(), ParameterError> {
        super::check_popularity("blocks", self.blocks, self.skew)
    }

    pub(super) fn popularity(&self) -> Option<Rc<Zipf>> {
        (self.skew > 0.0).then(|| Rc::new(Zipf::new(self.blocks as u32, self.skew)))
    }

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

impl Default for UpdateLoop {
    fn default() -> Self {
        Self {
            blocks: 1_000_000,
            skew: 0.0,
            blocks_per_commit: 1,
            redo_per_block: 512,
            cpu_us: 100.0,
            cpu_sigma: 0.3,
            think_ms: 0.0,
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
            let cpu_ns = super::cpu_ns(self.load.cpu_us, self.load.cpu_sigma, &mut self.cpu);
            session.compute(cpu_ns).await;
            let block = super::block(self.load.blocks, self.zipf.as_deref(), &mut self.blocks);
            session.update(block, self.load.redo_per_block).await;
            session.close(&exec, 1);
        }
        session.commit(2).await;
        session.close(&all, rows);
    }
}
