//! Tests the flash cache of a cell: what is cached, what stays, what is written back.
// Counts are whole numbers, also as metrics.
#![allow(clippy::unwrap_used, clippy::float_cmp, missing_docs)]

use std::rc::Rc;

use crate::cell_common::{bare, exponential, law, metric};
use crate::common::{assert_near, closed_loop};
use dyno_model::cell::parameters::{CacheMode, Caching, Medium, Redundancy};
use dyno_model::cell::{CellError, GroupParameters, Purpose, Rack, RackParameters, Tag};
use dyno_model::device::{Device, Request, start};
use dyno_model::kernel::sample::Times;
use dyno_model::kernel::zipf::Zipf;
use dyno_model::kernel::{Sim, Simulation, Stream};

const LINE: u64 = 8_192;
const DISK_NS: u64 = 5_000_000;
const FLASH_NS: u64 = 100_000;

/// Returns one cell whose flash cache has room for this many lines; disks take 5 ms, flash modules 100 us.
fn cached(simulation: &Simulation, lines: u64, change: fn(&mut RackParameters)) -> Rc<Rack> {
    let mut parameters = bare(1, Redundancy::External);
    parameters.flash_cache.size_gb = (lines * LINE) as f64 / f64::from(1 << 30);
    change(&mut parameters);
    let disk = |sim: &Sim, name: &str| law(sim, name, &Times::Constant { us: 5_000.0 });
    let module = |sim: &Sim, name: &str| law(sim, name, &Times::Constant { us: 100.0 });
    Rack::with(simulation, &parameters, &disk, &module).unwrap()
}

fn write_back(parameters: &mut RackParameters) {
    parameters.flash_cache.mode = CacheMode::WriteBack;
}

fn device(rack: &Rack, purpose: Purpose, caching: Caching) -> Rc<dyn Device> {
    rack.group("DATA", &Tag { purpose, caching, database: "ORCL".into() }).unwrap()
}

fn data(rack: &Rack) -> Rc<dyn Device> {
    device(rack, Purpose::Data, Caching::Default)
}

/// Runs requests one after the other and returns their latencies [ns].
fn one_by_one(simulation: &Simulation, device: &Rc<dyn Device>, requests: Vec<Request>) -> Vec<u64> {
    let seen = Rc::new(std::cell::RefCell::new(Vec::new()));
    let (sim, device, out) = (simulation.sim().clone(), Rc::clone(device), Rc::clone(&seen));
    simulation.spawn("job", async move {
        for request in requests {
            let begin_ns = sim.now_ns();
            let done_ns = start(&sim, &*device, request).await;
            out.borrow_mut().push(done_ns - begin_ns);
        }
    });
    simulation.run().unwrap();
    // What nobody waits for.
    simulation.run_until(simulation.now_ns() + 1_000_000_000).unwrap();
    seen.take()
}

fn block(line: u64) -> Request {
    Request::read(line * LINE, LINE)
}

fn rewrite(line: u64) -> Request {
    Request::write(line * LINE, LINE)
}

/// Returns the share of `count` independent reads that the flash cache serves, and the tolerance for comparing it.
fn hit_ratio(lines: u64, count: u64, next: impl Fn(&mut Stream) -> u64 + 'static) -> (f64, f64) {
    let simulation = Simulation::new(1);
    let rack = cached(&simulation, lines, |_| {});
    let (sim, device, watched) = (simulation.sim().clone(), data(&rack), Rc::clone(&rack));
    let mut dice = simulation.stream("keys");
    simulation.spawn("job", async move {
        for i in 0..count + count / 5 {
            if i == count / 5 {
                watched.reset();
            }
            start(&sim, &*device, block(next(&mut dice))).await;
        }
    });
    simulation.run().unwrap();
    assert!(rack.holds());
    let (hits, misses) = (metric(&rack, "FC_IO_RQ_R"), metric(&rack, "FC_IO_RQ_R_MISS"));
    assert_eq!(hits + misses, count as f64);
    let share = hits / count as f64;
    // References are independent, hits nearly so.
    (share, 1.5 * (share * (1.0 - share) / count as f64).sqrt())
}

