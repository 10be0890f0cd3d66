//! Tests sessions on cores, with log files, temporary space and calls; workloads with their warm-up.
#![allow(clippy::unwrap_used, missing_docs)]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::common::instance::{Bench, bare, constant, memory, station};
use crate::common::{assert_near, mean};
use dyno_model::database::{
    CallKind, Event, Instance, InstanceParameters, Policy, Process, Scan, SchedulerParameters, Sort, Storage, Wait,
};
use dyno_model::formula;
use dyno_model::kernel::Simulation;
use dyno_model::kernel::replicate::replicate;
use dyno_model::workload::{CommitLoop, KeyLookup, Limit, Stop, UpdateLoop, Workload};

fn of(bench: &Bench, process: Process) -> Vec<Wait> {
    let waits = bench.heard.waits.borrow();
    waits.iter().filter(|wait| wait.process == process).copied().collect()
}

/// Sessions that think and compute on one core behave like the machine repairman model, whatever the time slice.
#[test]
fn a_core_is_a_repairman() {
    for (policy, slice_ms) in [(Policy::RoundRobin, 0.3), (Policy::RoundRobin, 1_000.0), (Policy::Fair, 0.3)] {
        let runs = replicate(1, 20, 2, |seed| {
            let scheduler = SchedulerParameters { policy, slice_ms, latency_ms: slice_ms, wakeup_ms: 0.1 };
            let parameters = InstanceParameters { cores: 1, scheduler, ..bare() };
            let bench = Bench::on_memory(seed, parameters, 100.0, 1e12);
            for number in 0..6 {
                let mut session = bench.instance.session(number);
                let mut dice = bench.simulation.stream(&format!("session {number}"));
                bench.simulation.spawn("session", async move {
                    loop {
                        session.think(dice.exponential(2e6) as u64).await;
                        session.compute(dice.exponential(4e5) as u64).await;
                    }
                });
            }
            bench.simulation.run_until(200_000_000).unwrap();
            bench.instance.reset();
            bench.simulation.run_until(6_200_000_000).unwrap();
            let report = bench.instance.report();
            assert!(report.little && report.utilisation <= 1.0);
            report.utilisation / 0.4
        });
        let expected = formula::mva(&[0.4], 2.0, 6).0;
        assert_near("transactions per ms", mean(&runs), expected);
    }
}

/// Time in the run queue after a wait belongs to the wait; only time after a slice's end is reported as the CPU queue.
#[test]
fn a_wait_ends_when_the_session_runs() {
    let policy = Policy::RoundRobin;
    let scheduler = SchedulerParameters { policy, slice_ms: 1.0, ..Default::default() };
    let parameters = InstanceParameters { cores: 1, scheduler, ..bare() };
    let bench = Bench::on_memory(1, parameters, 100.0, 1e12);
    let (mut long, mut short) = (bench.instance.session(0), bench.instance.session(1));
    bench.simulation.spawn("long", async move { long.compute(2_500_000).await });
    bench.simulation.spawn("short", async move {
        short.think(300_000).await;
        short.compute(200_000).await;
    });
    bench.simulation.run().unwrap();
    let wait = |event, start_ns, elapsed_ns, process| Wait { process, event, start_ns, elapsed_ns, p: [0; 3] };
    // The thought of 0.3 ms ends at the end of the other's slice, at 1 ms.
    let thought = wait(Event::ClientMessage, 0, 1_000_000, Process::Session(1));
    assert_eq!(of(&bench, Process::Session(1)), [thought]);
    let queue = wait(Event::CpuQueue, 1_000_000, 200_000, Process::Session(0));
    assert_eq!(of(&bench, Process::Session(0)), [queue]);
}

