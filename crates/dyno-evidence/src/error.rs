//! Errors in writing or reading evidence, with the path of the file.

use std::path::{Path, PathBuf};

/// Error in writing or reading a part.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The operating system could not do the operation (disk full, permissions, a missing folder).
    #[error("{}: {source}{}", path.display(), advice(source))]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is not a Parquet part of dbdyno, or it is torn.
    #[error("{}: not a whole Parquet part of calls: {reason}", path.display())]
    Part {
        /// Path of the file.
        path: PathBuf,
        /// Error of the Parquet library.
        reason: String,
    },
    /// Columns of unequal length were passed in.
    #[error("columns differ in length: {0}")]
    Shape(String),
}

fn advice(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::StorageFull => {
            "\n  next: free space on this disk, then continue with `dbdyno run --resume`"
        }
        std::io::ErrorKind::PermissionDenied => "\n  next: choose a writable folder with --out",
        _ => "",
    }
}

impl EvidenceError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    /// Converts a Parquet error; an I/O error inside it is preserved, so that "disk full" is reported as such.
    pub(crate) fn parquet(path: &Path, error: parquet::errors::ParquetError) -> Self {
        use parquet::errors::ParquetError;
        match error {
            ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
                Ok(source) => Self::io(path, *source),
                Err(other) => Self::Part { path: path.to_owned(), reason: other.to_string() },
            },
            other => Self::Part { path: path.to_owned(), reason: other.to_string() },
        }
    }
}
