//! Outcome of a round trip, and of an attempt to run a script.

use crate::wire::{ServerError, WireError};

/// How an attempt ended; `code` is the number of the failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It ran to its end.
    Well,
    /// The server reported an error.
    ///
    /// `retry` is true if a repetition may succeed, `expected` if the error counts as a normal outcome.
    Failed { code: u8, retry: bool, expected: bool },
    /// The connection was lost.
    Lost { code: u8 },
    /// It was interrupted by a request to stop, and is no observation.
    Cut,
}

/// Result of one round trip: the number of rows, an error of the server, or a failed connection.
pub type Reply = Result<Result<i64, Box<ServerError>>, WireError>;

impl Ended {
    /// Returns the number of the failure; 0 for none.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Well | Self::Cut => 0,
            Self::Failed { code, .. } | Self::Lost { code } => code,
        }
    }
}
