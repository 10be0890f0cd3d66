//! Errors of moves, as kinds to which callers react differently.

use std::io;
use std::path::{Path, PathBuf};

use arrow_schema::ArrowError;
use dyno_load::WireError;
use parquet::errors::ParquetError;
use serde::Serialize;

/// Reason why a chunk was not moved.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// Error of the connection or the server; its text contains no values.
    #[error("{0}")]
    Wire(#[from] WireError),
    /// The Arrow type of a column cannot hold a value.
    #[error("column {column}: {what}, which {holder} cannot hold")]
    Unrepresentable {
        /// Name of the column.
        column: String,
        /// Description of the value.
        what: &'static str,
        /// Description of the type.
        holder: String,
    },
    /// A text is not valid UTF-8.
    #[error("column {column}: text that is not valid UTF-8 (row {row} of the chunk)")]
    NotUtf8 {
        /// Name of the column.
        column: String,
        /// Row, counted from 1.
        row: u64,
    },
    /// The bytes are not in COPY's form.
    #[error("unexpected bytes in COPY BINARY: {0}")]
    Stream(String),
    /// The server counted a different number of rows than arrived.
    #[error("the server reported {counted} rows, but {decoded} arrived")]
    Count {
        /// Number of rows that the server counted.
        counted: u64,
        /// Number of rows that this program decoded.
        decoded: u64,
    },
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Description of the error.
        error: String,
    },
    /// The server cannot accept a value of a file.
    #[error("column {column}: {reason} (row {row})")]
    Refused {
        /// Name of the column.
        column: String,
        /// Reason why the server cannot accept the value.
        reason: &'static str,
        /// Row, counted from 1.
        row: u64,
    },
    /// The server changed values when it stored them; contains the server's warnings.
    #[error("the server changes values: {0}")]
    Bent(String),
    /// The reader of the output has closed the output.
    #[error("the program that reads the output has ended")]
    Closed,
    /// A defect in this program.
    #[error("internal error: {0}")]
    Internal(String),
    /// Another worker failed, or a stop was requested.
    #[error("stopped")]
    Stopped,
}

impl MoveError {
    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::File { path: path.into(), error: error.to_string() },
        }
    }

    pub(crate) fn arrow(path: &Path, error: &ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, error) => Self::io(path, error),
            other => Self::File { path: path.into(), error: other.to_string() },
        }
    }

    pub(crate) fn parquet(path: &Path, error: &ParquetError) -> Self {
        Self::File { path: path.into(), error: error.to_string() }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Wire(WireError::Server(_)) => "server",
            Self::Wire(WireError::Stopped) | Self::Stopped => "stopped",
            Self::Wire(_) => "connection",
            Self::Unrepresentable { .. } | Self::NotUtf8 { .. } => "unrepresentable",
            Self::Stream(_) | Self::Count { .. } | Self::Internal(_) => "stream",
            Self::Refused { .. } | Self::Bent(_) => "refused",
            Self::Closed => "closed",
            Self::File { .. } => "file",
        }
    }
}

/// Failure as it is passed to Python.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    /// `server`, `connection`, `unrepresentable`, `stream`, `refused`, `closed`, `file` or `stopped`.
    pub kind: &'static str,
    /// Text of the error.
    pub message: String,
    /// SQLSTATE, if a server sent one.
    pub code: Option<String>,
    /// Name of the column, if the error concerns one.
    pub column: Option<String>,
    /// Chunk number; `None` before the first chunk.
    pub chunk: Option<u32>,
    /// Index of the chunk's table.
    pub table: Option<usize>,
}

impl Failure {
    /// Returns the failure for an error; `place` is the chunk and its table, or `None` if the error is in no chunk.
    pub fn new(error: &MoveError, place: Option<(u32, usize)>) -> Self {
        let code = match error {
            MoveError::Wire(wire @ WireError::Server(_)) => Some(wire.code().to_owned()),
            _ => None,
        };
        let column = match error {
            MoveError::Unrepresentable { column, .. }
            | MoveError::NotUtf8 { column, .. }
            | MoveError::Refused { column, .. } => Some(column.clone()),
            _ => None,
        };
        Self {
            kind: error.kind(),
            message: error.to_string(),
            code,
            column,
            chunk: place.map(|(chunk, _)| chunk),
            table: place.map(|(_, table)| table),
        }
    }
}
