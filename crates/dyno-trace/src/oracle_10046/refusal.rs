//! Reasons for refusing a file: one sentence per kind, with the place and the next step.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::compression::Compression;

/// A file, directory or pattern that cannot be read as traces.
#[derive(Debug, Error)]
pub enum Refusal {
    /// The file or directory cannot be opened or read.
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// Invalid pattern.
    #[error("{pattern}: is neither a file nor a valid pattern: {reason}")]
    Pattern {
        /// Pattern as given.
        pattern: String,
        /// What is wrong with the pattern.
        reason: String,
    },
    /// A pattern that no file matches.
    #[error("{pattern}: no file matches")]
    NoMatch {
        /// Pattern as given.
        pattern: String,
    },
    /// A directory without traces.
    #[error("{}: the directory does not contain a *.trc file", path.display())]
    NoTraces {
        /// The directory.
        path: PathBuf,
    },
    /// The same file was given twice.
    #[error("{}: given twice; it is read once", path.display())]
    Twice {
        /// The file.
        path: PathBuf,
    },
    /// The file is empty.
    #[error("{}: the file is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is not text.
    #[error("{}: is not text: byte {offset} is {byte:#04x}", path.display())]
    Binary {
        /// The file.
        path: PathBuf,
        /// Offset of the first byte that text does not contain.
        offset: u64,
        /// Value of that byte.
        byte: u8,
    },
    /// UTF-16 text.
    #[error("{}: is UTF-16 text, a trace has one byte per character", path.display())]
    Utf16 {
        /// The file.
        path: PathBuf,
    },
    /// A trace of SQL*Net.
    #[error("{}: is a trace of SQL*Net, not of SQL", path.display())]
    SqlNet {
        /// The file.
        path: PathBuf,
    },
    /// A trace of the optimizer only.
    #[error(
        "{}: is a trace of the optimizer (event 10053) and contains no record of event 10046",
        path.display()
    )]
    Optimizer {
        /// The file.
        path: PathBuf,
    },
    /// A report made from a trace.
    #[error("{}: is a report of tkprof, not the trace it was made from", path.display())]
    Report {
        /// The file.
        path: PathBuf,
    },
    /// A trace of a similar database whose fields have other names and meanings.
    #[error(
        "{}: is a trace of YashanDB, whose fields differ from Oracle's",
        path.display()
    )]
    Yashan {
        /// The file.
        path: PathBuf,
    },
    /// Text without a single record.
    #[error("{}: contains no record of event 10046", path.display())]
    NoRecords {
        /// The file.
        path: PathBuf,
    },
    /// The compressed data unpack to far more text than traces do.
    #[error("{}: cannot be read to its end: {source}", path.display())]
    TooDense {
        /// The file.
        path: PathBuf,
        /// Error with the two sizes.
        source: io::Error,
    },
    /// The compressed data are damaged or truncated.
    #[error(
        "{}: the {compression} data are damaged after {bytes} bytes of text: {source}",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Compression of the file.
        compression: Compression,
        /// Size of the text before the damage [bytes].
        bytes: u64,
        /// Error of the decoder.
        source: io::Error,
    },
}

impl Refusal {
    /// Returns the next step as a sentence.
    pub fn next_step(&self) -> &'static str {
        match self {
            Refusal::Unreadable { .. } => "Check the name of the file and the right to read it.",
            Refusal::Pattern { .. } => "Quote the pattern as the shell would: '*.trc'.",
            Refusal::NoMatch { .. } => "Check the pattern; ** matches directories.",
            Refusal::NoTraces { .. } => "Name the files themselves if they end otherwise.",
            Refusal::Twice { .. } => "Name each file once.",
            Refusal::Empty { .. } => "Check that the session traced and that the copy is whole.",
            Refusal::Binary { .. } => "Give the trace as text, or gz, xz, bz2 or zstd of it.",
            Refusal::Utf16 { .. } => "Convert it: iconv -f UTF-16 -t UTF-8.",
            Refusal::SqlNet { .. } => "Trace the session instead: dbms_monitor.session_trace_enable(waits => true).",
            Refusal::Optimizer { .. } | Refusal::NoRecords { .. } => {
                "Trace with event 10046 at level 8: dbms_monitor.session_trace_enable."
            }
            Refusal::Report { .. } => "Give the .trc file that tkprof read.",
            Refusal::Yashan { .. } => "Read it with YashanDB's own tools.",
            Refusal::TooDense { .. } => "If it is a trace all the same, unpack it and give the plain file.",
            Refusal::Damaged { .. } => "Copy the file again; what came before the damage was read.",
        }
    }

    /// Returns the file or directory, if there is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Refusal::Pattern { .. } | Refusal::NoMatch { .. } => None,
            Refusal::Unreadable { path, .. }
            | Refusal::NoTraces { path }
            | Refusal::Twice { path }
            | Refusal::Empty { path }
            | Refusal::Binary { path, .. }
            | Refusal::Utf16 { path }
            | Refusal::SqlNet { path }
            | Refusal::Optimizer { path }
            | Refusal::Report { path }
            | Refusal::Yashan { path }
            | Refusal::NoRecords { path }
            | Refusal::TooDense { path, .. }
            | Refusal::Damaged { path, .. } => Some(path),
        }
    }
}
