//! Backends of a watched server, and the sessions that their notes produce.

use std::collections::HashMap;

use crate::RecordError;
use crate::attach::allow_files;
use crate::notes::{Note, record};
use crate::perf::{Event, Ring, Scope, Source, now_ns};
use crate::process;
use crate::recording::{Wanted, who};
use crate::session::{Known, Session, Who};
use crate::store::Store;

use super::backend::{Backend, Seen};
use super::rings::{PAGES_MOST, pages};
use super::target::{Target, next, why};

/// Largest age at which a process without a place in shared memory may still get one [ns]; normally that takes 1 to
/// 2 ms.
const YOUNG_NS: u64 = 5_000_000_000;
/// Limit on open files that is requested (up to the hard limit); each backend needs four.
const FILES_MOST: usize = 1 << 16;

/// Counters of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Number of notes from watchpoints.
    pub notes: u64,
    /// Number of notes that the kernel lost.
    pub lost: u64,
    /// Number of stores whose value could not be decoded.
    pub undecoded: u64,
    /// Time that the watchpoints cost the server's processes [ns].
    pub probes_ns: u64,
}

/// Running recording that uses watchpoints.
pub struct Watching {
    /// All sessions so far.
    pub sessions: Vec<Session>,
    /// Store that receives the evidence.
    pub store: Store,
    /// Counters.
    pub counts: Counts,
    /// Gaps caused by lost notes: number of notes, begin and end [ns].
    pub gaps: Vec<(u64, u64, u64)>,
    /// Cost of watchpoints for each session since the last check [ns], by the session's index.
    pub busy: HashMap<usize, u64>,
    /// Number of backends that could not be watched, by the reason.
    pub refused: HashMap<String, u64>,
    /// True if calls are watched as well.
    pub with_calls: bool,
    pub(super) wanted: Wanted,
    pub(super) known: Known,
    pub(super) backends: HashMap<i32, Backend>,
    /// Processes whose wait word is not watched yet, and the time since which they have existed [ns].
    young: Vec<(i32, u64)>,
    forks: (Event, Ring),
    pages: usize,
    pub(super) notes: Vec<(u64, Seen)>,
    /// The server. Declared after the backends, because it also holds the claim that keeps probes away.
    pub target: Target,
}

impl Watching {
    /// Begins to watch the server for new processes; [`Watching::take_up`] adds its backends.
    ///
    /// # Errors
    /// The kernel refuses to watch the server.
    pub fn new(target: Target, wanted: Wanted, mut store: Store) -> Result<Self, RecordError> {
        for (event, name) in &target.names {
            store.name_event(*event, || name.clone());
        }
        let unwatched = |error| RecordError::Unwatched(why(&error, Some(target.postmaster)), next(&error));
        let scope = Scope { pid: target.postmaster, cpu: -1 };
        let forks = Event::open(&Source::Forks, scope, None).map_err(unwatched)?;
        let ring = Ring::of(&forks, 8).map_err(unwatched)?;
        forks.enable().map_err(unwatched)?;
        let known = Known { price_ns: target.price.wait_ns, ..Known::of(target.client_read) };
        Ok(Self {
            with_calls: target.layout.is_some(),
            target,
            sessions: Vec::new(),
            store,
            counts: Counts::default(),
            gaps: Vec::new(),
            busy: HashMap::new(),
            refused: HashMap::new(),
            wanted,
            known,
            backends: HashMap::new(),
            young: Vec::new(),
            forks: (forks, ring),
            pages: PAGES_MOST,
            notes: Vec::new(),
        })
    }

    /// Returns the number of live sessions.
    pub fn alive(&self) -> usize {
        self.backends.len()
    }

    /// Returns the size of the smallest ring of a backend [KiB].
    pub fn ring_kib(&self) -> usize {
        self.backends.values().map(|backend| backend.pages).min().unwrap_or(self.pages) * 4
    }

