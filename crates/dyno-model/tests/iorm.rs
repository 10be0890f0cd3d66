//! Tests resource management: databases whose requests always wait get their shares of a disk, and unused shares go to
//! others.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::cell_common::{bare, served};
use dyno_model::cell::iorm::Directive;
use dyno_model::cell::parameters::Redundancy;
use dyno_model::cell::{Purpose, Rack, RackParameters, Tag};
use dyno_model::device::{Request, start};
use dyno_model::kernel::sample::Times;
use dyno_model::kernel::{Sim, Simulation};

const SECONDS: u64 = 20;

fn share(share: u64) -> Directive {
    Directive { share, ..Directive::default() }
}

fn level(level: u64, allocation: f64) -> Directive {
    Directive { level, allocation, ..Directive::default() }
}

/// Returns a cell with two disks under this IORM plan, without flash.
fn managed(plan: &[(&str, Directive)]) -> RackParameters {
    let plan: BTreeMap<String, Directive> =
        plan.iter().map(|(name, directive)| ((*name).to_owned(), directive.clone())).collect();
    let mut parameters = RackParameters { disks: 2, modules: 0, ..bare(1, Redundancy::External) };
    parameters.iorm.plan = plan;
    parameters
}

/// Runs sessions that read at random from each database for a while; returns the number of I/Os of each database.
fn contend(rack: &Rc<Rack>, simulation: &Simulation, load: &[(&str, u64, u64)]) -> Vec<f64> {
    for &(database, sessions, bytes) in load {
        let device = rack.group("DATA", &Tag::new(Purpose::Data, database)).unwrap();
        for session in 0..sessions {
            let (sim, device) = (simulation.sim().clone(), Rc::clone(&device));
            let mut dice = simulation.stream(&format!("{database} {session}"));
            simulation.spawn_daemon("session", async move {
                loop {
                    let offset_bytes = dice.below(device.capacity_bytes() / bytes) * bytes;
                    start(&sim, &*device, Request::read(offset_bytes, bytes)).await;
                }
            });
        }
    }
    simulation.run_until(SECONDS * 1_000_000_000).unwrap();
    assert!(rack.holds() && rack.reports().iter().all(|report| report.little));
    let metrics = rack.metrics();
    let done = |database: &str| -> f64 {
        let of = metrics.iter().filter(|m| m.object == database);
        of.filter(|m| m.name == "DB_IO_RQ_SM" || m.name == "DB_IO_RQ_LG").map(|m| m.value).sum()
    };
    load.iter().map(|&(database, _, _)| done(database)).collect()
}

/// Returns the number of I/Os of each database on a disk that serves one request of 3.3 ms at a time.
fn on_servers(plan: &[(&str, Directive)], load: &[(&str, u64, u64)]) -> Vec<f64> {
    let simulation = Simulation::new(1);
    let make = |sim: &Sim, name: &str| served(sim, name, &Times::Constant { us: 3_300.0 }, 1);
    let mut parameters = managed(plan);
    (parameters.disks, parameters.iorm.depth) = (1, 1);
    let rack = Rack::with(&simulation, &parameters, &make, &make).unwrap();
    contend(&rack, &simulation, load)
}

/// Claim N15 on realistic disks with seek and rotation; each disk has eight requests at a time.
#[test]
fn shares_of_10_and_4_are_71_and_29_percent_under_contention() {
    let simulation = Simulation::new(2);
    let parameters = managed(&[("A", share(10)), ("B", share(4))]);
    let rack = Rack::new(&simulation, &parameters).unwrap();
    let done = contend(&rack, &simulation, &[("A", 32, 8_192), ("B", 32, 8_192)]);
    let of_a = done[0] / (done[0] + done[1]);
    println!("{done:?} in {SECONDS} s: {:.2} %", of_a * 100.0);
    assert!((of_a - 10.0 / 14.0).abs() < 0.01, "{of_a}");
    let waits = rack.metrics();
    let wait =
        |database: &str| waits.iter().find(|m| m.object == database && m.name == "DB_IO_WT_SM_RQ").unwrap().value;
    assert!(wait("B") > 2.0 * wait("A"), "{} {}", wait("A"), wait("B"));
}

/// After `ALTER IORMPLAN INACTIVE`, requests are served first come, first served, and every database may use flash.
#[test]
fn a_plan_that_is_not_active_changes_nothing_until_one_is_set() {
    let mut parameters = managed(&[("A", Directive { flash_log: false, ..share(10) })]);
    parameters.iorm.active = false;
    assert!(parameters.iorm.directive("A").flash_log && !parameters.iorm.has_plan());
    let simulation = Simulation::new(3);
    let rack = Rack::new(&simulation, &parameters).unwrap();
    assert!(rack.cells()[0].plan().is_empty());
    let done = contend(&rack, &simulation, &[("A", 32, 8_192), ("B", 32, 8_192)]);
    assert!((done[0] / (done[0] + done[1]) - 0.5).abs() < 0.02, "{done:?}");
    rack.set_plan(&parameters.iorm.plan);
    assert_eq!(rack.cells()[0].plan(), parameters.iorm.plan);
}

#[test]
fn a_share_that_is_not_used_goes_to_the_others() {
    let plan = [("A", share(10)), ("B", share(4)), ("C", share(1))];
    let all = SECONDS as f64 / 3.3e-3;
    let alone = on_servers(&plan, &[("B", 16, 8_192)]);
    assert!((alone[0] / all - 1.0).abs() < 0.01, "{alone:?}");
    let two = on_servers(&plan, &[("B", 16, 8_192), ("C", 16, 8_192)]);
    assert!((two[0] / all - 0.8).abs() < 0.01, "{two:?}");
    // A session at a time does not use up its 10 of 14.
    let light = on_servers(&plan, &[("A", 1, 8_192), ("B", 16, 8_192)]);
    assert!(light[0] / all < 0.5 && (light.iter().sum::<f64>() / all - 1.0).abs() < 0.01);
}

