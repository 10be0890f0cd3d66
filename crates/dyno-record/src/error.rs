//! Errors of the recorder, each with the next step.

use dyno_evidence::EvidenceError;

/// Reason why a recording cannot begin or continue.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The program file cannot be parsed.
    #[error("the server's program cannot be read: {0}")]
    Program(String),
    /// The program is not for x86-64.
    #[error(
        "the server's program is for {0}: exact waits can be recorded on x86-64 only\n  next: sample the server's waits with dbdyno snap watch"
    )]
    Architecture(String),
    /// The program does not export a required symbol.
    #[error(
        "the server's program does not export {0}: it is not PostgreSQL 14 to 18, or it was linked without \
         its names\n  next: sample the server's waits with dbdyno snap watch"
    )]
    Symbol(&'static str),
    /// The code has too few stores to be a known PostgreSQL.
    #[error(
        "the server's code has {0} places that write to my_wait_event_info, far fewer than a PostgreSQL has: its waits \
         cannot be found in the code\n  next: sample the server's waits with dbdyno snap watch"
    )]
    Sites(usize),
    /// The server's version is unknown.
    #[error(
        "the server is PostgreSQL {0}; exact waits are supported for 14 to 18\n  next: sample the server's waits with dbdyno snap watch"
    )]
    Version(String),
    /// The process does not exist or cannot be read.
    #[error("process {0}: {1}")]
    Process(i32, String),
    /// The kernel refuses the probes.
    #[error("the kernel refuses to probe the server ({0}): {1}\n  next: {2}")]
    Refused(&'static str, std::io::Error, &'static str),
    /// No technique of the requested order can be used: the reasons for all of them, and the next step for the last of
    /// them.
    #[error("{0}\n  next: {1}")]
    NoneOf(String, String),
    /// Watchpoints cannot be set.
    #[error("the server cannot be watched: {0}\n  next: {1}")]
    Unwatched(String, &'static str),
    /// The server's memory cannot be read, or is not as expected.
    #[error("the server's waits cannot be read: {0}\n  next: {1}")]
    Unread(String, &'static str),
    /// Probes cannot be set.
    #[error("the server cannot be probed: {0}\n  next: {1}")]
    Unprobed(&'static str, &'static str),
    /// Another call of the operating system failed.
    #[error("{0}: {1}")]
    System(String, std::io::Error),
    /// The evidence cannot be written.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// The request is invalid.
    #[error("{0}")]
    Request(String),
}

impl RecordError {
    /// Returns true if another technique may work where this one is refused.
    pub fn is_of_rights(&self) -> bool {
        matches!(self, Self::Refused(..) | Self::Unprobed(..) | Self::Unwatched(..) | Self::Unread(..))
    }

    /// Returns the error for techniques that were all refused.
    pub fn none_of(refused: &[Self]) -> Self {
        let reasons: Vec<String> = refused.iter().map(Self::said).collect();
        let last = refused.last().map(ToString::to_string).unwrap_or_default();
        let next = last.split_once("next: ").map_or(String::new(), |(_, next)| next.to_owned());
        Self::NoneOf(reasons.join("; "), next)
    }

    /// Returns the first line of the message, without the next step.
    pub fn said(&self) -> String {
        let whole = self.to_string();
        whole.lines().next().unwrap_or_default().to_owned()
    }
}
