//! Server to be read: information from its program and its memory, and whether it may be read at all.

use std::collections::HashMap;

use crate::RecordError;
use crate::attach::all_names;
use crate::code::Code;
use crate::elf::Image;
use crate::names::Names;
use crate::perf::now_ns;
use crate::probes::{self, Version};
use crate::process;
use crate::watch::layout::layout;

use super::arrays::{Arrays, Published, Sample, find};
use super::looks::Looks;
use super::memory::{Memory, Shared};
use super::pace::Pace;
use super::stretches::Pause;

const NOT_FIT: &str = "record with --mode sites or --mode watch, and send us the server's version";
/// Number of looks for measuring their cost.
const TRIED: u64 = 2_000;

/// Server that may be read.
pub struct Target {
    /// Process id of the postmaster.
    pub postmaster: i32,
    /// Version of the server.
    pub version: Version,
    /// Path of the server's program.
    pub program: String,
    /// Class and name of each wait event, by its number.
    pub names: HashMap<u32, (String, String)>,
    /// Number of the wait event `ClientRead`.
    pub client_read: u32,
    variables: Variables,
    published: Published,
}

/// Addresses of exported variables in the server's processes.
#[derive(Clone, Copy, Debug)]
struct Variables {
    word: u64,
    proc: u64,
    entry: u64,
    header: u64,
}

/// How a server can be read: mapped or by copies, the time of a look [ns], and why it is not mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadCost {
    /// True if its memory is mapped, false if it is copied.
    pub is_mapped: bool,
    /// Time of one look at all of its processes [ns].
    pub look_ns: u64,
    /// Reason why it is not mapped, if it is not.
    pub unmapped: Option<String>,
}

/// Measures a look at the server that process `pid` belongs to.
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
        let image = Image::open(&process::program(postmaster))?;
        let version = Version::of(&image)?;
        let (functions, addresses) = probes::wanted(&image)?;
        let code = Code::read(&image, &functions, &addresses);
        let shift = process::base(postmaster)?.wrapping_sub(image.first);
        let address = |name| image.need(name).map(|symbol| symbol.addr);
        let names = all_names(&mut Names::new(
            &code,
            address("pgstat_get_wait_event")?,
            address("pgstat_get_wait_event_type")?,
        ));
        let client_read = names.iter().find(|(_, name)| name.1 == "ClientRead").map(|(number, _)| *number);
        let loaded = |name| address(name).map(|addr| addr.wrapping_add(shift));
        let places = layout(&code, &image).and_then(|found| Some((found.query_id, found.text?)));
        let (query_id, text) = places.ok_or_else(|| {
            let said = "the code that publishes statements is not as expected".to_owned();
            RecordError::Unread(said, NOT_FIT)
        })?;
        Ok(Self {
            postmaster,
            version,
            program: program.display().to_string(),
            client_read: client_read.ok_or(RecordError::Symbol("the event ClientRead"))?,
            names,
            variables: Variables {
                word: loaded("my_wait_event_info")?,
                proc: loaded("MyProc")?,
                entry: loaded("MyBEEntry")?,
                header: loaded("ProcGlobal")?,
            },
            published: Published { query_id, text },
        })
    }

    /// Returns the states of a working session.
    pub fn running(&self) -> [u32; 2] {
        self.version.running().map(|state| state as u32)
    }

    /// Opens the server's shared memory, and finds the arrays of its processes in it.
    ///
    /// # Errors
    /// The memory cannot be read, or what is in it does not fit.
    pub fn open(&self, may_map: bool) -> Result<(Shared, Arrays), RecordError> {
        let unread = |said: String| RecordError::Unread(said, NOT_FIT);
        let header = process::pointer(self.postmaster, self.variables.header).ok_or_else(|| {
            let error = std::io::Error::last_os_error();
            RecordError::Unread(format!("the postmaster's memory is refused ({error})"), super::memory::BY_RIGHT)
        })?;
        let memory = Shared::open(self.postmaster, header, may_map)?;
        let pids = process::children(self.postmaster);
        let samples: Vec<Sample> = pids.into_iter().filter_map(|pid| self.sample(pid, &memory)).collect();
        let arrays = find(&memory, header, &samples, self.published)
            .map_err(|why| unread(format!("PostgreSQL {}: {why}", self.version.text)))?;
        Ok((memory, arrays))
    }

    /// Returns a process's pointers to its elements; `None` if it has none in the shared memory.
    fn sample(&self, pid: i32, memory: &Shared) -> Option<Sample> {
        let inside = |addr: &u64| memory.contains(*addr);
        let proc = process::pointer(pid, self.variables.proc).filter(inside)?;
        let word = process::pointer(pid, self.variables.word).filter(inside)?;
        let entry = process::pointer(pid, self.variables.entry).filter(inside);
        let entry = entry.filter(|entry| memory.u32(entry + super::arrays::PID_AT) == Some(pid as u32));
        Some(Sample { pid, proc, word, entry })
    }
}
