//! The redo path against closed forms of group commit, the sawtooth, and its own book-keeping.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::cell::RefCell;
use std::rc::Rc;

use common::{assert_near, mean};
use dyno_model::database::redo::RedoCounts;
use dyno_model::database::{Event, Redo, RedoParameters, Session, Wait};
use dyno_model::device::Device;
use dyno_model::device::cache::{Cache, CacheParameters};
use dyno_model::device::disk::{Disk, DiskParameters};
use dyno_model::kernel::replicate::replicate;
use dyno_model::kernel::{Resource, Simulation};

type Waits = Rc<RefCell<Vec<Wait>>>;

struct Instance {
    simulation: Simulation,
    cores: Resource,
    redo: Redo,
    waits: Waits,
}

/// A log on a device that takes `fixed_us` and a time for the bytes; no CPU in the log writer.
fn instance(seed: u64, cores: u64, fixed_us: f64, rate_mb_s: f64, cpu_us: f64) -> Instance {
    let simulation = Simulation::new(seed);
    let disk = Disk::new(&simulation, "disk", DiskParameters::default());
    let memory = CacheParameters {
        capacity_kb: 1 << 30,
        hit_us: fixed_us,
        rate_mb_s,
        ..CacheParameters::default()
    };
    let log: Rc<dyn Device> = Cache::new(&simulation, "log", memory, disk);
    let cores = Resource::new(&simulation, "cores", cores);
    let waits = Waits::default();
    let seen = Rc::clone(&waits);
    let parameters =
        RedoParameters { gather_us: cpu_us, post_us: cpu_us, ..RedoParameters::default() };
    let sink = Rc::new(move |wait| seen.borrow_mut().push(wait));
    let redo = Redo::new(&simulation, parameters, &cores, log, sink);
    Instance { simulation, cores, redo, waits }
}

impl Instance {
    fn session(&self, number: u64) -> Session {
        let seen = Rc::clone(&self.waits);
        let sink = Rc::new(move |wait| seen.borrow_mut().push(wait));
        Session::new(&self.simulation, number, &self.cores, &self.redo, sink)
    }

    /// Mean time of an event, ms.
    fn mean_ms(&self, event: Event) -> f64 {
        let waits = self.waits.borrow();
        let times: Vec<u64> =
            waits.iter().filter(|wait| wait.event == event).map(|wait| wait.elapsed_ns).collect();
        times.iter().sum::<u64>() as f64 / times.len() as f64 / 1e6
    }

    fn counts(&self) -> RedoCounts {
        self.redo.counts()
    }
}

/// Commits at random times, each of a session of its own; (commits per write, mean sync).
fn open_loop(seed: u64, per_second: f64, write_us: f64) -> (f64, f64) {
    let instance = Rc::new(instance(seed, 1_000_000, write_us, 1e12, 0.0));
    let (sim, inside) = (instance.simulation.sim().clone(), Rc::clone(&instance));
    let mut dice = instance.simulation.stream("arrivals");
    let sessions: Vec<Session> = (1..=10_000).map(|number| inside.session(number)).collect();
    drop(inside);
    instance.simulation.spawn("arrivals", async move {
        for mut session in sessions {
            sim.hold(dice.exponential(1e9 / per_second) as u64).await;
            sim.spawn("commit", async move { session.commit(100).await });
        }
    });
    instance.simulation.run().unwrap();
    let counts = instance.counts();
    (counts.commits as f64 / counts.writes as f64, instance.mean_ms(Event::LogFileSync))
}

/// Batch = all that wait. A write is followed by another if anybody came meanwhile.
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

/// 20 sessions that think for 1 ms; a write takes 0.4 ms and 20 us for each block of one commit.
#[test]
fn group_commit_of_a_closed_loop() {
    let runs = replicate(2, 20, 2, |seed| {
        let instance = instance(seed, 1_000, 400.0, 25.6, 0.0);
        for number in 1..=20 {
            let mut session = instance.session(number);
            let mut dice = instance.simulation.stream(&format!("session {number}"));
            instance.simulation.spawn("session", async move {
                loop {
                    session.think(dice.exponential(1e6) as u64).await;
                    session.commit(496).await;
                }
            });
        }
        instance.simulation.run_until(1_000_000_000).unwrap();
        let counts = instance.counts();
        let batch = counts.redo_bytes as f64 / 496.0 / counts.writes as f64;
        (counts.redo_bytes as f64 / 496.0, batch, instance.mean_ms(Event::LogFileSync))
    });
    let column = |get: fn(&(f64, f64, f64)) -> f64| mean(&runs.iter().map(get).collect::<Vec<_>>());
    // One second from an empty system: the first commits are a little early, 1 in 1,000 of all.
    let (rate, error) = column(|run| run.0);
    assert!((rate / 11_087.02 - 1.0).abs() < 0.003 + 4.0 * error / rate, "{rate} +- {error}");
    assert_near("commits per write", column(|run| run.1), 5.698_92);
    assert_near("sync, ms", column(|run| run.2), 0.803_91);
}

