//! Requests of a phase, in a compact form until they are saved as calls.

use std::path::Path;

use dyno_evidence::{Call, CallsWriter, EvidenceError};

/// Number of rows converted to calls at once.
const PIECE: usize = 1 << 16;

/// One request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub started_ns: i64,
    pub elapsed_ns: i64,
}

/// Requests of one phase, grouped by session.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub block: u32,
    pub arm: u16,
    pub sessions: Vec<Vec<Request>>,
}

impl Rows {
    /// Writes `<folder>/calls/b<block>.parquet`; returns the number of rows.
    ///
    /// # Errors
    /// The evidence cannot be written.
    pub fn save(&self, folder: &Path, arms: &[String]) -> Result<u64, EvidenceError> {
        let name = format!("b{:06}", self.block);
        let mut calls = CallsWriter::create(&folder.join("calls"), &name, arms, arms)?;
        for (session, requests) in self.sessions.iter().enumerate() {
            for piece in requests.chunks(PIECE) {
                let rows: Vec<Call> = piece.iter().map(|request| self.call(session as u16, request)).collect();
                calls.push(&rows, &[])?;
            }
        }
        calls.finish()
    }

    fn call(&self, session: u16, request: &Request) -> Call {
        Call {
            started_ns: request.started_ns,
            elapsed_ns: request.elapsed_ns,
            block: self.block,
            session,
            arm: self.arm,
            statement: self.arm,
            ..Call::new()
        }
    }
}
