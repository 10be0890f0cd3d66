//! What is wrong with a rack's parameters or with a command to a cell.

/// What is wrong with a rack's parameters or with a command to a cell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellError {
    /// A parameter out of its range.
    #[error("{key} {rule}")]
    Parameter {
        /// Its path.
        key: String,
        /// What it must be.
        rule: &'static str,
    },
    /// Modules that hold too little.
    #[error("flash: {rule}")]
    Flash {
        /// What is wrong, and what would be right.
        rule: String,
    },
    /// Each copy needs a cell of its own.
    #[error("group {name} keeps {copies} copies, each in a cell of its own, but there are {cells} cells")]
    Copies {
        /// Group.
        name: String,
        /// Copies.
        copies: u64,
        /// Cells.
        cells: u64,
    },
    /// A group on flash without modules.
    #[error("group {name} is on flash, but the cells have no flash modules")]
    Medium {
        /// Group.
        name: String,
    },
    /// Grid disks larger than a disk.
    #[error("the grid disks need {needed_bytes} bytes of each disk, which has {capacity_bytes}")]
    Space {
        /// All grid disks of a disk.
        needed_bytes: u64,
        /// The disk.
        capacity_bytes: u64,
    },
    /// No such group.
    #[error("there is no group {name}; there is {known}")]
    Group {
        /// Asked for.
        name: String,
        /// Names that exist.
        known: String,
    },
    /// No such cell.
    #[error("there is no cell of number {number}; there are {cells}")]
    Cell {
        /// Asked for.
        number: usize,
        /// Cells.
        cells: usize,
    },
    /// A cache cannot go while it holds the only copy.
    #[error("the flash cache of {cell} holds {bytes} bytes that are not on disk: flush it first")]
    Dirty {
        /// Cell.
        cell: String,
        /// Dirty bytes.
        bytes: u64,
    },
    /// A second flash cache.
    #[error("{cell} has a flash cache: drop it first")]
    CacheExists {
        /// Cell.
        cell: String,
    },
    /// Nothing to put a cache on.
    #[error("{cell} has no flash modules")]
    NoFlash {
        /// Cell.
        cell: String,
    },
}

impl CellError {
    pub(super) fn parameter(key: &str, rule: &'static str) -> Self {
        Self::Parameter { key: key.into(), rule }
    }
}
