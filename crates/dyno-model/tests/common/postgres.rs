//! Loads of a modelled `PostgreSQL` for tests, and parameters without costs that a closed form leaves out.

use dyno_model::postgres::load::Lock;
use dyno_model::postgres::{Load, Outcome, PostgresParameters, Script, Statement, Step};

use super::instance::constant;

/// Returns a server whose clients cost nothing, and whose log writer does not flush by itself: its flushes would be
/// shared by commits.
pub fn quiet(statement: Statement) -> PostgresParameters {
    PostgresParameters {
        client_us: 0.0,
        client_threads: 4_096,
        cpu_sigma: 0.0,
        delay: constant(0.0),
        wal_writer_delay_ms: 10_000.0,
        statements: vec![statement],
        ..PostgresParameters::default()
    }
}

pub fn step(lock: Option<Lock>, commits: bool) -> Step {
    Step { statement: 0, wal_bytes: vec![], lock, commits, pause_us: 0.0 }
}

pub fn load(sessions: u32, transactions: u64, steps: Vec<Step>) -> Load {
    let scripts = vec![Script { weight: 1, steps }];
    Load { sessions, transactions, warmup: transactions / 20, limit_s: 1e4, scripts }
}

pub fn rate(outcome: &Outcome) -> f64 {
    outcome.transactions as f64 / (outcome.elapsed_ns as f64 / 1e9)
}

pub fn near(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() < share, "{found} instead of {expected}");
}
