//! Python interface of the flash probe: an open file or device on which phases run.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dyno_load::probe::{Flash, FlashSpec, Phase, ProbeError};
use pyo3::prelude::*;

use crate::errors::raise;
use crate::values::{from_python, to_python};

/// File or device that is read and overwritten.
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
    /// Open the file or device that the specification (`FlashSpec` of the stub) names.
    ///
    /// Raises:
    ///     PlanError: The specification is invalid.
    ///     TargetError: The file or device cannot be opened or is refused.
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

    /// Return the number of bytes of the file or device that the probe uses.
    #[getter]
    const fn span_bytes(&self) -> u64 {
        self.span_bytes
    }

    /// Run a phase for `length_ns` and return its report; the interpreter lock is released.
    ///
    /// The rows of the previous phase are written as a part of `calls` in `folder`, named after that phase's block.
    ///
    /// Raises:
    ///     PlanError: There is no such phase.
    ///     TargetError: A request failed, the rows cannot be written, or the probe is closed.
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

    /// Write the rows of the last phase.
    ///
    /// Raises:
    ///     EvidenceError: The evidence cannot be written.
    fn save(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        let saved = py.detach(|| self.flash().as_mut().map_or(Ok(()), |flash| flash.save(&folder)));
        saved.map_err(|e| raise(py, "EvidenceError", &e.to_string()))
    }

    /// Close the file or device; a file that the probe created disappears.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.flash().take()));
    }

    /// Stop a running `run` soon; callable from another thread.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Return the number of requests since the beginning; callable from another thread.
    fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }
}
