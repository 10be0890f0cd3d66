//! Tests storage cells: the race of disk and flash for log writes, copies, disk groups, and commands during a run.
// Counts are whole numbers, also as metrics.
#![allow(clippy::unwrap_used, clippy::float_cmp, missing_docs)]

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::cell_common::{bare, exponential, law, log_write, metric, tagged};
use crate::common::{assert_near, closed_loop, floats, mean};
use dyno_model::cell::parameters::{FlashLogParameters, Medium, Redundancy};
use dyno_model::cell::{CellError, GroupParameters, Purpose, Rack, RackParameters, Tag};
use dyno_model::device::{Device, Request, start};
use dyno_model::kernel::sample::{Times, normal_cdf};
use dyno_model::kernel::{Sim, Simulation, Stream};

/// Returns a rack whose disks and flash modules draw their times from distributions, and its redo device.
fn raced(
    simulation: &Simulation,
    parameters: &RackParameters,
    disk: &Times,
    flash: &Times,
) -> (Rc<Rack>, Rc<dyn Device>) {
    let disks = |sim: &Sim, name: &str| law(sim, name, disk);
    let modules = |sim: &Sim, name: &str| law(sim, name, flash);
    let rack = Rack::with(simulation, parameters, &disks, &modules).unwrap();
    let redo = tagged(&rack, Purpose::Redo);
    (rack, redo)
}

/// The minimum of exponentials with means of 4 and 1 ms is exponential with a mean of .8 ms; the slower one wins one
/// race in five.
#[test]
fn a_race_of_exponentials_is_the_exponential_of_the_sum_of_rates() {
    let simulation = Simulation::new(1);
    let parameters = bare(1, Redundancy::External);
    let (rack, redo) = raced(&simulation, &parameters, &exponential(4_000.0), &exponential(1_000.0));
    let seen = closed_loop(&simulation, &redo, 1, 100_000, log_write);
    assert_near("race, ms", mean(&floats(&seen, 1e6)), 0.8);
    let (disk, all) = (metric(&rack, "FL_DISK_FIRST"), metric(&rack, "FL_IO_W"));
    let error = (0.2_f64 * 0.8 / all).sqrt();
    assert_near("disk first", (disk / all, error), 0.2);
    let longer = seen.iter().filter(|&&ns| ns > 1_600_000).count() as f64 / all;
    let beyond = (-2.0_f64).exp();
    assert_near("P(> 2 means)", (longer, (beyond * (1.0 - beyond) / all).sqrt()), beyond);
}

fn mostly(median_us: f64, sigma: f64, ratio: f64, other: (f64, f64)) -> Times {
    let lognormal = |(median_us, sigma)| Box::new(Times::Lognormal { median_us, sigma });
    let (usual, other) = (lognormal((median_us, sigma)), lognormal(other));
    Times::Mixture { usual, probability: ratio, other }
}

/// LN(m, s) is lognormal with median m and sigma s. Disk: LN(481 us, .15), and LN(60 ms, .8) with probability 1e-4.
/// Flash: LN(700 us, .15), and LN(3 ms, .5) with probability 2e-3. The mean is 494.66 us for the disk alone, and 484.56
/// us in the race; flash is first in 3.85 % of the races, and the tail disappears.
#[test]
fn a_race_of_lognormals_takes_the_tail_and_little_of_the_body() {
    let disk = mostly(481.0, 0.15, 1e-4, (60_000.0, 0.8));
    let flash = mostly(700.0, 0.15, 2e-3, (3_000.0, 0.5));
    let run = |enabled| {
        let simulation = Simulation::new(2);
        let mut parameters = bare(1, Redundancy::External);
        parameters.flash_log.enabled = enabled;
        let (rack, redo) = raced(&simulation, &parameters, &disk, &flash);
        let seen = closed_loop(&simulation, &redo, 1, 400_000, log_write);
        let share = metric(&rack, "FL_FLASH_FIRST") / metric(&rack, "FL_IO_W").max(1.0);
        (floats(&seen, 1e3), share)
    };
    let ((alone, _), (raced, share)) = (run(false), run(true));
    assert_near("disk alone, us", mean(&alone), 494.66);
    assert_near("raced, us", mean(&raced), 484.56);
    assert_near("flash first", (share, (0.0385_f64 * 0.9615 / 4e5).sqrt()), 0.0385);
    let tail = |seen: &[f64]| seen.iter().filter(|&&us| us > 10_000.0).count();
    assert!((15..70).contains(&tail(&alone)), "about 39 in 400,000: {}", tail(&alone));
    assert_eq!(tail(&raced), 0);
}

