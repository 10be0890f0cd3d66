//! FUSE requests through `io_uring` instead of `/dev/fuse` (Linux 6.14 and later).
//!
//! ```text
//!   a program --> kernel --> queue of its processor --> a free entry: header and payload in our memory
//!                                                          |
//!   [`Ring::wait`] returns the entries with requests  <----'
//!   [`Ring::commit`] answers one, and offers its entry for the next request, with one system call for both
//! ```
//!
//! The kernel has one queue for each processor, and uses none of the queues until each has an entry. One ring serves
//! all queues, in the thread that made the ring. Memory layouts are those of `linux/fuse.h` (protocol 7.42).
//!
//! This crate needs `unsafe` only because the kernel writes to the memory of [`memory::Entries`] while the thread
//! waits.

#![cfg(target_os = "linux")]

mod memory;
mod ring;

pub use memory::Request;
pub use ring::{Ring, Wait, Waker};

/// File in which an administrator allows FUSE over `io_uring` (`Y` or `N`); absent before Linux 6.14.
pub const SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";

/// Returns true if this kernel offers FUSE over `io_uring` to new mounts.
pub fn is_offered() -> bool {
    std::fs::read_to_string(SWITCH).is_ok_and(|text| text.trim() == "Y")
}

/// Returns the number of processors that this kernel could have; FUSE has one queue for each.
///
/// # Errors
/// The system does not report this number.
pub fn queue_count() -> std::io::Result<u16> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = text.trim().rsplit([',', '-']).next().and_then(|number| number.parse::<u16>().ok());
    last.map(|last| last + 1).ok_or_else(|| std::io::Error::other(format!("unreadable list of processors: {text}")))
}