    /// Adds the existing processes; their sessions begin now, although they are watched a moment later.
    ///
    /// # Errors
    /// None of the processes may be watched.
    pub fn take_up(&mut self) -> Result<(), RecordError> {
        let (since_ns, pids) = (now_ns(), process::children(self.target.postmaster));
        self.pages = pages(pids.len());
        allow_files(FILES_MOST);
        let mut first_refusal = None;
        for pid in pids {
            let who = process::title(pid).map_or_else(Who::default, |title| who(&title));
            if !self.wanted.fits(pid, &who) {
                continue;
            }
            if let Err(error) = self.listen(pid, who, since_ns, false) {
                first_refusal.get_or_insert(error);
            }
        }
        self.grow_up(&mut first_refusal);
        match first_refusal {
            Some(error) if self.backends.values().all(|backend| backend.word.is_none()) => {
                Err(RecordError::Unwatched(why(&error, Some(self.target.postmaster)), next(&error)))
            }
            _ => Ok(()),
        }
    }

    /// Begins to watch a process.
    ///
    /// A new process gets its session immediately, unless the filter may exclude it: that is known only when the
    /// process identifies itself.
    fn listen(&mut self, pid: i32, who: Who, since_ns: u64, is_born_here: bool) -> std::io::Result<()> {
        let at = (!is_born_here || self.wanted.all()).then(|| self.add(pid, who, since_ns, is_born_here));
        match Backend::listen(pid, at, self.pages) {
            Ok(backend) => {
                self.backends.insert(pid, backend);
                self.young.push((pid, since_ns));
                Ok(())
            }
            Err(error) => {
                // Nothing of it will be observed, not even its end.
                self.refuse(&error, pid);
                self.end_session(at, now_ns(), false);
                Err(error)
            }
        }
    }

    fn add(&mut self, pid: i32, who: Who, since_ns: u64, is_born_here: bool) -> usize {
        let at = self.sessions.len();
        self.sessions.push(Session::unseen(at as u32, pid, who, since_ns, is_born_here));
        at
    }

    fn refuse(&mut self, error: &std::io::Error, pid: i32) {
        if error.raw_os_error() != Some(libc::ESRCH) {
            *self.refused.entry(why(error, Some(pid))).or_default() += 1;
        }
    }

    /// Waits for a new process, but at most `at_most`.
    pub fn wait(&self, at_most: std::time::Duration) {
        let soon = std::time::Duration::from_micros(300);
        self.forks.0.wait(if self.young.is_empty() { at_most } else { at_most.min(soon) });
    }

    /// Adds new processes, and watches those that now have their place in shared memory.
    pub fn births(&mut self) {
        let (mut born, postmaster) = (Vec::new(), self.target.postmaster);
        self.forks.1.each(&mut |kind, misc, body| match record(kind, misc, body) {
            Some(told) if told.note == Note::Fork { parent: postmaster } => born.push((told.pid, told.at_ns)),
            Some(told) if matches!(told.note, Note::Lost(_)) => born.push((0, told.at_ns)),
            _ => {}
        });
        for (pid, at_ns) in born {
            if pid == 0 {
                self.look_for_children(at_ns);
            } else {
                self.forget(pid);
                drop(self.listen(pid, Who::default(), at_ns, true));
            }
        }
        if !self.young.is_empty() {
            self.grow_up(&mut None);
        }
    }

    /// Adds child processes that are not known yet, after notes of forks were lost.
    fn look_for_children(&mut self, at_ns: u64) {
        for pid in process::children(self.target.postmaster) {
            if !self.backends.contains_key(&pid) {
                drop(self.listen(pid, Who::default(), at_ns, true));
            }
        }
    }

    /// Ends the session of a process whose number was reused.
    fn forget(&mut self, pid: i32) {
        if let Some(backend) = self.backends.remove(&pid) {
            self.end_session(backend.at, now_ns(), true);
        }
        self.young.retain(|(young, _)| *young != pid);
    }

