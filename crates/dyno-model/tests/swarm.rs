//! Runs random machines and instances under random work, from a seed: whatever the stack, every request completes,
//! Little's law holds everywhere, every nanosecond of every session is accounted for, nothing is lost, and the run can
//! be replayed.
//!
//! `DYNO_SWARM=10000 cargo test --release -p dyno-model --test swarm` runs it for longer.
#![allow(clippy::unwrap_used, missing_docs)]

use std::rc::Rc;

use dyno_model::cell::parameters::Caching;
use dyno_model::cell::{Purpose, Rack, Tag};
use dyno_model::database::lru::Replacement;
use dyno_model::database::{Call, Instance, InstanceParameters, Policy, Process, Sink, Storage, Wait};
use dyno_model::device::array::Array;
use dyno_model::device::cache::{Cache, CacheParameters};
use dyno_model::device::disk::{Disk, DiskParameters, Scheduler};
use dyno_model::device::flash::{Flash, FlashParameters, PartialPages, Start};
use dyno_model::device::ftl::Collector;
use dyno_model::device::lun::{ChannelParameters, HbaChannel, Lun};
use dyno_model::device::raid5::{Raid5, Raid5Parameters};
use dyno_model::device::volume::{Volume, VolumeParameters};
use dyno_model::device::{Device, Request, start, start_discard};
use dyno_model::kernel::{Simulation, Stream};
use dyno_model::workload::{CommitLoop, KeyLookup, Limit, ScanJobs, SortLoad, Stop, UpdateLoop, Workload};

