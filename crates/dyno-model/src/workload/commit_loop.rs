//! Transactions that make redo and commit: E5 to E10.

use serde::{Deserialize, Serialize};

use super::sizes::Sizes;
use super::{dice, think};
use crate::database::{CallKind, Instance, ParameterError, Session};
use crate::device::{Parameter, parameter};
use crate::kernel::Stream;
use crate::kernel::sample::whole_ns;

/// A loop of commits.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommitLoop {
    /// Redo of a transaction: a size, a range or a list.
    pub redo_bytes: String,
    /// Redo is made in pieces of this size.
    pub piece_bytes: u64,
    /// How fast a session makes redo.
    pub redo_mb_s: f64,
    /// CPU of a transaction, redo not counted: median.
    pub cpu_us: f64,
    /// Spread of it.
    pub cpu_sigma: f64,
    /// Mean time between transactions.
    pub think_ms: f64,
}

impl CommitLoop {
    /// Meaning and source of each.
    pub const TABLE: [Parameter; 6] = [
        parameter("redo_bytes", "redo of a transaction: 512, 4KiB..12MiB or 4KiB,1MiB", "E9: one row"),
        parameter("piece_bytes", "redo is made in pieces of this size", "as in the live redo-size").within(1.0, 1e9),
        parameter("redo_mb_s", "how fast a session makes redo", "assumed: row changes of a core"),
        parameter("cpu_us", "CPU of a transaction, redo not counted; median", "assumed: one update by key"),
        parameter("cpu_sigma", "spread of it: of the natural logarithm", "assumed").within(0.0, 5.0),
        parameter("think_ms", "mean time between transactions, exponential", "E9: none"),
    ];

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

impl Default for CommitLoop {
    fn default() -> Self {
        Self {
            redo_bytes: "512".into(),
            piece_bytes: 8_192,
            redo_mb_s: 50.0,
            cpu_us: 100.0,
            cpu_sigma: 0.3,
            think_ms: 0.0,
        }
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
        let cpu_ns = super::cpu_ns(self.load.cpu_us, self.load.cpu_sigma, &mut self.cpu);
        session.compute(cpu_ns).await;
        let bytes = self.sizes.draw(&mut self.size);
        session.change(bytes, self.load.piece_bytes, self.piece_ns).await;
        session.commit(1).await;
        session.close(&all, 1);
    }
}
