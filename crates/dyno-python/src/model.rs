//! Python interface of the model: machines as text and as tables, runs block by block, fits to measurements.

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

/// Returns the error as a `dbdyno.base.errors.ModelError`.
pub(crate) fn refused(py: Python<'_>, error: &MachineError) -> PyErr {
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

/// Return the names of the built-in machines.
#[pyfunction]
pub(crate) fn model_machines() -> Vec<&'static str> {
    built_in_names().collect()
}

/// Return the text (TOML) of a built-in machine.
///
/// Raises:
///     ModelError: There is no machine of this name.
#[pyfunction]
pub(crate) fn model_machine(py: Python<'_>, name: &str) -> PyResult<&'static str> {
    built_in(name).map_err(|error| refused(py, &error))
}

/// Check a machine (TOML) and return its title, databases, parts and parameters.
///
/// Raises:
///     ModelError: The machine is invalid; the error has line, key and what is allowed.
#[pyfunction]
pub(crate) fn model_check<'py>(py: Python<'py>, toml: &str) -> PyResult<Bound<'py, PyAny>> {
    let machine = Machine::parse(toml).map_err(|error| refused(py, &error))?;
    to_python(py, &machine.describe()).map_err(|error| raise(py, "ModelError", &error.to_string()))
}

/// Fit an empirical device to latencies and return the report.
///
/// Args:
///     latencies_us: Little-endian 64-bit floats [us], in the order of measurement.
///     started_ns: Little-endian 64-bit whole numbers, the start of each operation [ns]; if they are passed, the
///         length of a stay in a regime is measured in time.
///
/// Raises:
///     ModelError: A latency is not a finite number, or the device cannot be fitted.
#[pyfunction]
#[pyo3(signature = (latencies_us, started_ns = None))]
pub(crate) fn model_calibrate<'py>(
    py: Python<'py>,
    latencies_us: &[u8],
    started_ns: Option<&[u8]>,
) -> PyResult<Bound<'py, PyAny>> {
    let (whole, rest) = latencies_us.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(raise(py, "ModelError", "latencies are 8 bytes each"));
    }
    let values: Vec<f64> = whole.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        return Err(raise(py, "ModelError", &format!("latency {at} is not a number")));
    }
    let started: Option<Vec<i64>> =
        started_ns.map(|bytes| bytes.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect());
    if started.as_ref().is_some_and(|started| started.len() != values.len()) {
        return Err(raise(py, "ModelError", "as many starts as latencies"));
    }
    let fitted = py.detach(|| report(&values, started.as_deref()));
    let fitted = fitted.map_err(|error| raise(py, "ModelError", &error.to_string()))?;
    to_python(py, &fitted).map_err(|error| raise(py, "ModelError", &error.to_string()))
}

/// Returns the CPU time of this thread [ns]; 0 if the system does not report it.
fn thread_cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Arms on a machine, checked and ready; a block is a replication with the same random numbers in all arms.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct ModelRun {
    run: Run,
    control: Control,
}

#[pymethods]
impl ModelRun {
    /// Check a specification (`ModelSpec` of the stub); run nothing.
    ///
    /// Raises:
    ///     ModelError: The specification is invalid.
    #[new]
    fn new(py: Python<'_>, spec: &Bound<'_, PyAny>) -> PyResult<Self> {
        let spec: Spec = from_python(spec).map_err(|error| failed(py, &RunError::Spec(error.to_string())))?;
        let run = py.detach(|| Run::new(spec)).map_err(|error| failed(py, &error))?;
        Ok(Self { run, control: Control::default() })
    }

    /// Run every arm of a block, write its parts to `folder`, and return the report.
    ///
    /// The interpreter lock is released, and several threads may run different blocks at the same time.
    ///
    /// Raises:
    ///     ModelError: The run failed or was stopped.
    ///     EvidenceError: The evidence cannot be written.
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

    /// Stop running blocks soon; they leave nothing behind and raise an error that says `stopped`.
    fn stop(&self) {
        self.control.stop.store(true, Ordering::Relaxed);
    }

    /// Return the number of transactions since the beginning; callable from another thread.
    fn progress(&self) -> u64 {
        self.control.progress.load(Ordering::Relaxed)
    }
}
