//! Writer of a trace's small tables from the sessions of a recording.

use dyno_evidence::EvidenceError;
use dyno_evidence::trace_store::{SessionRow, small};

use crate::session::Session;
use crate::store::{Server, Store};

/// Returns a session's name: `client backend 1234 (app@shop)`, `parallel worker 1240 of 1234`, `checkpointer 900`.
fn name(session: &Session) -> String {
    let who = &session.who;
    let kind = if who.kind.is_empty() { "process" } else { &who.kind };
    match (who.leader, who.user.is_empty()) {
        (Some(leader), _) => format!("{kind} {} of {leader}", session.pid),
        (None, false) => format!("{kind} {} ({}@{})", session.pid, who.user, who.database),
        (None, true) => format!("{kind} {}", session.pid),
    }
}

/// Writes the small tables.
///
/// # Errors
/// The evidence cannot be written.
pub fn write(store: &Store, sessions: &[Session], server: &Server) -> Result<(), EvidenceError> {
    let row = |session: &Session| SessionRow {
        number: session.number,
        pid: session.pid,
        name: name(session),
        kind: session.who.kind.clone(),
        user: session.who.user.clone(),
        database: session.who.database.clone(),
        since_ns: session.since_ns,
        until_ns: session.until_ns,
        sums: session.sums,
    };
    small::write(store, &sessions.iter().map(row).collect::<Vec<_>>(), server)
}
