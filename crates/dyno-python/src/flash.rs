//! The flash probe for Python: an open file or device, phase after phase.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dyno_load::probe::{Flash, FlashSpec, Phase, ProbeError};
use pyo3::prelude::*;

use crate::errors::raise;
use crate::values::{from_python, to_python};

/// A file or device that is read and overwritten.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct FlashProbe {
    flash: Mutex<Option<Flash>>,
    stop: AtomicBool,
    progress: AtomicU64,
    span_bytes: u64,
}

impl FlashProbe {
    fn flash(&self) -> MutexGuard<'_, Option<Flash>> {
        self.flash.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl FlashProbe {
    /// Opens what the specification (`FlashSpec` of the stub) names.
    #[new]
    fn new(py: Python<'_>, spec: &Bound<'_, PyAny>) -> PyResult<Self> {
        let spec = from_python::<FlashSpec>(spec).map_err(|e| ProbeError::unreadable(&e));
        let opened = py.detach(|| spec.and_then(Flash::open));
        let flash = opened.map_err(|e| {
            let kind = if matches!(e, ProbeError::Spec { .. }) { "PlanError" } else { "TargetError" };
            raise(py, kind, &e.to_string())
        })?;
        let span_bytes = flash.span_bytes();
        let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
        Ok(Self { flash: Mutex::new(Some(flash)), stop, progress, span_bytes })
    }

    /// Bytes that are used.
    #[getter]
    const fn span_bytes(&self) -> u64 {
        self.span_bytes
    }

    /// Runs a phase for so long [ns]; returns the report. Writes the rows of the phase before it as the part
    /// `calls` of that block below `folder`. Lets go of the interpreter lock.
    fn run<'py>(
        &self,
        py: Python<'py>,
        folder: PathBuf,
        block: u32,
        phase: &str,
        length_ns: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let phase = Phase::ALL.into_iter().find(|one| one.word() == phase);
        let phase = phase.ok_or_else(|| raise(py, "PlanError", "no such phase of a flash probe"))?;
        let result = py.detach(|| {
            let mut guard = self.flash();
            let flash = guard.as_mut()?;
            Some(flash.run(&folder, block, phase, length_ns, &self.stop, &self.progress))
        });
        let report = result
            .ok_or_else(|| raise(py, "TargetError", "the probe is closed"))?
            .map_err(|e| raise(py, "TargetError", &e.to_string()))?;
        to_python(py, &report).map_err(|e| raise(py, "EvidenceError", &e.to_string()))
    }

    /// Writes the rows of the last phase.
    fn save(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        let saved = py.detach(|| self.flash().as_mut().map_or(Ok(()), |flash| flash.save(&folder)));
        saved.map_err(|e| raise(py, "EvidenceError", &e.to_string()))
    }

    /// Lets the file or device go; a file that the probe made is gone with that.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.flash().take()));
    }

    /// Ends a running `run` soon; callable from another thread.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Requests done since the beginning; callable from another thread.
    fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }
}
