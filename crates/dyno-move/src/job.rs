//! N workers, and what they have finished, one by one.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Failure, MoveError};
use crate::spec::{ChunkDone, JobSpec};
use crate::worker::{Shared, Worker};

/// What [`Job::next`] tells.
#[derive(Debug)]
pub enum Next {
    /// A chunk is finished: its file is on the disk under its name.
    Done(ChunkDone),
    /// A chunk failed; the other workers stop.
    Failed(Failure),
    /// Nothing yet.
    Waiting,
    /// All workers have ended.
    End,
}

/// A running job.
#[derive(Debug)]
pub struct Job {
    shared: Arc<Shared>,
    told: Mutex<Receiver<Next>>,
}

impl Job {
    /// Starts the workers.
    pub fn start(spec: JobSpec) -> Self {
        let workers = spec.workers.clamp(1, spec.chunks.len().max(1));
        let shared = Arc::new(Shared {
            spec,
            next: AtomicUsize::new(0),
            stop: Arc::new(AtomicBool::new(false)),
            bytes: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            started: Instant::now(),
        });
        let (tell, told) = channel();
        for number in 0..workers {
            let (shared, tell) = (Arc::clone(&shared), tell.clone());
            thread::spawn(move || run(&shared, number, &tell));
        }
        Self { shared, told: Mutex::new(told) }
    }

    /// What has happened since the last call; waits no longer than `limit`.
    pub fn next(&self, limit: Duration) -> Next {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        match told.recv_timeout(limit) {
            Ok(next) => next,
            Err(RecvTimeoutError::Timeout) => Next::Waiting,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }

    /// Bytes of COPY that came, and rows of finished chunks.
    pub fn progress(&self) -> (u64, u64) {
        (self.shared.bytes.load(Ordering::Relaxed), self.shared.rows.load(Ordering::Relaxed))
    }

    /// Ends all workers soon.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A worker from its login to the last chunk. That nobody listens any more is no error.
fn run(shared: &Shared, number: usize, tell: &Sender<Next>) {
    let failed = |error: &MoveError, place| {
        shared.stop.store(true, Ordering::Relaxed);
        let _ = tell.send(Next::Failed(Failure::new(error, place)));
    };
    let mut worker = match Worker::begin(shared, number) {
        Ok(worker) => worker,
        Err(error) => return failed(&error, None),
    };
    while let Some(chunk) = worker.next() {
        match worker.work(chunk) {
            Ok(done) => {
                let _ = tell.send(Next::Done(done));
            }
            Err(error) => return failed(&error, Some((chunk.number, chunk.table))),
        }
    }
}
