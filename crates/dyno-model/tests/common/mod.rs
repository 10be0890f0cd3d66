//! Closed loops of I/O for tests of devices.
#![allow(clippy::unwrap_used, dead_code, missing_docs)]

pub mod instance;
pub mod postgres;

use std::cell::RefCell;
use std::rc::Rc;

use dyno_model::device::{Device, Request, start};
use dyno_model::kernel::{Simulation, Stream};

/// Returns the latencies of `jobs` sessions with `count` consecutive I/Os each [ns].
pub fn closed_loop(
    simulation: &Simulation,
    device: &Rc<dyn Device>,
    jobs: u64,
    count: u64,
    next: fn(&mut Stream, u64) -> Request,
) -> Vec<u64> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    for job in 0..jobs {
        let (sim, device, seen) = (simulation.sim().clone(), Rc::clone(device), Rc::clone(&seen));
        let mut dice = simulation.stream(&format!("job {job}"));
        simulation.spawn("job", async move {
            for _ in 0..count {
                let begin_ns = sim.now_ns();
                let request = next(&mut dice, device.capacity_bytes());
                let done_ns = start(&sim, &*device, request).await;
                seen.borrow_mut().push(done_ns - begin_ns);
            }
        });
    }
    simulation.run().unwrap();
    seen.take()
}

/// Returns a read of 8 KB at a random place.
pub fn random_read(dice: &mut Stream, capacity_bytes: u64) -> Request {
    Request::read(dice.below(capacity_bytes / 8_192) * 8_192, 8_192)
}

/// Returns a write of 4 KB at a random place.
pub fn random_page_write(dice: &mut Stream, capacity_bytes: u64) -> Request {
    Request::write(dice.below(capacity_bytes / 4_096) * 4_096, 4_096)
}

/// Returns mean and standard error of independent values.
pub fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

pub fn assert_near(name: &str, (mean, error): (f64, f64), expected: f64) {
    let z = (mean - expected) / error;
    println!("{name}: {mean:.5} +- {error:.5}, expected {expected:.5}, z {z:.2}");
    assert!(z.abs() < 4.0, "{name}: z = {z}");
}

pub fn floats(ns: &[u64], unit_ns: f64) -> Vec<f64> {
    ns.iter().map(|&ns| ns as f64 / unit_ns).collect()
}
