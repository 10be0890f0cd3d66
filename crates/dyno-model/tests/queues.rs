//! Tests the kernel against closed forms of queueing theory, within four standard errors.
#![allow(clippy::unwrap_used, missing_docs)]

use std::cell::RefCell;
use std::rc::Rc;

use dyno_model::formula;
use dyno_model::kernel::replicate::replicate;
use dyno_model::kernel::{Resource, Simulation, StationReport, Stream};

const UNIT_NS: f64 = 1e6;

/// Sends customers at random times to `servers` servers; service times are in units of 1 ms.
fn station(seed: u64, servers: u64, rho: f64, customers: u64, service: fn(&mut Stream) -> f64) -> StationReport {
    let simulation = Simulation::new(seed);
    let till = Resource::new(&simulation, "till", servers);
    let (sim, counter) = (simulation.sim().clone(), till.clone());
    let mut arrivals = simulation.stream("arrivals");
    let dice = Rc::new(RefCell::new(simulation.stream("service")));
    simulation.spawn("source", async move {
        for _ in 0..customers {
            let gap = arrivals.exponential(UNIT_NS / rho / servers as f64);
            sim.hold(gap.round() as u64).await;
            let (me, till) = (sim.clone(), counter.clone());
            let ns = (service(&mut dice.borrow_mut()) * UNIT_NS).round() as u64;
            sim.spawn("customer", async move {
                let _served = till.acquire().await;
                me.hold(ns).await;
            });
        }
    });
    simulation.run().unwrap();
    let report = till.report();
    assert!(report.little, "Little's law");
    assert_eq!((report.arrivals, report.present), (customers, 0));
    report
}

fn exponential(dice: &mut Stream) -> f64 {
    dice.exponential(1.0)
}

fn constant(_: &mut Stream) -> f64 {
    1.0
}

/// Draws a time: 90 % are short, and 10 % are twenty times as long, like a flash card's reads that wait for programs.
fn bimodal(dice: &mut Stream) -> f64 {
    if dice.chance(0.1) { 2_000.0 / 290.0 } else { 100.0 / 290.0 }
}

/// Returns the mean wait as a multiple of the mean service time.
fn wait(report: &StationReport) -> f64 {
    report.wait_ns_mean / UNIT_NS
}

/// Returns mean and standard error of `run` over replications with different seeds.
fn over_runs(seed: u64, run: impl Fn(u64) -> f64 + Sync) -> (f64, f64) {
    let values = replicate(seed, 20, 2, run);
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

fn assert_near(name: &str, (mean, error): (f64, f64), expected: f64) {
    let z = (mean - expected) / error;
    println!("{name}: {mean:.5} +- {error:.5}, closed form {expected:.5}, z {z:.2}");
    assert!(z.abs() < 4.0, "{name}: z = {z}");
}

#[test]
fn one_server() {
    for (seed, rho) in [(1, 0.5), (2, 0.8), (3, 0.9)] {
        println!("seed {seed}");
        let customers = 400_000;
        let report = station(seed, 1, rho, customers, exponential);
        let error = formula::mm1_wait_standard_error(rho, customers as f64);
        assert_near("M/M/1", (wait(&report), error), formula::mm1_sojourn(rho) - 1.0);
        assert!((report.utilisation - rho).abs() < 0.01, "utilisation {}", report.utilisation);
    }
}

#[test]
fn several_servers() {
    for (servers, rho) in [(2, 0.8), (8, 0.9)] {
        let runs = over_runs(11, |seed| wait(&station(seed, servers, rho, 40_000, exponential)));
        assert_near("M/M/c", runs, formula::mmc_wait(servers as u32, rho));
    }
}

#[test]
fn constant_and_bimodal_service() {
    let runs = over_runs(21, |seed| wait(&station(seed, 1, 0.8, 40_000, constant)));
    assert_near("M/D/1", runs, formula::mg1_wait(0.8, 0.0));
    let runs = over_runs(22, |seed| wait(&station(seed, 1, 0.8, 60_000, bimodal)));
    assert_near("M/G/1", runs, formula::mg1_wait(0.8, 3.863_26));
}

/// Returns the share of customers that find all `places` occupied and leave.
fn turned_away(seed: u64, rho: f64, places: usize, customers: u64) -> f64 {
    let simulation = Simulation::new(seed);
    let server = Resource::new(&simulation, "server", 1);
    let lost = std::rc::Rc::new(std::cell::Cell::new(0_u64));
    let (sim, seen) = (simulation.sim().clone(), std::rc::Rc::clone(&lost));
    let mut arrivals = simulation.stream("arrivals");
    let mut service = simulation.stream("service");
    simulation.spawn("arrivals", async move {
        for _ in 0..customers {
            sim.hold(arrivals.exponential(UNIT_NS / rho) as u64).await;
            let busy_ns = service.exponential(UNIT_NS) as u64;
            if server.queue_len() + usize::from(server.free() == 0) == places {
                seen.set(seen.get() + 1);
                continue;
            }
            let (hold, server) = (sim.clone(), server.clone());
            sim.spawn("customer", async move {
                let _served = server.acquire().await;
                hold.hold(busy_ns).await;
            });
        }
    });
    simulation.run().unwrap();
    lost.get() as f64 / customers as f64
}

#[test]
fn a_station_with_few_places() {
    for (rho, places) in [(0.8, 10), (0.8, 3), (2.0, 5)] {
        let runs = over_runs(41, |seed| turned_away(seed, rho, places, 40_000));
        assert_near("M/M/1/K", runs, formula::mm1k_blocked(rho, places as i32));
    }
}

/// Runs `n` machines that work for a while, break down, and queue for the stations of a workshop.
fn machines(seed: u64, n: u64, demands_ms: &[f64], think_ms: f64) -> f64 {
    let simulation = Simulation::new(seed);
    let stations: Vec<Resource> =
        demands_ms.iter().enumerate().map(|(i, _)| Resource::new(&simulation, &format!("station {i}"), 1)).collect();
    for i in 0..n {
        let (sim, stations) = (simulation.sim().clone(), stations.clone());
        let demands_ms = demands_ms.to_vec();
        let mut dice = simulation.stream(&format!("machine {i}"));
        simulation.spawn("machine", async move {
            loop {
                sim.hold(dice.exponential(think_ms * UNIT_NS) as u64).await;
                for (station, mean) in stations.iter().zip(&demands_ms) {
                    let _repairing = station.acquire().await;
                    sim.hold(dice.exponential(mean * UNIT_NS) as u64).await;
                }
            }
        });
    }
    simulation.run_until(2_000 * 1_000_000).unwrap();
    stations.iter().for_each(Resource::reset);
    simulation.run_until(200_000 * 1_000_000).unwrap();
    let report = stations[stations.len() - 1].report();
    assert!(stations.iter().all(|station| station.report().little));
    report.departures as f64 / 198_000.0
}

#[test]
fn machine_repair_and_a_closed_network() {
    let runs = over_runs(31, |seed| machines(seed, 6, &[4.0], 20.0));
    assert_near("machine repair", runs, formula::mva(&[4.0], 20.0, 6).0);
    for n in [10, 20] {
        let runs = over_runs(32, |seed| machines(seed, n, &[5.0, 8.0, 4.0], 100.0));
        let expected = formula::mva(&[5.0, 8.0, 4.0], 100.0, n as u32).0;
        assert_near("closed network", runs, expected);
    }
}
