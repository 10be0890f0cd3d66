//! Flash probe: reads, writes and overwrites one file or device in phases, with every latency recorded.
//!
//! ```text
//!   first write   in order, requests of the configured size, for a given time
//!   fill          in order, large requests, up to the end
//!   read          at random offsets, for a given time
//!   overwrite     at random offsets, round after round, until the caller considers it steady
//! ```
//!
//! `depth` threads have one outstanding request each. The rows of a phase are written as evidence while the next
//! phase runs, so that the device does not rest between rounds.
//!
//! # Limits
//!
//! One thread per request instead of `io_uring`: see the limits of the [probe](super). Writing evidence during the
//! load takes some CPU time from it. Offsets are drawn with replacement, as in SNIA's tests. Linux only.

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

/// Size of a request of the fill phase \[bytes\].
const FILL: usize = 1 << 20;

/// Specification of a flash probe.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashSpec {
    /// Seed of the offsets and of the bytes.
    pub seed: u64,
    /// A file that does not exist yet; with `destroy`, a file or block device whose content is overwritten.
    pub path: PathBuf,
    /// Size of a request \[bytes\], at most 1 MiB.
    pub block_bytes: usize,
    /// Number of bytes to use; `None` for all bytes of the existing file or device.
    pub file_bytes: Option<u64>,
    /// Number of outstanding requests.
    pub depth: u16,
    /// How a write reaches the device: words of [`Sync`](super::Sync) joined by `+`.
    pub sync: String,
    /// True if the probe is allowed to destroy existing content.
    pub destroy: bool,
}

/// Kind of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Writes in order, from where the last phase of this kind ended, up to the middle of the file or device.
    FirstWrite,
    /// Large writes in order, up to the end of the file or device.
    Fill,
    /// Reads at random offsets.
    Read,
    /// Writes at random offsets.
    Overwrite,
}

impl Phase {
    /// All phases, in the order of their arms in the evidence.
    pub const ALL: [Self; 4] = [Self::FirstWrite, Self::Fill, Self::Read, Self::Overwrite];

    /// Returns the phase's name in the evidence.
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

/// Result of one phase.
#[derive(Debug, Clone, Serialize)]
pub struct FlashReport {
    /// Start \[ns since the epoch\].
    pub started_ns: i64,
    /// End of the phase's last request \[ns since the epoch\].
    pub ended_ns: i64,
    /// Number of completed requests.
    pub requests: u64,
    /// Size of a request \[bytes\].
    pub request_bytes: u64,
    /// Offset up to which the file or device has been written in order \[bytes\].
    pub written_to: u64,
}

/// Open file or device, on which phases run.
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
    /// Checks the specification and opens its file or device.
    ///
    /// # Errors
    /// The specification is invalid, or the path is not accepted.
    pub fn open(spec: FlashSpec) -> Result<Self, ProbeError> {
        check(&spec)?;
        let unit = if spec.file_bytes.is_some_and(|bytes| bytes < FILL as u64) { spec.block_bytes } else { FILL };
        let target = Target::open(&spec, unit as u64)?;
        let arms = Phase::ALL.map(|phase| phase.word().to_owned()).to_vec();
        Ok(Self { spec, target, clock: Clock::new(), arms, cursor: AtomicU64::new(0), unsaved: None })
    }

    /// Returns the number of bytes that are used.
    #[must_use]
    pub const fn span_bytes(&self) -> u64 {
        self.target.span_bytes
    }

    /// Runs a phase for `length_ns`, or until it reaches the end of its range.
    ///
    /// Every session makes at least one request, however late it begins. The rows of the previous phase are written
    /// meanwhile.
    ///
    /// # Errors
    /// A request failed, a thread could not be started, or the evidence cannot be written.
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
    ///
    /// # Errors
    /// The evidence cannot be written.
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

/// State that the threads of a phase share.
struct Work<'a> {
    flash: &'a Flash,
    phase: Phase,
    block: u32,
    end_ns: i64,
    stop: &'a AtomicBool,
    progress: &'a AtomicU64,
}

impl Work<'_> {
    /// Runs one thread; returns its requests, and the error that stopped them, or `None`.
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
            // Each request has unique bytes, so that no device can deduplicate it.
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

    /// Returns the offset of the next request, or `None` if a sequential phase has reached its end.
    fn place(&self, dice: &mut Rng, bytes: u64) -> Option<u64> {
        let span = self.flash.target.span_bytes;
        let most = match self.phase {
            Phase::FirstWrite => span / 2 / bytes * bytes,
            Phase::Fill => span,
            Phase::Read | Phase::Overwrite => return Some(dice.next_u64() % (span / bytes) * bytes),
        };
        let next = |at: u64| (at < most).then(|| (at + bytes).min(span));
        let begin = self.flash.cursor.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        // The first write may have ended between two large requests: the last request starts a little earlier, then.
        Some(begin.min(span - bytes))
    }
}