/// Under the fair policy, a process that wakes up with less CPU time preempts one with more; the real-time class
/// preempts any process.
#[test]
fn who_had_less_takes_the_core_of_who_had_more() {
    let thought_ns = |policy| {
        let scheduler = SchedulerParameters { policy, ..Default::default() };
        let parameters = InstanceParameters { cores: 1, scheduler, ..bare() };
        let bench = Bench::on_memory(1, parameters, 100.0, 1e12);
        let (mut long, mut short) = (bench.instance.session(0), bench.instance.session(1));
        bench.simulation.spawn("long", async move { long.compute(100_000_000).await });
        bench.simulation.spawn("short", async move {
            for _ in 0..4 {
                short.think(20_000_000).await;
                short.compute(200_000).await;
            }
        });
        bench.simulation.run().unwrap();
        assert_eq!(bench.simulation.now_ns(), 100_800_000, "one core, never idle");
        of(&bench, Process::Session(1)).iter().map(|wait| wait.elapsed_ns).max().unwrap()
    };
    assert_eq!(thought_ns(Policy::Fair), 20_000_000);
    // Up to a slice of 3 ms later.
    let later_ns = thought_ns(Policy::RoundRobin) - 20_000_000;
    assert!((1..=3_000_000).contains(&later_ns), "{later_ns}");
}

/// Claim N13: the storage is unchanged, but there are too few cores.
#[test]
fn a_starved_log_writer_shows_as_sync_far_above_parallel_write() {
    let ratio = |cores, policy, lgwr_first| {
        let scheduler = SchedulerParameters { policy, ..Default::default() };
        let parameters = InstanceParameters { cores, lgwr_first, scheduler, ..Default::default() };
        let bench = Bench::on_memory(4, parameters, 400.0, 500.0);
        let load = CommitLoop { cpu_us: 1_000.0, ..CommitLoop::default() };
        let stop = Stop::new(5, Limit::Transactions(100));
        let progress = Workload::CommitLoop(load).spawn(&bench.simulation, &bench.instance, 40, &stop);
        bench.simulation.run().unwrap();
        assert_eq!(progress.unwrap().unaccounted(), 0);
        let (sync, write) = (Event::LogFileSync, Event::LogFileParallelWrite);
        let (sync_ms, write_ms) = (bench.mean_ms(sync), bench.mean_ms(write));
        let counts = bench.instance.redo().counts();
        let per_s = counts.commits as f64 / bench.simulation.now_ns() as f64 * 1e9;
        println!(
            "{cores} cores, {policy:?}, writer first {lgwr_first}: sync {sync_ms:.2} ms, \
             write {write_ms:.2} ms, ratio {:.2}, {per_s:.0} commits/s, {:.1} a write",
            sync_ms / write_ms,
            counts.commits as f64 / counts.writes as f64,
        );
        sync_ms / write_ms
    };
    for policy in [Policy::Fair, Policy::RoundRobin] {
        for cores in [64, 8, 4, 2] {
            ratio(cores, policy, false);
        }
        ratio(2, policy, true);
    }
    assert!(ratio(64, Policy::Fair, false) < 2.0);
    assert!(ratio(2, Policy::Fair, false) > 4.0);
}

/// Returns an instance after a load with log files of this size and with block writes that take this time; small files
/// and slow block writes make log switches wait for the checkpoint.
fn switching(file_mb: u64, write_us: f64) -> Bench {
    let mut parameters = bare();
    (parameters.redo.file_mb, parameters.redo.groups) = (file_mb, 2);
    parameters.buffers.writes = 1;
    let bench = Bench::new(1, parameters, |simulation| {
        let data = station(simulation, "files", 8, (constant(10.0), constant(write_us)));
        let redo = vec![memory(simulation, "log", 100.0, 1e3)];
        Storage { redo, temp: Rc::clone(&data), data }
    });
    let load = UpdateLoop { blocks: 2_000, redo_per_block: 4_096, ..UpdateLoop::default() };
    let stop = Stop::new(0, Limit::Transactions(300));
    let work = Workload::UpdateLoop(load);
    let progress = work.spawn(&bench.simulation, &bench.instance, 10, &stop).unwrap();
    bench.simulation.run().unwrap();
    assert_eq!((progress.unaccounted(), progress.transactions()), (0, 3_000));
    bench.assert_redo_is_conserved();
    bench
}

