//! Time of the next look: sleeps of a mean length that depends on the cost of looks.

use crate::perf::{clock, now_ns};

use super::pace::{Machine, PACE_NS, Pace, idle_share, idle_ticks, pace};

/// Allows the thread to sleep as briefly as it requests.
///
/// The thread has no precedence over backends. It does not give them precedence either (`SCHED_BATCH`), because on two
/// busy processors looks then came milliseconds late, and gaps took a quarter of the time.
pub(super) fn sleep_exactly() {
    // SAFETY: the call changes a property of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// State that determines the next look.
pub(super) struct Rhythm {
    limit: Option<f64>,
    pub pace: Pace,
    next_ns: u64,
    /// When changes were last passed on [ns].
    pub handed_ns: u64,
    decided_ns: u64,
    /// CPU time when changes were last passed on (`cpu_ns`), and at the last decision (`decided_cpu_ns`) [ns].
    cpu_ns: u64,
    decided_cpu_ns: u64,
    looks: u64,
    idle: (u64, u64),
    dice: u64,
}

/// Returns idle time and total time of all processors [ticks]; zeros if the kernel does not report them.
pub(super) fn machine_ticks() -> (u64, u64) {
    std::fs::read_to_string("/proc/stat").ok().and_then(|text| idle_ticks(&text)).unwrap_or((0, 0))
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

/// Initial estimate of a look's CPU time [ns], used until it is measured.
pub(super) const LOOK_NS: u64 = 10_000;

impl Rhythm {
    pub fn new(limit: Option<f64>, now: u64) -> Self {
        let machine = Machine { processors: processors(), idle: 0.0 };
        let cpu_ns = clock(libc::CLOCK_THREAD_CPUTIME_ID);
        Self {
            limit,
            pace: pace(limit, machine, LOOK_NS),
            next_ns: now,
            handed_ns: now,
            decided_ns: now,
            cpu_ns,
            decided_cpu_ns: cpu_ns,
            looks: 0,
            idle: machine_ticks(),
            dice: now | 1,
        }
    }

    /// Sleeps until the next look is due.
    ///
    /// The interval varies at random by up to an eighth, so that looks are not in step with the server's activity.
    pub fn wait(&mut self) {
        self.looks += 1;
        let Pace::Every(period_ns) = self.pace else {
            std::hint::spin_loop();
            return;
        };
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        let apart_ns = period_ns - period_ns / 8 + self.dice % (period_ns / 4);
        let now = now_ns();
        // After an absence the looks go on from now on: none is made up for.
        self.next_ns = (self.next_ns + apart_ns).max(now);
        let until = libc::timespec {
            tv_sec: (self.next_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (self.next_ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: `until` is valid during the call.
        unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const until, std::ptr::null_mut())
        };
    }

    /// Returns the CPU time since the last call [ns].
    pub fn spent_ns(&mut self) -> u64 {
        let now = clock(libc::CLOCK_THREAD_CPUTIME_ID);
        now - std::mem::replace(&mut self.cpu_ns, now)
    }

    /// Chooses a new pace if it is time; returns true if the pace changed.
    pub fn decide(&mut self, at_ns: u64) -> bool {
        let over_ns = at_ns.saturating_sub(self.decided_ns);
        if over_ns < PACE_NS || self.looks == 0 {
            return false;
        }
        let spent_ns = self.cpu_ns - self.decided_cpu_ns;
        let ticks = machine_ticks();
        let processors = processors();
        let own = if self.pace == Pace::Spin { spent_ns as f64 / over_ns as f64 } else { 0.0 };
        let machine = Machine { processors, idle: idle_share(self.idle, ticks) * processors as f64 + own };
        // Looks without a pause cost less than those that sleep and wake: their price says nothing of those.
        let look_ns = if self.pace == Pace::Spin { LOOK_NS } else { spent_ns / self.looks };
        let next = pace(self.limit, machine, look_ns);
        (self.decided_ns, self.decided_cpu_ns, self.looks, self.idle) = (at_ns, self.cpu_ns, 0, ticks);
        // A longer period at once, a shorter one only where it is clearly paid for.
        let shorter = next.period_ns() < self.pace.period_ns();
        let is_clear = !shorter || pace(self.limit, machine, look_ns * 5 / 4) == next;
        let is_other = next != self.pace && is_clear;
        if is_other {
            self.pace = next;
            self.next_ns = at_ns;
        }
        is_other
    }
}
