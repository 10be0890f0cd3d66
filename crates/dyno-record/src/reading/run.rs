//! Recording by reading, from its start to its end.
//!
//! One thread looks at the memory, and this thread writes the findings as evidence. If the server creates new shared
//! memory after a crash, the old mapping is released, the sessions end, and the new memory is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use dyno_evidence::table::Values;
use dyno_evidence::trace_tables;
use serde_json::{Value as Json, json};

use crate::RecordError;
use crate::handles::Handles;
use crate::perf::{clock, now_ns};
use crate::process;
use crate::recording::Wanted;
use crate::request::{DRAIN_EVERY, Request};
use crate::small;
use crate::store::{Server, Store};

use super::arrays::Arrays;
use super::looks::Looks;
use super::memory::{Identity, Shared};
use super::seen::Batch;
use super::sessions::Sessions;
use super::stretches::Stretch;
use super::target::Target;

/// Interval between checks that the server still uses the same memory [ns].
const CHECKED_NS: u64 = 500_000_000;
/// Maximum number of batches in transit.
const BATCHES: usize = 64;
/// Maximum number of events listed in the report.
const EVENTS: usize = 40;
/// Reason shown for statements without a text.
const TEXTLESS: &str = "it was over before a look";
/// Class `Activity` in the number of an event: idle background processes.
const ACTIVITY: u32 = 0x05;

/// Running recording.
pub struct Running {
    target: Target,
    sessions: Sessions,
    request: Request,
    handles: Handles,
    next: Option<(Shared, Arrays)>,
    /// Statistics of the looks: one entry per second and pace; and their total.
    stretches: Vec<Stretch>,
    all: Stretch,
    way: (bool, Option<String>),
    /// Number of times that the server created new memory.
    renewed: u64,
    begin_ns: u64,
}

/// What follows when the looks at the server's current memory end.
enum Next {
    /// The server's new memory, once it exists.
    Memory,
    /// The end of the recording, with the reason if it was not requested.
    End(Option<String>),
}

/// Looks in progress.
struct Looking {
    batches: Receiver<Batch>,
    stop: Arc<AtomicBool>,
    identity: Identity,
    thread: JoinHandle<u32>,
}

impl Looking {
    /// Stops the looks; returns the number that the next process will get.
    fn end(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        // What is still on its way is of no use: it may be of memory that is no longer the server's.
        drop(self.batches);
        self.thread.join().unwrap_or(0)
    }
}

impl Running {
    /// Starts a recording; when this returns, the memory is open.
    ///
    /// # Errors
    /// The server cannot be read.
    pub fn start(request: Request, handles: Handles) -> Result<Self, RecordError> {
        let target = Target::of(request.pid)?;
        let next = target.open(!request.copies)?;
        let offset_ns = clock(libc::CLOCK_REALTIME) as i64 - now_ns() as i64;
        let mut store = Store::new(&request.out, offset_ns);
        store.is_read = true;
        store.textless = TEXTLESS;
        for (event, name) in &target.known.names {
            store.name_event(*event, || name.clone());
        }
        let wanted = Wanted {
            pid: request.only.then_some(request.pid),
            database: request.database.clone(),
            user: request.user.clone(),
        };
        Ok(Self {
            sessions: Sessions::new(wanted, store, target.known.client_read),
            target,
            request,
            handles,
            way: (next.0.is_mapped(), next.0.unmapped.clone()),
            next: Some(next),
            stretches: Vec::new(),
            all: Stretch::default(),
            renewed: 0,
            begin_ns: now_ns(),
        })
    }

    /// Runs the recording to its end; returns its report.
    ///
    /// # Errors
    /// The evidence cannot be written.
    pub fn run(mut self) -> Result<Json, RecordError> {
        let mut next_number = 0;
        loop {
            let next = match self.next.take() {
                Some((memory, arrays)) => {
                    let looking = self.look(memory, arrays, next_number)?;
                    let summary = self.follow(&looking);
                    next_number = looking.end();
                    summary?
                }
                None => self.renew(),
            };
            if let Next::End(stopped) = next {
                return self.close(stopped.as_deref());
            }
        }
    }

