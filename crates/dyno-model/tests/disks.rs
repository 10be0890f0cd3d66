//! Tests disks, the cache in front of them, stripes, mirrors and LUNs against mechanics and closed forms.
#![allow(clippy::unwrap_used, missing_docs)]

use std::rc::Rc;

use crate::common::{assert_near, closed_loop, floats, mean, random_read};
use dyno_model::device::array::Array;
use dyno_model::device::cache::{Cache, CacheParameters};
use dyno_model::device::calibrate::fit;
use dyno_model::device::disk::{Disk, DiskParameters, Scheduler};
use dyno_model::device::empirical::{Empirical, EmpiricalParameters, Regime};
use dyno_model::device::lun::{ChannelParameters, HbaChannel, Lun};
use dyno_model::device::{Device, Request, start};
use dyno_model::kernel::sample::Times;
use dyno_model::kernel::{Sim, Simulation, Stream};

fn fifo() -> DiskParameters {
    DiskParameters { scheduler: Scheduler::Fifo, overhead_us: 0.0, ..DiskParameters::default() }
}

#[test]
fn the_mean_rotational_wait_is_half_a_turn() {
    for rpm in [5_400.0, 7_200.0, 10_000.0, 15_000.0] {
        let simulation = Simulation::new(1);
        let still = DiskParameters {
            rotation_rpm: rpm,
            seek_track_ms: 0.0,
            seek_span_ms: 0.0,
            outer_mb_s: 1e6,
            inner_mb_s: 1e6,
            ..fifo()
        };
        let disk: Rc<dyn Device> = Disk::new(&simulation, "disk", still);
        let waits = floats(&closed_loop(&simulation, &disk, 1, 20_000, random_read), 1e6);
        assert_near(&format!("{rpm} rpm, ms"), mean(&waits), 60e3 / rpm / 2.0);
    }
}

/// For two random positions, the square root of their distance has mean 8/15 and variance 1/3 - (8/15)^2; the rotation
/// has mean T/2 and variance T^2/12.
#[test]
fn the_service_time_is_seek_and_rotation() {
    let simulation = Simulation::new(2);
    let parameters = DiskParameters { seek_span_ms: 5.5, outer_mb_s: 136.533, inner_mb_s: 136.533, ..fifo() };
    let disk: Rc<dyn Device> = Disk::new(&simulation, "disk", parameters);
    let times = floats(&closed_loop(&simulation, &disk, 1, 100_000, random_read), 1e6);
    // Neighbouring seeks share a place: batches of 100 are independent enough.
    let batches: Vec<f64> = times.chunks(100).map(|batch| mean(batch).0).collect();
    assert_near("service, ms", mean(&batches), 0.5 + 5.5 * 8.0 / 15.0 + 2.0 + 0.06);
    let squares: Vec<f64> = times.iter().map(|t| (t - 5.493_33).powi(2)).collect();
    let squares: Vec<f64> = squares.chunks(100).map(|batch| mean(batch).0).collect();
    assert_near("variance, ms^2", mean(&squares), 2.812_222);
}

#[test]
fn an_append_without_a_cache_costs_a_turn() {
    for (rpm, per_second) in [(5_400.0, 90.0), (7_200.0, 120.0), (15_000.0, 250.0)] {
        let simulation = Simulation::new(3);
        let parameters = DiskParameters { rotation_rpm: rpm, ..DiskParameters::default() };
        let disk = Disk::new(&simulation, "disk", parameters);
        let sim = simulation.sim().clone();
        simulation.spawn("log writer", async move {
            for i in 0..1_000 {
                start(&sim, &*disk, Request::write(i * 512, 512)).await;
                sim.hold(20_000).await;
            }
        });
        simulation.run().unwrap();
        let rate = 1_000.0 / (simulation.now_ns() as f64 / 1e9);
        assert!((rate / per_second - 1.0).abs() < 0.01, "{rpm} rpm: {rate}/s");
    }
}

