//! Recording by watchpoints, from its start to its end.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::RecordError;
use crate::handles::Handles;
use crate::perf::{clock, now_ns};
use crate::process;
use crate::recording::Wanted;
use crate::request::{DRAIN_EVERY, Request};
use crate::shed::{JUDGED_NS, dearest};
use crate::small;
use crate::store::{Server, Store};

use super::target::Target;
use super::watching::Watching;

/// Words for what is no longer recorded after watchpoints were removed because they cost too much.
const SHED: &str = "calls and statements";
/// Reason shown for statements without a text: a text can only be read while its statement is the session's latest.
const TEXTLESS: &str = "each call was over, and another had come, before a look";

/// Running recording.
pub struct Running {
    watching: Watching,
    request: Request,
    handles: Handles,
    begin_ns: u64,
    /// For each removal of watchpoints: its time by the wall clock [ns], and the sentence that reports it.
    shed: Vec<(u64, String)>,
    /// Wall clock minus monotonic clock [ns].
    offset_ns: i64,
}

impl Running {
    /// Starts a recording; the existing backends are watched when this returns.
    ///
    /// # Errors
    /// The server cannot be watched.
    pub fn start(request: Request, handles: Handles) -> Result<Self, RecordError> {
        let target = Target::of(request.pid)?;
        let offset_ns = clock(libc::CLOCK_REALTIME) as i64 - now_ns() as i64;
        let wanted = Wanted {
            pid: request.only.then_some(request.pid),
            database: request.database.clone(),
            user: request.user.clone(),
        };
        let mut store = Store::new(&request.out, offset_ns);
        store.textless = TEXTLESS;
        let mut watching = Watching::new(target, wanted, store)?;
        let begin_ns = now_ns();
        watching.take_up()?;
        Ok(Self { watching, request, handles, begin_ns, shed: Vec::new(), offset_ns })
    }

    /// Runs the recording to its end; returns its report.
    ///
    /// # Errors
    /// The evidence cannot be written.
    pub fn run(mut self) -> Result<Json, RecordError> {
        let (mut judged_ns, mut said_ns) = (self.begin_ns, self.begin_ns);
        let mut next_ns = self.begin_ns;
        let mut stopped = None;
        let end_ns = self.request.for_ns.map_or(u64::MAX, |length| self.begin_ns.saturating_add(length));
        loop {
            self.watching.wait(Duration::from_nanos(next_ns.saturating_sub(now_ns())));
            self.watching.births();
            let at_ns = now_ns();
            let last = self.handles.is_stopped() || at_ns >= end_ns || stopped.is_some();
            if at_ns < next_ns && !last {
                continue;
            }
            next_ns = at_ns + DRAIN_EVERY.as_nanos() as u64;
            self.watching.drain();
            // All notes up to now have been read.
            self.cut(at_ns);
            if let Some(error) = self.watching.store.failed.take() {
                return Err(error.into());
            }
            if at_ns - judged_ns >= JUDGED_NS {
                let given_up = self.shed.len();
                stopped = stopped.or_else(|| self.too_dear(at_ns - judged_ns, at_ns)).or_else(|| self.met_a_probe());
                judged_ns = at_ns;
                if self.shed.len() > given_up {
                    // A busy kernel takes seconds to close many events: the cost paid until then says nothing about the
                    // remaining watchpoints.
                    self.watching.drain();
                    self.watching.busy.clear();
                    judged_ns = now_ns();
                }
            }
            if at_ns - said_ns >= 200_000_000 || last {
                said_ns = at_ns;
                self.handles.set_progress(self.summary(at_ns - self.begin_ns));
                // Asked often: once the server has ended, a wait for new processes returns at once.
                stopped = stopped.or_else(|| self.is_over());
            }
            if last {
                return self.close(at_ns, stopped.as_deref());
            }
        }
    }

