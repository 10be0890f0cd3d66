//! Interface to `perf_event_open`: events, the rings they write into, and the records in them.
//!
//! This module is small, and contains all system calls in this crate that need `unsafe`.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::notes;
pub use crate::notes::{Note, Record};

/// Attributes of an event for the kernel (`struct perf_event_attr`, its first 128 bytes).
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

/// perf's numbers of the sixteen general registers, in the processor's order (rax, rcx, rdx, rbx, rsp ...).
pub const REGISTERS: [u32; 16] = [0, 2, 3, 1, 7, 6, 4, 5, 16, 17, 18, 19, 20, 21, 22, 23];

/// Bit mask of all general registers, in perf's numbers.
const GENERAL: u64 = 0x00ff_00ff;

/// What an event records.
#[derive(Clone, Debug)]
pub enum Source<'a> {
    /// Probe of the kernel's uprobe type: type number, program, offset in the file.
    Probe(u32, &'a std::ffi::CStr, u64),
    /// Defined tracepoint by its number, with its fields; `true` for light records, which add only the time.
    Tracepoint(u64, bool),
    /// Forks, exits and task switches; `true` for light records, which add only the time.
    Tasks(bool),
    /// Switches and exit of one process, for its owner.
    OwnTasks,
    /// Forks of one process; the reader is woken at each.
    Forks,
    /// Writes to bytes at an address, with all registers and a part of the stack.
    Watch {
        /// Watched address.
        address: u64,
        /// Number of watched bytes: 4 or 8.
        bytes: u64,
        /// Number of stack bytes in each sample, a multiple of 8.
        stack: u32,
    },
}

/// Processes and processors that an event covers.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Process id; -1 for all.
    pub pid: i32,
    /// Processor number; -1 for all.
    pub cpu: i32,
}

/// Open event.
pub struct Event {
    file: File,
    /// Id of the event in its records: the kernel's id of the event, or the tracepoint's number for light records.
    pub id: u64,
}

impl Event {
    /// Opens an event, disabled; `register` (perf's number) is recorded unless it is `None`.
    ///
    /// # Errors
    /// The kernel refuses.
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
        // SAFETY: the attributes are valid during the call and contain their own size.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const attributes, scope.pid, scope.cpu, -1, CLOEXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned this descriptor to us.
        let file = unsafe { File::from_raw_fd(fd as i32) };
        let mut id = 0u64;
        ioctl(&file, ID, (&raw mut id) as u64)?;
        if let Source::Tracepoint(number, true) = source {
            id = *number;
        }
        Ok(Self { file, id })
    }

    /// Enables the event.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn enable(&self) -> io::Result<()> {
        ioctl(&self.file, ENABLE, 0)
    }

    /// Waits until the event's ring has something to read, or until `at_most` has passed.
    pub fn wait(&self, at_most: std::time::Duration) {
        let mut one = libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let time = libc::timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: i64::from(at_most.subsec_nanos()) };
        // SAFETY: both structures are valid during the call; an interruption is treated as an end.
        unsafe { libc::ppoll(&raw mut one, 1, &raw const time, std::ptr::null()) };
    }

    /// Redirects the event's records into the ring of another event.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn into_ring_of(&self, other: &Self) -> io::Result<()> {
        ioctl(&self.file, SET_OUTPUT, other.file.as_raw_fd() as u64)
    }
}

fn ioctl(file: &File, request: u64, argument: u64) -> io::Result<()> {
    // SAFETY: the requests used here take a number, a descriptor, or a pointer to eight valid bytes.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), request, argument) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const PAGE: usize = 4096;
/// Offsets of two positions in the ring's first page: the end of what the kernel has written (`HEAD`), and the end of
/// what was read (`TAIL`).
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// Ring of one processor, shared by its events.
pub struct Ring {
    base: *mut u8,
    size: usize,
    spill: Vec<u8>,
    /// True if records have a time and contents but neither process nor event id.
    ///
    /// Such records save the kernel the lookup of two process ids, which takes a tenth of its time per record.
    pub is_light: bool,
    /// Process on this processor, if it is known.
    on: Option<i32>,
}

// SAFETY: the memory is shared only with the kernel, and one thread reads it.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a ring of `pages` pages (a power of two) for an event.
    ///
    /// # Errors
    /// The memory cannot be mapped, for example because the user is not allowed to lock so much memory.
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

    #[allow(clippy::cast_ptr_alignment)] // layout defined by the kernel
    fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: both counters are eight aligned bytes in the first page, which stays mapped as long as `self` exists.
        unsafe { &*self.base.add(at).cast::<AtomicU64>() }
    }

    /// Reads all available records into `into`; returns the number of bytes read.
    ///
    /// `holds` returns for an event id whether its samples contain a register, and whether they contain fields.
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

    /// Returns the position up to which the kernel has written [bytes].
    pub fn head(&self) -> u64 {
        self.counter(HEAD).load(Ordering::Acquire)
    }

    /// Returns the position up to which records were read [bytes].
    pub fn taken(&self) -> u64 {
        self.counter(TAIL).load(Ordering::Relaxed)
    }

    /// Calls `take` with kind, flags and body of each available record, and frees the space of the record; returns the
    /// number of bytes read.
    #[allow(clippy::cast_ptr_alignment)] // records begin at multiples of eight
    pub fn each(&mut self, take: &mut dyn FnMut(u32, u16, &[u8])) -> usize {
        let head = self.head();
        let begin = self.counter(TAIL).load(Ordering::Relaxed);
        let mut tail = begin;
        let mut spill = std::mem::take(&mut self.spill);
        while tail < head {
            let at = (tail % self.size as u64) as usize;
            // SAFETY: the kernel has written complete records up to `head`; a header is eight aligned bytes, never
            // split.
            let header = unsafe { self.base.add(PAGE + at).cast::<u64>().read() };
            let (kind, misc, length) = (header as u32, (header >> 32) as u16, (header >> 48) as usize);
            if length < 8 {
                break;
            }
            let first = length.min(self.size - at);
            spill.clear();
            // SAFETY: as above; the part beyond the end of the ring is read from its beginning.
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

/// Returns the time of the monotonic clock [ns].
pub fn now_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Returns the time of a clock of the kernel [ns].
pub fn clock(which: i32) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid during the call.
    unsafe { libc::clock_gettime(which, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the CPU time of the cheapest of three runs [ns]; `empty` removes the
/// notes of a run from their ring, and is not measured.
pub fn cheapest_ns(mut run: impl FnMut(), mut empty: impl FnMut() -> usize) -> u64 {
    let mut cost_ns = || {
        let begin_ns = clock(libc::CLOCK_THREAD_CPUTIME_ID);
        run();
        let end_ns = clock(libc::CLOCK_THREAD_CPUTIME_ID);
        empty();
        end_ns - begin_ns
    };
    cost_ns().min(cost_ns()).min(cost_ns())
}

/// Returns the effective user id.
pub fn user() -> u32 {
    // SAFETY: the call only returns a number.
    unsafe { libc::geteuid() }
}

/// Raises the limit on locked memory as far as allowed, and returns it [bytes].
pub fn lockable() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid during both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit);
        }
    }
    limit.rlim_cur
}
