//! Recorder of every wait of an unmodified PostgreSQL, with exact times.
//!
//! A backend publishes what it waits for by a store to one word of shared memory. [`sites`] finds these stores in the
//! server's program. [`probes`] decides where the kernel writes a *note*: a record of an event, in a ring of perf.
//! [`perf`] reads the notes, and [`session`] turns them into calls and waits. [`store`](dyno_evidence::trace_store)
//! writes those as a trace, in the same tables as an import of trace files.
//!
//! There are two other techniques. [`watch`] uses watchpoints instead of probes, which the server's own user may set.
//! [`reading`] reads the words themselves from another process, at no cost for the server.
//!
//! Limits: x86-64; PostgreSQL 14 to 18. Nothing is written to the server's memory, and nothing outlives the recorder:
//! the kernel removes the probes when the descriptors close.

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
pub mod reading;
pub mod recording;
pub mod request;
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
pub use reading::activity::Activity;
pub use reading::target::{ReadCost, read_cost};
pub use trap::Trap;
pub use watch::target::watch_cost;
