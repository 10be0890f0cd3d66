//! Tests the buffer cache against exact hit ratios, and its writer against the fluid limit.
#![allow(clippy::unwrap_used, missing_docs)]

use std::rc::Rc;

use crate::common::assert_near;
use crate::common::instance::{Bench, bare, constant, memory, station};
use dyno_model::database::lru::Replacement;
use dyno_model::database::{Event, InstanceParameters, Process, Storage};
use dyno_model::kernel::Stream;
use dyno_model::kernel::zipf::Zipf;

type Next = Rc<dyn Fn(&mut Stream) -> u64>;

/// Returns an instance whose data files are on a device with many servers and these times, and whose log takes almost
/// no time.
fn bench(seed: u64, parameters: InstanceParameters, read_us: f64, write_us: f64) -> Bench {
    Bench::new(seed, parameters, |simulation| {
        let times = (constant(read_us), constant(write_us));
        let data = station(simulation, "files", 1_000, times);
        let redo = vec![memory(simulation, "log", 1.0, 1e12)];
        Storage { redo, temp: Rc::clone(&data), data }
    })
}

/// Runs `sessions` that get `count` blocks each; if `change` is set, they change each block and commit.
fn load(bench: &Bench, sessions: u32, count: u64, change: bool, next: &Next) {
    for number in 0..sessions {
        let mut session = bench.instance.session(number);
        let (sim, next) = (bench.simulation.sim().clone(), Rc::clone(next));
        let mut dice = bench.simulation.stream(&format!("session {number}"));
        bench.simulation.spawn("session", async move {
            for _ in 0..count {
                let block = next(&mut dice);
                if change {
                    session.update(block, 200).await;
                    session.commit(0).await;
                } else {
                    session.get(block).await;
                }
                session.compute(10_000).await;
            }
            assert!(session.ledger().holds(sim.now_ns()));
        });
    }
    bench.simulation.run().unwrap();
    bench.assert_redo_is_conserved();
}

fn cache(buffers: u64, replacement: Replacement, hot_pct: f64) -> InstanceParameters {
    let mut parameters = bare();
    let cache = &mut parameters.buffers;
    (cache.buffers, cache.replacement, cache.hot_pct) = (buffers, replacement, hot_pct);
    cache.scan_pct = 100.0;
    parameters
}

fn hit_ratio(parameters: InstanceParameters, count: u64, next: &Next) -> f64 {
    let bench = bench(1, parameters, 100.0, 100.0);
    load(&bench, 1, count, false, next);
    let counts = bench.instance.buffers().counts();
    assert_eq!(counts.gets, count);
    1.0 - counts.reads as f64 / counts.gets as f64
}

/// Returns parameters without a hot part: touches move no buffer, so that replacement is first in, first out.
fn fifo(buffers: u64) -> InstanceParameters {
    cache(buffers, Replacement::TouchCount, 0.0)
}

fn lru(buffers: u64) -> InstanceParameters {
    cache(buffers, Replacement::Lru, 0.0)
}

/// Four blocks, requested with probabilities .4, .3, .2 and .1, have exact hit ratios.
#[test]
fn tiny_caches_hit_exactly_as_often_as_they_must() {
    let next: Next = Rc::new(|dice| match dice.below(10) {
        0..4 => 0,
        4..7 => 1,
        7..9 => 2,
        _ => 3,
    });
    for (name, parameters, expected) in [
        ("LRU 1", lru(1), 0.3),
        ("LRU 2", lru(2), 0.580_556),
        ("LRU 3", lru(3), 0.826_587),
        ("FIFO 1", fifo(1), 0.3),
        ("FIFO 2", fifo(2), 0.571_429),
        ("FIFO 3", fifo(3), 0.808),
    ] {
        let hits = hit_ratio(parameters, 200_000, &next);
        // Neighbouring hits are alike: a standard error of twice the independent one.
        let error = 2.0 * (expected * (1.0 - expected) / 200_000_f64).sqrt();
        assert_near(name, (hits, error), expected);
    }
}

/// Hit ratios agree with Che's approximation for Zipf 0.8 over 10,000 blocks. Touch counts forget what happened in the
/// hot part: with independent references, their hit ratio is only slightly above that of first in, first out.
#[test]
fn a_skewed_load_hits_as_often_as_che_says() {
    let zipf = Rc::new(Zipf::new(10_000, 0.8));
    let next: Next = Rc::new(move |dice| u64::from(zipf.sample(dice)));
    for (buffers, of_lru, of_fifo) in [(100, 0.156_62, 0.133_62), (1_000, 0.436_66, 0.394_18)] {
        let hits = hit_ratio(lru(buffers), 300_000, &next);
        assert!((hits - of_lru).abs() < 0.007, "LRU {buffers}: {hits}, Che {of_lru}");
        let hits = hit_ratio(fifo(buffers), 300_000, &next);
        assert!((hits - of_fifo).abs() < 0.007, "FIFO {buffers}: {hits}, Che {of_fifo}");
        let mut touch_count = cache(buffers, Replacement::TouchCount, 50.0);
        touch_count.buffers.touch_s = 0.0;
        let hits = hit_ratio(touch_count, 300_000, &next);
        println!("touch counts, {buffers} buffers: {hits}");
        assert!(hits > of_fifo, "touch counts {buffers}: {hits}");
    }
}

