//! Tables moved between servers (PostgreSQL, MariaDB) and files, exactly.
//!
//! ```text
//!   chunk of a table ── COPY (SELECT …) TO STDOUT (FORMAT binary) ──> Cutter ──> Columns ──> Sink
//!                                                                     rows       Arrow       Parquet, aside, synced,
//!                                                                                            renamed
//! ```
//!
//! [`Job`] has N workers with a session each, all in one exported snapshot; whoever is free takes the next chunk. What
//! is finished comes out of [`Job::next`] one by one, so that whoever keeps the ledger can write it down. Nothing here
//! decides what a chunk is, how a column is read or what happens after a failure: that is `dbdyno.move` in Python.
//!
//! The way in is the same with the arrow turned: a file, its batches, COPY's bytes, `COPY … FROM STDIN`.
//!
//! From server to server rows are handed on as they come (`relay.rs`); one file for all rows, Arrow IPC or CSV, is
//! written by the workers in turn (`single.rs`).
//!
//! MariaDB's rows are written over into COPY's form as they come (`mariadb.rs`), so that there is one form to read;
//! into a MariaDB they go as lines of `LOAD DATA LOCAL` (`lines.rs`). [`session`] is a session of either engine.
//!
//! A value that its Arrow type cannot hold (NaN in a decimal, an infinite date) is never bent: the job ends with
//! [`MoveError::Unrepresentable`], and names the column that must travel as text.
//!
//! # Limits
//!
//! A row is in memory as a whole, once as it came and once decoded. Text must be UTF-8.

#![allow(clippy::doc_markdown)] // names of products

mod ahead;
mod aside;
mod column;
mod decimal;
mod encode;
mod encoder;
mod error;
mod field;
mod hash;
mod job;
mod lines;
mod mariadb;
mod parts;
mod read_back;
pub mod rehearse;
mod relay;
mod rows;
mod session;
mod single;
mod sink;
mod spec;
mod worker;

pub use ahead::Ahead;
pub use column::Columns;
pub use error::{Failure, MoveError};
pub use hash::{Tally, hash_batch};
pub use job::{Job, Next};
pub use read_back::{FileColumn, describe, groups, read_back};
pub use rows::Cutter;
pub use sink::Sink;
pub use spec::{ChunkDone, ChunkSpec, ColumnSpec, JobSpec, Kind, PartDone, Refused, TableSpec};
