//! Tests reads and writes of a modelled `PostgreSQL`'s files against closed forms: counts of I/Os, the queue at the data
//! device, its sharing with the log, and spills.
#![allow(clippy::unwrap_used, missing_docs)]

use std::rc::Rc;

use dyno_model::device::Device;
use dyno_model::formula::mva;
use dyno_model::kernel::Simulation;
use dyno_model::kernel::sample::Times;
use dyno_model::machine::Machine;
use dyno_model::postgres::cached::Relation;
use dyno_model::postgres::counts::Counts;
use dyno_model::postgres::{Devices, Load, Outcome, PostgresParameters, Statement, Wait, run_on};

use crate::common;
use crate::common::instance::{constant, station};
use crate::common::postgres::{near, quiet, rate, step};

fn counts(given: &[(u64, f64)]) -> Counts {
    Counts { count: given.iter().map(|own| own.0).collect(), share: given.iter().map(|own| own.1).collect() }
}

/// Returns a server with a core for each session, whose statement takes `cpu_us` of CPU time and nothing else.
fn bare(cpu_us: f64, statement: Statement) -> PostgresParameters {
    PostgresParameters {
        cores: 64,
        flush_us: 0.0,
        latch_us: 0.0,
        read_us: 0.0,
        write_us: 0.0,
        temp_us: 0.0,
        ..quiet(Statement { user_us: cpu_us, ..statement })
    }
}

fn reading(given: &[(u64, f64)]) -> Statement {
    Statement { reads: counts(given), ..Statement::default() }
}

fn load(sessions: u32, transactions: u64) -> Load {
    common::postgres::load(sessions, transactions, vec![step(None, true)])
}

/// Runs a load with the log on a device with write times of 1 ms, and the data files on a device with this many servers
/// and these read and write times.
fn outcome(parameters: &PostgresParameters, (servers, read, write): (u64, Times, Times), load: &Load) -> Outcome {
    let simulation = Simulation::new(2_026);
    let log: Rc<dyn Device> = station(&simulation, "log", 1, (constant(1.0), constant(1_000.0)));
    let data: Rc<dyn Device> = station(&simulation, "data", servers, (read, write));
    parameters.check().unwrap();
    load.check(parameters.statements.len()).unwrap();
    run_on(&simulation, parameters, &Devices { log, temp: Rc::clone(&data), data }, load).unwrap()
}

fn waits(outcome: &Outcome, wait: Wait) -> f64 {
    let name = wait.name().1;
    outcome.waits.iter().find(|own| own.event == name).map_or(0.0, |own| own.count as f64)
}

#[test]
fn a_session_waits_for_each_block_that_it_reads() {
    let parameters = PostgresParameters { read_us: 10.0, ..bare(100.0, reading(&[(0, 0.25), (2, 0.75)])) };
    let found = outcome(&parameters, (1, constant(500.0), constant(1.0)), &load(1, 20_000));
    near(rate(&found), 1e6 / (100.0 + 1.5 * 510.0), 0.01);
    near(waits(&found, Wait::DataRead) / found.transactions as f64, 1.5, 0.01);
    let fast = found.latencies_ns.iter().filter(|&&ns| ns == 100_000).count() as f64;
    near(fast / found.transactions as f64, 0.25, 0.05);
    let data = found.data.unwrap();
    near(data.utilisation, rate_of(&found.latencies_ns) * 1.5 * 500e-6, 0.01);
}

fn rate_of(latencies_ns: &[u64]) -> f64 {
    latencies_ns.len() as f64 * 1e9 / latencies_ns.iter().sum::<u64>() as f64
}

#[test]
fn sessions_at_a_device_of_one_server_follow_mean_value_analysis() {
    for sessions in [1, 4, 16] {
        let think = Times::Exponential { mean_us: 2_000.0 };
        let parameters = PostgresParameters { think, ..bare(0.001, reading(&[(1, 1.0)])) };
        let read = Times::Exponential { mean_us: 400.0 };
        let found = outcome(&parameters, (1, read, constant(1.0)), &load(sessions, 60_000));
        near(rate(&found), mva(&[400.0], 2_000.0, sessions).0 * 1e6, 0.015);
    }
}

/// Returns the throughput of sessions that think and then need one of several servers, with exponential times: the
/// machine repairman model (Kleinrock, Queueing Systems I, 3.9).
fn repairman(sessions: u32, servers: u32, think: f64, service: f64) -> f64 {
    let mut chance = vec![1.0];
    for waiting in 1..=sessions {
        let arrivals = f64::from(sessions - waiting + 1) / think;
        let departures = f64::from(waiting.min(servers)) / service;
        chance.push(chance[waiting as usize - 1] * arrivals / departures);
    }
    let all: f64 = chance.iter().sum();
    (1..=sessions).map(|n| chance[n as usize] / all * f64::from(n.min(servers)) / service).sum()
}

