//! Tests flash: write amplification against mean-field theory, latencies against the parameters.
#![allow(clippy::unwrap_used, missing_docs)]

use std::rc::Rc;

use crate::common::{closed_loop, random_page_write, random_read};
use dyno_model::device::flash::{Flash, FlashParameters, PartialPages, Start};
use dyno_model::device::ftl::{Collector, Ftl, Step};
use dyno_model::device::{Device, Request, start};
use dyno_model::formula::{fifo_amplification, greedy_amplification};
use dyno_model::kernel::{Simulation, Stream};

const BLOCKS: u32 = 4_096;

fn write(ftl: &mut Ftl, lpn: u32) {
    while ftl.must_collect() {
        assert_ne!(ftl.collect(), Step::Nothing);
    }
    ftl.write(lpn);
}

/// Returns the FTL of a die in its steady state, and the number of its logical pages.
fn steady(spare: f64, pages_per_block: u32, by: Collector, dice: &mut Stream) -> (Ftl, u32) {
    let pages = (f64::from(BLOCKS * pages_per_block) / spare) as u32;
    let mut ftl = Ftl::new(pages, BLOCKS, pages_per_block, by);
    ftl.fill_steadily(3, dice);
    assert!(ftl.holds());
    (ftl, pages)
}

/// Returns the effective spare space: three blocks are never sealed (two erased ones, and half of each open one).
fn effective(spare: f64) -> f64 {
    spare * (1.0 - 3.0 / f64::from(BLOCKS))
}

#[test]
fn greedy_collection_amplifies_as_theory_says() {
    for (spare, pages_per_block) in [(1.07, 64), (1.15, 64), (1.28, 64), (1.28, 128), (2.0, 64)] {
        let mut dice = Simulation::new(1).stream("writes");
        let (mut ftl, pages) = steady(spare, pages_per_block, Collector::Greedy, &mut dice);
        let pages = u64::from(pages);
        (0..pages).for_each(|_| write(&mut ftl, dice.below(pages) as u32));
        ftl.reset();
        (0..3 * pages).for_each(|_| write(&mut ftl, dice.below(pages) as u32));
        let expected = greedy_amplification(effective(spare), pages_per_block);
        let error = ftl.counts().amplification() / expected - 1.0;
        println!("{spare} {pages_per_block}: expected {expected:.4}, {:+.2} %", error * 100.0);
        assert!(error.abs() < 0.005 && ftl.holds());
    }
}

/// The initial state is drawn from the steady state: there is no drift from the first write on.
#[test]
fn a_steady_start_needs_no_preconditioning() {
    let mut dice = Simulation::new(2).stream("writes");
    let (mut ftl, pages) = steady(1.28, 64, Collector::Greedy, &mut dice);
    (0..pages / 2).for_each(|_| write(&mut ftl, dice.below(u64::from(pages)) as u32));
    let expected = greedy_amplification(effective(1.28), 64);
    let error = ftl.counts().amplification() / expected - 1.0;
    assert!(error.abs() < 0.02, "{error}");
}

#[test]
fn first_in_first_out_amplifies_as_theory_says() {
    let mut dice = Simulation::new(3).stream("writes");
    let pages = (512.0 * 64.0 / 1.28) as u32;
    let mut ftl = Ftl::new(pages, 512, 64, Collector::Fifo);
    (0..4 * pages).for_each(|_| write(&mut ftl, dice.below(u64::from(pages)) as u32));
    ftl.reset();
    (0..8 * pages).for_each(|_| write(&mut ftl, dice.below(u64::from(pages)) as u32));
    let expected = fifo_amplification(1.28 * (1.0 - 3.0 / 512.0));
    let error = ftl.counts().amplification() / expected - 1.0;
    assert!(error.abs() < 0.02 && ftl.holds(), "{error}");
}

