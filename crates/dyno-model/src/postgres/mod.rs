//! `PostgreSQL`: a server process for each session, one write-ahead log that any of them flushes, locks of rows.
//!
//! ```text
//!   client threads --request--> server process --row lock--> other sessions' ends
//!     share the cores             |   |
//!        ^                        |   '- insert into the log (a position)
//!        '------ reply -----------'
//!                                 '- commit: flush up to its position
//!                                      log lock free: takes it, waits commit_delay, writes, syncs, releases
//!                                      log lock held: sleeps until it is free, then looks again
//! ```
//!
//! **Group commit.** There is no log writer between a commit and the device. The process that finds the log lock free
//! flushes everything inserted so far; those that find it held sleep until it is released, and most of them then find
//! their records flushed. So one flush serves all commits that arrived during the one before.
//!
//! **Processors.** Clients and servers are processes on the same cores ([`crate::database::cpu`]): more sessions than cores queue.
//! A wake-up takes a drawn time besides (`delay`), half of it at the server and half at the client of a round trip.
//!
//! | module | what |
//! |---|---|
//! | [`parameters`] | parameters of a server, and costs of its statements |
//! | [`load`] | what sessions do: scripts of steps |
//! | `process` | a process on the cores, with its account |
//! | `wal` | the log and its lock |
//! | `rows` | locks of rows |
//! | `session` | a session and its client |
//! | [`run`] | a load on a machine, and what came of it |
//!
//! **Limits.** No buffer cache (all data are in memory), no checkpoints, no latches but the log's, no parallel workers.

pub mod load;
pub mod parameters;
mod process;
mod rows;
pub mod run;
mod session;
mod wal;

pub use load::{Load, Script, Step};
pub use parameters::{PostgresParameters, Statement};
pub use process::Wait;
pub use run::{Outcome, run};
