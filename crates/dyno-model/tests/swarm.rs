//! Random machines under random work, from a seed: whatever is stacked on whatever, every request
//! completes, Little's law holds everywhere, nothing is lost, and the run replays.
//!
//! `DYNO_SWARM=10000 cargo test --release -p dyno-model --test swarm` runs it for longer.
#![allow(clippy::unwrap_used, missing_docs)]

mod cell_common;

use std::rc::Rc;

use dyno_model::cell::parameters::Caching;
use dyno_model::cell::{Purpose, Rack, Tag};
use dyno_model::device::array::Array;
use dyno_model::device::cache::{Cache, CacheParameters};
use dyno_model::device::disk::{Disk, DiskParameters, Scheduler};
use dyno_model::device::flash::{Flash, FlashParameters, PartialPages, Start};
use dyno_model::device::ftl::Collector;
use dyno_model::device::lun::{ChannelParameters, HbaChannel, Lun};
use dyno_model::device::{Device, Request, start};
use dyno_model::kernel::{Simulation, Stream};

/// What must hold at the end, beside the stations.
type Check = Box<dyn Fn() -> bool>;

struct Bench<'a> {
    simulation: &'a Simulation,
    dice: Stream,
    checks: Vec<Check>,
    names: u64,
}

impl Bench<'_> {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.dice.below(from.len() as u64) as usize]
    }

    fn device(&mut self, depth: u32) -> Rc<dyn Device> {
        self.names += 1;
        let name = format!("device {}", self.names);
        match self.dice.below(if depth == 0 { 2 } else { 7 }) {
            0 => self.disk(&name),
            1 => self.flash(&name),
            2 => self.cache(&name, depth),
            3 => self.rack(),
            4 => {
                let limit = self.pick(&[1, 2, 8]);
                let below = self.device(depth - 1);
                let channel = self.dice.chance(0.5).then(|| {
                    let parameters = ChannelParameters {
                        queue_limit: limit + 1,
                        ..ChannelParameters::default()
                    };
                    HbaChannel::new(self.simulation, "channel", parameters)
                });
                Lun::new(self.simulation, &name, limit, below, channel)
            }
            kind => {
                let count = 1 + self.dice.below(3);
                let members = (0..count).map(|_| self.device(depth - 1)).collect();
                if kind == 5 {
                    Array::mirror(&name, members)
                } else {
                    let stripe_bytes = self.pick(&[512, 8_192, 1 << 20]);
                    Array::stripe(&name, stripe_bytes, members)
                }
            }
        }
    }

    /// A group of a rack, for any purpose. A rack has no place above other devices.
    fn rack(&mut self) -> Rc<dyn Device> {
        let parameters = cell_common::random_rack(&mut self.dice);
        let rack = Rack::new(self.simulation, &parameters).unwrap();
        let purpose = self.pick(&[Purpose::Data, Purpose::Redo, Purpose::Scan, Purpose::Temp]);
        let caching = self.pick(&[Caching::Default, Caching::Keep, Caching::None]);
        let group = rack.groups()[self.dice.below(3) as usize].clone();
        let device = rack.group(&group, &Tag { purpose, caching, database: "A".into() }).unwrap();
        self.checks.push(Box::new(move || rack.holds()));
        device
    }

    fn disk(&mut self, name: &str) -> Rc<dyn Device> {
        let parameters = DiskParameters {
            capacity_gb: self.pick(&[0.01, 1.0, 600.0]),
            scheduler: self.pick(&[Scheduler::Fifo, Scheduler::Elevator, Scheduler::Nearest]),
            zones: self.pick(&[1, 7, 16]),
            ..DiskParameters::default()
        };
        Disk::new(self.simulation, name, parameters)
    }

    fn flash(&mut self, name: &str) -> Rc<dyn Device> {
        let parameters = FlashParameters {
            capacity_mb: self.pick(&[2, 8]),
            dies: self.pick(&[1, 3, 8]),
            pages_per_block: self.pick(&[4, 16]),
            over_provisioning_ratio: self.pick(&[0.07, 0.5]),
            buffer_pages: self.pick(&[0, 1, 5, 100]),
            partial_pages: self.pick(&[PartialPages::Through, PartialPages::Buffered]),
            collector: self.pick(&[Collector::Greedy, Collector::CostBenefit, Collector::Fifo]),
            idle_collect_blocks: self.pick(&[0, 3, 8]),
            start: self.pick(&[Start::Fresh, Start::Steady]),
            ..FlashParameters::default()
        };
        let card = Flash::new(self.simulation, name, parameters);
        let checked = Rc::clone(&card);
        self.checks.push(Box::new(move || checked.holds()));
        card
    }

    fn cache(&mut self, name: &str, depth: u32) -> Rc<dyn Device> {
        let parameters = CacheParameters {
            capacity_kb: self.pick(&[8, 64, 4_096]),
            destages: self.pick(&[1, 4]),
            destage_kb: self.pick(&[8, 64]),
            battery: self.dice.chance(0.8),
            learn_every_s: self.pick(&[0.0, 0.01]),
            learn_s: 0.003,
            ..CacheParameters::default()
        };
        let below = self.device(depth - 1);
        let cache = Cache::new(self.simulation, name, parameters, below);
        let checked = Rc::clone(&cache);
        self.checks.push(Box::new(move || checked.holds()));
        cache
    }
}

fn request(dice: &mut Stream, span_bytes: u64) -> Request {
    let bytes = [512, 1_024, 4_096, 8_192, 100_000][dice.below(5) as usize];
    let offset_bytes = dice.below(span_bytes / 512) * 512;
    if dice.chance(0.5) {
        Request::read(offset_bytes, bytes)
    } else {
        Request::write(offset_bytes, bytes)
    }
}

fn run(seed: u64) -> (u64, u64) {
    let simulation = Simulation::new(seed);
    let dice = simulation.stream("machine");
    let mut bench = Bench { simulation: &simulation, dice, checks: Vec::new(), names: 0 };
    let device = bench.device(3);
    let jobs = 1 + bench.dice.below(6);
    let checks = bench.checks;
    for job in 0..jobs {
        let (sim, device) = (simulation.sim().clone(), Rc::clone(&device));
        let mut dice = simulation.stream(&format!("job {job}"));
        simulation.spawn("job", async move {
            let span_bytes = device.capacity_bytes().min(4 << (10 + dice.below(14)));
            for i in 0..60 {
                start(&sim, &*device, request(&mut dice, span_bytes)).await;
                sim.hold(dice.below(2) * 500_000).await;
                if job == 0 && i == 20 {
                    device.reset();
                }
            }
        });
    }
    simulation.run().unwrap();
    for report in device.reports() {
        assert!(report.little, "{report:?}");
        assert!(report.utilisation <= 1.0 + 1e-12 || report.servers == 1, "{report:?}");
    }
    assert!(checks.iter().all(|check| check()));
    (simulation.hash(), simulation.now_ns())
}

#[test]
fn random_machines_keep_their_promises_and_replay() {
    let count = std::env::var("DYNO_SWARM").ok().and_then(|text| text.parse().ok()).unwrap_or(600);
    for seed in 0..count {
        println!("seed {seed}");
        let first = run(seed);
        if seed % 10 == 0 {
            assert_eq!(first, run(seed), "replay of seed {seed}");
        }
    }
}