/// Claim N11: a disk with a queue serves 300 to 420 small reads per second; a read of 1 MB takes as long as about three
/// small ones.
#[test]
fn a_15k_disk_does_what_such_disks_do() {
    let rate = |jobs, next| {
        let simulation = Simulation::new(4);
        let disk: Rc<dyn Device> = Disk::new(&simulation, "disk", DiskParameters::default());
        closed_loop(&simulation, &disk, jobs, 500, next);
        assert!(disk.reports()[0].little);
        disk.reports()[0].departures as f64 / (simulation.now_ns() as f64 / 1e9)
    };
    let large: fn(&mut Stream, u64) -> Request =
        |dice, bytes| Request::read(dice.below((bytes >> 20) - 1) << 20, 1 << 20);
    let (one, queued, big) = (rate(1, random_read), rate(16, random_read), rate(1, large));
    println!("reads/s: {one:.0} alone, {queued:.0} with 16 queued, {big:.0} of 1 MB");
    assert!((150.0..250.0).contains(&one));
    assert!((300.0..420.0).contains(&queued));
    assert!((1.8..3.5).contains(&(one / big)));
}

#[test]
fn each_order_of_service_beats_the_one_before() {
    let rate = |scheduler| {
        let simulation = Simulation::new(5);
        let parameters = DiskParameters { scheduler, ..DiskParameters::default() };
        let disk: Rc<dyn Device> = Disk::new(&simulation, "disk", parameters);
        closed_loop(&simulation, &disk, 16, 500, random_read);
        8e12 / simulation.now_ns() as f64
    };
    let rates = [Scheduler::Fifo, Scheduler::Elevator, Scheduler::Nearest].map(rate);
    assert!(rates.is_sorted(), "{rates:?}");
}

fn device(sim: &Sim, name: &str, servers: u64, times: &Times) -> Rc<dyn Device> {
    let regime =
        Regime { read: times.clone(), write: times.clone(), stay_ms: 0.0, write_us_per_kb: 0.0, time_factor: 0.0 };
    let parameters = EmpiricalParameters { capacity_gb: 1.0, servers, regimes: vec![regime] };
    Empirical::new(sim, name, parameters)
}

fn exponential() -> Times {
    Times::Exponential { mean_us: 1_000.0 }
}

/// The mean of the largest of n exponentials is the harmonic number `H_n`.
#[test]
fn the_last_piece_of_a_stripe_and_the_slowest_copy_decide() {
    for n in [2_u64, 8, 32] {
        let simulation = Simulation::new(6);
        let members =
            || (0..n).map(|i| device(&simulation, &format!("member {i}"), 1, &exponential())).collect::<Vec<_>>();
        let harmonic: f64 = (1..=n).map(|k| 1.0 / k as f64).sum();
        let stripe: Rc<dyn Device> = Array::stripe("stripe", 8_192, members());
        let next: fn(&mut Stream, u64) -> Request = |_, _| Request::write(0, 32 * 8_192);
        if n == 32 {
            let times = floats(&closed_loop(&simulation, &stripe, 1, 5_000, next), 1e6);
            assert_near("stripe of 32", mean(&times), harmonic);
        }
        let mirror: Rc<dyn Device> = Array::mirror("mirror", members());
        let times = floats(&closed_loop(&simulation, &mirror, 1, 5_000, next), 1e6);
        assert_near(&format!("mirror of {n}"), mean(&times), harmonic);
    }
}

/// The mean of the smallest of n exponentials is one nth of their mean. The slower members finish their part of a race
/// while the next race runs.
#[test]
fn the_quickest_copy_of_a_race_decides_and_the_others_go_on() {
    for n in [1_u64, 2, 8] {
        let simulation = Simulation::new(16);
        let members = (0..n).map(|i| device(&simulation, &format!("member {i}"), 1_000, &exponential())).collect();
        let race: Rc<dyn Device> = Array::race("race", members);
        let next: fn(&mut Stream, u64) -> Request = |_, _| Request::write(0, 8_192);
        let times = floats(&closed_loop(&simulation, &race, 1, 20_000, next), 1e6);
        assert_near(&format!("race of {n}"), mean(&times), 1.0 / n as f64);
        assert!(race.reports().iter().all(|report| report.arrivals == 20_000 && report.little));
    }
}

