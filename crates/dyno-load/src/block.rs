//! What all threads of a block see, and how a session gets its connection.

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

/// What ends a blocked session.
#[derive(Debug)]
pub struct Handle {
    pub control: Control,
    pub process: u32,
    pub key: u32,
}

/// What a session does just now, for who ends what blocks.
#[derive(Debug, Default)]
pub struct Activity {
    /// 1 + number of the arm at work, 0 for none.
    arm: AtomicU16,
    /// Since when it waits for an answer [ns since the epoch], 0 if it does not.
    since_ns: AtomicI64,
}

impl Activity {
    /// The session takes a turn of this arm.
    pub fn begin(&self, arm: u16) {
        self.arm.store(arm + 1, Ordering::Release);
    }

    /// The turn is over.
    pub fn end(&self) {
        self.arm.store(0, Ordering::Release);
        self.answered();
    }

    /// A question goes out.
    #[inline]
    pub fn ask(&self, now_ns: i64) {
        self.since_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Since when it waits for an answer, 0 if it does not.
    fn since_ns(&self) -> i64 {
        self.since_ns.load(Ordering::Relaxed)
    }

    /// Its answer is there.
    #[inline]
    pub fn answered(&self) {
        self.since_ns.store(0, Ordering::Relaxed);
    }
}

/// The handles of one session number, one per arm.
pub type Handles = Vec<Mutex<Option<Handle>>>;

/// What all threads of a block see.
pub struct Block<'a> {
    pub plan: &'a Plan,
    pub diallers: &'a [Option<Dialler>],
    pub handles: &'a [Handles],
    pub arrivals: &'a [Option<Mutex<Arrivals>>],
    pub failures: &'a Failures,
    pub gate: Gate,
    pub quota: Quota,
    pub clock: Clock,
    /// Number of the block.
    pub number: u32,
    pub progress: &'a AtomicU64,
    pub stop: &'a Arc<AtomicBool>,
    pub abort: AtomicBool,
}

impl Block<'_> {
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
    pub fn connect(&self, arm: u16, state: &mut SessionState, limit: Option<Duration>) -> Result<(), LoadError> {
        let (session, arm) = (usize::from(state.number), usize::from(arm));
        let plan = &self.plan.arms[arm];
        match &self.diallers[arm] {
            Some(dialler) => open(plan, dialler, state, &self.handles[session][arm], limit, self.stop),
            None => Err(LoadError::spec(&plan.spec.name, "the arm is not connected", "connect it")),
        }
    }

    /// Calls `act` with what ends each session that is at work.
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

    /// Ends the sessions whose answer is overdue. The server ends a statement at its
    /// `statement_timeout`; a server or a network that is gone does not.
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

/// So long a session without a limit to its statements waits, before the server is asked by another way whether it
/// works for it still.
const SILENT_NS: i64 = 15_000_000_000;
/// How long that answer may take.
const ASKED_FOR: Duration = Duration::from_secs(5);

/// When the server was last asked about each session.
pub struct Asked(Vec<i64>);

impl Asked {
    /// About none so far.
    pub fn new(sessions: usize) -> Self {
        Self(vec![0; sessions])
    }
}

impl Block<'_> {
    /// Ends sessions whose statement may take as long as it wants, where a server that is asked by another way does not
    /// know them, waits for them, or does not answer: a network that went silent acknowledges, and passes nothing on.
    pub fn end_unknown(&self, activities: &[Activity], asked: &mut Asked) {
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
            // A pooler numbers sessions by itself, or not at all: there an answer is all that can be had.
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

/// Connects a session and prepares it as the arm wants it.
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
    // From here on a wish to stop can end it.
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