/// With equal sigmas, flash is first with probability Phi(ln(disk / flash) / (sigma sqrt 2)).
#[test]
fn the_share_of_races_that_flash_wins_follows_the_medians() {
    for (flash_us, sigma) in [(481.0_f64, 0.15), (600.0, 0.15), (700.8, 0.15), (700.8, 0.4)] {
        let simulation = Simulation::new(3);
        let law = |median_us| Times::Lognormal { median_us, sigma };
        let parameters = bare(1, Redundancy::External);
        let (rack, redo) = raced(&simulation, &parameters, &law(481.0), &law(flash_us));
        closed_loop(&simulation, &redo, 1, 50_000, log_write);
        let expected = normal_cdf((481.0 / flash_us).ln() / (sigma * 2.0_f64.sqrt()));
        let share = metric(&rack, "FL_FLASH_FIRST") / 5e4;
        let error = (expected * (1.0 - expected) / 5e4).sqrt();
        assert_near(&format!("{flash_us} us, {sigma}"), (share, error), expected);
    }
}

/// Claim N14: a write is as slow as its slowest copy; the mean of the largest of n exponentials is `H_n`.
#[test]
fn the_slowest_copy_decides_a_write() {
    for (cells, redundancy, harmonic) in
        [(1, Redundancy::External, 1.0), (3, Redundancy::Normal, 1.5), (5, Redundancy::High, 11.0 / 6.0)]
    {
        let simulation = Simulation::new(4);
        let mut parameters = bare(cells, redundancy);
        parameters.flash_log.enabled = false;
        let (rack, redo) = raced(&simulation, &parameters, &exponential(1_000.0), &exponential(1_000.0));
        let seen = closed_loop(&simulation, &redo, 1, 40_000, log_write);
        assert_near(&format!("{redundancy:?}, ms"), mean(&floats(&seen, 1e6)), harmonic);
        assert!(rack.reports().iter().all(|report| report.little));
    }
}

/// A read goes to the primary copy only: one I/O, however many copies there are.
#[test]
fn a_read_goes_to_one_copy_and_a_write_to_all() {
    let simulation = Simulation::new(5);
    let parameters = bare(3, Redundancy::High);
    let (rack, _) = raced(&simulation, &parameters, &exponential(10.0), &exponential(10.0));
    let temp = tagged(&rack, Purpose::Temp);
    closed_loop(&simulation, &temp, 1, 500, |dice, _| Request::read(dice.below(1 << 30), 512));
    assert_eq!(metric(&rack, "CD_IO_RQ_R_SM"), 500.0);
    closed_loop(&simulation, &temp, 1, 500, |dice, _| Request::write(dice.below(1 << 20) * 4_096, 4_096));
    assert_eq!(metric(&rack, "CD_IO_RQ_W_SM"), 1_500.0);
    let by_cell = |cell: &str| -> f64 {
        let metrics = rack.metrics();
        let of = |m: &&dyno_model::cell::Metric| m.cell == cell && m.name == "CD_IO_RQ_W_SM";
        metrics.iter().filter(of).map(|m| m.value).sum()
    };
    assert_eq!(["cell01", "cell02", "cell03"].map(by_cell), [500.0; 3]);
}