/// A commit waits for the rest of the flush that runs, and for its own: never for much above 1 MB.
#[test]
fn the_time_of_a_commit_is_a_sawtooth_over_its_redo() {
    let mb = f64::from(1 << 20);
    // 50 MB/s made, 150 MB/s written, in units of 2^20 bytes.
    for (size, expected_ms) in [
        (0.25, 2.066_7),
        (0.5, 3.733_3),
        (0.99, 7.0),
        (1.1, 6.133_3),
        (1.33, 3.066_7),
        (1.5, 3.733_3),
        (1.99, 7.0),
    ] {
        let instance = instance(3, 4, 400.0, 150.0 * mb / 1e6 * 512.0 / 496.0, 0.0);
        let mut session = instance.session(1);
        let piece = 1_024;
        let ns = (1_024.0 / (50.0 * mb) * 1e9).round() as u64;
        instance.simulation.spawn("session", async move {
            session.change((size * mb) as u64, piece, ns).await;
            session.commit(1).await;
        });
        instance.simulation.run().unwrap();
        let sync_ms = instance.mean_ms(Event::LogFileSync);
        println!("{size} MB: {sync_ms:.4} ms, closed form {expected_ms}");
        assert!((sync_ms - expected_ms).abs() < 0.05, "{size} MB: {sync_ms} ms");
    }
}

/// Elapsed = CPU + waits for every session and the log writer, with too few cores for all of them.
#[test]
fn every_nanosecond_is_accounted_for() {
    for seed in 0..20 {
        println!("seed {seed}");
        let instance = instance(seed, 1 + seed % 3, 200.0, 500.0, 5.0);
        let sim = instance.simulation.sim().clone();
        for number in 1..=10 {
            let mut session = instance.session(number);
            let sim = sim.clone();
            let mut dice = instance.simulation.stream(&format!("session {number}"));
            instance.simulation.spawn("session", async move {
                for _ in 0..50 {
                    session.think(dice.below(3) * 100_000).await;
                    session.compute(dice.below(200_000)).await;
                    session.change(dice.below(2 << 20), 8_192, 1_000).await;
                    session.commit(200).await;
                    assert!(session.ledger().holds(sim.now_ns()));
                }
            });
        }
        instance.simulation.run().unwrap();
        let counts = instance.counts();
        let room = counts.blocks * 496;
        assert_eq!(room, counts.redo_bytes + counts.wasted_bytes);
        assert!(instance.cores.report().little);
        let waits = instance.waits.borrow();
        let writes = waits.iter().filter(|wait| wait.event == Event::LogFileParallelWrite);
        assert_eq!(writes.map(|wait| wait.p[1]).sum::<u64>(), counts.blocks);
    }
}

/// N13: with storage unchanged, a log writer that waits for cores makes commits slow.
#[test]
fn a_starved_log_writer_shows_as_sync_far_above_parallel_write() {
    let ratio = |cores| {
        let instance = instance(4, cores, 400.0, 500.0, 5.0);
        for number in 1..=40 {
            let mut session = instance.session(number);
            let mut dice = instance.simulation.stream(&format!("session {number}"));
            instance.simulation.spawn("session", async move {
                for _ in 0..100 {
                    session.compute(dice.exponential(1e6) as u64).await;
                    session.commit(400).await;
                }
            });
        }
        instance.simulation.run().unwrap();
        instance.mean_ms(Event::LogFileSync) / instance.mean_ms(Event::LogFileParallelWrite)
    };
    let (plenty, starved) = (ratio(64), ratio(2));
    println!("sync over parallel write: {plenty:.2} with 64 cores, {starved:.2} with 2");
    assert!(plenty < 2.0 && starved > 4.0);
}