/// Expected hit ratios are from Che's approximation for Zipf .8 over 10,000 blocks, and exact for four blocks.
#[test]
fn reads_hit_as_often_as_least_recently_used_demands() {
    let zipf = |n, skew| {
        let zipf = Zipf::new(n, skew);
        move |dice: &mut Stream| u64::from(zipf.sample(dice))
    };
    assert_near("100 lines", hit_ratio(100, 200_000, zipf(10_000, 0.8)), 0.156_62);
    assert_near("1,000 lines", hit_ratio(1_000, 200_000, zipf(10_000, 0.8)), 0.436_66);
    let tiny = |dice: &mut Stream| [0, 0, 0, 0, 1, 1, 1, 2, 2, 3][dice.below(10) as usize];
    assert_near("1 of 4", hit_ratio(1, 100_000, tiny), 0.3);
    assert_near("2 of 4", hit_ratio(2, 100_000, tiny), 0.580_556);
    assert_near("3 of 4", hit_ratio(3, 100_000, tiny), 0.826_587);
}

#[test]
fn a_miss_is_the_disks_and_the_next_read_a_hit() {
    let simulation = Simulation::new(2);
    let rack = cached(&simulation, 10, |_| {});
    let seen = one_by_one(&simulation, &data(&rack), vec![block(1), block(2)]);
    assert_eq!(seen, [DISK_NS; 2]);
    let seen = one_by_one(&simulation, &data(&rack), vec![block(1), block(2), block(3)]);
    assert_eq!(seen, [FLASH_NS, FLASH_NS, DISK_NS]);
    assert_eq!(metric(&rack, "FC_IO_RQ_W_POPULATE"), 3.0);
}

#[test]
fn write_through_waits_for_the_disk_and_write_back_for_flash() {
    for (change, expected) in [((|_| {}) as fn(&mut _), DISK_NS), (write_back, FLASH_NS)] {
        let simulation = Simulation::new(3);
        let rack = cached(&simulation, 10, change);
        let seen = one_by_one(&simulation, &data(&rack), vec![rewrite(1), rewrite(1), rewrite(2)]);
        assert_eq!(seen, [expected; 3]);
        assert_eq!(one_by_one(&simulation, &data(&rack), vec![block(1)]), [FLASH_NS]);
        let (first, over) = (metric(&rack, "FC_IO_RQ_W_FIRST"), metric(&rack, "FC_IO_RQ_W_OVERWRITE"));
        assert_eq!((first, over), (2.0, 1.0));
    }
}

/// A hot set that fits is overwritten in place; a flush writes each line to disk once.
#[test]
fn write_back_absorbs_overwrites_and_a_flush_writes_every_line_once() {
    let simulation = Simulation::new(4);
    let rack = cached(&simulation, 1_000, write_back);
    let next: fn(&mut Stream, u64) -> Request = |dice, _| rewrite(dice.below(500));
    closed_loop(&simulation, &data(&rack), 4, 10_000, next);
    let over = metric(&rack, "FC_IO_RQ_W_OVERWRITE") / metric(&rack, "FC_IO_RQ_W");
    assert!(over > 0.98, "{over}");
    assert_eq!(metric(&rack, "FC_IO_RQ_DISK_WRITE"), 0.0);
    assert_eq!(metric(&rack, "CD_IO_RQ_W_SM"), 40_000.0, "all on flash");
    let cell = &rack.cells()[0];
    assert_eq!(cell.dirty_bytes(), 500 * LINE);
    assert!(matches!(cell.drop_flash_cache(), Err(CellError::Dirty { .. })));
    cell.flush();
    simulation.run_until(simulation.now_ns() + 10_000_000_000).unwrap();
    assert_eq!(cell.dirty_bytes(), 0);
    assert_eq!(metric(&rack, "FC_IO_RQ_DISK_WRITE"), 500.0);
    assert_eq!(metric(&rack, "FC_IO_RQ_R_DISK_WRITER"), 500.0);
    assert_eq!(metric(&rack, "FC_IO_BY_DISK_WRITE"), 500.0 * LINE as f64 / f64::from(1 << 20));
    cell.drop_flash_cache().unwrap();
    assert_eq!(cell.flash_cache(), (CacheMode::None, 0));
    assert_eq!(one_by_one(&simulation, &data(&rack), vec![block(1)]), [DISK_NS]);
    cell.create_flash_cache(CacheMode::WriteThrough, 1.0).unwrap();
    assert_eq!(one_by_one(&simulation, &data(&rack), vec![block(1), block(1)]), [DISK_NS, FLASH_NS]);
    assert!(rack.holds());
}

