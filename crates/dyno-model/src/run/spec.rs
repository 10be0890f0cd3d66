//! What a run is asked to do.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::workload::Workload;

/// A run: arms on one machine, each with its settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The machine, as TOML.
    pub machine: String,
    /// Where all random numbers come from.
    pub seed: u64,
    /// Transactions of each session in each arm and block.
    pub transactions: u64,
    /// Transactions of each session before these, which are not counted.
    #[serde(default)]
    pub warmup_transactions: u64,
    /// The arms, in the order of their turns.
    pub arms: Vec<Arm>,
}

/// One arm.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Its name.
    pub name: String,
    /// Parameters of the machine that differ: dotted path or short name, and value as text.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Sessions.
    pub sessions: u32,
    /// Transactions that are not counted, where it is another number than the run's.
    #[serde(default)]
    pub warmup_transactions: Option<u64>,
    /// What they do.
    pub workload: Workload,
}
