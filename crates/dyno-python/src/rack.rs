//! Modelled storage cells for Python: a rack that runs on, is asked and commanded.

use std::collections::BTreeMap;
use std::time::Duration;

use dyno_model::run::rig::Rig;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors::raise;
use crate::model::failed;

fn told(py: Python<'_>, made: serde_json::Result<String>) -> PyResult<String> {
    made.map_err(|error| raise(py, "ModelError", &error.to_string()))
}

/// Storage cells of a machine under a workload that never ends, in virtual time, on a thread of
/// their own. Every method lets go of the interpreter lock and may be called from any thread.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct ModelRack {
    rig: Rig,
}

#[pymethods]
impl ModelRack {
    /// Builds the machine (TOML) with these settings (path to value, as text) and starts its
    /// sessions; `workload` is JSON as in an arm of `ModelRun`, `beside` a JSON list of further
    /// `sessions` and their `workload`. Raises `ModelError`.
    #[new]
    #[pyo3(signature = (machine, seed, workload, sessions, settings, beside="[]"))]
    fn new(
        py: Python<'_>,
        machine: &str,
        seed: u64,
        workload: &str,
        sessions: u32,
        settings: BTreeMap<String, String>,
        beside: &str,
    ) -> PyResult<Self> {
        let read = |what: &str, text: &str| {
            serde_json::from_str::<Value>(text).map_err(|error| raise(py, "ModelError", &format!("{what}: {error}")))
        };
        let spec = json!({
            "machine": machine,
            "seed": seed,
            "settings": settings,
            "sessions": sessions,
            "workload": read("workload", workload)?,
            "beside": read("beside", beside)?,
        });
        let rig = py.detach(|| Rig::new(&spec.to_string()));
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
    /// here. JSON: `at_ns` and `rows` of [object type, object, name, value, unit, kind].
    fn collect(&self, py: Python<'_>, cell: usize) -> PyResult<String> {
        let found = py.detach(|| self.rig.collect(cell)).map_err(|error| failed(py, &error))?;
        told(py, serde_json::to_string(&found))
    }

    /// Everything about the cells that is not a metric, as JSON.
    fn facts(&self, py: Python<'_>) -> PyResult<String> {
        let facts = py.detach(|| self.rig.facts()).map_err(|error| failed(py, &error))?;
        told(py, serde_json::to_string(&facts))
    }

    /// Carries out a command (JSON with `do` and `cell`). Raises `ModelError` where the cell
    /// refuses it.
    fn command(&self, py: Python<'_>, json: &str) -> PyResult<()> {
        py.detach(|| self.rig.command(json)).map_err(|error| failed(py, &error))
    }
}
