//! State of a session's open pipeline: the queued items, and whether the server is skipping commands.

use crate::reply::Ended;

/// Items of the open pipeline, queued or sent, whose answers have not arrived yet.
#[derive(Debug)]
pub struct Batch {
    pub(crate) started: Option<i64>,
    pub(crate) items: Vec<Item>,
    /// True after a failed command: the server skips everything until the next `Sync`.
    pub(crate) skipping: bool,
    pub(crate) failed: Ended,
}

/// One item of a pipeline: a command (by its index in the arm) or a `Sync`.
#[derive(Debug, Clone, Copy)]
pub enum Item {
    Command(usize),
    Sync,
}

impl Batch {
    /// Returns the state without an open pipeline.
    pub fn new() -> Self {
        Self { started: None, items: Vec::new(), skipping: false, failed: Ended::Well }
    }

    /// Returns true while a pipeline is open.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.started.is_some()
    }

    /// Opens an empty pipeline that starts at `now` [ns since the epoch].
    pub fn open(&mut self, now: i64) {
        self.clear();
        self.started = Some(now);
    }

    /// Records the first failure in the pipeline; later failures are ignored.
    pub(crate) fn note(&mut self, failed: Ended) {
        if self.failed == Ended::Well {
            self.failed = failed;
        }
    }

    /// Discards the open pipeline, if there is one: an abandoned script can leave one open.
    #[inline]
    pub fn clear(&mut self) {
        if self.started.take().is_some() {
            self.items.clear();
            self.skipping = false;
            self.failed = Ended::Well;
        }
    }
}