/// Copies of an extent are in different cells, no two extents have the same place, and all disks hold equally many
/// extents.
#[test]
fn extents_are_spread_evenly_and_never_meet() {
    for (count, redundancy, disks) in [
        (1, Redundancy::External, 12),
        (2, Redundancy::Normal, 3),
        (3, Redundancy::High, 1),
        (7, Redundancy::Normal, 12),
        (14, Redundancy::High, 5),
    ] {
        let simulation = Simulation::new(6);
        let group = GroupParameters { redundancy, size_gb: 0.3, ..GroupParameters::default() };
        let parameters = RackParameters {
            disks,
            groups: [("A".into(), group.clone()), ("DATA".into(), group)].into(),
            ..bare(count, redundancy)
        };
        let (rack, _) = raced(&simulation, &parameters, &exponential(1.0), &exponential(1.0));
        let mut places = BTreeSet::new();
        for name in rack.groups() {
            let layout = rack.layout(name).unwrap();
            for extent in 0..layout.capacity_bytes() / layout.extent_bytes {
                let copies = (0..layout.copies).map(|copy| layout.place(extent, copy));
                let copies: Vec<_> = copies.collect();
                let cells: BTreeSet<usize> = copies.iter().map(|&(cell, _, _)| cell).collect();
                assert_eq!(cells.len() as u64, layout.copies);
                places.extend(copies);
            }
        }
        let layout = rack.layout("A").unwrap();
        let all = 2 * count * disks * layout.grid_bytes() / layout.extent_bytes;
        assert_eq!(places.len() as u64, all, "every extent of every grid disk is used once");
    }
}

/// The flash copy is kept until the disk copy is complete; with nothing in flight, no space is used.
#[test]
fn space_of_the_flash_log_is_free_again_when_the_disk_has_it() {
    let simulation = Simulation::new(7);
    let parameters = RackParameters { modules: 2, ..bare(1, Redundancy::External) };
    let constant = |us| Times::Constant { us };
    let (rack, redo) = raced(&simulation, &parameters, &constant(5_000.0), &constant(100.0));
    let sim = simulation.sim().clone();
    simulation.spawn("log writer", async move {
        for i in 0..40 {
            start(&sim, &*redo, Request::write(i << 21, 2 << 20)).await;
        }
    });
    simulation.run().unwrap();
    let (bytes, used) = rack.cells()[0].flash_log_bytes();
    assert_eq!(bytes, 64 << 20);
    assert!(used > 0 && used <= bytes, "{used}");
    // 2 modules x 32 MB hold 30 copies of 2 MB and a page; then it is busy for 5 ms.
    let (raced, busy) = (metric(&rack, "FL_IO_W"), metric(&rack, "FL_IO_W_SKIP_BUSY"));
    assert_eq!((raced, busy), (39.0, 1.0));
    simulation.run_until(1_000_000_000).unwrap();
    assert_eq!(rack.cells()[0].flash_log_bytes().1, 0);
}

#[test]
fn what_cannot_be_raced_says_why() {
    let count = |change: &dyn Fn(&mut RackParameters), bytes: u64| {
        let simulation = Simulation::new(8);
        let mut parameters = bare(2, Redundancy::External);
        change(&mut parameters);
        let (rack, redo) = raced(&simulation, &parameters, &exponential(10.0), &exponential(10.0));
        let sim = simulation.sim().clone();
        simulation.spawn("log writer", async move {
            start(&sim, &*redo, Request::write(0, bytes)).await;
        });
        simulation.run().unwrap();
        let skips = rack.metrics().into_iter().filter(|m| m.name.starts_with("FL_IO_W_SKIP_"));
        let skips: Vec<String> = skips.filter(|m| m.value > 0.0).map(|m| m.name).collect();
        skips.join(" ")
    };
    assert_eq!(count(&|_| {}, 4_096), "");
    let group = |change: &dyn Fn(&mut GroupParameters), p: &mut RackParameters| {
        change(p.groups.get_mut("DATA").unwrap());
    };
    assert_eq!(count(&|p| group(&|g| g.on = Medium::Flash, p), 4_096), "FL_IO_W_SKIP_LOG_ON_FLASH");
    assert_eq!(count(&|p| group(&|g| g.flash_log = false, p), 4_096), "FL_IO_W_SKIP_DISABLED_GD");
    assert_eq!(count(&|p| p.flash_log.module_mb = 1, 1 << 20), "FL_IO_W_SKIP_LARGE");
    assert_eq!(count(&|p| p.modules = 0, 4_096), "FL_IO_W_SKIP_NO_FL_DISKS");
    let off = dyno_model::cell::iorm::Directive { flash_log: false, ..Default::default() };
    let plan = |p: &mut RackParameters| p.iorm.plan.extend([("ORCL".to_owned(), off.clone())]);
    assert_eq!(count(&plan, 4_096), "FL_IO_W_SKIP_IORM_PLAN");
}

