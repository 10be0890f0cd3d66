//! A recording from its begin to its end, on a thread of its own.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::RecordError;
use crate::attach::Attached;
use crate::perf::{Record, clock, now_ns};
use crate::recording::{Recording, Wanted};
use crate::shed::Step;
use crate::small;
use crate::store::{Server, Store};

/// How often the rings are emptied.
pub const DRAIN_EVERY: Duration = Duration::from_millis(10);
/// Notes younger than this wait for those that another processor is still writing.
const YOUNG_NS: u64 = 1_000_000;
/// So many probes are told one by one in the end.
const PLACES: usize = 40;
/// Over how long the price is judged.
const JUDGED_NS: u64 = 5_000_000_000;

/// What to record.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// A process of the server.
    pub pid: i32,
    /// Whether that process alone is meant.
    #[serde(default)]
    pub only: bool,
    /// Folder to write into.
    pub out: PathBuf,
    /// A database.
    #[serde(default)]
    pub database: Option<String>,
    /// A user.
    #[serde(default)]
    pub user: Option<String>,
    /// Stops by itself.
    #[serde(default)]
    pub for_ns: Option<u64>,
    /// The share of a backend's time that probes may take; 0: no limit.
    #[serde(default)]
    pub cost_limit: f64,
    /// Whether to note where binds begin: one note more a call.
    #[serde(default)]
    pub details: bool,
}

/// A cut: what was recorded so far is written, and the sessions that had a part in it are told.
#[derive(Default)]
struct Cuts {
    asked: AtomicU64,
    made: AtomicU64,
    told: Mutex<Json>,
}

/// A recording that runs.
pub struct Job {
    stop: Arc<AtomicBool>,
    progress: Arc<Mutex<Json>>,
    cuts: Arc<Cuts>,
    thread: Mutex<Option<JoinHandle<Result<Json, RecordError>>>>,
}

impl Job {
    /// Begins to record; probes stand when this returns.
    pub fn start(request: &str) -> Result<Self, RecordError> {
        let request: Request =
            serde_json::from_str(request).map_err(|error| RecordError::Request(error.to_string()))?;
        let attached = Attached::to(request.pid, request.details)?;
        let (stop, progress) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Json::Null)));
        let cuts = Arc::new(Cuts::default());
        let (stops, tells) = (Arc::clone(&stop), Arc::clone(&progress));
        // The kernel's clock of notes and the wall's, read one after the other.
        let offset_ns = clock(libc::CLOCK_REALTIME) as i64 - now_ns() as i64;
        let store = Store::new(&request.out, offset_ns);
        attached.enable()?;
        let wanted = Wanted {
            pid: request.only.then_some(request.pid),
            database: request.database.clone(),
            user: request.user.clone(),
        };
        let recording = Recording::new(&attached, wanted, store);
        let cut_by = Arc::clone(&cuts);
        let work = move || Running::new(attached, recording, request, stops, tells, cut_by, offset_ns).run();
        let thread = std::thread::Builder::new()
            .name("dyno-record".to_owned())
            .spawn(work)
            .map_err(|error| RecordError::System("a thread cannot be started".to_owned(), error))?;
        Ok(Self { stop, progress, cuts, thread: Mutex::new(Some(thread)) })
    }

    /// How it goes, as JSON.
    pub fn progress(&self) -> String {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).to_string()
    }

    /// Writes the parts of all that took place until now; tells the sessions since the cut before, as JSON: number,
    /// process, what it is.
    pub fn cut(&self) -> String {
        let number = self.cuts.asked.fetch_add(1, Ordering::Relaxed) + 1;
        while self.cuts.made.load(Ordering::Acquire) < number && !self.is_over() {
            std::thread::sleep(DRAIN_EVERY / 5);
        }
        self.cuts.told.lock().unwrap_or_else(PoisonError::into_inner).to_string()
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends it soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// What was recorded, as JSON, when it is over.
    pub fn finish(&self) -> Result<String, RecordError> {
        self.stop();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = thread.ok_or_else(|| RecordError::Request("the recording is over".to_owned()))?;
        let broke = |_| RecordError::Request("the recorder broke down".to_owned());
        thread.join().map_err(broke)?.map(|told| told.to_string())
    }
}

struct Running {
    attached: Attached,
    recording: Recording,
    request: Request,
    stops: Arc<AtomicBool>,
    tells: Arc<Mutex<Json>>,
    cuts: Arc<Cuts>,
    /// When the cut that is asked for was first seen; when the last was made.
    cut_at_ns: Option<u64>,
    cut_before_ns: u64,
    /// What was given up, when by the wall's clock, and the sentence about it.
    shed: Vec<(Step, u64, String)>,
    /// Monotonic clock to that of the wall.
    offset_ns: i64,
}

impl Running {
    fn new(
        attached: Attached,
        recording: Recording,
        request: Request,
        stops: Arc<AtomicBool>,
        tells: Arc<Mutex<Json>>,
        cuts: Arc<Cuts>,
        offset_ns: i64,
    ) -> Self {
        let (cut_at_ns, shed) = (None, Vec::new());
        Self { attached, recording, request, stops, tells, cuts, cut_at_ns, cut_before_ns: 0, shed, offset_ns }
    }

