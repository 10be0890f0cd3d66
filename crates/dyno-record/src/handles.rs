//! How a recording is watched, cut and stopped from outside.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value as Json, json};

use crate::session::Session;
use crate::store::Store;

/// A cut: what was recorded so far is written, and the sessions that had a part in it are told.
#[derive(Default)]
struct Cuts {
    asked: AtomicU64,
    made: AtomicU64,
    /// When the cut that is asked for was first seen, or 0; when the last was made.
    first_ns: AtomicU64,
    before_ns: AtomicU64,
    told: Mutex<Json>,
}

/// How a recording is watched and stopped from outside.
#[derive(Clone, Default)]
pub struct Handles {
    stop: Arc<AtomicBool>,
    progress: Arc<Mutex<Json>>,
    cuts: Arc<Cuts>,
}

/// A cut that is asked for: its number, and when it was first seen.
pub type Cut = (u64, u64);

impl Handles {
    /// Ends it soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether it is to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// How it goes, as JSON.
    pub fn progress(&self) -> String {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).to_string()
    }

    /// Asks for a cut: its number.
    pub fn ask_cut(&self) -> u64 {
        self.cuts.asked.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether a cut is made.
    pub fn is_cut(&self, number: u64) -> bool {
        self.cuts.made.load(Ordering::Acquire) >= number
    }

    /// What the last cut told, as JSON.
    pub fn told_cut(&self) -> String {
        self.cuts.told.lock().unwrap_or_else(PoisonError::into_inner).to_string()
    }

    /// Says how it goes.
    pub fn tell(&self, told: Json) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = told;
    }

    /// A cut that is asked for, once all of its time is there: all until `ripe_ns` is.
    pub fn asked_cut(&self, at_ns: u64, ripe_ns: u64) -> Option<Cut> {
        let asked = self.cuts.asked.load(Ordering::Relaxed);
        if asked == self.cuts.made.load(Ordering::Relaxed) {
            return None;
        }
        let first = self.cuts.first_ns.compare_exchange(0, at_ns, Ordering::Relaxed, Ordering::Relaxed);
        let at_ns = first.map_or_else(|before| before, |_| at_ns);
        (ripe_ns >= at_ns).then_some((asked, at_ns))
    }

    /// Makes the cut: what was recorded so far is written, and told with the sessions that had a part in it.
    pub fn cut(&self, (number, at_ns): Cut, store: &mut Store, sessions: &[Session], told: Json) {
        if let Err(error) = store.finish() {
            store.failed.get_or_insert(error);
        }
        let before_ns = self.cuts.before_ns.swap(at_ns, Ordering::Relaxed);
        let of_it = sessions.iter().filter(|one| !one.is_over() || one.until_ns >= before_ns);
        *self.cuts.told.lock().unwrap_or_else(PoisonError::into_inner) =
            of_it.map(|one| json!([one.number, one.pid, one.who.kind])).collect();
        self.tell(told);
        self.cuts.first_ns.store(0, Ordering::Relaxed);
        self.cuts.made.store(number, Ordering::Release);
    }
}
