//! Disk groups: the extents of a group are spread over the grid disks of all cells, and the copies of an extent are in
//! different cells.
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
//! Copy k of a row is in the k-th part of the grid disk, so that no two copies overlap. Reads go to the primary copy,
//! writes to all; the slowest copy determines the time of a write. Not modelled: rebalance and the loss of a disk.

use std::rc::{Rc, Weak};

use super::Label;
use super::ask::Ask;
use super::cells::RackCells;
use super::layout::Layout;
use crate::device::array::Open;
use crate::device::{Device, Done, Kind, Observer, Request};
use crate::kernel::StationReport;

/// A disk group as seen by one database for one purpose.
pub struct Group {
    name: String,
    number: u16,
    layout: Layout,
    label: Label,
    rack: Rc<RackCells>,
    open: Open,
    me: Weak<Self>,
}

impl Group {
    pub(super) fn new(rack: Rc<RackCells>, number: usize, label: Label) -> Rc<Self> {
        let (name, layout) = (rack.names[number].clone(), rack.layouts[number]);
        let number = number as u16;
        let open = Open::default();
        Rc::new_cyclic(|me| Self { name, number, layout, label, rack, open, me: me.clone() })
    }

    /// Returns the pieces of a request: for each its extent, its offset in the extent and its length [bytes].
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
