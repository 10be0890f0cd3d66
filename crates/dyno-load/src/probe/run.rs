//! Execution of a probe ([`Probe`]): the logs of all arms, and one block after the other.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::Serialize;

use super::block::Head;
use super::count::Counts;
use super::file::LogFile;
use super::medium::{Medium, Sink};
use super::record::{Commit, Rows};
use super::sessions::Sessions;
use super::spec::{ProbeArm, ProbeSpec, Sync};
use super::writer::LogWriter;
use super::{ProbeError, Sizes};
use crate::clock::{Clock, sharpen_sleep, thread_cpu_ns};
use crate::slice::{Length, Slice};
use crate::tally::ArmReport;

/// Receiver of acknowledgements, which is called immediately after each write, before anything else happens.
pub trait Acknowledged: Send {
    /// Called when the commits of an arm up to this number are durable.
    fn commits(&mut self, arm: u16, number: u64);
}

/// Ignores acknowledgements.
impl Acknowledged for () {
    fn commits(&mut self, _arm: u16, _number: u64) {}
}

/// Report of one block; its fields have the same names as in a report of the load.
#[derive(Debug, Clone, Serialize)]
pub struct ProbeReport {
    /// Start \[ns since the epoch\].
    pub started_ns: i64,
    /// End \[ns since the epoch\].
    pub ended_ns: i64,
    /// Always 0: there are no connections.
    pub reconnects: u64,
    /// CPU time of the log writer and of the paths' threads \[ns\].
    pub cpu_ns: u64,
    /// One report per arm that ran.
    pub arms: Vec<ArmReport>,
}

/// Log of an arm with its sessions.
struct Arm {
    sessions: Sessions,
    writer: LogWriter,
    batch_bytes_max: u64,
    open: bool,
    session_count: u16,
    // Declared after the writer, so that the writer's threads have ended when the files are removed.
    _files: Vec<LogFile>,
}

/// Log writers on real files, ready to run block after block; removes its files when dropped.
pub struct Probe {
    arms: Vec<Arm>,
    names: Vec<String>,
    rows: Rows,
    clock: Clock,
}

impl Probe {
    /// Creates the files of all arms; `run` is the id that marks the blocks of this run.
    ///
    /// # Errors
    /// The specification is invalid, or a file cannot be created.
    pub fn new(spec: &ProbeSpec, run: u64) -> Result<Self, ProbeError> {
        Self::on(spec, run, |arm| files(arm, run))
    }

    /// Creates a probe on a sink instead of files, to measure the probe's own cost.
    ///
    /// # Errors
    /// The specification is invalid.
    pub fn on_sink(spec: &ProbeSpec) -> Result<Self, ProbeError> {
        Self::on_media(spec, 0, |_, _| Box::new(Sink))
    }

    /// Creates a probe on the caller's media; `medium` receives the numbers of arm and path.
    ///
    /// # Errors
    /// The specification is invalid, or a thread cannot be started.
    pub fn on_media(
        spec: &ProbeSpec,
        run: u64,
        mut medium: impl FnMut(usize, usize) -> Box<dyn Medium>,
    ) -> Result<Self, ProbeError> {
        let mut number = 0;
        Self::on(spec, run, |arm| {
            let media = (0..arm.paths.len()).map(|path| medium(number, path)).collect();
            number += 1;
            Ok((Vec::new(), media))
        })
    }

    fn on(spec: &ProbeSpec, run: u64, mut make: impl FnMut(&ProbeArm) -> Made) -> Result<Self, ProbeError> {
        let clock = Clock::new();
        let mut arms = Vec::new();
        for (number, arm) in spec.arms.iter().enumerate() {
            let (files, media) = make(arm)?;
            let sizes: Sizes = arm.size.parse()?;
            let seed = spec.seed.wrapping_add((number as u64) << 32);
            arms.push(Arm {
                sessions: Sessions::new(arm, sizes, seed),
                writer: LogWriter::new(arm, run, media, clock)?,
                batch_bytes_max: arm.batch_bytes_max(),
                open: arm.rate_per_s.is_some(),
                session_count: arm.sessions,
                _files: files,
            });
        }
        let names = spec.arms.iter().map(|arm| arm.name.clone()).collect();
        Ok(Self { arms, names, rows: Rows::default(), clock })
    }

    /// Runs the slices of a block; its rows are kept until [`Probe::save`].
    ///
    /// `progress` is increased by the number of acknowledged commits.
    ///
    /// # Errors
    /// A write failed, a thread ended, or a slice names an arm that does not exist.
    pub fn run(
        &mut self,
        block: u32,
        slices: &[Slice],
        stop: &AtomicBool,
        progress: &AtomicU64,
        told: &mut dyn Acknowledged,
    ) -> Result<ProbeReport, ProbeError> {
        sharpen_sleep();
        let (started_ns, cpu) = (self.clock.now_ns(), self.cpu_ns());
        let mut reports: Vec<ArmReport> = Vec::new();
        for slice in slices {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            self.rows.turn(block, slice.slice, slice.arm);
            let arm = self
                .arms
                .get_mut(usize::from(slice.arm))
                .ok_or_else(|| ProbeError::spec("slice", format!("no arm {}", slice.arm), "name an arm"))?;
            let mut turn =
                Turn { arm, number: slice.arm, rows: &mut self.rows, clock: self.clock, stop, progress, told };
            let report = turn.run(slice.length)?;
            match reports.iter_mut().find(|own| own.arm == slice.arm) {
                Some(own) => {
                    own.transactions += report.transactions;
                    own.skipped += report.skipped;
                    own.busy_ns += report.busy_ns;
                    own.lag_max_ns = own.lag_max_ns.max(report.lag_max_ns);
                }
                None => reports.push(report),
            }
        }
        let ended_ns = self.clock.now_ns();
        let cpu_ns = self.cpu_ns().saturating_sub(cpu);
        Ok(ProbeReport { started_ns, ended_ns, reconnects: 0, cpu_ns, arms: reports })
    }

