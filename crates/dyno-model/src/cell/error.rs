//! Errors in a rack's parameters or in a command to a cell.

/// Error in a rack's parameters or in a command to a cell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellError {
    /// A parameter is out of its range.
    #[error("{key} {rule}")]
    Parameter {
        /// Path of the parameter.
        key: String,
        /// Rule that the parameter violates.
        rule: &'static str,
    },
    /// The flash modules are too small.
    #[error("flash: {rule}")]
    Flash {
        /// What is wrong, and what would be valid.
        rule: String,
    },
    /// There are fewer cells than copies.
    #[error("group {name} keeps {copies} copies, each in a cell of its own, but there are {cells} cells")]
    Copies {
        /// Name of the group.
        name: String,
        /// Number of copies.
        copies: u64,
        /// Number of cells.
        cells: u64,
    },
    /// A group is on flash, but there are no modules.
    #[error("group {name} is on flash, but the cells have no flash modules")]
    Medium {
        /// Name of the group.
        name: String,
    },
    /// The grid disks need more space than a disk has.
    #[error("the grid disks need {needed_bytes} bytes of each disk, which has {capacity_bytes}")]
    Space {
        /// Size of all grid disks on one disk [bytes].
        needed_bytes: u64,
        /// Size of the disk [bytes].
        capacity_bytes: u64,
    },
    /// There is no such group.
    #[error("there is no group {name}; expected one of {known}")]
    Group {
        /// Requested name.
        name: String,
        /// Names of the existing groups.
        known: String,
    },
    /// There is no such cell.
    #[error("there is no cell {number}; there are {cells} cells")]
    Cell {
        /// Requested number.
        number: usize,
        /// Number of cells.
        cells: usize,
    },
    /// The cache holds the only copy of data and cannot be dropped.
    #[error("the flash cache of {cell} holds {bytes} bytes that are not on disk: flush it first")]
    Dirty {
        /// Name of the cell.
        cell: String,
        /// Number of dirty bytes.
        bytes: u64,
    },
    /// The cell already has a flash cache.
    #[error("{cell} has a flash cache: drop it first")]
    CacheExists {
        /// Name of the cell.
        cell: String,
    },
    /// The cell has no flash for a cache.
    #[error("{cell} has no flash modules")]
    NoFlash {
        /// Name of the cell.
        cell: String,
    },
}

impl CellError {
    pub(super) fn parameter(key: &str, rule: &'static str) -> Self {
        Self::Parameter { key: key.into(), rule }
    }
}
