//! Job of N workers, and the chunks that they finish, one by one.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::column::schema;
use crate::error::{Failure, MoveError};
use crate::single::Single;
use crate::spec::{ChunkDone, JobSpec};
use crate::worker::{Shared, Worker};

/// Result of [`Job::next`].
#[derive(Debug)]
pub enum Next {
    /// A chunk is finished: its file is on the disk under its name.
    Done(ChunkDone),
    /// A chunk failed; the other workers stop.
    Failed(Failure),
    /// Nothing has happened yet.
    Waiting,
    /// All workers have ended.
    End,
}

/// Running job.
pub struct Job {
    shared: Arc<Shared>,
    events: Mutex<Receiver<Next>>,
}

impl Job {
    /// Starts the workers.
    ///
    /// # Errors
    /// The single file of the job cannot be created.
    pub fn start(spec: JobSpec) -> Result<Self, MoveError> {
        let workers = spec.workers.clamp(1, spec.chunks.len().max(1));
        let single = match (&spec.single, spec.tables.first()) {
            (Some(single), Some(table)) => Some(Single::create(single, &schema(table))?),
            _ => None,
        };
        let shared = Arc::new(Shared {
            spec,
            single,
            live: AtomicUsize::new(workers),
            next: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            stop: Arc::new(AtomicBool::new(false)),
            bytes: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            started: Instant::now(),
        });
        let (sender, events) = channel();
        for number in 0..workers {
            let (shared, sender) = (Arc::clone(&shared), sender.clone());
            thread::spawn(move || run(&shared, number, &sender));
        }
        Ok(Self { shared, events: Mutex::new(events) })
    }

    /// Returns the next event since the last call; waits at most `limit`.
    pub fn next(&self, limit: Duration) -> Next {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        match events.recv_timeout(limit) {
            Ok(next) => next,
            Err(RecvTimeoutError::Timeout) => Next::Waiting,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }

    /// Returns the number of COPY bytes received, and of rows in finished chunks.
    pub fn progress(&self) -> (u64, u64) {
        (self.shared.bytes.load(Ordering::Relaxed), self.shared.rows.load(Ordering::Relaxed))
    }

    /// Returns the number of workers whose sessions have begun or failed to begin.
    ///
    /// Once all workers are counted, they are in their snapshots, and locks that protect the snapshot may be
    /// released.
    pub fn begun(&self) -> usize {
        self.shared.begun.load(Ordering::Acquire)
    }

    /// Stops all workers soon.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs a worker from its login to its last chunk; it is no error if nobody receives its events.
fn run(shared: &Shared, number: usize, sender: &Sender<Next>) {
    let place = Cell::new(None);
    let ended = catch_unwind(AssertUnwindSafe(|| work(shared, number, sender, &place)));
    // The panic message is on stderr; the job must not look finished.
    let ended = ended.unwrap_or_else(|_| Err(MoveError::Internal("a worker ended in the middle".into())));
    let last = shared.live.fetch_sub(1, Ordering::AcqRel) == 1;
    let ended = match (&shared.single, ended) {
        (Some(single), Ok(())) if last && !shared.stop.load(Ordering::Acquire) => single.finish(),
        (_, ended) => ended,
    };
    if let Err(error) = ended {
        shared.stop.store(true, Ordering::Release);
        let _ = sender.send(Next::Failed(Failure::new(&error, place.get())));
    }
}

fn work(
    shared: &Shared,
    number: usize,
    sender: &Sender<Next>,
    place: &Cell<Option<(u32, usize)>>,
) -> Result<(), MoveError> {
    let begun = Worker::begin(shared, number);
    shared.begun.fetch_add(1, Ordering::AcqRel);
    let mut worker = begun?;
    while let Some(chunk) = worker.next() {
        place.set(Some((chunk.number, chunk.table)));
        let _ = sender.send(Next::Done(worker.work(chunk)?));
        place.set(None);
    }
    Ok(())
}
