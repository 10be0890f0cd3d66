//! Tests a modelled `PostgreSQL` against closed forms: group commit by the first process that finds the log lock free,
//! row locks, and queues for cores.
#![allow(clippy::unwrap_used, missing_docs)]

use std::rc::Rc;

use dyno_model::device::Device;
use dyno_model::formula::mva;
use dyno_model::kernel::Simulation;
use dyno_model::kernel::sample::Times;
use dyno_model::postgres::load::Lock;
use dyno_model::postgres::{Load, Outcome, PostgresParameters, Statement, Step, Wait, run};

use crate::common::instance::{constant, station};
use crate::common::postgres::{load, near, quiet, rate, step};
use crate::redo::chain;

/// Returns a server whose statements cost `cpu_us` and insert `wal_bytes`, without any other cost.
fn bare(cores: u64, cpu_us: f64, wal_bytes: f64) -> PostgresParameters {
    let statement = Statement { user_us: cpu_us, wal_bytes, ..Statement::default() };
    PostgresParameters { cores, flush_us: 0.0, lock_us: 0.0, latch_us: 0.0, ..quiet(statement) }
}

fn outcome(parameters: &PostgresParameters, write: Times, load: &Load) -> Outcome {
    let simulation = Simulation::new(2_026);
    let device: Rc<dyn Device> = station(&simulation, "log", 1, (constant(1.0), write));
    load.check(parameters.statements.len()).unwrap();
    run(&simulation, parameters, &device, load).unwrap()
}

#[test]
fn one_session_takes_a_flush_a_commit() {
    let found = outcome(&bare(4, 100.0, 200.0), constant(400.0), &load(1, 2_000, vec![step(None, true)]));
    near(rate(&found), 1e6 / 500.0, 0.002);
    assert_eq!(found.flushes, found.commits);
    assert!(found.latencies_ns.iter().all(|&ns| ns == 500_000));
}

#[test]
fn without_a_pause_two_groups_alternate_and_a_commit_takes_two_flushes() {
    for sessions in [4, 16, 32] {
        let parameters = bare(64, 0.5, 200.0);
        let found = outcome(&parameters, constant(500.0), &load(sessions, 20_000, vec![step(None, true)]));
        near(rate(&found), f64::from(sessions) * 1e6 / 1_000.0, 0.01);
        near(found.commits as f64 / found.flushes as f64, f64::from(sessions) / 2.0, 0.01);
    }
}

#[test]
fn group_commit_with_thinking_clients_follows_the_markov_chain() {
    for (sessions, think_ms) in [(5, 1.0), (20, 1.0), (20, 5.0)] {
        let think = Times::Exponential { mean_us: think_ms * 1e3 };
        let parameters = PostgresParameters { think, ..bare(4_096, 0.001, 200.0) };
        let found = outcome(&parameters, constant(500.0), &load(sessions, 100_000, vec![step(None, true)]));
        let (batch, per_ms, _) = chain(sessions as usize, think_ms, 0.5, 0.0);
        near(rate(&found), per_ms * 1e3, 0.01);
        near(found.commits as f64 / found.flushes as f64, batch, 0.01);
    }
}

#[test]
fn a_flush_writes_whole_pages_and_begins_in_the_page_of_the_one_before() {
    // 60 bytes and the commit's record of 40.
    let small = outcome(&bare(4, 10.0, 60.0), constant(100.0), &load(1, 8_192, vec![step(None, true)]));
    // 100 bytes a flush: one page of 8 KB, and a second one whenever a record crosses the end of a page.
    let pages = small.written_bytes as f64 / 8_192.0 / small.flushes as f64;
    near(pages, 1.0 + 100.0 / 8_192.0, 0.003);
    let large = outcome(&bare(4, 10.0, 19_960.0), constant(100.0), &load(1, 8_192, vec![step(None, true)]));
    near(large.written_bytes as f64 / 8_192.0 / large.flushes as f64, 1.0 + 20_000.0 / 8_192.0, 0.003);
}

