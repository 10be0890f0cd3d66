//! Threads that write the copies of a log: one thread per path, which carries out its jobs in order.
//!
//! ```text
//!   log writer --- job ---> copy 0: write_durably --+
//!        |  `------ job ---> copy 1: write_durably --+
//!        '<------------- done (first, second) -------'
//! ```

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use super::ProbeError;
use super::buffer::Buffer;
use super::medium::Medium;
use crate::clock::{Clock, thread_cpu_ns};

/// One write for a copy.
#[derive(Debug)]
struct Job {
    sequence: u64,
    buffer: Arc<Buffer>,
    length: usize,
    offset: u64,
}

/// Report of a copy's thread that a write is durable on the copy's path, or that the write has failed.
#[derive(Debug)]
pub(super) struct Done {
    /// Index of the copy, from 0.
    pub copy: usize,
    /// Sequence number of the write.
    pub sequence: u64,
    /// Time at which the write was sent to the device \[ns since the epoch\].
    pub started_ns: i64,
    /// Time at which the write was durable \[ns since the epoch\].
    pub ended_ns: i64,
    /// CPU time of the copy's thread so far \[ns\].
    pub cpu_ns: u64,
    /// Result of the write.
    pub result: io::Result<()>,
}

/// Threads of the copies; they end when this is dropped.
#[derive(Debug)]
pub(super) struct Copies {
    jobs: Vec<Sender<Job>>,
    done: Receiver<Done>,
    threads: Vec<JoinHandle<()>>,
}

impl Copies {
    /// Starts one thread per medium.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(media: Vec<Box<dyn Medium>>, clock: Clock) -> Result<Self, ProbeError> {
        let (said, done) = channel();
        let mut copies = Self { jobs: Vec::new(), done, threads: Vec::new() };
        for (copy, medium) in media.into_iter().enumerate() {
            let (tell, told) = channel();
            let said = said.clone();
            let thread = thread::Builder::new()
                .name(format!("copy {copy}"))
                .spawn(move || serve(copy, medium, &told, &said, clock))
                .map_err(|e| ProbeError::Thread { what: format!("cannot be started: {e}") })?;
            copies.jobs.push(tell);
            copies.threads.push(thread);
        }
        Ok(copies)
    }

    /// Hands a write to a copy; `length` is the number of bytes of `buffer` to write.
    ///
    /// # Errors
    /// The copy's thread has ended.
    pub fn submit(
        &self,
        copy: usize,
        sequence: u64,
        (buffer, length): (&Arc<Buffer>, usize),
        offset: u64,
    ) -> Result<(), ProbeError> {
        let job = Job { sequence, buffer: Arc::clone(buffer), length, offset };
        self.jobs[copy].send(job).map_err(|_| ended())
    }

    /// Waits for the next report of any copy.
    ///
    /// # Errors
    /// All threads of the copies have ended.
    pub fn wait(&self) -> Result<Done, ProbeError> {
        self.done.recv().map_err(|_| ended())
    }

    /// Returns a report that has already arrived, or `None`.
    pub fn poll(&self) -> Option<Done> {
        self.done.try_recv().ok()
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        self.jobs.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // a thread that panicked has nothing to return
        }
    }
}

fn ended() -> ProbeError {
    ProbeError::Thread { what: "ended before its time".to_owned() }
}

fn serve(copy: usize, mut medium: Box<dyn Medium>, jobs: &Receiver<Job>, said: &Sender<Done>, clock: Clock) {
    while let Ok(Job { sequence, buffer, length, offset }) = jobs.recv() {
        let started_ns = clock.now_ns();
        let result = medium.write_durably(buffer.filled(length), offset);
        let ended_ns = clock.now_ns();
        drop(buffer); // before the report, so that the log writer can reuse the buffer
        let cpu_ns = thread_cpu_ns();
        if said.send(Done { copy, sequence, started_ns, ended_ns, cpu_ns, result }).is_err() {
            return;
        }
    }
}
