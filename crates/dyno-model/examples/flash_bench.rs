//! Measures host writes per second of the flash card's write path, garbage collection included: uniformly random pages,
//! steady state, many sessions. Prints the best round as one line of JSON.
//!
//! `cargo run --release -p dyno-model --example flash_bench [writes] [rounds] [channels]`
//!
//! With a number of channels: buses of 333 MB/s between controller and dies, and a card that starts erased.

mod common;

use std::cell::Cell;
use std::rc::{Rc, Weak};
use std::time::Instant;

use dyno_model::device::flash::{Flash, FlashParameters, Start};
use dyno_model::device::ftl::Counts;
use dyno_model::device::{Device, Done, Observer, Request};
use dyno_model::kernel::{Simulation, Stream};

/// Closed loop of writes: submits the next write as soon as one is complete.
struct Loop {
    card: Rc<Flash>,
    dice: Cell<Option<Stream>>,
    left: Cell<u64>,
    me: Weak<Self>,
}

impl Loop {
    fn next(&self) {
        let (Some(mut dice), Some(me)) = (self.dice.take(), self.me.upgrade()) else { return };
        let page = dice.below(self.card.capacity_bytes() / 4_096);
        self.dice.set(Some(dice));
        self.card.submit(Request::write(page * 4_096, 4_096), Done::new(me, 0));
    }
}

impl Observer for Loop {
    fn done(&self, _: u64) {
        self.left.set(self.left.get().saturating_sub(1));
        if self.left.get() > 0 {
            self.next();
        }
    }
}

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse::<u64>().ok());
    let writes = numbers.next().unwrap_or(2_000_000);
    let rounds = numbers.next().unwrap_or(3);
    let parameters = numbers.next().map_or_else(FlashParameters::default, |channels| FlashParameters {
        channels,
        channel_mb_s: 333.0,
        start: Start::Fresh,
        ..FlashParameters::default()
    });
    let (mut best, mut counts, mut events) = (0.0_f64, Counts::default(), 0);
    let clock = Instant::now();
    for _ in 0..rounds {
        let simulation = Simulation::new(1);
        let card = Flash::new(&simulation, "card", parameters.clone());
        let load = Rc::new_cyclic(|me| Loop {
            card: Rc::clone(&card),
            dice: Cell::new(Some(simulation.stream("writes"))),
            left: Cell::new(writes),
            me: me.clone(),
        });
        let start_s = common::cpu_s(clock);
        (0..32).for_each(|_| load.next());
        while load.left.get() > 0 {
            simulation.run_until(simulation.now_ns() + 1_000_000_000).expect("no deadlock");
        }
        best = best.max(writes as f64 / (common::cpu_s(clock) - start_s));
        counts = card.counts();
        events = simulation.events();
    }
    println!(
        "{{\"host_writes\": {writes}, \"host_writes_per_s\": {best:.0}, \
         \"write_amplification\": {:.4}, \"pages_written\": {}, \"programs\": {}, \"erases\": {}, \"events\": {events}}}",
        counts.amplification(),
        counts.host_writes,
        counts.programs,
        counts.erases,
    );
}