/// Returns the number of waits for the log's lock per commit.
fn lock_waits(outcome: &Outcome) -> f64 {
    outcome.waits[Wait::WalLock as usize].count as f64 / outcome.commits as f64
}

#[test]
fn innodb_wakes_only_those_that_a_flush_has_served_and_the_next_that_flushes() {
    for sessions in [4, 16] {
        let of = |wakes_all| {
            let parameters = PostgresParameters { wakes_all, ..bare(64, 0.5, 200.0) };
            outcome(&parameters, constant(500.0), &load(sessions, 20_000, vec![step(None, true)]))
        };
        let (all, served) = (of(true), of(false));
        near(rate(&served), rate(&all), 0.01);
        // Two groups alternate. Woken by the other group's flush, one of a group flushes, and the others sleep again.
        let group = f64::from(sessions) / 2.0;
        near(lock_waits(&all), (2.0 * group - 1.0) / group, 0.02);
        near(lock_waits(&served), 1.0, 0.02);
    }
}

#[test]
fn a_commit_that_only_writes_takes_no_time_of_the_device() {
    let parameters = PostgresParameters { commit_syncs: false, flush_us: 20.0, ..bare(4, 100.0, 200.0) };
    let found = outcome(&parameters, constant(400.0), &load(1, 2_000, vec![step(None, true)]));
    near(rate(&found), 1e6 / 120.0, 0.002);
    assert_eq!((found.flushes, found.waits[Wait::WalSync as usize].count), (found.commits, 0));
}

#[test]
fn a_binary_log_adds_its_own_sync_every_so_many_groups() {
    for (binlog_sync_every, syncs) in [(0, 1.0), (1, 2.0), (10, 1.1)] {
        let parameters =
            PostgresParameters { binlog: true, binlog_sync_every, binlog_us: 0.0, ..bare(4, 100.0, 200.0) };
        let found = outcome(&parameters, constant(400.0), &load(1, 2_000, vec![step(None, true)]));
        near(rate(&found), 1e6 / (100.0 + syncs * 400.0), 0.002);
    }
}

#[test]
fn sessions_share_the_syncs_of_a_binary_log_in_groups() {
    let of = |binlog_sync_every| {
        let parameters = PostgresParameters {
            binlog: true,
            binlog_sync_every,
            binlog_us: 0.0,
            wakes_all: false,
            ..bare(64, 0.5, 200.0)
        };
        rate(&outcome(&parameters, constant(500.0), &load(16, 20_000, vec![step(None, true)])))
    };
    // Without its sync as without the log: two groups alternate, and a commit takes two flushes.
    near(of(0), 16.0 * 1e6 / 1_000.0, 0.01);
    // Three groups take turns at a device that serves one log after the other: a round of all has six syncs.
    near(of(1), 16.0 * 1e6 / 3_000.0, 0.01);
}

#[test]
fn a_commit_waits_for_siblings_only_if_there_are_enough_of_them() {
    let with =
        |siblings| PostgresParameters { commit_delay_us: 300.0, commit_siblings: siblings, ..bare(64, 1.0, 200.0) };
    let delays = |siblings| {
        let found = outcome(&with(siblings), constant(500.0), &load(4, 2_000, vec![step(None, true)]));
        found.waits[Wait::CommitDelay as usize].count
    };
    assert_eq!(delays(4), 0);
    assert!(delays(1) > 0);
    let alone = outcome(&with(1), constant(500.0), &load(1, 2_000, vec![step(None, true)]));
    near(rate(&alone), 1e6 / 501.0, 0.002);
}

#[test]
fn a_delay_lets_more_commits_share_a_flush() {
    let batch = |commit_delay_us| {
        let think = Times::Exponential { mean_us: 2_000.0 };
        let parameters = PostgresParameters { commit_delay_us, commit_siblings: 1, think, ..bare(64, 1.0, 200.0) };
        let found = outcome(&parameters, constant(500.0), &load(16, 40_000, vec![step(None, true)]));
        found.commits as f64 / found.flushes as f64
    };
    assert!(batch(400.0) > 1.3 * batch(0.0));
}

