//! A rack: cells, the disk groups over them, and commands while it runs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::cells::{Collected, RackCells};
use super::error::CellError;
use super::group::Group;
use super::iorm::Directive;
use super::layout::Layout;
use super::parameters::{Caching, Medium, RackParameters};
use super::state::Slice;
use super::storage_cell::StorageCell;
use super::{Label, Tag};
use crate::device::cache::{Cache, CacheParameters};
use crate::device::controller::Controller;
use crate::device::disk::Disk;
use crate::device::flash::Flash;
use crate::device::{Device, Request, flash::FlashParameters};
use crate::kernel::{Sim, StationReport};

/// A rack of storage cells.
pub struct Rack {
    sim: Sim,
    pub(super) shared: Rc<RackCells>,
}

/// Function that makes a device of this name: a disk, or a flash module.
pub type Make<'a> = &'a dyn Fn(&Sim, &str) -> Rc<dyn Device>;

/// Returns the disks of a cell, each behind the controller that they share.
fn behind(sim: &Sim, cell: &str, of: &CacheParameters, disks: Vec<Rc<dyn Device>>) -> Vec<Rc<dyn Device>> {
    let controller = Controller::new(sim, &format!("{cell} controller"), of.clone());
    let cache = |disk: Rc<dyn Device>| -> Rc<dyn Device> {
        let name = format!("{} controller", disk.name());
        Cache::of(&controller, &name, disk)
    };
    disks.into_iter().map(cache).collect()
}

impl Rack {
    /// Builds a rack of disks behind controllers and of flash modules as the parameters say.
    ///
    /// # Errors
    /// A parameter is out of range, or parameters contradict each other.
    pub fn new(sim: &Sim, parameters: &RackParameters) -> Result<Rc<Self>, CellError> {
        parameters.check()?;
        let flash = parameters.simulated_flash();
        let disk = |sim: &Sim, name: &str| -> Rc<dyn Device> { Disk::new(sim, name, parameters.disk.clone()) };
        let module = |sim: &Sim, name: &str| -> Rc<dyn Device> { Flash::new(sim, name, flash.clone()) };
        Self::assemble(sim, parameters, (&disk, &module), Some(&parameters.controller))
    }

    /// Builds a rack of devices that the caller makes, for example measured devices or plain distributions of service
    /// times.
    ///
    /// # Errors
    /// A parameter is out of range, or parameters contradict each other.
    pub fn with(sim: &Sim, parameters: &RackParameters, disk: Make, module: Make) -> Result<Rc<Self>, CellError> {
        Self::assemble(sim, parameters, (disk, module), None)
    }

    fn assemble(
        sim: &Sim,
        parameters: &RackParameters,
        (disk, module): (Make, Make),
        controller: Option<&CacheParameters>,
    ) -> Result<Rc<Self>, CellError> {
        parameters.check()?;
        let RackParameters { count, disks, modules, .. } = *parameters;
        let shape = (count, disks, modules);
        let layouts = parameters.layouts(shape);
        let mut cells = Vec::new();
        for number in 1..=count {
            let cell = format!("cell{number:02}");
            let units = |kind: &str, count: u64, make: Make| -> Vec<Rc<dyn Device>> {
                (0..count).map(|unit| make(sim, &format!("{kind}_{unit:02}_{cell}"))).collect()
            };
            let disks = units("CD", disks, disk);
            let disks = match controller {
                Some(of) => behind(sim, &cell, of, disks),
                None => disks,
            };
            let devices = (disks, units("FD", modules, module));
            for (device, medium) in [(&devices.0, Medium::Disk), (&devices.1, Medium::Flash)] {
                parameters.check_space(device, medium, &layouts)?;
            }
            let slices = parameters.slices(&layouts);
            cells.push(StorageCell::new(sim, &cell, parameters, devices, slices));
        }
        let names = parameters.groups.keys().cloned().collect();
        let collected = RefCell::new(Collected::none(sim.now_ns(), cells.len()));
        let databases = RefCell::default();
        let shared = Rc::new(RackCells { cells, names, layouts, databases, collected });
        let rack = Self { sim: sim.clone(), shared };
        rack.warm(parameters);
        // Number 0: what no database asked for.
        rack.database("_OTHER_DATABASE_");
        parameters.iorm.plan.keys().filter(|name| *name != "other").for_each(|name| {
            rack.database(name);
        });
        Ok(Rc::new(rack))
    }

