//! Python interface of `dyno-load`: one object that owns the sessions and runs them block by block.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dyno_evidence::{Call, CallKind, CallsWriter, Failure, NONE};
use dyno_load::{ArmSpec, Length, LoadError, LoadSpec, Slice};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::raise;
use crate::evidence::column;
use crate::values::{from_python, to_python};

/// Arm, slice, length [ns] or None, and number of transactions or None.
pub(crate) type SliceArgument = (u16, u32, Option<u64>, Option<u64>);

struct State {
    load: dyno_load::Load,
    writer: Option<CallsWriter>,
}

/// Return the CPU time that a thread spends on waking another thread on an idle core [ns], or None where there is only
/// one core.
#[pyfunction]
pub fn wake_cost_ns(py: Python<'_>, messages: u32) -> Option<u64> {
    py.detach(|| dyno_load::wake::wake_cost_ns(messages))
}

/// Return the CPU time of a fixed computation while all other processors compute, divided by its time while they do
/// not; None where there is only one processor.
#[pyfunction]
pub fn busy_ratio(py: Python<'_>, steps: u32) -> Option<f64> {
    py.detach(|| dyno_load::siblings::busy_ratio(steps))
}

/// Return three shares of wake-ups, which show on what processor woken threads run; None with only one processor.
///
/// Returns:
///     The share that runs on the waker's processor, if the thread last ran on another processor, which is busy; the
///     share that runs on an idle processor, if the thread last ran on the waker's processor; and the same share if the
///     idle processor has been idle for two milliseconds.
#[pyfunction]
pub fn placement(py: Python<'_>, trials: u32) -> Option<(f64, f64, f64)> {
    py.detach(|| dyno_load::placement::placement(trials))
}

/// Return MariaDB's own errors as tuples of number, SQLSTATE and name of the condition.
#[pyfunction]
pub(crate) fn mariadb_errors() -> Vec<(u16, &'static str, &'static str)> {
    dyno_load::known_errors().map(|error| (error.number, error.state, error.condition)).collect()
}

/// Return the answer to the challenge of MariaDB's `ed25519` authentication.
#[pyfunction]
pub(crate) fn mariadb_signed(password: &[u8], challenge: &[u8]) -> Vec<u8> {
    dyno_load::mariadb_signed(password, challenge)
}

/// Return an error that an external client reports, without values: its message, and the whole error in one line.
///
/// `known` is text that may be quoted in it.
#[pyfunction]
pub(crate) fn reported_error(code: &str, vendor: u16, text: &str, known: &str) -> (String, String) {
    let error = dyno_load::ServerError::reported(code, vendor, text);
    (error.said(known), error.words(known))
}

/// Failure of an operation: SQLSTATE, MariaDB's error number (0 for none), message without values, and whether it is
/// expected.
type GivenFailure = (String, u16, String, bool);

/// Sessions of all arms; every operation is recorded in the part of the open block.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct Load {
    state: Mutex<State>,
    arms: Vec<String>,
    stop: Arc<AtomicBool>,
    progress: AtomicU64,
}

impl Load {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Load {
    /// Compile the scripts of a specification (`LoadSpec` of the stub); connect nothing.
    ///
    /// Raises:
    ///     PlanError: The specification is invalid, or a script does not parse.
    #[new]
    fn new(py: Python<'_>, spec: &Bound<'_, PyAny>) -> PyResult<Self> {
        let spec = from_python::<LoadSpec>(spec).map_err(|e| LoadError::unreadable(&e));
        let load = spec
            .and_then(|spec| spec.check().map(|()| spec))
            .and_then(|spec| dyno_load::Load::new(&spec))
            .map_err(|e| raise(py, "PlanError", &e.to_string()))?;
        let arms = load.arm_names();
        Ok(Self {
            state: Mutex::new(State { load, writer: None }),
            arms,
            stop: Arc::default(),
            progress: AtomicU64::new(0),
        })
    }

    /// Log in to the server of each arm once, and log out.
    ///
    /// Raises:
    ///     TargetError: A server refuses the login.
    fn try_connect(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.state().load.try_connect(&self.stop)).map_err(|e| raise(py, "TargetError", &e.to_string()))
    }

    /// Open the sessions of an arm that are not open.
    ///
    /// Raises:
    ///     TargetError: A connection fails.
    fn connect(&self, py: Python<'_>, arm: usize) -> PyResult<()> {
        py.detach(|| self.state().load.connect(arm, &self.stop)).map_err(|e| raise(py, "TargetError", &e.to_string()))
    }

