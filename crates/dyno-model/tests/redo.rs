//! Tests the redo path against closed forms of group commit and of the sawtooth that commit times show over redo sizes,
//! and checks its bookkeeping.
#![allow(clippy::unwrap_used, missing_docs)]

use std::rc::Rc;

use crate::common::instance::{Bench, bare, constant, memory, station};
use crate::common::{assert_near, mean};
use dyno_model::database::{Event, InstanceParameters, Process, Storage};
use dyno_model::kernel::replicate::replicate;
use dyno_model::kernel::sample::Times;

fn with_commit_bytes(bytes: u64) -> InstanceParameters {
    let mut parameters = bare();
    parameters.redo.commit_bytes = bytes;
    parameters
}

/// Runs commits at random times, each in a session of its own; returns the commits per write, and the mean time of `log
/// file sync` [ms].
fn open_loop(seed: u64, per_second: f64, write_us: f64) -> (f64, f64) {
    let bench = Rc::new(Bench::on_memory(seed, with_commit_bytes(100), write_us, 1e12));
    let (sim, inside) = (bench.simulation.sim().clone(), Rc::clone(&bench));
    let mut dice = bench.simulation.stream("arrivals");
    let sessions: Vec<_> = (1..=10_000).map(|number| inside.instance.session(number)).collect();
    drop(inside);
    bench.simulation.spawn("arrivals", async move {
        for mut session in sessions {
            sim.hold(dice.exponential(1e9 / per_second) as u64).await;
            sim.spawn("commit", async move { session.commit(0).await });
        }
    });
    bench.simulation.run().unwrap();
    bench.assert_redo_is_conserved();
    let counts = bench.instance.redo().counts();
    (counts.commits as f64 / counts.writes as f64, bench.mean_ms(Event::LogFileSync))
}

/// A batch consists of all waiting commits. If a commit arrived during a write, another write follows.
#[test]
fn group_commit_of_an_open_stream() {
    for (per_second, batch, sync_ms) in
        [(500.0, 1.028_80, 0.560_75), (2_000.0, 1.367_88, 0.682_76), (20_000.0, 10.000_05, 0.75)]
    {
        let runs = replicate(1, 20, 2, |seed| open_loop(seed, per_second, 500.0));
        let (batches, syncs): (Vec<f64>, Vec<f64>) = runs.into_iter().unzip();
        assert_near("commits per write", mean(&batches), batch);
        assert_near("sync, ms", mean(&syncs), sync_ms);
    }
}

