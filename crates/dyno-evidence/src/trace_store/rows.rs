//! What a store is given: calls and waits that are over, sessions, and the server they are of.

/// A wait that is over.
#[derive(Clone, Copy, Debug)]
pub struct WaitRow {
    /// Number of the session.
    pub session: u32,
    /// Number of the wait.
    pub number: u64,
    /// The event's number.
    pub event: u32,
    /// Monotonic clock.
    pub since_ns: u64,
    /// As it was seen.
    pub elapsed_ns: u64,
    /// Of that, on a processor.
    pub cpu_ns: u64,
    /// Without the price of the probe.
    pub corrected_ns: u64,
    /// 1: had begun before the recording; 2: was not over at its end.
    pub cut: i64,
    /// Whether the client is waited for between two calls.
    pub think: bool,
    /// Number of the statement.
    pub statement: u32,
    /// Its call.
    pub call: Option<u64>,
}

/// A call that is over.
#[derive(Clone, Copy, Debug)]
pub struct CallRow {
    /// Number of the session.
    pub session: u32,
    /// Number of the call.
    pub number: u64,
    /// What it was.
    pub kind: &'static str,
    /// Number of the statement.
    pub statement: u32,
    /// Monotonic clock.
    pub since_ns: u64,
    /// How long it took.
    pub elapsed_ns: u64,
    /// On a processor, outside of waits.
    pub cpu_ns: u64,
    /// In waits.
    pub wait_ns: u64,
    /// Rows, where they are known.
    pub rows: Option<u64>,
    /// SQLSTATE, as the server packs it.
    pub state: Option<u32>,
}

/// Sums of a session, ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    /// Calls.
    pub calls: u64,
    /// Waits.
    pub waits: u64,
    /// Time in calls.
    pub call_ns: u64,
    /// CPU in calls, outside of their waits.
    pub cpu_ns: u64,
    /// Waits in calls.
    pub wait_inside_ns: u64,
    /// Waits outside: think time, and what was not observed.
    pub between_ns: u64,
}

/// A session as the small tables have it.
#[derive(Clone, Debug, Default)]
pub struct SessionRow {
    /// Number in the run.
    pub number: u32,
    /// The server's process.
    pub pid: i32,
    /// What it is called: `client backend 1234 (app@shop)`.
    pub name: String,
    /// What it is: `client backend`, `parallel worker` ...
    pub kind: String,
    /// Its user.
    pub user: String,
    /// Its database.
    pub database: String,
    /// Monotonic clock.
    pub since_ns: u64,
    /// The same.
    pub until_ns: u64,
    /// Sums.
    pub sums: Sums,
}

/// What the small tables say of the server.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// The program.
    pub path: String,
    /// Its version.
    pub version: String,
    /// Lost: how many, from, to (monotonic).
    pub gaps: Vec<(u64, u64, u64)>,
}
