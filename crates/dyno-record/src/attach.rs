//! Opening of all probes of a server on every processor.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::thread::JoinHandle;

use iced_x86::Register;

use crate::claim::{Claim, Means};
use crate::code::Code;
use crate::elf::Image;
use crate::names::{EventNames, all_events};
use crate::perf::{Event, REGISTERS, Ring, Scope, Source};
use crate::place::Value;
use crate::probes::{self, Probe, Version, What};
use crate::process;
use crate::shed::Step;
use crate::tracefs::{self, Defined, Definition};
use crate::{RecordError, Trap};

/// Size of a processor's ring [pages]: 2 MiB.
const RING_PAGES: usize = 512;
const KINDS: &str = "/sys/bus/event_source/devices/uprobe/type";

const BY_RIGHT: &str = "run dbdyno as root, or as the server's own user with CAP_SYS_ADMIN; or record with --mode watch as \
                        the server's own user; `dbdyno doctor` says what is allowed here";

const UNREADABLE: &str = "the kernel does not let dbdyno read the memory of its processes, which shows its sessions";
const BY_TRACE: &str = "run dbdyno as root, or as the server's own user with CAP_SYS_ADMIN; another user needs \
                        CAP_SYS_ADMIN and CAP_SYS_PTRACE";

const WATCHED: &str = "another `dbdyno trace record --mode watch` watches a server of this program, and probes are never \
                       set beside watchpoints";
const BY_WATCH: &str = "end the other recorder, or record with --mode watch";

/// How the meaning of an event's samples is found.
#[derive(Clone, Copy, Debug)]
pub enum Meaning {
    /// Event with a single probe: what the probe reports (with at most one register), and the probe's address.
    Register(What, u64),
    /// Event that many probes share, whose samples have fields.
    Fields(probes::Event),
}

/// Server under probes; all probes are removed when it is dropped.
pub struct Attached {
    /// Process id of the postmaster.
    pub postmaster: i32,
    /// Version of the server.
    pub version: Version,
    /// Path of the server's program.
    pub program: String,
    /// What each event reports, by its id.
    pub events: HashMap<u64, Meaning>,
    /// Class and name of each wait event, by its number.
    pub names: EventNames,
    /// Number of the wait event `ClientRead`.
    pub client_read: u32,
    /// One ring per processor.
    pub rings: Vec<Ring>,
    /// Number of probed store instructions, and how many of them the kernel must single-step.
    pub sites: (usize, usize),
    /// Reason why texts and row counts are missing; `None` if they are recorded.
    pub without_fields: Option<String>,
    /// Cost of a probe.
    pub trap: Trap,
    /// Probes by their addresses in the processes.
    pub places: HashMap<u64, Probe>,
    /// Address of `my_wait_event_info` in the processes.
    pub pointer: u64,
    /// Address of `debug_query_string` in the processes; 0 if it is not exported.
    pub query: u64,
    // Events before definitions: a definition cannot be removed while an event is open on it.
    opened: Vec<Event>,
    defined: Option<Defined>,
    closing: Vec<JoinHandle<()>>,
    // Dropped last: other recorders may set watchpoints only when no probe is left.
    _claim: Claim,
}

/// Returns the numbers of the processors that are online.
fn processors() -> io::Result<Vec<i32>> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    let mut found = Vec::new();
    for part in text.trim().split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let number = |word: &str| word.parse::<i32>().map_err(io::Error::other);
        found.extend(number(from)?..=number(to)?);
    }
    Ok(found)
}

fn kind() -> Result<u32, RecordError> {
    let text = std::fs::read_to_string(KINDS)
        .map_err(|error| RecordError::Refused("uprobes", error, "a kernel with CONFIG_UPROBE_EVENTS is needed"))?;
    text.trim().parse().map_err(|error| RecordError::System(KINDS.to_owned(), io::Error::other(error)))
}

/// Measures the cost of a probe on this machine.
///
/// # Errors
/// The kernel allows no probes.
pub fn trap_cost() -> Result<Trap, RecordError> {
    Ok(measured_trap(kind()?)?.0)
}

/// Returns the cost of a probe, and the probes that were opened to measure it.
fn measured_trap(kind: u32) -> Result<(Trap, Vec<Event>), RecordError> {
    crate::trap::measure(kind).map_err(|error| RecordError::Refused("uprobes", error, BY_RIGHT))
}