/// A full scan must not evict blocks in use, which is the purpose of touch counts.
#[test]
fn a_scan_does_not_push_out_blocks_in_use() {
    let misses = |replacement| {
        let mut parameters = cache(1_000, replacement, 50.0);
        parameters.buffers.touch_s = 0.0;
        let bench = bench(1, parameters, 100.0, 100.0);
        let (mut session, instance) = (bench.instance.session(0), bench.instance.clone());
        let read = Rc::new(std::cell::Cell::new(0));
        let seen = Rc::clone(&read);
        bench.simulation.spawn("session", async move {
            for _ in 0..5 {
                for block in 0..400 {
                    session.get(block).await;
                }
            }
            session.scan_blocks(10_000..30_000).await;
            let before = instance.buffers().counts().reads;
            for block in 0..400 {
                session.get(block).await;
            }
            seen.set(instance.buffers().counts().reads - before);
        });
        bench.simulation.run().unwrap();
        let waits = bench.heard.waits.borrow();
        let scattered = waits.iter().filter(|wait| wait.event == Event::DbFileScatteredRead);
        let blocks: u64 = scattered.map(|wait| wait.p[2]).sum();
        assert_eq!(blocks, 20_000, "read by no more than 128 at a time");
        read.get()
    };
    assert_eq!(misses(Replacement::TouchCount), 0);
}

/// If blocks are dirtied faster than they can be written, the writer limits the throughput.
#[test]
fn with_a_slow_writer_free_buffer_waits_set_the_pace_and_a_fast_one_removes_them() {
    let next: Next = Rc::new(|dice| dice.below(1_000_000));
    let mut parameters = bare();
    (parameters.buffers.buffers, parameters.buffers.writes) = (500, 8);
    let run = |write_us| {
        let bench = bench(1, parameters.clone(), 100.0, write_us);
        load(&bench, 20, 2_000, true, &next);
        let seconds = bench.simulation.now_ns() as f64 / 1e9;
        let writes = bench.instance.buffers().counts().writes as f64 / seconds;
        (writes, bench.seconds(Event::FreeBufferWaits) / (20.0 * seconds), seconds)
    };
    let (pace, share, slow_s) = run(2_000.0);
    let (_, fast_share, fast_s) = run(20.0);
    println!("{pace:.0} writes/s of 4000; free buffer waits {share:.3}, {fast_share:.3}");
    assert!((pace / 4_000.0 - 1.0).abs() < 0.03, "{pace}");
    assert!(share > 0.8 && fast_share < 0.05, "{share} {fast_share}");
    assert!(slow_s / fast_s > 3.0, "{}", slow_s / fast_s);
}

/// With more sessions than buffers, a session that finds all buffers being read waits for one.
#[test]
fn a_cache_smaller_than_the_number_of_sessions_goes_on() {
    let next: Next = Rc::new(|dice| dice.below(50));
    for replacement in [Replacement::TouchCount, Replacement::Lru] {
        for change in [false, true] {
            let mut parameters = cache(2, replacement, 50.0);
            parameters.buffers.writes = 1;
            let bench = bench(1, parameters, 300.0, 300.0);
            load(&bench, 10, 50, change, &next);
            assert_eq!(bench.instance.buffers().counts().gets, 500);
        }
    }
}

/// Write-ahead: no block is written to the files before its redo is durable. With a log that takes 5 ms, the first
/// write of a block cannot complete earlier.
#[test]
fn redo_goes_first() {
    let mut parameters = bare();
    (parameters.buffers.buffers, parameters.redo.timeout_s) = (2, 1e6);
    let bench = Bench::new(1, parameters, |simulation| {
        let data = station(simulation, "files", 8, (constant(10.0), constant(10.0)));
        let redo = vec![memory(simulation, "log", 5_000.0, 1e12)];
        Storage { redo, temp: Rc::clone(&data), data }
    });
    let mut session = bench.instance.session(0);
    bench.simulation.spawn("session", async move {
        for block in 0..3 {
            session.update(block, 200).await;
        }
    });
    bench.simulation.run().unwrap();
    // Nobody committed: it was the database writer that asked the log writer.
    assert_eq!(bench.instance.redo().counts().writes, 1);
    let waits = bench.heard.waits.borrow();
    let free = waits.iter().find(|wait| wait.event == Event::FreeBufferWaits).unwrap();
    assert!((5_000_000..5_100_000).contains(&free.elapsed_ns), "{free:?}");
    assert!(
        waits.iter().any(|wait| { wait.process == Process::LogWriter && wait.event == Event::LogFileParallelWrite })
    );
}

/// A session that changes a block must wait if the block is being written because buffers are needed.
#[test]
fn a_block_cannot_be_changed_while_it_is_written() {
    let next: Next = Rc::new(|dice| dice.below(12));
    let mut parameters = cache(8, Replacement::TouchCount, 0.0);
    parameters.buffers.dirty_queue = 1;
    let bench = bench(1, parameters, 100.0, 2_000.0);
    load(&bench, 6, 200, true, &next);
    assert!(bench.seconds(Event::WriteCompleteWaits) > 0.0);
    assert!(bench.seconds(Event::ReadByOtherSession) > 0.0);
}

/// Reads from storage cells have event names of their own, and their parameter p3 is in bytes.
#[test]
fn reads_from_cells_have_their_own_names() {
    let mut parameters = bare();
    parameters.cells = true;
    let bench = bench(1, parameters, 100.0, 100.0);
    let mut session = bench.instance.session(0);
    bench.simulation.spawn("session", async move {
        session.get(7).await;
        session.scan_blocks(100..110).await;
    });
    bench.simulation.run().unwrap();
    let waits = bench.heard.waits.borrow();
    let told: Vec<_> =
        waits.iter().filter(|wait| wait.process == Process::Session(0)).map(|wait| (wait.event, wait.p[2])).collect();
    assert_eq!(told, [(Event::CellSingleBlock, 8_192), (Event::CellMultiblock, 81_920)]);
    assert!(waits.iter().all(|wait| u32::try_from(wait.p[0]).is_ok()));
}
