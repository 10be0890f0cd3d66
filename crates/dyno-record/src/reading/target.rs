//! Server to be read: information from its program and its memory, and whether it may be read at all.

use std::sync::Arc;

use crate::RecordError;
use crate::perf::now_ns;
use crate::process;

use super::arrays::{Arrays, Sample, find};
use super::horizon::Horizons;
use super::looks::Looks;
use super::memory::{Memory, Shared};
use super::pace::Pace;
use super::program::{NOT_FIT, Program, Variables};
use super::stretches::Pause;

/// Number of looks with which the cost of a look is measured.
const TRIED: u64 = 2_000;
/// Number of attempts to verify where the horizons are.
const HORIZONS_TRIED: usize = 3;

/// Server that may be read.
pub struct Target {
    /// Process id of the postmaster.
    pub postmaster: i32,
    /// Path of the server's program.
    pub program: String,
    /// Information from the server's program file.
    pub known: Arc<Program>,
    /// Addresses of the exported variables in the server's processes.
    variables: Variables,
}

/// How a server can be read: mapped or by copies, the time of a look [ns], and why it is not mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadCost {
    /// True if the server's memory is mapped, false if it is copied.
    pub is_mapped: bool,
    /// Time of one look at all processes of the server [ns].
    pub look_ns: u64,
    /// Reason why the memory is not mapped; `None` if it is mapped.
    pub unmapped: Option<String>,
}

/// Measures the time of a look at the server that process `pid` belongs to.
///
/// # Errors
/// The server cannot be read.
pub fn read_cost(pid: i32) -> Result<ReadCost, RecordError> {
    let target = Target::of(pid)?;
    let (memory, arrays) = target.open(true)?;
    let (is_mapped, unmapped) = (memory.is_mapped(), memory.unmapped.clone());
    let mut looks = Looks::new(memory, arrays, target.running(), 0);
    let mut pause = Pause::new(Pace::Spin);
    looks.look(&mut pause);
    let begin_ns = now_ns();
    for _ in 0..TRIED {
        looks.look(&mut pause);
        drop(looks.take());
    }
    Ok(ReadCost { is_mapped, look_ns: (now_ns() - begin_ns) / TRIED, unmapped })
}

impl Target {
    /// Examines the server that process `pid` belongs to.
    ///
    /// # Errors
    /// The process or its program cannot be read, or the version is unknown.
    pub fn of(pid: i32) -> Result<Self, RecordError> {
        let postmaster = process::postmaster(pid)?;
        let program = process::program_name(postmaster)?;
        let known = Program::of(&process::program(postmaster))?;
        let shift = process::base(postmaster)?.wrapping_sub(known.first);
        let Variables { word, proc, entry, header, counters } = known.variables;
        let [word, proc, entry, header] = [word, proc, entry, header].map(|addr| addr.wrapping_add(shift));
        let counters = counters.map(|addr| addr.wrapping_add(shift));
        Ok(Self {
            postmaster,
            program: program.display().to_string(),
            variables: Variables { word, proc, entry, header, counters },
            known,
        })
    }

    /// Returns the two numbers that PostgreSQL uses for the state of a working session.
    pub fn running(&self) -> [u32; 2] {
        self.known.version.running().map(|state| state as u32)
    }

    /// Opens the server's shared memory, and finds the arrays of its processes in it.
    ///
    /// # Errors
    /// The memory cannot be read, or its contents are not as expected.
    pub fn open(&self, may_map: bool) -> Result<(Shared, Arrays), RecordError> {
        let unread = |said: String| RecordError::Unread(said, NOT_FIT);
        let header = process::pointer(self.postmaster, self.variables.header).ok_or_else(|| {
            let error = std::io::Error::last_os_error();
            RecordError::Unread(format!("the postmaster's memory is refused ({error})"), super::memory::BY_RIGHT)
        })?;
        let memory = Shared::open(self.postmaster, header, may_map)?;
        let samples = self.samples(&memory);
        let arrays = find(&memory, header, &samples, self.known.published)
            .map_err(|why| unread(format!("PostgreSQL {}: {why}", self.known.version.text)))?;
        Ok((memory, arrays))
    }

    /// Returns where the memory has the horizons of the server's backends; `None` if that could not be verified.
    pub fn horizons(&self, memory: &Shared, arrays: &Arrays) -> Option<Horizons> {
        let pointer = |variable| process::pointer(self.postmaster, variable).filter(|addr| memory.contains(*addr));
        let places = (pointer(self.variables.header)?, pointer(self.variables.counters?)?);
        // A process that begins or ends in this moment does not fit.
        let mut tried = std::iter::repeat_with(|| self.samples(memory)).take(HORIZONS_TRIED);
        tried.find_map(|samples| Horizons::find(memory, places, arrays, &samples, self.known.version.major))
    }

    fn samples(&self, memory: &Shared) -> Vec<Sample> {
        let pids = process::children(self.postmaster);
        pids.into_iter().filter_map(|pid| self.sample(pid, memory)).collect()
    }

    /// Returns a process's pointers to its elements of the arrays; `None` if they do not point into the shared memory.
    fn sample(&self, pid: i32, memory: &Shared) -> Option<Sample> {
        let inside = |addr: &u64| memory.contains(*addr);
        let proc = process::pointer(pid, self.variables.proc).filter(inside)?;
        let word = process::pointer(pid, self.variables.word).filter(inside)?;
        let entry = process::pointer(pid, self.variables.entry).filter(inside);
        let entry = entry.filter(|entry| memory.u32(entry + super::arrays::PID_AT) == Some(pid as u32));
        Some(Sample { pid, proc, word, entry })
    }
}
