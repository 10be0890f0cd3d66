//! The flash probe: read, write and overwrite one file or device, one phase after the other, every latency kept.
//!
//! ```text
//!   first write   in order, requests of the wanted size, for a while
//!   fill          in order, large requests, up to the end
//!   read          anywhere, for a while
//!   overwrite     anywhere, round after round, until the caller says that it is steady
//! ```
//!
//! `depth` threads have one request under way each. The rows of a phase are written as evidence while the next one
//! runs, so that the device does not rest between rounds.
//!
//! # Limits
//!
//! A thread per request, not `io_uring`: see the limits of the [probe](super). Writing evidence beside the load takes
//! some CPU time from it. Places are drawn with replacement, as SNIA's tests have it. Linux.

mod rows;
mod target;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use dyno_evidence::EvidenceError;
use dyno_script::Rng;
use rows::{Request, Rows};
use serde::{Deserialize, Serialize};
use target::Target;

use super::ProbeError;
use super::buffer::Buffer;
use crate::clock::{Clock, sharpen_sleep};

/// Bytes of a request that fills.
const FILL: usize = 1 << 20;

/// What a flash probe needs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashSpec {
    /// Seed of the places and of the bytes.
    pub seed: u64,
    /// A file that is not there yet; with `destroy` a file or block device whose content is given up.
    pub path: PathBuf,
    /// Bytes of a request, at most 1 MiB.
    pub block_bytes: usize,
    /// Bytes that are used; none is all that a given-up file or device has.
    pub file_bytes: Option<u64>,
    /// Requests under way at a time.
    pub depth: u16,
    /// Words of [`Sync`](super::Sync) joined by `+`.
    pub sync: String,
    /// Whether what is there may be destroyed.
    pub destroy: bool,
}

/// What is done in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Writes in order, from where the last one ended, up to the middle.
    FirstWrite,
    /// Large writes in order, up to the end.
    Fill,
    /// Reads at any place.
    Read,
    /// Writes at any place.
    Overwrite,
}

impl Phase {
    /// All phases, in the order of their arms in the evidence.
    pub const ALL: [Self; 4] = [Self::FirstWrite, Self::Fill, Self::Read, Self::Overwrite];

    /// Its name in the evidence.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::FirstWrite => "first write",
            Self::Fill => "fill",
            Self::Read => "read",
            Self::Overwrite => "overwrite",
        }
    }
}

/// What a phase came to.
#[derive(Debug, Clone, Serialize)]
pub struct FlashReport {
    /// When it began \[ns since the epoch\].
    pub started_ns: i64,
    /// When its last request ended \[ns since the epoch\].
    pub ended_ns: i64,
    /// Requests that ended.
    pub requests: u64,
    /// Bytes of a request.
    pub request_bytes: u64,
    /// How far the file or device was written in order \[bytes\].
    pub written_to: u64,
}

/// An open file or device, phase after phase.
#[derive(Debug)]
pub struct Flash {
    spec: FlashSpec,
    target: Target,
    clock: Clock,
    arms: Vec<String>,
    cursor: AtomicU64,
    unsaved: Option<Rows>,
}

impl Flash {
    /// Checks the specification and opens what it names.
    pub fn open(spec: FlashSpec) -> Result<Self, ProbeError> {
        check(&spec)?;
        let unit = if spec.file_bytes.is_some_and(|bytes| bytes < FILL as u64) { spec.block_bytes } else { FILL };
        let target = Target::open(&spec, unit as u64)?;
        let arms = Phase::ALL.map(|phase| phase.word().to_owned()).to_vec();
        Ok(Self { spec, target, clock: Clock::new(), arms, cursor: AtomicU64::new(0), unsaved: None })
    }

    /// Bytes that are used.
    #[must_use]
    pub const fn span_bytes(&self) -> u64 {
        self.target.span_bytes
    }

