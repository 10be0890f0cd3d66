//! Tests the features of newer flash, each against its closed form: planes, buses, mapping in memory, interrupted
//! operations, single-level cells, discards, wear.
#![allow(clippy::unwrap_used, missing_docs)]

use std::cell::RefCell;
use std::rc::Rc;

use crate::common::{assert_near, closed_loop, random_page_write};
use dyno_model::device::flash::{Flash, FlashParameters, PartialPages, Start};
use dyno_model::device::ftl::{Collector, Ftl, Step};
use dyno_model::device::{Device, Request, Wear, start, start_discard};
use dyno_model::formula::greedy_amplification;
use dyno_model::kernel::Simulation;

const PAGE: u64 = 4_096;
const READ_NS: u64 = 50_000;
const PROGRAM_NS: u64 = 600_000;
const STOP_NS: u64 = 20_000;

/// Returns an erased card with one die, in which only the flash cells take time and writes bypass the buffer.
fn plain() -> FlashParameters {
    FlashParameters {
        capacity_mb: 64,
        dies: 1,
        read_us: 50.0,
        program_us: 600.0,
        command_us: 0.0,
        firmware_us: 0.0,
        link_mb_s: 1e6,
        buffer_pages: 0,
        partial_pages: PartialPages::Buffered,
        start: Start::Fresh,
        ..FlashParameters::default()
    }
}

/// Returns the latencies of requests that arrive at the given times [ns], and the card's wear at the end.
fn times(parameters: FlashParameters, requests: &[(u64, Request)]) -> (Vec<u64>, Wear) {
    let simulation = Simulation::new(1);
    let card = Flash::new(&simulation, "card", parameters);
    let seen = Rc::new(RefCell::new(vec![0; requests.len()]));
    for (number, &(at_ns, request)) in requests.iter().enumerate() {
        let (sim, card, seen) = (simulation.sim().clone(), Rc::clone(&card), Rc::clone(&seen));
        simulation.spawn("request", async move {
            sim.hold(at_ns).await;
            let done_ns = start(&sim, &*card, request).await;
            seen.borrow_mut()[number] = done_ns - at_ns;
        });
    }
    simulation.run().unwrap();
    assert!(card.holds() && card.reports()[0].present == 0);
    (seen.take(), card.wear().remove(0))
}

/// Returns the latency of a single request on an idle card [ns].
fn alone_ns(parameters: FlashParameters, request: Request) -> u64 {
    times(parameters, &[(0, request)]).0[0]
}

/// Checks that two times are equal, except for the time of the link, which takes 4 ns for a page.
fn assert_time(found_ns: u64, wanted_ns: u64) {
    assert!(found_ns.abs_diff(wanted_ns) < 200, "{found_ns} ns, not {wanted_ns} ns");
}

#[test]
fn a_die_of_p_planes_takes_p_pages_at_once() {
    for planes in [1, 2, 4, 16] {
        let card = FlashParameters { planes, ..plain() };
        assert_time(alone_ns(card.clone(), Request::read(0, 16 * PAGE)), 16 / planes * READ_NS);
        assert_time(alone_ns(card.clone(), Request::write(0, 16 * PAGE)), 16 / planes * PROGRAM_NS);
        // Pages of one plane are read one after the other.
        let apart = [(0, Request::read(0, PAGE)), (0, Request::read(planes * PAGE, PAGE))];
        assert_time(times(card, &apart).0[1], 2 * READ_NS);
    }
}

#[test]
fn pages_of_dies_behind_one_bus_cross_it_one_after_the_other() {
    // 100 us a page.
    let card = |channels| FlashParameters { dies: 8, channels, channel_mb_s: 40.96, ..plain() };
    for (channels, in_turn) in [(0, 0), (1, 8), (2, 4), (8, 1)] {
        let bus_ns = in_turn * 100_000;
        assert_time(alone_ns(card(channels), Request::read(0, 8 * PAGE)), READ_NS + bus_ns);
        assert_time(alone_ns(card(channels), Request::write(0, 8 * PAGE)), bus_ns + PROGRAM_NS);
    }
}

/// A uniform read finds its page of the mapping in memory with a probability equal to the share of the mapping that is
/// in memory.
#[test]
fn a_miss_of_the_mapping_costs_a_read_of_flash() {
    let simulation = Simulation::new(2);
    let card = FlashParameters { mapping_cache_ratio: 0.25, ..plain() };
    let device: Rc<dyn Device> = Flash::new(&simulation, "card", card);
    let seen = closed_loop(&simulation, &device, 1, 20_000, |dice, bytes| {
        Request::read(dice.below(bytes / PAGE) * PAGE, PAGE)
    });
    let missed = |ns: &u64| if *ns > READ_NS + 10_000 { 1.0 } else { 0.0 };
    let share = seen.iter().map(missed).sum::<f64>() / seen.len() as f64;
    assert!(seen.iter().all(|&ns| ns.abs_diff(READ_NS) < 200 || ns.abs_diff(2 * READ_NS) < 200));
    assert_near("misses", (share, (0.25 * 0.75 / 20_000.0_f64).sqrt()), 0.75);
    let all = FlashParameters { mapping_cache_ratio: 1.0, ..plain() };
    assert_time(alone_ns(all, Request::read(0, PAGE)), READ_NS);
}

