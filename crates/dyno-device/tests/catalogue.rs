//! The devices that come with dbdyno, in virtual time, compared with published figures.
#![allow(clippy::unwrap_used, missing_docs)]

use std::cell::RefCell;
use std::rc::Rc;

use dyno_device::devices::Model;
use dyno_model::device::{Request, start};
use dyno_model::kernel::{Simulation, Stream};

use crate::wall_clock::text_of;

const SEED: u64 = 7;
const SPAN: u64 = 256 << 20;

/// Returns the times of `count` requests of each of `jobs` sessions [ns].
fn times(text: &str, jobs: u64, count: u64, next: fn(&mut Stream) -> Request) -> (Vec<u64>, u64) {
    let simulation = Simulation::new(SEED);
    let device = Model::new(text, &[], SEED).unwrap().build(simulation.sim()).unwrap();
    let seen = Rc::new(RefCell::new(Vec::new()));
    for job in 0..jobs {
        let (sim, device, seen) = (simulation.sim().clone(), Rc::clone(&device), Rc::clone(&seen));
        let mut dice = simulation.stream(&format!("job {job}"));
        simulation.spawn("job", async move {
            for _ in 0..count {
                let begin_ns = sim.now_ns();
                let done_ns = start(&sim, &*device, next(&mut dice)).await;
                seen.borrow_mut().push(done_ns - begin_ns);
            }
        });
    }
    simulation.run().unwrap();
    (seen.take(), simulation.now_ns())
}

#[test]
fn a_module_of_the_f80_has_the_published_time_of_a_write_and_a_quarter_of_the_cards_reads() {
    let text = text_of("flash-2013");
    let model = Model::new(&text, &[], SEED).unwrap();
    let write_us = model.alone_ns(Request::write(0, 8_192)).unwrap() as f64 / 1e3;
    assert!((write_us - 85.0).abs() < 0.1, "{write_us} us");
    let (_, end_ns) = times(&text, 64, 500, |dice| Request::read(dice.below(SPAN / 8_192) * 8_192, 8_192));
    let reads_a_second = 64.0 * 500.0 / end_ns as f64 * 1e9;
    println!("{reads_a_second:.0} reads a second");
    assert!((reads_a_second / 38_750.0 - 1.0).abs() < 0.02, "{reads_a_second}");
}

/// The link transfers 5,000 MB/s. To move 16 pages of 4 KB to triple-level cells, each of the 16 dies takes 650 us
/// (read, then program); before that, it takes 100 us to program the single-level cells.
#[test]
fn a_client_drive_is_quick_until_its_cells_of_one_level_are_full() {
    let text = text_of("nvme-client-2024");
    let simulation = Simulation::new(SEED);
    let device = Model::new(&text, &[], SEED).unwrap().build(simulation.sim()).unwrap();
    let ends = Rc::new(RefCell::new(Vec::new()));
    let (sim, out) = (simulation.sim().clone(), Rc::clone(&ends));
    simulation.spawn("writer", async move {
        for number in 0..4_096 {
            start(&sim, &*device, Request::write(number << 20, 1 << 20)).await;
            out.borrow_mut().push(sim.now_ns());
        }
    });
    simulation.run().unwrap();
    let ends = ends.take();
    let mb_s = |from: usize, to: usize| (to - from) as f64 * 1.048_576e9 / (ends[to] - ends[from]) as f64;
    let (first, then) = (mb_s(100, 1_900), mb_s(2_200, 4_000));
    let cells = 16.0 * 16.0 * 4_096.0 / 750.0;
    println!("{first:.0} MB/s, then {then:.0} MB/s; the cells alone {cells:.0}");
    assert!(first > 2.0 * then, "{first} {then}");
    assert!(then <= cells * 1.01 && then > 0.6 * cells, "{then} {cells}");
}
