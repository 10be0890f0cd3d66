//! Measures the elapsed time per transaction of an instance with a mirrored log, for one load of commits and two of
//! updates; prints one line of JSON for each load. Run it on an idle machine, or use the CPU seconds that `time`
//! reports.
//!
//! `cargo run --release -p dyno-model --example instance_bench [transactions]`
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::rc::Rc;
use std::time::Instant;

use dyno_model::database::{Instance, InstanceParameters, Storage};
use dyno_model::device::Device;
use dyno_model::device::array::Array;
use dyno_model::device::cache::{Cache, CacheParameters};
use dyno_model::device::disk::{Disk, DiskParameters};
use dyno_model::kernel::{Sim, Simulation};
use dyno_model::workload::{CommitLoop, Limit, Stop, UpdateLoop, Workload};

fn disk(sim: &Sim, name: &str) -> Rc<dyn Device> {
    let disk = Disk::new(sim, name, DiskParameters::default());
    Cache::new(sim, &format!("{name} cache"), CacheParameters::default(), disk)
}

fn measure(name: &str, workload: &Workload, each: u64) -> Result<(), Box<dyn Error>> {
    let simulation = Simulation::new(1);
    let members = vec![disk(&simulation, "log 1"), disk(&simulation, "log 2")];
    let redo = vec![Array::mirror("log", members) as Rc<dyn Device>];
    let data = disk(&simulation, "data");
    let storage = Storage { redo, data: Rc::clone(&data), temp: data };
    let parameters = InstanceParameters::default();
    let instance = Instance::new(&simulation, parameters, storage, Rc::new(()))?;
    let stop = Stop::new(10, Limit::Transactions(each));
    let began = Instant::now();
    let progress = workload.spawn(&simulation, &instance, 20, &stop)?;
    simulation.run()?;
    let seconds = began.elapsed().as_secs_f64();
    let counts = instance.redo().counts();
    println!(
        "{{\"load\": \"{name}\", \"transactions\": {}, \"seconds\": {seconds:.3}, \
         \"us_each\": {:.3}, \"events\": {}, \"commits_per_write\": {:.2}, \"virtual_s\": {:.1}}}",
        progress.transactions(),
        seconds * 1e6 / progress.transactions() as f64,
        simulation.events(),
        counts.commits as f64 / counts.writes as f64,
        simulation.now_ns() as f64 / 1e9,
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let all = std::env::args().nth(1).map_or(Ok(1_000_000), |text| text.parse::<u64>())?;
    measure("commit-loop", &Workload::CommitLoop(CommitLoop::default()), all / 20)?;
    let small = UpdateLoop { blocks: 5_000, ..UpdateLoop::default() };
    measure("update-loop, cached", &Workload::UpdateLoop(small), all / 20)?;
    let large = UpdateLoop { blocks: 100_000, ..UpdateLoop::default() };
    measure("update-loop, 10 % cached", &Workload::UpdateLoop(large), all / 100)
}
