//! Tests the processors of a modelled `PostgreSQL`, hyperthreads and wake-ups, against closed forms and counts.
#![allow(clippy::unwrap_used, missing_docs)]

use std::rc::Rc;

use dyno_model::device::Device;
use dyno_model::kernel::Simulation;
use dyno_model::kernel::sample::Times;
use dyno_model::postgres::{Outcome, PostgresParameters, Statement, run};

use crate::common::instance::{constant, station};
use crate::common::postgres::{load, near, quiet, rate, step};

const SERVICE_US: f64 = 100.0;

/// Returns a server that only computes, on two processors.
fn computing(factor: f64, think: Times) -> PostgresParameters {
    let mut parameters =
        PostgresParameters { cores: 2, think, ..quiet(Statement { user_us: SERVICE_US, ..Statement::default() }) };
    parameters.scheduler.sibling_factor = factor;
    // A process takes an idle processor if there is one.
    parameters.scheduler.search_by_utilisation = false;
    parameters
}

fn outcome(parameters: &PostgresParameters, sessions: u32, transactions: u64) -> Outcome {
    seeded(2_026, parameters, sessions, transactions)
}

fn seeded(seed: u64, parameters: &PostgresParameters, sessions: u32, transactions: u64) -> Outcome {
    let simulation = Simulation::new(seed);
    let device: Rc<dyn Device> = station(&simulation, "log", 1, (constant(1.0), constant(1.0)));
    run(&simulation, parameters, &device, &load(sessions, transactions, vec![step(None, false)])).unwrap()
}

#[test]
fn one_session_never_meets_a_sibling() {
    let found = outcome(&computing(1.5, constant(0.0)), 1, 2_000);
    near(rate(&found), 1e6 / SERVICE_US, 1e-3);
}

#[test]
fn two_sessions_that_always_compute_are_slower_by_the_factor() {
    for factor in [1.0, 1.3, 2.0] {
        let found = outcome(&computing(factor, constant(0.0)), 2, 4_000);
        near(rate(&found), 2e6 / (SERVICE_US * factor), 2e-3);
        near(found.server_cpu_ns as f64 / found.transactions as f64, SERVICE_US * factor * 1e3, 2e-3);
    }
}

#[test]
fn two_sessions_that_think_follow_the_birth_and_death_chain() {
    // A processor shared as it is here does not depend on the distribution of the service (Baskett et al., JACM 1975).
    for (factor, think_us) in [(1.0, 100.0), (1.5, 100.0), (2.0, 50.0), (1.4, 400.0)] {
        let found = outcome(&computing(factor, Times::Exponential { mean_us: think_us }), 2, 60_000);
        let (birth, death) = (1.0 / think_us, 1.0 / SERVICE_US);
        let one = 2.0 * birth / death;
        let two = one * birth * factor / (2.0 * death);
        let expected = (one * death + two * 2.0 * death / factor) / (1.0 + one + two) * 1e6;
        near(rate(&found), expected, 0.01);
    }
}

#[test]
fn what_is_computed_after_a_message_counts_on_one_core_and_not_over_two() {
    let (client_us, tail_us) = (20.0, 4.0);
    for (cores, expected_us) in [(1, SERVICE_US + client_us), (2, SERVICE_US + client_us - 2.0 * tail_us)] {
        let mut parameters = computing(1.0, constant(0.0));
        (parameters.cores, parameters.client_us, parameters.tail_us) = (cores, client_us, tail_us);
        let found = outcome(&parameters, 1, 4_000);
        near(rate(&found), 1e6 / expected_us, 2e-3);
        let cpu_ns = (found.server_cpu_ns + found.client_cpu_ns) as f64 / found.transactions as f64;
        near(cpu_ns, (SERVICE_US + client_us) * 1e3, 2e-3);
    }
}

#[test]
fn client_and_server_pay_for_the_start_of_an_idle_core_while_it_starts() {
    let mut parameters = computing(1.0, constant(0.0));
    (parameters.client_us, parameters.client_wake_us, parameters.wake_us) = (20.0, 15.0, 10.0);
    parameters.delay = constant(60.0);
    let found = outcome(&parameters, 1, 4_000);
    near(rate(&found), 1e6 / (SERVICE_US + 20.0 + 60.0), 2e-3);
    near(found.client_cpu_ns as f64 / found.transactions as f64, 35e3, 2e-3);
    near(found.server_cpu_ns as f64 / found.transactions as f64, (SERVICE_US + 10.0) * 1e3, 2e-3);
}

#[test]
fn where_no_idle_processor_is_searched_processes_stay_until_they_are_balanced() {
    let mut parameters = computing(1.0, constant(0.0));
    (parameters.scheduler.pulls, parameters.scheduler.searches, parameters.scheduler.searches_late) = (0.0, 0.0, 0.0);
    (parameters.scheduler.idle_balance_ms, parameters.scheduler.balance_ms) = (3e6, 3e6);
    // Two processes that last ran on any of two processors share one in half of the runs.
    let shared = (0..60).filter(|&seed| rate(&seeded(seed, &parameters, 2, 500)) < 1.5e6 / SERVICE_US).count();
    assert!((15..=45).contains(&shared), "{shared} of 60");
    parameters.scheduler.idle_balance_ms = 4.0;
    assert!((0..20).all(|seed| rate(&seeded(seed, &parameters, 2, 40_000)) > 1.9e6 / SERVICE_US));
}

