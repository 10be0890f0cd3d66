//! Load of a `PostgreSQL` server as numbers: sessions that repeat scripts.
//!
//! A script is a list of steps, each a round trip. A step names its statement, which has the costs. It also names the
//! row to lock, and the sizes of the log that it inserts, one of which is drawn.

use serde::{Deserialize, Serialize};

/// Sessions, and the scripts that they repeat.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Number of sessions.
    pub sessions: u32,
    /// Number of transactions after the warm-up, over all sessions, at which the run ends.
    pub transactions: u64,
    /// Number of transactions of the warm-up, over all sessions.
    pub warmup: u64,
    /// Maximum virtual time of a run [s].
    pub limit_s: f64,
    /// Scripts, one of which is drawn for each transaction; empty for the machine's own scripts.
    #[serde(default)]
    pub scripts: Vec<Script>,
}

/// Script of a load.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Weight of the script when scripts are drawn.
    pub weight: u64,
    /// Round trips of the script.
    pub steps: Vec<Step>,
}

/// Step of a script: one round trip.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Index of the step's statement.
    pub statement: usize,
    /// Sizes of the log that the step inserts, one of which is drawn [bytes]; empty for the statement's own size.
    #[serde(default)]
    pub wal_bytes: Vec<u64>,
    /// Row that the step locks until the end of the transaction.
    #[serde(default)]
    pub lock: Option<Lock>,
    /// True if the step ends the transaction.
    #[serde(default)]
    pub commits: bool,
    /// Pause of the client before the round trip [us].
    #[serde(default)]
    pub pause_us: f64,
}

/// A row that is drawn and locked.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// Table number.
    pub table: u32,
    /// Row numbers that the script drew; one of these is drawn, so that frequent rows are locked often.
    pub rows: Vec<u64>,
}

impl Load {
    /// Checks the load against the number of statements with costs.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn check(&self, statements: usize) -> Result<(), String> {
        if self.sessions == 0 || self.sessions > u32::from(u16::MAX) {
            return Err(format!("1 to {} sessions", u16::MAX));
        }
        if self.transactions == 0 || !(self.limit_s > 0.0 && self.limit_s <= 1e6) {
            return Err("a load must have at least one transaction, and a limit of at most 1,000,000 s".into());
        }
        if self.scripts.iter().map(|script| script.weight).sum::<u64>() == 0 {
            return Err("a load must have a script".into());
        }
        for step in self.scripts.iter().flat_map(|script| &script.steps) {
            step.check(statements)?;
        }
        if self.scripts.iter().any(|script| script.steps.is_empty()) {
            return Err("a script must have at least one statement".into());
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
            return Err("a pause must be from 0 to one hour".into());
        }
        if self.lock.as_ref().is_some_and(|lock| lock.rows.is_empty()) {
            return Err("a lock must be of one row or more".into());
        }
        Ok(())
    }
}