/// Condition that must hold at the end of a run, in addition to the conditions of the stations.
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
        match self.dice.below(if depth == 0 { 3 } else { 10 }) {
            0 => self.disk(&name),
            1 => self.flash(&name),
            2 => self.volume(&name),
            3 => self.cache(&name, depth),
            4 => self.rack(),
            5 => {
                let limit = self.pick(&[1, 2, 8]);
                let below = self.device(depth - 1);
                let channel = self.dice.chance(0.5).then(|| {
                    let parameters = ChannelParameters { queue_limit: limit + 1, ..ChannelParameters::default() };
                    HbaChannel::new(self.simulation, "channel", parameters)
                });
                Lun::new(self.simulation, &name, limit, below, channel)
            }
            6 => {
                let count = 3 + self.dice.below(2);
                let members = (0..count).map(|_| self.device(depth - 1)).collect();
                let parameters = Raid5Parameters { stripe_kb: self.pick(&[1, 8, 1_024]) };
                Raid5::new(&name, &parameters, members)
            }
            kind => {
                let count = 1 + self.dice.below(3);
                let members = (0..count).map(|_| self.device(depth - 1)).collect();
                match kind {
                    7 => Array::mirror(&name, members),
                    8 => Array::race(&name, members),
                    _ => {
                        let stripe_bytes = self.pick(&[512, 8_192, 1 << 20]);
                        Array::stripe(&name, stripe_bytes, members)
                    }
                }
            }
        }
    }

    fn volume(&mut self, name: &str) -> Rc<dyn Device> {
        let parameters = VolumeParameters {
            capacity_gb: 1.0,
            iops: self.pick(&[100.0, 3_000.0]),
            burst_iops: 5_000.0,
            credit_ios: self.pick(&[0.0, 50.0]),
            queue_depth: self.pick(&[1, 128]),
            ..VolumeParameters::default()
        };
        Volume::new(self.simulation, name, parameters)
    }

    /// Returns a group of a rack for any purpose; a rack cannot be stacked on other devices.
    fn rack(&mut self) -> Rc<dyn Device> {
        let parameters = crate::cell_common::random_rack(&mut self.dice);
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
            channels: self.pick(&[0, 1, 2]),
            channel_mb_s: self.pick(&[10.0, 1_600.0]),
            planes: self.pick(&[1, 2, 16]),
            mapping_cache_ratio: self.pick(&[0.0, 0.5, 1.0]),
            suspend_reads: self.pick(&[0, 1, 8]),
            suspend_us: self.pick(&[0.0, 20.0]),
            slc_mb: self.pick(&[0, 1]),
            wear_levelling: self.dice.chance(0.5),
            trim: self.dice.chance(0.5),
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
    if dice.chance(0.5) { Request::read(offset_bytes, bytes) } else { Request::write(offset_bytes, bytes) }
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
                let next = request(&mut dice, span_bytes);
                if dice.chance(0.1) {
                    start_discard(&sim, &*device, next.offset_bytes, next.bytes).await;
                }
                start(&sim, &*device, next).await;
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

/// A sink that asserts properties of every wait: no process has two waits at the same time, and no wait ends in the
/// future.
struct Watch {
    sim: dyno_model::kernel::Sim,
    ended: std::cell::RefCell<std::collections::BTreeMap<Process, u64>>,
    seen: std::cell::Cell<u64>,
}

impl Sink for Watch {
    fn wait(&self, wait: &Wait) {
        let mut ended = self.ended.borrow_mut();
        let before_ns = ended.insert(wait.process, wait.start_ns + wait.elapsed_ns);
        assert!(before_ns.unwrap_or(0) <= wait.start_ns, "{wait:?} began before {before_ns:?}");
        assert_eq!(wait.start_ns + wait.elapsed_ns, self.sim.now_ns());
        self.seen.set(self.seen.get() + 1);
    }

    fn call(&self, call: &Call) {
        assert!(call.cpu_ns <= call.elapsed_ns, "{call:?}");
        assert_eq!(call.started_ns + call.elapsed_ns, self.sim.now_ns());
    }
}

fn parameters(bench: &mut Bench) -> InstanceParameters {
    let mut all = InstanceParameters { cores: bench.pick(&[1, 2, 16]), ..Default::default() };
    (all.lgwr_first, all.cells) = (bench.dice.chance(0.3), bench.dice.chance(0.3));
    all.scheduler.policy = bench.pick(&[Policy::Fair, Policy::RoundRobin]);
    all.scheduler.slice_ms = bench.pick(&[0.01, 3.0]);
    let redo = &mut all.redo;
    redo.buffer_kb = bench.pick(&[64, 512, 8_192]);
    redo.strands = bench.pick(&[1, 2]);
    redo.private_kb = bench.pick(&[0, 4, 65]);
    redo.block_bytes = bench.pick(&[512, 4_096]);
    redo.trigger_kb = bench.pick(&[16, 1_024]);
    redo.write_kb = bench.pick(&[8, 1_024]);
    (redo.groups, redo.file_mb) = (bench.pick(&[2, 3]), bench.pick(&[1, 64]));
    redo.checkpoint_lag = bench.pick(&[0.1, 0.9, 5.0]);
    redo.allocate_us = bench.pick(&[0.5, 40.0]);
    let buffers = &mut all.buffers;
    buffers.buffers = bench.pick(&[1, 3, 50, 2_000]);
    buffers.replacement = bench.pick(&[Replacement::TouchCount, Replacement::Lru]);
    buffers.hot_pct = bench.pick(&[0.0, 50.0, 100.0]);
    buffers.touch_s = bench.pick(&[0.0, 3.0]);
    buffers.scan_pct = bench.pick(&[1.0, 40.0, 100.0]);
    buffers.dirty_queue = bench.pick(&[1, 25, 1_000]);
    buffers.writes = bench.pick(&[1, 32]);
    buffers.multiblock = bench.pick(&[1, 8, 128]);
    all
}

fn workload(bench: &mut Bench) -> Workload {
    let think_ms = bench.pick(&[0.0, 1.0]);
    match bench.dice.below(5) {
        0 => {
            let redo_bytes = bench.pick(&["1", "512", "4KiB..3MiB", "100,70000"]).into();
            Workload::CommitLoop(CommitLoop { redo_bytes, think_ms, ..Default::default() })
        }
        1 | 2 => Workload::UpdateLoop(UpdateLoop {
            blocks: bench.pick(&[1, 10, 300, 5_000]),
            skew: bench.pick(&[0.0, 1.0]),
            blocks_per_commit: bench.pick(&[1, 5, 40]),
            redo_per_block: bench.pick(&[100, 16_384]),
            think_ms,
            ..Default::default()
        }),
        3 => Workload::KeyLookup(KeyLookup {
            keys: bench.pick(&[1, 1_000, 100_000]),
            keys_per_leaf: bench.pick(&[2, 450]),
            think_ms,
            ..Default::default()
        }),
        _ if bench.dice.chance(0.5) => Workload::ScanJobs(ScanJobs {
            bytes: bench.pick(&[100, 1 << 20]),
            io_bytes: bench.pick(&[65_536, 1 << 20]),
            ahead: bench.pick(&[1, 3]),
            shared: bench.dice.chance(0.5),
            buffered: bench.dice.chance(0.5),
            think_ms,
            ..Default::default()
        }),
        _ => Workload::Sort(SortLoad {
            bytes: bench.pick(&[1, 1 << 20]),
            area_kb: bench.pick(&[64, 4_096]),
            io_kb: bench.pick(&[8, 64]),
            ahead: bench.pick(&[1, 2]),
            think_ms,
            ..Default::default()
        }),
    }
}

fn run_instance(seed: u64) -> (u64, u64) {
    let simulation = Simulation::new(seed);
    let dice = simulation.stream("machine");
    let mut bench = Bench { simulation: &simulation, dice, checks: Vec::new(), names: 0 };
    let members = 1 + bench.dice.below(2);
    let redo: Vec<_> = (0..members).map(|_| bench.device(1)).collect();
    let storage = Storage { redo, data: bench.device(1), temp: bench.device(0) };
    let (parameters, work) = (parameters(&mut bench), workload(&mut bench));
    let sessions = bench.pick(&[1, 3, 12]);
    let stop = Stop::new(bench.pick(&[0, 3]), Limit::Transactions(12));
    let checks = bench.checks;
    let (sim, ended) = (simulation.sim().clone(), std::cell::RefCell::default());
    let watch = Rc::new(Watch { sim, ended, seen: std::cell::Cell::new(0) });
    let sink = Rc::<Watch>::clone(&watch);
    println!("{work:?}\n{parameters:?}");
    let devices = storage.clone();
    let instance = Instance::new(&simulation, parameters, storage, sink).unwrap();
    let progress = work.spawn(&simulation, &instance, sessions, &stop).unwrap();
    simulation.run().unwrap();
    let each = u64::from(sessions) * 12;
    assert_eq!((progress.transactions(), progress.running()), (each, 0));
    assert_eq!(progress.unaccounted(), 0, "elapsed = CPU + waits");
    let (redo, counts) = (instance.redo(), instance.redo().counts());
    assert_eq!(redo.written_bytes(), counts.redo_bytes + redo.unflushed_bytes());
    let payload = instance.parameters().redo.block_bytes - 16;
    assert_eq!(counts.blocks * payload, counts.redo_bytes + counts.wasted_bytes);
    assert!(instance.report().little && instance.report().utilisation <= 1.0 + 1e-12);
    let Storage { redo, data, temp } = devices;
    for report in redo.iter().chain([&data, &temp]).flat_map(|device| device.reports()) {
        assert!(report.little, "{report:?}");
    }
    assert!(checks.iter().all(|check| check()));
    assert!(instance.buffers().dirty() <= instance.parameters().buffers.buffers);
    // The database writer may still have blocks to write: nothing of that is lost.
    simulation.run_until(simulation.now_ns() + 100_000_000).unwrap();
    (simulation.hash(), watch.seen.get())
}

/// Returns the number of runs: `DYNO_SWARM`, or `default` if it is not set.
fn count(default: u64) -> u64 {
    std::env::var("DYNO_SWARM").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_instances_keep_their_promises_and_replay() {
    let count = count(300);
    for seed in 0..count {
        println!("seed {seed}");
        let first = run_instance(seed);
        if seed % 10 == 0 {
            assert_eq!(first, run_instance(seed), "replay of seed {seed}");
        }
    }
}

#[test]
fn random_machines_keep_their_promises_and_replay() {
    let count = count(600);
    for seed in 0..count {
        println!("seed {seed}");
        let first = run(seed);
        if seed % 10 == 0 {
            assert_eq!(first, run(seed), "replay of seed {seed}");
        }
    }
}