/// Returns true if the server computes query ids.
fn query_ids(image: &Image, postmaster: i32, shift: u64) -> bool {
    let read = |name, size: usize| {
        let mut bytes = [0; 4];
        process::read(postmaster, image.symbol(name)?.addr.wrapping_add(shift), &mut bytes[..size])?;
        Some(u32::from_le_bytes(bytes))
    };
    match read("compute_query_id", 4) {
        Some(0) => false,
        Some(1) => true,
        _ => read("query_id_enabled", 1) != Some(0),
    }
}

impl Attached {
    /// Opens the probes of the server that process `pid` belongs to; recording begins with [`Attached::enable`].
    ///
    /// `details` is explained at [`probes::plan`].
    ///
    /// # Errors
    /// The process or its program cannot be read, the version is unknown, or the kernel refuses the probes.
    pub fn to(pid: i32, details: bool) -> Result<Self, RecordError> {
        let postmaster = process::postmaster(pid)?;
        let program = process::program_name(postmaster)?;
        let image = Image::open(&process::program(postmaster))?;
        let version = Version::of(&image)?;
        let claim = Claim::of(postmaster, Means::Sites).ok_or(RecordError::Unprobed(WATCHED, BY_WATCH))?;
        let (functions, addresses) = probes::wanted(&image)?;
        let kind = kind()?;
        let (trap, opened) = measured_trap(kind)?;
        let mut code = Code::read(&image, &functions, &addresses);
        code.long_nops = trap.long_nops;
        let shift = process::base(postmaster)?.wrapping_sub(image.first);
        let name = |name| image.need(name).map(|symbol| symbol.addr);
        let pointer = name("my_wait_event_info")?.wrapping_add(shift);
        process::pointer(postmaster, pointer).ok_or(RecordError::Unprobed(UNREADABLE, BY_TRACE))?;
        let plan = probes::plan(&code, &version, query_ids(&image, postmaster, shift), details)?;
        let (names, client_read) = all_events(&code)?;
        let mut made = Self {
            postmaster,
            version,
            program: program.display().to_string(),
            events: HashMap::new(),
            client_read,
            names,
            rings: Vec::new(),
            sites: (plan.sites.len(), plan.sites.iter().filter(|site| site.is_stepped).count()),
            without_fields: None,
            trap,
            places: plan.probes.iter().map(|probe| (probe.addr.wrapping_add(shift), *probe)).collect(),
            pointer,
            query: image.symbol("debug_query_string").map_or(0, |symbol| symbol.addr.wrapping_add(shift)),
            opened,
            defined: None,
            closing: Vec::new(),
            _claim: claim,
        };
        made.open(&plan.probes, kind, shift)?;
        Ok(made)
    }

    /// Defines probes with fields; returns each event's index and kernel number. The result is empty if the kernel
    /// refuses.
    fn define(&mut self, probes: &[Probe]) -> Vec<(usize, u64)> {
        let definitions: Vec<Definition> = probes
            .iter()
            .map(|probe| {
                let (event, fields) = probe.fields();
                Definition { event: event as usize, offset: probe.offset, fields }
            })
            .collect();
        match tracefs::define(&process::program(self.postmaster), &definitions) {
            Ok(defined) => {
                let numbers = defined.numbers.clone();
                self.defined = Some(defined);
                numbers
            }
            Err(error) => {
                self.without_fields = Some(error.to_string());
                Vec::new()
            }
        }
    }

    fn open(&mut self, probes: &[Probe], kind: u32, shift: u64) -> Result<(), RecordError> {
        let refused = |error| RecordError::Refused("perf_event_open", error, BY_RIGHT);
        let processors = processors().map_err(|error| RecordError::System("processors".to_owned(), error))?;
        let numbers = self.define(probes);
        let program = CString::new(process::program(self.postmaster).display().to_string())
            .map_err(|error| RecordError::System("the program's path".to_owned(), io::Error::other(error)))?;
        let is_light = !numbers.is_empty() && process::numbers_are_the_kernels();
        let wanted: Vec<(Source<'_>, Option<u32>, Meaning)> = if numbers.is_empty() {
            allow_files((probes.len() + 1) * processors.len() + 64);
            let one = |probe: &Probe| {
                let source = Source::Probe(kind, &program, probe.offset);
                (
                    source,
                    probe.what.register().map(number),
                    Meaning::Register(probe.what, probe.addr.wrapping_add(shift)),
                )
            };
            probes.iter().map(one).collect()
        } else {
            let told = |at: usize| Meaning::Fields(probes::Event::ALL[at]);
            let source = |number: &u64| Source::Tracepoint(*number, is_light);
            numbers.iter().map(|(at, number)| (source(number), None, told(*at))).collect()
        };
        for cpu in processors {
            let scope = Scope { pid: -1, cpu };
            let first = Event::open(&Source::Tasks(is_light), scope, None).map_err(refused)?;
            let mut ring = Ring::of(&first, RING_PAGES).map_err(refused)?;
            ring.is_light = is_light;
            self.rings.push(ring);
            let at = self.opened.len();
            self.opened.push(first);
            for (source, register, told) in &wanted {
                let event = Event::open(source, scope, *register).map_err(refused)?;
                event.into_ring_of(&self.opened[at]).map_err(refused)?;
                self.events.insert(event.id, *told);
                self.opened.push(event);
            }
        }
        Ok(())
    }

