//! The model for Python: machines as text and as tables, runs block by block, fits to measurements.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;

use dyno_model::device::calibrate::report;
use dyno_model::machine::{Machine, MachineError, built_in, built_in_names};
use dyno_model::run::{Control, Run, RunError, Spec};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::raise;
use crate::values::{from_python, to_python};

/// A `dbdyno.base.errors.ModelError`.
fn refused(py: Python<'_>, error: &MachineError) -> PyErr {
    let made = || -> PyResult<Bound<'_, PyAny>> {
        let named = PyDict::new(py);
        if !error.place.is_empty() {
            named.set_item("where", &error.place)?;
        }
        if !error.next_step.is_empty() {
            named.set_item("next_step", &error.next_step)?;
        }
        let class = py.import("dbdyno.base.errors")?.getattr("ModelError")?;
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

/// Checks a machine (TOML); returns its title, databases, parts and parameters. Raises `ModelError`
/// with line, key and what is allowed.
#[pyfunction]
pub(crate) fn model_check<'py>(py: Python<'py>, toml: &str) -> PyResult<Bound<'py, PyAny>> {
    let machine = Machine::parse(toml).map_err(|error| refused(py, &error))?;
    to_python(py, &machine.describe()).map_err(|error| raise(py, "ModelError", &error.to_string()))
}

/// Fits an empirical device to latencies (bytes of little-endian floats, us, in the order measured);
/// returns the report. Raises `ModelError`.
#[pyfunction]
pub(crate) fn model_calibrate<'py>(py: Python<'py>, latencies_us: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let (whole, rest) = latencies_us.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(raise(py, "ModelError", "latencies are 8 bytes each"));
    }
    let values: Vec<f64> = whole.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        return Err(raise(py, "ModelError", &format!("latency {at} is not a number")));
    }
    let fitted = py.detach(|| report(&values));
    let fitted = fitted.map_err(|error| raise(py, "ModelError", &error.to_string()))?;
    to_python(py, &fitted).map_err(|error| raise(py, "ModelError", &error.to_string()))
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
    /// Reads a specification (`ModelSpec` of the stub) and checks everything; runs nothing. Raises `ModelError`.
    #[new]
    fn new(py: Python<'_>, spec: &Bound<'_, PyAny>) -> PyResult<Self> {
        let spec: Spec = from_python(spec).map_err(|error| failed(py, &RunError::Spec(error.to_string())))?;
        let run = py.detach(|| Run::new(spec)).map_err(|error| failed(py, &error))?;
        Ok(Self { run, control: Control::default() })
    }

    /// Runs every arm of a block and writes its parts below `folder`; returns the report.
    /// Lets go of the interpreter lock; several threads may each run another block at once.
    fn block<'py>(&self, py: Python<'py>, index: u32, folder: PathBuf) -> PyResult<Bound<'py, PyAny>> {
        let begin = Instant::now();
        let timed = || {
            let cpu_ns = thread_cpu_ns();
            let block = self.run.block(index, &folder, &self.control)?;
            Ok((block, thread_cpu_ns().saturating_sub(cpu_ns)))
        };
        let (block, cpu_ns) = py.detach(timed).map_err(|error| failed(py, &error))?;
        let wall_ns = begin.elapsed().as_nanos() as u64;
        let value = to_python(py, &block).map_err(|error| raise(py, "ModelError", &error.to_string()))?;
        let report = value.get_item("report")?;
        report.set_item("cpu_ns", if cpu_ns > 0 { cpu_ns } else { wall_ns })?;
        report.set_item("wall_ns", wall_ns)?;
        Ok(value)
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