#[test]
fn sessions_at_a_device_of_several_servers_follow_the_machine_repairman() {
    for (sessions, servers) in [(4, 2), (12, 3), (32, 8)] {
        let think = Times::Exponential { mean_us: 1_000.0 };
        let parameters = PostgresParameters { think, ..bare(0.001, reading(&[(1, 1.0)])) };
        let read = Times::Exponential { mean_us: 400.0 };
        let found = outcome(&parameters, (u64::from(servers), read, constant(1.0)), &load(sessions, 80_000));
        near(rate(&found), repairman(sessions, servers, 1_000.0, 400.0) * 1e6, 0.015);
    }
}

#[test]
fn fewer_reads_are_a_binomial_share_of_those_counted_and_more_are_one_of_the_other_references() {
    let simulation = Simulation::new(3);
    let mut dice = simulation.sim().stream("counts");
    let mut moments = |own: &Counts, mean: f64, references: u64| {
        let drawn: Vec<f64> = (0..100_000).map(|_| own.draw(mean, references, &mut dice) as f64).collect();
        let average = drawn.iter().sum::<f64>() / drawn.len() as f64;
        (average, drawn.iter().map(|own| (own - average).powi(2)).sum::<f64>() / drawn.len() as f64)
    };
    let (average, variance) = moments(&counts(&[(10, 1.0)]), 4.0, 10);
    near(average, 4.0, 0.01);
    near(variance, 10.0 * 0.4 * 0.6, 0.03);
    // Of two references one was missed always, now half of the others are too.
    let (average, variance) = moments(&counts(&[(1, 1.0)]), 1.5, 2);
    near(average, 1.5, 0.01);
    near(variance, 0.25, 0.01);
    let (average, _) = moments(&Counts::default(), 0.3, 1);
    near(average, 0.3, 0.03);
    // Without known references nothing is added.
    assert_eq!(moments(&counts(&[(3, 1.0)]), 5.0, 0), (3.0, 0.0));
}

#[test]
fn larger_buffers_save_the_reads_that_are_expected() {
    let relation = Relation { name: "t".into(), pages: vec![12_800], share: vec![1.0] };
    let statement = Statement { touches: vec![0], ..reading(&[(0, 0.2), (1, 0.8)]) };
    let reads = |shared_buffers_mb| {
        let parameters = PostgresParameters {
            shared_buffers_mb,
            calibrated_buffers_mb: 20.0,
            relations: vec![relation.clone()],
            ..bare(10.0, statement.clone())
        };
        let found = outcome(&parameters, (1, constant(100.0), constant(1.0)), &load(1, 50_000));
        waits(&found, Wait::DataRead) / found.transactions as f64
    };
    // Of 100 MB: what is not in the buffers is read.
    for (buffers_mb, expected) in [(20.0, 0.8), (50.0, 0.5), (10.0, 0.9), (0.0, 0.8)] {
        near(reads(buffers_mb), expected, 0.02);
    }
    assert!(reads(100.0).abs() < 1e-9);
}

#[test]
fn a_spill_writes_its_blocks_and_reads_them_again() {
    let statement =
        Statement { temp_writes: counts(&[(40, 1.0)]), temp_reads: counts(&[(60, 1.0)]), ..Statement::default() };
    let parameters = PostgresParameters { temp_us: 5.0, ..bare(1_000.0, statement) };
    let found = outcome(&parameters, (1, constant(100.0), constant(300.0)), &load(1, 500));
    near(rate(&found), 1e6 / (1_000.0 + 100.0 * 5.0 + 60.0 * 100.0 + 40.0 * 300.0), 0.005);
    near(waits(&found, Wait::TempWrite), 40.0 * 500.0, 0.01);
    near(waits(&found, Wait::TempRead), 60.0 * 500.0, 0.01);
}

#[test]
fn what_the_kernels_cache_answers_takes_cpu_time_alone() {
    let statement = Statement { temp_writes: counts(&[(4, 1.0)]), ..reading(&[(1, 1.0)]) };
    let (cached_ratio, temp_cached_ratio) = (0.75, 0.5);
    let parameters =
        PostgresParameters { read_us: 10.0, temp_us: 10.0, cached_ratio, temp_cached_ratio, ..bare(100.0, statement) };
    let found = outcome(&parameters, (1, constant(400.0), constant(200.0)), &load(1, 20_000));
    near(rate(&found), 1e6 / (100.0 + 5.0 * 10.0 + 0.25 * 400.0 + 2.0 * 200.0), 0.01);
    near(waits(&found, Wait::DataRead) / found.transactions as f64, 0.25, 0.05);
    // Beside a program that always wants the core, who keeps it does not wait for it.
    let waited = |cached_ratio| {
        let own = PostgresParameters { cached_ratio, others: 1.0, ..bare(100.0, reading(&[(1, 1.0)])) };
        let own = PostgresParameters { cores: 1, ..own };
        waits(&outcome(&own, (1, constant(1.0), constant(1.0)), &load(1, 2_000)), Wait::DataRead)
    };
    assert!(waited(1.0) < 1e-9 && waited(0.0) > 1_900.0, "{} {}", waited(1.0), waited(0.0));
}

