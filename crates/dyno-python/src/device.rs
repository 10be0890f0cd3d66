//! Python interface of modelled devices in virtual time, and their descriptions.

use dyno_device::DeviceError;
use dyno_device::devices::{Model, built_in};
use dyno_device::replay::{Recorded, replay};
use dyno_model::device::Request;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raise;
use crate::model::refused;

pub(crate) fn failed(py: Python<'_>, error: &DeviceError) -> PyErr {
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

/// Return the time of a read (if `reads` is True) or a write of `bytes` on the idle device, in virtual time [ns].
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

/// Return the time that the device takes for each recorded request in virtual time, as little-endian u64 [ns].
///
/// The columns are `arrived_ns` (in ascending order), `offsets` and `sizes`, each as little-endian u64, and `reads`
/// with one byte per request; all have the same number of requests.
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
