//! Lossless moving of tables between servers (PostgreSQL, MariaDB) and files.
//!
//! ```text
//!   chunk of a table ── COPY (SELECT …) TO STDOUT (FORMAT binary) ──> Cutter ──> Columns ──> Sink
//!                                                                     rows       Arrow       Parquet, aside, synced,
//!                                                                                            renamed
//! ```
//!
//! [`Job`] has N workers with one session each, all in one exported snapshot; a free worker takes the next chunk.
//! Finished chunks are returned by [`Job::next`] one by one, so that the caller can record them. This crate does not
//! decide what a chunk is, how a column is read, or what happens after a failure: `dbdyno.move` in Python does.
//!
//! Loading is the reverse: a file, its batches, COPY's bytes, `COPY … FROM STDIN`.
//!
//! From server to server rows are forwarded as they arrive (`relay.rs`). A single file for all rows, Arrow IPC or
//! CSV, is written by the workers in turn (`single.rs`).
//!
//! MariaDB's rows are converted to COPY's form as they arrive (`mariadb.rs`), so that there is only one form to read.
//! Rows are loaded into MariaDB as lines of `LOAD DATA LOCAL` (`lines.rs`). [`session`] is a session of either engine.
//!
//! A value that its Arrow type cannot hold (NaN in a decimal, an infinite date) is never altered: the job ends with
//! [`MoveError::Unrepresentable`], which names the column that must be moved as text.
//!
//! # Limits
//!
//! A row is completely in memory, once as received and once decoded. Text must be UTF-8.

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
pub use spec::{AroundSpec, ChunkDone, ChunkSpec, ColumnSpec, JobSpec, Kind, PartDone, Refused, TableSpec};
