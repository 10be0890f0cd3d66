//! The load generator: scripts in pgbench's language on PostgreSQL and MariaDB, one row per operation.
//!
//! The loop is closed or open.
//!
//! # How it stays out of the way
//!
//! Few sessions have a thread each; many share a thread per core, which waits for all of its
//! sessions at once. Per round trip one write and one read; messages encoded once, values written
//! into a reused buffer; incoming bytes cut in place; one reading of the clock per command; rows
//! into a buffer of the session's own. No lock and no allocation per operation, and nothing is
//! aggregated while it runs.
//!
//! # How time is told
//!
//! `started_ns` counts from the UNIX epoch on a clock that never goes back. In the closed loop a
//! transaction begins when the one before it ended. In the open loop arrivals form a Poisson
//! process in *intended* time; whichever session is free takes the next one; response time counts
//! from the intended start, so an engine that stalls cannot hide its stall.
//!
//! # Blocks, slices, arms
//!
//! [`Load::run`] runs one block: a list of slices, each a turn of one arm. The connections of all
//! arms stay open; a thread serves the same sessions of every arm; between slices all threads meet
//! and start together.
//!
//! # Limits
//!
//! Results of PostgreSQL as text only. MariaDB: no pipelines, no `\redo`. `COPY FROM STDIN` and `LOAD DATA LOCAL` take the variable `stdin`, the
//! same bytes each time, and are refused without it. `\redo` looks at the log of the whole engine,
//! so other sessions' redo is in it, and it starts anew in each slice. While one session of a
//! thread connects again, the thread's others wait. Client certificates and GSSAPI are not
//! supported. A row that a script keeps has at most 1 MiB.

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
mod plan;
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
mod slice;
mod spec;
mod steps;
mod store;
mod supervise;
mod tally;
mod transaction;
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