#[test]
fn a_stripe_sends_every_byte_to_one_place() {
    let simulation = Simulation::new(7);
    let times = Times::Constant { us: 1.0 };
    let members = (0..3).map(|i| device(&simulation, &format!("m{i}"), 1, &times)).collect();
    let stripe: Rc<dyn Device> = Array::stripe("stripe", 100, members);
    let sim = simulation.sim().clone();
    let target = Rc::clone(&stripe);
    simulation.spawn("job", async move {
        start(&sim, &*target, Request::write(50, 300)).await;
    });
    simulation.run().unwrap();
    let pieces: Vec<u64> = stripe.reports().iter().map(|report| report.arrivals).collect();
    assert_eq!(pieces, [2, 1, 1]);
}

/// Ten jobs on a LUN that admits two requests have response times of five service times; if the LUN admits all ten, the
/// response time is one service time.
#[test]
fn a_throttle_multiplies_the_response_time() {
    for (limit, times) in [(1, 10), (2, 5), (5, 2), (10, 1), (32, 1)] {
        let simulation = Simulation::new(8);
        let array = device(&simulation, "array", 1_000, &Times::Constant { us: 500.0 });
        let lun: Rc<dyn Device> = Lun::new(&simulation, "lun", limit, array, None);
        let seen = closed_loop(&simulation, &lun, 10, 200, random_read);
        let late: Vec<u64> = seen[seen.len() - 1_000..].to_vec();
        assert!(late.iter().all(|&ns| ns == times * 500_000), "limit {limit}");
        assert!(lun.reports().iter().all(|report| report.little));
    }
}

/// Two LUNs admit eight requests each, but the channel that they share admits only four.
#[test]
fn a_channel_limits_all_its_luns_together() {
    let simulation = Simulation::new(9);
    let free = ChannelParameters { queue_limit: 4, rate_mb_s: 1e9, command_us: 0.0 };
    let channel = HbaChannel::new(&simulation, "channel", free);
    let times = Times::Constant { us: 500.0 };
    let stacks: Vec<_> = (0..2)
        .map(|i| {
            let array = device(&simulation, &format!("array {i}"), 1_000, &times);
            let name = format!("lun {i}");
            let lun: Rc<dyn Device> = Lun::new(&simulation, &name, 8, Rc::clone(&array), Some(Rc::clone(&channel)));
            (array, lun)
        })
        .collect();
    for (job, (_, lun)) in stacks.iter().cycle().take(32).enumerate() {
        let (sim, lun) = (simulation.sim().clone(), Rc::clone(lun));
        simulation.spawn(format!("job {job}"), async move {
            for _ in 0..50 {
                start(&sim, &*lun, Request::read(0, 8_192)).await;
            }
        });
    }
    simulation.run().unwrap();
    assert_eq!(simulation.now_ns(), 32 * 50 * 500_000 / 4);
    let inside: u64 = stacks.iter().map(|(array, _)| array.reports()[0].present_max).max().unwrap();
    assert!(inside <= 4);
}

fn cached(sim: &Sim, parameters: CacheParameters) -> (Rc<Cache>, Rc<dyn Device>) {
    let disk = Disk::new(sim, "disk", DiskParameters::default());
    let cache = Cache::new(sim, "cache", parameters, disk);
    (Rc::clone(&cache), cache)
}

fn random_write(dice: &mut Stream, capacity_bytes: u64) -> Request {
    Request { kind: dyno_model::device::Kind::Write, ..random_read(dice, capacity_bytes) }
}

