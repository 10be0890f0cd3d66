//! Errors that stop a probe; each names its place and the next step.

use std::io;
use std::path::{Path, PathBuf};

use dyno_evidence::EvidenceError;

/// Reason why a probe cannot start or cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A value of the specification is invalid.
    #[error("{place}: {message}\n  next: {next}")]
    Spec {
        /// Name of the invalid value.
        place: String,
        /// What is wrong with the value.
        message: String,
        /// What the user should do.
        next: String,
    },
    /// The probe refuses to write to a path, or the path does not support the requested kind of I/O.
    #[error("{}: {message}\n  next: {next}", path.display())]
    Refused {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        message: String,
        /// What the user should do.
        next: String,
    },
    /// A call of the operating system failed.
    #[error("{}: {what}: {source}\n  next: {next}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The attempted operation.
        what: &'static str,
        /// Error of the operating system.
        source: io::Error,
        /// What the user should do.
        next: &'static str,
    },
    /// A write to the log failed; this path acknowledged no part of it.
    #[error(
        "{}: write {sequence} of the log failed: {source}\n  next: search the kernel's log for the device's errors",
        path.display()
    )]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Sequence number of the write.
        sequence: u64,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A thread could not be started, or ended unexpectedly.
    #[error("a probe thread {what}\n  next: raise the limit on processes")]
    Thread {
        /// What happened to the thread.
        what: String,
    },
    /// The evidence could not be written.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
}

impl ProbeError {
    /// Returns the error for a specification that does not have the form of [`ProbeSpec`](super::ProbeSpec).
    #[must_use]
    pub fn unreadable(why: &impl std::fmt::Display) -> Self {
        Self::spec("probe", why.to_string(), "correct the specification")
    }

    pub(super) fn spec(place: impl Into<String>, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self::Spec { place: place.into(), message: message.into(), next: next.into() }
    }

    pub(super) fn refused(path: &Path, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self::Refused { path: path.to_owned(), message: message.into(), next: next.into() }
    }

    pub(super) fn io(path: &Path, what: &'static str, source: io::Error) -> Self {
        let next = match source.kind() {
            io::ErrorKind::NotFound => "name a file in an existing folder",
            io::ErrorKind::PermissionDenied => "name a file in a folder that you may write to",
            io::ErrorKind::StorageFull => "free space there, or choose a smaller --file-size",
            io::ErrorKind::ReadOnlyFilesystem => "name a file on a file system that is writable",
            _ => "try another path",
        };
        Self::Io { path: path.to_owned(), what, source, next }
    }
}
