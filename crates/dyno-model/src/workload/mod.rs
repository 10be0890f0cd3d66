//! Workloads of sessions: small typed programs, spawned on an instance.
//!
//! ```toml
//! kind = "commit-loop"
//! redo_bytes = "4KiB..12MiB"
//! ```
//!
//! Each session repeats one transaction. After a given number of transactions as a warm-up, the sessions wait for one
//! another; when the last arrives, the statistics of instance and devices are reset and recording begins ([`Stop`]).
//! Random numbers come from streams named after (session, purpose), so that two arms with one seed get the same think
//! times, sizes and keys.

mod commit_loop;
mod key_lookup;
mod scan_jobs;
mod sizes;
mod sort_load;
mod stop;
mod update_loop;

use std::fmt::Display;
use std::ops::Range;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

pub use commit_loop::CommitLoop;
pub use key_lookup::KeyLookup;
pub use scan_jobs::ScanJobs;
pub use sizes::Sizes;
pub use sort_load::SortLoad;
pub use stop::{Limit, Progress, Stop};
pub use update_loop::UpdateLoop;

use crate::database::{Instance, ParameterError, Session};
use crate::device::{Outside, Parameter, outside, shown};
use crate::kernel::sample::whole_ns;
use crate::kernel::zipf::Zipf;
use crate::kernel::{Sim, Stream};

/// A workload.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Workload {
    /// Redo and commits.
    CommitLoop(CommitLoop),
    /// Changes of random blocks.
    UpdateLoop(UpdateLoop),
    /// Lookups of rows by key.
    KeyLookup(KeyLookup),
    /// Scans.
    ScanJobs(ScanJobs),
    /// Sorts.
    Sort(SortLoad),
}

/// Work of one session.
enum Work {
    CommitLoop(Box<commit_loop::Work>),
    UpdateLoop(Box<update_loop::Work>),
    KeyLookup(Box<key_lookup::Work>),
    ScanJobs(Box<scan_jobs::Work>),
    Sort(Box<sort_load::Work>),
}

impl Work {
    async fn transaction(&mut self, session: &mut Session) {
        match self {
            Self::CommitLoop(work) => work.transaction(session).await,
            Self::UpdateLoop(work) => work.transaction(session).await,
            Self::KeyLookup(work) => work.transaction(session).await,
            Self::ScanJobs(work) => work.transaction(session).await,
            Self::Sort(work) => work.transaction(session).await,
        }
    }
}

impl Workload {
    /// All kinds of workloads.
    pub const KINDS: [&'static str; 5] = ["commit-loop", "update-loop", "key-lookup", "scan-jobs", "sort"];

    /// Returns the kind of the workload, as written after `kind =`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::CommitLoop(_) => "commit-loop",
            Self::UpdateLoop(_) => "update-loop",
            Self::KeyLookup(_) => "key-lookup",
            Self::ScanJobs(_) => "scan-jobs",
            Self::Sort(_) => "sort",
        }
    }

    /// Returns the table of the workload's parameters: the meaning and source of each parameter.
    pub fn table(&self) -> &'static [Parameter] {
        match self {
            Self::CommitLoop(_) => CommitLoop::TABLE,
            Self::UpdateLoop(_) => UpdateLoop::TABLE,
            Self::KeyLookup(_) => KeyLookup::TABLE,
            Self::ScanJobs(_) => ScanJobs::TABLE,
            Self::Sort(_) => SortLoad::TABLE,
        }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// A parameter has an impossible value.
    pub fn check(&self) -> Result<(), ParameterError> {
        let wrong = match self {
            Self::CommitLoop(load) => outside(load, self.table()),
            Self::UpdateLoop(load) => outside(load, self.table()),
            Self::KeyLookup(load) => outside(load, self.table()),
            Self::ScanJobs(load) => outside(load, self.table()),
            Self::Sort(load) => outside(load, self.table()),
        };
        if let Some(outside) = wrong {
            return Err(wrong_number(&outside));
        }
        match self {
            Self::CommitLoop(load) => load.check(),
            Self::UpdateLoop(load) => check_popularity("blocks", load.blocks, load.skew),
            Self::KeyLookup(load) => check_popularity("keys", load.keys, load.skew),
            Self::ScanJobs(_) => Ok(()),
            Self::Sort(load) => load.check(),
        }
    }

    /// Starts sessions `0..sessions`.
    ///
    /// # Errors
    /// A parameter has an impossible value.
    pub fn spawn(
        &self,
        sim: &Sim,
        instance: &Instance,
        sessions: u32,
        stop: &Stop,
    ) -> Result<Progress, ParameterError> {
        self.spawn_numbered(sim, instance, 0..sessions, stop)
    }

    /// Starts sessions with these numbers, beside those of another workload. At the end of the warm-up they wait for
    /// one another, but not for the other workload's sessions.
    ///
    /// # Errors
    /// A parameter has an impossible value.
    pub fn spawn_numbered(
        &self,
        sim: &Sim,
        instance: &Instance,
        numbers: Range<u32>,
        stop: &Stop,
    ) -> Result<Progress, ParameterError> {
        self.check()?;
        let sessions = numbers.end.saturating_sub(numbers.start);
        at_least("sessions", u64::from(sessions), 1)?;
        let zipf = match self {
            Self::UpdateLoop(load) => popularity(load.blocks, load.skew),
            Self::KeyLookup(load) => popularity(load.keys, load.skew),
            _ => None,
        };
        let gate = stop::Gate::new(sim, instance, sessions, stop);
        for number in numbers {
            let work = match self {
                Self::CommitLoop(load) => Work::CommitLoop(Box::new(load.work(instance, number)?)),
                Self::UpdateLoop(load) => Work::UpdateLoop(Box::new(load.work(instance, number, zipf.clone()))),
                Self::KeyLookup(load) => Work::KeyLookup(Box::new(load.work(instance, number, zipf.clone()))),
                Self::ScanJobs(load) => Work::ScanJobs(Box::new(load.work(instance, number))),
                Self::Sort(load) => Work::Sort(Box::new(load.work(instance, number))),
            };
            let session = live(instance.session(number), work, gate.clone());
            if stop.is_never() {
                sim.spawn_daemon("session beside", session);
            } else {
                sim.spawn("session", session);
            }
        }
        Ok(gate.progress().clone())
    }
}

