//! Input for a store: finished calls and waits, sessions, and facts about their server.

use crate::NONE;

/// A finished wait.
#[derive(Clone, Copy, Debug)]
pub struct WaitRow {
    /// Session number.
    pub session: u32,
    /// Wait number.
    pub number: u64,
    /// Event number.
    pub event: u32,
    /// Start on the monotonic clock [ns].
    pub since_ns: u64,
    /// Elapsed time as observed [ns].
    pub elapsed_ns: u64,
    /// Part of the elapsed time on a processor [ns].
    pub cpu_ns: u64,
    /// Elapsed time minus the cost of the probe [ns].
    pub corrected_ns: u64,
    /// 0 for a complete wait, 1 if the wait began before the recording did, 2 if it was not over when the recording
    /// ended.
    pub cut: i64,
    /// True if the wait is for the client, between two calls.
    pub think: bool,
    /// Statement number.
    pub statement: u32,
    /// Number of the call during which the session waited.
    pub call: Option<u64>,
    /// Id of the process that held what the session waited for; 0 if unknown.
    pub holder: i32,
    /// Largest possible error of the elapsed time, if the wait was found by looks [ns].
    pub within_ns: u64,
}

impl WaitRow {
    /// Returns the wait's first two parameters: if the wait was found by looks (`is_read`), the holder and the largest
    /// error; otherwise CPU time and corrected time.
    pub(super) fn parameters(&self, is_read: bool) -> (i64, i64) {
        let holder = if self.holder == 0 { NONE } else { self.holder.into() };
        if is_read { (holder, self.within_ns as i64) } else { (self.cpu_ns as i64, self.corrected_ns as i64) }
    }
}

/// Returns the names of the parameters of a wait, and its fidelity (`read` or `exact`).
pub(super) fn words(is_read: bool) -> (&'static str, &'static str) {
    if is_read { ("holder within_ns cut", "read") } else { ("cpu_ns corrected_ns cut", "exact") }
}

/// A finished call.
#[derive(Clone, Copy, Debug)]
pub struct CallRow {
    /// Session number.
    pub session: u32,
    /// Call number.
    pub number: u64,
    /// Kind of the call.
    pub kind: &'static str,
    /// Statement number.
    pub statement: u32,
    /// Start on the monotonic clock [ns].
    pub since_ns: u64,
    /// Elapsed time [ns].
    pub elapsed_ns: u64,
    /// Time on a processor outside of waits [ns].
    pub cpu_ns: u64,
    /// Time in waits [ns].
    pub wait_ns: u64,
    /// Number of rows, if known.
    pub rows: Option<u64>,
    /// SQLSTATE in the server's packed form.
    pub state: Option<u32>,
}

/// Totals of a session.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    /// Number of calls.
    pub calls: u64,
    /// Number of waits.
    pub waits: u64,
    /// Time in calls [ns].
    pub call_ns: u64,
    /// CPU time in calls, outside of their waits [ns].
    pub cpu_ns: u64,
    /// Time in waits inside calls [ns].
    pub wait_inside_ns: u64,
    /// Time in waits between calls: think time and unobserved time [ns].
    pub between_ns: u64,
}

/// Session as it is stored in the small tables.
#[derive(Clone, Debug, Default)]
pub struct SessionRow {
    /// Session number in the run.
    pub number: u32,
    /// Process id on the server.
    pub pid: i32,
    /// Name of the session: `client backend 1234 (app@shop)`.
    pub name: String,
    /// Kind of the process: `client backend`, `parallel worker` ...
    pub kind: String,
    /// User of the session.
    pub user: String,
    /// Database of the session.
    pub database: String,
    /// Start on the monotonic clock [ns].
    pub since_ns: u64,
    /// End on the monotonic clock [ns].
    pub until_ns: u64,
    /// Totals of the session's calls and waits.
    pub sums: Sums,
}

/// Facts about the server that go into the small tables.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// Path of the server's program.
    pub path: String,
    /// Version of the server.
    pub version: String,
    /// Gaps in the recording: number of lost records, start and end [ns, monotonic].
    pub gaps: Vec<(u64, u64, u64)>,
}

/// Returns the FNV-1a hash of a text: the same text has the same key in every recording.
pub(super) fn fnv(text: &[u8]) -> u64 {
    text.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns a packed SQLSTATE as text.
pub fn state_text(packed: u32) -> String {
    (0..5).map(|at| char::from(((packed >> (6 * at)) & 0x3f) as u8 + b'0')).collect()
}
