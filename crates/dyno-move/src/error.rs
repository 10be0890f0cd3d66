//! What can go wrong, in kinds that differ in what is to be done.

use std::io;
use std::path::{Path, PathBuf};

use arrow_schema::ArrowError;
use dyno_load::WireError;
use parquet::errors::ParquetError;
use serde::Serialize;

/// Why a chunk was not moved.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// The connection or the server, in words without values.
    #[error("{0}")]
    Wire(#[from] WireError),
    /// A value that the column's Arrow type cannot hold.
    #[error("column {column}: {what}, which {holder} cannot hold")]
    Unrepresentable {
        /// The column.
        column: String,
        /// The value in words.
        what: &'static str,
        /// The type in words.
        holder: String,
    },
    /// Text that is no UTF-8.
    #[error("column {column}: text that is not valid UTF-8 (row {row} of the chunk)")]
    NotUtf8 {
        /// The column.
        column: String,
        /// Counted from 1.
        row: u64,
    },
    /// Bytes that are not COPY's.
    #[error("unexpected bytes in COPY BINARY: {0}")]
    Stream(String),
    /// The server counted other rows than came.
    #[error("the server counted {counted} rows and {decoded} came")]
    Count {
        /// By the server.
        counted: u64,
        /// By us.
        decoded: u64,
    },
    /// A file.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: String,
    },
    /// A value of a file that the server cannot take.
    #[error("column {column}: {reason} (row {row})")]
    Refused {
        /// The column.
        column: String,
        /// In words.
        reason: &'static str,
        /// Counted from 1.
        row: u64,
    },
    /// Values that the server took otherwise than they came, in its words.
    #[error("the server bends values: {0}")]
    Bent(String),
    /// Whoever read our output has ended.
    #[error("the reader of the output has ended")]
    Closed,
    /// A fault of ours.
    #[error("internal error: {0}")]
    Internal(String),
    /// Another worker failed, or the user wants to stop.
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

/// A failure as it goes to Python.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    /// `server`, `connection`, `unrepresentable`, `stream`, `refused`, `closed`, `file` or `stopped`.
    pub kind: &'static str,
    /// In words.
    pub message: String,
    /// SQLSTATE, where a server said it.
    pub code: Option<String>,
    /// The column, where it is one.
    pub column: Option<String>,
    /// The chunk and its table, unless it was before the first.
    pub chunk: Option<u32>,
    /// Its place among the tables.
    pub table: Option<usize>,
}

impl Failure {
    /// Of a chunk, or of none.
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