    /// Fills the flash caches with the primary copies that are to be cached at the start, as far as there is room: the
    /// lines are clean, and no counter changes.
    fn warm(&self, parameters: &RackParameters) {
        for (group, layout) in parameters.groups.values().zip(&self.shared.layouts) {
            let wanted = (group.warm_mb << 20).min(layout.capacity_bytes());
            let cached = group.on == Medium::Disk && group.caching != Caching::None;
            let extents = if cached { wanted / layout.extent_bytes } else { 0 };
            for extent in 0..extents {
                let (cell, unit, offset_bytes) = layout.place(extent, 0);
                self.cells()[cell].warm(unit, Request::read(offset_bytes, layout.extent_bytes));
            }
        }
    }

    /// Returns the number of a database; if the database is new, announces it to the cells.
    fn database(&self, name: &str) -> u16 {
        let mut databases = self.shared.databases.borrow_mut();
        if let Some(number) = databases.iter().position(|known| known == name) {
            return number as u16;
        }
        databases.push(name.into());
        self.shared.cells.iter().for_each(|cell| cell.know(&databases));
        databases.len() as u16 - 1
    }

    /// Returns a disk group as a device whose I/O carries this tag.
    ///
    /// # Errors
    /// There is no such group.
    pub fn group(&self, name: &str, tag: &Tag) -> Result<Rc<dyn Device>, CellError> {
        let number = self.number_of(name)?;
        let Tag { purpose, caching, .. } = *tag;
        let label = Label { purpose, caching, database: self.database(&tag.database) };
        Ok(Group::new(Rc::clone(&self.shared), number, label))
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.sim.now_ns()
    }

    /// Returns the names of the disk groups.
    pub fn groups(&self) -> &[String] {
        &self.shared.names
    }

    /// Returns the layout of a group's copies.
    pub fn layout(&self, name: &str) -> Option<Layout> {
        let number = self.shared.names.iter().position(|known| known == name)?;
        Some(self.shared.layouts[number])
    }

    /// Returns the cells, each of which accepts commands.
    pub fn cells(&self) -> &[Rc<StorageCell>] {
        &self.shared.cells
    }

    /// Creates or drops the flash log of every cell.
    pub fn set_flash_log(&self, exists: bool) {
        self.cells().iter().for_each(|cell| cell.set_flash_log(exists));
    }

    /// Activates a plan of resource management in every cell.
    pub fn set_plan(&self, plan: &BTreeMap<String, Directive>) {
        plan.keys().filter(|name| *name != "other").for_each(|name| {
            self.database(name);
        });
        self.cells().iter().for_each(|cell| cell.set_plan(plan.clone()));
    }

    /// Activates a plan of resource management in the cell with this number.
    pub fn set_plan_of(&self, number: usize, plan: BTreeMap<String, Directive>) {
        plan.keys().filter(|name| *name != "other").for_each(|name| {
            self.database(name);
        });
        if let Some(cell) = self.cells().get(number) {
            cell.set_plan(plan);
        }
    }

    /// Sets the caching policy of a group's grid disks, in every cell.
    ///
    /// # Errors
    /// There is no such group.
    pub fn set_caching(&self, group: &str, caching: Caching) -> Result<(), CellError> {
        let number = self.number_of(group)?;
        self.cells().iter().for_each(|cell| cell.set_grid_caching(number, caching));
        Ok(())
    }

    /// Sets the caching policy of a group's grid disks in one cell.
    ///
    /// # Errors
    /// There is no such group or cell.
    pub fn set_caching_of(&self, cell: usize, group: &str, caching: Caching) -> Result<(), CellError> {
        let number = self.number_of(group)?;
        if let Some(cell) = self.cells().get(cell) {
            cell.set_grid_caching(number, caching);
        }
        Ok(())
    }

    fn number_of(&self, group: &str) -> Result<usize, CellError> {
        self.shared
            .names
            .iter()
            .position(|known| known == group)
            .ok_or_else(|| CellError::Group { name: group.into(), known: self.shared.names.join(", ") })
    }

    /// Returns the statistics of the queues of every cell and device.
    pub fn reports(&self) -> Vec<StationReport> {
        self.cells().iter().flat_map(|cell| cell.reports()).collect()
    }

    /// Returns true if the invariants of all cells hold.
    pub fn holds(&self) -> bool {
        self.cells().iter().all(|cell| cell.holds())
    }

    /// Resets the counters of one cell, as a restart of its service does; cached lines stay.
    pub fn reset_cell(&self, number: usize) {
        if let Some(cell) = self.cells().get(number) {
            self.shared.collected.borrow_mut()[number] = Collected::nothing(self.sim.now_ns());
            cell.reset();
        }
    }