/// If writes make more lines dirty than the limit allows, the coldest lines are written to disk; the limit holds except
/// for writes in flight, and nothing is lost.
#[test]
fn destages_keep_the_dirty_share_below_its_limit() {
    let simulation = Simulation::new(5);
    let rack = cached(&simulation, 1_000, |parameters| {
        write_back(parameters);
        parameters.flash_cache.dirty_limit_ratio = 0.3;
        parameters.flash_cache.destages = 200;
    });
    let device = data(&rack);
    let (sim, watched) = (simulation.sim().clone(), Rc::clone(&rack));
    let mut dice = simulation.stream("keys");
    simulation.spawn("job", async move {
        for _ in 0..20_000 {
            start(&sim, &*device, rewrite(dice.below(5_000))).await;
            // 5.1 ms a destage, one write every 100 us: about 50 on their way.
            assert!(watched.cells()[0].dirty_bytes() <= 400 * LINE);
        }
    });
    simulation.run().unwrap();
    rack.cells()[0].flush();
    simulation.run_until(simulation.now_ns() + 10_000_000_000).unwrap();
    let written = metric(&rack, "FC_IO_RQ_W_FIRST") + metric(&rack, "FC_IO_RQ_W_OVERWRITE");
    let destaged = metric(&rack, "FC_IO_RQ_DISK_WRITE");
    assert_eq!(written, 20_000.0);
    assert!(destaged <= written && destaged > 15_000.0, "{destaged}");
    assert!(rack.cells()[0].dirty_bytes() == 0 && rack.holds());
}

/// A cache full of dirty lines accepts nothing new; further writes go to disk.
#[test]
fn where_nothing_can_go_a_write_bypasses_the_cache() {
    let simulation = Simulation::new(6);
    let rack = cached(&simulation, 10, |parameters| {
        write_back(parameters);
        parameters.flash_cache.dirty_limit_ratio = 1.0;
    });
    let seen = one_by_one(&simulation, &data(&rack), (0..12).map(rewrite).collect());
    assert_eq!(seen[..10], [FLASH_NS; 10]);
    assert_eq!(seen[10..], [DISK_NS; 2]);
    assert_eq!(metric(&rack, "FC_IO_RQ_REPLACEMENT_FAILED"), 2.0);
    assert_eq!(metric(&rack, "FC_IO_RQ_W_SKIP"), 2.0);
}

