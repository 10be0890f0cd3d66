//! Outcome of a round trip, and of an attempt to run a script.

use crate::wire::{ServerError, WireError};

/// How an attempt to run a script ended; `code` is the number of the failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The script ran to its end.
    Well,
    /// The server reported an error.
    ///
    /// `retry` is true if a repetition could succeed; `expected` is true if the error counts as a normal outcome.
    Failed { code: u8, retry: bool, expected: bool },
    /// The connection was lost.
    Lost { code: u8 },
    /// The attempt was interrupted by a request to stop, and does not count as an observation.
    Cut,
}

/// Result of one round trip: the number of rows, an error from the server, or a failure of the connection.
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
