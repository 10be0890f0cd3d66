//! Tests a disk controller: its processor, the memory shared by its disks, and its flushes.
#![allow(clippy::unwrap_used, missing_docs)]

use std::cell::RefCell;
use std::rc::Rc;

use crate::common::{assert_near, closed_loop, floats, instance, mean};
use dyno_model::device::cache::{Cache, CacheParameters};
use dyno_model::device::controller::Controller;
use dyno_model::device::disk::{Disk, DiskParameters};
use dyno_model::device::{Device, Request, start};
use dyno_model::kernel::{Sim, Simulation, StationReport, Stream};

const LINE: u64 = 8_192;
const DISK_NS: u64 = 5_000_000;

/// Returns `count` caches that share one controller, each over a device that takes 5 ms.
fn caches(simulation: &Simulation, parameters: CacheParameters, count: usize) -> Vec<Rc<Cache>> {
    let controller = Controller::new(simulation, "controller", parameters);
    let times = (instance::constant(5_000.0), instance::constant(5_000.0));
    let cache = |number| {
        let below = instance::station(simulation, &format!("disk {number}"), 1, times.clone());
        Cache::of(&controller, &format!("cache {number}"), below)
    };
    (0..count).map(cache).collect()
}

/// Returns parameters with which only a flush writes to disk.
fn patient() -> CacheParameters {
    CacheParameters { start_ratio: 1.0, flush_s: 4.0, ..CacheParameters::default() }
}

/// Submits a write at `at_ns`; after the run, the returned value is the write's latency [ns].
fn write_at(simulation: &Simulation, device: &Rc<Cache>, at_ns: u64, line: u64) -> Rc<RefCell<u64>> {
    let (sim, device, out) = (simulation.sim().clone(), Rc::clone(device), Rc::new(RefCell::new(0)));
    let seen = Rc::clone(&out);
    simulation.spawn("writer", async move {
        sim.hold_until(at_ns).await;
        let begin_ns = sim.now_ns();
        *seen.borrow_mut() = start(&sim, &*device, Request::write(line * LINE, 512)).await - begin_ns;
    });
    out
}

fn processor(device: &dyn Device) -> StationReport {
    device.reports().into_iter().find(|report| report.name == "controller").unwrap()
}

#[test]
fn dirty_lines_stay_until_the_flush_and_none_after_it() {
    let simulation = Simulation::new(1);
    let cache = caches(&simulation, patient(), 1).remove(0);
    for line in 0..100 {
        write_at(&simulation, &cache, 1_000_000, line * 2);
    }
    let held = |ms: u64| {
        simulation.run_until(ms * 1_000_000).unwrap();
        cache.lines()
    };
    // Sixteen at once, each of 5 ms on a disk that takes one after the other: half a second.
    let seen: Vec<u64> = (1..90).map(|at| held(at * 100)).collect();
    let begin = seen.iter().position(|&lines| lines < 100).unwrap();
    assert!(begin < 41, "the flush came within 4 s: {begin}");
    assert_eq!(seen[begin + 7], 0);
    assert!(cache.holds());
}

#[test]
fn from_one_watermark_memory_is_emptied_down_to_the_other() {
    let simulation = Simulation::new(2);
    let (start_ratio, stop_ratio, flush_s) = (0.5, 0.25, 0.0);
    let capacity_kb = 8 * 100;
    let parameters = CacheParameters { capacity_kb, start_ratio, stop_ratio, flush_s, ..CacheParameters::default() };
    let cache = caches(&simulation, CacheParameters { destages: 1, ..parameters }, 1).remove(0);
    let write = |from: u64, to: u64, ms: u64| {
        for line in from..to {
            write_at(&simulation, &cache, ms * 1_000_000, line * 2);
        }
    };
    write(0, 50, 0);
    write(50, 51, 1_000);
    simulation.run_until(999_000_000).unwrap();
    assert_eq!(cache.lines(), 50, "at the mark nothing is written");
    simulation.run_until(3_000_000_000).unwrap();
    assert_eq!(cache.lines(), 25);
}

