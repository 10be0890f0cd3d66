//! Probes with fields (texts, numbers behind pointers), which must first be defined by name in tracefs.
//!
//! A definition is a line in `uprobe_events`. It costs nothing until an event is opened on it, but it survives if its
//! creator is killed. So a child process that holds only this file waits until its parent ends, for whatever reason,
//! and removes the lines. If tracefs is not mounted, a thread mounts it in a private mount namespace: nobody else sees
//! it, and it is gone with the thread.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

const MOUNTED: &str = "/sys/kernel/tracing";

/// Probe to define: event, offset in the program file, and fields.
///
/// Probes with the same fields share an event: the kernel removes them together, instead of waiting for a grace
/// period after each.
pub struct Definition {
    /// Index of the event that the probe belongs to.
    pub event: usize,
    /// Offset of the probe in the program file.
    pub offset: u64,
    /// Fields in the syntax of tracefs.
    pub fields: String,
}

/// Defined probes; the definitions are removed when this is dropped.
pub struct Defined {
    /// Index of each event, and the kernel's number for it.
    pub numbers: Vec<(usize, u64)>,
    lines: Vec<u8>,
    file: File,
    /// Write end of a pipe; the guard process notices that it closes.
    alive: Option<OwnedFd>,
    guard: libc::pid_t,
}

static SERIAL: AtomicU32 = AtomicU32::new(0);

/// Defines probes in a program.
///
/// # Errors
/// tracefs cannot be mounted or opened, or the kernel refuses a definition.
pub fn define(program: &Path, definitions: &[Definition]) -> io::Result<Defined> {
    let program = program.to_path_buf();
    let group = format!("dbdyno_{}_{}", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed));
    let lines: Vec<String> = definitions
        .iter()
        .map(|one| format!("p:{group}/e{} {}:{:#x} {}\n", one.event, program.display(), one.offset, one.fields))
        .collect();
    let events: BTreeSet<usize> = definitions.iter().map(|one| one.event).collect();
    let away: Vec<String> = events.iter().map(|at| format!("-:{group}/e{at}\n")).collect();
    let work = move || -> io::Result<Defined> {
        if !Path::new(MOUNTED).join("uprobe_events").exists() {
            mount_for_this_thread()?;
        }
        let file = OpenOptions::new().append(true).open(Path::new(MOUNTED).join("uprobe_events"))?;
        let mut defined = guarded(file, away.concat().into_bytes())?;
        for line in &lines {
            defined.file.write_all(line.as_bytes())?;
        }
        for at in events {
            let number = fs::read_to_string(format!("{MOUNTED}/events/{group}/e{at}/id"))?;
            defined.numbers.push((at, number.trim().parse().map_err(io::Error::other)?));
        }
        Ok(defined)
    };
    std::thread::spawn(work).join().map_err(|_| io::Error::other("the thread broke down"))?
}

fn check(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn mount_for_this_thread() -> io::Result<()> {
    // SAFETY: all texts are zero-terminated constants; what is unshared belongs to this thread only.
    unsafe {
        check(libc::unshare(libc::CLONE_NEWNS))?;
        let (none, all) = (c"none".as_ptr(), std::ptr::null());
        check(libc::mount(none, c"/".as_ptr(), all, libc::MS_REC | libc::MS_PRIVATE, std::ptr::null()))?;
        let place = c"/sys/kernel/tracing".as_ptr();
        check(libc::mount(c"tracefs".as_ptr(), place, c"tracefs".as_ptr(), 0, std::ptr::null()))
    }
}

/// Starts the guard process before anything is defined.
fn guarded(file: File, lines: Vec<u8>) -> io::Result<Defined> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors, which belong to us afterwards.
    let (reads, alive) = unsafe {
        check(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC))?;
        (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    };
    // SAFETY: the child calls only what is allowed between fork and exec, and ends with _exit.
    let guard = unsafe {
        match libc::fork() {
            0 => guard(reads.as_raw_fd(), file.as_raw_fd(), &lines),
            pid => pid,
        }
    };
    check(guard)?;
    Ok(Defined { numbers: Vec::new(), lines, file, alive: Some(alive), guard })
}

/// Waits for the end of the parent, then removes the lines; never returns.
///
/// # Safety
/// Must be called in a process that was just forked: it makes only system calls and takes no lock.
unsafe fn guard(reads: i32, file: i32, lines: &[u8]) -> ! {
    // SAFETY: plain system calls on numbers and on memory that belongs to this process.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        let (low, high) = (reads.min(file) as u32, reads.max(file) as u32);
        let close = |from: u32, to: u32| {
            if from <= to {
                libc::syscall(libc::SYS_close_range, from, to, 0);
            }
        };
        close(0, low.saturating_sub(1));
        close(low + 1, high - 1);
        close(high + 1, u32::MAX);
        let mut byte = 0u8;
        while libc::read(reads, (&raw mut byte).cast(), 1) < 0 {}
        take_away(file, lines);
        libc::_exit(0)
    }
}

/// Writes each removal line separately, and tries again while the kernel reports that the event is still open.
fn take_away(file: i32, lines: &[u8]) {
    let (mut from, mut tries) = (0, 0);
    while from < lines.len() && tries < 500 {
        let length = lines[from..].iter().position(|byte| *byte == b'\n').map_or(lines.len() - from, |at| at + 1);
        // SAFETY: the bytes are valid; a refusal is reported by the result.
        let wrote = unsafe { libc::write(file, lines[from..].as_ptr().cast(), length) };
        // SAFETY: the error number of this thread's last call.
        let is_open = wrote < 0 && unsafe { *libc::__errno_location() } == libc::EBUSY;
        if is_open {
            tries += 1;
            let pause = libc::timespec { tv_sec: 0, tv_nsec: 10_000_000 };
            // SAFETY: `pause` is valid during the call.
            unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
        } else {
            from += length;
        }
    }
}

impl Drop for Defined {
    fn drop(&mut self) {
        take_away(self.file.as_raw_fd(), &self.lines);
        drop(self.alive.take());
        // SAFETY: our own child, which is about to end.
        unsafe { libc::waitpid(self.guard, std::ptr::null_mut(), 0) };
    }
}

/// Returns the number at an offset in a sample's fields.
pub fn number(raw: &[u8], at: usize) -> Option<u64> {
    raw.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes)
}

/// Returns the text at an offset in a sample's fields; `None` if the kernel could not read it.
pub fn text(raw: &[u8], at: usize) -> Option<&[u8]> {
    let place = u32::from_le_bytes(raw.get(at..at + 4)?.try_into().ok()?);
    let (from, length) = ((place & 0xffff) as usize, (place >> 16) as usize);
    let bytes = raw.get(from..from + length)?;
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    (bytes != b"(fault)").then_some(bytes)
}

/// Offset of the probe's address in a sample.
pub const PLACE: usize = 8;
/// Offset of the fields in a sample.
pub const FIELDS: usize = 16;
