//! Specification of a run.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::workload::Workload;

/// A run: arms on one machine, each with its settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Machine as TOML.
    pub machine: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Number of transactions of each session in each arm and block.
    pub transactions: u64,
    /// Number of transactions of each session in the warm-up, which are not counted.
    #[serde(default)]
    pub warmup_transactions: u64,
    /// Arms in the order of their turns.
    pub arms: Vec<Arm>,
}

/// One arm.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Name of the arm.
    pub name: String,
    /// Parameters that differ from the machine's: dotted path or short name, and value as text.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Number of sessions.
    pub sessions: u32,
    /// Number of transactions of each session in the warm-up, if this number differs from that of the run.
    #[serde(default)]
    pub warmup_transactions: Option<u64>,
    /// Workload of the sessions.
    pub workload: Workload,
}
