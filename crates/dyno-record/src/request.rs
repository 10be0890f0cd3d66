//! Request for a recording, which all techniques share.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

/// Interval at which the rings are drained.
pub const DRAIN_EVERY: Duration = Duration::from_millis(10);

/// Technique of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Reading of memory if it is allowed, otherwise probes, otherwise watchpoints: the least cost to the server first.
    #[default]
    Auto,
    /// Probes if they are allowed, otherwise watchpoints: exact times whatever they cost.
    Exact,
    /// Probes beside the instructions that store the wait event.
    Sites,
    /// Watchpoints on the words in shared memory that hold the wait events.
    Watch,
    /// Regular reading of the words in shared memory that hold the wait events.
    Read,
}

/// Parameters of a recording.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// A process of the server.
    pub pid: i32,
    /// Technique.
    #[serde(default)]
    pub mode: Mode,
    /// True to record only that process and its parallel workers.
    #[serde(default)]
    pub only: bool,
    /// Folder for the trace.
    pub out: PathBuf,
    /// Name of the only database whose backends are recorded; `None` for all databases.
    #[serde(default)]
    pub database: Option<String>,
    /// Name of the only user whose backends are recorded; `None` for all users.
    #[serde(default)]
    pub user: Option<String>,
    /// Time after which the recording stops [ns].
    #[serde(default)]
    pub for_ns: Option<u64>,
    /// Largest share of a backend's time that probes may use, or of the machine's CPU time that looks may use; 0 for no
    /// limit.
    #[serde(default)]
    pub cost_limit: Option<f64>,
    /// True to copy the server's memory for each look even if it may be mapped.
    #[serde(default)]
    pub copies: bool,
    /// True to also record when binds start, at the cost of one more note per call.
    #[serde(default)]
    pub details: bool,
}

/// Largest share of a backend's time that probes may take if the request sets no limit.
const UNASKED: f64 = 0.05;

impl Request {
    /// Returns the largest share of a backend's time that probes or watchpoints may take; 0 for no limit.
    pub fn probes_limit(&self) -> f64 {
        self.cost_limit.unwrap_or(UNASKED)
    }
}
