//! Python interface of statements without literals.

use pyo3::prelude::*;

/// Return a statement without its literals, as recordings keep it.
#[pyfunction]
pub(crate) fn without_literals(text: &str) -> String {
    dyno_evidence::normal::normal(text.as_bytes())
}
