//! Cost of a probe on this machine, measured on instructions of this program.
//!
//! The kernel emulates some instructions; for all others it single-steps a copy, which costs several times as much.
//! Which long `nop`s it emulates depends on the kernel, so that is measured as well.

use std::ffi::CString;
use std::io;

use crate::perf::{self, Event, Ring, Scope, Source};

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".text",
    ".globl dyno_record_plain, dyno_record_long, dyno_record_prefixed, dyno_record_stepped",
    "dyno_record_plain: nop",
    "ret",
    "dyno_record_long: .byte 0x0f, 0x1f, 0x40, 0x00",
    "ret",
    "dyno_record_prefixed: .byte 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00",
    "ret",
    "dyno_record_stepped: mov rax, rsp",
    "ret",
);

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    fn dyno_record_plain();
    fn dyno_record_long();
    fn dyno_record_prefixed();
    fn dyno_record_stepped();
}

/// Number of calls per repetition; the cheapest repetition counts.
const CALLS: u64 = 500;

/// CPU time that a probe costs per note [ns].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trap {
    /// Cost of a probe on an instruction that the kernel emulates [ns].
    pub emulated_ns: u64,
    /// Cost of a probe on an instruction that the kernel single-steps [ns].
    pub stepped_ns: u64,
    /// True if the kernel emulates a `nop` of several bytes.
    pub long_nops: bool,
}

type Own = unsafe extern "C" fn();

fn call(own: Own) {
    for _ in 0..CALLS {
        // SAFETY: two instructions of this program that change no register that a caller relies on.
        unsafe { own() }
    }
}

/// Measures the cost of a probe on each kind of instruction; `kind` is the kernel's number of the uprobe type.
///
/// Also returns the open probes of the measurement. Nothing executes their instructions any more, so they cost nothing;
/// but each takes a grace period of the kernel to close, and other probes cannot be opened meanwhile: a recorder closes
/// them at its end.
///
/// # Errors
/// The kernel refuses probes.
#[cfg(target_arch = "x86_64")]
pub fn measure(kind: u32) -> io::Result<(Trap, Vec<Event>)> {
    let (emulated_ns, plain) = cost_ns(kind, dyno_record_plain)?;
    let (stepped_ns, stepped) = cost_ns(kind, dyno_record_stepped)?;
    let (long_ns, long) = cost_ns(kind, dyno_record_long)?;
    let (prefixed_ns, prefixed) = cost_ns(kind, dyno_record_prefixed)?;
    let long_nops = long_ns.max(prefixed_ns) < emulated_ns.midpoint(stepped_ns);
    Ok((Trap { emulated_ns, stepped_ns, long_nops }, vec![plain, stepped, long, prefixed]))
}

/// Returns an error: probes are supported on x86-64 only.
///
/// # Errors
/// Always.
#[cfg(not(target_arch = "x86_64"))]
pub fn measure(_: u32) -> io::Result<(Trap, Vec<Event>)> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

fn cost_ns(kind: u32, own: Own) -> io::Result<(u64, Event)> {
    let (path, offset) =
        place(own as *const () as u64).ok_or_else(|| io::Error::other("our own code is not in our memory map"))?;
    let free = perf::cheapest_ns(|| call(own), || 0);
    let event = Event::open(&Source::Probe(kind, &path, offset), Scope { pid: 0, cpu: -1 }, None)?;
    let mut ring = Ring::of(&event, 64)?;
    event.enable()?;
    let best = perf::cheapest_ns(|| call(own), || ring.drain(&|_| (false, false), &mut Vec::new()));
    Ok((best.saturating_sub(free) / CALLS, event))
}

/// Returns the file, and the offset in it, of an address of this program.
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

#[cfg(test)]
mod tests {
    use super::measure;

    #[test]
    fn a_measurement_leaves_its_probes_open_because_closing_them_delays_those_that_follow() {
        let kind = std::fs::read_to_string("/sys/bus/event_source/devices/uprobe/type").unwrap_or_default();
        // The kernel may refuse probes to the user who runs the tests.
        let Some((trap, opened)) = kind.trim().parse().ok().and_then(|kind| measure(kind).ok()) else { return };
        assert_eq!(opened.len(), 4);
        assert!(trap.emulated_ns > 0 && trap.stepped_ns > 0);
    }
}