#[test]
fn a_read_interrupts_a_program_which_then_takes_the_time_that_was_left() {
    let late = [(0, Request::write(0, PAGE)), (100_000, Request::read(PAGE, PAGE))];
    let (found, _) = times(plain(), &late);
    assert_time(found[1], PROGRAM_NS - 100_000 + READ_NS);
    assert_time(found[0], PROGRAM_NS);
    let (found, _) = times(FlashParameters { suspend_reads: 8, ..plain() }, &late);
    assert_time(found[1], STOP_NS + READ_NS);
    assert_time(found[0], PROGRAM_NS + STOP_NS + READ_NS);
}

/// Four readers keep the die busy: a write takes its program time, plus the time of at most `suspend_reads` reads
/// before and during the program.
#[test]
fn a_write_is_done_however_many_reads_there_are() {
    for most in [1, 4, 16] {
        let simulation = Simulation::new(3);
        let card: Rc<dyn Device> = Flash::new(&simulation, "card", FlashParameters { suspend_reads: most, ..plain() });
        for _ in 0..4 {
            let (sim, card) = (simulation.sim().clone(), Rc::clone(&card));
            simulation.spawn_daemon("reader", async move {
                loop {
                    start(&sim, &*card, Request::read(PAGE, PAGE)).await;
                }
            });
        }
        let seen = closed_loop(&simulation, &card, 1, 50, random_page_write);
        let longest = *seen.iter().max().unwrap();
        let bound = PROGRAM_NS + READ_NS + most * READ_NS + most * (READ_NS + STOP_NS);
        println!("{most}: {longest} of at most {bound} ns");
        assert!(longest <= bound + 1_000 && longest > PROGRAM_NS + most * READ_NS, "{longest} of {bound}");
    }
}

/// Writers keep the die busy: a read waits until one operation ends, or, if reads may interrupt it, only for the
/// interruption.
#[test]
fn reads_do_not_wait_for_writes_that_they_may_interrupt() {
    let longest = |suspend_reads| {
        let simulation = Simulation::new(4);
        let card: Rc<dyn Device> = Flash::new(&simulation, "card", FlashParameters { suspend_reads, ..plain() });
        for _ in 0..4 {
            let (sim, card) = (simulation.sim().clone(), Rc::clone(&card));
            simulation.spawn_daemon("writer", async move {
                loop {
                    start(&sim, &*card, Request::write(0, PAGE)).await;
                }
            });
        }
        let (sim, reader) = (simulation.sim().clone(), Rc::clone(&card));
        let seen = Rc::new(RefCell::new(0));
        let out = Rc::clone(&seen);
        simulation.spawn("reader", async move {
            for _ in 0..200 {
                sim.hold(777_000).await;
                let begin_ns = sim.now_ns();
                let took_ns = start(&sim, &*reader, Request::read(PAGE, PAGE)).await - begin_ns;
                let most = took_ns.max(*out.borrow());
                *out.borrow_mut() = most;
            }
        });
        simulation.run().unwrap();
        seen.take()
    };
    let (without, with) = (longest(0), longest(64));
    assert!(without > PROGRAM_NS / 2 && with <= STOP_NS + READ_NS + 1_000, "{without} ns, {with} ns");
}

#[test]
fn cells_of_one_level_are_quick_until_they_are_full_and_again_after_a_rest() {
    let card = FlashParameters { slc_mb: 1, slc_program_us: 100.0, slc_idle_ms: 10.0, ..plain() };
    let simulation = Simulation::new(5);
    let device = Flash::new(&simulation, "card", card);
    let (sim, seen) = (simulation.sim().clone(), Rc::new(RefCell::new(Vec::new())));
    let out = Rc::clone(&seen);
    simulation.spawn("writer", async move {
        for number in 0..300 {
            if number == 280 {
                // After 10 ms the die begins to move pages; ten of them, and a part of the next.
                sim.hold(10_000_000 + 10 * (READ_NS + PROGRAM_NS) + 1_000).await;
            }
            let begin_ns = sim.now_ns();
            let done_ns = start(&sim, &*device, Request::write(number * PAGE, PAGE)).await;
            out.borrow_mut().push(done_ns - begin_ns);
        }
    });
    simulation.run().unwrap();
    let seen = seen.take();
    let slow_ns = READ_NS + PROGRAM_NS + 100_000;
    seen[..256].iter().for_each(|&ns| assert_time(ns, 100_000));
    seen[256..280].iter().for_each(|&ns| assert_time(ns, slow_ns));
    // The move under way is the eleventh.
    assert_time(seen[280], READ_NS + PROGRAM_NS - 1_000 + 100_000);
    seen[281..291].iter().for_each(|&ns| assert_time(ns, 100_000));
    seen[291..].iter().for_each(|&ns| assert_time(ns, slow_ns));
}

