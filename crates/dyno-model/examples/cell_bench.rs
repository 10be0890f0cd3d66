//! Measures the CPU time of raced log writes on a rack of three cells, where each write has two copies.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::Instant;

use dyno_model::cell::{Purpose, Rack, RackParameters, Tag};
use dyno_model::device::{Request, start};
use dyno_model::kernel::Simulation;

fn main() {
    let writes: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(500_000);
    let bytes: u64 = std::env::args().nth(2).and_then(|text| text.parse().ok()).unwrap_or(2_048);
    let begin = Instant::now();
    let simulation = Simulation::new(1);
    let rack = Rack::new(&simulation, &RackParameters::default()).unwrap();
    let built = begin.elapsed();
    let log = rack.group("RECO", &Tag::new(Purpose::Redo, "ORCL")).unwrap();
    let sim = simulation.sim().clone();
    simulation.spawn("log writer", async move {
        for i in 0..writes {
            start(&sim, &*log, Request::write(i * bytes % (512 << 20), bytes)).await;
            sim.hold(300_000).await;
        }
    });
    let begin = Instant::now();
    simulation.run().unwrap();
    let ran = begin.elapsed();
    let us = ran.as_secs_f64() * 1e6 / (2 * writes) as f64;
    println!("built in {built:?}; {writes} writes of {bytes} in {ran:?}: {us:.2} us a raced copy");
    println!("virtual {:.1} s, {} events", simulation.now_ns() as f64 / 1e9, simulation.events());
}
