//! Stages of the exchange between a [`Link`](super::link::Link) and the server.

/// The next part of a server's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Nothing, because no request is outstanding.
    Idle,
    /// The answer to a request to prepare.
    Prepared,
    /// Descriptions of the values and columns of a prepared statement.
    Described { values: u64, columns: u64 },
    /// The head of a result.
    Head,
    /// Descriptions of columns.
    Columns { left: u64 },
    /// Rows.
    Rows,
    /// The error of an execution whose statement could not be prepared.
    Refused,
    /// Nothing: the answer is complete, and only `Ready` has to be reported.
    Done,
}
