//! Many runs in parallel threads. One run always uses one thread, so that the number of threads changes nothing but the
//! time it takes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use super::streams::Streams;

/// Runs `run(seed)` for `count` replications on `threads` threads; returns the results in the order of the
/// replications.
pub fn replicate<T, F>(seed: u64, count: usize, threads: usize, run: F) -> Vec<T>
where
    T: Send,
    F: Fn(u64) -> T + Sync,
{
    in_parallel(count, threads, |i| run(Streams::replication_seed(seed, i as u64)))
}

/// Runs `run(arm, seed)` for each arm and replication on common random numbers: replication *i* of every arm has the
/// same seed. Returns the results by arm, then replication.
pub fn replicate_arms<A, T, F>(seed: u64, arms: &[A], count: usize, threads: usize, run: F) -> Vec<Vec<T>>
where
    A: Sync,
    T: Send,
    F: Fn(&A, u64) -> T + Sync,
{
    let mut results = in_parallel(arms.len() * count, threads, |i| {
        run(&arms[i / count], Streams::replication_seed(seed, (i % count) as u64))
    })
    .into_iter();
    arms.iter().map(|_| results.by_ref().take(count).collect()).collect()
}

fn in_parallel<T, F>(count: usize, threads: usize, run: F) -> Vec<T>
where
    T: Send,
    F: Fn(usize) -> T + Sync,
{
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, count.max(1)) {
            let (sender, next, run) = (sender.clone(), &next, &run);
            scope.spawn(move || {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count || sender.send((i, run(i))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut results: Vec<(usize, T)> = receiver.iter().collect();
        results.sort_by_key(|&(i, _)| i);
        results.into_iter().map(|(_, result)| result).collect()
    })
}
