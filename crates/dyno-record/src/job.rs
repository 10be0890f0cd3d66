//! Recording by probes, from its start to its end, on its own thread.

use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use serde_json::{Value as Json, json};

use crate::RecordError;
use crate::attach::Attached;
use crate::handles::Handles;
use crate::perf::{Record, clock, now_ns};
use crate::process;
use crate::reading;
use crate::recording::{Recording, Wanted};
use crate::request::{DRAIN_EVERY, Mode, Request};
use crate::shed::{JUDGED_NS, Step, dearest};
use crate::small;
use crate::store::{Server, Store};
use crate::watch;

/// Age below which notes are held back [ns], because another processor may still be writing earlier ones.
const YOUNG_NS: u64 = 1_000_000;
/// Largest number of probes that are listed in the final report.
const PLACES: usize = 40;
/// Reason shown for statements without a text.
const TEXTLESS: &str = "probes with texts are not allowed here";

/// Running recording.
pub struct Job {
    handles: Handles,
    /// Reason for not using the technique that comes first in the requested order.
    instead: Option<String>,
    mode: Mode,
    thread: Mutex<Option<JoinHandle<Result<Json, RecordError>>>>,
}

type Work = Box<dyn FnOnce() -> Result<Json, RecordError> + Send>;

/// Returns the first usable technique of the requested order, its work, and why earlier ones could not be used (`None`
/// if there are none).
///
/// # Errors
/// A named technique cannot be used, or none of the requested order can.
fn chosen(request: Request, handles: &Handles) -> Result<(Mode, Work, Option<String>), RecordError> {
    let order: &[Mode] = match request.mode {
        Mode::Auto => &[Mode::Read, Mode::Sites, Mode::Watch],
        Mode::Exact => &[Mode::Sites, Mode::Watch],
        ref named => return Ok((*named, started(*named, request, handles)?, None)),
    };
    let mut refused: Vec<RecordError> = Vec::new();
    for mode in order {
        match started(*mode, request.clone(), handles) {
            Ok(work) => {
                let reasons: Vec<String> = refused.iter().map(RecordError::said).collect();
                return Ok((*mode, work, (!reasons.is_empty()).then(|| reasons.join("; "))));
            }
            Err(error) if error.is_of_rights() => refused.push(error),
            Err(error) => return Err(error),
        }
    }
    Err(RecordError::none_of(&refused))
}

/// Starts one technique and returns its work.
fn started(mode: Mode, request: Request, handles: &Handles) -> Result<Work, RecordError> {
    Ok(match mode {
        Mode::Watch => {
            let running = watch::run::Running::start(request, handles.clone())?;
            Box::new(move || running.run())
        }
        Mode::Read => {
            let running = reading::run::Running::start(request, handles.clone())?;
            Box::new(move || running.run())
        }
        Mode::Sites | Mode::Exact | Mode::Auto => by_sites(request, handles.clone())?,
    })
}

impl Job {
    /// Starts a recording; its probes or watchpoints are set when this returns.
    ///
    /// # Errors
    /// The request is invalid, or the server cannot be probed or watched.
    pub fn start(request: &str) -> Result<Self, RecordError> {
        let request: Request =
            serde_json::from_str(request).map_err(|error| RecordError::Request(error.to_string()))?;
        let handles = Handles::default();
        let (mode, work, instead) = chosen(request, &handles)?;
        let thread = std::thread::Builder::new()
            .name("dyno-record".to_owned())
            .spawn(work)
            .map_err(|error| RecordError::System("a thread cannot be started".to_owned(), error))?;
        Ok(Self { handles, instead, mode, thread: Mutex::new(Some(thread)) })
    }

    /// Returns the technique in use, and why the first technique of the requested order could not be used (`None` if
    /// that technique is in use).
    pub fn mode(&self) -> (&'static str, Option<&str>) {
        let name = match self.mode {
            Mode::Watch => "watch",
            Mode::Read => "read",
            Mode::Sites | Mode::Exact | Mode::Auto => "sites",
        };
        (name, self.instead.as_deref())
    }

    /// Returns the progress as JSON.
    pub fn progress(&self) -> String {
        self.handles.progress()
    }

    /// Writes everything up to now to parts of the trace.
    ///
    /// Returns the sessions since the previous cut as JSON: number, process, kind.
    pub fn cut(&self) -> String {
        let number = self.handles.ask_cut();
        while !self.handles.is_cut(number) && !self.is_over() {
            std::thread::sleep(DRAIN_EVERY / 5);
        }
        self.handles.sessions_of_cut()
    }

