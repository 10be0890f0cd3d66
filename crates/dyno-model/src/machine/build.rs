//! Construction of a machine's devices in a run.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::beside::{DATABASE, Load};
use super::kind::PartKind;
use super::links::Named;
use super::schema::{LunParameters, StripeParameters};
use super::sections::Part;
use super::{Machine, MachineError};
use crate::cell::{Caching, Purpose, Rack, Tag};
use crate::database::{Instance, ParameterError, Sink, Storage};
use crate::device::Device;
use crate::device::array::Array;
use crate::device::cache::Cache;
use crate::device::disk::Disk;
use crate::device::empirical::Empirical;
use crate::device::flash::Flash;
use crate::device::lun::{HbaChannel, Lun};
use crate::device::partition::Partition;
use crate::device::raid5::Raid5;
use crate::device::volume::Volume;
use crate::kernel::{Sim, Simulation, StationReport};
use crate::workload::{Progress, Stop};

/// A machine in a run: its instance, and the storage below it.
pub struct Built {
    /// Instance, whose storage holds all devices in use.
    pub instance: Instance,
    /// Databases beside `ORCL`, whose sessions have not started yet.
    pub beside: Vec<Neighbour>,
    /// Storage cells, if there are any.
    pub rack: Option<Rc<Rack>>,
    checks: Vec<Check>,
}

/// A database beside `ORCL` in a run.
pub struct Neighbour {
    /// Name of the database.
    pub name: String,
    /// Instance of the database.
    pub instance: Instance,
    /// Load of the database's sessions.
    pub load: Load,
}

impl Neighbour {
    /// Starts the sessions of the database, which never end; returns their progress.
    ///
    /// # Errors
    /// A parameter has an impossible value.
    pub fn work(&self, sim: &Sim) -> Result<Progress, ParameterError> {
        let Load { sessions, workload } = &self.load;
        workload.spawn(sim, &self.instance, *sessions, &Stop::never())
    }
}

/// Name of a device, and a check that its invariants hold.
type Check = (String, Box<dyn Fn() -> bool>);

impl Built {
    /// Returns the devices whose pages or lines do not add up; there must be none.
    pub fn broken(&self) -> Vec<&str> {
        let wrong = self.checks.iter().filter(|(_, holds)| !holds());
        wrong.map(|(name, _)| name.as_str()).collect()
    }

    /// Returns the statistics of every device in use and of the run queues, each once, in the order of the stacks.
    pub fn reports(&self) -> Vec<StationReport> {
        // Databases beside use the same devices.
        let Storage { redo, data, temp } = self.instance.storage();
        let mut seen = vec![self.instance.report()];
        seen.extend(self.beside.iter().map(|database| database.instance.report()));
        let mut names = BTreeSet::new();
        let tops = redo.iter().chain([data, temp]).flat_map(|top| top.reports());
        let cells = self.rack.iter().flat_map(|rack| rack.reports());
        for report in tops.chain(cells) {
            if names.insert(report.name.clone()) {
                seen.push(report);
            }
        }
        seen
    }
}

/// Devices of the redo, the data and temporary files.
pub type Stack = (Vec<Rc<dyn Device>>, Rc<dyn Device>, Rc<dyn Device>);

/// Storage that is built, while no instance uses it yet.
struct Stored {
    storage: Storage,
    /// Storage of the databases beside `ORCL`.
    beside: Vec<Storage>,
    rack: Option<Rc<Rack>>,
    checks: Vec<Check>,
}

impl Machine {
    /// Builds the storage in use and discards it, to find errors that only devices can detect.
    ///
    /// # Errors
    /// The machine is invalid: the error names the place and what is allowed.
    pub fn try_storage(&self) -> Result<(), MachineError> {
        self.storage(&Simulation::new(0)).map(|_| ())
    }

    /// Builds the storage in use and returns the device of the data files, without an instance.
    ///
    /// # Errors
    /// The machine is invalid: the error names the place and what is allowed.
    pub fn data_device(&self, sim: &Sim) -> Result<Rc<dyn Device>, MachineError> {
        Ok(self.storage(sim)?.storage.data)
    }

    /// Builds the storage in use and returns the devices of the redo, without an instance.
    ///
    /// # Errors
    /// The machine is invalid: the error names the place and what is allowed.
    pub fn redo_devices(&self, sim: &Sim) -> Result<Vec<Rc<dyn Device>>, MachineError> {
        Ok(self.storage(sim)?.storage.redo)
    }

    /// Builds the storage in use and returns the devices of redo, data and temporary files, without an instance.
    ///
    /// # Errors
    /// The machine is invalid: the error names the place and what is allowed.
    pub fn stack(&self, sim: &Sim) -> Result<Stack, MachineError> {
        let Storage { redo, data, temp } = self.storage(sim)?.storage;
        Ok((redo, data, temp))
    }

