//! Python interface of the modelled `PostgreSQL`: one load on a machine, its result in memory.

use std::collections::BTreeMap;

use dyno_model::kernel::Simulation;
use dyno_model::machine::{Machine, MachineError};
use dyno_model::postgres::cached::{Relation, misses};
use dyno_model::postgres::{Load, Outcome, run_on};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;

use crate::errors::raise;
use crate::model::refused;
use crate::values::{from_python, to_python};

/// A load on a machine.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    /// Machine as TOML; it has a section `[postgres]`.
    machine: String,
    /// Parameters that differ from the machine's.
    #[serde(default)]
    settings: BTreeMap<String, String>,
    /// Seed of all random numbers.
    seed: u64,
    load: Load,
}

enum Failure {
    Machine(MachineError),
    Other(String),
}

impl Spec {
    fn run(&self) -> Result<Outcome, Failure> {
        let mut machine = Machine::parse(&self.machine).map_err(Failure::Machine)?;
        let settings = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        machine.set_all(settings).map_err(Failure::Machine)?;
        let Some(parameters) = machine.postgres().map_err(Failure::Machine)? else {
            return Err(Failure::Other("the machine has no section [postgres]".into()));
        };
        let mut load = self.load.clone();
        if load.scripts.is_empty() {
            load.scripts.clone_from(&parameters.scripts);
        }
        load.check(parameters.statements.len()).map_err(Failure::Other)?;
        let simulation = Simulation::new(self.seed);
        let devices = machine.postgres_devices(simulation.sim()).map_err(Failure::Machine)?;
        run_on(&simulation, &parameters, &devices, &load).map_err(|error| Failure::Other(error.to_string()))
    }
}

/// Run a load on the `PostgreSQL` of a machine (`PostgresSpec` of the stub) and return the result.
///
/// `latencies_ns` of the result are the latencies of its transactions as little-endian 64-bit numbers.
///
/// Raises:
///     ModelError: The machine or the load is invalid, or the simulation cannot continue.
#[pyfunction]
pub(crate) fn model_postgres<'py>(py: Python<'py>, spec: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let spec: Spec = from_python(spec).map_err(|error| raise(py, "ModelError", &error.to_string()))?;
    let outcome = py.detach(|| spec.run()).map_err(|error| match error {
        Failure::Machine(error) => refused(py, &error),
        Failure::Other(what) => raise(py, "ModelError", &what),
    })?;
    let value = to_python(py, &outcome).map_err(|error| raise(py, "ModelError", &error.to_string()))?;
    let bytes: Vec<u8> = outcome.latencies_ns.iter().flat_map(|ns| ns.to_le_bytes()).collect();
    value.set_item("latencies_ns", PyBytes::new(py, &bytes))?;
    Ok(value)
}

/// Return the expected miss ratio in `PostgreSQL`'s buffers for the references to each relation.
///
/// Args:
///     relations: Relations of a machine, with the pages and the shares of their groups.
///     rates: How often each relation is referenced, relative to the others.
///     buffers_mb: Size of the buffers [MB].
///
/// Raises:
///     ModelError: A relation is invalid.
#[pyfunction]
pub(crate) fn model_misses(
    py: Python<'_>,
    relations: &Bound<'_, PyAny>,
    rates: Vec<f64>,
    buffers_mb: f64,
) -> PyResult<Vec<f64>> {
    let wrong = |what: String| raise(py, "ModelError", &what);
    let relations: Vec<Relation> = from_python(relations).map_err(|error| wrong(error.to_string()))?;
    relations.iter().try_for_each(Relation::check).map_err(wrong)?;
    Ok(misses(&relations, &rates, buffers_mb))
}
