//! Wall time and CPU time of a thread.
//!
//! Times are whole nanoseconds since the UNIX epoch, taken from the monotonic clock: a step of the wall clock never
//! makes a duration negative.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Longest uninterrupted sleep [ns], and so the longest delay until a request to stop is noticed.
const NAP_NS: i64 = 50_000_000;

/// Monotonic clock whose zero is the UNIX epoch, set once from the wall clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    base: Instant,
    epoch_ns: i64,
}

impl Clock {
    /// Returns a clock that agrees with the wall clock now.
    pub fn new() -> Self {
        let base = Instant::now();
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { base, epoch_ns: epoch.as_nanos() as i64 }
    }

    /// Returns the current time [ns since the epoch].
    #[inline]
    pub fn now_ns(&self) -> i64 {
        self.epoch_ns + self.base.elapsed().as_nanos() as i64
    }

    /// Sleeps until `target_ns` or until `halted` returns true; returns the time of waking [ns since the epoch].
    pub fn sleep_until(&self, target_ns: i64, halted: impl Fn() -> bool) -> i64 {
        loop {
            let now = self.now_ns();
            if now >= target_ns || halted() {
                return now;
            }
            thread::sleep(Duration::from_nanos((target_ns - now).min(NAP_NS) as u64));
        }
    }
}

/// Returns the CPU time that the calling thread has used so far [ns].
pub fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sets the calling thread's timer slack to 1 ns: sleeps then end on time, instead of up to 50 us late.
pub fn sharpen_sleep() {
    // A kernel that refuses keeps its default; the resulting lag is reported anyway.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_at_its_time_or_at_once_when_halted() {
        let clock = Clock::new();
        let target = clock.now_ns() + 2_000_000;
        assert!(clock.sleep_until(target, || false) >= target);
        let far = clock.now_ns() + 3_600_000_000_000;
        assert!(clock.sleep_until(far, || true) < far);
    }
}
