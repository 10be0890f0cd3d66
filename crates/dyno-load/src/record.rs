//! From a session's hand to the evidence without a lock or an allocation per operation.
//!
//! Each thread fills a buffer of its own. A full one goes over a bounded channel to the thread that
//! called `run`, which keeps it in memory up to a budget, and writes to the Parquet part when the
//! budget is spent or the block is over; the empty buffer goes back to the pool. So writing
//! disturbs the measurement only in blocks that are too long for memory.

use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, PoisonError};

use dyno_evidence::Call;

/// Rows held over all sessions before writing begins: 1 Mi rows are 72 MiB.
pub const HELD_ROWS: usize = 1 << 20;
/// Full buffers that may wait in the channel.
pub const WAITING_BUFFERS: usize = 16;
const ROWS_MIN: usize = 256;
const ROWS_MAX: usize = 8_192;

/// How many rows one buffer holds when there are so many threads.
pub fn buffer_rows(threads: usize) -> usize {
    (131_072 / threads.max(1)).clamp(ROWS_MIN, ROWS_MAX)
}

/// Empty buffers, kept so that their pages are touched once.
#[derive(Debug, Default)]
pub struct Pool(Mutex<Vec<Vec<Call>>>);

impl Pool {
    fn take(&self, rows: usize) -> Vec<Call> {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        free.pop().filter(|b| b.capacity() >= rows).unwrap_or_else(|| Vec::with_capacity(rows))
    }

    /// Takes back a buffer that was written.
    pub fn give(&self, mut buffer: Vec<Call>) {
        buffer.clear();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

/// One thread's end.
#[derive(Debug)]
pub struct Recorder<'a> {
    buffer: Vec<Call>,
    rows: usize,
    pool: &'a Pool,
    writer: SyncSender<Vec<Call>>,
}

impl<'a> Recorder<'a> {
    /// A recorder that hands over buffers of `rows` rows.
    pub fn new(rows: usize, pool: &'a Pool, writer: SyncSender<Vec<Call>>) -> Self {
        Self { buffer: pool.take(rows), rows, pool, writer }
    }

    /// Keeps one row.
    #[inline]
    pub fn push(&mut self, call: Call) {
        if self.buffer.len() >= self.rows {
            self.hand_over();
        }
        self.buffer.push(call);
    }

    #[cold]
    fn hand_over(&mut self) {
        let full = std::mem::replace(&mut self.buffer, self.pool.take(self.rows));
        // The receiver goes away only when `run` has failed, and then the rows have no place.
        let _ = self.writer.send(full);
    }

    /// Hands over what is left.
    pub fn finish(mut self) {
        let last = std::mem::take(&mut self.buffer);
        let _ = self.writer.send(last);
    }
}

/// The error codes of all blocks so far: [`Call::error`] counts them from 1.
#[derive(Debug, Default)]
pub struct ErrorCodes(Mutex<Vec<String>>);

impl ErrorCodes {
    /// The number of a code; the 255th and later codes share one number.
    pub fn number(&self, code: &str) -> u8 {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = codes.iter().position(|known| known == code) {
            return at as u8 + 1;
        }
        if codes.len() == usize::from(u8::MAX) - 1 {
            codes.push("other".into());
        }
        if codes.len() < usize::from(u8::MAX) {
            codes.push(code.into());
        }
        codes.len() as u8
    }

    /// All codes in the order of their numbers.
    pub fn list(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn rows_arrive_in_order_and_buffers_return() {
        let pool = Pool::default();
        let (writer, reader) = sync_channel(100);
        let mut recorder = Recorder::new(4, &pool, writer);
        for started_ns in 0..10 {
            recorder.push(Call { started_ns, ..Call::new() });
        }
        recorder.finish();
        let buffers: Vec<Vec<Call>> = reader.iter().collect();
        let times: Vec<i64> = buffers.iter().flatten().map(|call| call.started_ns).collect();
        assert_eq!(times, (0..10).collect::<Vec<i64>>());
        let capacity = buffers[0].capacity();
        for buffer in buffers {
            pool.give(buffer);
        }
        assert_eq!(pool.take(4).capacity(), capacity);
    }

    #[test]
    fn codes_are_numbered_once_and_never_overflow() {
        let codes = ErrorCodes::default();
        assert_eq!((codes.number("40001"), codes.number("23505"), codes.number("40001")), (1, 2, 1));
        for code in 0..400 {
            codes.number(&format!("X{code:04}"));
        }
        let list = codes.list();
        assert_eq!((list.len(), list[254].as_str()), (255, "other"));
        assert_eq!(codes.number("Y0000"), 255);
    }

    #[test]
    fn a_thread_never_holds_much() {
        assert_eq!(buffer_rows(1), ROWS_MAX);
        assert_eq!(buffer_rows(100), 1_310);
        assert_eq!(buffer_rows(10_000), ROWS_MIN);
    }
}
