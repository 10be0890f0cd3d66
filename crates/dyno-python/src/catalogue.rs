//! The catalogue of wait events for Python.

use dyno_evidence::catalogue::{self, Class, Engine};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// (event, class, engine's own class, versions)
type Row = (&'static str, &'static str, &'static str, &'static str);

fn named(engine: &str) -> PyResult<Engine> {
    Engine::named(engine).ok_or_else(|| {
        let known = Engine::ALL.map(Engine::name).join(", ");
        PyValueError::new_err(format!("{engine:?} has no catalogue of wait events; there are {known}"))
    })
}

/// The class of a wait event, by the engine (`oracle`, `postgresql`, `mariadb`), the engine's own class and the name.
#[pyfunction]
pub(crate) fn wait_class(engine: &str, engine_class: &str, event: &str) -> PyResult<&'static str> {
    Ok(catalogue::class_of(named(engine)?, engine_class, event).name())
}

/// The classes that all engines share.
#[pyfunction]
pub(crate) fn wait_classes() -> Vec<&'static str> {
    Class::ALL.map(Class::name).to_vec()
}

/// The catalogue of an engine: (event, class, engine's own class, versions); `%` stands for any text.
#[pyfunction]
pub(crate) fn wait_events(engine: &str) -> PyResult<Vec<Row>> {
    let rows = catalogue::events(named(engine)?).iter();
    Ok(rows.map(|row| (row.event, row.class.name(), row.engine_class, row.versions)).collect())
}
