//! State that all threads of a block share, and the (re)connection of a session.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::LoadError;
use crate::clock::Clock;
use crate::dialler::Dialler;
use crate::gate::Gate;
use crate::plan::{ArmPlan, Plan};
use crate::reactor::{self, Pulse};
use crate::record::Failures;
use crate::schedule::Arrivals;
use crate::session_state::{LogPosition, SessionState};
use crate::slice::Quota;
use crate::wire::WireError;
use crate::wire::socket::Control;

/// What another thread needs to cancel or close a blocked session.
#[derive(Debug)]
pub struct Handle {
    pub control: Control,
    pub process: u32,
    pub key: u32,
}

/// What a session is doing now, for the thread that ends blocked sessions.
#[derive(Debug, Default)]
pub struct Activity {
    /// 1 + number of the arm whose slice the session runs; 0 for none.
    arm: AtomicU16,
    /// Start of the wait for the server's answer [ns since the epoch]; 0 while the session does not wait.
    since_ns: AtomicI64,
}

impl Activity {
    /// Marks the start of the session's part in a slice of this arm.
    pub fn begin(&self, arm: u16) {
        self.arm.store(arm + 1, Ordering::Release);
    }

    /// Marks the end of the session's part in a slice.
    pub fn end(&self) {
        self.arm.store(0, Ordering::Release);
        self.answered();
    }

    /// Marks that a request is sent at `now_ns` [ns since the epoch]; the wait for its answer begins.
    #[inline]
    pub fn ask(&self, now_ns: i64) {
        self.since_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Returns the start of the wait for an answer [ns since the epoch], or 0 if the session does not wait.
    fn since_ns(&self) -> i64 {
        self.since_ns.load(Ordering::Relaxed)
    }

    /// Marks that the answer has arrived.
    #[inline]
    pub fn answered(&self) {
        self.since_ns.store(0, Ordering::Relaxed);
    }
}

/// Handles of all sessions that have the same number: one entry per arm.
pub type Handles = Vec<Mutex<Option<Handle>>>;

/// State that all threads of a block share.
pub struct Block<'a> {
    pub plan: &'a Plan,
    pub diallers: &'a [Option<Dialler>],
    pub handles: &'a [Handles],
    pub arrivals: &'a [Option<Mutex<Arrivals>>],
    pub failures: &'a Failures,
    pub gate: Gate,
    pub quota: Quota,
    pub clock: Clock,
    /// Block number.
    pub number: u32,
    pub progress: &'a AtomicU64,
    pub stop: &'a Arc<AtomicBool>,
    pub abort: AtomicBool,
}

impl Block<'_> {
    /// Returns true once the caller has requested a stop.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns true if the block must end because the caller requested it or because the block was aborted.
    #[inline]
    pub fn halted(&self) -> bool {
        self.stopped() || self.abort.load(Ordering::Relaxed)
    }

    /// Aborts the block because it cannot continue.
    pub fn abort(&self) {
        self.abort.store(true, Ordering::Relaxed);
    }

    /// Reconnects a session of an arm.
    ///
    /// `limit` is an additional timeout; the shorter of `limit` and the connection's own timeout applies.
    ///
    /// # Errors
    /// The connection or a statement of `session_sql` fails, or the arm has no dialler.
    pub fn connect(&self, arm: u16, state: &mut SessionState, limit: Option<Duration>) -> Result<(), LoadError> {
        let (session, arm) = (usize::from(state.number), usize::from(arm));
        let plan = &self.plan.arms[arm];
        match &self.diallers[arm] {
            Some(dialler) => open(plan, dialler, state, &self.handles[session][arm], limit, self.stop),
            None => Err(LoadError::spec(&plan.spec.name, "the arm is not connected", "connect it")),
        }
    }

    /// Calls `act` with the dialler and the handle of each session that is running a slice.
    pub fn each_active(&self, activities: &[Activity], act: impl Fn(&Dialler, &Handle)) {
        for (activity, handles) in activities.iter().zip(self.handles) {
            let Some(arm) = usize::from(activity.arm.load(Ordering::Acquire)).checked_sub(1) else {
                continue;
            };
            let handle = handles[arm].lock().unwrap_or_else(PoisonError::into_inner);
            if let (Some(handle), Some(dialler)) = (&*handle, &self.diallers[arm]) {
                act(dialler, handle);
            }
        }
    }

    /// Closes the sockets of sessions whose answer is overdue.
    ///
    /// A live server ends a statement at `statement_timeout`; nothing ends it if the server or the network has failed.
    pub fn end_overdue(&self, activities: &[Activity]) {
        let now_ns = self.clock.now_ns();
        for (activity, handles) in activities.iter().zip(self.handles) {
            let since_ns = activity.since_ns();
            let Some(arm) = usize::from(activity.arm.load(Ordering::Acquire)).checked_sub(1) else {
                continue;
            };
            let Some(limit_ns) = self.plan.arms[arm].answer_limit_ns() else { continue };
            if since_ns > 0
                && now_ns - since_ns > limit_ns
                && let Some(handle) = &*handles[arm].lock().unwrap_or_else(PoisonError::into_inner)
            {
                handle.control.shut_down();
            }
        }
    }
}

