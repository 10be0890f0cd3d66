//! Load of a `PostgreSQL` server: sessions that repeat scripts, as numbers.
//!
//! A script is a list of steps, each a round trip. Which statement a step is says what it costs; which rows it locks,
//! and how much log it inserts, were drawn by the script itself and are in the step.

use serde::{Deserialize, Serialize};

/// Sessions, and what they repeat.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Number of sessions.
    pub sessions: u32,
    /// Transactions after the warm-up, of all sessions together, after which the run ends.
    pub transactions: u64,
    /// Transactions of the warm-up, of all sessions together.
    pub warmup: u64,
    /// Virtual time after which a run ends in any case [s].
    pub limit_s: f64,
    /// Scripts, one of which is drawn for each transaction; empty: those of the machine.
    #[serde(default)]
    pub scripts: Vec<Script>,
}

/// One of the scripts.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Its share among all.
    pub weight: u64,
    /// Its round trips.
    pub steps: Vec<Step>,
}

/// A round trip.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Number of its statement.
    pub statement: usize,
    /// Sizes of the log that it inserts, one of which is drawn [bytes]; empty: the statement's own.
    #[serde(default)]
    pub wal_bytes: Vec<u64>,
    /// Row that it locks until the end of the transaction.
    #[serde(default)]
    pub lock: Option<Lock>,
    /// True if the transaction ends with it.
    #[serde(default)]
    pub commits: bool,
    /// Pause of the client before it [us].
    #[serde(default)]
    pub pause_us: f64,
}

/// Row that is drawn and locked.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// Number of the table.
    pub table: u32,
    /// Rows as the script drew them: one is drawn of these, so that what is there often is locked often.
    pub rows: Vec<u64>,
}

impl Load {
    /// Checks the load against the number of statements that have costs.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn check(&self, statements: usize) -> Result<(), String> {
        if self.sessions == 0 || self.sessions > u32::from(u16::MAX) {
            return Err(format!("1 to {} sessions", u16::MAX));
        }
        if self.transactions == 0 || !(self.limit_s > 0.0 && self.limit_s <= 1e6) {
            return Err("a load has a transaction or more, and a limit of up to 1,000,000 s".into());
        }
        if self.scripts.iter().map(|script| script.weight).sum::<u64>() == 0 {
            return Err("a load has a script".into());
        }
        for step in self.scripts.iter().flat_map(|script| &script.steps) {
            step.check(statements)?;
        }
        if self.scripts.iter().any(|script| script.steps.is_empty()) {
            return Err("a script has a statement or more".into());
        }
        Ok(())
    }
}

impl Step {
    fn check(&self, statements: usize) -> Result<(), String> {
        if self.statement >= statements {
            return Err(format!("statement {} of {statements}", self.statement));
        }
        if !(0.0..=3.6e9).contains(&self.pause_us) {
            return Err("a pause is from 0 to an hour".into());
        }
        if self.lock.as_ref().is_some_and(|lock| lock.rows.is_empty()) {
            return Err("a lock is of one row or more".into());
        }
        Ok(())
    }
}
