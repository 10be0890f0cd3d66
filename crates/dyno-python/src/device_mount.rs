//! Python interface of folders mounted on modelled devices.

use dyno_device::mount::{Mount, MountSpec};
use pyo3::prelude::*;

use crate::device::failed;
use crate::errors::raise;
use crate::values::{from_python, to_python};

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
    ///     DeviceError: The system refuses, or the device is faster than the path through the kernel.
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

    /// Make the power fail after `changes` more changes: at the first change that follows them.
    fn arm(&self, changes: u64) {
        self.mount.arm(changes);
    }

    /// Return True if the power is off.
    fn is_off(&self) -> bool {
        self.mount.is_off()
    }

    /// Cut the power, keep a random part of the unsynced data, which depends on `seed`, and return the losses.
    ///
    /// Raises:
    ///     DeviceError: The folder was mounted without power cuts, or a file in the underlying folder cannot be
    ///         written.
    fn cut<'py>(&self, py: Python<'py>, seed: u64, sector_bytes: u64) -> PyResult<Bound<'py, PyAny>> {
        let lost = py.detach(|| self.mount.cut(seed, sector_bytes)).map_err(|error| failed(py, &error))?;
        to_python(py, &lost).map_err(|error| raise(py, "DeviceError", &error.to_string()))
    }

    /// Return True if the folder is no longer mounted.
    fn has_ended(&self) -> bool {
        self.mount.has_ended()
    }

    /// Unmount the folder; the data stay in the underlying folder. With `at_once`, unmount it even while programs use
    /// it.
    ///
    /// Raises:
    ///     DeviceError: A program still uses the folder; it stays mounted.
    #[pyo3(signature = (at_once = false))]
    fn unmount(&self, py: Python<'_>, at_once: bool) -> PyResult<()> {
        py.detach(|| self.mount.unmount(at_once)).map_err(|error| failed(py, &error))
    }
}
