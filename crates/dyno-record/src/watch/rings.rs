//! Sizes of the rings.
//!
//! A ring that is too small loses notes, but the kernel limits the memory that a user without a capability may lock
//! for all rings together.

use std::fs;

use crate::perf;

/// Largest size of a ring [pages] (512 KiB); [`PAGES_LEAST`] is the smallest size.
pub const PAGES_MOST: usize = 128;
pub const PAGES_LEAST: usize = 4;
/// Total size of all rings if the kernel sets no limit [KiB].
const RINGS_KIB: usize = 64 << 10;
/// Smallest number of backends among which the total size is divided, even if there are fewer.
const BACKENDS_LEAST: usize = 32;

/// Returns the size of each backend's ring [pages]: an equal part of the memory that this user may lock.
pub fn pages(backends: usize) -> usize {
    let of_perf = fs::read_to_string("/proc/sys/kernel/perf_event_mlock_kb").ok();
    let of_perf = of_perf.and_then(|text| text.trim().parse::<usize>().ok()).unwrap_or(0);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let of_limit = usize::try_from(perf::lockable() >> 10).unwrap_or(RINGS_KIB);
    let allowed_kib = of_limit.saturating_add(of_perf * processors);
    each(if perf::user() == 0 { RINGS_KIB } else { RINGS_KIB.min(allowed_kib) }, backends)
}

fn each(whole_kib: usize, backends: usize) -> usize {
    let pages = whole_kib / 4 / (backends * 2).max(BACKENDS_LEAST);
    (1 << pages.max(8).ilog2()).min(PAGES_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_share_what_may_be_locked_and_leave_room_for_as_many_backends_again() {
        assert_eq!(each(RINGS_KIB, 10), PAGES_MOST);
        assert_eq!(each(RINGS_KIB, 200), 32);
        assert_eq!(each(8192 + 2 * 516, 10), 64, "a user without a capability, as Linux comes: 256 KiB");
        assert_eq!(each(1032, 500), 8);
    }
}
