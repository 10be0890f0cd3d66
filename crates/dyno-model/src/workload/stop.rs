//! Warm-up and end of sessions.

use std::cell::Cell;
use std::rc::Rc;

use crate::database::{Instance, Session};
use crate::kernel::{Latch, Sim};

/// Limit of sessions after the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Number of transactions of each session.
    Transactions(u64),
    /// Time after the end of the warm-up at which sessions stop beginning transactions [ns].
    TimeNs(u64),
    /// No limit; a run does not wait for the end of such sessions.
    Never,
}

/// Warm-up and end of the sessions of a workload.
#[derive(Clone)]
pub struct Stop {
    warmup: u64,
    limit: Limit,
    when_warm: Option<Rc<dyn Fn()>>,
    when_first_ends: Option<Rc<dyn Fn()>>,
}

impl Stop {
    /// Returns a stop with this limit, which applies after a warm-up of `warmup` transactions of each session that are
    /// not counted.
    pub fn new(warmup: u64, limit: Limit) -> Self {
        Self { warmup, limit, when_warm: None, when_first_ends: None }
    }

    /// Returns a stop with neither warm-up nor limit: the sessions serve as load for others.
    pub fn never() -> Self {
        Self::new(0, Limit::Never)
    }

    pub(super) fn is_never(&self) -> bool {
        self.limit == Limit::Never
    }

    /// Sets an action for the end of the warm-up.
    #[must_use]
    pub fn when_warm(mut self, what: impl Fn() + 'static) -> Self {
        self.when_warm = Some(Rc::new(what));
        self
    }

    /// Sets an action for the end of the first session; until then, all sessions are working.
    #[must_use]
    pub fn when_first_ends(mut self, what: impl Fn() + 'static) -> Self {
        self.when_first_ends = Some(Rc::new(what));
        self
    }
}

/// Progress of a workload; clones share it.
#[derive(Clone)]
pub struct Progress(Rc<Counts>);

struct Counts {
    transactions: Cell<u64>,
    running: Cell<u32>,
    warm_ns: Cell<Option<u64>>,
    unaccounted: Cell<u32>,
}

impl Progress {
    /// Returns the number of transactions after the warm-up.
    pub fn transactions(&self) -> u64 {
        self.0.transactions.get()
    }

    /// Returns the number of sessions that have not ended.
    pub fn running(&self) -> u32 {
        self.0.running.get()
    }

    /// Returns the time at which the warm-up ended [ns]; `None` before that.
    pub fn warm_ns(&self) -> Option<u64> {
        self.0.warm_ns.get()
    }

    /// Returns the number of sessions that ended with time that is neither CPU nor wait; it must be 0.
    pub fn unaccounted(&self) -> u32 {
        self.0.unaccounted.get()
    }

    pub(super) fn count(&self) {
        self.0.transactions.set(self.0.transactions.get() + 1);
    }
}

struct Inner {
    sim: Sim,
    instance: Instance,
    stop: Stop,
    warm: Latch,
    arrived: Cell<u32>,
    sessions: u32,
    progress: Progress,
}

/// Gate where sessions wait for one another; clones share it.
#[derive(Clone)]
pub(super) struct Gate(Rc<Inner>);

impl Gate {
    pub fn new(sim: &Sim, instance: &Instance, sessions: u32, stop: &Stop) -> Self {
        if stop.warmup > 0 {
            instance.record(false);
        }
        let counts = Counts {
            transactions: Cell::new(0),
            running: Cell::new(sessions),
            warm_ns: Cell::new(None),
            unaccounted: Cell::new(0),
        };
        Self(Rc::new(Inner {
            sim: sim.clone(),
            instance: instance.clone(),
            stop: stop.clone(),
            warm: Latch::new(sim, "the end of the warm-up", 1),
            arrived: Cell::new(0),
            sessions,
            progress: Progress(Rc::new(counts)),
        }))
    }

    pub fn warmup(&self) -> u64 {
        self.0.stop.warmup
    }

    pub fn progress(&self) -> &Progress {
        &self.0.progress
    }

    /// Waits until all sessions have completed their warm-up.
    pub async fn pass(&self, session: &mut Session) {
        let inner = &*self.0;
        inner.arrived.set(inner.arrived.get() + 1);
        if inner.arrived.get() == inner.sessions {
            if inner.stop.warmup > 0 {
                inner.instance.reset();
                inner.instance.record(true);
            }
            if let Some(when_warm) = &inner.stop.when_warm {
                when_warm();
            }
            inner.progress.0.warm_ns.set(Some(inner.sim.now_ns()));
            inner.warm.count_down();
        } else {
            session.idle(inner.warm.wait()).await;
        }
    }

    pub fn goes_on(&self, done: u64) -> bool {
        match self.0.stop.limit {
            Limit::Transactions(count) => done < count,
            Limit::Never => true,
            Limit::TimeNs(ns) => {
                let warm_ns = self.0.progress.warm_ns().unwrap_or(0);
                self.0.sim.now_ns() < warm_ns.saturating_add(ns)
            }
        }
    }

    pub fn end(&self, session: &Session) {
        let counts = &*self.0.progress.0;
        if counts.running.get() == self.0.sessions
            && let Some(when_first_ends) = &self.0.stop.when_first_ends
        {
            when_first_ends();
        }
        counts.running.set(counts.running.get() - 1);
        if !session.ledger().holds(self.0.sim.now_ns()) {
            counts.unaccounted.set(counts.unaccounted.get() + 1);
        }
    }
}
