//! Work of the caller's thread during a block: it stores rows, and ends blocked sessions.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use dyno_evidence::{Call, CallsWriter};

use crate::LoadError;
use crate::block::{Activity, Block, LastQueries};
use crate::record::{Failures, HELD_ROWS, Pool};

/// Interval at which the thread checks for a request to stop.
const LOOK: Duration = Duration::from_millis(25);
/// Time from a request to stop until cancel requests are sent.
const CANCEL_AFTER: Duration = Duration::from_millis(250);
/// Timeout of one cancel request.
const CANCEL_TRY: Duration = Duration::from_millis(300);
/// Time from a request to stop until sockets are closed.
const CLOSE_AFTER: Duration = Duration::from_millis(600);

/// Keeps rows in memory up to a limit, then writes them.
pub struct RowWriter<'a> {
    writer: &'a mut CallsWriter,
    pool: &'a Pool,
    failures: &'a Failures,
    held: Vec<Vec<Call>>,
    rows: usize,
}

impl<'a> RowWriter<'a> {
    /// Returns a writer without any rows.
    pub fn new(writer: &'a mut CallsWriter, pool: &'a Pool, failures: &'a Failures) -> Self {
        Self { writer, pool, failures, held: Vec::new(), rows: 0 }
    }

    /// Returns the pool of empty buffers.
    pub fn pool(&self) -> &'a Pool {
        self.pool
    }

    fn keep(&mut self, buffer: Vec<Call>) -> Result<(), LoadError> {
        self.rows += buffer.len();
        self.held.push(buffer);
        if self.rows >= HELD_ROWS { self.write() } else { Ok(()) }
    }

    /// Writes the rows that are in memory.
    ///
    /// # Errors
    /// The evidence cannot be written.
    pub fn write(&mut self) -> Result<(), LoadError> {
        let failures = self.failures.list();
        for buffer in self.held.drain(..) {
            self.writer.push(&buffer, &failures)?;
            self.pool.give(buffer);
        }
        self.rows = 0;
        Ok(())
    }
}

/// Receives full buffers until all threads have ended.
///
/// Meanwhile it ends blocked sessions after a request to stop, and sessions whose answer is overdue.
///
/// # Errors
/// The evidence cannot be written; the block is then aborted.
pub fn supervise(
    block: &Block<'_>,
    receiver: &Receiver<Vec<Call>>,
    activities: &[Activity],
    rows: &mut RowWriter<'_>,
) -> Result<(), LoadError> {
    let mut halted_at: Option<Instant> = None;
    let mut cancelled = false;
    let mut asked = LastQueries::new(activities.len());
    let mut kept = Ok(());
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(buffer) if kept.is_ok() => {
                kept = rows.keep(buffer);
                if kept.is_err() {
                    block.abort();
                }
            }
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return kept,
        }
        if !block.halted() {
            block.end_overdue(activities);
            block.end_unknown(activities, &mut asked);
            continue;
        }
        let halted_at = *halted_at.get_or_insert_with(Instant::now);
        if halted_at.elapsed() >= CLOSE_AFTER {
            // Repeated at every check: a session may just have reconnected.
            block.each_active(activities, |_, handle| handle.control.shut_down());
        } else if !cancelled && halted_at.elapsed() >= CANCEL_AFTER {
            cancelled = true;
            cancel(block, activities, halted_at + CLOSE_AFTER);
        }
    }
}

/// Sends cancel requests for the active sessions; stops at time `until`.
fn cancel(block: &Block<'_>, activities: &[Activity], until: Instant) {
    block.each_active(activities, |dialler, handle| {
        let left = until.saturating_duration_since(Instant::now());
        if handle.key != 0 && !left.is_zero() {
            // A server that ignores the request notices the closed socket.
            let _ = dialler.cancel(handle.process, handle.key, left.min(CANCEL_TRY));
        }
    });
}
