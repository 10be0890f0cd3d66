//! `PostgreSQL` in a machine: `[postgres]`, with its own scheduler.
//!
//! Its log is where `storage.redo` says. A machine without the section has no `PostgreSQL`.

use std::rc::Rc;

use toml::Value;

use super::schema::{self, Row};
use super::{Machine, MachineError};
use crate::device::{Device, number};
use crate::kernel::Sim;
use crate::postgres::{CoresParameters, PostgresParameters};

/// Section of the machine.
pub const SECTION: &str = "postgres";

/// Returns the rows of `[postgres]`.
pub fn rows() -> Vec<Row> {
    let parameters = PostgresParameters::default();
    let mut all = schema::rows(SECTION, &parameters, PostgresParameters::TABLE, &["scheduler"]);
    let scheduler = &parameters.scheduler;
    all.extend(schema::rows("postgres.scheduler", scheduler, CoresParameters::TABLE, &[]));
    all
}

impl Machine {
    /// Returns the parameters of `[postgres]`, if the machine has this section.
    ///
    /// # Errors
    /// The machine is invalid: the error names the place and what is allowed.
    pub fn postgres(&self) -> Result<Option<PostgresParameters>, MachineError> {
        self.has_postgres.then(|| self.section(SECTION)).transpose()
    }

    /// Builds the device of the log; the times of an empirical one are multiplied by `postgres.device_factor`.
    ///
    /// # Errors
    /// The machine is invalid: the error names the place and what is allowed.
    pub fn log_device(&self, sim: &Sim) -> Result<Rc<dyn Device>, MachineError> {
        let nothing = || MachineError::at("storage.redo", "there is nothing", "");
        let factor = self.postgres()?.map_or(1.0, |parameters| parameters.device_factor);
        let mut scaled = self.clone();
        let regimes = |path: &str| path.starts_with("devices.") && path.ends_with(".regimes");
        for (_, given) in scaled.given.iter_mut().filter(|(path, _)| regimes(path)) {
            for regime in given.value.as_array_mut().into_iter().flatten().filter_map(Value::as_table_mut) {
                let own = regime.get("time_factor").and_then(number).filter(|own| *own > 0.0).unwrap_or(1.0);
                regime.insert("time_factor".into(), Value::Float(own * factor));
            }
        }
        scaled.redo_devices(sim)?.into_iter().next().ok_or_else(nothing)
    }
}
