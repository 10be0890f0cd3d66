//! Storage cells: disks and flash behind software that caches, races redo writes and divides I/O among databases.
//!
//! ```text
//!   database                     rack.group("DATA", tag): a device
//!      |   writes: every copy, the slowest decides; reads: the primary copy
//!      v
//!   network ---------------+----------------------+------------------- one per cell
//!      |                   |                      |
//!   cell01              cell02                 cell03
//!     redo write ----> flash log:    disk path  vs  flash module: the first answers
//!     small, data ---> flash cache:  hit on flash; miss on disk, then into the cache
//!     large ---------> disk; with KEEP disk and flash at the same time
//!     all others ----> disk, in the order that resource management gives
//!      |
//!   a controller over 12 disks     16 x flash module
//! ```
//!
//! Each request of the database carries a [`Tag`]: its purpose, its database and the caching policy of its segment. The
//! cell bases its decisions on this tag, as real cells do on the reason tag of an I/O.
//!
//! **Order of simultaneous events.** The parts of a request go to the disk first, then to flash, in the order of
//! offsets. Copies go to the cells in the order of the copies' numbers (primary first). Completions at the same instant
//! count in the order in which the devices scheduled these events. This also decides a race that ends in a tie. A
//! command acts at the present instant, before other events that are due at this instant.
//!
//! **Units.** Time in whole nanoseconds, size in whole bytes; metrics are converted to Oracle's MB (2^20 bytes), us and
//! ms when they are read.
//!
//! Not modelled: CPU of the cells (except the work on a request, which overlaps), storage index, compression,
//! interconnect beyond one link per cell, loss of disks or cells, rebalance, scrubbing.
//!
//! | module | what |
//! |---|---|
//! | [`parameters`] | the numbers of a rack, with their sources |
//! | [`rack`] | cells and groups; commands |
//! | [`group`] | extents, copies, grid disks |
//! | [`storage_cell`] | one cell: network, devices, answers |
//! | [`log`] | flash log |
//! | [`caching`], [`directory`] | flash cache; what it holds |
//! | `writing`, `destage` | writes into the flash cache or past it; writes from it to disk |
//! | [`iorm`] | resource management |
//! | [`counts`], [`metrics`] | what is counted, and under which names it is shown |

mod ask;
mod cache_state;
pub mod caching;
mod cells;
pub mod counts;
mod destage;
pub mod directory;
pub mod error;
pub mod group;
pub mod iorm;
pub mod layout;
pub mod log;
mod log_space;
pub mod metrics;
pub mod parameters;
pub mod rack;
mod state;
pub mod storage_cell;
mod writing;

use serde::{Deserialize, Serialize};

pub use destage::Cached;
pub use error::CellError;
pub use metrics::Metric;
pub use parameters::{Caching, GroupParameters, RackParameters};
pub use rack::Rack;
pub use storage_cell::StorageCell;

/// Purpose of an I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Blocks of tables and indexes.
    #[default]
    Data,
    /// Online redo log.
    Redo,
    /// Temporary segments.
    Temp,
    /// Full scans; large ones may be filtered by the cell.
    Scan,
    /// Backups and other bulk work: never cached.
    Backup,
}

/// Information about an I/O that the database sends to the cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// Purpose of the I/O.
    pub purpose: Purpose,
    /// Name of the database in plans and metrics.
    pub database: String,
    /// Caching policy of the segment.
    pub caching: Caching,
}

impl Tag {
    /// Returns a tag with this purpose and database, and with the default caching policy.
    pub fn new(purpose: Purpose, database: &str) -> Self {
        Self { purpose, database: database.into(), caching: Caching::Default }
    }
}

/// Tag in the form that cells use: with the number of its database instead of the name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label {
    pub purpose: Purpose,
    pub caching: Caching,
    pub database: u16,
}

impl Label {
    /// Label of the cell's own writes of dirty lines to disk.
    pub const DESTAGE: Self = Self { purpose: Purpose::Data, caching: Caching::None, database: 0 };
}
