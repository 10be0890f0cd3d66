//! State that all sessions of a proxy share: the tables that they write, and the names of wait events.

use dyno_evidence::EvidenceError;
use dyno_evidence::catalogue::Class;
use dyno_evidence::normal::Dialect;
use dyno_evidence::trace_store::Store;

use crate::capture::{CallBytes, Capture};

/// Wait for the client's next message: think time.
pub const CLIENT_READ: u32 = 1;
/// Wait until the client reads what is pending.
pub const CLIENT_WRITE: u32 = 2;
/// Wait for the first byte of the server's answer.
pub const ANSWER: u32 = 3;
/// Wait for the rest of the answer.
pub const ROWS: u32 = 4;
/// Wait for the rows of a COPY from the client.
pub const COPY_ROWS: u32 = 5;
/// SQLSTATE 08006 (connection failure), packed as the server packs it.
pub const BROKEN: u32 = packed(b"08006");
/// Packs a SQLSTATE as the server does: six bits per character.
pub const fn packed(state: &[u8; 5]) -> u32 {
    let (mut at, mut sum) = (0, 0);
    while at < 5 {
        sum |= ((state[at].wrapping_sub(b'0') & 0x3f) as u32) << (6 * at);
        at += 1;
    }
    sum
}

/// Gives the wait events their names.
pub fn name_events(store: &mut Store) {
    store.name_event_as(CLIENT_READ, "Client:ClientRead", Class::Network);
    store.name_event_as(CLIENT_WRITE, "Client:ClientWrite", Class::Network);
    store.name_event_as(COPY_ROWS, "Client:CopyRows", Class::Network);
    store.name_event_as(ANSWER, "Server:Answer", Class::Network);
    store.name_event_as(ROWS, "Server:Rows", Class::Network);
}

/// State that all sessions share.
pub struct Shared {
    /// Store to which the rows of the trace are written.
    pub store: Store,
    /// Store to which the messages are written, if values are kept.
    pub capture: Option<Capture>,
    /// Number of the next call.
    pub next_call: u64,
    /// Number of the next wait.
    pub next_wait: u64,
    /// Bytes sent and received by calls, if they are known.
    pub bytes: Option<CallBytes>,
    /// Server version, as reported to the first session.
    pub version: String,
    /// Durations of calls since the figures were last shown [ns].
    pub recent_ns: Vec<u64>,
    /// Number of the next session.
    pub next_session: u32,
    /// Dialect of the statements.
    pub dialect: Dialect,
}

impl Shared {
    /// Returns the state of an empty run.
    pub fn new(store: Store, binds: bool) -> Self {
        let mut store = store;
        name_events(&mut store);
        Self {
            store,
            capture: binds.then(Capture::default),
            next_call: 0,
            next_wait: 0,
            bytes: Some(CallBytes::default()),
            version: String::new(),
            recent_ns: Vec::new(),
            next_session: 0,
            dialect: Dialect::Postgres,
        }
    }

    /// Returns the number for a new session.
    pub fn take_number(&mut self) -> u32 {
        self.next_session += 1;
        self.next_session - 1
    }

    /// Writes the tables that have enough rows, or all tables if `is_last` is true.
    ///
    /// # Errors
    /// The evidence cannot be written.
    pub fn flush(&mut self, is_last: bool) -> Result<(), EvidenceError> {
        if let Some(bytes) = &mut self.bytes {
            bytes.flush(&mut self.store, is_last)?;
        }
        if let Some(capture) = &mut self.capture {
            capture.flush(&mut self.store, is_last)?;
        }
        if is_last { self.store.finish() } else { self.store.failed.take().map_or(Ok(()), Err) }
    }
}
