//! Tests identities between metrics that hold exactly at every instant of any run, on random racks with random work and
//! random commands in between. Each run prints its seed; `DYNO_SWARM=5000` makes 5,000 runs.
#![allow(clippy::unwrap_used, clippy::float_cmp, missing_docs)]

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::cell_common::random_rack;
use dyno_model::cell::metrics::MetricKind;
use dyno_model::cell::parameters::{CacheMode, Caching, Medium, RackParameters};
use dyno_model::cell::{Purpose, Rack, Tag};
use dyno_model::device::{Request, start};
use dyno_model::kernel::{Simulation, Stream};

/// Metric values of one cell, keyed by object type, object and metric name.
struct Seen(BTreeMap<(&'static str, String, String), f64>);

impl Seen {
    fn of(rack: &Rack, cell: &str) -> Self {
        let metrics = rack.metrics().into_iter().filter(|metric| metric.cell == cell);
        let mut seen = BTreeMap::new();
        for metric in metrics {
            assert!(metric.value.is_finite() && metric.value >= 0.0, "{metric:?}");
            let key = (metric.object_type, metric.object, metric.name);
            assert!(seen.insert(key.clone(), metric.value).is_none(), "{key:?} twice");
        }
        Self(seen)
    }

    /// Returns the sum of a metric over the objects of a type whose names begin with `object`.
    fn sum(&self, object_type: &str, object: &str, name: &str) -> f64 {
        let of = self
            .0
            .iter()
            .filter(|((kind, at, metric), _)| *kind == object_type && at.starts_with(object) && metric == name);
        of.map(|(_, value)| value).sum()
    }

    fn log(&self, name: &str) -> f64 {
        self.sum("FLASHLOG", "", name)
    }

    fn cache(&self, name: &str) -> f64 {
        self.sum("FLASHCACHE", "", name)
    }

    fn database(&self, name: &str) -> f64 {
        self.sum("IORM_DATABASE", "", name)
    }

    fn grid(&self, groups: &[&String], name: &str) -> f64 {
        groups.iter().map(|group| self.sum("GRIDDISK", &format!("{group}_"), name)).sum()
    }
}

const SKIPS: [&str; 8] =
    ["BUSY", "LARGE", "LOG_ON_FLASH", "NO_FL_DISKS", "DISABLED_GD", "IORM_PLAN", "NO_BUFFER", "IORM_LIMIT"];

/// Checks the metrics of the flash log; `whole` means that no write was in flight when counting began.
fn flash_log_holds(seen: &Seen, whole: bool) {
    let raced = seen.log("FL_IO_W");
    assert_eq!(raced, seen.log("FL_DISK_FIRST") + seen.log("FL_FLASH_FIRST"));
    let skipped: f64 = SKIPS.iter().map(|skip| seen.log(&format!("FL_IO_W_SKIP_{skip}"))).sum();
    assert_eq!(seen.log("FL_RQ_W"), raced + skipped);
    assert_eq!(seen.database("DB_FL_IO_RQ"), raced);
    let outliers = ["PREVENTED_OUTLIERS", "FLASH_ONLY_OUTLIERS", "ACTUAL_OUTLIERS"];
    let outliers: f64 = outliers.iter().map(|name| seen.log(&format!("FL_{name}"))).sum();
    assert!(!whole || outliers <= raced);
    assert!(seen.log("FL_SKIP_OUTLIERS") <= skipped);
}

fn flash_cache_holds(seen: &Seen, whole: bool) {
    for unit in ["RQ", "BY"] {
        let of = |name: &str| seen.cache(&format!("FC_IO_{unit}_{name}"));
        assert_eq!(of("W"), of("W_FIRST") + of("W_OVERWRITE") + of("W_POPULATE"));
        assert!(of("R_SKIP_LG") <= of("R_SKIP"));
        assert!(of("W_SKIP_LG") + of("W_SKIP_NCMIRROR") <= of("W_SKIP"));
        assert!(!whole || of("DISK_WRITE") <= of("R_DISK_WRITER"));
    }
    let served = seen.cache("FC_IO_RQ_R") + seen.cache("FC_IO_RQ_W");
    assert_eq!(seen.database("DB_FC_IO_RQ"), served);
    assert!(seen.cache("FC_BY_DIRTY") <= seen.cache("FC_BY_USED"));
    assert!(seen.cache("FC_BYKEEP_USED") <= seen.cache("FC_BY_USED"));
}

/// Checks the metrics of disks. For hard disks, the figures of the grid disks add up to those of the cell disks, and so
/// do the figures of the databases. For flash, the cell disks also have the I/O of the flash cache and the flash log.
fn disks_hold(seen: &Seen, parameters: &RackParameters) {
    let on = |medium: Medium| -> Vec<&String> {
        let groups = parameters.groups.iter().filter(|(_, group)| group.on == medium);
        groups.map(|(name, _)| name).collect()
    };
    for kind in ["R_SM", "R_LG", "W_SM", "W_LG"] {
        for unit in ["RQ", "BY"] {
            let (cell, grid) = (format!("CD_IO_{unit}_{kind}"), format!("GD_IO_{unit}_{kind}"));
            let of = |object: &str| seen.sum("CELLDISK", object, &cell);
            assert_eq!(of("CD_"), seen.grid(&on(Medium::Disk), &grid), "{cell}");
            assert!(of("FD_") >= seen.grid(&on(Medium::Flash), &grid), "{cell}");
        }
    }
    for size in ["SM", "LG"] {
        for (kind, disks) in [("DB_IO", "CD_"), ("DB_FD_IO", "FD_")] {
            let of = |kind: char| seen.sum("CELLDISK", disks, &format!("CD_IO_RQ_{kind}_{size}"));
            assert_eq!(seen.database(&format!("{kind}_RQ_{size}")), of('R') + of('W'));
        }
    }
}

fn holds(rack: &Rack, parameters: &RackParameters, whole: bool) {
    assert!(rack.holds());
    for cell in rack.cells() {
        let seen = Seen::of(rack, cell.name());
        flash_log_holds(&seen, whole);
        flash_cache_holds(&seen, whole);
        disks_hold(&seen, parameters);
    }
}

fn request(dice: &mut Stream, capacity_bytes: u64) -> Request {
    let bytes = [512, 4_096, 8_192, 20_000, 131_072, 131_073, 1 << 20][dice.below(7) as usize];
    let span = capacity_bytes.min([64 << 10, 4 << 20, 64 << 20][dice.below(3) as usize]);
    let offset_bytes = dice.below(span / 512) * 512;
    if dice.chance(0.5) { Request::read(offset_bytes, bytes) } else { Request::write(offset_bytes, bytes) }
}

fn tag(dice: &mut Stream) -> Tag {
    let purposes = [Purpose::Data, Purpose::Data, Purpose::Redo, Purpose::Scan, Purpose::Temp];
    Tag {
        purpose: purposes[dice.below(5) as usize],
        database: ["A", "B", "C"][dice.below(3) as usize].into(),
        caching: [Caching::Default, Caching::Keep, Caching::None][dice.below(3) as usize],
    }
}

/// Sends a random command, as an operator might.
fn command(rack: &Rack, dice: &mut Stream, plans: &[BTreeMap<String, dyno_model::cell::iorm::Directive>]) {
    let cell = &rack.cells()[dice.below(rack.cells().len() as u64) as usize];
    match dice.below(6) {
        0 => cell.set_flash_log(dice.chance(0.5)),
        1 => cell.flush(),
        2 => rack.set_plan(&plans[dice.below(plans.len() as u64) as usize]),
        3 => {
            let group = &rack.groups()[dice.below(rack.groups().len() as u64) as usize];
            let policy = if dice.chance(0.5) { Caching::None } else { Caching::Default };
            rack.set_caching(group, policy).unwrap();
        }
        4 => drop(rack.collect()),
        _ if cell.flash_cache().0 == CacheMode::None => {
            // Without modules there is no cache to be had.
            let _ = cell.create_flash_cache(CacheMode::WriteBack, 0.002);
        }
        _ => {
            // Refused while it is dirty.
            let _ = cell.drop_flash_cache();
        }
    }
}

fn run(seed: u64) -> (u64, String) {
    let simulation = Simulation::new(seed);
    let mut dice = simulation.stream("rack");
    let parameters = random_rack(&mut dice);
    let rack = Rack::new(&simulation, &parameters).unwrap();
    let plans = [BTreeMap::new(), parameters.iorm.plan.clone()];
    for job in 0..=dice.below(8) {
        let group = &rack.groups()[dice.below(rack.groups().len() as u64) as usize];
        let device = rack.group(group, &tag(&mut dice)).unwrap();
        let mut dice = simulation.stream(&format!("job {job}"));
        let sim = simulation.sim().clone();
        simulation.spawn("job", async move {
            for _ in 0..40 {
                let request = request(&mut dice, device.capacity_bytes());
                start(&sim, &*device, request).await;
                sim.hold(dice.below(3) * 400_000).await;
            }
        });
    }
    let (sim, operator, checked) = (simulation.sim().clone(), Rc::clone(&rack), parameters.clone());
    simulation.spawn("operator", async move {
        for turn in 0..8 {
            sim.hold(dice.below(20) * 1_000_000).await;
            command(&operator, &mut dice, &plans);
            holds(&operator, &checked, turn < 5);
            if turn == 4 {
                operator.reset();
            }
        }
    });
    simulation.run().unwrap();
    holds(&rack, &parameters, false);
    assert!(rack.reports().iter().all(|report| report.little), "Little's law");
    (simulation.hash(), format!("{:?}", rack.metrics()))
}

#[test]
fn identities_hold_exactly_on_random_racks_under_random_work() {
    let count = std::env::var("DYNO_SWARM").ok().and_then(|text| text.parse().ok()).unwrap_or(150);
    for seed in 0..count {
        println!("seed {seed}");
        let first = run(seed);
        if seed % 10 == 0 {
            assert!(first == run(seed), "replay of seed {seed}");
        }
    }
}

/// A counter never falls except at a reset, and a rate is its growth divided by the time between collections.
#[test]
fn rates_are_differences_of_counters() {
    let simulation = Simulation::new(1);
    let parameters = RackParameters::default();
    let rack = Rack::new(&simulation, &parameters).unwrap();
    let redo = rack.group("RECO", &Tag::new(Purpose::Redo, "ORCL")).unwrap();
    let sim = simulation.sim().clone();
    simulation.spawn_daemon("log writer", async move {
        for i in 0.. {
            start(&sim, &*redo, Request::write(i * 4_096, 4_096)).await;
            sim.hold(1_000_000).await;
        }
    });
    let minute = 60_000_000_000;
    simulation.run_until(minute).unwrap();
    let first = rack.collect();
    simulation.run_until(2 * minute).unwrap();
    let second = rack.collect();
    let find = |metrics: &[dyno_model::cell::Metric], object: &str, name: &str| {
        metrics.iter().find(|m| m.object == object && m.name == name).unwrap().value
    };
    let counter = |at: usize| find([&first, &second][at], "FLASHLOG", "FL_IO_DB_BY_W");
    let rate = find(&second, "FLASHLOG", "FL_IO_DB_BY_W_SEC");
    assert_eq!(rate, (counter(1) - counter(0)) / 60.0);
    let silent = find(&second, "ORCL", "DB_IO_BY_SEC");
    assert_eq!(silent, rate, "redo is all that this database writes to disk");
    let mean = find(&second, "FLASHLOG", "FL_IO_TM_W_RQ");
    let of = |name: &str| find(&second, "FLASHLOG", name) - find(&first, "FLASHLOG", name);
    assert_eq!(mean, of("FL_IO_TM_W") / of("FL_IO_W"));
    let kinds = [MetricKind::Counter, MetricKind::Gauge, MetricKind::Rate];
    assert!(kinds.iter().all(|kind| second.iter().any(|metric| metric.kind == *kind)));
    rack.reset();
    assert_eq!(find(&rack.metrics(), "FLASHLOG", "FL_IO_W"), 0.0);
}

/// The writes that grid disks receive are the group's writes times the number of copies.
#[test]
fn bytes_of_a_group_arrive_once_for_each_copy() {
    for seed in 0..40 {
        println!("seed {seed}");
        let simulation = Simulation::new(seed);
        let mut dice = simulation.stream("rack");
        // Nothing but disks: what is written is on them when it is complete.
        let mut parameters = RackParameters { modules: 0, ..random_rack(&mut dice) };
        parameters.groups.retain(|_, group| group.on == Medium::Disk);
        let rack = Rack::new(&simulation, &parameters).unwrap();
        let name = rack.groups()[0].clone();
        let device = rack.group(&name, &tag(&mut dice)).unwrap();
        let sim = simulation.sim().clone();
        let sent = Rc::new(std::cell::Cell::new([0, 0]));
        let counted = Rc::clone(&sent);
        simulation.spawn("job", async move {
            for _ in 0..60 {
                let request = request(&mut dice, device.capacity_bytes());
                start(&sim, &*device, request).await;
                let mut sum = counted.get();
                sum[usize::from(request.kind == dyno_model::device::Kind::Write)] += request.bytes;
                counted.set(sum);
            }
        });
        simulation.run().unwrap();
        let all = |name: &str| -> f64 {
            let of = rack.metrics().into_iter().filter(|m| m.object_type == "GRIDDISK");
            of.filter(|m| m.name.starts_with(name) && !m.name.ends_with("_SEC")).map(|m| m.value).sum()
        };
        let mb = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let [read, written] = sent.get();
        assert_eq!(all("GD_IO_BY_R_"), mb(read));
        assert_eq!(all("GD_IO_BY_W_"), mb(written * parameters.groups[&name].redundancy.copies()));
    }
}
