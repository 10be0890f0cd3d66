//! The open pipeline of a session: what was queued, and whether the server skips.

use crate::reply::Ended;

/// Commands sent or to be sent of the open pipeline.
#[derive(Debug)]
pub struct Batch {
    pub(crate) started: Option<i64>,
    pub(crate) items: Vec<Item>,
    /// The server skips what comes until the next `Sync`.
    pub(crate) skipping: bool,
    pub(crate) failed: Ended,
}

/// One thing of a pipeline.
#[derive(Debug, Clone, Copy)]
pub enum Item {
    Command(usize),
    Sync,
}

impl Batch {
    /// No pipeline open.
    pub fn new() -> Self {
        Self { started: None, items: Vec::new(), skipping: false, failed: Ended::Well }
    }

    /// Whether a pipeline is open.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.started.is_some()
    }

    /// Begins a pipeline.
    pub fn open(&mut self, now: i64) {
        self.clear();
        self.started = Some(now);
    }

    /// Remembers the first failure.
    pub(crate) fn note(&mut self, failed: Ended) {
        if self.failed == Ended::Well {
            self.failed = failed;
        }
    }

    /// Forgets what an abandoned script left.
    #[inline]
    pub fn clear(&mut self) {
        if self.started.take().is_some() {
            self.items.clear();
            self.skipping = false;
            self.failed = Ended::Well;
        }
    }
}
