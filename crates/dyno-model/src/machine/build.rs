//! From a machine to devices of a run.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::links::Named;
use super::sections::Part;
use super::{Machine, MachineError};
use crate::device::Device;
use crate::device::array::Array;
use crate::device::cache::Cache;
use crate::device::disk::Disk;
use crate::device::empirical::Empirical;
use crate::device::flash::Flash;
use crate::device::lun::{HbaChannel, Lun};
use crate::kernel::{Sim, StationReport};

/// A machine's storage in a run.
pub struct Built {
    /// Members of a log group; a log writer writes all of them.
    pub redo: Vec<Rc<dyn Device>>,
    /// Data files.
    pub data: Rc<dyn Device>,
    /// Sorts.
    pub temp: Rc<dyn Device>,
}

impl Built {
    fn tops(&self) -> impl Iterator<Item = &Rc<dyn Device>> {
        self.redo.iter().chain([&self.data, &self.temp])
    }

    /// What every device has seen, each once, in the order of the stacks.
    pub fn reports(&self) -> Vec<StationReport> {
        let mut seen: Vec<StationReport> = Vec::new();
        let mut names = std::collections::BTreeSet::new();
        for report in self.tops().flat_map(|top| top.reports()) {
            if names.insert(report.name.clone()) {
                seen.push(report);
            }
        }
        seen
    }

    /// Forgets statistics: the end of a warm-up.
    pub fn reset(&self) {
        self.tops().for_each(|top| top.reset());
    }
}

impl Machine {
    /// Cores of the instance.
    pub fn cores(&self) -> u64 {
        self.whole("database.cores").unwrap_or(1)
    }

    /// Its redo path.
    pub fn redo(&self) -> Result<crate::database::RedoParameters, MachineError> {
        self.section("database.redo")
    }

    /// Builds what is in use.
    pub fn build(&self, sim: &Sim) -> Result<Built, MachineError> {
        let mut builder =
            Builder { machine: self, sim, devices: BTreeMap::new(), channels: BTreeMap::new() };
        let redo = builder.all("storage.redo")?;
        let data = builder.place("data")?;
        let temp = if self.names("storage.temp").is_empty() {
            data.clone()
        } else {
            builder.place("temp")?
        };
        Ok(Built { redo, data, temp })
    }
}

struct Builder<'a> {
    machine: &'a Machine,
    sim: &'a Sim,
    devices: BTreeMap<&'a str, Vec<Rc<dyn Device>>>,
    channels: BTreeMap<&'a str, Vec<Rc<HbaChannel>>>,
}

impl<'a> Builder<'a> {
    /// The devices that a parameter names, one after the other.
    fn all(&mut self, path: &str) -> Result<Vec<Rc<dyn Device>>, MachineError> {
        let mut all = Vec::new();
        for name in self.machine.names(path) {
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

    /// Where data or sorts lie: several devices are laid end to end.
    fn place(&mut self, key: &str) -> Result<Rc<dyn Device>, MachineError> {
        let all = self.all(&format!("storage.{key}"))?;
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
        let members = if part.is_over() { self.all(&part.path("over"))? } else { Vec::new() };
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
            "disk" => Disk::new(sim, name, machine.section(&prefix)?),
            "flash" => Flash::new(sim, name, machine.section(&prefix)?),
            "empirical" => Empirical::new(sim, name, machine.section(&prefix)?),
            "cache" => Cache::new(sim, name, machine.section(&prefix)?, below()?),
            "mirror" => Array::mirror(name, members.to_vec()),
            "stripe" => {
                let stripe_kb = machine.whole(&part.path("stripe_kb")).unwrap_or(64);
                Array::stripe(name, stripe_kb << 10, members.to_vec())
            }
            _ => {
                let limit = machine.whole(&part.path("sd_max_throttle")).unwrap_or(256);
                let channels = self.channels_of(part)?;
                let channel = channels.get(number % channels.len().max(1)).cloned();
                Lun::new(sim, name, limit, below()?, channel)
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
