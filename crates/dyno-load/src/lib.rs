//! Load generator: scripts in pgbench's language on PostgreSQL and MariaDB, one row per operation.
//!
//! Loads are closed loops or open loops.
//!
//! # How it stays out of the way
//!
//! If there are few sessions, each has its own thread; if there are many, they share one thread per core, which waits
//! for all of its sessions at once. Each round trip takes one write and one read. Messages are encoded once, values are
//! written into a reused buffer, and incoming bytes are parsed in place. The clock is read once per command, and rows
//! go into a buffer that only this session writes. An operation takes no lock and allocates nothing, and nothing is
//! aggregated during the run.
//!
//! # How time is measured
//!
//! `started_ns` counts from the UNIX epoch, on a clock that never goes back. In the closed loop a transaction begins
//! when the previous one ended. In the open loop arrivals form a Poisson process in *intended* time; whichever session
//! is free takes the next arrival. The response time counts from the intended start, so a stall of the engine cannot
//! stay hidden.
//!
//! # Blocks, slices, arms
//!
//! [`Load::run`] runs one block: a list of slices, each of which runs one arm. The connections of all arms stay open,
//! and a thread serves the same sessions of every arm. Between slices all threads meet at a barrier and start
//! together.
//!
//! # Limits
//!
//! * PostgreSQL's results are read as text only. MariaDB has no pipelines and no `\redo`.
//! * `COPY FROM STDIN` and `LOAD DATA LOCAL` read the variable `stdin`, the same bytes each time; without this variable
//!   they are refused.
//! * `\redo` reads the log position of the whole engine, so it includes redo of other sessions; it starts again at zero
//!   in each slice.
//! * While one session of a thread reconnects, the other sessions of the thread wait.
//! * Client certificates and GSSAPI are not supported.
//! * A row that a script keeps can have at most 1 MiB.

#![allow(clippy::doc_markdown)] // names of products and settings

mod batch;
mod block;
mod call;
mod clock;
mod connection;
mod dialler;
mod draw;
mod error;
mod gate;
mod line;
mod link;
mod mysql;
mod pipeline;
#[cfg(target_os = "linux")]
pub mod placement;
mod plan;
/// Where the scheduler puts a process that wakes up; not measured on this operating system, where threads are not bound
/// to cores.
#[cfg(not(target_os = "linux"))]
pub mod placement {
    /// Returns `None`, since placement is not measured on this operating system.
    #[must_use]
    pub fn placement(_trials: u32) -> Option<(f64, f64, f64)> {
        None
    }
}
pub mod probe;
mod reactor;
mod record;
#[doc(hidden)]
pub mod rehearse;
mod reply;
mod require_auth;
mod run;
mod runner;
mod schedule;
mod session_state;
#[cfg(target_os = "linux")]
pub mod siblings;
/// Slowdown of a processor while all others compute; not measured on this operating system, where threads are not bound
/// to cores.
#[cfg(not(target_os = "linux"))]
pub mod siblings {
    /// Returns `None`, since the slowdown is not measured on this operating system.
    #[must_use]
    pub fn busy_ratio(_steps: u32) -> Option<f64> {
        None
    }
}
mod slice;
mod spec;
mod steps;
mod store;
mod supervise;
mod tally;
mod transaction;
#[cfg(target_os = "linux")]
pub mod wake;
/// The cost of waking a thread; not measured on this operating system, where threads are not bound to cores.
#[cfg(not(target_os = "linux"))]
pub mod wake {
    /// Returns `None`, since the cost is not measured on this operating system.
    #[must_use]
    pub fn wake_cost_ns(_messages: u32) -> Option<u64> {
        None
    }
}
mod wire;
mod worker;

pub use connection::{
    ChannelBinding, ConnectionSpec, Engine, Liveness, Password, RequireAuth, SslMode, SslNegotiation, TlsVersion,
};
pub use draw::{Drawer, DrawnScript, DrawnStatement, DrawnTransaction, DrawnValue};
pub use error::LoadError;
pub use line::{Lateness, Line, LineSpec};
pub use mysql::auth::signed as mariadb_signed;
pub use mysql::rows::RowSession;
pub use mysql::values::{Point, Span, WireRow, WireValue};
pub use mysql::{KnownError, known_errors};
pub use run::Load;
pub use slice::{Length, Slice};
pub use spec::{ArmSpec, ClockBase, LoadSpec, Protocol, ScriptSpec};
pub use tally::{ArmReport, BlockReport, LineReport};
pub use wire::copy::{CopySession, LONG_BYTES};
pub use wire::raw::RawSession;
pub use wire::tls::config as tls_config;
pub use wire::{ServerError, WireError};