/// If 80 % of the writes go to 20 % of the pages, cost-benefit collection copies less than greedy collection.
#[test]
fn cost_benefit_beats_greedy_under_skew() {
    let amplification = |by| {
        let mut dice = Simulation::new(4).stream("writes");
        let pages = (256.0 * 64.0 / 1.3) as u32;
        let mut ftl = Ftl::new(pages, 256, 64, by);
        let hot = u64::from(pages / 5);
        for i in 0..40 * pages {
            if i == 20 * pages {
                ftl.reset();
            }
            let lpn = if dice.chance(0.8) { dice.below(hot) } else { hot + dice.below(u64::from(pages) - hot) };
            write(&mut ftl, lpn as u32);
        }
        ftl.counts().amplification()
    };
    let (greedy, cost) = (amplification(Collector::Greedy), amplification(Collector::CostBenefit));
    println!("greedy {greedy:.4}, cost-benefit {cost:.4}");
    assert!(cost < greedy && greedy < greedy_amplification(1.3, 64) * 1.15);
}

#[test]
fn a_fresh_die_copies_nothing_until_it_has_been_filled() {
    let mut ftl = Ftl::new(10_000, 250, 64, Collector::Greedy);
    (0..10_000).for_each(|lpn| write(&mut ftl, lpn));
    assert_eq!((ftl.counts().copies, ftl.counts().erases), (0, 0));
    assert!(ftl.holds());
}

fn quiet() -> FlashParameters {
    FlashParameters { capacity_mb: 64, start: Start::Fresh, ..FlashParameters::default() }
}

/// Returns a small card with a small buffer, whose firmware takes no time.
fn small() -> FlashParameters {
    FlashParameters { capacity_mb: 256, buffer_pages: 256, firmware_us: 0.0, ..FlashParameters::default() }
}

/// Returns the latencies of requests that are sent one after the other, with a pause of `gap_ns` between them [ns].
fn one_by_one(parameters: FlashParameters, requests: Vec<Request>, gap_ns: u64) -> Vec<u64> {
    let simulation = Simulation::new(5);
    let card = Flash::new(&simulation, "card", parameters);
    let (sim, seen) = (simulation.sim().clone(), Rc::new(std::cell::RefCell::new(Vec::new())));
    let (target, out) = (Rc::clone(&card), Rc::clone(&seen));
    simulation.spawn("job", async move {
        for request in requests {
            let begin_ns = sim.now_ns();
            let done_ns = start(&sim, &*target, request).await;
            out.borrow_mut().push(done_ns - begin_ns);
            sim.hold(gap_ns).await;
        }
    });
    simulation.run().unwrap();
    assert!(card.holds());
    seen.take()
}

/// Time that the command and the firmware take [ns].
const LINK_NS: u64 = 30_000 + 40_000;
const PAGE_NS: u64 = 13_653;

#[test]
fn the_firmware_works_on_several_requests_at_once_the_link_does_not() {
    let simulation = Simulation::new(5);
    let device: Rc<dyn Device> = Flash::new(&simulation, "card", quiet());
    let seen = closed_loop(&simulation, &device, 4, 1, random_page_write);
    let one_ns = 30_000 + PAGE_NS;
    assert_eq!(seen, [1, 2, 3, 4].map(|place| 40_000 + place * one_ns));
}

#[test]
fn an_idle_card_takes_the_time_of_its_parts() {
    let write = Request::write(0, 4_096);
    let small = Request::write(0, 512);
    let read = Request::read(0, 4_096);
    let seen = one_by_one(quiet(), vec![write, read, read, small], 1_000_000);
    let small_ns = LINK_NS + 1_707;
    assert_eq!(seen[0], LINK_NS + PAGE_NS, "the buffer takes a page");
    assert_eq!(seen[1..3], [25_000 + LINK_NS + PAGE_NS; 2], "read of the flash, then the link");
    assert_eq!(seen[3], small_ns + 25_000 + 250_000, "read, merge, program");
    let seen = one_by_one(quiet(), vec![write, read], 0);
    assert_eq!(seen[1], LINK_NS + PAGE_NS, "from the buffer");
    let buffered = FlashParameters { partial_pages: PartialPages::Buffered, ..quiet() };
    assert_eq!(one_by_one(buffered, vec![small], 0), [small_ns]);
}