#[test]
fn asynchronous_commits_wait_for_nothing() {
    let parameters = PostgresParameters { synchronous_commit: false, ..bare(4, 100.0, 200.0) };
    let found = outcome(&parameters, constant(5_000.0), &load(1, 5_000, vec![step(None, true)]));
    near(rate(&found), 1e4, 0.002);
    assert_eq!(found.waits[Wait::WalSync as usize].count, 0);
}

#[test]
fn asynchronous_commits_wake_the_log_writer_which_computes_for_each_kb() {
    // Each commit fills a page. On one core the session pays for the log writer: 3 us a wake-up, 16 us a page.
    let parameters = |wal_writer_wake_kb| PostgresParameters {
        synchronous_commit: false,
        latch_us: 3.0,
        flush_us_per_kb: 2.0,
        wal_writer_wake_kb,
        ..bare(1, 100.0, 8_192.0 - 40.0)
    };
    let of = |kb| outcome(&parameters(kb), constant(1.0), &load(1, 5_000, vec![step(None, true)]));
    near(rate(&of(8.0)), 1e6 / (100.0 + 3.0 + 16.0), 0.01);
    near(rate(&of(0.0)), 1e6 / 100.0, 0.01);
    // It syncs once per MB.
    near(of(8.0).flushes as f64, 5_000.0 / 128.0, 0.05);
}

#[test]
fn asynchronous_commits_wait_for_a_device_that_cannot_keep_up_once_the_buffers_are_full() {
    let parameters =
        PostgresParameters { synchronous_commit: false, wal_buffers_kb: 4_096.0, ..bare(4, 10.0, 65_536.0 - 40.0) };
    let found = outcome(&parameters, constant(20_000.0), &load(4, 20_000, vec![step(None, true)]));
    // While the log writer syncs it holds the lock, and the buffers take 4 MB.
    let mb_s = found.transactions as f64 / 16.0 / (found.elapsed_ns as f64 / 1e9);
    assert!((150.0..=260.0).contains(&mb_s), "{mb_s} MB/s");
    assert!(found.waits[Wait::WalLock as usize].count > 0);
}

#[test]
fn a_sync_of_several_requests_takes_the_device_once_and_what_serves_it_each_time() {
    let parameters = PostgresParameters { sync_requests: 2, sync_served_us: 60.0, ..bare(2, 100.0, 200.0) };
    let found = outcome(&parameters, constant(500.0), &load(1, 2_000, vec![step(None, true)]));
    near(rate(&found), 1e6 / (100.0 + 60.0 + 500.0), 0.01);
    assert_eq!(found.waits[Wait::WalSync as usize].count, found.flushes);
    near(found.server_cpu_ns as f64 / found.transactions as f64, 100e3, 0.01);
}

#[test]
fn sessions_that_change_one_row_take_turns() {
    let lock = Some(Lock { table: 0, rows: vec![1] });
    let steps = vec![step(lock, false), step(None, true)];
    let found = outcome(&bare(64, 50.0, 200.0), constant(400.0), &load(8, 5_000, steps));
    // Held from the first statement's end to the commit: 50 us of CPU and a flush.
    near(rate(&found), 1e6 / 450.0, 0.01);
    assert!(found.waits[Wait::Row as usize].count > 4_900);
}

#[test]
fn rows_that_are_many_or_popular_are_waited_for_accordingly() {
    let waits = |rows: Vec<u64>| {
        let steps = vec![step(Some(Lock { table: 0, rows }), false), step(None, true)];
        let found = outcome(&bare(64, 50.0, 200.0), constant(400.0), &load(8, 20_000, steps));
        found.waits[Wait::Row as usize].count as f64 / found.transactions as f64
    };
    let (few, many) = ((0..10).collect(), (0..1_000).collect());
    // Half of the draws are of one row.
    let skewed = (0..1_000).chain(std::iter::repeat_n(0, 1_000)).collect();
    let (few, many, skewed) = (waits(few), waits(many), waits(skewed));
    assert!(few > 10.0 * many && skewed > 5.0 * many, "{few} {many} {skewed}");
}

