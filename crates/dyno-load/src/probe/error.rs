//! What stops a probe, each with its place and the next step.

use std::io;
use std::path::{Path, PathBuf};

use dyno_evidence::EvidenceError;

/// The probe cannot start or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A value of the specification makes no sense.
    #[error("{place}: {message}\n  next: {next}")]
    Spec {
        /// Which value.
        place: String,
        /// What is wrong with it.
        message: String,
        /// What to do.
        next: String,
    },
    /// A path that the probe will not write to, or that cannot carry the wanted kind of I/O.
    #[error("{}: {message}\n  next: {next}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why not.
        message: String,
        /// What to do.
        next: String,
    },
    /// The operating system refused.
    #[error("{}: {what}: {source}\n  next: {next}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the operating system said.
        source: io::Error,
        /// What to do.
        next: &'static str,
    },
    /// A write of the log failed; nothing of it was acknowledged by this path.
    #[error(
        "{}: write {sequence} of the log failed: {source}\n  next: look into the kernel's log for the device's errors",
        path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// Number of the write.
        sequence: u64,
        /// What the operating system said.
        source: io::Error,
    },
    /// A thread could not be started, or ended before its time.
    #[error("a thread of the probe {what}\n  next: raise the limit on processes")]
    Thread {
        /// What happened to it.
        what: String,
    },
    /// The evidence could not be written.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
}

impl ProbeError {
    /// A specification of another shape than [`ProbeSpec`](super::ProbeSpec).
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
            io::ErrorKind::NotFound => "name a file in a folder that is there",
            io::ErrorKind::PermissionDenied => "name a file in a folder that you may write to",
            io::ErrorKind::StorageFull => "free space there, or choose a smaller --file-size",
            io::ErrorKind::ReadOnlyFilesystem => "name a file on a file system that is writable",
            _ => "try another path",
        };
        Self::Io { path: path.to_owned(), what, source, next }
    }
}
