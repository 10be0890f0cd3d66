//! Slowdown of a processor while all others compute.
//!
//! Two hyperthreads share one core, and a virtual machine usually hides which processors share one. A fixed computation
//! is therefore timed twice: while the other processors are idle, and while they run the same computation.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::clock;
use crate::wake::{bind, cores};

/// Number of pairs of measurements; the result is their median.
const TURNS: usize = 5;
/// Number of entries in the table that a computation uses, which does not fit into the first-level cache.
const ENTRIES: usize = 1 << 14;

/// Returns the CPU time of a computation of `steps` steps while all other processors compute, divided by its CPU time
/// while they are idle; `None` with fewer than two processors, or where a thread cannot be bound to one.
#[must_use]
pub fn busy_ratio(steps: u32) -> Option<f64> {
    let cores = cores()?;
    let (&first, others) = cores.split_first()?;
    if others.is_empty() {
        return None;
    }
    let mut ratios = Vec::with_capacity(TURNS);
    for _ in 0..TURNS {
        let (alone_ns, busy_ns) = (timed(first, &[], steps)?, timed(first, others, steps)?);
        ratios.push(busy_ns as f64 / alone_ns.max(1) as f64);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    Some(ratios[TURNS / 2])
}

/// Returns the CPU time of the computation on one core while the cores in `others` compute [ns].
fn timed(core: usize, others: &[usize], steps: u32) -> Option<u64> {
    let (ready, ended) = (Barrier::new(others.len() + 1), AtomicBool::new(false));
    thread::scope(|scope| {
        let helpers: Vec<_> = others
            .iter()
            .map(|&other| {
                let (ready, ended) = (&ready, &ended);
                scope.spawn(move || {
                    let bound = bind(other);
                    let mut table = Table::new();
                    ready.wait();
                    while !ended.load(Ordering::Relaxed) {
                        table.compute(1_000);
                    }
                    bound
                })
            })
            .collect();
        let measured = scope.spawn(|| {
            let bound = bind(core);
            let mut table = Table::new();
            table.compute(steps / 4);
            ready.wait();
            let begin_ns = clock::thread_cpu_ns();
            table.compute(steps);
            let spent_ns = clock::thread_cpu_ns() - begin_ns;
            ended.store(true, Ordering::Relaxed);
            bound.map(|()| spent_ns)
        });
        let found = measured.join().ok().flatten();
        helpers.into_iter().try_for_each(|helper| helper.join().ok().flatten())?;
        found
    })
}

/// State of the computation: random steps through a table, with branches that cannot be predicted.
struct Table {
    entries: Vec<u64>,
    state: u64,
}

impl Table {
    fn new() -> Self {
        Self { entries: vec![1; ENTRIES], state: 88_172_645_463_325_252 }
    }

    fn compute(&mut self, steps: u32) {
        let mut state = self.state;
        for _ in 0..steps {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = state as usize % ENTRIES;
            self.entries[at] = self.entries[at].wrapping_add(state);
            if self.entries[at] & 64 == 0 {
                state ^= self.entries[(at * 7) % ENTRIES];
            }
        }
        // Xorshift stays at 0 once it is there.
        self.state = state.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computation_takes_time_and_about_as_long_while_others_compute() {
        let Some(ratio) = busy_ratio(50_000) else {
            println!("skipped: this needs two processors");
            return;
        };
        assert!((0.3..10.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn twice_the_steps_take_about_twice_the_time() {
        let core = cores().unwrap()[0];
        let least = |steps| (0..7).filter_map(|_| timed(core, &[], steps)).min().unwrap() as f64;
        let ratio = least(400_000) / least(200_000);
        assert!((1.5..3.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn the_steps_of_two_tables_are_the_same() {
        let (mut first, mut second) = (Table::new(), Table::new());
        first.compute(2_000);
        second.compute(1_000);
        second.compute(1_000);
        assert_eq!(first.state, second.state);
        assert!(first.entries == second.entries && first.state != 88_172_645_463_325_252);
    }
}