#[test]
fn all_who_wait_for_a_row_wake_up_at_its_release_and_all_but_one_wait_again() {
    // Eight sessions at one row: seven wait, all of them wake up at each release, six of them in vain.
    let lock = Some(Lock { table: 0, rows: vec![1] });
    let steps = vec![step(lock, false), step(None, true)];
    let found = outcome(&bare(64, 50.0, 200.0), constant(400.0), &load(8, 5_000, steps));
    let waits = found.waits[Wait::Row as usize].count as f64 / found.transactions as f64;
    assert!((5.5..7.5).contains(&waits), "{waits}");
}

#[test]
fn a_record_that_another_commit_flushed_is_no_commit_yet() {
    // The statement's record may be flushed by others; the commit's own record is not, so every commit waits.
    let steps = vec![step(None, false), step(None, true)];
    let found = outcome(&bare(64, 0.5, 200.0), constant(500.0), &load(16, 20_000, steps));
    near(rate(&found), 16.0 * 1e6 / 1_000.0, 0.02);
}

#[test]
fn a_flush_costs_cpu_time_for_each_kb_of_the_pages_that_it_writes() {
    let parameters = PostgresParameters { flush_us: 20.0, flush_us_per_kb: 2.0, ..bare(2, 100.0, 65_536.0 - 40.0) };
    let found = outcome(&parameters, constant(500.0), &load(1, 2_000, vec![step(None, true)]));
    near(rate(&found), 1e6 / (100.0 + 20.0 + 64.0 * 2.0 + 500.0), 0.01);
}

#[test]
fn an_idle_core_is_started_and_a_busy_one_switched_to() {
    let parameters = |cores| PostgresParameters { wake_us: 10.0, delay: constant(40.0), ..bare(cores, 100.0, 0.0) };
    let steps = || vec![step(None, true)];
    // Alone on two cores each wake-up starts the other one: two halves of the delay, the CPU to start beside the second.
    let alone = outcome(&parameters(2), constant(1.0), &load(1, 5_000, steps()));
    near(rate(&alone), 1e6 / 140.0, 0.02);
    near(alone.server_cpu_ns as f64 / alone.transactions as f64, 110e3, 0.01);
    // On one core client and server take turns.
    let one = outcome(&parameters(1), constant(1.0), &load(1, 5_000, steps()));
    near(rate(&one), 1e6 / 100.0, 0.02);
    // With more sessions than cores none is idle.
    let many = outcome(&parameters(2), constant(1.0), &load(8, 20_000, steps()));
    near(rate(&many), 2e6 / 100.0, 0.02);
    near(many.server_cpu_ns as f64 / many.transactions as f64, 100e3, 0.01);
}

#[test]
fn a_server_fetches_its_data_again_where_others_ran_since() {
    let steps = || vec![step(None, true)];
    let cpu = |sessions| {
        let parameters = PostgresParameters { cold_us: 20.0, client_us: 10.0, ..bare(1, 100.0, 0.0) };
        let found = outcome(&parameters, constant(1.0), &load(sessions, 10_000, steps()));
        found.server_cpu_ns as f64 / found.transactions as f64
    };
    // A session and its client alternate; with eight sessions seven others come between.
    near(cpu(1), 100e3, 0.01);
    near(cpu(8), 120e3, 0.01);
}

#[test]
fn processors_are_the_limit_of_sessions_that_only_compute() {
    for (cores, sessions) in [(1, 8), (2, 8), (4, 2)] {
        let parameters = PostgresParameters { client_us: 20.0, ..bare(cores, 80.0, 0.0) };
        let found = outcome(&parameters, constant(1.0), &load(sessions, 20_000, vec![step(None, true)]));
        near(rate(&found), (cores as f64).min(f64::from(sessions)) * 1e6 / 100.0, 0.01);
    }
}

