//! Cells of a rack, shared by its disk groups, and their counters at the last collection.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::layout::Layout;
use super::storage_cell::StorageCell;

/// State that the groups of a rack share.
pub(super) struct RackCells {
    pub cells: Vec<Rc<StorageCell>>,
    pub names: Vec<String>,
    pub layouts: Vec<Layout>,
    pub databases: RefCell<Vec<String>>,
    /// Counters of each cell at its last collection.
    pub collected: RefCell<Vec<Collected>>,
}

/// Key of a counter: name of the object, then name of the metric.
pub(super) type Key = (String, String);

/// Counters of a cell at its last collection, and the time of that collection.
pub(super) struct Collected {
    pub at_ns: u64,
    pub counters: BTreeMap<Key, f64>,
}

impl Collected {
    /// Returns empty counters, collected at `at_ns`.
    pub fn nothing(at_ns: u64) -> Self {
        Self { at_ns, counters: BTreeMap::new() }
    }

    /// Returns empty counters for each cell, collected at `at_ns`.
    pub fn none(at_ns: u64, cells: usize) -> Vec<Self> {
        (0..cells).map(|_| Self::nothing(at_ns)).collect()
    }
}
