//! How large the rings are. A ring that is too small loses notes; the kernel lets a user without a capability lock so
//! much memory for all of them together.

use std::fs;

/// The most pages of a ring, 512 KiB, and the fewest.
pub const PAGES_MOST: usize = 128;
pub const PAGES_LEAST: usize = 4;
/// Rings of all backends together, where the kernel sets no limit of its own.
const RINGS_KIB: usize = 64 << 10;
/// So many backends get a ring of full size at least.
const BACKENDS_LEAST: usize = 32;

/// Pages of each ring: what this user may lock, shared by the backends that are there.
pub fn pages(backends: usize) -> usize {
    let mut memlock = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit lives through both calls; the other asks for a number.
    let is_root = unsafe {
        if libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut memlock) == 0 {
            memlock.rlim_cur = memlock.rlim_max;
            libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const memlock);
        }
        libc::geteuid() == 0
    };
    let of_perf = fs::read_to_string("/proc/sys/kernel/perf_event_mlock_kb").ok();
    let of_perf = of_perf.and_then(|text| text.trim().parse::<usize>().ok()).unwrap_or(0);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let of_limit = usize::try_from(memlock.rlim_cur >> 10).unwrap_or(RINGS_KIB);
    let whole_kib = if is_root { RINGS_KIB } else { RINGS_KIB.min(of_perf * processors + of_limit) };
    let each = whole_kib / 4 / (backends * 2).max(BACKENDS_LEAST);
    (1 << each.max(8).ilog2()).min(PAGES_MOST)
}
