//! State of a session between its slices: connection, variables, random streams, and position in the write-ahead log.

use dyno_script::{Rng, Scope, Value, VarId};

use crate::link::Link;
use crate::plan::ArmPlan;

/// State that a session of an arm keeps from slice to slice and from block to block.
#[derive(Debug)]
pub struct SessionState {
    /// Session number within its arm.
    pub number: u16,
    /// Connection of the session; `None` if it is not connected.
    pub link: Option<Link>,
    pub(crate) scope: Scope,
    pub(crate) rng: Rng,
    pub(crate) choice: Rng,
    /// For each command, the variables that receive its result columns.
    pub(crate) columns: Vec<Vec<Option<VarId>>>,
    pub(crate) redo: LogPosition,
}

/// Position in the write-ahead log when this session last read it.
#[derive(Debug, Default)]
pub struct LogPosition {
    /// Insert position at the last `\redo` [bytes].
    pub previous: Option<i64>,
    /// Redo since the previous reading, and redo that is not yet flushed [bytes]; they go into the next commit's row.
    pub pending: Option<(i64, i64)>,
}

impl SessionState {
    /// Returns the state of a session before its first connection.
    pub fn new(number: u16, arm: &ArmPlan, rng: Rng, choice: Rng) -> Self {
        let mut scope = arm.scope.clone();
        scope.set(arm.client_id, Value::Int(number.into()));
        let (columns, redo) = (Vec::new(), LogPosition::default());
        Self { number, link: None, scope, rng, choice, columns, redo }
    }
}
