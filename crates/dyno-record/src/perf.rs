//! `perf_event_open`: opening events, the rings they write into, and the records in them. Small, and all of the crate's
//! dealings with the kernel that need `unsafe`.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::notes;
pub use crate::notes::{Note, Record};

/// What an event is, as the kernel takes it (`struct perf_event_attr`, its first 128 bytes).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint_kind: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    max_stack: u16,
    reserved: u16,
    aux_sample_size: u32,
    reserved2: u32,
    sig_data: u64,
}

const SOFTWARE: u32 = 1;
const TRACEPOINT: u32 = 2;
const BREAKPOINT: u32 = 5;
const SW_DUMMY: u64 = 9;
const BREAKPOINT_WRITE: u32 = 2;

const SAMPLE_IP: u64 = 1;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_ADDR: u64 = 1 << 3;
const SAMPLE_RAW: u64 = 1 << 10;
const SAMPLE_REGS_USER: u64 = 1 << 12;
const SAMPLE_STACK_USER: u64 = 1 << 13;
const SAMPLE_IDENTIFIER: u64 = 1 << 16;

const DISABLED: u64 = 1;
const EXCLUDE_HV: u64 = 1 << 6;
const TASK: u64 = 1 << 13;
const WATERMARK: u64 = 1 << 14;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCKID: u64 = 1 << 25;
const CONTEXT_SWITCH: u64 = 1 << 26;
const EXCLUDE_KERNEL: u64 = 1 << 5;

const CLOEXEC: u64 = 8;
const ENABLE: u64 = 0x2400;
const SET_OUTPUT: u64 = 0x2405;
const ID: u64 = 0x8008_2407;

/// Numbers of the sixteen registers as perf counts them, in the processor's own order (rax, rcx, rdx, rbx, rsp ...).
pub const REGISTERS: [u32; 16] = [0, 2, 3, 1, 7, 6, 4, 5, 16, 17, 18, 19, 20, 21, 22, 23];

/// All general registers, as bits.
const GENERAL: u64 = 0x00ff_00ff;

/// What an event is to note.
#[derive(Clone, Debug)]
pub enum Source<'a> {
    /// A probe of the kernel's own kind: (number of the kind, program, offset in the file).
    Probe(u32, &'a std::ffi::CStr, u64),
    /// A defined tracepoint, by its number: with its fields, and nothing but them and the time where it is `true`.
    Tracepoint(u64, bool),
    /// Forks, exits, and who is on the processor; with nothing but the time behind them where it is `true`.
    Tasks(bool),
    /// Switches and exit of one process, for its owner.
    OwnTasks,
    /// Forks of one process; the reader is woken at each.
    Forks,
    /// Writes to so many bytes at an address, with all registers and so many bytes of the stack.
    Watch {
        /// Where.
        address: u64,
        /// 4 or 8.
        bytes: u64,
        /// A multiple of 8.
        stack: u32,
    },
}

/// Whom an event is about.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// The process; -1 for all.
    pub pid: i32,
    /// The processor; -1 for all.
    pub cpu: i32,
}

/// An open event.
pub struct Event {
    file: File,
    /// What its records carry: the kernel's number of it, or of its tracepoint where they carry nothing but fields.
    pub id: u64,
}

impl Event {
    /// Opens an event that is off; `register` is noted where it is given (perf's number).
    pub fn open(source: &Source<'_>, scope: Scope, register: Option<u32>) -> io::Result<Self> {
        let mut attributes = Attributes {
            size: size_of::<Attributes>() as u32,
            sample_period: 1,
            sample_type: SAMPLE_TID | SAMPLE_TIME | SAMPLE_IDENTIFIER,
            flags: DISABLED | EXCLUDE_HV | WATERMARK | SAMPLE_ID_ALL | USE_CLOCKID,
            wakeup: u32::MAX >> 1,
            clockid: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        };
        match source {
            Source::Probe(kind, program, offset) => {
                attributes.kind = *kind;
                attributes.config1 = program.as_ptr() as u64;
                attributes.config2 = *offset;
            }
            Source::Tracepoint(number, light) => {
                attributes.kind = TRACEPOINT;
                attributes.config = *number;
                attributes.sample_type =
                    if *light { SAMPLE_TIME | SAMPLE_RAW } else { attributes.sample_type | SAMPLE_RAW };
            }
            Source::Tasks(light) => {
                if *light {
                    attributes.sample_type = SAMPLE_TIME;
                }
                attributes.kind = SOFTWARE;
                attributes.config = SW_DUMMY;
                attributes.flags |= TASK | CONTEXT_SWITCH;
            }
            Source::OwnTasks => {
                attributes.kind = SOFTWARE;
                attributes.config = SW_DUMMY;
                attributes.flags |= TASK | CONTEXT_SWITCH | EXCLUDE_KERNEL;
            }
            Source::Forks => {
                attributes.kind = SOFTWARE;
                attributes.config = SW_DUMMY;
                attributes.flags |= TASK | EXCLUDE_KERNEL;
                attributes.wakeup = 1;
            }
            Source::Watch { address, bytes, stack } => {
                attributes.kind = BREAKPOINT;
                attributes.breakpoint_kind = BREAKPOINT_WRITE;
                attributes.config1 = *address;
                attributes.config2 = *bytes;
                attributes.flags |= EXCLUDE_KERNEL;
                attributes.sample_type |= SAMPLE_IP | SAMPLE_ADDR | SAMPLE_REGS_USER;
                attributes.sample_regs_user = GENERAL;
                if *stack > 0 {
                    attributes.sample_type |= SAMPLE_STACK_USER;
                    attributes.sample_stack_user = *stack;
                }
            }
        }
        if let Some(register) = register {
            attributes.sample_type |= SAMPLE_REGS_USER;
            attributes.sample_regs_user = 1 << register;
        }
        // SAFETY: the attributes live through the call, and say their own size.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const attributes, scope.pid, scope.cpu, -1, CLOEXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor.
        let file = unsafe { File::from_raw_fd(fd as i32) };
        let mut id = 0u64;
        ioctl(&file, ID, (&raw mut id) as u64)?;
        if let Source::Tracepoint(number, true) = source {
            id = *number;
        }
        Ok(Self { file, id })
    }

