//! Racks of storage cells for tests.
#![allow(clippy::unwrap_used, dead_code, missing_docs)]

use std::rc::Rc;

use dyno_model::cell::iorm::Directive;
use dyno_model::cell::parameters::{CacheMode, FlashLogParameters, Medium, NetworkParameters, Redundancy};
use dyno_model::cell::{GroupParameters, Purpose, Rack, RackParameters, Tag};
use dyno_model::device::empirical::{Empirical, EmpiricalParameters, Regime};
use dyno_model::device::{Device, Request};
use dyno_model::kernel::sample::Times;
use dyno_model::kernel::{Sim, Stream};

/// Returns a device without a queue whose request times are drawn from a distribution.
pub fn law(sim: &Sim, name: &str, times: &Times) -> Rc<dyn Device> {
    served(sim, name, times, 1_000)
}

/// Returns a device with this many servers.
pub fn served(sim: &Sim, name: &str, times: &Times, servers: u64) -> Rc<dyn Device> {
    let regime =
        Regime { read: times.clone(), write: times.clone(), stay_ms: 0.0, write_us_per_kb: 0.0, time_factor: 0.0 };
    let parameters = EmpiricalParameters { capacity_gb: 600.0, servers, regimes: vec![regime] };
    Empirical::new(sim, name, parameters)
}

/// Returns a rack with one disk group over this many cells, in which only the devices take time.
pub fn bare(count: u64, redundancy: Redundancy) -> RackParameters {
    let group = GroupParameters { redundancy, ..GroupParameters::default() };
    RackParameters {
        count,
        network: NetworkParameters { request_us: 0.0, rate_mb_s: 1e12 },
        flash_request_us: 0.0,
        flash_log: FlashLogParameters { dispatch_us: 0.0, ..FlashLogParameters::default() },
        groups: [("DATA".to_owned(), group)].into(),
        ..RackParameters::default()
    }
}

/// Returns the disk group `DATA`, used by the database `ORCL` for this purpose.
pub fn tagged(rack: &Rack, purpose: Purpose) -> Rc<dyn Device> {
    rack.group("DATA", &Tag::new(purpose, "ORCL")).unwrap()
}

pub fn log_write(dice: &mut Stream, _: u64) -> Request {
    Request::write(dice.below(1 << 20) * 512, 2_048)
}

pub fn exponential(mean_us: f64) -> Times {
    Times::Exponential { mean_us }
}

/// Returns the sum of a metric over all cells and objects.
pub fn metric(rack: &Rack, name: &str) -> f64 {
    rack.metrics().iter().filter(|metric| metric.name == name).map(|metric| metric.value).sum()
}

/// Returns a random rack, so small that memories fill up and that requests wait or are refused.
pub fn random_rack(dice: &mut Stream) -> RackParameters {
    let mut parameters = RackParameters {
        count: 1 + dice.below(4),
        disks: 1 + dice.below(3),
        modules: dice.below(4),
        simulated_mb: 8,
        ..RackParameters::default()
    };
    parameters.controller.capacity_kb = [64, 4_096][dice.below(2) as usize] * parameters.disks;
    parameters.flash.dies = 2;
    parameters.flash.pages_per_block = 16;
    parameters.flash_request_us = [0.0, 10.0][dice.below(2) as usize];
    parameters.network.request_us = [0.0, 50.0][dice.below(2) as usize];
    let log = &mut parameters.flash_log;
    log.enabled = dice.chance(0.7);
    log.module_mb = dice.below(3);
    log.dispatch_us = [0.0, 30.0][dice.below(2) as usize];
    log.outlier_ms = [0.1, 1.0, 500.0][dice.below(3) as usize];
    log.common_cause_ratio = [0.0, 0.1][dice.below(2) as usize];
    let cache = &mut parameters.flash_cache;
    cache.mode = [CacheMode::WriteThrough, CacheMode::WriteBack, CacheMode::None][dice.below(3) as usize];
    cache.size_gb = [0.000_1, 0.002, 1.0][dice.below(3) as usize];
    cache.line_kb = [4, 8, 64][dice.below(3) as usize];
    cache.keep_limit_ratio = [0.0, 0.5, 1.0][dice.below(3) as usize];
    cache.dirty_limit_ratio = [0.1, 0.8, 1.0][dice.below(3) as usize];
    cache.destages = 1 + dice.below(20);
    cache.populate_mb = dice.below(3);
    cache.scans = dice.chance(0.5);
    parameters.scan.offload = dice.chance(0.7);
    parameters.iorm.depth = 1 + dice.below(6);
    for name in ["A", "B", "other"].into_iter().filter(|_| dice.chance(0.4)).collect::<Vec<_>>() {
        let directive = Directive {
            share: 1 + dice.below(10),
            level: dice.below(3),
            allocation: 1.0 + dice.below(99) as f64,
            limit: [5.0, 100.0, 100.0][dice.below(3) as usize],
            flash_cache: dice.chance(0.8),
            flash_log: dice.chance(0.8),
        };
        parameters.iorm.plan.insert(name.into(), directive);
    }
    parameters.groups = ["DATA", "FAST", "RECO"]
        .into_iter()
        .map(|name| {
            let redundancy = [Redundancy::External, Redundancy::Normal, Redundancy::High]
                [dice.below(parameters.count.min(3)) as usize];
            let flash = name == "FAST" && parameters.modules > 0;
            let on = if flash { Medium::Flash } else { Medium::Disk };
            let (flash_log, extent_mb) = (dice.chance(0.8), 1 << dice.below(3));
            let group = GroupParameters { on, redundancy, extent_mb, flash_log, size_gb: 0.5, ..Default::default() };
            (name.into(), group)
        })
        .collect();
    parameters
}
