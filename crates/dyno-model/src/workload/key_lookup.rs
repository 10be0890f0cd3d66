//! Workload that looks up rows by key through an index: published experiment E13.

use std::rc::Rc;

use super::{dice, think};
use crate::database::{CallKind, Instance, Session};
use crate::device::parameters;
use crate::kernel::Stream;
use crate::kernel::zipf::Zipf;

parameters! {
    /// A loop of lookups. The table begins at block 0, the leaves of the index follow it, then its branches.
    pub struct KeyLookup {
        /// number of keys
        keys: u64 = 1_000_000, from "E13: 1,000,000", in 1.0..=4_294_967_295.0;
        /// popularity of key i (from 1) is proportional to i ^ -skew
        skew: f64 = 0.0, from "E13: 0, even", in 0.0..=10.0;
        /// rows per block of the table
        rows_per_block: u64 = 70, from "assumed: rows of 100 bytes", in 1.0..=1e6;
        /// keys per block of the index
        keys_per_leaf: u64 = 450, from "assumed: entries of 16 bytes", in 2.0..=1e9;
        /// median CPU time of a lookup, without that of getting its blocks
        cpu_us: f64 = 30.0, from "assumed: order of size";
        /// spread of the CPU time: standard deviation of its natural logarithm
        cpu_sigma: f64 = 0.3, from "assumed", in 0.0..=5.0;
        /// mean think time between lookups, exponentially distributed
        think_ms: f64 = 0.0, from "E13: none";
    }
}

impl KeyLookup {
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
        super::compute(session, self.load.cpu_us, self.load.cpu_sigma, &mut self.cpu).await;
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