    /// Runs a phase for so long, or to where it ends by itself, and at least one request of each session, however late
    /// it was begun; writes the rows of the phase before it meanwhile.
    pub fn run(
        &mut self,
        folder: &Path,
        block: u32,
        phase: Phase,
        length_ns: u64,
        stop: &AtomicBool,
        progress: &AtomicU64,
    ) -> Result<FlashReport, ProbeError> {
        let before = self.unsaved.take();
        let arm = Phase::ALL.iter().position(|one| *one == phase).unwrap_or_default() as u16;
        let started_ns = self.clock.now_ns();
        let end_ns = started_ns.saturating_add(i64::try_from(length_ns).unwrap_or(i64::MAX));
        let work = Work { flash: self, phase, block, end_ns, stop, progress };
        let (sessions, saved) = thread::scope(|scope| -> Result<_, ProbeError> {
            let mut workers = Vec::new();
            for session in 0..self.spec.depth {
                let work = &work;
                let builder = thread::Builder::new().name("flash".to_owned());
                let worker = builder.spawn_scoped(scope, move || work.carry_out(session));
                workers.push(worker.map_err(|e| ProbeError::Thread { what: format!("cannot be started: {e}") })?);
            }
            let saved = before.map(|rows| rows.save(folder, &self.arms));
            let ended: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
            Ok((ended, saved))
        })?;
        let (mut rows, mut failed) = (Rows { block, arm, sessions: Vec::new() }, None);
        for ended in sessions {
            let (requests, error) = ended.map_err(|_| ProbeError::Thread { what: "ended before its time".into() })?;
            rows.sessions.push(requests);
            failed = failed.or(error);
        }
        let ends = rows.sessions.iter().filter_map(|own| own.last()).map(|last| last.started_ns + last.elapsed_ns);
        let report = FlashReport {
            started_ns,
            ended_ns: ends.max().unwrap_or(started_ns),
            requests: rows.sessions.iter().map(|own| own.len() as u64).sum(),
            request_bytes: self.request_bytes(phase),
            written_to: self.cursor.load(Ordering::Relaxed).min(self.target.span_bytes),
        };
        self.unsaved = Some(rows);
        saved.transpose()?;
        match failed {
            Some(error) => Err(ProbeError::io(&self.spec.path, "a request failed", error)),
            None => Ok(report),
        }
    }

    /// Writes the rows of the last phase.
    pub fn save(&mut self, folder: &Path) -> Result<(), EvidenceError> {
        self.unsaved.take().map_or(Ok(()), |rows| rows.save(folder, &self.arms).map(|_| ()))
    }

    const fn request_bytes(&self, phase: Phase) -> u64 {
        match phase {
            Phase::Fill if self.target.span_bytes >= FILL as u64 => FILL as u64,
            _ => self.spec.block_bytes as u64,
        }
    }
}

fn check(spec: &FlashSpec) -> Result<(), ProbeError> {
    let size = spec.block_bytes;
    if !(512..=FILL).contains(&size) || !size.is_power_of_two() {
        let next = "give a power of two from 512 to 1MiB";
        return Err(ProbeError::spec("--size", format!("{size} bytes make no request"), next));
    }
    if !(1..=256).contains(&spec.depth) {
        return Err(ProbeError::spec("--depth", format!("{} is out of range", spec.depth), "give 1 to 256"));
    }
    Ok(())
}

/// What the threads of a phase share.
struct Work<'a> {
    flash: &'a Flash,
    phase: Phase,
    block: u32,
    end_ns: i64,
    stop: &'a AtomicBool,
    progress: &'a AtomicU64,
}

impl Work<'_> {
    /// One thread: its requests, and the error that ended them.
    fn carry_out(&self, session: u16) -> (Vec<Request>, Option<std::io::Error>) {
        sharpen_sleep();
        let Flash { target, clock, spec, .. } = self.flash;
        let bytes = self.flash.request_bytes(self.phase);
        let seed = spec.seed ^ (u64::from(self.block) << 32) ^ (u64::from(session) << 16);
        let (mut dice, mut buffer) = (Rng::new(seed), Buffer::new(bytes as usize, seed));
        let mut requests = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let started_ns = clock.now_ns();
            if started_ns >= self.end_ns && !requests.is_empty() {
                break;
            }
            let Some(offset) = self.place(&mut dice, bytes) else { break };
            // Each request has bytes of its own: no device finds a copy of what it has.
            let here = buffer.filled_mut(bytes as usize);
            here[..8].copy_from_slice(&dice.next_u64().to_le_bytes());
            let done = match self.phase {
                Phase::Read => std::os::unix::fs::FileExt::read_exact_at(&target.file, here, offset),
                _ => target.write(here, offset),
            };
            if let Err(error) = done {
                return (requests, Some(error));
            }
            requests.push(Request { started_ns, elapsed_ns: clock.now_ns() - started_ns });
            self.progress.fetch_add(1, Ordering::Relaxed);
        }
        (requests, None)
    }

    /// Where the next request goes; `None` where a phase in order has come to its end.
    fn place(&self, dice: &mut Rng, bytes: u64) -> Option<u64> {
        let span = self.flash.target.span_bytes;
        let most = match self.phase {
            Phase::FirstWrite => span / 2 / bytes * bytes,
            Phase::Fill => span,
            Phase::Read | Phase::Overwrite => return Some(dice.next_u64() % (span / bytes) * bytes),
        };
        let next = |at: u64| (at < most).then(|| (at + bytes).min(span));
        let begin = self.flash.cursor.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        // The first write may have ended between two large requests: the last one reaches back a little.
        Some(begin.min(span - bytes))
    }
}