    /// Pauses or resumes looks (readings of the server's memory); probes and watchpoints stay in place.
    pub fn pause(&self, is_paused: bool) {
        self.handles.pause(is_paused);
    }

    /// Returns true if the recording has ended.
    pub fn is_over(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Asks the recording to stop soon.
    pub fn stop(&self) {
        self.handles.stop();
    }

    /// Stops the recording, waits for its end, and returns its report as JSON.
    ///
    /// # Errors
    /// The recording failed, or was finished before.
    pub fn finish(&self) -> Result<String, RecordError> {
        self.stop();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = thread.ok_or_else(|| RecordError::Request("the recording is over".to_owned()))?;
        let broke = |_| RecordError::Request("the recorder broke down".to_owned());
        thread.join().map_err(broke)?.map(|summary| summary.to_string())
    }
}

/// Prepares a recording by probes.
fn by_sites(request: Request, handles: Handles) -> Result<Work, RecordError> {
    let attached = Attached::to(request.pid, request.details)?;
    // The clock of the notes and the wall clock, read in direct succession.
    let offset_ns = clock(libc::CLOCK_REALTIME) as i64 - now_ns() as i64;
    let mut store = Store::new(&request.out, offset_ns);
    if attached.without_fields.is_some() {
        store.textless = TEXTLESS;
    }
    attached.enable()?;
    let wanted = Wanted {
        pid: request.only.then_some(request.pid),
        database: request.database.clone(),
        user: request.user.clone(),
    };
    let recording = Recording::new(&attached, wanted, store);
    Ok(Box::new(move || Running { attached, recording, request, handles, shed: Vec::new(), offset_ns }.run()))
}

struct Running {
    attached: Attached,
    recording: Recording,
    request: Request,
    handles: Handles,
    /// Steps whose probes were removed, each with the wall-clock time of the removal [ns] and the sentence that reports
    /// it.
    shed: Vec<(Step, u64, String)>,
    /// Wall clock minus monotonic clock [ns].
    offset_ns: i64,
}

impl Running {
    /// Makes the requested cut as soon as all notes up to its time have arrived.
    fn cut(&mut self, ripe_ns: u64, elapsed_ns: u64) {
        if let Some(cut) = self.handles.asked_cut(now_ns(), ripe_ns) {
            let summary = self.summary(elapsed_ns);
            self.handles.cut(cut, &mut self.recording.store, &self.recording.sessions, summary);
        }
    }

    fn run(mut self) -> Result<Json, RecordError> {
        let begin_ns = now_ns();
        self.recording.take_up(&self.attached);
        let (mut open, mut judged_ns, mut said_ns) = (Vec::new(), begin_ns, begin_ns);
        let mut stopped = None;
        loop {
            let end_ns = self.request.for_ns.map_or(u64::MAX, |length| begin_ns + length);
            let last = self.handles.is_stopped() || now_ns() >= end_ns || stopped.is_some();
            let drained_ns = now_ns();
            let ripe_ns = if last { u64::MAX } else { drained_ns.saturating_sub(YOUNG_NS) };
            self.drain(&mut open, ripe_ns);
            self.cut(ripe_ns, drained_ns - begin_ns);
            self.recording.ask_titles();
            if let Some(error) = self.recording.store.failed.take() {
                return Err(error.into());
            }
            if drained_ns - judged_ns >= JUDGED_NS {
                let only = self.request.only.then_some(self.request.pid);
                stopped = self
                    .too_dear(drained_ns - judged_ns, ripe_ns, begin_ns)
                    .or_else(|| process::over(self.attached.postmaster, only));
                judged_ns = drained_ns;
            }
            if drained_ns - said_ns >= 200_000_000 || last {
                said_ns = drained_ns;
                self.handles.set_progress(self.summary(drained_ns - begin_ns));
            }
            if last {
                self.recording.end(drained_ns);
                return self.close(drained_ns - begin_ns, stopped.as_deref());
            }
            std::thread::sleep(DRAIN_EVERY);
        }
    }

    /// Drains the rings and passes the notes before `until_ns` to their sessions, in time order.
    fn drain(&mut self, open: &mut Vec<Record>, until_ns: u64) {
        let mut rings = std::mem::take(&mut self.attached.rings);
        for ring in &mut rings {
            ring.drain(&|id| self.attached.holds(id), open);
        }
        self.attached.rings = rings;
        open.sort_by_key(|record| record.at_ns);
        let ripe = open.partition_point(|record| record.at_ns < until_ns);
        for record in open.drain(..ripe) {
            self.recording.note(&self.attached, record);
        }
    }

