//! Rows by key, through an index: E13.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::{dice, think};
use crate::database::{CallKind, Instance, ParameterError, Session};
use crate::device::{Parameter, parameter};
use crate::kernel::Stream;
use crate::kernel::zipf::Zipf;

/// A loop of lookups. The table lies from block 0 on, the leaves of the index behind it, then its
/// branches.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeyLookup {
    /// Keys.
    pub keys: u64,
    /// How unevenly they are asked for.
    pub skew: f64,
    /// Rows of a block of the table.
    pub rows_per_block: u64,
    /// Keys of a block of the index.
    pub keys_per_leaf: u64,
    /// CPU of a lookup, its blocks not counted: median.
    pub cpu_us: f64,
    /// Spread of it.
    pub cpu_sigma: f64,
    /// Mean time between lookups.
    pub think_ms: f64,
}

impl KeyLookup {
    /// Meaning and source of each.
    pub const TABLE: [Parameter; 7] = [
        parameter("keys", "keys", "E13: 1,000,000").within(1.0, 4_294_967_295.0),
        parameter("skew", "popularity of key i is in proportion to i ^ -skew", "E13: 0, even").within(0.0, 10.0),
        parameter("rows_per_block", "rows of a block of the table", "assumed: rows of 100 bytes").within(1.0, 1e6),
        parameter("keys_per_leaf", "keys of a block of the index", "assumed: entries of 16 bytes").within(2.0, 1e6),
        parameter("cpu_us", "CPU of a lookup, blocks not counted; median", "assumed: order of size"),
        parameter("cpu_sigma", "spread of it: of the natural logarithm", "assumed").within(0.0, 5.0),
        parameter("think_ms", "mean time between lookups, exponential", "E13: none"),
    ];

    pub(super) fn check(&self) -> Result<(), ParameterError> {
        super::check_popularity("keys", self.keys, self.skew)
    }

    pub(super) fn popularity(&self) -> Option<Rc<Zipf>> {
        (self.skew > 0.0).then(|| Rc::new(Zipf::new(self.keys as u32, self.skew)))
    }

    pub(super) fn work(&self, instance: &Instance, session: u32, zipf: Option<Rc<Zipf>>) -> Work {
        Work {
            zipf,
            think: dice(instance, session, "think"),
            cpu: dice(instance, session, "cpu"),
            keys: dice(instance, session, "keys"),
            load: self.clone(),
        }
    }
}

impl Default for KeyLookup {
    fn default() -> Self {
        Self {
            keys: 1_000_000,
            skew: 0.0,
            rows_per_block: 70,
            keys_per_leaf: 450,
            cpu_us: 30.0,
            cpu_sigma: 0.3,
            think_ms: 0.0,
        }
    }
}

pub(super) struct Work {
    load: KeyLookup,
    zipf: Option<Rc<Zipf>>,
    think: Stream,
    cpu: Stream,
    keys: Stream,
}

impl Work {
    pub async fn transaction(&mut self, session: &mut Session) {
        think(session, self.load.think_ms, &mut self.think).await;
        let all = session.open(CallKind::Transaction, 0);
        let fetch = session.open(CallKind::Fetch, 1);
        let cpu_ns = super::cpu_ns(self.load.cpu_us, self.load.cpu_sigma, &mut self.cpu);
        session.compute(cpu_ns).await;
        let KeyLookup { keys, rows_per_block, keys_per_leaf, .. } = self.load;
        let key = super::block(keys, self.zipf.as_deref(), &mut self.keys);
        // From the root down: the levels lie behind the table, the leaves first.
        let table_blocks = keys.div_ceil(rows_per_block);
        let mut levels = Vec::new();
        let (mut first, mut blocks, mut at) = (table_blocks, keys, key);
        while blocks > 1 {
            (blocks, at) = (blocks.div_ceil(keys_per_leaf), at / keys_per_leaf);
            levels.push(first + at);
            first += blocks;
        }
        for &block in levels.iter().rev() {
            session.get(block).await;
        }
        // Rows do not lie in the order of their keys.
        session.get(super::scatter(key, keys) / rows_per_block).await;
        session.close(&fetch, 1);
        session.close(&all, 1);
    }
}
