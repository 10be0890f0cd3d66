//! Python interface of modelled storage cells: a rack that keeps running, and answers queries and commands.

use std::collections::BTreeMap;
use std::time::Duration;

use dyno_model::run::rig::{Rig, RigSpec};
use pyo3::prelude::*;

use crate::errors::raise;
use crate::model::failed;
use crate::values::{Failed, from_python, to_python};

/// Storage cells of a machine under a workload that never ends, in virtual time, on their own thread.
///
/// Every method releases the interpreter lock and may be called from any thread.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct ModelRack {
    rig: Rig,
}

#[pymethods]
impl ModelRack {
    /// Build the machine (TOML) and start its sessions.
    ///
    /// Args:
    ///     settings: Values as text, by the path of the setting.
    ///     workload: The workload, as for an arm of `ModelRun`.
    ///     beside: Further groups of `sessions` with their `workload`.
    ///
    /// Raises:
    ///     ModelError: The machine, a setting or a workload is invalid.
    #[new]
    #[pyo3(signature = (machine, seed, workload, sessions, settings, beside=None))]
    fn new(
        py: Python<'_>,
        machine: &str,
        seed: u64,
        workload: &Bound<'_, PyAny>,
        sessions: u32,
        settings: BTreeMap<String, String>,
        beside: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let wrong = |what: &str, error: &Failed| raise(py, "ModelError", &format!("{what}: {error}"));
        let spec = RigSpec {
            machine: machine.into(),
            seed,
            settings,
            sessions,
            workload: from_python(workload).map_err(|error| wrong("workload", &error))?,
            beside: beside.map_or(Ok(Vec::new()), from_python).map_err(|error| wrong("beside", &error))?,
        };
        let rig = py.detach(|| Rig::new(spec));
        Ok(Self { rig: rig.map_err(|error| failed(py, &error))? })
    }

    /// Advance the virtual time by `virtual_ns`, or by less if that takes longer than `wall_s` seconds.
    ///
    /// Return the virtual time at the end [ns].
    ///
    /// Raises:
    ///     ModelError: The model failed.
    fn advance(&self, py: Python<'_>, virtual_ns: u64, wall_s: f64) -> PyResult<u64> {
        let wall = Duration::try_from_secs_f64(wall_s)
            .map_err(|error| raise(py, "ModelError", &format!("wall_s: {error}")))?;
        py.detach(|| self.rig.advance(virtual_ns, wall)).map_err(|error| failed(py, &error))
    }

    /// Return the current metrics of a cell, by its number from 0.
    ///
    /// Returns:
    ///     `at_ns`, and `rows` of object type, object, name, value, unit and kind. The cell's next rates are computed
    ///     from this time on.
    ///
    /// Raises:
    ///     ModelError: The model failed.
    fn collect<'py>(&self, py: Python<'py>, cell: usize) -> PyResult<Bound<'py, PyAny>> {
        let found = py.detach(|| self.rig.collect(cell)).map_err(|error| failed(py, &error))?;
        to_python(py, &found).map_err(|error| raise(py, "ModelError", &error.to_string()))
    }

    /// Return everything about the cells that is not a metric.
    ///
    /// Raises:
    ///     ModelError: The model failed.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let facts = py.detach(|| self.rig.facts()).map_err(|error| failed(py, &error))?;
        to_python(py, &facts).map_err(|error| raise(py, "ModelError", &error.to_string()))
    }

    /// Execute a command (with `do` and `cell`).
    ///
    /// Raises:
    ///     ModelError: The cell refuses the command.
    fn command(&self, py: Python<'_>, command: &Bound<'_, PyAny>) -> PyResult<()> {
        let command = from_python(command).map_err(|error| raise(py, "ModelError", &error.to_string()))?;
        py.detach(|| self.rig.command(command)).map_err(|error| failed(py, &error))
    }
}