#[test]
fn where_a_halted_processor_is_not_idle_a_process_joins_its_waker_after_a_long_pause() {
    // The client starts a processor for 50 us in each statement, unless client and server share one.
    let client_us = |think_us: f64, searches_late: f64, seed: u64| {
        let mut parameters = computing(1.0, constant(think_us));
        (parameters.client_us, parameters.client_wake_us) = (20.0, 50.0);
        parameters.scheduler.searches_late = searches_late;
        (parameters.scheduler.pulls, parameters.scheduler.searches) = (0.0, 0.0);
        let found = seeded(seed, &parameters, 1, 400);
        found.client_cpu_ns as f64 / found.transactions as f64 / 1e3
    };
    let apart = (0..8).filter(|&seed| (client_us(100.0, 0.0, seed) - 70.0).abs() < 0.1).count();
    assert!((1..8).contains(&apart), "{apart} of 8 begin on two processors, and stay there in short pauses");
    for seed in 0..8 {
        near(client_us(5_000.0, 0.0, seed), 20.0, 1e-3);
    }
    for seed in 0..8 {
        // A halted processor that counts as idle is started each time.
        near(client_us(5_000.0, 1.0, seed), 70.0, 1e-3);
    }
}

#[test]
fn a_server_on_an_idle_processor_loads_its_data_again_in_each_statement() {
    for seed in 0..8 {
        let mut parameters = computing(1.0, constant(100.0));
        (parameters.client_us, parameters.client_wake_us, parameters.cold_us) = (20.0, 50.0, 30.0);
        (parameters.scheduler.pulls, parameters.scheduler.searches) = (0.0, 0.0);
        let found = seeded(seed, &parameters, 1, 400);
        let each_us = |ns: u64| ns as f64 / found.transactions as f64 / 1e3;
        // The client starts a processor unless it shares the server's.
        let apart = each_us(found.client_cpu_ns) > 60.0;
        near(each_us(found.server_cpu_ns), if apart { SERVICE_US + 30.0 } else { SERVICE_US }, 2e-3);
    }
}

#[test]
fn the_time_between_turns_does_not_count() {
    let mut parameters = computing(1.0, constant(0.0));
    parameters.turn_ms = 5.0;
    let found = outcome(&parameters, 2, 20_000);
    near(rate(&found), 2e6 / SERVICE_US, 1e-2);
    assert!(found.latencies_ns.iter().all(|&ns| ns == 100_000));
}

/// Runs in turns of 30 ms, in which a sync takes 20 ms and the buffers hold the log of 128 transactions.
#[test]
fn each_turn_begins_with_empty_buffers_of_the_log() {
    let parameters = PostgresParameters {
        turn_ms: 30.0,
        synchronous_commit: false,
        wal_buffers_kb: 1_024.0,
        wal_writer_delay_ms: 1.0,
        statements: vec![Statement { user_us: 1.0, wal_bytes: 8_152.0, ..Statement::default() }],
        ..computing(1.0, constant(0.0))
    };
    let simulation = Simulation::new(2_026);
    let device: Rc<dyn Device> = station(&simulation, "log", 1, (constant(1.0), constant(20_000.0)));
    let found = run(&simulation, &parameters, &device, &load(1, 10_000, vec![step(None, true)])).unwrap();
    // A turn fills the buffers at its begin and after the first sync, and ends after the second one.
    near(rate(&found), 2.0 * 128.0 / 0.040, 0.03);
    let log = found.stations.iter().find(|station| station.name == "log").unwrap();
    near(log.utilisation, 1.0, 0.03);
}

#[test]
fn a_client_begins_each_turn_on_any_processor() {
    // The client starts a processor for 50 us in each statement, unless client and server share one.
    let client_us = |turn_ms: f64, halt_us: f64, seed: u64| {
        let mut parameters = computing(1.0, constant(0.0));
        (parameters.turn_ms, parameters.client_us, parameters.client_wake_us) = (turn_ms, 20.0, 50.0);
        (parameters.scheduler.pulls, parameters.scheduler.searches, parameters.scheduler.searches_late) =
            (0.0, 0.0, 0.0);
        (parameters.scheduler.idle_balance_ms, parameters.scheduler.balance_ms) = (3e6, 3e6);
        parameters.scheduler.halt_us = halt_us;
        let found = seeded(seed, &parameters, 1, 20_000);
        found.client_cpu_ns as f64 / found.transactions as f64 / 1e3
    };
    for seed in 0..4 {
        let one_turn = client_us(0.0, 1e6, seed);
        assert!([20.0, 70.0].iter().any(|us| (one_turn - us).abs() < 0.1), "{one_turn}");
        near(client_us(10.0, 1e6, seed), 45.0, 0.12);
        // After a rest the server's processor is halted, so that it joins its client.
        near(client_us(10.0, 500.0, seed), 20.0, 1e-3);
    }
}