    /// Removes the next step's probes if a backend pays more than allowed; returns why to stop if no step is left.
    fn too_dear(&mut self, over_ns: u64, at_ns: u64, begin_ns: u64) -> Option<String> {
        let given_up: Vec<Step> = self.shed.iter().map(|one| one.0).collect();
        let next = self.recording.next_step(&given_up);
        let (at, share) = dearest(&mut self.recording.busy, over_ns, self.request.probes_limit())?;
        let why = format!(
            "process {} spent {:.1} % of its time in probes, more than the limit of {:.1} %",
            self.recording.sessions[at].pid,
            share * 100.0,
            self.request.probes_limit() * 100.0
        );
        let Some(step) = next else { return Some(format!("stopped: {why}")) };
        self.attached.shed(step);
        self.recording.give_up(step, at_ns);
        let after_s = at_ns.saturating_sub(begin_ns) as f64 / 1e9;
        let said = format!("from {after_s:.0} s on without {}: {why}", step.said());
        self.shed.push((step, (at_ns as i64 + self.offset_ns) as u64, said));
        None
    }

    fn summary(&self, elapsed_ns: u64) -> Json {
        let counts = self.recording.counts;
        let most = self.recording.busy.values().max().copied().unwrap_or(0);
        json!({
            "mode": "sites",
            "elapsed_ns": elapsed_ns,
            "sessions": self.recording.alive(),
            "sessions_all": self.recording.sessions.len(),
            "calls": self.recording.store.rows.0,
            "waits": self.recording.store.rows.1,
            "notes": counts.notes,
            "foreign": counts.foreign,
            "lost": counts.lost,
            "gaps": self.recording.gaps.len(),
            "trap_ns": self.attached.trap.emulated_ns,
            "stepped_ns": self.attached.trap.stepped_ns,
            "probes_ns": counts.probes_ns,
            "busiest_ns": most,
            "own_cpu_ns": clock(libc::CLOCK_THREAD_CPUTIME_ID),
            "shed": self.shed.iter().map(|one| &one.2).collect::<Vec<_>>(),
            "unrecorded": self.shed.iter().map(|one| json!({"what": one.0.said(), "from_ns": one.1})).collect::<Json>(),
            "sites": self.attached.sites.0,
            "sites_stepped": self.attached.sites.1,
        })
    }

    /// Returns the most used probes: what they report, how often, and what that cost.
    fn places(&self) -> Json {
        let mut most: Vec<_> = self.recording.places.iter().map(|(place, count)| (*count, *place)).collect();
        most.sort_unstable_by(|a, b| b.cmp(a));
        let row = |(count, place): (u64, u64)| {
            let probe = self.attached.places.get(&place)?;
            let name = |event| self.attached.names.get(&event).map(|name| name.1.clone());
            Some(json!({
                "what": probe.what.said(&name),
                "address": format!("{:#x}", probe.addr),
                "is_stepped": probe.is_stepped,
                "notes": count,
                "cost_ns": count * self.attached.price_ns(place),
            }))
        };
        most.into_iter().filter_map(row).take(PLACES).collect()
    }

    fn close(self, elapsed_ns: u64, stopped: Option<&str>) -> Result<Json, RecordError> {
        let mut summary = self.summary(elapsed_ns);
        let places = self.places();
        let Self { attached, mut recording, .. } = self;
        let server = Server {
            path: attached.program.clone(),
            version: attached.version.text.clone(),
            gaps: recording.gaps.clone(),
        };
        let (without, postmaster) = (attached.without_fields.clone(), attached.postmaster);
        // The probes are removed first: what is written from here on costs the server nothing.
        drop(attached);
        recording.store.finish()?;
        small::write(&recording.store, &recording.sessions, &server)?;
        if let Some(object) = summary.as_object_mut() {
            object.insert("program".to_owned(), json!(server.path));
            object.insert("version".to_owned(), json!(server.version));
            object.insert("postmaster".to_owned(), json!(postmaster));
            object.insert("without_fields".to_owned(), json!(without));
            object.insert("places".to_owned(), places);
            object.insert("stopped".to_owned(), json!(stopped));
            object.insert("calls".to_owned(), json!(recording.sessions.iter().map(|s| s.sums.calls).sum::<u64>()));
            object.insert("waits".to_owned(), json!(recording.sessions.iter().map(|s| s.sums.waits).sum::<u64>()));
        }
        Ok(summary)
    }
}
