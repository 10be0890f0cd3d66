//! Memory that the simulation of a machine needs; too large a machine is refused before any part of it is built.
//!
//! Numbers within their bounds do not guarantee a machine that fits into memory: 4,096 cells of 256 modules do not fit.
//! The check counts what is in memory from the start: about 16 bytes per page, 100 bytes per buffer, 1 KB per device.
//! At the limits below, that is half a gigabyte per thread.

use super::kind::PartKind;
use super::{Machine, MachineError};
use crate::device::flash::FlashParameters;

/// Largest number of flash pages whose state is kept: 64 GB in pages of 4 KB.
const PAGES_MOST: u64 = 1 << 24;

/// Largest number of disks, flash cards and LUNs, and of the parts over them.
const DEVICES_MOST: u64 = 20_000;

/// Largest number of buffers of all databases.
const BUFFERS_MOST: u64 = 10_000_000;

/// Largest number of zones of all disks.
const ZONES_MOST: u64 = 20_000_000;

/// Largest number of sessions of all databases beside `ORCL`.
const SESSIONS_MOST: u64 = 65_535;

/// Refuses a machine that would not fit into memory.
///
/// # Errors
/// The machine is invalid: the error names the place and what is allowed.
pub fn check(machine: &Machine) -> Result<(), MachineError> {
    let mut sum = Sum::default();
    sum.rack(machine)?;
    sum.devices(machine)?;
    sum.databases(machine);
    sum.refuse()
}

/// Sums of the sizes that are limited.
#[derive(Default)]
struct Sum {
    pages: u64,
    devices: u64,
    zones: u64,
    buffers: u64,
    sessions: u64,
}

impl Sum {
    fn rack(&mut self, machine: &Machine) -> Result<(), MachineError> {
        let Some(rack) = machine.rack()? else { return Ok(()) };
        let (disks, modules) = (rack.count * rack.disks, rack.count * rack.modules);
        self.devices += 2 * disks + modules;
        self.zones += disks * rack.disk.zones;
        self.pages += modules * rack.simulated_flash().pages_kept();
        Ok(())
    }

    fn devices(&mut self, machine: &Machine) -> Result<(), MachineError> {
        for part in &machine.parts {
            let count = machine.count(part);
            self.devices += count;
            if part.kind == PartKind::Flash {
                self.pages += count * machine.section::<FlashParameters>(&part.prefix())?.pages_kept();
            }
            if part.kind == PartKind::Disk {
                self.zones += count * machine.whole(&part.path("zones")).unwrap_or(0);
            }
        }
        Ok(())
    }

    fn databases(&mut self, machine: &Machine) {
        let whole = |path: String| machine.whole(&path).unwrap_or(0);
        self.buffers += whole("database.buffers.buffers".into());
        for database in &machine.beside {
            self.buffers += whole(format!("databases.{}.buffers.buffers", database.name));
            self.sessions += whole(format!("databases.{}.workload.sessions", database.name));
        }
    }

    fn refuse(&self) -> Result<(), MachineError> {
        let limits = [
            ("devices", self.devices, DEVICES_MOST, "use fewer disks, modules, cells or LUNs"),
            ("pages of flash", self.pages, PAGES_MOST, "a smaller capacity_mb or simulated_mb, or larger pages"),
            ("zones of disks", self.zones, ZONES_MOST, "fewer zones"),
            ("buffers", self.buffers, BUFFERS_MOST, "fewer buffers"),
            ("sessions beside", self.sessions, SESSIONS_MOST, "fewer sessions"),
        ];
        let Some((what, found, most, step)) = limits.into_iter().find(|&(_, found, most, _)| found > most) else {
            return Ok(());
        };
        let message = format!("the machine is too large to simulate: {found} {what}, at most {most}");
        Err(MachineError::at("", message, step))
    }
}
