//! Built-in devices: machines (`dyno_model::machine`) of which only the storage is used.

use std::cell::RefCell;
use std::rc::Rc;

use dyno_model::device::{Device, Done, Observer, Request};
use dyno_model::kernel::{Sim, Simulation};
use dyno_model::machine::{Machine, MachineError};

/// Name and TOML text of each device.
const DEVICES: [(&str, &str); 20] = [
    ("disk-7200", include_str!("../devices/disk-7200.toml")),
    ("disk-7200-cache", include_str!("../devices/disk-7200-cache.toml")),
    ("disk-15000", include_str!("../devices/disk-15000.toml")),
    ("disk-15000-cache", include_str!("../devices/disk-15000-cache.toml")),
    ("mirror-15000", include_str!("../devices/mirror-15000.toml")),
    ("mirror-slow", include_str!("../devices/mirror-slow.toml")),
    ("stripe-15000", include_str!("../devices/stripe-15000.toml")),
    ("raid5-15000", include_str!("../devices/raid5-15000.toml")),
    ("flash-log", include_str!("../devices/flash-log.toml")),
    ("flash-2011", include_str!("../devices/flash-2011.toml")),
    ("flash-2013", include_str!("../devices/flash-2013.toml")),
    ("sata-2024", include_str!("../devices/sata-2024.toml")),
    ("nvme-2024", include_str!("../devices/nvme-2024.toml")),
    ("nvme-client-2024", include_str!("../devices/nvme-client-2024.toml")),
    ("optane-2018", include_str!("../devices/optane-2018.toml")),
    ("gp2", include_str!("../devices/gp2.toml")),
    ("gp3", include_str!("../devices/gp3.toml")),
    ("io2", include_str!("../devices/io2.toml")),
    ("pd-ssd", include_str!("../devices/pd-ssd.toml")),
    ("premium-ssd", include_str!("../devices/premium-ssd.toml")),
];

/// Returns the name and TOML text of each built-in device.
pub fn built_in() -> impl Iterator<Item = (&'static str, &'static str)> {
    DEVICES.into_iter()
}

/// Description of a device, ready to be built.
#[derive(Clone, Debug)]
pub struct Model {
    machine: Machine,
    /// Seed of the device's random times.
    pub seed: u64,
}

impl Model {
    /// Parses the description of a device (`toml`), and changes the parameters that `settings` names.
    ///
    /// # Errors
    /// The description or a setting is invalid: the error names the place and what is allowed.
    pub fn new(toml: &str, settings: &[(String, String)], seed: u64) -> Result<Self, MachineError> {
        let mut machine = Machine::parse(toml)?;
        machine.set_all(settings.iter().map(|(name, value)| (name.as_str(), value.as_str())))?;
        Ok(Self { machine, seed })
    }

    /// Builds the device in a simulation.
    ///
    /// # Errors
    /// The description is invalid.
    pub fn build(&self, sim: &Sim) -> Result<Rc<dyn Device>, crate::DeviceError> {
        Ok(self.machine.data_device(sim)?)
    }

    /// Returns the time that a request takes on the idle device, in virtual time [ns].
    ///
    /// # Errors
    /// The description is invalid.
    pub fn alone_ns(&self, request: Request) -> Result<u64, crate::DeviceError> {
        struct Seen(RefCell<Option<u64>>, Sim);
        impl Observer for Seen {
            fn done(&self, _: u64) {
                *self.0.borrow_mut() = Some(self.1.now_ns());
            }
        }
        let simulation = Simulation::new(self.seed);
        let device = self.build(simulation.sim())?;
        let seen = Rc::new(Seen(RefCell::default(), simulation.sim().clone()));
        device.submit(request, Done::new(seen.clone(), 0));
        while seen.0.borrow().is_none() {
            let Some(next_ns) = simulation.next_ns() else { break };
            if simulation.run_until(next_ns).is_err() {
                break;
            }
        }
        let done_ns = *seen.0.borrow();
        Ok(done_ns.unwrap_or(0))
    }
}
