//! PostgreSQL observed from its clients' side: a proxy that times every message, without any privilege.
//!
//! ```text
//! client <-> side.rs <- pair/   -> side.rs <-> server      bytes, as they come; unsent bytes stop the reading
//!                          |
//!                     framing.rs -> follow/                messages, matched with their answers: calls and think time
//!                                      |
//!                                   the tables of a trace  (dyno_evidence::trace_store), as `dyno-record` writes them
//! ```
//!
//! [`job`] runs it with one event loop on its own thread. [`opening`] parses what precedes a session (TLS, cancel
//! requests, the first packet), [`dyno_evidence::normal`] removes the literals from a text, [`capture`] keeps
//! messages with their values on request, and [`replay`] runs them again. [`server_log`] makes the same capture from the
//! server's logs.
//!
//! Limits: version 3 of the protocol. Passwords pass through without being read. Answers that arrive together (if a
//! client sends parse, bind and execute at once) have the same time, which is attributed to the execution.

#![allow(clippy::doc_markdown)] // names of products

pub mod capture;
pub mod digest;
mod error;
pub mod follow;
pub mod framing;
pub mod job;
pub mod opening;
mod pair;
pub mod replay;
mod request;
pub mod server_log;
pub mod shared;
mod side;
mod spin;
mod statement;
mod tls;

pub use error::ProxyError;
pub use request::Request;

/// Returns the time by the clock of all evidence, which is monotonic [ns].
pub fn now_ns() -> u64 {
    nanoseconds(rustix::time::ClockId::Monotonic)
}

fn nanoseconds(clock: rustix::time::ClockId) -> u64 {
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns the wall clock minus the monotonic clock [ns].
pub fn wall_offset_ns() -> i64 {
    nanoseconds(rustix::time::ClockId::Realtime) as i64 - now_ns() as i64
}