#[test]
fn a_cache_takes_a_burst_until_it_is_full() {
    let simulation = Simulation::new(10);
    let parameters = CacheParameters { capacity_kb: 8 << 10, ..CacheParameters::default() };
    let (cache, device) = cached(&simulation, parameters);
    let seen = closed_loop(&simulation, &device, 1, 4_000, random_write);
    let first_slow = seen.iter().position(|&ns| ns > 400_000).unwrap();
    // 1,024 lines, filled by one write every 65 us and emptied by a disk of some hundred a second.
    assert!((1_024..1_100).contains(&first_slow), "{first_slow}");
    let (late, _) = mean(&floats(&seen[3_000..], 1e6));
    assert!((0.8..2.5).contains(&late), "then the pace of a sorted sweep: {late} ms");
    assert!(cache.holds() && cache.lines() > 1_000);
}

#[test]
fn what_is_written_again_is_absorbed() {
    let simulation = Simulation::new(11);
    let (cache, device) = cached(&simulation, CacheParameters::default());
    let next: fn(&mut Stream, u64) -> Request = |dice, _| Request::write(dice.below(64) * 8_192 * 1_001, 8_192);
    closed_loop(&simulation, &device, 4, 10_000, next);
    let share = cache.absorbed() as f64 / 40_000.0;
    assert!(share > 0.9, "{share}");
    assert!(cache.holds());
}

#[test]
fn without_battery_or_while_it_learns_every_write_is_the_disks() {
    let simulation = Simulation::new(12);
    let none = CacheParameters { battery: false, ..CacheParameters::default() };
    let (_, device) = cached(&simulation, none);
    let seen = closed_loop(&simulation, &device, 1, 300, random_write);
    assert!(mean(&floats(&seen, 1e6)).0 > 4.0);
    let learns = CacheParameters { learn_every_s: 1.0, learn_s: 0.25, ..CacheParameters::default() };
    let simulation = Simulation::new(12);
    let (cache, _) = cached(&simulation, learns);
    let at = |ms: u64| {
        simulation.run_until(ms * 1_000_000).unwrap();
        cache.writes_back()
    };
    assert_eq!([0, 740, 760, 990, 1_010].map(at), [true, true, false, false, true]);
}

#[test]
fn a_device_in_regimes_spends_its_time_as_the_stays_say_and_the_fit_notices() {
    let simulation = Simulation::new(13);
    let regime = |us: f64, stay_ms| {
        let times = Times::Lognormal { median_us: us, sigma: 0.1 };
        Regime { read: times.clone(), write: times, stay_ms, write_us_per_kb: 0.0, time_factor: 0.0 }
    };
    let regimes = vec![regime(100.0, 90.0), regime(2_000.0, 10.0)];
    let parameters = EmpiricalParameters { capacity_gb: 1.0, servers: 1, regimes };
    let device: Rc<dyn Device> = Empirical::new(&simulation, "virtual disk", parameters);
    let seen = floats(&closed_loop(&simulation, &device, 1, 200_000, random_read), 1e3);
    let slow_us: f64 = seen.iter().filter(|&&us| us > 500.0).sum();
    let share = slow_us / (simulation.now_ns() as f64 / 1e3);
    assert!((0.07..0.14).contains(&share), "{share}");
    let alike = fit(&seen).unwrap();
    assert!(alike.neighbours > 0.5, "{}", alike.neighbours);
}

#[test]
fn a_table_fits_as_well_as_the_data_can_tell() {
    let mut dice = Simulation::new(14).stream("measured");
    let seen: Vec<f64> = (0..60_000).map(|_| dice.lognormal(38.5, 0.4)).collect();
    let fit = fit(&seen).unwrap();
    println!("{:?}\n{:?}", fit.distance, fit.floor);
    assert!(fit.distance.ks < fit.floor.ks + 0.01 && fit.distance.ks < 0.02);
    assert!(fit.distance.log_w1 < fit.floor.log_w1 + 0.005);
    assert!(fit.neighbours.abs() < 0.02);
}
