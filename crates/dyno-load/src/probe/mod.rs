//! The redo probe: the I/O of a database's log writer on real files, every latency kept.
//!
//! ```text
//!   sessions (moments)     log writer                     paths
//!   commit -------------> pending -> one write ---------> first   O_DIRECT | O_DSYNC
//!   commit -------------> pending    of all that waited -> second  or fdatasync
//!          <------------- acknowledged by one copy or by all
//! ```
//!
//! Commits that arrive while a write is under way ride together on the next one (group commit). A
//! write fills whole blocks, each with a header and a checksum, in a file that was written all over
//! before and in which the log goes round. With two paths a write is done when both copies are
//! durable, or, in a race, when the first is; what a crash leaves then is worked out by
//! [`recover()`].
//!
//! # Limits
//!
//! The copies are written by threads, not by `io_uring`: its submission cannot be used without
//! `unsafe`, which this crate forbids. Handing a write over to a thread and hearing from it again
//! costs some microseconds, which [`Probe::on_sink`] measures. A crash of the machine is survived as
//! far as the device keeps what it says is durable. Linux.

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
