//! What comes back from the server, and how an attempt ended by it.

use crate::wire::{ServerError, WireError};

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Complete.
    Well,
    /// The server refused; `retry` where the same again may succeed, `expected` where it is an
    /// outcome like any other.
    Failed { code: u8, retry: bool, expected: bool },
    /// The connection is gone.
    Lost { code: u8 },
    /// We were told to stop: not an observation.
    Cut,
}

/// What came back from one round trip.
pub type Reply = Result<Result<i64, Box<ServerError>>, WireError>;

impl Ended {
    /// Number of the error code; 0 is none.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Well | Self::Cut => 0,
            Self::Failed { code, .. } | Self::Lost { code } => code,
        }
    }
}
