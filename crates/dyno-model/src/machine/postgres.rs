//! `PostgreSQL` in a machine: `[postgres]`, with its own scheduler.
//!
//! Its log is on the device in `storage.redo`, its data files are on the device in `storage.data`. A machine without
//! the section has no `PostgreSQL`.

use toml::{Table, Value};

use super::schema::{self, Row};
use super::{Machine, MachineError};
use crate::device::number;
use crate::kernel::Sim;
use crate::postgres::{CoresParameters, Devices, PostgresParameters};

/// Name of the section in a machine.
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
        let found: Option<PostgresParameters> = self.has_postgres.then(|| self.section(SECTION)).transpose()?;
        if let Some(parameters) = &found {
            parameters.check().map_err(|what| MachineError::at(SECTION, what, ""))?;
        }
        Ok(found)
    }

    /// Builds the devices of log, data and temporary files. The times of an empirical device with data files (only its
    /// reads if it also has the log) are multiplied by `postgres.data_factor`, all other times of empirical devices by
    /// `postgres.device_factor`.
    ///
    /// # Errors
    /// The machine is invalid: the error names the place and what is allowed.
    pub fn postgres_devices(&self, sim: &Sim) -> Result<Devices, MachineError> {
        let nothing = || MachineError::at("storage.redo", "there is nothing", "");
        let factors = self.postgres()?.map_or((1.0, 1.0), |own| (own.device_factor, own.data_factor));
        let mut scaled = self.clone();
        let (redo, data) = (self.names("storage.redo"), self.names("storage.data"));
        for (path, given) in &mut scaled.given {
            let Some(name) = path.strip_prefix("devices.").and_then(|rest| rest.strip_suffix(".regimes")) else {
                continue;
            };
            let is = |names: &[String]| names.iter().any(|own| own == name);
            for regime in given.value.as_array_mut().into_iter().flatten().filter_map(Value::as_table_mut) {
                match (is(&data), is(&redo)) {
                    (true, false) => multiply(regime, factors.1),
                    (shared, _) => {
                        multiply(regime, factors.0);
                        if let Some(read) = regime.get_mut("read").filter(|_| shared) {
                            stretch(read, factors.1 / factors.0);
                        }
                    }
                }
            }
        }
        let (log, data, temp) = scaled.stack(sim)?;
        Ok(Devices { log: log.into_iter().next().ok_or_else(nothing)?, data, temp })
    }
}

/// Multiplies the times of a regime.
fn multiply(regime: &mut Table, factor: f64) {
    let own = regime.get("time_factor").and_then(number).filter(|own| *own > 0.0).unwrap_or(1.0);
    regime.insert("time_factor".into(), Value::Float(own * factor));
}

/// Multiplies the times of a distribution.
fn stretch(times: &mut Value, factor: f64) {
    let exact = (factor - 1.0).abs() < f64::EPSILON;
    let times = times.as_table_mut().into_iter().flatten();
    for (_, value) in times.filter(|(key, _)| !exact && key.ends_with("us")) {
        match value {
            Value::Array(all) => all.iter_mut().for_each(|own| scale(own, factor)),
            own => scale(own, factor),
        }
    }
}

fn scale(value: &mut Value, factor: f64) {
    if let Some(own) = number(value) {
        *value = Value::Float(own * factor);
    }
}