#[test]
fn a_full_log_file_is_left_for_the_next() {
    let bench = switching(4, 10.0);
    let counts = bench.instance.redo().counts();
    // 3,000 changes of 4 KB in blocks of 496 bytes: 12.1 MB and the waste of each write.
    assert!((3..=4).contains(&counts.switches), "{counts:?}");
    assert_eq!(counts.incomplete, 0, "the incremental checkpoint was ahead of it");
    assert!(bench.seconds(Event::LogFileSwitchCompletion) > 0.0);
    let waits = of(&bench, Process::LogWriter);
    let control = waits.iter().filter(|wait| wait.event == Event::ControlFileParallelWrite);
    assert_eq!(control.count() as u64, counts.switches * 4);
    assert!(bench.instance.buffers().counts().writes > 0);
}

#[test]
fn a_log_file_that_is_still_needed_stops_everybody() {
    let bench = switching(1, 1_000.0);
    let counts = bench.instance.redo().counts();
    assert!(counts.incomplete > counts.switches / 2, "{counts:?}");
    assert!(bench.seconds(Event::LogFileSwitchCheckpoint) > 0.5);
    let position = bench.instance.checkpoint().position();
    assert!(position <= bench.instance.redo().written_bytes() || position == u64::MAX);
}

/// A private strand keeps redo until the commit; a strand that is too small is abandoned immediately.
#[test]
fn private_strands_are_copied_at_commit() {
    let mut parameters = bare();
    parameters.redo.private_kb = 64;
    let bench = Bench::on_memory(1, parameters, 100.0, 1e12);
    let mut session = bench.instance.session(0);
    let redo = bench.instance.redo().clone();
    bench.simulation.spawn("session", async move {
        session.update(1, 1_000).await;
        session.change(60_000, 1_000, 0).await;
        assert_eq!(redo.written_bytes(), 0);
        session.commit(0).await;
        assert_eq!((redo.written_bytes(), redo.safe()), (61_001, 61_001));
        session.change(70_000, 1_000, 0).await;
        assert_eq!(redo.written_bytes(), 61_001 + 70_000);
        session.commit(0).await;
    });
    bench.simulation.run().unwrap();
    assert_eq!(bench.instance.buffers().dirty(), 1);
    let calls = bench.heard.calls.borrow();
    let told: Vec<_> = calls.iter().map(|call| (call.redo_bytes, call.unflushed_bytes)).collect();
    assert_eq!(told, [(61_000, 61_000), (70_000, 70_000)]);
}

/// If there are more sessions than the latch can serve, some sleep until it is free. A second strand halves the queue.
#[test]
fn the_allocation_latch_is_one_at_a_time() {
    let slept = |strands| {
        let mut parameters = bare();
        let redo = &mut parameters.redo;
        (redo.allocate_us, redo.spin_us, redo.strands) = (50.0, 10.0, strands);
        let bench = Bench::on_memory(1, parameters, 1.0, 1e12);
        for number in 0..8 {
            let mut session = bench.instance.session(number);
            let sim = bench.simulation.sim().clone();
            bench.simulation.spawn("session", async move {
                for _ in 0..100 {
                    session.change(100, 100, 0).await;
                }
                assert!(session.ledger().holds(sim.now_ns()));
            });
        }
        bench.simulation.run().unwrap();
        (bench.simulation.now_ns(), bench.seconds(Event::LatchRedoAllocation))
    };
    let ((one_ns, one), (two_ns, two)) = (slept(1), slept(2));
    println!("one strand: {one_ns} ns, slept {one} s; two: {two_ns} ns, {two} s");
    assert_eq!(one_ns, 800 * 50_000, "the latch is never idle");
    assert!(two_ns < one_ns * 3 / 5 && two < one && two > 0.0);
}

