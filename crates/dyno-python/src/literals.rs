//! Python interface of the function that removes literals from statements.

use pyo3::prelude::*;

/// Return a statement in the form that recordings store: without its literals.
#[pyfunction]
pub(crate) fn without_literals(text: &str) -> String {
    dyno_evidence::normal::normal(text.as_bytes())
}
