//! Request of a disk group to a cell.

use super::Label;
use crate::device::Request;

/// Request of a group to a cell.
#[derive(Clone, Copy)]
pub(super) struct Ask {
    /// Number of the disk or module in the cell; disks come first.
    pub unit: u16,
    /// Group number.
    pub group: u16,
    /// Copy number; 0 is the primary.
    pub copy: u8,
    pub label: Label,
    /// Request to the disk or module; its offset is an offset on that disk or module.
    pub request: Request,
}

impl Ask {
    /// Group number of I/O that belongs to no grid disk: I/O of the flash log and of the flash cache.
    pub const NO_GROUP: u16 = u16::MAX;
}