    /// Close the sessions of an arm.
    fn disconnect(&self, py: Python<'_>, arm: usize) {
        py.detach(|| self.state().load.disconnect(arm));
    }

    /// Return the numbers by which an arm's server knows its open sessions; waits for a running block.
    fn server_sessions(&self, py: Python<'_>, arm: usize) -> Vec<u32> {
        py.detach(|| self.state().load.server_sessions(arm))
    }

    /// Create the part `<dir>/<name>.parquet` for the next runs.
    ///
    /// Raises:
    ///     EvidenceError: The part cannot be created.
    fn begin_block(&self, py: Python<'_>, dir: PathBuf, name: &str) -> PyResult<()> {
        let mut state = self.state();
        let statements = state.load.statement_names().to_vec();
        let writer = CallsWriter::create(&dir, name, &self.arms, &statements)
            .map_err(|e| raise(py, "EvidenceError", &e.to_string()))?;
        state.writer = Some(writer);
        Ok(())
    }

    /// Run slices of a block and return the report; the interpreter lock is released.
    ///
    /// Args:
    ///     slices: Tuples of arm, slice number, length [ns] or None, and number of transactions or None.
    ///
    /// Raises:
    ///     EvidenceError: No block is open.
    ///     TargetError: The load cannot continue.
    fn run<'py>(&self, py: Python<'py>, block: u32, slices: Vec<SliceArgument>) -> PyResult<Bound<'py, PyAny>> {
        let slices: Vec<Slice> = slices
            .into_iter()
            .map(|(arm, slice, ns, count)| Slice {
                arm,
                slice,
                length: match count {
                    Some(count) => Length::Transactions(count),
                    None => Length::DurationNs(ns.unwrap_or(0)),
                },
            })
            .collect();
        let result = py.detach(|| {
            let mut guard = self.state();
            let State { load, writer } = &mut *guard;
            let writer = writer.as_mut()?;
            Some(load.run(block, &slices, writer, &self.stop, &self.progress))
        });
        let report = result
            .ok_or_else(|| raise(py, "EvidenceError", "run outside of a block"))?
            .map_err(|e| raise(py, "TargetError", &e.to_string()))?;
        to_python(py, &report).map_err(|e| raise(py, "EvidenceError", &e.to_string()))
    }

    /// Return the names of scripts and commands of all arms; `statement` in `add_calls` is an index into them.
    fn statement_names(&self) -> Vec<String> {
        self.state().load.statement_names().to_vec()
    }

    /// Add operations that another program timed to the part of the open block.
    ///
    /// Args:
    ///     columns: A dict of equally long lists: `slice`, `session`, `statement`, `kind` (as `CallKind`),
    ///         `started_ns`, `elapsed_ns`, `rows` and `intended_ns` (negative for none), and `error`
    ///         (0, or 1 + index in `failures`).
    ///
    /// Raises:
    ///     EvidenceError: No block is open, the columns differ in length, or the evidence cannot be written.
    fn add_calls(
        &self,
        py: Python<'_>,
        arm: u16,
        block: u32,
        columns: &Bound<'_, PyDict>,
        failures: Vec<GivenFailure>,
    ) -> PyResult<()> {
        let mut calls: Vec<Call> = column::<i64>(columns, "started_ns")?
            .into_iter()
            .map(|started_ns| Call { arm, block, started_ns, ..Call::new() })
            .collect();
        let columns = Given(columns);
        columns.put(&mut calls, "elapsed_ns", |call, value: i64| call.elapsed_ns = value)?;
        columns.put(&mut calls, "slice", |call, value: u32| call.slice = value)?;
        columns.put(&mut calls, "session", |call, value: u16| call.session = value)?;
        columns.put(&mut calls, "statement", |call, value: u16| call.statement = value)?;
        columns.put(&mut calls, "rows", |call, value: i64| call.rows = if value < 0 { NONE } else { value })?;
        columns.put(&mut calls, "error", |call, value: u8| call.error = value)?;
        columns.put(&mut calls, "intended_ns", |call, value: i64| {
            call.intended_ns = if value < 0 { NONE } else { value };
        })?;
        columns.put(&mut calls, "kind", |call, value: usize| {
            call.kind = CallKind::ALL.get(value).copied().unwrap_or(CallKind::Exec);
        })?;
        let failure = |(code, vendor, message, expected): GivenFailure| Failure {
            code,
            vendor: Some(vendor).filter(|&number| number > 0),
            message: Some(message).filter(|text| !text.is_empty()),
            expected: Some(expected),
        };
        let failures: Vec<Failure> = failures.into_iter().map(failure).collect();
        let written = py.detach(|| self.state().writer.as_mut().map(|writer| writer.push(&calls, &failures)));
        written
            .ok_or_else(|| raise(py, "EvidenceError", "calls outside of a block"))?
            .map_err(|e| raise(py, "EvidenceError", &e.to_string()))
    }

    /// Publish the block's part and return its number of rows; 0 if no block is open.
    ///
    /// Raises:
    ///     EvidenceError: The evidence cannot be written.
    fn end_block(&self, py: Python<'_>) -> PyResult<u64> {
        let writer = self.state().writer.take();
        match writer {
            Some(writer) => py.detach(|| writer.finish()).map_err(|e| raise(py, "EvidenceError", &e.to_string())),
            None => Ok(0),
        }
    }

    /// Discard the open block.
    fn abandon_block(&self) {
        self.state().writer = None;
    }

    /// Stop a running `run` or `connect` soon; callable from another thread.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Return the number of transactions since the beginning; callable from another thread.
    fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }
}