/// A sort of 100 MB writes its sorted runs once, and each pass except the last reads and writes everything again.
#[test]
fn a_sort_makes_the_passes_that_it_must() {
    // Areas of 1 MB: 100 runs, 15 or 3 of them merged at once.
    for (area_kb, io_kb, passes) in [(1_024, 64, 2), (1_024, 256, 5), (200_000, 64, 0)] {
        let bench = Bench::on_memory(1, bare(), 100.0, 1e3);
        let sort =
            Sort { bytes: 100 << 20, area_bytes: area_kb << 10, io_bytes: io_kb << 10, ahead: 1, cpu_ns_per_kb: 100 };
        assert_eq!(sort.plan().passes, passes);
        let mut session = bench.instance.session(3);
        bench.simulation.spawn("session", async move { session.sort(&sort).await });
        bench.simulation.run().unwrap();
        let waits = of(&bench, Process::Session(3));
        for event in [Event::DirectPathWriteTemp, Event::DirectPathReadTemp] {
            let those = waits.iter().filter(|wait| wait.event == event);
            assert_eq!(those.clone().map(|wait| wait.p[2]).sum::<u64>(), 12_800 * passes);
            assert_eq!(those.clone().count() as u64, (100 << 10) / io_kb * passes);
            assert!(those.clone().all(|wait| wait.p[0] == 201));
        }
    }
}

/// Two concurrent reads take half the time of two consecutive reads.
#[test]
fn a_scan_reads_ahead() {
    let elapsed = |ahead| {
        let bench = Bench::new(1, bare(), |simulation| {
            let data = station(simulation, "files", 64, (constant(1_000.0), constant(1_000.0)));
            let redo = vec![memory(simulation, "log", 1.0, 1e12)];
            Storage { redo, temp: Rc::clone(&data), data }
        });
        let mut session = bench.instance.session(0);
        let scan = Scan { offset_bytes: 1 << 20, bytes: 64 << 20, io_bytes: 1 << 20, ahead, cpu_ns_per_io: 0 };
        bench.simulation.spawn("session", async move { session.scan(&scan).await });
        bench.simulation.run().unwrap();
        let waits = of(&bench, Process::Session(0));
        assert!(waits.iter().all(|wait| wait.event == Event::DirectPathRead));
        assert_eq!(waits[0].p, [1, 128, 128]);
        bench.simulation.now_ns()
    };
    assert_eq!((elapsed(1), elapsed(2), elapsed(4)), (64_000_000, 32_000_000, 16_000_000));
}

/// When the last session is warm, all statistics are reset, and rows are recorded only from then on.
#[test]
fn a_warm_up_ends_for_all_at_one_moment() {
    let bench = Bench::on_memory(1, InstanceParameters::default(), 300.0, 1e3);
    let moment = Rc::new(Cell::new(0));
    let (seen, sim) = (Rc::clone(&moment), bench.simulation.sim().clone());
    let stop = Stop::new(50, Limit::Transactions(20)).when_warm(move || seen.set(sim.now_ns()));
    let work = Workload::CommitLoop(CommitLoop { think_ms: 2.0, ..CommitLoop::default() });
    let progress = work.spawn(&bench.simulation, &bench.instance, 7, &stop).unwrap();
    bench.simulation.run().unwrap();
    assert_eq!((progress.transactions(), progress.running(), progress.unaccounted()), (140, 0, 0));
    assert_eq!(progress.warm_ns(), Some(moment.get()));
    assert_eq!(bench.instance.report().elapsed_ns, bench.simulation.now_ns() - moment.get());
    let calls = bench.heard.calls.borrow();
    assert_eq!(calls.iter().filter(|call| call.kind == CallKind::Transaction).count(), 140);
    assert!(calls.iter().all(|call| call.started_ns >= moment.get()));
    let commits = calls.iter().filter(|call| call.kind == CallKind::Commit);
    assert!(commits.map(|call| call.redo_bytes).all(|bytes| bytes == 512));
}

/// With the same seed, the sessions of two arms have the same think times, changes and look-ups, however slow the log
/// is.
#[test]
fn arms_on_one_seed_meet_the_same_work() {
    let run = |log_us| {
        let bench = Bench::on_memory(9, InstanceParameters::default(), log_us, 1e3);
        let load = CommitLoop { redo_bytes: "1KiB..1MiB".into(), ..CommitLoop::default() };
        let stop = Stop::new(0, Limit::Transactions(30));
        Workload::CommitLoop(load).spawn(&bench.simulation, &bench.instance, 3, &stop).unwrap();
        bench.simulation.run().unwrap();
        let calls = bench.heard.calls.borrow();
        let mut sizes: Vec<Vec<u64>> = vec![Vec::new(); 3];
        for call in calls.iter().filter(|call| call.kind == CallKind::Commit) {
            sizes[call.session as usize].push(call.redo_bytes);
        }
        (sizes, bench.simulation.hash(), bench.simulation.now_ns())
    };
    let (fast, slow, again) = (run(100.0), run(900.0), run(900.0));
    assert_eq!(fast.0, slow.0);
    assert!(fast.2 < slow.2);
    assert_eq!(slow, again, "equal seed, equal run");
}