/// Runs a session from its first transaction to its last.
async fn live(mut session: Session, mut work: Work, gate: stop::Gate) {
    for _ in 0..gate.warmup() {
        work.transaction(&mut session).await;
    }
    gate.pass(&mut session).await;
    let mut done = 0;
    while gate.goes_on(done) {
        work.transaction(&mut session).await;
        done += 1;
        gate.progress().count();
    }
    gate.end(&session);
}

/// Returns the random stream of a session for a purpose.
fn dice(instance: &Instance, session: u32, purpose: &str) -> Stream {
    instance.stream(&format!("session {session}/{purpose}"))
}

async fn think(session: &mut Session, mean_ms: f64, dice: &mut Stream) {
    if mean_ms > 0.0 {
        session.think(whole_ns(dice.exponential(mean_ms * 1e6))).await;
    }
}

async fn compute(session: &mut Session, median_us: f64, sigma: f64, dice: &mut Stream) {
    session.compute(whole_ns(dice.lognormal(median_us * 1e3, sigma))).await;
}

/// Returns a random block; popular blocks are scattered over the table.
fn block(blocks: u64, zipf: Option<&Zipf>, dice: &mut Stream) -> u64 {
    match zipf {
        Some(zipf) => scatter(u64::from(zipf.sample(dice)), blocks),
        None => dice.below(blocks),
    }
}

/// Permutes the numbers below `count`: multiplies by a factor that has no common divisor with `count`.
fn scatter(number: u64, count: u64) -> u64 {
    let shares = |factor: u64| {
        let (mut a, mut b) = (factor, count);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a > 1
    };
    let factors = 2_654_435_761..2_654_440_000;
    let factor = factors.into_iter().find(|&factor| !shares(factor)).unwrap_or(1);
    (u128::from(number) * u128::from(factor) % u128::from(count)) as u64
}

fn wrong(key: &'static str, found: impl Display, allowed: String) -> ParameterError {
    let found = found.to_string();
    ParameterError { key, found, allowed }
}

fn at_least(key: &'static str, found: u64, least: u64) -> Result<(), ParameterError> {
    if found < least { Err(wrong(key, found, format!("{least} or more"))) } else { Ok(()) }
}

fn wrong_number(outside: &Outside) -> ParameterError {
    wrong(outside.key, shown(outside.found), outside.allowed())
}

/// Largest number of items with uneven popularity, each of which takes memory.
const ITEMS_MOST: u64 = 10_000_000;

/// Checks that there are at most [`ITEMS_MOST`] items if their popularity is uneven.
fn check_popularity(key: &'static str, items: u64, skew: f64) -> Result<(), ParameterError> {
    if skew > 0.0 && items > ITEMS_MOST {
        return Err(wrong(key, items, format!("{ITEMS_MOST} or less where skew is above 0")));
    }
    Ok(())
}

fn popularity(items: u64, skew: f64) -> Option<Rc<Zipf>> {
    (skew > 0.0).then(|| Rc::new(Zipf::new(items as u32, skew)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattering_loses_nothing() {
        for count in [1, 2, 10, 1_000] {
            let mut all: Vec<u64> = (0..count).map(|number| scatter(number, count)).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..count));
        }
    }
}
