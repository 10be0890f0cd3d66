//! What all sessions of a proxy share: the tables that they write into, and the names of what is waited for.

use dyno_evidence::EvidenceError;
use dyno_evidence::catalogue::Class;
use dyno_evidence::trace_store::Store;

use crate::capture::{CallBytes, Capture};

/// Waits for the client's next message: think time.
pub const CLIENT_READ: u32 = 1;
/// Waits until the client takes what there is.
pub const CLIENT_WRITE: u32 = 2;
/// Waits for the first byte of the server's answer.
pub const ANSWER: u32 = 3;
/// Waits for the rest of it.
pub const ROWS: u32 = 4;
/// Waits for the rows of a COPY that the client sends.
pub const COPY_ROWS: u32 = 5;
/// SQLSTATE 08006, packed as the server does: the connection broke.
pub const BROKEN: u32 = packed(b"08006");
/// A SQLSTATE as the server packs it: six bits a character.
pub const fn packed(state: &[u8; 5]) -> u32 {
    let (mut at, mut sum) = (0, 0);
    while at < 5 {
        sum |= ((state[at].wrapping_sub(b'0') & 0x3f) as u32) << (6 * at);
        at += 1;
    }
    sum
}

/// Names the events.
pub fn name_events(store: &mut Store) {
    store.name_event_as(CLIENT_READ, "Client:ClientRead", Class::Network);
    store.name_event_as(CLIENT_WRITE, "Client:ClientWrite", Class::Network);
    store.name_event_as(COPY_ROWS, "Client:CopyRows", Class::Network);
    store.name_event_as(ANSWER, "Server:Answer", Class::Network);
    store.name_event_as(ROWS, "Server:Rows", Class::Network);
}

/// What all sessions share.
pub struct Shared {
    /// Where rows go.
    pub store: Store,
    /// Where messages go, if values are kept.
    pub capture: Option<Capture>,
    /// Number of the next call.
    pub next_call: u64,
    /// Number of the next wait.
    pub next_wait: u64,
    /// Bytes of calls.
    pub bytes: CallBytes,
    /// The server's version, as it told the first session.
    pub version: String,
    /// Elapsed times since the line of figures was shown last.
    pub recent_ns: Vec<u64>,
    /// Number of the next session.
    pub next_session: u32,
}

impl Shared {
    /// For an empty run.
    pub fn new(store: Store, binds: bool) -> Self {
        let mut store = store;
        name_events(&mut store);
        Self {
            store,
            capture: binds.then(Capture::default),
            next_call: 0,
            next_wait: 0,
            bytes: CallBytes::default(),
            version: String::new(),
            recent_ns: Vec::new(),
            next_session: 0,
        }
    }

    /// The number of a new session.
    pub fn take_number(&mut self) -> u32 {
        self.next_session += 1;
        self.next_session - 1
    }

    /// Writes what there is enough of, or all.
    pub fn flush(&mut self, is_last: bool) -> Result<(), EvidenceError> {
        self.bytes.flush(&mut self.store, is_last)?;
        if let Some(capture) = &mut self.capture {
            capture.flush(&mut self.store, is_last)?;
        }
        if is_last { self.store.finish() } else { self.store.failed.take().map_or(Ok(()), Err) }
    }
}