    /// Writes the rows of the block to `<folder>/calls/<name>.parquet` and `<folder>/waits/<name>.parquet`.
    ///
    /// Returns the number of calls.
    ///
    /// # Errors
    /// The evidence cannot be written.
    pub fn save(&mut self, folder: &Path, name: &str) -> Result<u64, ProbeError> {
        Ok(self.rows.save(folder, name, &self.names)?)
    }

    /// Discards the rows of the current block.
    pub fn abandon(&mut self) {
        self.rows.clear();
    }

    /// Returns the counters so far, one entry per arm.
    pub fn counts(&self) -> Vec<&Counts> {
        self.arms.iter().map(|arm| &arm.writer.counts).collect()
    }

    fn cpu_ns(&self) -> u64 {
        thread_cpu_ns() + self.arms.iter().map(|arm| arm.writer.copies_cpu_ns()).sum::<u64>()
    }
}

type Made = Result<(Vec<LogFile>, Vec<Box<dyn Medium>>), ProbeError>;

fn files(arm: &ProbeArm, run: u64) -> Made {
    let sync: Sync = arm.sync.parse()?;
    let (mut files, mut media) = (Vec::new(), Vec::<Box<dyn Medium>>::new());
    for (copy, path) in arm.paths.iter().enumerate() {
        let head = Head {
            run,
            block_bytes: arm.block_bytes,
            slots: arm.slots(),
            copy: copy as u32 + 1,
            copies: arm.paths.len() as u32,
        };
        let (file, medium) = LogFile::create(path, &head, arm.file_bytes, sync, arm.keep)?;
        files.push(file);
        media.push(Box::new(medium));
    }
    Ok((files, media))
}

/// One slice of one arm.
struct Turn<'a> {
    arm: &'a mut Arm,
    number: u16,
    rows: &'a mut Rows,
    clock: Clock,
    stop: &'a AtomicBool,
    progress: &'a AtomicU64,
    told: &'a mut dyn Acknowledged,
}

impl Turn<'_> {
    fn run(&mut self, length: Length) -> Result<ArmReport, ProbeError> {
        let began = self.clock.now_ns();
        let (end, most) = match length {
            Length::DurationNs(ns) => (began.saturating_add(ns as i64), u64::MAX),
            Length::Transactions(count) => (i64::MAX, count),
        };
        let mut report = ArmReport { arm: self.number, ..ArmReport::default() };
        let mut pending = VecDeque::new();
        self.arm.sessions.begin(began, end);
        loop {
            let now = self.clock.now_ns();
            if self.stop.load(Ordering::Relaxed) {
                self.arm.sessions.cut_short(now);
            }
            let left = most - report.transactions;
            let room = usize::try_from(left).unwrap_or(usize::MAX);
            self.arm.sessions.arrived(now, room, &mut pending);
            if !pending.is_empty() {
                self.write(&mut pending, &mut report)?;
                continue;
            }
            match self.arm.sessions.next_ns() {
                Some(next) if left > 0 => {
                    let woken = self.clock.sleep_until(next, || self.stop.load(Ordering::Relaxed));
                    report.lag_max_ns = report.lag_max_ns.max(woken - next);
                }
                _ => break,
            }
        }
        for intended_ns in self.arm.sessions.given_up() {
            self.rows.skipped(intended_ns);
            report.skipped += 1;
        }
        self.arm.writer.drain(self.rows)?;
        let length_ns = (self.clock.now_ns() - began).max(0) as u64;
        report.busy_ns = length_ns * u64::from(self.arm.session_count);
        if !self.arm.open {
            report.lag_max_ns = 0;
        }
        Ok(report)
    }

    /// Makes one write to the log, and records the commits that it acknowledges.
    ///
    /// The write takes the pending commits in order, as many as fit; a commit that is larger than a write takes
    /// several.
    fn write(&mut self, pending: &mut VecDeque<Commit>, report: &mut ArmReport) -> Result<(), ProbeError> {
        let most = self.arm.batch_bytes_max;
        let mut taken = 0;
        let mut redo = 0;
        for commit in pending.iter() {
            if taken > 0 && redo + commit.redo_bytes > most {
                break;
            }
            redo += commit.redo_bytes;
            taken += 1;
        }
        let before = self.arm.writer.counts.commits;
        let after = before + taken;
        let mut left = redo;
        while left > most {
            self.arm.writer.write(most, before, self.rows)?;
            left -= most;
        }
        let (sequence, acknowledged_ns) = self.arm.writer.write(left, after, self.rows)?;
        self.told.commits(self.number, after);
        self.arm.writer.counts.commits = after;
        self.arm.writer.counts.redo_bytes += redo;
        for commit in pending.drain(..taken as usize) {
            self.rows.commit(&commit, sequence, acknowledged_ns);
            self.arm.sessions.acknowledged(commit.session, acknowledged_ns);
        }
        report.transactions += taken;
        self.progress.fetch_add(taken, Ordering::Relaxed);
        Ok(())
    }
}
