//! What a session keeps between its turns: connection, variables, random numbers, place in the log.

use dyno_script::{Rng, Scope, Value, VarId};

use crate::link::Link;
use crate::plan::ArmPlan;

/// What a session of an arm keeps from slice to slice and from block to block.
#[derive(Debug)]
pub struct SessionState {
    /// Number of the session in its arm.
    pub number: u16,
    /// The connection, if there is one.
    pub link: Option<Link>,
    pub(crate) scope: Scope,
    pub(crate) rng: Rng,
    pub(crate) choice: Rng,
    /// Per command: the variables that its columns go to.
    pub(crate) columns: Vec<Vec<Option<VarId>>>,
    pub(crate) redo: LogPosition,
}

/// Where the write-ahead log was when this session last looked.
#[derive(Debug, Default)]
pub struct LogPosition {
    /// Insert position at the last `\redo`.
    pub previous: Option<i64>,
    /// Redo since the reading before, and redo not flushed: for the next commit.
    pub pending: Option<(i64, i64)>,
}

impl SessionState {
    /// A session before its first connection.
    pub fn new(number: u16, arm: &ArmPlan, rng: Rng, choice: Rng) -> Self {
        let mut scope = arm.scope.clone();
        scope.set(arm.client_id, Value::Int(number.into()));
        let (columns, redo) = (Vec::new(), LogPosition::default());
        Self { number, link: None, scope, rng, choice, columns, redo }
    }
}
