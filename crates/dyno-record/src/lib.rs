//! Every wait of an unmodified PostgreSQL, exact.
//!
//! A backend tells what it waits for by a store to one word of shared memory. [`sites`] finds these stores in the
//! server's own program, [`probes`] says where the kernel is to take a note of them, [`perf`] reads the notes, and
//! [`session`] makes calls and waits of them, which [`store`](dyno_evidence::trace_store) writes as a trace: the same tables that an import of
//! trace files has.
//!
//! Limits: x86-64; PostgreSQL 14 to 18. Nothing is written to the server's memory, and nothing outlives the recorder:
//! the kernel takes its probes away when the descriptors close.

#![allow(clippy::doc_markdown)] // names of products

pub mod attach;
pub mod claim;
pub mod classes;
pub mod code;
pub mod elf;
mod ends;
mod error;
pub mod handles;
pub mod job;
pub mod names;
pub mod notes;
pub mod perf;
pub mod place;
pub mod probes;
pub mod process;
pub mod recording;
pub mod session;
pub mod shed;
pub mod sites;
pub mod small;
pub mod tracefs;
mod trap;
pub mod watch;

pub use attach::trap_cost;
pub use dyno_evidence::trace_store as store;
pub use error::RecordError;
pub use trap::Trap;
pub use watch::target::watch_cost;
