//! Python interface of mounted folders on systems other than Linux: the same name, which raises an error.

use pyo3::prelude::*;

use crate::errors::raise;

/// A folder mounted on a modelled device, which raises `DeviceError` here.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct DeviceMount {}

#[pymethods]
impl DeviceMount {
    #[new]
    fn new(py: Python<'_>, _spec: &Bound<'_, PyAny>) -> PyResult<Self> {
        Err(raise(py, "DeviceError", "folders are mounted on devices on Linux only"))
    }
}
