//! Wear of a flash device.

use serde::Serialize;

/// Numbers of erasures and programs of a flash device so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wear {
    /// Name of the device.
    pub name: String,
    /// Number of erase blocks.
    pub blocks: u64,
    /// Number of erasures of all blocks.
    pub erases: u64,
    /// Number of erasures of the block that was erased least.
    pub erases_least: u64,
    /// Number of erasures of the block that was erased most.
    pub erases_most: u64,
    /// Number of pages that the host has written.
    pub host_pages: u64,
    /// Number of pages that were programmed, including copies.
    pub programmed_pages: u64,
    /// Number of pages that discards have freed.
    pub trimmed_pages: u64,
}