    /// Lets it note.
    pub fn enable(&self) -> io::Result<()> {
        ioctl(&self.file, ENABLE, 0)
    }

    /// Waits until its ring has something to read, or the time is over.
    pub fn wait(&self, at_most: std::time::Duration) {
        let mut one = libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let time = libc::timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: i64::from(at_most.subsec_nanos()) };
        // SAFETY: both live through the call; an interruption is as good as an end.
        unsafe { libc::ppoll(&raw mut one, 1, &raw const time, std::ptr::null()) };
    }

    /// Sends its records into the ring of another event.
    pub fn into_ring_of(&self, other: &Self) -> io::Result<()> {
        ioctl(&self.file, SET_OUTPUT, other.file.as_raw_fd() as u64)
    }
}

fn ioctl(file: &File, request: u64, argument: u64) -> io::Result<()> {
    // SAFETY: the requests used here take a number, a descriptor, or a pointer to eight bytes that live on.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), request, argument) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const PAGE: usize = 4096;
/// Where the kernel says how far it has written, and we how far we have read.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// The ring of one processor, shared by its events.
pub struct Ring {
    base: *mut u8,
    size: usize,
    spill: Vec<u8>,
    /// Whether records say when and what, and not who and which event: two look-ups of a process id cost the kernel a
    /// tenth of a note.
    pub is_light: bool,
    /// Who is on the processor, where that is known.
    on: Option<i32>,
}

// SAFETY: the memory is the kernel's and ours alone; one thread reads it.
unsafe impl Send for Ring {}

impl Ring {
    /// A ring of `pages` pages (a power of two) behind an event.
    pub fn of(event: &Event, pages: usize) -> io::Result<Self> {
        let whole = (pages + 1) * PAGE;
        // SAFETY: a new mapping of our own descriptor.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                whole,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base: base.cast(), size: pages * PAGE, spill: Vec::new(), is_light: false, on: None })
    }

    #[allow(clippy::cast_ptr_alignment)] // the kernel's own layout
    fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: both counters are eight aligned bytes in the first page, which is mapped as long as we are.
        unsafe { &*self.base.add(at).cast::<AtomicU64>() }
    }

    /// Takes what is there. `holds` says of an event's id what its samples hold: (a register, fields).
    pub fn drain(&mut self, holds: &dyn Fn(u64) -> (bool, bool), into: &mut Vec<Record>) -> usize {
        let (is_light, mut on) = (self.is_light, self.on);
        let read = self.each(&mut |kind, misc, body| {
            into.extend(if is_light {
                notes::light(kind, misc, body, &mut on)
            } else {
                notes::full(kind, misc, body, holds)
            });
        });
        self.on = on;
        read
    }

    /// How far the kernel has written.
    pub fn head(&self) -> u64 {
        self.counter(HEAD).load(Ordering::Acquire)
    }

    /// How far what was written was taken.
    pub fn taken(&self) -> u64 {
        self.counter(TAIL).load(Ordering::Relaxed)
    }

    /// Hands on the kind, the flags and the body of each record that is there, and frees its place.
    #[allow(clippy::cast_ptr_alignment)] // records begin at multiples of eight
    pub fn each(&mut self, take: &mut dyn FnMut(u32, u16, &[u8])) -> usize {
        let head = self.head();
        let begin = self.counter(TAIL).load(Ordering::Relaxed);
        let mut tail = begin;
        let mut spill = std::mem::take(&mut self.spill);
        while tail < head {
            let at = (tail % self.size as u64) as usize;
            // SAFETY: the kernel has written whole records up to `head`; a header is eight aligned bytes, never cut.
            let header = unsafe { self.base.add(PAGE + at).cast::<u64>().read() };
            let (kind, misc, length) = (header as u32, (header >> 32) as u16, (header >> 48) as usize);
            if length < 8 {
                break;
            }
            let first = length.min(self.size - at);
            spill.clear();
            // SAFETY: as above; what goes over the ring's end is taken from its beginning.
            unsafe {
                spill.extend_from_slice(std::slice::from_raw_parts(self.base.add(PAGE + at), first));
                spill.extend_from_slice(std::slice::from_raw_parts(self.base.add(PAGE), length - first));
            }
            take(kind, misc, &spill[8..]);
            tail += length as u64;
        }
        self.spill = spill;
        self.counter(TAIL).store(tail, Ordering::Release);
        (tail - begin) as usize
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: our own mapping, of this size.
        unsafe {
            libc::munmap(self.base.cast(), self.size + PAGE);
        }
    }
}

/// The monotonic clock, ns.
pub fn now_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// A clock of the kernel, ns.
pub fn clock(which: i32) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place lives through the call.
    unsafe { libc::clock_gettime(which, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Who we are.
pub fn user() -> u32 {
    // SAFETY: asks for a number.
    unsafe { libc::geteuid() }
}

/// So many bytes may be locked by this process; raised as far as it may.
pub fn lockable() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit lives through both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit);
        }
    }
    limit.rlim_cur
}