/// These requests bypass the cache: redo, temp and backups; requests to segments or grid disks whose policy is not to
/// cache; large requests.
#[test]
fn purpose_policy_and_size_decide_what_comes_in() {
    let cached_after = |purpose, caching, request: Request, change: fn(&mut RackParameters)| {
        let simulation = Simulation::new(7);
        let rack = cached(&simulation, 1_000, change);
        one_by_one(&simulation, &device(&rack, purpose, caching), vec![request]);
        metric(&rack, "FC_BY_USED") > 0.0
    };
    let (small, large) = (block(3), Request::read(0, 1 << 20));
    let border = Request::read(0, 128 << 10);
    let after = |purpose, request| cached_after(purpose, Caching::Default, request, |_| {});
    assert!(after(Purpose::Data, small) && after(Purpose::Scan, small));
    assert!(after(Purpose::Data, border) && !after(Purpose::Data, large));
    for purpose in [Purpose::Redo, Purpose::Temp, Purpose::Backup] {
        assert!(!after(purpose, small), "{purpose:?}");
    }
    let policy = |caching, request| cached_after(Purpose::Scan, caching, request, |_| {});
    assert!(!policy(Caching::None, small) && policy(Caching::Keep, large));
    let scans = |p: &mut RackParameters| p.flash_cache.scans = true;
    assert!(cached_after(Purpose::Scan, Caching::Default, large, scans));
    let grid = |p: &mut RackParameters| p.groups.get_mut("DATA").unwrap().caching = Caching::None;
    assert!(!cached_after(Purpose::Data, Caching::Default, small, grid));
    let plan = |p: &mut RackParameters| {
        let off = dyno_model::cell::iorm::Directive { flash_cache: false, ..Default::default() };
        p.iorm.plan.insert("ORCL".into(), off);
    };
    assert!(!cached_after(Purpose::Data, Caching::Default, small, plan));
}

/// According to the published source, setting a segment's policy to NONE does not evict its cached lines.
#[test]
fn a_segment_that_is_no_longer_cached_still_hits() {
    let simulation = Simulation::new(8);
    let rack = cached(&simulation, 10, |_| {});
    one_by_one(&simulation, &data(&rack), vec![block(1)]);
    let none = device(&rack, Purpose::Data, Caching::None);
    assert_eq!(one_by_one(&simulation, &none, vec![block(1), block(2), block(2)]), [FLASH_NS, DISK_NS, DISK_NS]);
}

/// KEEP uses at most its share, and evicts its own lines beyond that.
#[test]
fn keep_has_a_limit_of_its_own() {
    let simulation = Simulation::new(9);
    let rack = cached(&simulation, 1_000, |p| p.flash_cache.keep_limit_ratio = 0.5);
    let scan = (0..8).map(|i| Request::read(i << 20, 1 << 20)).collect();
    one_by_one(&simulation, &device(&rack, Purpose::Scan, Caching::Keep), scan);
    let mb = |lines: f64| lines * LINE as f64 / f64::from(1 << 20);
    assert_eq!(metric(&rack, "FC_BYKEEP_USED"), mb(500.0));
    assert_eq!(metric(&rack, "FC_BYKEEP_OVERWR"), mb(1_024.0 - 500.0));
    // Others have the rest, and do not push KEEP out.
    one_by_one(&simulation, &data(&rack), (1_100..2_000).map(block).collect());
    assert_eq!(metric(&rack, "FC_BYKEEP_USED"), mb(500.0));
    assert_eq!(metric(&rack, "FC_BY_USED"), mb(1_000.0));
    assert!(rack.holds());
}

/// Disk and flash serve a large read with KEEP at the same time; it takes the longer of both times.
#[test]
fn a_scan_reads_disk_and_flash_at_the_same_time() {
    let simulation = Simulation::new(10);
    let rack = cached(&simulation, 1_000, |_| {});
    let keep = device(&rack, Purpose::Scan, Caching::Keep);
    let half = Request::read(0, 512 << 10);
    let whole = Request::read(0, 1 << 20);
    let seen = one_by_one(&simulation, &keep, vec![half]);
    assert_eq!(seen, [DISK_NS]);
    let seen = one_by_one(&simulation, &keep, vec![whole]);
    assert_eq!(seen, [DISK_NS], "half from flash meanwhile");
    assert_eq!(one_by_one(&simulation, &keep, vec![whole]), [FLASH_NS]);
    let requests = ["HD", "FC_HD", "FC"].map(|on| metric(&rack, &format!("SIO_IO_RD_RQ_{on}")));
    assert_eq!(requests, [1.0, 1.0, 1.0]);
    assert_eq!(metric(&rack, "SIO_IO_EL_OF"), 2.5);
    assert!((metric(&rack, "SIO_IO_OF_RE") - 0.25).abs() < 1e-5, "a tenth, in whole bytes");
}

