//! Storage cells: the race, copies, what is cached, and what the counters say of it.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::rc::Rc;

use common::{assert_near, closed_loop, floats, mean};
use dyno_model::cell::parameters::{FlashLogParameters, NetworkParameters, Redundancy};
use dyno_model::cell::{GroupParameters, Purpose, Rack, RackParameters, Tag};
use dyno_model::device::empirical::{Empirical, EmpiricalParameters, Regime};
use dyno_model::device::{Device, Request};
use dyno_model::kernel::sample::Times;
use dyno_model::kernel::{Sim, Simulation, Stream};

fn law(sim: &Sim, name: &str, times: &Times) -> Rc<dyn Device> {
    let regime = Regime { read: times.clone(), write: times.clone(), stay_ms: 0.0 };
    let parameters =
        EmpiricalParameters { capacity_gb: 600.0, servers: 1_000, regimes: vec![regime] };
    Empirical::new(sim, name, parameters)
}

/// One group over so many cells; no time but that of the devices.
fn bare(count: u64, redundancy: Redundancy) -> RackParameters {
    let group = GroupParameters { redundancy, ..GroupParameters::default() };
    RackParameters {
        count,
        network: NetworkParameters { request_us: 0.0, rate_mb_s: 1e12 },
        flash_log: FlashLogParameters { dispatch_us: 0.0, ..FlashLogParameters::default() },
        groups: [("DATA".to_owned(), group)].into(),
        ..RackParameters::default()
    }
}

fn redo(rack: &Rack) -> Rc<dyn Device> {
    rack.group("DATA", &Tag::new(Purpose::Redo, "ORCL")).unwrap()
}

fn log_write(dice: &mut Stream, _: u64) -> Request {
    Request::write(dice.below(1 << 20) * 512, 2_048)
}

fn exponential(mean_us: f64) -> Times {
    Times::Exponential { mean_us }
}

/// The minimum of exponentials of 4 and 1 ms is one of .8 ms; the slower wins one time in five.
#[test]
fn a_race_of_exponentials_is_the_exponential_of_the_sum_of_rates() {
    let simulation = Simulation::new(1);
    let parameters = bare(1, Redundancy::External);
    let disk = |sim: &Sim, name: &str| law(sim, name, &exponential(4_000.0));
    let flash = |sim: &Sim, name: &str| law(sim, name, &exponential(1_000.0));
    let rack = Rack::with(&simulation, &parameters, &disk, &flash).unwrap();
    let seen = closed_loop(&simulation, &redo(&rack), 1, 100_000, log_write);
    assert_near("race, ms", mean(&floats(&seen, 1e6)), 0.8);
}