/// One disk can use the whole memory; if each disk had only a part of it, a single busy disk would soon fill its part.
#[test]
fn one_disk_may_fill_the_memory_of_all() {
    let simulation = Simulation::new(3);
    let parameters = CacheParameters { capacity_kb: 8 * 120, ..patient() };
    let all = caches(&simulation, parameters, 12);
    for line in 0..110 {
        write_at(&simulation, &all[0], 0, line * 2);
    }
    simulation.run_until(1_000_000).unwrap();
    simulation.run_until(30_000_000).unwrap();
    assert_eq!((all[0].lines(), all[1].lines()), (110, 0));
    assert!(all.iter().all(|cache| cache.holds()));
}

/// Experiment E10: an append to a line that a flush is writing waits for the disk, including the disk's earlier writes.
#[test]
fn a_line_on_its_way_to_disk_is_locked_until_it_is_there() {
    let longest = |locks| {
        let simulation = Simulation::new(4);
        let cache: Rc<dyn Device> =
            caches(&simulation, CacheParameters { locks, flush_s: 1.0, ..patient() }, 1).remove(0);
        // A log in pieces of a sixteenth of a line, and a table beside it.
        let (sim, table, log) = (simulation.sim().clone(), Rc::clone(&cache), Rc::clone(&cache));
        simulation.spawn_daemon("table", async move {
            for block in 0.. {
                start(&sim, &*table, Request::write((1_000 + block * 2) * LINE, LINE)).await;
                sim.hold(100_000_000).await;
            }
        });
        let next: fn(&mut Stream, u64) -> Request = |_, _| Request::write(0, 512);
        let mut seen = closed_loop(&simulation, &log, 1, 50_000, next);
        seen.sort_unstable();
        (seen[25_000], seen[49_999])
    };
    let ((median, locked), (_, copied)) = (longest(true), longest(false));
    assert!(locked > DISK_NS && locked < 12 * DISK_NS, "{locked}");
    assert!(median < 80_000 && copied < 2 * median, "{median} {copied}");
}

/// With independent writes, the controller's processor is an M/D/1 queue, so the Pollaczek-Khinchine formula gives the
/// mean wait.
#[test]
fn commands_at_random_wait_as_in_a_queue_of_constant_service() {
    let simulation = Simulation::new(5);
    let (command_us, rate_mb_s, flush_s) = (20.0, 1_000.0, 0.0);
    let cache = caches(&simulation, CacheParameters { command_us, rate_mb_s, flush_s, ..patient() }, 1).remove(0);
    let (service_us, every_us) = (20.0 + 8.192, 60.0);
    let mut dice = simulation.stream("arrivals");
    let (sim, device) = (simulation.sim().clone(), Rc::clone(&cache));
    simulation.spawn("arrivals", async move {
        for i in 0..200_000_u64 {
            sim.hold((dice.exponential(every_us) * 1e3) as u64).await;
            let (to, own) = (Rc::clone(&device), sim.clone());
            sim.spawn("write", async move {
                start(&own, &*to, Request::write(i % 64 * LINE, LINE)).await;
            });
        }
    });
    simulation.run().unwrap();
    let report = processor(&*cache);
    let load = service_us / every_us;
    let wait_us = load * service_us / (2.0 * (1.0 - load));
    println!("{} us, expected {wait_us} us, {} busy", report.wait_ns_mean / 1e3, report.utilisation);
    assert!((report.wait_ns_mean / 1e3 / wait_us - 1.0).abs() < 0.02);
    assert!((report.utilisation / load - 1.0).abs() < 0.01 && report.little);
}

