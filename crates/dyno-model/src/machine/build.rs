//! From a machine to devices of a run.

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
use crate::kernel::{Sim, Simulation, StationReport};
use crate::workload::{Progress, Stop};

/// A machine in a run: its instance, and the storage below it.
pub struct Built {
    /// The instance; its storage knows all devices in use.
    pub instance: Instance,
    /// The databases beside it; nobody works there yet.
    pub beside: Vec<Neighbour>,
    /// Its storage cells.
    pub rack: Option<Rc<Rack>>,
    checks: Vec<Check>,
}

/// A database beside, in a run.
pub struct Neighbour {
    /// Its name.
    pub name: String,
    /// Its instance.
    pub instance: Instance,
    /// What its sessions are to do.
    pub load: Load,
}

impl Neighbour {
    /// Starts its sessions, which never end.
    pub fn work(&self, sim: &Sim) -> Result<Progress, ParameterError> {
        let Load { sessions, workload } = &self.load;
        workload.spawn(sim, &self.instance, *sessions, &Stop::never())
    }
}

/// The book-keeping of a device: its name, and whether everything adds up.
type Check = (String, Box<dyn Fn() -> bool>);

impl Built {
    /// Devices whose pages or lines do not add up: always none.
    pub fn broken(&self) -> Vec<&str> {
        let wrong = self.checks.iter().filter(|(_, holds)| !holds());
        wrong.map(|(name, _)| name.as_str()).collect()
    }

    /// What every device in use and the run queues have seen, each once, in the order of the stacks.
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

/// Storage before there is an instance on it.
struct Stored {
    storage: Storage,
    /// Of the databases beside.
    beside: Vec<Storage>,
    rack: Option<Rc<Rack>>,
    checks: Vec<Check>,
}

impl Machine {
    /// Builds the storage that is in use, and throws it away: what only devices can tell.
    pub fn try_storage(&self) -> Result<(), MachineError> {
        self.storage(&Simulation::new(0)).map(|_| ())
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

    /// Builds what is in use and starts the instance.
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

/// What for, and for which database.
type Use<'u> = (Purpose, &'u str);

/// Below other devices there are no disk groups, and nothing tells whose a request is.
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
    /// Where a database keeps its files: all of what the machine names, or with others beside its own
    /// equal part.
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

    /// The devices that a parameter names, one after the other, for what and whom.
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

    /// A disk group of the cells, for I/O of a purpose of a database.
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

    /// Where data or sorts lie: several devices are laid end to end.
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

    /// All devices of a part.
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
            PartKind::Cache => {
                let cache = Cache::new(sim, name, machine.section(&prefix)?, below()?);
                let checked = Rc::clone(&cache);
                self.checks.push((name.into(), Box::new(move || checked.holds())));
                cache
            }
            PartKind::Mirror => Array::mirror(name, members.to_vec()),
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

    /// The channels that a LUN is reached by.
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

/// The name of one of several.
fn numbered(name: &str, number: usize, count: usize) -> String {
    if count == 1 { name.into() } else { format!("{name}.{number}") }
}
