//! Control of a running recording from other threads: progress, cuts, stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value as Json, json};

use crate::session::Session;
use crate::store::Store;

/// State of cuts. A cut writes what was recorded so far and reports the sessions that contributed to it.
#[derive(Default)]
struct Cuts {
    asked: AtomicU64,
    made: AtomicU64,
    /// Time at which the requested cut was first noticed (0: not yet), and time at which the last cut was made [ns].
    first_ns: AtomicU64,
    before_ns: AtomicU64,
    sessions: Mutex<Json>,
}

/// Handles to watch, cut and stop a running recording.
#[derive(Clone, Default)]
pub struct Handles {
    stop: Arc<AtomicBool>,
    paused: Arc<AtomicBool>,
    progress: Arc<Mutex<Json>>,
    cuts: Arc<Cuts>,
}

/// Requested cut: its number, and the time at which it was first noticed [ns].
pub type Cut = (u64, u64);

impl Handles {
    /// Asks the recording to stop soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns true if a stop was requested.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Pauses or resumes looks (readings of the server's memory); probes and watchpoints stay in place.
    pub fn pause(&self, is_paused: bool) {
        self.paused.store(is_paused, Ordering::Relaxed);
    }

    /// Returns true while looks are paused.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// Returns the progress as JSON.
    pub fn progress(&self) -> String {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).to_string()
    }

    /// Requests a cut and returns its number.
    pub fn ask_cut(&self) -> u64 {
        self.cuts.asked.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns true once the cut with this number was made.
    pub fn is_cut(&self, number: u64) -> bool {
        self.cuts.made.load(Ordering::Acquire) >= number
    }

    /// Returns the sessions of the last cut as JSON.
    pub fn sessions_of_cut(&self) -> String {
        self.cuts.sessions.lock().unwrap_or_else(PoisonError::into_inner).to_string()
    }

    /// Sets the progress.
    pub fn set_progress(&self, summary: Json) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = summary;
    }

    /// Returns the requested cut once its time is at or before `ripe_ns`, up to which all notes have been processed.
    pub fn asked_cut(&self, at_ns: u64, ripe_ns: u64) -> Option<Cut> {
        let asked = self.cuts.asked.load(Ordering::Relaxed);
        if asked == self.cuts.made.load(Ordering::Relaxed) {
            return None;
        }
        let first = self.cuts.first_ns.compare_exchange(0, at_ns, Ordering::Relaxed, Ordering::Relaxed);
        let at_ns = first.map_or_else(|before| before, |_| at_ns);
        (ripe_ns >= at_ns).then_some((asked, at_ns))
    }

    /// Makes the cut: writes what was recorded so far, and reports the sessions that contributed to it.
    pub fn cut(&self, (number, at_ns): Cut, store: &mut Store, sessions: &[Session], summary: Json) {
        if let Err(error) = store.finish() {
            store.failed.get_or_insert(error);
        }
        let before_ns = self.cuts.before_ns.swap(at_ns, Ordering::Relaxed);
        let of_it = sessions.iter().filter(|one| !one.is_over() || one.until_ns >= before_ns);
        *self.cuts.sessions.lock().unwrap_or_else(PoisonError::into_inner) =
            of_it.map(|one| json!([one.number, one.pid, one.who.kind])).collect();
        self.set_progress(summary);
        self.cuts.first_ns.store(0, Ordering::Relaxed);
        self.cuts.made.store(number, Ordering::Release);
    }
}
