//! The buffer cache against exact hit ratios, and its writer against the fluid limit.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use common::assert_near;
use dyno_model::database::buffers::BufferCounts;
use dyno_model::database::wait::Account;
use dyno_model::database::{BufferCache, BufferParameters, Event};
use dyno_model::device::Device;
use dyno_model::device::empirical::{Empirical, EmpiricalParameters, Regime};
use dyno_model::kernel::sample::Times;
use dyno_model::kernel::zipf::Zipf;
use dyno_model::kernel::{Simulation, Stream};

type Next = Rc<dyn Fn(&mut Stream) -> u64>;

/// `sessions` that get `count` blocks each; counts, waits in seconds by event, and the time it took.
fn run(
    parameters: &BufferParameters,
    write_us: f64,
    (sessions, count, change): (u64, u64, bool),
    next: &Next,
) -> (BufferCounts, BTreeMap<Event, f64>, f64) {
    let simulation = Simulation::new(1);
    let (read, write) = (Times::Constant { us: 100.0 }, Times::Constant { us: write_us });
    let regimes = vec![Regime { read, write, stay_ms: 0.0 }];
    let parameters_of_disk = EmpiricalParameters { capacity_gb: 10.0, servers: 1_000, regimes };
    let device: Rc<dyn Device> = Empirical::new(&simulation, "files", parameters_of_disk);
    let waits = Rc::new(RefCell::new(BTreeMap::new()));
    let seen = Rc::clone(&waits);
    let sink: dyno_model::database::wait::Sink = Rc::new(move |wait| {
        *seen.borrow_mut().entry(wait.event).or_insert(0.0) += wait.elapsed_ns as f64 / 1e9;
    });
    let cache = BufferCache::new(&simulation, 0, parameters.clone(), device, Rc::clone(&sink));
    for session in 1..=sessions {
        let (sim, cache, next) = (simulation.sim().clone(), cache.clone(), Rc::clone(next));
        let account = Account::new(session, 0, Rc::clone(&sink));
        let mut dice = simulation.stream(&format!("session {session}"));
        simulation.spawn("session", async move {
            for _ in 0..count {
                cache.get(next(&mut dice), change, &account).await;
                sim.hold(10_000).await;
                account.cpu(10_000);
            }
            assert!(account.ledger().holds(sim.now_ns()));
        });
    }
    simulation.run().unwrap();
    let waits = waits.take();
    (cache.counts(), waits, simulation.now_ns() as f64 / 1e9)
}

fn hit_ratio(buffers: u64, count: u64, next: &Next) -> f64 {
    let parameters = BufferParameters { buffers, scan_ratio: 1.0, ..BufferParameters::default() };
    let (counts, _, _) = run(&parameters, 100.0, (1, count, false), next);
    1.0 - counts.reads as f64 / counts.gets as f64
}

/// Four blocks asked for with .4, .3, .2, .1: the exact ratios of least recently used.
#[test]
fn tiny_caches_hit_exactly_as_often_as_they_must() {
    let next: Next = Rc::new(|dice| match dice.below(10) {
        0..4 => 0,
        4..7 => 1,
        7..9 => 2,
        _ => 3,
    });
    for (buffers, expected) in [(1, 0.3), (2, 0.580_556), (3, 0.826_587)] {
        let hits = hit_ratio(buffers, 200_000, &next);
        // Neighbouring hits are alike: a standard error of twice the independent one.
        let error = 2.0 * (expected * (1.0 - expected) / 200_000_f64).sqrt();
        assert_near("hits", (hits, error), expected);
    }
}

/// Che's approximation for Zipf 0.8 over 10,000 blocks.
#[test]
fn a_skewed_load_hits_as_often_as_che_says() {
    let zipf = Rc::new(Zipf::new(10_000, 0.8));
    for (buffers, expected) in [(100, 0.156_62), (1_000, 0.436_66)] {
        let zipf = Rc::clone(&zipf);
        let next: Next = Rc::new(move |dice| u64::from(zipf.sample(dice)));
        let hits = hit_ratio(buffers, 200_000, &next);
        assert!((hits - expected).abs() < 0.008, "{buffers}: {hits}, Che {expected}");
    }
}

/// Blocks are dirtied faster than they can be written: then the writer's pace is everybody's.
#[test]
fn with_a_slow_writer_free_buffer_waits_set_the_pace_and_a_fast_one_removes_them() {
    let next: Next = Rc::new(|dice| dice.below(1_000_000));
    let parameters = BufferParameters { buffers: 500, writes: 8, ..BufferParameters::default() };
    let load = (20, 2_000, true);
    let (slow, slow_waits, slow_s) = run(&parameters, 2_000.0, load, &next);
    let (_, fast_waits, fast_s) = run(&parameters, 20.0, load, &next);
    let pace = slow.writes as f64 / slow_s;
    println!(
        "{pace:.0} writes/s of 4000, free buffer waits {:?}",
        slow_waits.get(&Event::FreeBufferWaits)
    );
    assert!((pace / 4_000.0 - 1.0).abs() < 0.02);
    let share = slow_waits[&Event::FreeBufferWaits] / (20.0 * slow_s);
    assert!(share > 0.8, "{share}");
    let fast = fast_waits.get(&Event::FreeBufferWaits).copied().unwrap_or(0.0);
    assert!(fast < 0.05 * 20.0 * fast_s, "{fast}");
    assert!(slow_s / fast_s > 3.0, "{}", slow_s / fast_s);
}

/// More sessions than buffers: whoever finds all of them being read waits for one to be there.
#[test]
fn a_cache_smaller_than_the_number_of_sessions_goes_on() {
    let next: Next = Rc::new(|dice| dice.below(50));
    let parameters =
        BufferParameters { buffers: 2, scan_ratio: 1.0, writes: 1, ..BufferParameters::default() };
    for change in [false, true] {
        let (counts, _, _) = run(&parameters, 300.0, (10, 50, change), &next);
        assert_eq!(counts.gets, 500);
    }
}
