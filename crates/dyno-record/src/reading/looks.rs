//! Looks at all backends one after the other, in a separate thread, with the changes since the previous look.
//!
//! A look reads two words of each backend: the event for which it waits, and the change count of its status. More is
//! read only if one of them has changed. New and ended processes are found in the process array.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use crate::handles::Handles;
use crate::perf::now_ns;
use crate::request::DRAIN_EVERY;

use super::arrays::{Arrays, NAME_BYTES, PID_AT, STATE_AT, STATEMENT_AT, XACT_AT};
use super::horizon::{Horizons, oldest, precedes};
use super::locks::{Locks, is_lock};
use super::memory::{Memory, Shared};
use super::rhythm::{Rhythm, sleep_exactly};
use super::seen::{Batch, Before, Change, Seen, Status};
use super::stretches::Pause;

/// Interval between two searches for new and ended processes [ns].
const COME_AND_GO_NS: u64 = 200_000;
/// The same for looks that are only summed up: a search reads all elements of the process array [ns].
const SUMMED_COME_AND_GO_NS: u64 = 5_000_000;
/// Interval after which changes are passed on [ns].
const HAND_ON_NS: u64 = 10_000_000;
/// Largest number of changes that are collected; once it is reached, they are passed on before the interval is over.
const CHANGES_MOST: usize = 1 << 14;

struct Slot {
    number: u32,
    pid: i32,
    element: usize,
    entry: Option<u64>,
    event: u32,
    count: u32,
    statement_us: i64,
    /// First look that found the current event. The fields after it are the largest error of the event's start, the
    /// holder of the awaited lock, and the lock's target.
    since_look: u64,
    late_ns: u64,
    holder: i32,
    lock: Option<[u64; 2]>,
    /// Oldest horizon since the last call of [`Looks::take_horizons`].
    horizon: Option<u32>,
}

/// State of the repeated looks at one server.
pub struct Looks {
    memory: Shared,
    arrays: Arrays,
    running: [u32; 2],
    slots: Vec<Slot>,
    pids: Vec<i32>,
    pid_places: Vec<u64>,
    entry_places: Vec<u64>,
    places: Vec<u64>,
    values: Vec<u32>,
    scratch: Vec<u32>,
    locks: Locks,
    /// True if the looks are only summed up, which needs neither texts nor the holders of locks.
    is_summed: bool,
    horizons: Option<Horizons>,
    next_number: u32,
    look: u64,
    looked_ns: u64,
    came_ns: u64,
    changes: Vec<Change>,
}

impl Looks {
    /// Creates the looks at a server; `running` are the states of a working session, `next_number` is the number of the
    /// first process.
    pub fn new(memory: Shared, arrays: Arrays, running: [u32; 2], next_number: u32) -> Self {
        let pid_places: Vec<u64> = (0..arrays.procs.count).map(|number| arrays.procs.at(number) + arrays.pid).collect();
        let entry_places = (0..arrays.entries.count).map(|number| arrays.entries.at(number) + PID_AT).collect();
        Self {
            pids: vec![0; pid_places.len()],
            memory,
            arrays,
            running,
            slots: Vec::new(),
            pid_places,
            entry_places,
            places: Vec::new(),
            values: Vec::new(),
            scratch: Vec::new(),
            locks: Locks::default(),
            is_summed: false,
            horizons: None,
            next_number,
            look: 0,
            looked_ns: 0,
            came_ns: 0,
            changes: Vec::new(),
        }
    }

    /// Makes the looks cheaper, because they are only summed up: texts and holders of locks are not read. The horizons
    /// are read if it is known where they are.
    #[must_use]
    pub fn summed(mut self, horizons: Option<Horizons>) -> Self {
        (self.is_summed, self.horizons) = (true, horizons);
        self
    }