    /// Starts a thread that repeatedly reads the sessions' waits from the server's memory.
    fn look(&self, memory: Shared, arrays: Arrays, next_number: u32) -> Result<Looking, RecordError> {
        let identity = memory.identity.clone();
        let looks = Looks::new(memory, arrays, self.target.running(), next_number);
        let (to, batches) = sync_channel(BATCHES);
        let stop = Arc::new(AtomicBool::new(false));
        let (limit, stopped, handles) = (self.request.cost_limit, stop.clone(), self.handles.clone());
        let thread = std::thread::Builder::new()
            .name("dyno-read".to_owned())
            .spawn(move || looks.run(limit, (&stopped, &handles), &to))
            .map_err(|error| RecordError::System("a thread cannot be started".to_owned(), error))?;
        Ok(Looking { batches, stop, identity, thread })
    }

    /// Processes the looks' findings until the recording is over, or the server no longer uses the memory.
    fn follow(&mut self, looking: &Looking) -> Result<Next, RecordError> {
        let (mut checked_ns, mut said_ns) = (now_ns(), self.begin_ns);
        let end_ns = self.request.for_ns.map_or(u64::MAX, |length| self.begin_ns.saturating_add(length));
        loop {
            let until_ns = match looking.batches.recv_timeout(Duration::from_millis(100)) {
                Ok(batch) => self.take(batch),
                Err(RecvTimeoutError::Timeout) => now_ns(),
                Err(RecvTimeoutError::Disconnected) => return Ok(Next::Memory),
            };
            self.sessions.ask_titles(until_ns);
            if let Some(cut) = self.handles.asked_cut(now_ns(), until_ns) {
                let summary = self.summary(until_ns);
                self.handles.cut(cut, &mut self.sessions.store, &self.sessions.all, summary);
            }
            if let Some(error) = self.sessions.store.failed.take() {
                return Err(error.into());
            }
            if until_ns.saturating_sub(said_ns) >= 200_000_000 {
                said_ns = until_ns;
                self.handles.set_progress(self.summary(until_ns));
            }
            let mut stopped = None;
            if until_ns.saturating_sub(checked_ns) >= CHECKED_NS {
                checked_ns = until_ns;
                stopped = process::over(self.target.postmaster, self.request.only.then_some(self.request.pid));
                if stopped.is_none() && !looking.identity.is_current() {
                    self.sessions.end(until_ns, true);
                    return Ok(Next::Memory);
                }
            }
            if stopped.is_some() || self.handles.is_stopped() || until_ns >= end_ns {
                self.sessions.end(until_ns, false);
                return Ok(Next::End(stopped));
            }
        }
    }

    /// Converts a batch to evidence; returns the time at which the batch ends [ns].
    fn take(&mut self, batch: Batch) -> u64 {
        let Batch { changes, until_ns, stretch } = batch;
        self.sessions.process(changes);
        let is_short = self.stretches.last().is_some_and(|last| last.until_ns - last.from_ns < 1_000_000_000);
        if !(is_short && self.stretches.last_mut().is_some_and(|last| last.join(&stretch))) {
            self.stretches.push(stretch);
        }
        let period_ns = stretch.period_ns;
        self.all.join(&Stretch { period_ns: self.all.period_ns, ..stretch });
        self.all.period_ns = period_ns;
        until_ns
    }

    /// Opens the server's new memory, once it exists.
    fn renew(&mut self) -> Next {
        if let Some(why) = process::over(self.target.postmaster, self.request.only.then_some(self.request.pid)) {
            return Next::End(Some(why));
        }
        let end_ns = self.request.for_ns.map_or(u64::MAX, |length| self.begin_ns.saturating_add(length));
        if self.handles.is_stopped() || now_ns() >= end_ns {
            return Next::End(None);
        }
        std::thread::sleep(DRAIN_EVERY);
        self.next = self.target.open(!self.request.copies).ok();
        self.renewed += u64::from(self.next.is_some());
        Next::Memory
    }
}

