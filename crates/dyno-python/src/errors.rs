//! Conversion of Rust errors to the exceptions of `dbdyno.base.errors`.

use pyo3::prelude::*;

/// Returns an exception of the named class in `dbdyno.base.errors` with this message.
pub(crate) fn raise(py: Python<'_>, kind: &str, message: &str) -> PyErr {
    let made = py
        .import("dbdyno.base.errors")
        .and_then(|module| module.getattr(kind))
        .and_then(|class| class.call1((message,)));
    match made {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}