    /// Looks once; the first look registers the existing processes.
    pub fn look(&mut self, pause: &mut Pause) {
        let at_ns = now_ns();
        let is_first = self.look == 0;
        let apart_ns = if is_first { 0 } else { at_ns.saturating_sub(self.looked_ns) };
        let was_away = !is_first && pause.add(at_ns, apart_ns);
        self.look += 1;
        if self.memory.gather(&self.places, &mut self.values) {
            let words = self.words();
            for at in 0..self.slots.len() {
                let (event, count) = (self.values[words * at], self.values[words * at + 1]);
                if self.horizons.is_some() {
                    self.hold(at, oldest(self.values[words * at + 2], self.values[words * at + 3]));
                }
                let slot = &self.slots[at];
                let has_status = slot.entry.is_some() && count != slot.count;
                if event != slot.event || has_status {
                    self.changed(at, at_ns, (event, has_status), (apart_ns, was_away));
                }
            }
        }
        let search_ns = if self.is_summed { SUMMED_COME_AND_GO_NS } else { COME_AND_GO_NS };
        if is_first || at_ns.saturating_sub(self.came_ns) >= search_ns {
            self.came_ns = at_ns;
            self.come_and_go(at_ns, !is_first);
            if !self.is_summed {
                self.ask_locks(at_ns, apart_ns);
            }
        }
        self.looked_ns = at_ns;
    }

    /// Records the change of a backend.
    fn changed(&mut self, at: usize, at_ns: u64, (event, has_status): (u32, bool), (apart_ns, was_away): (u64, bool)) {
        let number = self.slots[at].number;
        if was_away {
            let before = self.before(at, 0);
            self.changes.push((number, at_ns, Seen::Unseen(self.looked_ns, before)));
        }
        let statement_us = self.slots[at].statement_us;
        let status = if has_status { self.status(at) } else { None };
        // The same event in another statement is another wait.
        let is_another = self.slots[at].statement_us != statement_us;
        let is_running = status.as_ref().is_none_or(|status| status.is_running);
        let mut status = status.map(|status| (number, at_ns, Seen::Status(status)));
        // A statement begins after the wait for the client, and ends before it.
        if !is_running {
            self.changes.extend(status.take());
        }
        if event != self.slots[at].event || was_away || is_another && event != 0 {
            self.wait(at, at_ns, (event, apart_ns));
        }
        self.changes.extend(status);
    }

    /// Returns the known facts of the wait that ended at most `apart_ns` ago.
    fn before(&self, at: usize, apart_ns: u64) -> Before {
        let slot = &self.slots[at];
        Before { looks: self.look - slot.since_look, within_ns: apart_ns.max(slot.late_ns), holder: slot.holder }
    }

    /// Reads the status of a backend; `None` while it is being written, or if it belongs to another process by now.
    fn status(&mut self, at: usize) -> Option<Status> {
        let (entry, arrays) = (self.slots[at].entry?, &self.arrays);
        let (memory, published) = (&self.memory, arrays.published);
        let count = memory.u32(entry).filter(|count| count.is_multiple_of(2))?;
        let is_own = memory.u32(entry + PID_AT)? as i32 == self.slots[at].pid;
        let state = memory.u32(entry + arrays.state)?;
        let statement_us = memory.u64(entry + STATEMENT_AT)? as i64;
        let xact_us = memory.u64(entry + XACT_AT)? as i64;
        let state_us = memory.u64(entry + STATE_AT)? as i64;
        let query_id = memory.u64(entry + published.query_id)?;
        let is_running = self.running.contains(&state);
        let mut text = None;
        if is_running && !self.is_summed && statement_us != self.slots[at].statement_us {
            let mut bytes = vec![0; arrays.text_bytes];
            memory.read(memory.u64(entry + published.text)?, &mut bytes)?;
            bytes.truncate(bytes.iter().position(|byte| *byte == 0)?);
            text = Some(bytes);
        }
        if memory.u32(entry)? != count {
            return None;
        }
        let slot = &mut self.slots[at];
        slot.count = count;
        if !is_own {
            slot.entry = None;
            self.place();
            return None;
        }
        if is_running {
            slot.statement_us = statement_us;
        }
        Some(Status { is_running, state, state_us, statement_us, xact_us, query_id, text })
    }