/// Shares are shares of disk time: a request of 1 MB counts with its expected time.
#[test]
fn large_requests_weigh_more_than_small_ones() {
    let done = on_servers(&[("A", share(1)), ("B", share(1))], &[("A", 16, 8_192), ("B", 16, 1 << 20)]);
    let cost = managed(&[]).iorm;
    let expected = cost.cost_ns(1 << 20) as f64 / cost.cost_ns(8_192) as f64;
    assert!((2.0..4.0).contains(&expected), "a large one is about three small ones: {expected}");
    assert!((done[0] / done[1] / expected - 1.0).abs() < 0.05, "{done:?} {expected}");
}

/// Unused turns of a database of level 1 go to level 2, not to another database of level 1.
#[test]
fn a_turn_of_a_level_that_is_not_used_goes_to_the_next_level() {
    let plan = [("A", level(1, 75.0)), ("B", level(1, 25.0)), ("C", level(2, 100.0))];
    let all = SECONDS as f64 / 3.3e-3;
    let shares = |load: &[(&str, u64, u64)]| -> Vec<f64> {
        on_servers(&plan, load).iter().map(|done| (done / all * 100.0).round()).collect()
    };
    let (a, b, c) = (("A", 16, 8_192), ("B", 16, 8_192), ("C", 16, 8_192));
    assert_eq!(shares(&[a, b, c]), [75.0, 25.0, 0.0]);
    assert_eq!(shares(&[a, c]), [75.0, 25.0]);
    assert_eq!(shares(&[b, c]), [25.0, 75.0]);
    assert_eq!(shares(&[a, b]), [75.0, 25.0]);
    assert_eq!(shares(&[c]), [100.0]);
}

/// A limit applies even if the disk is idle.
#[test]
fn a_limit_is_not_exceeded_on_an_idle_disk() {
    let limited = Directive { limit: 20.0, ..Directive::default() };
    let done = on_servers(&[("A", limited)], &[("A", 32, 8_192)]);
    // Expected cost of 3.3 ms and 8 KB at 150 MB/s.
    let most = SECONDS as f64 / 3.3546e-3 * 0.2;
    assert!((done[0] / most - 1.0).abs() < 0.01, "{done:?} {most}");
}

/// Commands act immediately: a plan is activated and removed while requests wait.
#[test]
fn a_plan_is_put_in_force_and_lifted_while_the_run_goes_on() {
    let simulation = Simulation::new(3);
    let make = |sim: &Sim, name: &str| served(sim, name, &Times::Constant { us: 3_300.0 }, 1);
    let mut parameters = managed(&[]);
    (parameters.disks, parameters.iorm.depth) = (1, 1);
    let rack = Rack::with(&simulation, &parameters, &make, &make).unwrap();
    let (sim, commands) = (simulation.sim().clone(), Rc::clone(&rack));
    simulation.spawn("operator", async move {
        sim.hold(5_000_000_000).await;
        commands.set_plan(&[("A".to_owned(), share(3)), ("B".to_owned(), share(1))].into());
        sim.hold(5_000_000_000).await;
        commands.set_plan(&BTreeMap::new());
    });
    let done = contend(&rack, &simulation, &[("A", 16, 8_192), ("B", 16, 8_192)]);
    // Half of the time three to one, else as the sessions are: even.
    let of_a = done[0] / (done[0] + done[1]);
    assert!((of_a - (0.75 * 0.25 + 0.5 * 0.75)).abs() < 0.02, "{of_a}");
    let all = SECONDS as f64 / 3.3e-3;
    assert!((done.iter().sum::<f64>() / all - 1.0).abs() < 0.01);
}

/// Returns the counters of a rack after one or two databases have read for a while. They have long queues of 1 MB
/// requests, so that the number of requests on a disk matters.
fn counted(plan: &[(&str, Directive)], load: &[(&str, u64, u64)]) -> Vec<(String, String, f64)> {
    let simulation = Simulation::new(4);
    let rack = Rack::new(&simulation, &managed(plan)).unwrap();
    contend(&rack, &simulation, load);
    let all = rack.metrics().into_iter().filter(|metric| metric.object != "B");
    all.map(|metric| (metric.name, metric.object, metric.value)).collect()
}

/// Regression: a plan with only flash attributes limited a disk to eight requests.
#[test]
fn a_plan_that_only_switches_flash_leaves_disks_as_they_are() {
    let load = [("A", 48, 1 << 20), ("C", 16, 8_192)];
    let without = counted(&[], &load);
    let off = Directive { flash_log: false, flash_cache: false, ..Directive::default() };
    let only_flash = [("A", off), ("other", Directive::default())];
    assert_eq!(counted(&only_flash, &load), without);
    // So it is not because nothing could make a difference.
    assert_ne!(counted(&[("A", share(1))], &load), without);
}

/// A single database gets everything, whatever its share; a limit applies nevertheless.
#[test]
fn a_share_or_a_level_binds_nobody_where_there_is_one_database() {
    let load = [("A", 48, 1 << 20)];
    let without = counted(&[], &load);
    assert_eq!(counted(&[("A", share(8)), ("other", share(1))], &load), without);
    assert_eq!(counted(&[("A", level(1, 60.0)), ("other", level(2, 100.0))], &load), without);
    let limited = Directive { limit: 50.0, ..Directive::default() };
    assert_ne!(counted(&[("A", limited)], &load), without);
    // With a second one that the cells know the disks are shared out, also while it does nothing.
    assert_ne!(counted(&[("A", share(8)), ("B", share(1))], &load), without);
}
