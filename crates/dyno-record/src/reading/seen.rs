//! Findings of looks, as the looking thread passes them on.

use super::stretches::Stretch;

/// What a look found out about a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A process was found.
    Begin {
        /// Process id of the backend.
        pid: i32,
        /// Event that the backend waits for.
        event: u32,
        /// True if the process did not exist at the first look.
        is_new: bool,
    },
    /// The backend waits for a different event.
    Wait {
        /// The event, 0 for none.
        event: u32,
        /// The wait that has ended.
        before: Before,
    },
    /// The backend's status has changed.
    Status(Status),
    /// Nothing is known of the backend since this time [ns], at which it was still in this wait.
    Unseen(u64, Before),
    /// The process has ended.
    End,
}

/// A wait that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Number of looks that found the wait.
    pub looks: u64,
    /// Largest error of the wait's length [ns].
    pub within_ns: u64,
    /// Process that held the awaited resource; 0 if unknown.
    pub holder: i32,
}

/// Status of a session, from its entry in the status array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// True if the session is executing a statement.
    pub is_running: bool,
    /// State number, which depends on the version.
    pub state: u32,
    /// Start of the state [us since 2000]; 0 for none.
    pub state_us: i64,
    /// Start of the statement [us since 2000]; 0 for none.
    pub statement_us: i64,
    /// Start of the transaction [us since 2000]; 0 for none.
    pub xact_us: i64,
    /// Query id; 0 for none.
    pub query_id: u64,
    /// Text of the statement, if it differs from the previous one.
    pub text: Option<Vec<u8>>,
}

/// A change: number of the process in order of appearance, time of the look [ns], and finding.
pub type Change = (u32, u64, Seen);

/// Findings of looks up to a time.
pub struct Batch {
    /// Changes, in time order.
    pub changes: Vec<Change>,
    /// Time of the last look [ns].
    pub until_ns: u64,
    /// Statistics of the looks.
    pub stretch: Stretch,
}
