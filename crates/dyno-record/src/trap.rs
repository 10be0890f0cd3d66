//! What a probe costs on this machine: measured on an instruction of our own, never quoted from elsewhere.

use std::ffi::CString;
use std::io;

use crate::perf::{self, Event, Ring, Scope, Source};

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(".text", ".globl dyno_record_trap", "dyno_record_trap:", "nop", "ret");

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    fn dyno_record_trap();
}

/// Calls of one go, and goes; the cheapest counts.
const CALLS: u64 = 1_000;
const GOES: usize = 3;

fn calls_ns() -> u64 {
    let begin = perf::clock(libc::CLOCK_THREAD_CPUTIME_ID);
    for _ in 0..CALLS {
        // SAFETY: two instructions that do nothing.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            dyno_record_trap();
        }
    }
    perf::clock(libc::CLOCK_THREAD_CPUTIME_ID) - begin
}

/// Nanoseconds of CPU that a probe on an instruction costs which the kernel carries out itself.
pub fn cost_ns(kind: u32) -> io::Result<u64> {
    #[cfg(target_arch = "x86_64")]
    let addr = dyno_record_trap as *const () as u64;
    #[cfg(not(target_arch = "x86_64"))]
    let addr = 0;
    let (path, offset) = place(addr).ok_or_else(|| io::Error::other("our own code is not in our memory map"))?;
    let free = (0..GOES).map(|_| calls_ns()).min().unwrap_or(0);
    let event = Event::open(&Source::Probe(kind, &path, offset), Scope { pid: 0, cpu: -1 }, None)?;
    let mut ring = Ring::of(&event, 64)?;
    event.enable()?;
    let mut best = u64::MAX;
    for _ in 0..GOES {
        best = best.min(calls_ns());
        ring.drain(&|_| (false, false), &mut Vec::new());
    }
    Ok(best.saturating_sub(free) / CALLS)
}

/// The file and the offset in it that an address of ours comes from.
fn place(addr: u64) -> Option<(CString, u64)> {
    let text = std::fs::read_to_string("/proc/self/maps").ok()?;
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let (from, to) = (u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?);
        let offset = u64::from_str_radix(words.nth(1)?, 16).ok()?;
        let path = line.find('/').map(|at| &line[at..])?;
        (from..to).contains(&addr).then(|| Some((CString::new(path).ok()?, addr - from + offset)))?
    })
}
