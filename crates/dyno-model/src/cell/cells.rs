//! The cells of a rack, as its disk groups share them, and their counters at the last collection.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::layout::Layout;
use super::storage_cell::StorageCell;

/// What the groups of a rack share.
pub(super) struct RackCells {
    pub cells: Vec<Rc<StorageCell>>,
    pub names: Vec<String>,
    pub layouts: Vec<Layout>,
    pub databases: RefCell<Vec<String>>,
    /// Of each cell.
    pub collected: RefCell<Vec<Collected>>,
}

/// Object and metric of a cell.
pub(super) type Key = (String, String);

/// A cell's counters at its last collection, and when that was.
pub(super) struct Collected {
    pub at_ns: u64,
    pub counters: BTreeMap<Key, f64>,
}

impl Collected {
    /// Nothing so far.
    pub fn nothing(at_ns: u64) -> Self {
        Self { at_ns, counters: BTreeMap::new() }
    }

    /// The same of so many cells.
    pub fn none(at_ns: u64, cells: usize) -> Vec<Self> {
        (0..cells).map(|_| Self::nothing(at_ns)).collect()
    }
}