/// A lookup gets root, branch, leaf and row; the upper levels are soon in the buffers.
#[test]
fn a_lookup_gets_a_block_of_each_level() {
    let bench = Bench::on_memory(1, InstanceParameters::default(), 100.0, 1e3);
    let stop = Stop::new(0, Limit::Transactions(1_000));
    let work = Workload::KeyLookup(KeyLookup::default());
    work.spawn(&bench.simulation, &bench.instance, 2, &stop).unwrap();
    bench.simulation.run().unwrap();
    let calls = bench.heard.calls.borrow();
    let fetches: Vec<_> = calls.iter().filter(|call| call.kind == CallKind::Fetch).collect();
    assert!(fetches.iter().all(|call| call.gets == 4 && call.rows == 1), "3 levels and the table");
    let reads: u64 = fetches.iter().map(|call| call.reads).sum();
    assert_eq!(reads, bench.instance.buffers().counts().reads);
    assert!(reads as f64 / 2_000.0 > 1.2 && (reads as f64) < 2.0 * 2_000.0, "{reads}");
}

#[test]
fn what_cannot_work_is_named() {
    type Change = fn(&mut InstanceParameters);
    let simulation = Simulation::new(1);
    let storage = |simulation: &Simulation| {
        let data = memory(simulation, "data", 1.0, 1.0);
        Storage { redo: vec![Rc::clone(&data)], temp: Rc::clone(&data), data }
    };
    let refused = |change: Change| {
        let mut parameters = InstanceParameters::default();
        change(&mut parameters);
        let made = Instance::new(&simulation, parameters, storage(&simulation), Rc::new(()));
        made.err().map(|error| error.to_string())
    };
    let wrong: [(Change, &str); 5] = [
        (|p| p.cores = 0, "cores = 0: must be 1 or more"),
        (|p| p.scheduler.slice_ms = f64::NAN, "scheduler.slice_ms = NaN: must be a number above 0"),
        (|p| p.redo.groups = 1, "redo.groups = 1: must be 2 or more"),
        (|p| p.redo.strands = 1_000, "redo.strands = 1000: must be 256 or less"),
        (|p| p.buffers.writes = 0, "buffers.writes = 0: must be 1 or more"),
    ];
    for (change, message) in wrong {
        assert_eq!(refused(change).as_deref(), Some(message));
    }
    assert_eq!(refused(|_| {}), None);
    let mut nowhere = storage(&simulation);
    nowhere.redo.clear();
    let made = Instance::new(&simulation, InstanceParameters::default(), nowhere, Rc::new(()));
    assert!(made.is_err_and(|error| error.to_string().contains("redo members")));
    let bench = Bench::on_memory(1, bare(), 1.0, 1.0);
    let seen = RefCell::new(Vec::new());
    for text in ["commit-loop\"\nredo_bytes = \"2MB..1MB", "update-loop\"\nblocks = 0\nskew = \"x"] {
        match toml::from_str::<Workload>(&format!("kind = \"{text}\"")) {
            Ok(work) => {
                let stop = Stop::new(0, Limit::Transactions(1));
                let spawned = work.spawn(&bench.simulation, &bench.instance, 1, &stop);
                seen.borrow_mut().push(spawned.err().unwrap().to_string());
            }
            Err(error) => seen.borrow_mut().push(error.to_string()),
        }
    }
    let seen = seen.take();
    assert!(seen[0].starts_with("redo_bytes = \"2MB..1MB\": must be a size"), "{}", seen[0]);
    assert!(seen[1].contains("invalid type"), "{}", seen[1]);
    let unknown = toml::from_str::<Workload>("kind = \"sort\"\nare_kb = 1").unwrap_err();
    assert!(unknown.to_string().contains("area_kb"), "{unknown}");
}