/// A log written in 512-byte blocks waits because it writes the same page again and again; a log written in whole pages
/// never waits.
#[test]
fn small_log_blocks_are_several_times_slower_than_whole_pages() {
    let log = |bytes: u64| (0..2_000).map(|i| Request::write(i * bytes, bytes)).collect();
    let mean = |seen: &[u64]| seen.iter().sum::<u64>() as f64 / seen.len() as f64;
    let small = mean(&one_by_one(quiet(), log(512), 100_000));
    let pages = mean(&one_by_one(quiet(), log(4_096), 100_000));
    println!("512 B {small:.0} ns, 4 KB {pages:.0} ns: {:.2}", small / pages);
    assert!(small / pages > 3.0);
}

/// The bound is the time of the dies: program, copies and erases for each written page.
#[test]
fn sustained_random_writes_run_at_the_pace_of_the_dies() {
    let simulation = Simulation::new(6);
    let parameters = FlashParameters { link_mb_s: 1e6, command_us: 0.0, idle_collect_blocks: 0, ..small() };
    let dies = parameters.dies as f64;
    let card = Flash::new(&simulation, "card", parameters);
    let device: Rc<dyn Device> = card.clone();
    closed_loop(&simulation, &device, 64, 4_000, random_page_write);
    let counts = card.counts();
    let amplification = counts.amplification();
    let die_us = 250.0 + (amplification - 1.0) * 275.0 + 2_000.0 * counts.erases as f64 / counts.host_writes as f64;
    let bound = dies / die_us * 1e6;
    let rate = counts.host_writes as f64 / (simulation.now_ns() as f64 / 1e9);
    println!("{rate:.0}/s of at most {bound:.0}/s, amplification {amplification:.3}");
    assert!(rate <= bound * 1.001 && rate > 0.85 * bound);
    assert!(card.holds() && card.reports()[0].little);
}

#[test]
fn a_full_card_is_dramatically_slower_than_a_fresh_one() {
    let rate = |start| {
        let simulation = Simulation::new(7);
        let parameters =
            FlashParameters { over_provisioning_ratio: 0.1, link_mb_s: 1e4, command_us: 1.0, start, ..small() };
        let device: Rc<dyn Device> = Flash::new(&simulation, "card", parameters);
        closed_loop(&simulation, &device, 32, 1_000, random_page_write);
        32e12 / simulation.now_ns() as f64
    };
    let (fresh, full) = (rate(Start::Fresh), rate(Start::Steady));
    println!("fresh {fresh:.0}/s, full {full:.0}/s");
    assert!(fresh > 2.5 * full);
}

#[test]
fn a_read_waits_for_one_operation_at_most_when_alone() {
    let simulation = Simulation::new(8);
    let parameters = FlashParameters { capacity_mb: 64, ..FlashParameters::default() };
    let card = Flash::new(&simulation, "card", parameters);
    let device: Rc<dyn Device> = card.clone();
    let (sim, writer) = (simulation.sim().clone(), Rc::clone(&device));
    let mut dice = simulation.stream("writer");
    simulation.spawn_daemon("writer", async move {
        loop {
            let request = random_page_write(&mut dice, writer.capacity_bytes());
            start(&sim, &*writer, request).await;
        }
    });
    let seen = closed_loop(&simulation, &device, 1, 5_000, random_read);
    let longest = *seen.iter().max().unwrap();
    // Two pages on two dies: the longer of two waits, each at most an erase, and the link twice.
    assert!(longest <= 2_000_000 + 25_000 + 2 * (LINK_NS + 2 * PAGE_NS), "{longest}");
    assert!(longest > 250_000);
}