    /// Resets statistics and counters at the end of a warm-up; cached lines stay.
    pub fn reset(&self) {
        *self.shared.collected.borrow_mut() = Collected::none(self.sim.now_ns(), self.cells().len());
        self.cells().iter().for_each(|cell| cell.reset());
    }
}

impl RackParameters {
    /// Checks the parameters.
    ///
    /// # Errors
    /// A parameter is out of range, or parameters contradict each other.
    pub fn check(&self) -> Result<(), CellError> {
        let some = |key, value| {
            if value > 0 { Ok(()) } else { Err(CellError::parameter(key, "must be above 0")) }
        };
        some("count", self.count)?;
        some("disks", self.disks)?;
        some("simulated_mb", self.simulated_mb)?;
        some("flash_cache.line_kb", self.flash_cache.line_kb)?;
        let flash = self.simulated_flash();
        if self.modules > 0
            && let Err(rule) = flash.check()
        {
            return Err(CellError::Flash { rule });
        }
        let rates = [("network.rate_mb_s", self.network.rate_mb_s), ("iorm.rate_mb_s", self.iorm.rate_mb_s)];
        if let Some((key, _)) = rates.into_iter().find(|&(_, rate)| rate.is_nan() || rate <= 0.0) {
            return Err(CellError::parameter(key, "must be above 0"));
        }
        let ratios = [
            ("flash_log.common_cause_ratio", self.flash_log.common_cause_ratio),
            ("flash_cache.keep_limit_ratio", self.flash_cache.keep_limit_ratio),
            ("flash_cache.dirty_limit_ratio", self.flash_cache.dirty_limit_ratio),
            ("scan.returned_ratio", self.scan.returned_ratio),
        ];
        let outside = ratios.into_iter().find(|(_, ratio)| !(0.0..=1.0).contains(ratio));
        if let Some((key, _)) = outside {
            return Err(CellError::parameter(key, "must be from 0 to 1"));
        }
        for (name, group) in &self.groups {
            let copies = group.redundancy.copies();
            if copies > self.count {
                return Err(CellError::Copies { name: name.clone(), copies, cells: self.count });
            }
            if group.on == Medium::Flash && self.modules == 0 {
                return Err(CellError::Medium { name: name.clone() });
            }
            if Layout::new(group, (self.count, self.disks, self.modules), 0).rows == 0 {
                let key = format!("groups.{name}.size_gb");
                return Err(CellError::Parameter { key, rule: "must hold an extent of each copy" });
            }
        }
        Ok(())
    }

    /// Returns the parameters of a flash module, limited to the simulated pages.
    pub fn simulated_flash(&self) -> FlashParameters {
        FlashParameters { capacity_mb: self.flash.capacity_mb.min(self.simulated_mb), ..self.flash.clone() }
    }

    /// Returns the layouts of the groups, which follow one another on each medium.
    fn layouts(&self, shape: (u64, u64, u64)) -> Vec<Layout> {
        let (mut on_disk, mut on_flash) = (0, 0);
        let layout = |group: &super::GroupParameters| {
            let from = if group.on == Medium::Disk { &mut on_disk } else { &mut on_flash };
            let layout = Layout::new(group, shape, *from);
            *from += layout.grid_bytes();
            layout
        };
        self.groups.values().map(layout).collect()
    }

    fn slices(&self, layouts: &[Layout]) -> Vec<Slice> {
        let slice = |(number, (group, layout)): (usize, (&super::GroupParameters, &Layout))| Slice {
            group: number as u16,
            from_bytes: layout.from_bytes,
            to_bytes: layout.from_bytes + layout.grid_bytes(),
            on_flash: group.on == Medium::Flash,
            cached: group.caching != Caching::None,
            flash_log: group.flash_log,
        };
        self.groups.values().zip(layouts).enumerate().map(slice).collect()
    }

    /// Checks that the grid disks fit on the disks. Flash modules need no check, because addresses beyond their end are
    /// mapped into them.
    fn check_space(&self, devices: &[Rc<dyn Device>], medium: Medium, layouts: &[Layout]) -> Result<(), CellError> {
        if medium == Medium::Flash {
            return Ok(());
        }
        let layouts = self.groups.values().zip(layouts).filter(|(group, _)| group.on == medium);
        let needed_bytes: u64 = layouts.map(|(_, layout)| layout.grid_bytes()).sum();
        let there = devices.iter().map(|device| device.capacity_bytes()).min().unwrap_or(0);
        if needed_bytes > there {
            return Err(CellError::Space { needed_bytes, capacity_bytes: there });
        }
        Ok(())
    }
}
