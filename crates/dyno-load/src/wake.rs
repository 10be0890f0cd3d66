//! Cost of waking a thread that sleeps on an idle core.
//!
//! Two threads pass a byte back and forth. If both are on one core, the core only switches between them. If they are on
//! two cores, each wake-up starts an idle core, which in a virtual machine causes an exit from the guest. The cost is
//! the difference between the two in the CPU time of the waking thread.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::clock;

/// Number of measurements; the result is their median.
const TURNS: usize = 5;

/// Returns the CPU time that a thread needs to start an idle core [ns], measured with `messages` messages on one core
/// and as many between two; `None` with fewer than two cores, or where a thread cannot be bound to one.
#[must_use]
pub fn wake_cost_ns(messages: u32) -> Option<u64> {
    let mut cores = cores()?.into_iter();
    let (one, other) = (cores.next()?, cores.next()?);
    let mut costs = Vec::with_capacity(TURNS);
    for _ in 0..TURNS {
        let (same, apart) = (pass(one, one, messages)?, pass(one, other, messages)?);
        costs.push(apart.saturating_sub(same));
    }
    costs.sort_unstable();
    Some(costs[TURNS / 2])
}

/// Passes messages between a thread on core `one` and one on core `other`; returns the first thread's CPU time per
/// message [ns].
fn pass(one: usize, other: usize, messages: u32) -> Option<u64> {
    let (mut here, mut there) = UnixStream::pair().ok()?;
    thread::scope(|scope| {
        let answers = scope.spawn(move || {
            bind(other)?;
            let mut byte = [0];
            while there.read(&mut byte).ok()? == 1 {
                there.write_all(&byte).ok()?;
            }
            Some(())
        });
        let asks = scope.spawn(move || {
            bind(one)?;
            let mut byte = [1];
            let begin_ns = clock::thread_cpu_ns();
            for _ in 0..messages {
                here.write_all(&byte).ok()?;
                here.read_exact(&mut byte).ok()?;
            }
            Some((clock::thread_cpu_ns() - begin_ns) / u64::from(messages.max(1)))
        });
        let found = asks.join().ok().flatten();
        answers.join().ok().flatten()?;
        found
    })
}

/// Returns the cores on which this thread may run.
pub(crate) fn cores() -> Option<Vec<usize>> {
    let allowed = sched_getaffinity(None).ok()?;
    Some((0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).collect())
}

/// Binds this thread to a core.
pub(crate) fn bind(core: usize) -> Option<()> {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starting_another_core_costs_less_than_a_millisecond() {
        let Some(cost_ns) = wake_cost_ns(50) else {
            println!("skipped: this needs two cores");
            return;
        };
        assert!(cost_ns < 1_000_000, "{cost_ns} ns");
    }

    #[test]
    fn a_message_costs_cpu_time_on_one_core_and_on_two() {
        let cores = cores().unwrap();
        assert!(pass(cores[0], cores[0], 200).is_some_and(|ns| ns > 500));
        assert!(pass(cores[0], *cores.last().unwrap(), 200).is_some_and(|ns| ns > 500));
    }

    #[test]
    fn threads_that_do_not_measure_keep_their_cores() {
        let before = sched_getaffinity(None).unwrap();
        let _ = wake_cost_ns(10);
        assert!(sched_getaffinity(None).unwrap() == before);
    }
}
