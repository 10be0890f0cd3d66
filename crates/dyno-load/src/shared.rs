//! What all threads of a block see, and how a session gets its connection.

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::LoadError;
use crate::clock::Clock;
use crate::gate::Gate;
use crate::plan::{ArmPlan, Plan};
use crate::reactor::{self, Pulse};
use crate::record::ErrorCodes;
use crate::schedule::Arrivals;
use crate::session::{Redo, Seat};
use crate::wire::WireError;
use crate::wire::socket::Control;
use crate::wire::startup::Dialler;
use crate::worker::Quota;

/// What ends a blocked session.
#[derive(Debug)]
pub struct Handle {
    pub control: Control,
    pub process: u32,
    pub key: u32,
}

/// The handles of one session number, one per arm.
pub type Handles = Vec<Mutex<Option<Handle>>>;

/// What all threads of a block see.
pub struct Shared<'a> {
    pub plan: &'a Plan,
    pub diallers: &'a [Option<Dialler>],
    pub handles: &'a [Handles],
    pub arrivals: &'a [Option<Mutex<Arrivals>>],
    pub codes: &'a ErrorCodes,
    pub gate: Gate,
    pub quota: Quota,
    pub clock: Clock,
    pub block: u32,
    pub progress: &'a AtomicU64,
    pub stop: &'a AtomicBool,
    pub abort: AtomicBool,
}

impl Shared<'_> {
    /// Whether the caller wants to stop.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether to stop for any reason.
    #[inline]
    pub fn halted(&self) -> bool {
        self.stopped() || self.abort.load(Ordering::Relaxed)
    }

    /// Ends the block because it cannot go on.
    pub fn abort(&self) {
        self.abort.store(true, Ordering::Relaxed);
    }

    /// Connects a session again.
    pub fn connect(&self, arm: u16, seat: &mut Seat, limit: Option<Duration>) -> Result<(), LoadError> {
        let (session, arm) = (usize::from(seat.number), usize::from(arm));
        let plan = &self.plan.arms[arm];
        match &self.diallers[arm] {
            Some(dialler) => open(plan, dialler, seat, &self.handles[session][arm], limit),
            None => Err(LoadError::spec(&plan.spec.name, "the arm is not connected", "connect it")),
        }
    }

    /// Calls `act` with what ends each session that is at work.
    pub fn each_active(&self, active: &[AtomicU16], act: impl Fn(&ArmPlan, &Handle)) {
        for (active, handles) in active.iter().zip(self.handles) {
            let Some(arm) = usize::from(active.load(Ordering::Acquire)).checked_sub(1) else {
                continue;
            };
            if let Some(handle) = &*handles[arm].lock().unwrap_or_else(PoisonError::into_inner) {
                act(&self.plan.arms[arm], handle);
            }
        }
    }
}

/// Connects a session and prepares it as the arm wants it.
pub fn open(
    arm: &ArmPlan,
    dialler: &Dialler,
    seat: &mut Seat,
    handle: &Mutex<Option<Handle>>,
    limit: Option<Duration>,
) -> Result<(), LoadError> {
    let refused = |e| LoadError::connect(dialler.spec(), e);
    let mut link = dialler.connect(limit).map_err(refused)?;
    // From here on a wish to stop can end it.
    let (process, key) = link.cancel_key();
    let control = link.control().map_err(refused)?;
    *handle.lock().unwrap_or_else(PoisonError::into_inner) = Some(Handle { control, process, key });
    let timeout = arm.spec.statement_timeout_ms.map(|ms| format!("set statement_timeout = {ms}"));
    for sql in arm.spec.session_sql.iter().chain(&timeout) {
        let reply = reactor::finish(link.run(sql, &Pulse::blocking()));
        let error = match reply.unwrap_or(Err(WireError::Timeout)) {
            Ok(None) => continue,
            Ok(Some(error)) => (*error).into(),
            Err(error) => error,
        };
        let (arm, sql) = (arm.spec.name.clone(), sql.clone());
        return Err(LoadError::SessionSql { arm, sql, source: Box::new(error) });
    }
    link.unblock().map_err(refused)?;
    seat.link = Some(link);
    seat.redo = Redo::default();
    Ok(())
}