    fn cut(&mut self, at_ns: u64) {
        if let Some(cut) = self.handles.asked_cut(at_ns, u64::MAX) {
            let summary = self.summary(at_ns - self.begin_ns);
            self.handles.cut(cut, &mut self.watching.store, &self.watching.sessions, summary);
        }
    }

    /// Stops watching calls if watchpoints cost a backend more than allowed; if no calls were watched, returns the
    /// reason to stop the recording.
    fn too_dear(&mut self, over_ns: u64, at_ns: u64) -> Option<String> {
        let (at, share) = dearest(&mut self.watching.busy, over_ns, self.request.probes_limit())?;
        let why = format!(
            "process {} spent {:.1} % of its time at watchpoints, more than the limit of {:.1} %",
            self.watching.sessions[at].pid,
            share * 100.0,
            self.request.probes_limit() * 100.0
        );
        if self.watching.with_calls && self.watching.give_up_calls() {
            let after_s = (at_ns - self.begin_ns) as f64 / 1e9;
            let said = format!("from {after_s:.0} s on without {SHED}: {why}");
            self.shed.push(((at_ns as i64 + self.offset_ns) as u64, said));
            return None;
        }
        Some(format!("stopped: {why}"))
    }

    /// Returns the reason to stop if another tool now probes the server: no process may have both probes and
    /// watchpoints.
    fn met_a_probe(&self) -> Option<String> {
        let target = &self.watching.target;
        target.probed(target.postmaster).map(|why| format!("stopped: {why}"))
    }

    fn is_over(&self) -> Option<String> {
        process::over(self.watching.target.postmaster, self.request.only.then_some(self.request.pid))
    }

    fn summary(&self, elapsed_ns: u64) -> Json {
        let watching = &self.watching;
        let (counts, price) = (watching.counts, watching.target.price);
        json!({
            "mode": "watch",
            "elapsed_ns": elapsed_ns,
            "sessions": watching.alive(),
            "sessions_all": watching.sessions.len(),
            "calls": watching.store.rows.0,
            "waits": watching.store.rows.1,
            "notes": counts.notes,
            "foreign": 0,
            "lost": counts.lost,
            "undecoded": counts.undecoded,
            "refused": watching.refused,
            "gaps": watching.gaps.len(),
            "trap_ns": price.wait_ns,
            "call_trap_ns": price.call_ns,
            "ring_kib": watching.ring_kib(),
            "with_calls": watching.with_calls,
            "unnamed_calls": watching.store.unnamed.0,
            "unnamed_ns": watching.store.unnamed.1,
            "probes_ns": counts.probes_ns,
            "busiest_ns": watching.busy.values().max().copied().unwrap_or(0),
            "own_cpu_ns": clock(libc::CLOCK_THREAD_CPUTIME_ID),
            "shed": self.shed.iter().map(|one| &one.1).collect::<Vec<_>>(),
            "unrecorded": self.shed.iter().map(|one| json!({"what": SHED, "from_ns": one.0})).collect::<Json>(),
        })
    }

    fn close(mut self, at_ns: u64, stopped: Option<&str>) -> Result<Json, RecordError> {
        self.watching.end(at_ns);
        let mut summary = self.summary(at_ns - self.begin_ns);
        let Watching { target, sessions, mut store, gaps, .. } = self.watching;
        store.finish()?;
        let server = Server { path: target.program, version: target.version.text, gaps };
        small::write(&store, &sessions, &server)?;
        if let Some(object) = summary.as_object_mut() {
            object.insert("program".to_owned(), json!(server.path));
            object.insert("version".to_owned(), json!(server.version));
            object.insert("postmaster".to_owned(), json!(target.postmaster));
            object.insert("stopped".to_owned(), json!(stopped));
            let without: Vec<_> = store.without_text().collect();
            object.insert("textless".to_owned(), json!(without));
            object.insert("calls".to_owned(), json!(sessions.iter().map(|s| s.sums.calls).sum::<u64>()));
            object.insert("waits".to_owned(), json!(sessions.iter().map(|s| s.sums.waits).sum::<u64>()));
        }
        Ok(summary)
    }
}
