//! Positions of the copies of a disk group's extents.

use super::parameters::{GroupParameters, Medium};

/// Positions of the copies of each extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Number of cells.
    pub cells: u64,
    /// Number of disks or modules of each cell that the group uses.
    pub units: u64,
    /// Number, within its cell, of the first disk or module that the group uses.
    pub first_unit: u64,
    /// Offset at which the grid disks begin on each disk or module [bytes].
    pub from_bytes: u64,
    /// Number of extents of each copy on a grid disk.
    pub rows: u64,
    /// Size of an extent [bytes].
    pub extent_bytes: u64,
    /// Number of copies.
    pub copies: u64,
}

impl Layout {
    /// Returns the layout of a group whose grid disks begin at `from_bytes`.
    pub(super) fn new(group: &GroupParameters, shape: (u64, u64, u64), from_bytes: u64) -> Self {
        let (cells, disks, modules) = shape;
        let (units, first_unit) = match group.on {
            Medium::Disk => (disks, 0),
            Medium::Flash => (modules, disks),
        };
        let extent_bytes = group.extent_mb.max(1) << 20;
        let copies = group.redundancy.copies();
        let rows = (group.size_gb * f64::from(1 << 30)) as u64 / extent_bytes / copies;
        Self { cells, units, first_unit, from_bytes, rows, extent_bytes, copies }
    }

    /// Returns the size of each grid disk [bytes].
    pub fn grid_bytes(&self) -> u64 {
        self.rows * self.copies * self.extent_bytes
    }

    /// Returns the capacity of the group [bytes].
    pub fn capacity_bytes(&self) -> u64 {
        self.cells * self.units * self.rows * self.extent_bytes
    }

    /// Returns the place of a copy of an extent: number of the cell, number of the disk or module, and offset on it
    /// [bytes].
    #[inline]
    pub fn place(&self, extent: u64, copy: u64) -> (usize, u16, u64) {
        let (row, column) = (extent / (self.cells * self.units), extent % (self.cells * self.units));
        let (cell, unit) = (column % self.cells, column / self.cells);
        let shift = if copy == 0 { 0 } else { 1 + (row + copy - 1) % (self.cells - 1) };
        let cell = (cell + shift) % self.cells;
        let unit = (unit + copy) % self.units;
        let offset_bytes = self.from_bytes + (copy * self.rows + row) * self.extent_bytes;
        (cell as usize, (self.first_unit + unit) as u16, offset_bytes)
    }
}