/// A copy slower than the threshold is an outlier, which is counted for the disk only, for flash only, or for both.
#[test]
fn outliers_are_counted_by_which_copies_were_late() {
    let constant = |us| Times::Constant { us };
    let outliers = |disk_us, flash_us| {
        let simulation = Simulation::new(9);
        let mut parameters = bare(1, Redundancy::External);
        parameters.flash_log.outlier_ms = 1.0;
        let (rack, redo) = raced(&simulation, &parameters, &constant(disk_us), &constant(flash_us));
        closed_loop(&simulation, &redo, 1, 10, log_write);
        simulation.run_until(1_000_000_000).unwrap();
        ["FL_PREVENTED_OUTLIERS", "FL_FLASH_ONLY_OUTLIERS", "FL_ACTUAL_OUTLIERS"].map(|name| metric(&rack, name))
    };
    assert_eq!(outliers(900.0, 900.0), [0.0, 0.0, 0.0]);
    assert_eq!(outliers(1_100.0, 900.0), [10.0, 0.0, 0.0]);
    assert_eq!(outliers(900.0, 1_100.0), [0.0, 10.0, 0.0]);
    assert_eq!(outliers(1_100.0, 1_200.0), [0.0, 0.0, 10.0]);
}

/// The disk, which is checked first, wins a tie.
#[test]
fn of_two_copies_at_the_same_instant_the_disk_is_first() {
    let simulation = Simulation::new(10);
    let constant = Times::Constant { us: 100.0 };
    let parameters = bare(1, Redundancy::External);
    let (rack, redo) = raced(&simulation, &parameters, &constant, &constant);
    closed_loop(&simulation, &redo, 1, 10, log_write);
    assert_eq!(metric(&rack, "FL_DISK_FIRST"), 10.0);
}

/// The time for dispatching delays every raced write, and a common cause delays both copies.
#[test]
fn dispatch_and_common_cause_are_in_front_of_both_copies() {
    let constant = |us| Times::Constant { us };
    let run = |log: FlashLogParameters| {
        let simulation = Simulation::new(11);
        let parameters = RackParameters { flash_log: log, ..bare(1, Redundancy::External) };
        let (_, redo) = raced(&simulation, &parameters, &constant(100.0), &constant(100.0));
        floats(&closed_loop(&simulation, &redo, 1, 20_000, log_write), 1e3)
    };
    let base = bare(1, Redundancy::External).flash_log;
    let dispatched = run(FlashLogParameters { dispatch_us: 30.0, ..base.clone() });
    assert!(dispatched.iter().all(|&us| (us - 130.0).abs() < 0.01));
    let off = FlashLogParameters { dispatch_us: 30.0, enabled: false, ..base.clone() };
    assert!(run(off).iter().all(|&us| (us - 100.0).abs() < 0.01));
    let held = FlashLogParameters { common_cause_ratio: 0.1, common_cause: constant(1_000.0), ..base };
    let late = run(held).iter().filter(|&&us| us > 1_000.0).count() as f64 / 2e4;
    assert_near("held up", (late, (0.09_f64 / 2e4).sqrt()), 0.1);
}

/// Commands act at the current virtual time: later writes are raced, earlier ones are not.
#[test]
fn the_flash_log_is_switched_while_the_run_goes_on() {
    let simulation = Simulation::new(12);
    let mut parameters = bare(1, Redundancy::External);
    parameters.flash_log.enabled = false;
    let constant = |us| Times::Constant { us };
    let (rack, redo) = raced(&simulation, &parameters, &constant(1_000.0), &constant(100.0));
    let (sim, commands) = (simulation.sim().clone(), Rc::clone(&rack));
    simulation.spawn("log writer", async move {
        for i in 0..30 {
            if i % 10 == 0 {
                commands.set_flash_log(i == 10);
            }
            start(&sim, &*redo, Request::write(0, 512)).await;
        }
    });
    simulation.run().unwrap();
    assert_eq!(metric(&rack, "FL_IO_W"), 10.0);
    assert!(rack.holds());
}