/// Time without an answer [ns] after which the server is asked, on another connection, whether it still works for a
/// session.
///
/// Applies to sessions without a statement timeout.
const SILENT_NS: i64 = 15_000_000_000;
/// Timeout of the query that asks the server whether it still works for a silent session.
const ASKED_FOR: Duration = Duration::from_secs(5);

/// Time of the last query to the server about each session [ns since the epoch]; 0 for never.
pub struct LastQueries(Vec<i64>);

impl LastQueries {
    /// Creates the record for this number of sessions; the server has not been queried about any of them yet.
    pub fn new(sessions: usize) -> Self {
        Self(vec![0; sessions])
    }
}

impl Block<'_> {
    /// Closes silent sessions that have no statement timeout and that the server no longer works for.
    ///
    /// The server is asked on another connection. A session is closed if the server does not know it, is waiting for
    /// it, or does not answer. TCP alone cannot detect this: a broken network can acknowledge bytes and deliver
    /// nothing.
    pub fn end_unknown(&self, activities: &[Activity], asked: &mut LastQueries) {
        let now_ns = self.clock.now_ns();
        for (number, arm) in self.plan.arms.iter().enumerate() {
            let (Some(dialler), None) = (&self.diallers[number], arm.answer_limit_ns()) else { continue };
            let waiting = (0..activities.len()).filter_map(|at| {
                let (activity, since_ns) = (&activities[at], activities[at].since_ns());
                let is_own = usize::from(activity.arm.load(Ordering::Acquire)) == number + 1;
                let is_silent = since_ns > 0 && now_ns - since_ns.max(asked.0[at]) > SILENT_NS;
                let handle = self.handles[at].get(number)?.lock().unwrap_or_else(PoisonError::into_inner);
                let process = handle.as_ref()?.process;
                (is_own && is_silent).then_some((at, since_ns, process))
            });
            let waiting: Vec<_> = waiting.collect();
            if waiting.is_empty() {
                continue;
            }
            // A pooler numbers sessions itself, or not at all: then only whether the server answers can be checked.
            let is_numbered = !arm.spec.pooled && waiting.iter().all(|one| one.2 > 0);
            let processes: Vec<u32> = waiting.iter().filter(|_| is_numbered).map(|one| one.2).collect();
            let known = dialler.at_work(&processes, ASKED_FOR);
            for (place, &(at, since_ns, _)) in waiting.iter().enumerate() {
                asked.0[at] = self.clock.now_ns();
                let is_known = known.as_ref().is_ok_and(|known| known.get(place).copied().unwrap_or(true));
                if !is_known
                    && activities[at].since_ns() == since_ns
                    && let Some(handle) = &*self.handles[at][number].lock().unwrap_or_else(PoisonError::into_inner)
                {
                    handle.control.shut_down();
                }
            }
        }
    }
}

/// Connects a session and runs the arm's `session_sql` on it.
///
/// `handle` allows another thread to close the connection, from the first connection attempt on.
///
/// # Errors
/// The connection fails, the server refuses a statement of `session_sql`, or `stop` was set.
pub fn open(
    arm: &ArmPlan,
    dialler: &Dialler,
    state: &mut SessionState,
    handle: &Mutex<Option<Handle>>,
    limit: Option<Duration>,
    stop: &Arc<AtomicBool>,
) -> Result<(), LoadError> {
    let refused = |e| LoadError::connect(dialler.spec(), e);
    let hold = |control, (process, key)| {
        *handle.lock().unwrap_or_else(PoisonError::into_inner) = Some(Handle { control, process, key });
    };
    // From here on a request to stop can end the connection attempt.
    let severed = Arc::new(AtomicBool::new(false));
    hold(Control::ahead(&severed), (0, 0));
    let mut link = dialler.connect(limit, stop, &severed).map_err(refused)?;
    hold(link.control().map_err(refused)?, link.cancel_key());
    for sql in arm.session_sql() {
        let reply = reactor::finish(link.run(&sql, &Pulse::blocking()));
        let error = match reply.unwrap_or(Err(WireError::Timeout)) {
            Ok(None) => continue,
            Ok(Some(error)) => (*error).into(),
            Err(error) => error,
        };
        return Err(LoadError::session_sql(&arm.spec.name, &sql, error));
    }
    link.unblock();
    state.link = Some(link);
    state.redo = LogPosition::default();
    Ok(())
}
