//! Modelled storage cells for Python: a rack that runs on, is asked and commanded.

use std::collections::BTreeMap;
use std::time::Duration;

use dyno_model::run::rig::{Rig, RigSpec};
use pyo3::prelude::*;

use crate::errors::raise;
use crate::model::failed;
use crate::values::{Failed, from_python, to_python};

/// Storage cells of a machine under a workload that never ends, in virtual time, on a thread of
/// their own. Every method lets go of the interpreter lock and may be called from any thread.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct ModelRack {
    rig: Rig,
}

#[pymethods]
impl ModelRack {
    /// Builds the machine (TOML) with these settings (path to value, as text) and starts its
    /// sessions; `workload` is that of an arm of `ModelRun`, `beside` a list of further `sessions` and
    /// their `workload`. Raises `ModelError`.
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

    /// Lets `virtual_ns` pass, or less if that takes longer than `wall_s` seconds; returns virtual
    /// time at the end, ns.
    fn advance(&self, py: Python<'_>, virtual_ns: u64, wall_s: f64) -> PyResult<u64> {
        let wall = Duration::try_from_secs_f64(wall_s)
            .map_err(|error| raise(py, "ModelError", &format!("wall_s: {error}")))?;
        py.detach(|| self.rig.advance(virtual_ns, wall)).map_err(|error| failed(py, &error))
    }

    /// The metrics of a cell, by its number from 0, as they are now; its next rates count from
    /// here: `at_ns` and `rows` of [object type, object, name, value, unit, kind].
    fn collect<'py>(&self, py: Python<'py>, cell: usize) -> PyResult<Bound<'py, PyAny>> {
        let found = py.detach(|| self.rig.collect(cell)).map_err(|error| failed(py, &error))?;
        to_python(py, &found).map_err(|error| raise(py, "ModelError", &error.to_string()))
    }

    /// Everything about the cells that is not a metric.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let facts = py.detach(|| self.rig.facts()).map_err(|error| failed(py, &error))?;
        to_python(py, &facts).map_err(|error| raise(py, "ModelError", &error.to_string()))
    }

    /// Carries out a command (with `do` and `cell`). Raises `ModelError` where the cell
    /// refuses it.
    fn command(&self, py: Python<'_>, command: &Bound<'_, PyAny>) -> PyResult<()> {
        let command = from_python(command).map_err(|error| raise(py, "ModelError", &error.to_string()))?;
        py.detach(|| self.rig.command(command)).map_err(|error| failed(py, &error))
    }
}
