//! Python interface of modelled devices: mounted folders, and the descriptions of devices.

use dyno_device::DeviceError;
use dyno_device::devices::{Model, built_in};
use dyno_device::mount::{Mount, MountSpec};
use dyno_device::replay::{Recorded, replay};
use dyno_model::device::Request;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raise;
use crate::model::refused;
use crate::values::{from_python, to_python};

fn failed(py: Python<'_>, error: &DeviceError) -> PyErr {
    match error {
        DeviceError::Machine(error) => refused(py, error),
        other => raise(py, "DeviceError", &other.to_string()),
    }
}

/// Return names and descriptions (TOML) of the built-in devices.
#[pyfunction]
pub(crate) fn device_texts() -> Vec<(&'static str, &'static str)> {
    built_in().collect()
}

/// Return the times of reads (`True`) or writes of `bytes` on the idle device, in virtual time [ns].
///
/// Raises:
///     ModelError: The description or a setting is invalid.
#[pyfunction]
pub(crate) fn device_alone_ns(
    py: Python<'_>,
    toml: &str,
    settings: Vec<(String, String)>,
    reads: bool,
    bytes: u64,
) -> PyResult<u64> {
    let request = if reads { Request::read(0, bytes) } else { Request::write(0, bytes) };
    let model = Model::new(toml, &settings, 0).map_err(|error| refused(py, &error))?;
    py.detach(|| model.alone_ns(request)).map_err(|error| failed(py, &error))
}

/// Return the time of each recorded request on the device in virtual time, as little-endian u64 [ns].
///
/// `arrived_ns` (not falling), `offsets` and `sizes` are little-endian u64, `reads` one byte each, all of one length.
///
/// Raises:
///     ModelError: The description or a setting is invalid.
///     DeviceError: The columns have different lengths, or the device does not complete the requests.
#[pyfunction]
#[pyo3(signature = (toml, settings, columns, seed))]
pub(crate) fn device_replay<'py>(
    py: Python<'py>,
    toml: &str,
    settings: Vec<(String, String)>,
    columns: (Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>),
    seed: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    let model = Model::new(toml, &settings, seed).map_err(|error| refused(py, &error))?;
    let (arrived_ns, reads, offsets, sizes) = columns;
    let [arrived_ns, offsets, sizes] = [arrived_ns, offsets, sizes].map(|bytes| numbers(&bytes));
    if [reads.len(), offsets.len(), sizes.len()] != [arrived_ns.len(); 3] {
        return Err(raise(py, "DeviceError", "the columns of the requests differ in length"));
    }
    let requests: Vec<_> = (0..reads.len())
        .map(|at| {
            let (offset, bytes) = (offsets[at], sizes[at].max(1));
            let request = if reads[at] != 0 { Request::read(offset, bytes) } else { Request::write(offset, bytes) };
            Recorded { arrived_ns: arrived_ns[at], request }
        })
        .collect();
    let found = py.detach(|| replay(&model, &requests)).map_err(|error| failed(py, &error))?;
    let bytes: Vec<u8> = found.into_iter().flat_map(u64::to_le_bytes).collect();
    Ok(PyBytes::new(py, &bytes))
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|eight| u64::from_le_bytes(eight.try_into().unwrap_or_default())).collect()
}

/// A folder mounted on a modelled device.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct DeviceMount {
    mount: Mount,
}

#[pymethods]
impl DeviceMount {
    /// Mount a folder by its specification (`DeviceSpec` of the stub).
    ///
    /// Raises:
    ///     DeviceError: The system refuses, or the device is faster than the way through the kernel.
    ///     ModelError: The description or a setting is invalid.
    #[new]
    fn new(py: Python<'_>, spec: &Bound<'_, PyAny>) -> PyResult<Self> {
        let spec: MountSpec = from_python(spec).map_err(|error| raise(py, "DeviceError", &error.to_string()))?;
        let mount = py.detach(|| Mount::new(spec)).map_err(|error| failed(py, &error))?;
        Ok(Self { mount })
    }

    /// Return the state of the mount (`DeviceStatus` of the stub).
    fn status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.mount.status()).map_err(|error| raise(py, "DeviceError", &error.to_string()))
    }

    /// Return the faults that happened, in order.
    fn faults<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.mount.faults()).map_err(|error| raise(py, "DeviceError", &error.to_string()))
    }

    /// Return the number of changes of files and folders so far.
    fn changes(&self) -> u64 {
        self.mount.changes()
    }

    /// Make the power fail at the first change after the next `changes` ones.
    fn arm(&self, changes: u64) {
        self.mount.arm(changes);
    }

    /// Return True if the power is off.
    fn is_off(&self) -> bool {
        self.mount.is_off()
    }

    /// Cut the power, keep of the unsynced data what `seed` decides, and return the losses.
    ///
    /// Raises:
    ///     DeviceError: The folder was mounted without power cuts, or a file below cannot be written.
    fn cut<'py>(&self, py: Python<'py>, seed: u64, sector_bytes: u64) -> PyResult<Bound<'py, PyAny>> {
        let lost = py.detach(|| self.mount.cut(seed, sector_bytes)).map_err(|error| failed(py, &error))?;
        to_python(py, &lost).map_err(|error| raise(py, "DeviceError", &error.to_string()))
    }

    /// Return True if the folder is no longer mounted.
    fn has_ended(&self) -> bool {
        self.mount.has_ended()
    }

    /// Unmount the folder; the data stay in the underlying folder. With `at_once`, also while programs use it.
    ///
    /// Raises:
    ///     DeviceError: A program still uses the folder; it stays mounted.
    #[pyo3(signature = (at_once = false))]
    fn unmount(&self, py: Python<'_>, at_once: bool) -> PyResult<()> {
        py.detach(|| self.mount.unmount(at_once)).map_err(|error| failed(py, &error))
    }
}