/// A large write invalidates the cached lines that it covers.
#[test]
fn what_a_large_write_covers_is_no_longer_cached() {
    let simulation = Simulation::new(11);
    let rack = cached(&simulation, 1_000, write_back);
    one_by_one(&simulation, &data(&rack), vec![rewrite(1), Request::write(0, 1 << 20)]);
    assert_eq!((rack.cells()[0].dirty_bytes(), metric(&rack, "FC_BY_USED")), (0, 0.0));
    assert_eq!(one_by_one(&simulation, &data(&rack), vec![block(1)]), [DISK_NS]);
}

/// In write-through mode, mirror copies go to disk only; in write-back mode, every copy is cached.
#[test]
fn mirror_copies_are_cached_in_write_back_mode_only() {
    for (mode, first, skipped) in [(CacheMode::WriteThrough, 1.0, 1.0), (CacheMode::WriteBack, 2.0, 0.0)] {
        let simulation = Simulation::new(12);
        let mut parameters = bare(2, Redundancy::Normal);
        parameters.flash_cache.mode = mode;
        let make = |sim: &Sim, name: &str| law(sim, name, &exponential(10.0));
        let rack = Rack::with(&simulation, &parameters, &make, &make).unwrap();
        one_by_one(&simulation, &data(&rack), vec![rewrite(1)]);
        assert_eq!(metric(&rack, "FC_IO_RQ_W_FIRST"), first);
        assert_eq!(metric(&rack, "FC_IO_RQ_W_SKIP_NCMIRROR"), skipped);
    }
}

/// When the memory for lines in flight is full, reads with KEEP wait for memory; other lines are not stored in the
/// cache.
#[test]
fn without_memory_keep_waits_and_others_are_not_stored() {
    let tight = |parameters: &mut RackParameters| {
        parameters.flash_cache.populate_mb = 1;
        parameters.flash_cache.scans = true;
    };
    let run = |caching| {
        let simulation = Simulation::new(13);
        let rack = cached(&simulation, 10_000, tight);
        let scan = device(&rack, Purpose::Scan, caching);
        let next: fn(&mut Stream, u64) -> Request = |dice, _| Request::read(dice.below(64) << 20, 1 << 20);
        let seen = closed_loop(&simulation, &scan, 8, 1, next);
        let longest = seen.into_iter().max().unwrap();
        (longest, metric(&rack, "FC_IO_RQ_W_SKIP_FC_THROTTLE"))
    };
    let (waited, throttled) = run(Caching::Keep);
    assert!(waited > DISK_NS + 4 * FLASH_NS && throttled == 0.0, "{waited} {throttled}");
    let (waited, throttled) = run(Caching::Default);
    assert!(waited == DISK_NS && throttled > 3.0, "{waited} {throttled}");
}

/// Experiment E12: lines enter the cache one at a time, so a first scan with KEEP is only as fast as lines are written;
/// with unlimited parallel writes, entering the cache would take no time.
#[test]
fn a_first_scan_of_keep_goes_at_the_pace_of_one_line_after_the_other() {
    let run = |populates: u64, scans: u64| {
        let simulation = Simulation::new(15);
        let mut parameters = bare(1, Redundancy::External);
        parameters.flash_cache.size_gb = (20_000 * LINE) as f64 / f64::from(1 << 30);
        (parameters.flash_cache.populates, parameters.flash_cache.populate_mb) = (populates, 1);
        let disk = |sim: &Sim, name: &str| law(sim, name, &Times::Constant { us: 5_000.0 });
        let module = |sim: &Sim, name: &str| law(sim, name, &Times::Constant { us: 100.0 });
        let rack = Rack::with(&simulation, &parameters, &disk, &module).unwrap();
        let scan = device(&rack, Purpose::Scan, Caching::Keep);
        let requests = (0..scans * 40).map(|at: u64| Request::read((at % 40) << 20, 1 << 20)).collect();
        one_by_one(&simulation, &scan, requests).into_iter().sum::<u64>()
    };
    let (first, both) = (run(1, 1), run(1, 2));
    // 128 lines of 100 us are more than a read of 5 ms; the first and last MB are on their way in memory.
    let written_ns = 128 * FLASH_NS;
    assert!(first > 37 * written_ns && first < 41 * written_ns, "{first}");
    assert!(both - first < first / 10, "then flash answers: {}", both - first);
    assert_eq!(run(1_000, 1), 40 * DISK_NS);
}