    fn holder(&mut self, at: usize, event: u32) -> i32 {
        let proc = self.arrays.procs.at(self.slots[at].element);
        self.locks.holder(&self.memory, &self.arrays, proc, event).unwrap_or(0)
    }

    /// Adds a change: a backend now waits for this event.
    fn wait(&mut self, at: usize, at_ns: u64, (event, apart_ns): (u32, u64)) {
        let (holder, lock) =
            if is_lock(event) && !self.is_summed { (self.holder(at, event), self.lock(at, event)) } else { (0, None) };
        let before = self.before(at, apart_ns);
        let slot = &mut self.slots[at];
        (slot.event, slot.since_look, slot.late_ns) = (event, self.look, apart_ns);
        (slot.holder, slot.lock) = (holder, lock);
        self.changes.push((slot.number, at_ns, Seen::Wait { event, before }));
    }

    fn lock(&mut self, at: usize, event: u32) -> Option<[u64; 2]> {
        let proc = self.arrays.procs.at(self.slots[at].element);
        self.locks.target(&self.memory, &self.arrays, proc, event)
    }

    /// Separates waits whose lock has changed, and retries to read holders that could not be read.
    ///
    /// A session may wait for two locks in succession with so short a time between them that no look finds it without a
    /// wait.
    fn ask_locks(&mut self, at_ns: u64, apart_ns: u64) {
        for at in 0..self.slots.len() {
            let event = self.slots[at].event;
            if !is_lock(event) {
                continue;
            }
            let (before, now) = (self.slots[at].lock, self.lock(at, event));
            if before.is_some() && now.is_some() && before != now {
                self.wait(at, at_ns, (event, apart_ns));
                continue;
            }
            self.slots[at].lock = before.or(now);
            if self.slots[at].holder == 0 {
                self.slots[at].holder = self.holder(at, event);
            }
        }
    }

    /// Finds new and ended processes, and missing statuses.
    fn come_and_go(&mut self, at_ns: u64, is_new: bool) {
        let mut now = std::mem::take(&mut self.scratch);
        now.resize(self.pid_places.len(), 0);
        let is_read = self.memory.gather(&self.pid_places, &mut now);
        let mut has_changed = false;
        for (element, pid) in now.iter().enumerate().filter(|_| is_read) {
            let (pid, before) = (*pid as i32, self.pids[element]);
            if pid == before {
                continue;
            }
            has_changed = true;
            self.pids[element] = pid;
            if before != 0 {
                self.end(element, at_ns);
            }
            if pid != 0 {
                self.begin(element, pid, (at_ns, is_new));
            }
        }
        self.scratch = now;
        if self.find_entries() || has_changed {
            self.place();
        }
    }

    fn end(&mut self, element: usize, at_ns: u64) {
        if let Some(at) = self.slots.iter().position(|slot| slot.element == element) {
            let slot = self.slots.swap_remove(at);
            self.changes.push((slot.number, at_ns, Seen::End));
        }
    }

    fn begin(&mut self, element: usize, pid: i32, (at_ns, is_new): (u64, bool)) {
        let event = self.memory.u32(self.arrays.procs.at(element) + self.arrays.word).unwrap_or(0);
        let number = self.next_number;
        self.next_number += 1;
        let holder = 0;
        self.slots.push(Slot {
            number,
            pid,
            element,
            entry: None,
            event,
            count: u32::MAX,
            statement_us: 0,
            since_look: self.look,
            late_ns: 0,
            holder,
            lock: None,
            horizon: None,
        });
        self.changes.push((number, at_ns, Seen::Begin { pid, event, is_new }));
    }

    /// Finds the statuses of processes that have none; returns true if one was found.
    fn find_entries(&mut self) -> bool {
        if self.slots.iter().all(|slot| slot.entry.is_some()) {
            return false;
        }
        let mut now = std::mem::take(&mut self.scratch);
        now.resize(self.entry_places.len(), 0);
        let is_read = self.memory.gather(&self.entry_places, &mut now);
        let mut has_found = false;
        for slot in self.slots.iter_mut().filter(|slot| is_read && slot.entry.is_none()) {
            let number = now.iter().position(|pid| *pid as i32 == slot.pid);
            slot.entry = number.map(|number| self.arrays.entries.at(number));
            has_found |= number.is_some();
        }
        self.scratch = now;
        has_found
    }