    /// Enables all events.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn enable(&self) -> Result<(), RecordError> {
        let failed = |error| RecordError::System("a probe cannot be switched on".to_owned(), error);
        self.opened.iter().try_for_each(|event| event.enable().map_err(failed))
    }

    /// Returns whether an event's samples contain a register, and whether they contain fields.
    pub fn holds(&self, id: u64) -> (bool, bool) {
        match self.events.get(&id) {
            Some(Meaning::Register(what, _)) => (what.register().is_some(), false),
            Some(Meaning::Fields(_)) => (false, true),
            None => (false, false),
        }
    }

    /// Closes the probes of a step (a group of probes that is removed together); samples that they still produce are
    /// ignored from now on.
    pub fn shed(&mut self, step: Step) {
        let places = &self.places;
        let is_of_step = |told: &Meaning| match told {
            Meaning::Register(_, place) => places.get(place).and_then(Probe::step) == Some(step),
            Meaning::Fields(event) => event.step() == Some(step),
        };
        let opened = std::mem::take(&mut self.opened).into_iter();
        let (shed, kept): (Vec<_>, Vec<_>) =
            opened.partition(|event| self.events.get(&event.id).is_some_and(is_of_step));
        self.opened = kept;
        self.events.retain(|_, told| !is_of_step(told));
        // Closing waits for a grace period of the kernel, during which the rings must be drained.
        self.closing.push(std::thread::spawn(move || drop(shed)));
    }

    /// Returns what a sample reports, and the reported number (0 if there is none); `None` for an unknown event.
    pub fn meaning(&self, id: u64, register: u64, raw: &[u8]) -> Option<(What, u64)> {
        match self.events.get(&id)? {
            Meaning::Fields(event) => event.meaning(raw),
            Meaning::Register(what @ What::Wait(Value::Known(event)), _) => Some((*what, u64::from(*event))),
            Meaning::Register(what, _) => Some((*what, register)),
        }
    }

    /// Returns the address of the probe that produced a sample; 0 if unknown.
    pub fn place(&self, id: u64, raw: &[u8]) -> u64 {
        match self.events.get(&id) {
            Some(Meaning::Fields(_)) => tracefs::number(raw, tracefs::PLACE).unwrap_or(0),
            Some(Meaning::Register(_, place)) => *place,
            None => 0,
        }
    }

    /// Returns the cost of one note of the probe at this address [ns].
    pub fn price_ns(&self, place: u64) -> u64 {
        let is_stepped = self.places.get(&place).is_some_and(|probe| probe.is_stepped);
        if is_stepped { self.trap.stepped_ns } else { self.trap.emulated_ns }
    }
}

/// Number of threads that close events: the kernel waits for a grace period per event, and parallel waits overlap.
const CLOSERS: usize = 64;

impl Drop for Attached {
    fn drop(&mut self) {
        self.rings.clear();
        let mut left = std::mem::take(&mut self.opened);
        let each = left.len().div_ceil(CLOSERS).max(1);
        let mut threads = std::mem::take(&mut self.closing);
        while !left.is_empty() {
            let some = left.split_off(left.len().saturating_sub(each));
            threads.push(std::thread::spawn(move || drop(some)));
        }
        for thread in threads {
            drop(thread.join());
        }
        drop(self.defined.take());
    }
}

fn number(register: Register) -> u32 {
    REGISTERS[register.full_register().number()]
}

/// Raises the limit on open files to what the probes of all processors need, at most to the hard limit.
pub(crate) fn allow_files(needed: usize) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid during both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 && limit.rlim_cur < (needed + 256) as u64 {
            limit.rlim_cur = limit.rlim_max.min((needed + 256) as u64);
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}