#[test]
fn other_programs_get_their_share_where_cores_are_short_and_what_is_idle_elsewhere() {
    // Four sessions that always compute, beside four programs that do: half of the cores each, since who sleeps for a
    // moment after each statement preempts when it wakes up.
    let busy = PostgresParameters { others: 4.0, ..bare(2, 100.0, 0.0) };
    let found = rate(&outcome(&busy, constant(1.0), &load(4, 40_000, vec![step(None, true)])));
    assert!((0.75e4..1.01e4).contains(&found), "{found}");
    // A session that mostly waits for its flush waits for the rest of another's slice when it wakes up, then comes first.
    let waiting = PostgresParameters { others: 4.0, ..bare(2, 20.0, 200.0) };
    let found = rate(&outcome(&waiting, constant(980.0), &load(1, 4_000, vec![step(None, true)])));
    assert!((1e6 / (1_000.0 + 1_400.0)..1e6 / 1_000.0).contains(&found), "{found}");
    // A part of a program takes a part of a core, and only if it finds it idle for long enough.
    let part = PostgresParameters { others: 0.5, ..bare(1, 100.0, 0.0) };
    let found = rate(&outcome(&part, constant(1.0), &load(1, 100_000, vec![step(None, true)])));
    assert!((0.5e4..0.8e4).contains(&found), "{found}");
}

#[test]
fn thinking_sessions_on_one_core_follow_mean_value_analysis() {
    // Exponential demands are a lognormal's neighbours only in the mean: the bound of the throughput is compared.
    let think = Times::Exponential { mean_us: 2_000.0 };
    let parameters = PostgresParameters { think, ..bare(1, 200.0, 0.0) };
    for sessions in [1, 5, 40] {
        let found = outcome(&parameters, constant(1.0), &load(sessions, 40_000, vec![step(None, true)]));
        let (rate_per_us, _) = mva(&[200.0], 2_000.0, sessions);
        near(rate(&found), rate_per_us * 1e6, 0.06);
        near(found.stations[0].utilisation, rate(&found) * 200e-6, 0.02);
    }
}

#[test]
fn the_same_seed_gives_the_same_outcome() {
    let lock = || Some(Lock { table: 0, rows: vec![1, 1, 2, 3] });
    let twice = || {
        let parameters =
            PostgresParameters { delay: Times::Exponential { mean_us: 40.0 }, ..PostgresParameters::default() };
        let statements = vec![Statement { user_us: 30.0, system_us: 20.0, wal_bytes: 300.0, ..Statement::default() }];
        let parameters = PostgresParameters { statements, ..parameters };
        outcome(
            &parameters,
            Times::Exponential { mean_us: 200.0 },
            &load(9, 3_000, vec![step(lock(), false), step(None, true)]),
        )
    };
    assert_eq!(twice(), twice());
}

#[test]
fn a_load_that_cannot_be_one_is_refused() {
    let good = || load(1, 10, vec![step(None, true)]);
    let refused = |load: &Load| load.check(1).unwrap_err();
    assert!(refused(&Load { sessions: 0, ..good() }).contains("sessions"));
    assert!(refused(&Load { limit_s: 0.0, ..good() }).contains("limit"));
    assert!(refused(&Load { scripts: vec![], ..good() }).contains("a script"));
    assert!(refused(&load(1, 10, vec![])).contains("one statement"));
    assert!(refused(&load(1, 10, vec![Step { statement: 1, ..step(None, true) }])).contains("statement 1 of 1"));
    let lock = Some(Lock { table: 0, rows: vec![] });
    assert!(refused(&load(1, 10, vec![step(lock, true)])).contains("a lock"));
}

#[test]
fn sessions_that_wait_for_a_row_have_it_in_the_order_in_which_they_came() {
    // Without an order the median of a few lucky ones would be far below the mean.
    let lock = Some(Lock { table: 0, rows: vec![1] });
    let steps = vec![step(lock, false), step(None, true)];
    let mut times_ns = outcome(&bare(64, 50.0, 200.0), constant(400.0), &load(8, 5_000, steps)).latencies_ns;
    times_ns.sort_unstable();
    let at = |share: f64| times_ns[(times_ns.len() as f64 * share) as usize] as f64;
    assert!(at(0.9) < 1.5 * at(0.5), "{} {}", at(0.5), at(0.9));
}
