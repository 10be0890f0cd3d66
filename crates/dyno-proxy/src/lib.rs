//! A proxy that times every message between clients and PostgreSQL; it needs no rights on the server.
//!
//! ```text
//! client <-> side.rs <- pair.rs -> side.rs <-> server      bytes, as they come; what cannot be sent yet stops the reading
//!                          |
//!                     framing.rs -> follow.rs              messages, matched with their answers: calls and think time
//!                                      |
//!                                   the tables of a trace  (dyno_evidence::trace_store), as `dyno-record` writes them
//! ```
//!
//! [`job`] runs it on a thread of its own with one event loop; [`opening`] is what comes before a session (TLS, cancel
//! requests, the first packet), [`dyno_evidence::normal`] takes the literals out of a text, [`capture`] keeps messages
//! with their values where that is asked for, and [`replay`] runs them again.
//!
//! Limits: version 3 of the protocol. Passwords pass through unread. Answers that arrive together (a client that sends
//! parse, bind and execute at once) have one time, which belongs to the execution.

#![allow(clippy::doc_markdown)] // names of products

pub mod capture;
mod error;
pub mod follow;
pub mod framing;
pub mod job;
pub mod opening;
mod pair;
pub mod replay;
mod request;
pub mod shared;
mod side;
mod spin;
mod statement;
mod tls;

pub use error::ProxyError;
pub use request::Request;

/// The clock of all evidence: monotonic, ns.
pub fn now_ns() -> u64 {
    nanoseconds(rustix::time::ClockId::Monotonic)
}

fn nanoseconds(clock: rustix::time::ClockId) -> u64 {
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// What the wall's clock is ahead of the monotonic one.
pub fn wall_offset_ns() -> i64 {
    nanoseconds(rustix::time::ClockId::Realtime) as i64 - now_ns() as i64
}
