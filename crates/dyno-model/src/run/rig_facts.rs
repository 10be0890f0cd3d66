//! Facts of a running rack, cell by cell, and the current content of its cells.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cell::iorm::Directive;
use crate::cell::parameters::{CacheMode, Medium, RackParameters};
use crate::cell::{Cached, Rack};

/// A grid disk.
#[derive(Clone, Debug, Serialize)]
pub struct GridDisk {
    /// Name of the grid disk: the name of its group, then the name of its cell disk.
    pub name: String,
    /// Name of the grid disk's group.
    pub group: String,
    /// Name of the cell disk that contains the grid disk.
    pub cell_disk: String,
    /// Size [bytes].
    pub bytes: u64,
    /// Offset at which the grid disk begins on its cell disk [bytes].
    pub from_bytes: u64,
    /// True if the grid disk's blocks may be cached.
    pub cached: bool,
}

/// A cell disk.
#[derive(Clone, Debug, Serialize)]
pub struct CellDisk {
    /// Name of the cell disk.
    pub name: String,
    /// True if the cell disk is on flash.
    pub flash: bool,
    /// Size [bytes].
    pub bytes: u64,
}

/// Current state of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct CellFacts {
    /// Name of the cell.
    pub name: String,
    /// Cell disks, then flash modules.
    pub cell_disks: Vec<CellDisk>,
    /// Grid disks, group by group.
    pub grid_disks: Vec<GridDisk>,
    /// How the flash cache treats writes.
    pub flash_cache_mode: CacheMode,
    /// Size of the flash cache [bytes]; 0 if there is none.
    pub flash_cache_bytes: u64,
    /// Content of the flash cache.
    pub cached: Cached,
    /// True if there is a flash log.
    pub flash_log: bool,
    /// Size of the flash log [bytes].
    pub flash_log_bytes: u64,
    /// Active plan.
    pub plan: BTreeMap<String, Directive>,
}

impl CellFacts {
    /// Returns the facts of the cell of that number, which must exist.
    pub(super) fn new(rack: &Rack, parameters: &RackParameters, number: usize) -> Self {
        let cell = &rack.cells()[number];
        let name = cell.name().to_owned();
        let RackParameters { disks, modules, disk, groups, .. } = parameters;
        let gb = |gb: f64| (gb * f64::from(1 << 30)) as u64;
        let unit = |kind: &str, number: u64| format!("{kind}_{number:02}_{name}");
        let (disk_bytes, module_bytes) = (gb(disk.capacity_gb), module_bytes(rack, parameters));
        let on_disk = (0..*disks).map(|number| CellDisk { name: unit("CD", number), flash: false, bytes: disk_bytes });
        let on_flash =
            (0..*modules).map(|number| CellDisk { name: unit("FD", number), flash: true, bytes: module_bytes });
        let mut grid_disks = Vec::new();
        for (at, (group, own)) in groups.iter().enumerate() {
            let (kind, count) = match own.on {
                Medium::Disk => ("CD", *disks),
                Medium::Flash => ("FD", *modules),
            };
            let Some(layout) = rack.layout(group) else { continue };
            grid_disks.extend((0..count).map(|number| {
                let cell_disk = unit(kind, number);
                GridDisk {
                    name: format!("{group}_{cell_disk}"),
                    group: group.clone(),
                    cell_disk,
                    bytes: layout.grid_bytes(),
                    from_bytes: layout.from_bytes,
                    cached: cell.caches(at),
                }
            }));
        }
        let (flash_cache_mode, flash_cache_bytes) = cell.flash_cache();
        Self {
            cell_disks: on_disk.chain(on_flash).collect(),
            grid_disks,
            flash_cache_mode,
            flash_cache_bytes,
            cached: cell.cached(),
            flash_log: cell.has_flash_log(),
            flash_log_bytes: cell.flash_log_bytes().0,
            plan: cell.plan(),
            name,
        }
    }
}

/// Returns the size of a flash module [bytes]: its configured size, or the space of flash log, flash cache and grid
/// disks on it, whichever is larger. The number of simulated pages does not depend on this size.
fn module_bytes(rack: &Rack, parameters: &RackParameters) -> u64 {
    let RackParameters { flash, flash_log, flash_cache, groups, .. } = parameters;
    let cache_bytes = (flash_cache.size_gb * f64::from(1 << 30)) as u64;
    let on_flash = groups.iter().filter(|(_, group)| group.on == Medium::Flash);
    let grids = on_flash.filter_map(|(name, _)| rack.layout(name));
    let laid = (flash_log.module_mb << 20)
        + cache_bytes.div_ceil(parameters.modules.max(1))
        + grids.map(|layout| layout.grid_bytes()).sum::<u64>();
    laid.max(flash.capacity_mb << 20)
}
