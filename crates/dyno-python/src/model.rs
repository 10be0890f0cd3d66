//! The model for Python: machines as text and as tables, runs block by block, fits to measurements.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;

use dyno_model::device::calibrate::report;
use dyno_model::machine::{Machine, MachineError, built_in, built_in_names};
use dyno_model::run::{Control, Run, RunError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};

use crate::errors::raise;

/// A `dbdyno.errors.ModelError`.
fn refused(py: Python<'_>, error: &MachineError) -> PyErr {
    let made = || -> PyResult<Bound<'_, PyAny>> {
        let named = PyDict::new(py);
        if !error.place.is_empty() {
            named.set_item("where", &error.place)?;
        }
        if !error.next_step.is_empty() {
            named.set_item("next_step", &error.next_step)?;
        }
        let class = py.import("dbdyno.errors")?.getattr("ModelError")?;
        class.call((&error.message,), Some(&named))
    };
    made().map_or_else(|error| error, PyErr::from_value)
}

pub(crate) fn failed(py: Python<'_>, error: &RunError) -> PyErr {
    match error {
        RunError::Machine(error) => refused(py, error),
        RunError::Evidence(error) => raise(py, "EvidenceError", &error.to_string()),
        other => raise(py, "ModelError", &other.to_string()),
    }
}

fn told(py: Python<'_>, value: &Value) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| raise(py, "ModelError", &error.to_string()))
}

/// Names of the built-in machines.
#[pyfunction]
pub(crate) fn model_machines() -> Vec<&'static str> {
    built_in_names().collect()
}

/// The text (TOML) of a built-in machine. Raises `ModelError` if there is none of that name.
#[pyfunction]
pub(crate) fn model_machine(py: Python<'_>, name: &str) -> PyResult<&'static str> {
    built_in(name).map_err(|error| refused(py, &error))
}

/// Checks a machine (TOML); returns its title, parts and parameters as JSON. Raises `ModelError`
/// with line, key and what is allowed.
#[pyfunction]
pub(crate) fn model_check(py: Python<'_>, toml: &str) -> PyResult<String> {
    let machine = Machine::parse(toml).map_err(|error| refused(py, &error))?;
    serde_json::to_string(&machine.describe()).map_err(|error| raise(py, "ModelError", &error.to_string()))
}

/// Fits an empirical device to latencies (bytes of little-endian floats, us, in the order measured);
/// returns JSON as [`report`] tells it. Raises `ModelError`.
#[pyfunction]
pub(crate) fn model_calibrate(py: Python<'_>, latencies_us: &[u8]) -> PyResult<String> {
    let (whole, rest) = latencies_us.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(raise(py, "ModelError", "latencies are 8 bytes each"));
    }
    let values: Vec<f64> = whole.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        return Err(raise(py, "ModelError", &format!("latency {at} is not a number")));
    }
    let fitted = py.detach(|| report(&values));
    fitted.map_err(|error| raise(py, "ModelError", &error.to_string()))
}

/// CPU time of this thread; 0 where the system does not tell.
fn thread_cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Arms on a machine, checked and ready; each block is a replication with the same random numbers
/// in all arms.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct ModelRun {
    run: Run,
    control: Control,
}

#[pymethods]
impl ModelRun {
    /// Reads a specification (JSON) and checks everything; runs nothing. Raises `ModelError`.
    #[new]
    fn new(py: Python<'_>, spec: &str) -> PyResult<Self> {
        let run = py.detach(|| Run::new(spec)).map_err(|error| failed(py, &error))?;
        Ok(Self { run, control: Control::default() })
    }

    /// Runs every arm of a block and writes its parts below `folder`; returns the report as JSON.
    /// Lets go of the interpreter lock; several threads may each run another block at once.
    fn block(&self, py: Python<'_>, index: u32, folder: PathBuf) -> PyResult<String> {
        let begin = Instant::now();
        let timed = || {
            let cpu_ns = thread_cpu_ns();
            let block = self.run.block(index, &folder, &self.control)?;
            Ok((block, thread_cpu_ns().saturating_sub(cpu_ns)))
        };
        let (block, cpu_ns) = py.detach(timed).map_err(|error| failed(py, &error))?;
        let wall_ns = begin.elapsed().as_nanos() as u64;
        let mut value = serde_json::to_value(&block).map_err(|error| raise(py, "ModelError", &error.to_string()))?;
        value["report"]["cpu_ns"] = json!(if cpu_ns > 0 { cpu_ns } else { wall_ns });
        value["report"]["wall_ns"] = json!(wall_ns);
        told(py, &value)
    }

    /// Ends running blocks soon; they leave nothing behind and say `stopped`.
    fn stop(&self) {
        self.control.stop.store(true, Ordering::Relaxed);
    }

    /// Transactions done since the beginning; callable from another thread.
    fn progress(&self) -> u64 {
        self.control.progress.load(Ordering::Relaxed)
    }
}