    fn end_session(&mut self, at: Option<usize>, at_ns: u64, is_exit: bool) {
        if let Some(session) = at.and_then(|at| self.sessions.get_mut(at)) {
            session.end(at_ns, is_exit, &mut self.store, &mut self.known);
        }
    }

    /// Watches the young processes that now have their place in shared memory.
    fn grow_up(&mut self, refusal: &mut Option<std::io::Error>) {
        for (pid, since_ns) in std::mem::take(&mut self.young) {
            match self.grow(pid, since_ns) {
                Ok(false) if now_ns().saturating_sub(since_ns) < YOUNG_NS => self.young.push((pid, since_ns)),
                Ok(_) => {}
                Err(error) => {
                    self.refuse(&error, pid);
                    refusal.get_or_insert(error);
                }
            }
        }
    }

    /// Sets the next watchpoint of a process; returns true if nothing more is to be done.
    fn grow(&mut self, pid: i32, since_ns: u64) -> std::io::Result<bool> {
        let Some(backend) = self.backends.get_mut(&pid) else { return Ok(true) };
        if backend.word.is_none() && !backend.watch_waits(&self.target)? {
            return Ok(false);
        }
        if !backend.is_seen && !self.begin(pid, since_ns) {
            return Ok(true);
        }
        let (Some(backend), Some(layout)) = (self.backends.get_mut(&pid), &self.target.layout) else { return Ok(true) };
        if !self.with_calls || backend.has_calls {
            return Ok(true);
        }
        backend.watch_calls(layout)?;
        // The statement it has been working on since before the recording.
        let session = backend.at.and_then(|at| self.sessions.get_mut(at));
        if let Some(session) = session.filter(|session| session.who.kind == "client backend")
            && session.was_there()
            && let Some(text) = backend.first_text(layout)
        {
            session.recall(&text, &mut self.store);
        }
        Ok(backend.has_calls)
    }

    /// Begins the observation of a process; returns false if it is not wanted.
    fn begin(&mut self, pid: i32, since_ns: u64) -> bool {
        let Some(backend) = self.backends.get_mut(&pid) else { return false };
        let (now, at) = (backend.now(), backend.at);
        let at = match at {
            Some(at) if !self.sessions[at].who.kind.is_empty() => at,
            _ => {
                let found = process::title(pid).map_or_else(Who::default, |title| who(&title));
                let found = self.followed(found);
                if !self.wanted.all() && !self.wanted.fits(pid, &found) {
                    self.backends.remove(&pid);
                    return false;
                }
                let at = at.unwrap_or_else(|| self.add(pid, Who::default(), since_ns, true));
                self.sessions[at].who = found;
                at
            }
        };
        let Some(backend) = self.backends.get_mut(&pid) else { return false };
        backend.at = Some(at);
        if let Some((at_ns, event)) = now {
            backend.is_seen = true;
            self.sessions[at].observe(at_ns, event, &mut self.store, &mut self.known);
        }
        true
    }

    /// Returns the identity of a process; a parallel worker gets the database and the user of its leader.
    fn followed(&self, mut found: Who) -> Who {
        let leader = found.leader.and_then(|leader| self.backends.get(&leader)?.at);
        if let Some(leader) = leader {
            let of_leader = &self.sessions[leader].who;
            (found.database, found.user) = (of_leader.database.clone(), of_leader.user.clone());
        }
        found
    }

    /// Stops watching calls; returns true if any were watched.
    pub fn give_up_calls(&mut self) -> bool {
        self.with_calls = false;
        let given_up = self.backends.values_mut().map(Backend::give_up_calls);
        given_up.filter(|was| *was).count() > 0
    }

    /// Removes all watchpoints and ends the sessions.
    pub fn end(&mut self, at_ns: u64) {
        let backends = std::mem::take(&mut self.backends);
        self.young.clear();
        for backend in backends.values() {
            let is_exit = !backend.is_there();
            self.end_session(backend.at, at_ns, is_exit);
        }
    }
}