/// Returns the mean batch size, the commits per ms and the mean sync time [ms] of `n` sessions with exponential think
/// time of mean `think_ms`, if a write of `b` commits takes `fixed + each * b` ms. The batch size is a Markov chain:
/// each other session returns within the write with probability 1 - exp(-w / Z); if none does, the next session arrives
/// after Z / n and is alone in its batch.
pub fn chain(n: usize, think_ms: f64, fixed_ms: f64, each_ms: f64) -> (f64, f64, f64) {
    let write_ms = |b: usize| fixed_ms + each_ms * b as f64;
    let mut share = vec![1.0 / n as f64; n + 1];
    share[0] = 0.0;
    for _ in 0..2_000 {
        let mut next = vec![0.0; n + 1];
        for (b, &share) in share.iter().enumerate().skip(1) {
            let p = 1.0 - (-write_ms(b) / think_ms).exp();
            let mut term = (1.0 - p).powi((n - b) as i32);
            for k in 0..=n - b {
                next[k.max(1)] += share * term;
                term *= (n - b - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
            }
        }
        share = next;
    }
    let (mut commits, mut cycle_ms) = (0.0, 0.0);
    for (b, share) in share.into_iter().enumerate().skip(1) {
        let w = write_ms(b);
        let none = (-w / think_ms).exp().powi((n - b) as i32);
        commits += share * b as f64;
        cycle_ms += share * (w + none * think_ms / n as f64);
    }
    let rate = commits / cycle_ms;
    (commits, rate, n as f64 / rate - think_ms)
}

#[test]
fn the_chain_gives_the_known_values() {
    for ((n, think_ms), (rate, sync_ms, batch)) in [
        ((20, 1.0), (11.087_02, 0.803_91, 5.698_92)),
        ((20, 5.0), (3.546_54, 0.639_30, 1.722_66)),
        ((40, 0.2), (24.877_50, 1.407_88, 19.804_96)),
    ] {
        let (b, x, r) = chain(n, think_ms, 0.4, 0.02);
        for (found, expected) in [(b, batch), (x, rate), (r, sync_ms)] {
            assert!((found / expected - 1.0).abs() < 1e-5, "{found} is not {expected}");
        }
    }
}

/// Sessions have think time; a write takes 0.4 ms, plus 20 us for each commit, which fills one block.
#[test]
fn group_commit_of_a_closed_loop() {
    for (n, think_ms) in [(20, 1.0), (20, 5.0), (40, 0.2)] {
        let (batch, rate, sync_ms) = chain(n as usize, think_ms, 0.4, 0.02);
        let runs = replicate(2, 20, 2, |seed| {
            let bench = Bench::on_memory(seed, with_commit_bytes(496), 400.0, 25.6);
            for number in 0..n {
                let mut session = bench.instance.session(number);
                let mut dice = bench.simulation.stream(&format!("session {number}"));
                bench.simulation.spawn("session", async move {
                    loop {
                        session.think(dice.exponential(think_ms * 1e6) as u64).await;
                        session.commit(0).await;
                    }
                });
            }
            // A second from the empty system on is not looked at.
            bench.simulation.run_until(100_000_000).unwrap();
            let before = bench.instance.redo().counts();
            bench.heard.waits.borrow_mut().clear();
            bench.simulation.run_until(1_100_000_000).unwrap();
            bench.assert_redo_is_conserved();
            let counts = bench.instance.redo().counts();
            let commits = (counts.redo_bytes - before.redo_bytes) as f64 / 496.0;
            let batch = commits / (counts.writes - before.writes) as f64;
            (commits / 1e3, batch, bench.mean_ms(Event::LogFileSync))
        });
        let column = |get: fn(&(f64, f64, f64)) -> f64| mean(&runs.iter().map(get).collect::<Vec<_>>());
        println!("{n} sessions, think {think_ms} ms");
        assert_near("commits per ms", column(|run| run.0), rate);
        assert_near("commits per write", column(|run| run.1), batch);
        assert_near("sync, ms", column(|run| run.2), sync_ms);
    }
}

/// Each session without think time commits in every other write, so two groups of sessions alternate.
#[test]
fn without_thinking_two_groups_alternate() {
    for n in [4, 20, 32] {
        let bench = Bench::on_memory(3, with_commit_bytes(100), 500.0, 1e12);
        for number in 0..n {
            let mut session = bench.instance.session(number);
            let mut dice = bench.simulation.stream(&format!("session {number}"));
            bench.simulation.spawn("session", async move {
                for _ in 0..1_000 {
                    session.compute(dice.below(20_000)).await;
                    session.commit(0).await;
                }
            });
        }
        bench.simulation.run().unwrap();
        let counts = bench.instance.redo().counts();
        let batch = counts.commits as f64 / counts.writes as f64;
        let sync_ms = bench.mean_ms(Event::LogFileSync);
        println!("{n}: {batch:.3} commits a write, sync {sync_ms:.4} ms");
        assert!((batch / (f64::from(n) / 2.0) - 1.0).abs() < 0.02);
        assert!((sync_ms - 1.0).abs() < 0.02, "two writes less the time to come back");
    }
}

/// A commit waits for the rest of the running flush and for its own flush, which never has much more than 1 MB.
#[test]
fn the_time_of_a_commit_is_a_sawtooth_over_its_redo() {
    // Redo of so many MB of blocks: 50 MB/s made, 150 MB/s written, 1 MB = 2^20 bytes.
    let mb = f64::from(1 << 20) * 496.0 / 512.0;
    for (size, expected_ms) in
        [(0.25, 2.066_7), (0.5, 3.733_3), (0.99, 7.0), (1.1, 6.133_3), (1.33, 3.066_7), (1.5, 3.733_3), (1.99, 7.0)]
    {
        let mut parameters = bare();
        parameters.redo.write_kb = 4 << 10;
        let bench = Bench::on_memory(3, parameters, 400.0, 150.0 * 1.048_576);
        let mut session = bench.instance.session(1);
        let piece = 992;
        let ns = (992.0 / (50.0 * mb) * 1e9_f64).round() as u64;
        bench.simulation.spawn("session", async move {
            session.change((size * mb) as u64, piece, ns).await;
            session.commit(0).await;
        });
        bench.simulation.run().unwrap();
        let sync_ms = bench.mean_ms(Event::LogFileSync);
        println!("{size} MB: {sync_ms:.4} ms, closed form {expected_ms}");
        assert!((sync_ms - expected_ms).abs() < 0.05, "{size} MB: {sync_ms} ms");
    }
}

/// Elapsed = CPU + waits for every session and the writers, with too few cores for all of them.
#[test]
fn every_nanosecond_is_accounted_for() {
    for seed in 0..20 {
        println!("seed {seed}");
        let parameters = InstanceParameters { cores: 1 + seed % 3, ..Default::default() };
        let bench = Bench::on_memory(seed, parameters, 200.0, 500.0);
        for number in 0..10 {
            let mut session = bench.instance.session(number);
            let sim = bench.simulation.sim().clone();
            let mut dice = bench.simulation.stream(&format!("session {number}"));
            bench.simulation.spawn("session", async move {
                for _ in 0..50 {
                    session.think(dice.below(3) * 100_000).await;
                    session.compute(dice.below(200_000)).await;
                    session.change(dice.below(2 << 20), 8_192, 1_000).await;
                    session.commit(0).await;
                    assert!(session.ledger().holds(sim.now_ns()));
                }
            });
        }
        bench.simulation.run().unwrap();
        bench.assert_redo_is_conserved();
        let counts = bench.instance.redo().counts();
        let waits = bench.heard.waits.borrow();
        let writes = waits.iter().filter(|wait| wait.event == Event::LogFileParallelWrite);
        assert_eq!(writes.map(|wait| wait.p[1]).sum::<u64>(), counts.blocks);
        for ledger in bench.instance.writers() {
            let told = waits.iter().filter(|wait| !matches!(wait.process, Process::Session(_)));
            assert!(ledger.cpu_ns + ledger.waited_ns() <= bench.simulation.now_ns());
            assert!(told.count() > 0);
        }
    }
}

/// Claim N14: with two members whose times are lognormal, a write takes as long as the slower one; the expected mean is
/// from a simulation of such pairs.
#[test]
fn the_slowest_member_decides() {
    let times = Times::Exponential { mean_us: 400.0 };
    let runs = replicate(5, 20, 2, |seed| {
        let bench = Bench::new(seed, bare(), |simulation| {
            let log = |name| station(simulation, name, 1, (constant(1.0), times.clone()));
            let data = memory(simulation, "data", 100.0, 1e12);
            Storage { redo: vec![log("a"), log("b")], temp: Rc::clone(&data), data }
        });
        let mut session = bench.instance.session(0);
        bench.simulation.spawn("session", async move {
            for _ in 0..2_000 {
                session.commit(0).await;
            }
        });
        bench.simulation.run().unwrap();
        assert!(bench.heard.waits.borrow().iter().any(|wait| wait.p == [2, 2, 2]));
        bench.mean_ms(Event::LogFileParallelWrite)
    });
    // The larger of two exponentials: 1 + 1/2 means.
    assert_near("log file parallel write, ms", mean(&runs), 0.6);
}