/// The share of host writes that find the controller busy with destages equals the share of time that destages take.
/// This share decides claim N3.
#[test]
fn writes_are_held_up_for_the_share_of_time_that_destages_take() {
    let simulation = Simulation::new(6);
    let (start_ratio, stop_ratio, flush_s, destage_kb) = (0.0, 0.0, 0.0, 1_024);
    let parameters = CacheParameters { start_ratio, stop_ratio, flush_s, destage_kb, ..CacheParameters::default() };
    let all = caches(&simulation, parameters, 2);
    let (sim, bulk) = (simulation.sim().clone(), Rc::clone(&all[0]));
    let mut dice = simulation.stream("bulk");
    simulation.spawn_daemon("bulk", async move {
        for at in 0_u64.. {
            start(&sim, &*bulk, Request::write((at % 1_000) << 20, 1 << 20)).await;
            sim.hold((dice.exponential(20e3) * 1e3) as u64).await;
        }
    });
    let small: Rc<dyn Device> = all[1].clone();
    let sim = simulation.sim().clone();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let (out, mut dice) = (Rc::clone(&seen), simulation.stream("small"));
    simulation.spawn("small", async move {
        for i in 0..40_000_u64 {
            let begin_ns = sim.now_ns();
            let done_ns = start(&sim, &*small, Request::write(i * 2 * LINE, 512)).await;
            out.borrow_mut().push(done_ns - begin_ns);
            sim.hold((dice.exponential(1e3) * 1e3) as u64).await;
        }
    });
    simulation.run().unwrap();
    let seen = seen.take();
    let least = *seen.iter().min().unwrap();
    let late = seen.iter().filter(|&&ns| ns > least).count() as f64 / seen.len() as f64;
    let own_us = 10.0 + 512.0 / 1_800.0 + 10.0 + 8_192.0 / 1_800.0;
    let busy = processor(&*all[1]).utilisation - own_us / (1_000.0 + least as f64 / 1e3);
    println!("late {late}, busy with others {busy}");
    // Of 1,900 late writes that come in clusters the standard error is 3 %.
    assert!((late / busy - 1.0).abs() < 0.1, "{late} {busy}");
}

/// Published result: a cell of twelve disks scans 1.8 GB/s, less than the sum of its disks.
#[test]
fn the_controller_bounds_what_twelve_disks_scan() {
    let rate = |disks: u64, sim: &Simulation| {
        let controller = Controller::new(sim, "controller", CacheParameters::default());
        for number in 0..disks {
            let disk = Disk::new(sim, &format!("disk {number}"), DiskParameters::default());
            let cache = Cache::of(&controller, &format!("cache {number}"), disk);
            let own: Sim = sim.sim().clone();
            sim.spawn("scan", async move {
                let two = |from: u64| Request::read(from << 21, 2 << 20);
                for at in 0..100_u64 {
                    start(&own, &*cache, two(at)).await;
                }
            });
        }
        sim.run().unwrap();
        (disks * 100 * (2 << 20)) as f64 / sim.now_ns() as f64 * 1e3
    };
    let (one, all) = (rate(1, &Simulation::new(7)), rate(24, &Simulation::new(7)));
    println!("{one} MB/s of a disk, {all} of twenty-four");
    assert!(one > 80.0 && (1_700.0..1_800.0).contains(&all));
}

#[test]
fn reads_and_writes_of_an_idle_controller_take_what_its_table_says() {
    let simulation = Simulation::new(8);
    let cache: Rc<dyn Device> = caches(&simulation, patient(), 1).remove(0);
    let read: fn(&mut Stream, u64) -> Request = |dice, _| Request::read((1 + dice.below(1_000)) * LINE, LINE);
    let (read_us, _) = mean(&floats(&closed_loop(&simulation, &cache, 1, 100, read), 1e3));
    let write: fn(&mut Stream, u64) -> Request = |_, _| Request::write(0, LINE);
    let again = floats(&closed_loop(&simulation, &cache, 1, 10, write), 1e3);
    let bytes_us = 8_192.0 / 1_800.0;
    assert_near("read", (read_us, 0.01), 5_000.0 + 10.0 + bytes_us);
    assert_near("write", (mean(&again).0, 0.01), 60.0 + bytes_us);
}