#[test]
fn parameters_that_cannot_be_are_refused_by_name() {
    let refused = |change: &dyn Fn(&mut RackParameters)| {
        let mut parameters = RackParameters::default();
        change(&mut parameters);
        Rack::new(&Simulation::new(1), &parameters).map(|_| ()).unwrap_err().to_string()
    };
    assert!(refused(&|p| p.count = 0).contains("count must be above 0"));
    assert!(refused(&|p| p.count = 1).contains("DATA keeps 2 copies"));
    assert!(refused(&|p| p.flash_cache.keep_limit_ratio = 1.5).contains("keep_limit_ratio"));
    assert!(refused(&|p| p.groups.get_mut("RECO").unwrap().size_gb = 0.0).contains("RECO.size_gb"));
    assert!(refused(&|p| p.groups.get_mut("RECO").unwrap().size_gb = 300.0).contains("need"));
    let simulation = Simulation::new(1);
    let rack = Rack::new(&simulation, &RackParameters::default()).unwrap();
    let error = rack.group("DATA2", &Tag::new(Purpose::Data, "ORCL")).err().unwrap();
    assert_eq!(error, CellError::Group { name: "DATA2".into(), known: "DATA, RECO".into() });
    assert!(matches!(
        rack.cells()[0].create_flash_cache(dyno_model::cell::parameters::CacheMode::WriteBack, 1.0),
        Err(CellError::CacheExists { .. })
    ));
}

/// Claim N4: other writers fill the controllers' memory, so log writes to disk wait for space; in the race, flash
/// completes them without this wait. The devices are real models on a small cell: 2 disks with about a thousand sorted
/// writes per second each.
#[test]
fn on_busy_disks_the_race_removes_the_tail() {
    let run = |enabled| {
        let simulation = Simulation::new(14);
        let mut parameters = bare(2, Redundancy::Normal);
        (parameters.disks, parameters.modules) = (2, 4);
        (parameters.controller.capacity_kb, parameters.flash_log.enabled) = (4 << 10, enabled);
        let rack = Rack::new(&simulation, &parameters).unwrap();
        for writer in 0..100 {
            let (sim, data) = (simulation.sim().clone(), tagged(&rack, Purpose::Data));
            let mut dice = simulation.stream(&format!("writer {writer}"));
            simulation.spawn_daemon("writer", async move {
                loop {
                    let offset_bytes = dice.below(data.capacity_bytes() / 8_192) * 8_192;
                    start(&sim, &*data, Request::write(offset_bytes, 8_192)).await;
                    sim.hold(dice.exponential(20e6) as u64).await;
                }
            });
        }
        let redo = tagged(&rack, Purpose::Redo);
        let sim = simulation.sim().clone();
        let seen = Rc::new(std::cell::RefCell::new(Vec::new()));
        let out = Rc::clone(&seen);
        simulation.spawn("log writer", async move {
            for i in 0..10_000 {
                let begin_ns = sim.now_ns();
                let done_ns = start(&sim, &*redo, Request::write(i * 2_048, 2_048)).await;
                out.borrow_mut().push(done_ns - begin_ns);
                sim.hold(1_000_000).await;
            }
        });
        simulation.run().unwrap();
        let mut seen = seen.take();
        seen.sort_unstable();
        let share = metric(&rack, "FL_FLASH_FIRST") / metric(&rack, "FL_IO_W").max(1.0);
        (seen[seen.len() / 2], seen[seen.len() * 99 / 100], seen[seen.len() - 1], share)
    };
    let ((median, late, longest, _), raced) = (run(false), run(true));
    println!("off: {median} {late} {longest} ns; on: {raced:?}");
    assert!(longest > 100 * median.min(100_000) && late > 10_000_000, "{late} {longest}");
    assert!(raced.2 < longest / 10 && raced.1 < late / 10, "{raced:?}");
}

/// Each cell draws its delays from a random stream of its own, so these draws change no other random numbers.
#[test]
fn the_dice_of_a_cell_are_its_own() {
    let draw = |ratio| {
        let simulation = Simulation::new(13);
        let mut parameters = bare(1, Redundancy::External);
        parameters.flash_log.common_cause_ratio = ratio;
        let (_, redo) = raced(&simulation, &parameters, &exponential(100.0), &exponential(200.0));
        let next: fn(&mut Stream, u64) -> Request = log_write;
        closed_loop(&simulation, &redo, 1, 100, next);
        simulation.stream("job 0").next_u64()
    };
    assert_eq!(draw(0.0), draw(0.5));
}
