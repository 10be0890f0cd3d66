//! The threads that write the copies of a log, one per path, each in the order it is told.
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

/// A write for a copy.
#[derive(Debug)]
struct Job {
    sequence: u64,
    buffer: Arc<Buffer>,
    length: usize,
    offset: u64,
}

/// What a copy says when a write is durable on its path, or has failed.
#[derive(Debug)]
pub(super) struct Done {
    /// Which copy, from 0.
    pub copy: usize,
    /// Number of the write.
    pub sequence: u64,
    /// When the device was asked \[ns since the epoch\].
    pub started_ns: i64,
    /// When it was durable \[ns since the epoch\].
    pub ended_ns: i64,
    /// CPU time of the copy's thread so far \[ns\].
    pub cpu_ns: u64,
    /// Whether it went well.
    pub result: io::Result<()>,
}

/// The copies' threads; they end when this is dropped.
#[derive(Debug)]
pub(super) struct Copies {
    jobs: Vec<Sender<Job>>,
    done: Receiver<Done>,
    threads: Vec<JoinHandle<()>>,
}

impl Copies {
    /// Starts a thread per medium.
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

    /// Hands a write to a copy.
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

    /// Waits for the next write to be durable somewhere.
    pub fn wait(&self) -> Result<Done, ProbeError> {
        self.done.recv().map_err(|_| ended())
    }

    /// A write that is durable already, if there is one.
    pub fn poll(&self) -> Option<Done> {
        self.done.try_recv().ok()
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        self.jobs.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // a thread that panicked has nothing left to say
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
        drop(buffer); // before it is said, so that the log writer can use it again
        let cpu_ns = thread_cpu_ns();
        if said.send(Done { copy, sequence, started_ns, ended_ns, cpu_ns, result }).is_err() {
            return;
        }
    }
}