/// Columns of calls, each as long as the first.
struct Given<'a, 'py>(&'a Bound<'py, PyDict>);

impl Given<'_, '_> {
    fn put<T>(&self, calls: &mut [Call], name: &str, set: impl Fn(&mut Call, T)) -> PyResult<()>
    where
        T: for<'a, 'py> FromPyObject<'a, 'py>,
    {
        let values: Vec<T> = column(self.0, name)?;
        if values.len() != calls.len() {
            return Err(raise(self.0.py(), "EvidenceError", "the columns of calls are not equally long"));
        }
        calls.iter_mut().zip(values).for_each(|(call, value)| set(call, value));
        Ok(())
    }
}

/// Generator that draws an arm's transactions, for a client that is another program.
#[pyclass(module = "dbdyno._core")]
pub(crate) struct Drawer(dyno_load::Drawer);

#[pymethods]
impl Drawer {
    /// Compile the scripts of an arm (`LoadArm` of the stub).
    ///
    /// Raises:
    ///     PlanError: A script does not parse, or no other client can run it.
    #[new]
    fn new(py: Python<'_>, arm: &Bound<'_, PyAny>, seed: u64) -> PyResult<Self> {
        let arm = from_python::<ArmSpec>(arm).map_err(|e| LoadError::unreadable(&e));
        arm.and_then(|arm| dyno_load::Drawer::new(&arm, seed))
            .map(Self)
            .map_err(|e| raise(py, "PlanError", &e.to_string()))
    }

    /// Return the distinct SQL commands as dicts of `name`, `kind` and the `pieces` between their values.
    fn statements<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.0.statements()).map_err(|e| raise(py, "PlanError", &e.to_string()))
    }

    /// Return the scripts as dicts, with `name` and whether each is a `single` command.
    fn scripts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.scripts()).map_err(|e| raise(py, "PlanError", &e.to_string()))
    }

    /// Return True if transactions can differ from each other.
    fn varies(&self) -> bool {
        self.0.varies()
    }

    /// Draw the next transactions of a session.
    ///
    /// Returns:
    ///     Dicts of `script` and `steps`: a statement's index and its values, or None and the microseconds of a pause.
    ///
    /// Raises:
    ///     PlanError: An expression has no value, or a script does not end.
    fn draw<'py>(&mut self, py: Python<'py>, session: usize, count: usize) -> PyResult<Bound<'py, PyAny>> {
        let drawn = self.0.draw(session, count).map_err(|e| raise(py, "PlanError", &e.to_string()))?;
        to_python(py, &drawn).map_err(|e| raise(py, "PlanError", &e.to_string()))
    }
}

/// Compile a script in pgbench's syntax and return its number of SQL commands.
///
/// Raises:
///     PlanError: The script does not parse; the message has line and column.
#[pyfunction]
pub(crate) fn check_script(py: Python<'_>, name: &str, text: &str) -> PyResult<usize> {
    let script =
        dyno_script::Compiler::new().compile(name, text).map_err(|e| raise(py, "PlanError", &e.to_string()))?;
    Ok(script.sql_commands())
}
