//! Python interface of the catalogue of wait events.

use dyno_evidence::catalogue::{self, Class, Engine};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Event, class, the engine's own class, and versions.
type Row = (&'static str, &'static str, &'static str, &'static str);

fn named(engine: &str) -> PyResult<Engine> {
    Engine::named(engine).ok_or_else(|| {
        let known = Engine::ALL.map(Engine::name).join(", ");
        PyValueError::new_err(format!("{engine:?} has no catalogue of wait events; there are {known}"))
    })
}

/// Return the class of a wait event.
///
/// Args:
///     engine: `oracle`, `postgresql` or `mariadb`.
///     engine_class: The engine's own class of the event.
///     event: The name of the event.
///
/// Raises:
///     ValueError: The engine has no catalogue of wait events.
#[pyfunction]
pub(crate) fn wait_class(engine: &str, engine_class: &str, event: &str) -> PyResult<&'static str> {
    Ok(catalogue::class_of(named(engine)?, engine_class, event).name())
}

/// Return the names of the classes that all engines share.
#[pyfunction]
pub(crate) fn wait_classes() -> Vec<&'static str> {
    Class::ALL.map(Class::name).to_vec()
}

/// Return the catalogue of an engine.
///
/// Returns:
///     Tuples of event, class, the engine's own class, and versions; `%` in an event stands for any text.
///
/// Raises:
///     ValueError: The engine has no catalogue of wait events.
#[pyfunction]
pub(crate) fn wait_events(engine: &str) -> PyResult<Vec<Row>> {
    let rows = catalogue::events(named(engine)?).iter();
    Ok(rows.map(|row| (row.event, row.class.name(), row.engine_class, row.versions)).collect())
}
