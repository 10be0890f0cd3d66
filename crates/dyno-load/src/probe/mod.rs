//! Redo probe: the I/O of a database's log writer on real files, with every latency recorded.
//!
//! ```text
//!   sessions (moments)     log writer                     paths
//!   commit -------------> pending -> one write ---------> first   O_DIRECT | O_DSYNC
//!   commit -------------> pending    of all that waited -> second  or fdatasync
//!          <------------- acknowledged by one copy or by all
//! ```
//!
//! Commits that arrive during a write share the next write (group commit). A write consists of complete blocks, each
//! with a header and a checksum. The file was completely written beforehand, and the log reuses it as a ring. With two
//! paths a write is done when both copies are durable, or, in a race, when the first copy is. [`recover()`] determines
//! which writes survived a crash.
//!
//! # Limits
//!
//! The copies are written by threads, not by `io_uring`: submitting to it needs `unsafe`, which this crate forbids.
//! Handing a write to a thread and receiving its result costs some microseconds, which [`Probe::on_sink`] measures. The
//! log survives a crash of the machine only as far as the device keeps what it has reported as durable. Linux only.

mod block;
mod buffer;
mod copy;
mod count;
mod error;
mod file;
mod flash;
mod medium;
mod record;
mod recover;
mod run;
mod sessions;
mod size;
mod spec;
mod writer;

pub use count::{Counts, Metric};
pub use error::ProbeError;
pub use flash::{Flash, FlashReport, FlashSpec, Phase};
pub use medium::Medium;
pub use recover::{Copy, Recovery, recover};
pub use run::{Acknowledged, Probe, ProbeReport};
pub use size::Sizes;
pub use spec::{ProbeArm, ProbeSpec, Rule, Sync};
