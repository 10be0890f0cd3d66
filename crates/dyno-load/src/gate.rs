//! Barrier between slices.
//!
//! No thread begins a slice before all threads have ended the previous one, and all begin it at the same instant.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Clock;

/// Time from the arrival of the last thread to the common start [ns], in which the other threads can wake up.
const LEAD_NS: i64 = 100_000;
/// Interval at which a waiting thread checks whether it must stop waiting.
const LOOK: Duration = Duration::from_millis(20);

/// Barrier for the threads of a block, reused for each slice.
#[derive(Debug)]
pub struct Gate {
    threads: usize,
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: usize,
    /// Number of slices opened so far.
    opened: u64,
    start_ns: i64,
}

impl Gate {
    /// Returns a barrier for this number of threads.
    pub fn new(threads: usize) -> Self {
        Self { threads, state: Mutex::default(), opened: Condvar::new() }
    }

    /// Waits for all threads; returns the common start [ns since the epoch], or `None` once `halted` returns true.
    ///
    /// The last thread to arrive calls `prepare` with that start before any thread continues.
    pub fn pass(&self, clock: &Clock, prepare: impl FnOnce(i64), halted: impl Fn() -> bool) -> Option<i64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting += 1;
        if state.waiting == self.threads {
            if halted() {
                return None;
            }
            state.waiting = 0;
            state.opened += 1;
            state.start_ns = clock.now_ns() + LEAD_NS;
            prepare(state.start_ns);
            let start = state.start_ns;
            drop(state);
            self.opened.notify_all();
            return Some(start);
        }
        let before = state.opened;
        state = self.wait_while_closed(state, before, &halted);
        (state.opened != before).then_some(state.start_ns)
    }

    fn wait_while_closed<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        before: u64,
        halted: &impl Fn() -> bool,
    ) -> MutexGuard<'a, State> {
        while state.opened == before && !halted() {
            let waited = self.opened.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    #[test]
    fn all_start_each_slice_at_one_instant_after_everybody_ended_the_last() {
        let (gate, clock) = (Gate::new(4), Clock::new());
        let inside = AtomicUsize::new(0);
        let starts = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let prepare = |_| assert_eq!(inside.load(Ordering::SeqCst), 0);
                        let start = gate.pass(&clock, prepare, || false).expect("opens");
                        inside.fetch_add(1, Ordering::SeqCst);
                        starts.lock().expect("no panic").push(start);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        let mut starts = starts.into_inner().expect("no panic");
        starts.sort_unstable();
        assert!(starts.chunks(4).all(|four| four[0] == four[3]));
        starts.dedup();
        assert_eq!(starts.len(), 50);
    }

    #[test]
    fn nobody_waits_for_ever_when_told_to_stop() {
        let (gate, clock) = (Gate::new(2), Clock::new());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.pass(&clock, |_| (), || stop.load(Ordering::Relaxed)));
            stop.store(true, Ordering::Relaxed);
            assert_eq!(waiting.join().expect("no panic"), None);
        });
    }
}
