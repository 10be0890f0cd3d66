//! Why nothing is recorded, in a sentence, with the next step.

use dyno_evidence::EvidenceError;

/// Why a recording cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The program cannot be read as one.
    #[error("the server's program cannot be read: {0}")]
    Program(String),
    /// No x86-64.
    #[error(
        "the server's program is for {0}: exact waits are recorded on x86-64 alone so far\n  next: sample its waits: \
         dbdyno snap watch"
    )]
    Architecture(String),
    /// An exported name is not there.
    #[error(
        "the server's program does not export {0}: it is no PostgreSQL of version 14 to 18, or it was linked without \
         its names\n  next: sample its waits: dbdyno snap watch"
    )]
    Symbol(&'static str),
    /// The code is not what it is taken for.
    #[error(
        "the server's code has {0} places that write to my_wait_event_info, far fewer than a PostgreSQL has: its waits \
         cannot be told from the code\n  next: sample its waits: dbdyno snap watch"
    )]
    Sites(usize),
    /// A version that is not known.
    #[error(
        "the server is PostgreSQL {0}; exact waits are known to be right for 14 to 18\n  next: sample its waits: dbdyno snap watch"
    )]
    Version(String),
    /// No such process.
    #[error("process {0}: {1}")]
    Process(i32, String),
    /// The kernel refuses.
    #[error("the kernel refuses to probe the server ({0}): {1}\n  next: {2}")]
    Refused(&'static str, std::io::Error, &'static str),
    /// Neither probes nor watchpoints.
    #[error("{0}; watchpoints are refused as well: {1}")]
    Neither(String, String),
    /// No watchpoint may be set.
    #[error("the server cannot be watched: {0}\n  next: {1}")]
    Unwatched(String, &'static str),
    /// No probe may be set.
    #[error("the server cannot be probed: {0}\n  next: {1}")]
    Unprobed(&'static str, &'static str),
    /// The kernel's other troubles.
    #[error("{0}: {1}")]
    System(String, std::io::Error),
    /// The evidence cannot be written.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// What was asked for makes no sense.
    #[error("{0}")]
    Request(String),
}

impl RecordError {
    /// The sentence without the next step.
    pub fn said(&self) -> String {
        let whole = self.to_string();
        whole.lines().next().unwrap_or_default().to_owned()
    }
}