#[test]
fn what_a_read_takes_beyond_its_device_passes_whoever_else_reads() {
    for (data_factor, expected) in [(1.0, 600.0), (2.0, 700.0)] {
        let parameters =
            PostgresParameters { data_late: constant(100.0), data_factor, ..bare(0.001, reading(&[(1, 1.0)])) };
        let found = outcome(&parameters, (1, constant(500.0), constant(1.0)), &load(1, 5_000));
        near(rate(&found), 1e6 / expected, 0.005);
        // Two sessions: one's lateness passes while the device serves the other.
        let found = outcome(&parameters, (1, constant(500.0), constant(1.0)), &load(2, 5_000));
        near(rate(&found), 1e6 / 500.0, 0.005);
    }
}

#[test]
fn a_session_writes_changed_blocks_to_make_room() {
    let statement = Statement { writes: counts(&[(0, 0.5), (1, 0.5)]), ..Statement::default() };
    let parameters = PostgresParameters { write_us: 20.0, ..bare(100.0, statement) };
    let found = outcome(&parameters, (1, constant(1.0), constant(200.0)), &load(1, 20_000));
    near(rate(&found), 1e6 / (100.0 + 0.5 * 220.0), 0.02);
}

const SHARED: &str = r#"
title = "one device"
[postgres]
cores = 64
cpu_sigma = 0.0
flush_us = 0.0
read_us = 0.0
client_us = 0.0
delay = { kind = "constant", us = 0.0 }
statements = [{ user_us = 100.0, wal_bytes = 100.0, reads = { count = [1], share = [1.0] } }]
[devices.log]
kind = "empirical"
capacity_gb = 100.0
servers = 1
regimes = [{ read = { kind = "constant", us = 200.0 }, write = { kind = "constant", us = 500.0 } }]
[devices.data]
kind = "empirical"
capacity_gb = 100.0
servers = 1
regimes = [{ read = { kind = "constant", us = 200.0 }, write = { kind = "constant", us = 500.0 } }]
[storage]
redo = "log"
data = "log"
"#;

/// Returns the throughput of the shared machine with these settings and this many sessions.
fn rate_of_machine(settings: &[(&str, &str)], sessions: u32) -> f64 {
    let mut machine = Machine::parse(SHARED).unwrap();
    machine.set_all(settings.iter().copied()).unwrap();
    let parameters = machine.postgres().unwrap().unwrap();
    let simulation = Simulation::new(5);
    let devices = machine.postgres_devices(simulation.sim()).unwrap();
    rate(&run_on(&simulation, &parameters, &devices, &load(sessions, 4_000)).unwrap())
}

#[test]
fn log_and_data_on_one_device_queue_behind_each_other() {
    // One session reads, then flushes.
    near(rate_of_machine(&[], 1), 1e6 / 800.0, 0.01);
    // Sixteen on one device: each transaction's read takes the device, and a flush is shared.
    let (one, two) = (rate_of_machine(&[], 16), rate_of_machine(&[("storage.data", "data")], 16));
    assert!(one < 1e6 / 200.0 && two > 1.1 * one, "{one} {two}");
    near(two, 1e6 / 200.0, 0.02);
}

#[test]
fn each_factor_stretches_its_own_times_on_one_device_and_on_two() {
    for data in ["log", "data"] {
        let own = ("storage.data", data);
        near(rate_of_machine(&[own, ("postgres.data_factor", "2.0")], 1), 1e6 / 1_000.0, 0.01);
        near(rate_of_machine(&[own, ("postgres.device_factor", "2.0")], 1), 1e6 / 1_300.0, 0.01);
    }
}

#[test]
fn counts_and_relations_that_do_not_fit_are_refused() {
    let refused = |statement: Statement, relations: Vec<Relation>| {
        PostgresParameters { relations, ..bare(1.0, statement) }.check().unwrap_err()
    };
    let uneven = Counts { count: vec![1, 2], share: vec![1.0] };
    assert!(refused(Statement { reads: uneven, ..Statement::default() }, vec![]).contains("share"));
    assert!(refused(reading(&[(1, 0.0)]), vec![]).contains("above 0"));
    assert!(refused(Statement { touches: vec![0], ..Statement::default() }, vec![]).contains("relation 0 of 0"));
    let empty = Relation { name: "t".into(), ..Relation::default() };
    assert!(refused(Statement::default(), vec![empty]).contains("\"t\""));
}
