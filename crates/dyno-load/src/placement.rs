//! Where the scheduler puts a process that wakes up.
//!
//! One thread sleeps, and the processor on which it last ran is known. Another thread, bound to a processor, wakes it
//! and then sleeps itself. The woken thread then reports on which processor it runs.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::wake::{bind, cores};

/// Time for which a thread computes to keep its processor busy.
const BUSY: Duration = Duration::from_micros(150);
/// Time allowed for this thread to begin computing.
const START: Duration = Duration::from_micros(40);
/// Idle time after which a processor counts as idle for a long time.
const LONG: Duration = Duration::from_millis(2);

/// Number of a processor in a message.
type Number = [u8; size_of::<usize>()];

/// Returns how often a woken thread changes its processor, as three shares of `trials` wake-ups each; `None` with fewer
/// than two processors, or where a thread cannot be bound to one.
///
/// In the first case the thread last ran on another processor, which is now busy: the share that moves to the waker's
/// processor. In the second case it last ran on the waker's processor: the share that moves to another, idle one. The
/// third case is like the second, with processors that have been idle for two milliseconds.
#[must_use]
pub fn placement(trials: u32) -> Option<(f64, f64, f64)> {
    let allowed = sched_getaffinity(None).ok()?;
    let mut cores = cores()?.into_iter();
    let (here, there) = (cores.next()?, cores.next()?);
    let (mut sleeper, theirs) = UnixStream::pair().ok()?;
    let (mut spinner, spins) = UnixStream::pair().ok()?;
    thread::scope(|scope| {
        let woken = scope.spawn(move || sleep_and_tell(theirs, &allowed));
        let busy = scope.spawn(move || compute_on(there, spins));
        let measured = scope.spawn(move || {
            bind(here)?;
            let mut ask = |last: usize, keep_busy: bool, pause: Duration| {
                sleeper.write_all(&last.to_le_bytes()).ok()?;
                sleeper.read_exact(&mut [0]).ok()?;
                // The thread is about to sleep; it must have a moment for it.
                wait(pause);
                if keep_busy {
                    spinner.write_all(&[1]).ok()?;
                    wait(START);
                }
                sleeper.write_all(&[0]).ok()?;
                let mut at = Number::default();
                sleeper.read_exact(&mut at).ok()?;
                if keep_busy {
                    spinner.read_exact(&mut [0]).ok()?;
                }
                Some(usize::from_le_bytes(at))
            };
            let (mut pulled, mut moved, mut moved_late) = (0, 0, 0);
            for _ in 0..trials {
                pulled += u32::from(ask(there, true, START)? == here);
                moved += u32::from(ask(here, false, START)? != here);
                moved_late += u32::from(ask(here, false, LONG)? != here);
            }
            let share = |count: u32| f64::from(count) / f64::from(trials.max(1));
            Some((share(pulled), share(moved), share(moved_late)))
        });
        let found = measured.join().ok().flatten();
        let (woken, busy) = (woken.join().ok().flatten(), busy.join().ok().flatten());
        woken.and(busy).and(found)
    })
}

/// Sleeps after having last run on the requested processor, and when woken reports on which processor it runs; ends
/// when its connection ends.
fn sleep_and_tell(mut asks: UnixStream, allowed: &CpuSet) -> Option<()> {
    let mut last = Number::default();
    while asks.read_exact(&mut last).is_ok() {
        bind(usize::from_le_bytes(last))?;
        sched_setaffinity(None, allowed).ok()?;
        asks.write_all(&[1]).ok()?;
        asks.read_exact(&mut [0]).ok()?;
        asks.write_all(&sched_getcpu().to_le_bytes()).ok()?;
    }
    Some(())
}

/// Computes on a processor for a while at each request; ends when its connection ends.
fn compute_on(core: usize, mut asks: UnixStream) -> Option<()> {
    bind(core)?;
    let mut byte = [0];
    while asks.read(&mut byte).ok()? == 1 {
        wait(BUSY);
        asks.write_all(&byte).ok()?;
    }
    Some(())
}

/// Keeps the processor busy for this time.
fn wait(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_wake_ups_are_between_nothing_and_all() {
        let Some(found) = placement(30) else {
            println!("skipped: this needs two processors");
            return;
        };
        let shares = <[f64; 3]>::from(found);
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{found:?}");
    }

    #[test]
    fn a_bound_thread_runs_where_it_is_bound() {
        for core in cores().unwrap() {
            let found = thread::spawn(move || {
                bind(core).unwrap();
                sched_getcpu()
            });
            assert_eq!(found.join().unwrap(), core);
        }
    }
}
