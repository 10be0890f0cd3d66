//! Where the dialogue of a [`Link`](super::link::Link) stands.

/// What comes next from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Nothing was asked.
    Idle,
    /// The answer to a wish to prepare.
    Prepared,
    /// Descriptions of values and columns of what was prepared.
    Described { values: u64, columns: u64 },
    /// The head of a result.
    Head,
    /// Descriptions of columns.
    Columns { left: u64 },
    /// Rows.
    Rows,
    /// What was to run could not be prepared: that it could not run, either.
    Refused,
    /// All is told but that the server waits.
    Done,
}
