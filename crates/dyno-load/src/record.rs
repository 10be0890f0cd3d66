//! Path of a row from its session to the evidence, without a lock or an allocation per operation.
//!
//! Each session fills its own buffer. A full buffer goes over a bounded channel to the thread that called `run`, which
//! keeps the rows in memory up to a limit, and writes them to the Parquet part when the limit is reached or the block
//! is over. The empty buffer goes back to the pool. So writing disturbs the measurement only in blocks whose rows do
//! not fit in memory.

use std::collections::HashSet;
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, PoisonError};

use dyno_evidence::{Call, Failure};

/// Number of rows of all sessions that are kept in memory before they are written: 1 Mi rows are 72 MiB.
pub const HELD_ROWS: usize = 1 << 20;
/// Capacity of the channel, in full buffers.
pub const WAITING_BUFFERS: usize = 16;
const ROWS_MIN: usize = 256;
const ROWS_MAX: usize = 8_192;

/// Returns the number of rows per buffer for this number of threads.
pub fn buffer_rows(threads: usize) -> usize {
    (131_072 / threads.max(1)).clamp(ROWS_MIN, ROWS_MAX)
}

/// Pool of empty buffers, reused so that their memory pages are touched only once.
#[derive(Debug, Default)]
pub struct Pool(Mutex<Vec<Vec<Call>>>);

impl Pool {
    fn take(&self, rows: usize) -> Vec<Call> {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        free.pop().filter(|b| b.capacity() >= rows).unwrap_or_else(|| Vec::with_capacity(rows))
    }

    /// Takes back a buffer whose rows were written.
    pub fn give(&self, mut buffer: Vec<Call>) {
        buffer.clear();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

/// Recorder of one session: fills a buffer and hands it over when it is full.
#[derive(Debug)]
pub struct Recorder<'a> {
    buffer: Vec<Call>,
    rows: usize,
    pool: &'a Pool,
    writer: SyncSender<Vec<Call>>,
}

impl<'a> Recorder<'a> {
    /// Returns a recorder whose buffers hold `rows` rows.
    pub fn new(rows: usize, pool: &'a Pool, writer: SyncSender<Vec<Call>>) -> Self {
        Self { buffer: pool.take(rows), rows, pool, writer }
    }

    /// Records one row.
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
        // The receiver is gone only if `run` has failed; then there is no place for the rows.
        let _ = self.writer.send(full);
    }

    /// Hands over the remaining rows.
    pub fn finish(mut self) {
        let last = std::mem::take(&mut self.buffer);
        let _ = self.writer.send(last);
    }
}

/// Distinct failures of operations in all blocks so far; [`Call::error`] is the number of a failure, from 1.
#[derive(Debug, Default)]
pub struct Failures(Mutex<Vec<Failure>>);

/// Number of failures that are distinguished by their messages; later failures have no message.
const WITH_MESSAGE: usize = 128;

impl Failures {
    /// Returns the number of a failure, and adds it if it is new; the 255th and later failures share one number.
    pub fn number(&self, failure: Failure) -> u8 {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = |known: &[Failure], one: &Failure| Some(known.iter().position(|own| own == one)? as u8 + 1);
        if let Some(number) = place(&known, &failure) {
            return number;
        }
        let mut failure = failure;
        if known.len() >= WITH_MESSAGE {
            failure.message = None;
            if let Some(number) = place(&known, &failure) {
                return number;
            }
        }
        if known.len() == usize::from(u8::MAX) - 1 {
            failure = String::from("other").into();
        }
        if known.len() < usize::from(u8::MAX) {
            known.push(failure);
        }
        known.len() as u8
    }

    /// Returns all failures in the order of their numbers.
    pub fn list(&self) -> Vec<Failure> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the error codes of all failures, each once.
    pub fn codes(&self) -> Vec<String> {
        let mut codes: Vec<String> = self.list().into_iter().map(|failure| failure.code).collect();
        let mut seen = HashSet::new();
        codes.retain(|code| seen.insert(code.clone()));
        codes
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
        let failures = Failures::default();
        let number = |code: &str| failures.number(code.to_owned().into());
        assert_eq!((number("40001"), number("23505"), number("40001")), (1, 2, 1));
        let worded =
            |message: String| failures.number(Failure { message: Some(message), ..String::from("40001").into() });
        assert_eq!((worded("a".into()), worded("b".into()), worded("a".into()), number("40001")), (3, 4, 3, 1));
        assert_eq!(failures.codes(), ["40001", "23505"]);
        for message in 0..400 {
            worded(message.to_string());
        }
        assert_eq!((failures.list().len(), worded("new".into())), (WITH_MESSAGE, 1));
        for code in 0..400 {
            number(&format!("X{code:04}"));
        }
        let list = failures.list();
        assert_eq!((list.len(), list[254].code.as_str()), (255, "other"));
        assert_eq!(number("Y0000"), 255);
    }

    #[test]
    fn a_thread_never_holds_much() {
        assert_eq!(buffer_rows(1), ROWS_MAX);
        assert_eq!(buffer_rows(100), 1_310);
        assert_eq!(buffer_rows(10_000), ROWS_MIN);
    }
}