    fn storage(&self, sim: &Sim) -> Result<Stored, MachineError> {
        let rack = match self.rack()? {
            Some(parameters) => Some(Rack::new(sim, &parameters).map_err(|error| self.cell_error(&error))?),
            None => None,
        };
        let (devices, channels) = (BTreeMap::new(), BTreeMap::new());
        let checks = Vec::new();
        let mut builder = Builder { machine: self, sim, rack: rack.as_deref(), devices, channels, checks };
        let storage = builder.storage(DATABASE, 0)?;
        let beside = self.beside.iter().zip(1..);
        let beside = beside.map(|(of, number)| builder.storage(&of.name, number));
        let beside = beside.collect::<Result<_, _>>()?;
        let checks = builder.checks;
        Ok(Stored { storage, beside, rack, checks })
    }

    /// Builds the devices in use and starts the instance.
    ///
    /// # Errors
    /// The machine is invalid: the error names the place and what is allowed.
    pub fn build(&self, sim: &Sim, sink: Rc<dyn Sink>) -> Result<Built, MachineError> {
        let Stored { storage, beside, rack, checks } = self.storage(sim)?;
        let wrong = |error: ParameterError| MachineError::at(format!("database.{}", error.key), error.to_string(), "");
        let instance = Instance::new(sim, self.instance()?, storage, sink).map_err(wrong)?;
        let start = |(of, storage): (&super::Beside, Storage)| {
            let (name, parameters) = (of.name.clone(), self.instance_of(of)?);
            let instance = Instance::named(sim, &name, parameters, storage, Rc::new(()));
            Ok(Neighbour { name, instance: instance.map_err(wrong)?, load: self.load(of)? })
        };
        let beside = self.beside.iter().zip(beside).map(start).collect::<Result<_, _>>()?;
        Ok(Built { instance, beside, rack, checks })
    }
}

/// Purpose and database of an I/O.
type Use<'u> = (Purpose, &'u str);

/// Use of devices below other devices: there are no disk groups, and a request's purpose is unknown.
const BELOW: Use = (Purpose::Data, DATABASE);

struct Builder<'a> {
    machine: &'a Machine,
    sim: &'a Sim,
    rack: Option<&'a Rack>,
    devices: BTreeMap<&'a str, Vec<Rc<dyn Device>>>,
    channels: BTreeMap<&'a str, Vec<Rc<HbaChannel>>>,
    checks: Vec<Check>,
}

impl<'a> Builder<'a> {
    /// Returns the storage of a database: the devices that the machine names, or an equal part of them if there are
    /// several databases.
    fn storage(&mut self, database: &str, number: u64) -> Result<Storage, MachineError> {
        let parts = 1 + self.machine.beside.len() as u64;
        let own = |device: Rc<dyn Device>| -> Rc<dyn Device> {
            if parts == 1 { device } else { Partition::equal(device, number, parts) }
        };
        let redo = self.all("storage.redo", (Purpose::Redo, database))?;
        let data = self.place("data", (Purpose::Data, database))?;
        let temp = if self.machine.names("storage.temp").is_empty() { "data" } else { "temp" };
        let temp = self.place(temp, (Purpose::Temp, database))?;
        let redo = redo.into_iter().map(own).collect();
        Ok(Storage { redo, data: own(data), temp: own(temp) })
    }

    /// Returns the devices that a parameter names, in order, for a purpose and database.
    fn all(&mut self, path: &str, of: Use) -> Result<Vec<Rc<dyn Device>>, MachineError> {
        let mut all = Vec::new();
        for name in self.machine.names(path) {
            if let Some(group) = self.group(&name, of)? {
                all.push(group);
                continue;
            }
            match self.machine.named(&name) {
                Some(Named::All(part)) => all.extend(self.part(part)?),
                Some(Named::One(part, number)) => {
                    all.extend(self.part(part)?.get(number as usize).cloned());
                }
                None => {}
            }
        }
        Ok(all)
    }

    /// Returns a disk group of the cells for I/O of this purpose and database; `None` if there is no such group.
    fn group(&self, name: &str, of: Use) -> Result<Option<Rc<dyn Device>>, MachineError> {
        let (purpose, database) = of;
        let Some(rack) = self.rack.filter(|rack| rack.groups().iter().any(|own| own == name)) else {
            return Ok(None);
        };
        let policy = self.machine.value("storage.caching").cloned();
        let caching: Caching = match policy.filter(|_| purpose == Purpose::Data) {
            Some(word) => word.try_into().map_err(|error: toml::de::Error| {
                let place = self.machine.place("storage.caching");
                MachineError::at(place, error.message().trim(), "")
            })?,
            None => Caching::Default,
        };
        let tag = Tag { purpose, database: database.into(), caching };
        rack.group(name, &tag).map(Some).map_err(|error| self.machine.cell_error(&error))
    }

