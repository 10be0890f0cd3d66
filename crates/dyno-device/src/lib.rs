//! Modelled storage devices under real programs: a folder whose I/O takes the device's time.
//!
//! ```text
//!   a program --> kernel (page cache) --> FUSE --> filesystem --> plain folder below: the data
//!                                                     |  |
//!                                                     |  '--> journal: what a power cut may undo
//!                                                     '-----> clock: when the modelled device replies
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`mount`] | a mounted folder: its start, status, power cut and end |
//! | [`clock`] | the simulation of `dyno-model`, driven by arrivals in wall-clock time |
//! | [`engine`] | that simulation, in the thread that drives it |
//! | [`orders`] | requests that other threads hand to a device's thread |
//! | [`devices`] | the devices that come with dbdyno, and their descriptions |
//! | `over_ring` | requests through `io_uring`, where the kernel offers it |
//! | [`status`] | the state of a mount, as JSON |
//! | [`extents`] | addresses of files on the device |
//! | [`journal`] | data that are not yet synced, and how much of them survives a power cut |
//! | [`faults`] | errors, delays and false flushes of a device |
//! | [`write_hole`] | pages that a RAID-5 array damages when it loses power and then a member |
//!
//! Limits: data are not synced to the underlying folder, so a crash of the machine itself can lose them. A flush of the
//! device takes only the time until its earlier writes are complete.

pub mod devices;
pub mod replay;

// Mounts need Linux.
#[cfg(target_os = "linux")]
pub mod clock;
#[cfg(target_os = "linux")]
pub mod engine;
#[cfg(target_os = "linux")]
pub mod extents;
#[cfg(target_os = "linux")]
pub mod faults;
#[cfg(target_os = "linux")]
mod filesystem;
#[cfg(target_os = "linux")]
pub mod journal;
#[cfg(target_os = "linux")]
pub mod mount;
#[cfg(target_os = "linux")]
mod names;
#[cfg(target_os = "linux")]
mod nodes;
#[cfg(target_os = "linux")]
pub mod orders;
#[cfg(target_os = "linux")]
mod over_ring;
#[cfg(target_os = "linux")]
mod requests;
#[cfg(target_os = "linux")]
pub mod status;
#[cfg(target_os = "linux")]
mod undo;
#[cfg(target_os = "linux")]
pub mod write_hole;

use std::io;

use dyno_model::machine::MachineError;

/// Reason why a device cannot be mounted or read.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The device description is invalid.
    #[error("{0}")]
    Machine(#[from] MachineError),
    /// A system call failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A fault rule is invalid.
    #[error("{0}")]
    Fault(String),
    /// The modelled device is faster than a request through the kernel.
    #[error("{0}")]
    Floor(String),
    /// The kernel does not accept requests through `io_uring`.
    #[error("{0}")]
    Ring(String),
    /// A thread ended unexpectedly.
    #[error("{0}")]
    Broken(String),
}
