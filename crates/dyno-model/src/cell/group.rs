//! Disk groups: extents over the grid disks of all cells, copies in different cells.
//!
//! ```text
//!   offset --> extent e --> row e / units, place e % units (cell by cell, disk by disk)
//!
//!              cell 1      cell 2      cell 3          copy 0 of a row uses every unit once;
//!   copy 0     e0  e3      e1  e4      e2  e5          copy k is the same row, shifted by another
//!   copy 1     e2' e5'     e0' e3'     e1' e4'         number of cells in each row, so that the
//!                                                      partners of a disk are in all other cells
//! ```
//!
//! Copy k of a row lies in the k-th part of the grid disk: no two copies meet. Reads go to the primary
//! copy, writes to all; the slowest decides. Rebalance and the loss of a disk are left out.

use std::rc::{Rc, Weak};

use super::Label;
use super::parameters::{GroupParameters, Medium};
use super::rack::Shared;
use super::state::Ask;
use crate::device::array::Open;
use crate::device::{Device, Done, Kind, Observer, Request};
use crate::kernel::StationReport;

/// Where the copies of each extent lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Cells.
    pub cells: u64,
    /// Disks or modules of a cell that take part.
    pub units: u64,
    /// Number of the first of them in its cell.
    pub first_unit: u64,
    /// Where the grid disks begin on their unit.
    pub from_bytes: u64,
    /// Extents of a grid disk, of each copy.
    pub rows: u64,
    /// Extent.
    pub extent_bytes: u64,
    /// Copies.
    pub copies: u64,
}

impl Layout {
    /// Of a group whose grid disks begin at `from_bytes`.
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

    /// Bytes of each grid disk.
    pub fn grid_bytes(&self) -> u64 {
        self.rows * self.copies * self.extent_bytes
    }

    /// What fits into the group.
    pub fn capacity_bytes(&self) -> u64 {
        self.cells * self.units * self.rows * self.extent_bytes
    }

    /// Cell, unit and offset on the unit of a copy of an extent.
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

/// A disk group as one database's segment of one purpose sees it.
pub struct Group {
    name: String,
    number: u16,
    layout: Layout,
    label: Label,
    rack: Rc<Shared>,
    open: Open,
    me: Weak<Self>,
}

impl Group {
    pub(super) fn new(rack: Rc<Shared>, number: usize, label: Label) -> Rc<Self> {
        let (name, layout) = (rack.names[number].clone(), rack.layouts[number]);
        let number = number as u16;
        let open = Open::default();
        Rc::new_cyclic(|me| Self { name, number, layout, label, rack, open, me: me.clone() })
    }

    /// The pieces of a request: extent, offset in it, bytes.
    fn pieces(&self, request: Request) -> impl Iterator<Item = (u64, u64, u64)> + use<> {
        let Layout { extent_bytes, .. } = self.layout;
        let extents = self.layout.capacity_bytes() / extent_bytes;
        let (begin, end) = (request.offset_bytes, request.offset_bytes + request.bytes.max(1));
        let (first, last) = request.units(extent_bytes);
        (first..=last).map(move |extent| {
            let from = begin.max(extent * extent_bytes);
            let to = end.min((extent + 1) * extent_bytes);
            (extent % extents, from % extent_bytes, to - from)
        })
    }
}

impl Observer for Group {
    fn done(&self, token: u64) {
        self.open.piece(token);
    }
}

impl Device for Group {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity_bytes(&self) -> u64 {
        self.layout.capacity_bytes()
    }

    fn submit(&self, mut request: Request, done: Done) {
        let Some(me) = self.me.upgrade() else { return };
        request.offset_bytes %= self.capacity_bytes();
        let copies = if request.kind == Kind::Write { self.layout.copies } else { 1 };
        let (first, last) = request.units(self.layout.extent_bytes);
        let token = self.open.add(((last - first + 1) * copies) as usize, done);
        for (extent, within, bytes) in self.pieces(request) {
            for copy in 0..copies {
                let (cell, unit, offset) = self.layout.place(extent, copy);
                let request = Request { offset_bytes: offset + within, bytes, ..request };
                let (group, label) = (self.number, self.label);
                let ask = Ask { unit, group, copy: copy as u8, label, request };
                self.rack.cells[cell].submit(ask, Done::new(me.clone(), token));
            }
        }
    }

    fn reports(&self) -> Vec<StationReport> {
        self.rack.cells.iter().flat_map(|cell| cell.reports()).collect()
    }

    fn reset(&self) {
        self.rack.cells.iter().for_each(|cell| cell.reset());
    }
}