    /// Returns the device of the data or temporary files; several devices are concatenated into one.
    fn place(&mut self, key: &str, of: Use) -> Result<Rc<dyn Device>, MachineError> {
        let all = self.all(&format!("storage.{key}"), of)?;
        match &all[..] {
            [one] => Ok(Rc::clone(one)),
            [] => Err(MachineError::at(format!("storage.{key}"), "there is nothing", "")),
            [first, ..] => {
                let whole = first.capacity_bytes();
                if all.iter().any(|device| device.capacity_bytes() != whole) {
                    let place = self.machine.place(&format!("storage.{key}"));
                    let message = "devices of different capacity cannot be laid end to end";
                    return Err(MachineError::at(place, message, "name devices of one capacity"));
                }
                Ok(Array::stripe(key, whole, all))
            }
        }
    }

    /// Returns all devices of a part.
    fn part(&mut self, part: &'a Part) -> Result<Vec<Rc<dyn Device>>, MachineError> {
        if let Some(built) = self.devices.get(part.name.as_str()) {
            return Ok(built.clone());
        }
        let members = if part.kind.is_over() { self.all(&part.path("over"), BELOW)? } else { Vec::new() };
        let count = self.machine.count(part) as usize;
        let mut built = Vec::with_capacity(count);
        for number in 0..count {
            let name = numbered(&part.name, number, count);
            let each = members.len() / count.max(1);
            let mine = members.get(number * each..(number + 1) * each).unwrap_or_default();
            built.push(self.device(part, number, &name, mine)?);
        }
        self.devices.insert(&part.name, built.clone());
        Ok(built)
    }

    fn device(
        &mut self,
        part: &'a Part,
        number: usize,
        name: &str,
        members: &[Rc<dyn Device>],
    ) -> Result<Rc<dyn Device>, MachineError> {
        let (machine, sim, prefix) = (self.machine, self.sim, part.prefix());
        let below = || {
            let nothing = || MachineError::at(prefix.clone(), "stands over nothing", "");
            members.first().cloned().ok_or_else(nothing)
        };
        Ok(match part.kind {
            PartKind::Disk => Disk::new(sim, name, machine.section(&prefix)?),
            PartKind::Flash => {
                let card = Flash::new(sim, name, machine.section(&prefix)?);
                let checked = Rc::clone(&card);
                self.checks.push((name.into(), Box::new(move || checked.holds())));
                card
            }
            PartKind::Empirical => Empirical::new(sim, name, machine.section(&prefix)?),
            PartKind::Volume => Volume::new(sim, name, machine.section(&prefix)?),
            PartKind::Cache => {
                let cache = Cache::new(sim, name, machine.section(&prefix)?, below()?);
                let checked = Rc::clone(&cache);
                self.checks.push((name.into(), Box::new(move || checked.holds())));
                cache
            }
            PartKind::Mirror => Array::mirror(name, members.to_vec()),
            PartKind::Race => Array::race(name, members.to_vec()),
            PartKind::Raid5 => Raid5::new(name, &machine.section(&prefix)?, members.to_vec()),
            PartKind::Stripe => {
                let stripe: StripeParameters = machine.section(&prefix)?;
                Array::stripe(name, stripe.stripe_kb << 10, members.to_vec())
            }
            PartKind::Channel => {
                let message = "a channel carries requests; it is no device";
                return Err(MachineError::at(machine.place(&prefix), message, "name it as `channel` of a lun"));
            }
            PartKind::Lun => {
                let lun: LunParameters = machine.section(&prefix)?;
                let channels = self.channels_of(part)?;
                let channel = channels.get(number % channels.len().max(1)).cloned();
                Lun::new(sim, name, lun.sd_max_throttle, below()?, channel)
            }
        })
    }

    /// Returns the channels of a LUN.
    fn channels_of(&mut self, lun: &'a Part) -> Result<Vec<Rc<HbaChannel>>, MachineError> {
        let mut all = Vec::new();
        for name in self.machine.names(&lun.path("channel")) {
            match self.machine.named(&name) {
                Some(Named::All(part)) => all.extend(self.channels(part)?),
                Some(Named::One(part, number)) => {
                    all.extend(self.channels(part)?.get(number as usize).cloned());
                }
                None => {}
            }
        }
        Ok(all)
    }

    fn channels(&mut self, part: &'a Part) -> Result<Vec<Rc<HbaChannel>>, MachineError> {
        if let Some(built) = self.channels.get(part.name.as_str()) {
            return Ok(built.clone());
        }
        let count = self.machine.count(part) as usize;
        let mut built = Vec::with_capacity(count);
        for number in 0..count {
            let name = numbered(&part.name, number, count);
            built.push(HbaChannel::new(self.sim, &name, self.machine.section(&part.prefix())?));
        }
        self.channels.insert(&part.name, built.clone());
        Ok(built)
    }
}

/// Returns the name of one of several devices.
fn numbered(name: &str, number: usize, count: usize) -> String {
    if count == 1 { name.into() } else { format!("{name}.{number}") }
}