impl Running {
    fn summary(&self, until_ns: u64) -> Json {
        let (all, sessions) = (&self.all, &self.sessions);
        json!({
            "mode": "read",
            "elapsed_ns": until_ns.saturating_sub(self.begin_ns),
            "sessions": sessions.alive(),
            "sessions_all": sessions.all.len(),
            "calls": sessions.store.rows.0,
            "waits": sessions.store.rows.1,
            "notes": 0,
            "lost": 0,
            "probes_ns": 0,
            "is_mapped": self.way.0,
            "unmapped": self.way.1,
            "looks": all.looks,
            "period_ns": all.period_ns,
            "mean_ns": all.mean_ns(),
            "longest_ns": all.longest_ns,
            "gaps": all.gaps,
            "gap_ns": all.gap_ns,
            "looks_cpu_ns": all.cpu_ns,
            "own_cpu_ns": all.cpu_ns + clock(libc::CLOCK_THREAD_CPUTIME_ID),
            "renewed": self.renewed,
            "shed": [],
        })
    }

    /// Returns the events with the most time: number of waits seen, estimated number of waits, and their time.
    fn events(&self) -> Json {
        let mut all: Vec<_> = self.sessions.found.iter().filter(|(event, _)| *event >> 24 != ACTIVITY).collect();
        all.sort_by_key(|(event, found)| (std::cmp::Reverse(found.elapsed_ns), **event));
        let row = |(event, found): &(&u32, &super::capture::Found)| {
            let name = self.target.known.names.get(*event).map(|(class, name)| format!("{class}:{name}"));
            json!({
                "event": name.unwrap_or_else(|| format!("{event:#010x}")),
                "seen": found.waits,
                "looks": found.looks,
                "estimate": found.estimate(),
                "elapsed_ns": found.elapsed_ns,
            })
        };
        all.iter().take(EVENTS).map(row).collect()
    }

    fn close(mut self, stopped: Option<&str>) -> Result<Json, RecordError> {
        let until_ns = self.all.until_ns.max(self.begin_ns);
        let mut summary = self.summary(until_ns);
        let events = self.events();
        self.write_looks()?;
        self.sessions.store.finish()?;
        let Self { target, sessions, .. } = self;
        let server = Server { path: target.program, version: target.known.version.text.clone(), gaps: Vec::new() };
        small::write(&sessions.store, &sessions.all, &server)?;
        if let Some(object) = summary.as_object_mut() {
            object.insert("program".to_owned(), json!(server.path));
            object.insert("version".to_owned(), json!(server.version));
            object.insert("postmaster".to_owned(), json!(target.postmaster));
            object.insert("stopped".to_owned(), json!(stopped));
            object.insert("events".to_owned(), events);
            let without: Vec<_> = sessions.store.without_text().collect();
            object.insert("textless".to_owned(), json!(without));
            object.insert("calls".to_owned(), json!(sessions.all.iter().map(|s| s.sums.calls).sum::<u64>()));
            object.insert("waits".to_owned(), json!(sessions.all.iter().map(|s| s.sums.waits).sum::<u64>()));
        }
        Ok(summary)
    }

    /// Writes the statistics of the looks.
    fn write_looks(&mut self) -> Result<(), RecordError> {
        let all = std::mem::take(&mut self.stretches);
        let column = |get: &dyn Fn(&Stretch) -> i64| Values::I64(all.iter().map(get).collect());
        let values = vec![
            column(&|one| self.sessions.store.at(one.from_ns)),
            column(&|one| (one.until_ns - one.from_ns) as i64),
            column(&|one| one.period_ns as i64),
            column(&|one| one.looks as i64),
            column(&|one| one.longest_ns as i64),
            column(&|one| one.gaps as i64),
            column(&|one| one.gap_ns as i64),
            column(&|one| one.cpu_ns as i64),
        ];
        if !all.is_empty() {
            self.sessions.store.put("looks", &trace_tables::LOOKS, values)?;
        }
        Ok(())
    }
}
