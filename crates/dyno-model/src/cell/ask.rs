//! What a disk group asks of a cell.

use super::Label;
use crate::device::Request;

/// What a group asks of a cell.
#[derive(Clone, Copy)]
pub(super) struct Ask {
    /// Disk or module, counted through: disks first.
    pub unit: u16,
    /// Group.
    pub group: u16,
    /// Which copy: 0 is the primary.
    pub copy: u8,
    pub label: Label,
    /// Offset on the unit.
    pub request: Request,
}

impl Ask {
    /// Group of I/O that belongs to no grid disk: that of flash log and flash cache.
    pub const NO_GROUP: u16 = u16::MAX;
}