    /// Makes the cut that is asked for, as soon as all notes of its time are there.
    fn cut(&mut self, ripe_ns: u64, elapsed_ns: u64) {
        let asked = self.cuts.asked.load(Ordering::Relaxed);
        if asked == self.cuts.made.load(Ordering::Relaxed) {
            return;
        }
        let at_ns = *self.cut_at_ns.get_or_insert_with(now_ns);
        if ripe_ns < at_ns {
            return;
        }
        if let Err(error) = self.recording.store.finish() {
            self.recording.store.failed.get_or_insert(error);
        }
        let before_ns = self.cut_before_ns;
        let sessions = self.recording.sessions.iter().filter(|one| !one.is_over() || one.until_ns >= before_ns);
        let told: Json = sessions.map(|one| json!([one.number, one.pid, one.who.kind])).collect();
        *self.cuts.told.lock().unwrap_or_else(PoisonError::into_inner) = told;
        let told = self.told(elapsed_ns);
        *self.tells.lock().unwrap_or_else(PoisonError::into_inner) = told;
        self.cut_at_ns = None;
        self.cut_before_ns = at_ns;
        self.cuts.made.store(asked, Ordering::Release);
    }

    fn run(mut self) -> Result<Json, RecordError> {
        let begin_ns = now_ns();
        self.recording.take_up(&self.attached);
        let (mut open, mut judged_ns, mut said_ns) = (Vec::new(), begin_ns, begin_ns);
        let mut stopped = None;
        loop {
            let end_ns = self.request.for_ns.map_or(u64::MAX, |length| begin_ns + length);
            let last = self.stops.load(Ordering::Relaxed) || now_ns() >= end_ns || stopped.is_some();
            let drained_ns = now_ns();
            let ripe_ns = if last { u64::MAX } else { drained_ns.saturating_sub(YOUNG_NS) };
            self.drain(&mut open, ripe_ns);
            self.cut(ripe_ns, drained_ns - begin_ns);
            self.recording.ask_titles();
            if let Some(error) = self.recording.store.failed.take() {
                return Err(error.into());
            }
            if drained_ns - judged_ns >= JUDGED_NS {
                stopped = self.too_dear(drained_ns - judged_ns, ripe_ns, begin_ns);
                judged_ns = drained_ns;
            }
            if drained_ns - said_ns >= 200_000_000 || last {
                said_ns = drained_ns;
                let told = self.told(drained_ns - begin_ns);
                *self.tells.lock().unwrap_or_else(PoisonError::into_inner) = told;
            }
            if last {
                self.recording.end(drained_ns);
                return self.close(drained_ns - begin_ns, stopped.as_deref());
            }
            std::thread::sleep(DRAIN_EVERY);
        }
    }

    /// Takes all notes and gives those before `until_ns` to their sessions, in the order of time.
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

    /// Where a backend pays more for the probes than is allowed, some are given up; why it stops, where none is left to.
    fn too_dear(&mut self, over_ns: u64, at_ns: u64, begin_ns: u64) -> Option<String> {
        let most = self.recording.busy.drain().max_by_key(|busy| busy.1)?;
        let given_up: Vec<Step> = self.shed.iter().map(|one| one.0).collect();
        let next = self.recording.next_step(&given_up);
        let share = most.1 as f64 / over_ns as f64;
        if self.request.cost_limit <= 0.0 || share <= self.request.cost_limit {
            return None;
        }
        let why = format!(
            "process {} spent {:.1} % of its time in probes, more than the limit of {:.1} %",
            self.recording.sessions[most.0].pid,
            share * 100.0,
            self.request.cost_limit * 100.0
        );
        let Some(step) = next else { return Some(format!("stopped: {why}")) };
        self.attached.shed(step);
        self.recording.give_up(step, at_ns);
        let after_s = at_ns.saturating_sub(begin_ns) as f64 / 1e9;
        let said = format!("from {after_s:.0} s on without {}: {why}", step.said());
        self.shed.push((step, (at_ns as i64 + self.offset_ns) as u64, said));
        None
    }

    fn told(&self, elapsed_ns: u64) -> Json {
        let counts = self.recording.counts;
        let most = self.recording.busy.values().max().copied().unwrap_or(0);
        json!({
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

    /// The probes that were met most: what they tell, how often, and what it cost.
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
        let mut told = self.told(elapsed_ns);
        let places = self.places();
        let Self { attached, mut recording, .. } = self;
        let server = Server {
            path: attached.program.clone(),
            version: attached.version.text.clone(),
            gaps: recording.gaps.clone(),
        };
        let (without, postmaster) = (attached.without_fields.clone(), attached.postmaster);
        // The probes go first: what is written from here on costs the server nothing.
        drop(attached);
        recording.store.finish()?;
        small::write(&recording.store, &recording.sessions, &server)?;
        if let Some(object) = told.as_object_mut() {
            object.insert("program".to_owned(), json!(server.path));
            object.insert("version".to_owned(), json!(server.version));
            object.insert("postmaster".to_owned(), json!(postmaster));
            object.insert("without_fields".to_owned(), json!(without));
            object.insert("places".to_owned(), places);
            object.insert("stopped".to_owned(), json!(stopped));
            object.insert("calls".to_owned(), json!(recording.sessions.iter().map(|s| s.sums.calls).sum::<u64>()));
            object.insert("waits".to_owned(), json!(recording.sessions.iter().map(|s| s.sums.waits).sum::<u64>()));
        }
        Ok(told)
    }
}