    /// Returns the number of words that a look reads of each backend.
    fn words(&self) -> usize {
        if self.horizons.is_some() { 4 } else { 2 }
    }

    /// Lists the addresses of the words of each backend.
    fn place(&mut self) {
        let words = self.slots.iter().flat_map(|slot| {
            let word = self.arrays.procs.at(slot.element) + self.arrays.word;
            let horizon = self.horizons.map(|horizons| horizons.at(slot.element));
            [word, slot.entry.unwrap_or(word)].into_iter().chain(horizon.into_iter().flatten())
        });
        self.places = words.collect();
        self.values.resize(self.places.len(), 0);
    }

    /// Keeps the horizon of a backend if it is older than those seen before.
    fn hold(&mut self, at: usize, seen: Option<u32>) {
        let slot = &mut self.slots[at];
        let is_older = |one: u32| slot.horizon.is_none_or(|before| precedes(one, before));
        if seen.is_some_and(is_older)
            && let Some(horizons) = self.horizons
        {
            slot.horizon = horizons.read(&self.memory, slot.element).filter(|one| is_older(*one)).or(slot.horizon);
        }
    }

    /// Returns the age of the oldest horizon that each backend had since the last call, in transactions.
    pub fn take_horizons(&mut self) -> HashMap<u32, u32> {
        let Some(horizons) = self.horizons else { return HashMap::new() };
        let memory = &self.memory;
        let oldest = self.slots.iter_mut().filter_map(|slot| Some((slot.number, slot.horizon.take()?)));
        oldest.filter_map(|(number, horizon)| Some((number, horizons.age(memory, horizon)?))).collect()
    }

    /// Returns the application name of each session that has a status, by the number of its process.
    pub fn applications(&self) -> impl Iterator<Item = (u32, String)> {
        self.slots.iter().filter_map(|slot| {
            let mut bytes = [0; NAME_BYTES as usize];
            let name = self.memory.u64(slot.entry? + self.arrays.published.text - 8)?;
            self.memory.read(name, &mut bytes)?;
            let end = bytes.iter().position(|byte| *byte == 0)?;
            Some((slot.number, String::from_utf8_lossy(&bytes[..end]).into_owned()))
        })
    }

    /// Returns true if the server still uses the memory that is looked at.
    pub fn is_current(&self) -> bool {
        self.memory.identity.is_current()
    }

    /// Returns the number of live processes.
    pub fn alive(&self) -> usize {
        self.slots.len()
    }

    /// Returns the changes found so far, and removes them.
    pub fn take(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Looks until `stop` is set, except while `handles` pause the looks, as often as the share `limit` of the machine
    /// allows, and passes on the findings.
    pub fn run(mut self, limit: Option<f64>, (stop, handles): (&AtomicBool, &Handles), to: &SyncSender<Batch>) -> u32 {
        sleep_exactly();
        let mut rhythm = Rhythm::new(limit, self.looked_ns);
        let mut pause = Pause::new(rhythm.pace);
        loop {
            rhythm.wait();
            self.look(&mut pause);
            let is_over = stop.load(Ordering::Relaxed);
            let is_paused = handles.is_paused();
            let is_due = is_paused || self.looked_ns - rhythm.handed_ns >= HAND_ON_NS;
            if !(is_over || is_due || self.changes.len() >= CHANGES_MOST) {
                continue;
            }
            rhythm.handed_ns = self.looked_ns;
            let stretch = pause.take(self.looked_ns, rhythm.spent_ns());
            let batch = Batch { changes: self.take(), until_ns: self.looked_ns, stretch };
            if to.send(batch).is_err() || is_over {
                return self.next_number;
            }
            while is_paused && handles.is_paused() && !stop.load(Ordering::Relaxed) {
                std::thread::sleep(DRAIN_EVERY / 5);
            }
            if rhythm.decide(self.looked_ns) {
                pause.change(rhythm.pace);
            }
        }
    }
}