/// A cell of sixteen modules serves at most as many small reads per second as its shared path allows, even if the
/// modules alone could serve more; bandwidths add up.
#[test]
fn requests_of_all_modules_are_bounded_and_bytes_add_up() {
    let rate = |modules, bytes: u64, next: fn(&mut Stream, u64) -> Request| {
        let simulation = Simulation::new(14);
        let parameters = RackParameters { modules, ..RackParameters::default() };
        let group = GroupParameters { on: Medium::Flash, size_gb: 4.0, ..Default::default() };
        let groups = [("DATA".to_owned(), group)].into();
        let rack = Rack::new(&simulation, &RackParameters { groups, ..parameters }).unwrap();
        closed_loop(&simulation, &data(&rack), 400, 20, next);
        let per_second = 8_000.0 / (simulation.now_ns() as f64 / 1e9) / 3.0;
        (per_second, per_second * bytes as f64 / 1e6)
    };
    let small: fn(&mut Stream, u64) -> Request = |dice, bytes| Request::read(dice.below(bytes / 4_096) * 4_096, 4_096);
    let large: fn(&mut Stream, u64) -> Request = |dice, bytes| Request::read(dice.below(bytes >> 20) << 20, 1 << 20);
    let (one, all) = (rate(1, 4_096, small).0, rate(16, 4_096, small).0);
    println!("a cell: {one:.0} small reads/s of a module, {all:.0} of sixteen");
    assert!(one > 15_000.0 && all > 80_000.0 && all < 98_300.0);
    let (one, four) = (rate(1, 1 << 20, large).1, rate(4, 1 << 20, large).1);
    println!("a cell: {one:.0} MB/s of a module, {four:.0} of four");
    assert!((250.0..300.0).contains(&one) && four / one > 3.0);
}

#[test]
fn a_cache_that_begins_warm_answers_from_flash_and_has_counted_nothing() {
    let simulation = Simulation::new(3);
    let mut parameters = RackParameters { count: 1, disks: 4, modules: 4, ..Default::default() };
    parameters.flash_cache.size_gb = 0.05;
    let group = GroupParameters { size_gb: 1.0, warm_mb: 32, redundancy: Redundancy::External, ..Default::default() };
    parameters.groups = [("DATA".to_owned(), group)].into();
    let rack = Rack::new(simulation.sim(), &parameters).unwrap();
    let data = rack.group("DATA", &Tag::new(Purpose::Data, "ORCL")).unwrap();
    let counter = |name: &str| metric(&rack, name);
    assert_eq!((counter("FC_IO_RQ_W"), counter("FC_IO_RQ_R")), (0.0, 0.0));
    assert!((counter("FC_BY_USED") - 32.0).abs() < 1e-9);
    let sim = simulation.sim().clone();
    simulation.spawn("reader", async move {
        start(&sim, &*data, Request::read(8 << 20, 8192)).await;
        start(&sim, &*data, Request::read(40 << 20, 8192)).await;
    });
    simulation.run().unwrap();
    assert_eq!((counter("FC_IO_RQ_R"), counter("FC_IO_RQ_R_MISS")), (1.0, 1.0));
    assert!(rack.holds());
}
