//! What a rack that runs on is made of, cell by cell, and what its cells hold now.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cell::iorm::Directive;
use crate::cell::parameters::{CacheMode, Medium, RackParameters};
use crate::cell::{Cached, Rack};

/// A grid disk.
#[derive(Clone, Debug, Serialize)]
pub struct GridDisk {
    /// Its name: group, then cell disk.
    pub name: String,
    /// Its group.
    pub group: String,
    /// The cell disk it lies on.
    pub cell_disk: String,
    /// Size.
    pub bytes: u64,
    /// Where it begins on its cell disk.
    pub from_bytes: u64,
    /// May blocks of it be cached?
    pub cached: bool,
}

/// A cell disk.
#[derive(Clone, Debug, Serialize)]
pub struct CellDisk {
    /// Its name.
    pub name: String,
    /// On flash?
    pub flash: bool,
    /// Size.
    pub bytes: u64,
}

/// One cell as it is now.
#[derive(Clone, Debug, Serialize)]
pub struct CellFacts {
    /// Its name.
    pub name: String,
    /// Disks, then modules.
    pub cell_disks: Vec<CellDisk>,
    /// Group by group.
    pub grid_disks: Vec<GridDisk>,
    /// What the flash cache does with writes.
    pub flash_cache_mode: CacheMode,
    /// Its size; 0 if there is none.
    pub flash_cache_bytes: u64,
    /// What it holds.
    pub cached: Cached,
    /// Is there a flash log?
    pub flash_log: bool,
    /// Its size.
    pub flash_log_bytes: u64,
    /// The plan in force.
    pub plan: BTreeMap<String, Directive>,
}

impl CellFacts {
    /// Of the cell of that number, which is there.
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

/// Size of a flash module: what the machine lays on it, where that is more than its own number.
/// The pages that are simulated are fewer in any case.
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