/// Discarded pages act as spare space: if half of the pages are discarded, the other half has twice the space.
#[test]
fn discarded_pages_amplify_as_if_the_die_had_more_space() {
    const BLOCKS: u32 = 2_048;
    let spare = 1.15;
    let mut dice = Simulation::new(6).stream("writes");
    let pages = (f64::from(BLOCKS * 64) / spare) as u32;
    let mut ftl = Ftl::new(pages, BLOCKS, 64, Collector::Greedy);
    ftl.fill_steadily(3, &mut dice);
    (0..pages / 2).for_each(|lpn| ftl.trim(2 * lpn));
    (0..pages / 2).for_each(|lpn| ftl.trim(2 * lpn));
    assert_eq!((ftl.counts().trimmed, ftl.holds()), (u64::from(pages / 2), true));
    let mut write = |ftl: &mut Ftl| {
        while ftl.must_collect() {
            assert_ne!(ftl.collect(), Step::Nothing);
        }
        ftl.write(2 * dice.below(u64::from(pages / 2)) as u32 + 1);
    };
    (0..2 * pages).for_each(|_| write(&mut ftl));
    ftl.reset();
    (0..2 * pages).for_each(|_| write(&mut ftl));
    let expected = greedy_amplification(2.0 * spare * (1.0 - 3.0 / f64::from(BLOCKS)), 64);
    let error = ftl.counts().amplification() / expected - 1.0;
    println!("expected {expected:.4}, {:+.2} %", error * 100.0);
    assert!(error.abs() < 0.005 && ftl.holds(), "{error}");
}

#[test]
fn a_discard_takes_its_time_on_the_link_and_frees_whole_pages() {
    let found = |trim| {
        let simulation = Simulation::new(7);
        let card = FlashParameters { trim, trim_us: 50.0, trim_us_per_kb: 0.1, ..plain() };
        let card = Flash::new(&simulation, "card", card);
        let (sim, device) = (simulation.sim().clone(), Rc::clone(&card));
        let seen = Rc::new(RefCell::new([0; 2]));
        let out = Rc::clone(&seen);
        simulation.spawn("host", async move {
            start(&sim, &*device, Request::write(0, 64 * PAGE)).await;
            let begin_ns = sim.now_ns();
            // Half a page at either end stays.
            let discard = start_discard(&sim, &*device, PAGE / 2, 63 * PAGE);
            let write = start(&sim, &*device, Request::write(100 * PAGE, PAGE));
            let ends = [discard.await, write.await];
            *out.borrow_mut() = ends.map(|end_ns| end_ns - begin_ns);
        });
        simulation.run().unwrap();
        assert!(card.holds());
        (seen.take(), card.counts().trimmed)
    };
    let ([discard, write], trimmed) = found(true);
    let link_ns = 50_000 + 100 * 63 * 4;
    assert_time(discard, link_ns);
    assert_time(write, link_ns + PROGRAM_NS);
    assert_eq!(trimmed, 62);
    let ([discard, write], trimmed) = found(false);
    assert_eq!((discard, trimmed), (0, 0));
    assert_time(write, PROGRAM_NS);
}

#[test]
fn erasures_add_up_and_levelling_spreads_them() {
    let wear = |wear_levelling| {
        let simulation = Simulation::new(8);
        let card = FlashParameters { capacity_mb: 8, start: Start::Steady, wear_levelling, ..plain() };
        let card = Flash::new(&simulation, "card", card);
        let device: Rc<dyn Device> = card.clone();
        closed_loop(&simulation, &device, 1, 60_000, random_page_write);
        let found = card.wear().remove(0);
        assert_eq!((found.erases, found.host_pages), (card.counts().erases, 60_000));
        assert_eq!(found.programmed_pages, card.counts().programs);
        assert!(found.erases_least * found.blocks <= found.erases && found.erases <= found.erases_most * found.blocks);
        found
    };
    let (plain, levelled) = (wear(false), wear(true));
    let spread = |found: &Wear| found.erases_most - found.erases_least;
    println!("{plain:?}\n{levelled:?}");
    assert!(spread(&levelled) < spread(&plain), "{plain:?}, {levelled:?}");
}
