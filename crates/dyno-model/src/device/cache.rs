//! Controller memory in front of a device: writes are acknowledged here until it fills.
//!
//! ```text
//!   write --> room? --yes--> dirty lines --> done (a hit's time)
//!               |no                |
//!               v                  v  destage: some at once, in the order of offsets,
//!            wait in line     device below   neighbours together; then the lines are free
//! ```
//!
//! With a battery the memory is safe; while the battery learns (or without one) every write goes through to the device
//! before it is acknowledged, and dirty lines are still destaged. A write of lines that are already dirty takes no
//! space: it is absorbed. A line that is written again while it is being destaged stays dirty. Reads entirely within
//! dirty lines are hits; all others go to the device below. A write larger than the memory goes through.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::{Rc, Weak};

use super::slab::Slab;
use super::{Device, Done, Kind, Observer, Request, parameters};
use crate::kernel::sample::whole_ns;
use crate::kernel::{Machine, MachineId, Sim, Station, StationReport};

parameters! {
    /// Parameters of a controller's cache.
    pub struct CacheParameters {
        /// memory for dirty lines
        capacity_kb: u64 = 512 << 10, from "512 MB a cell up to X4 (Expert Oracle Exadata, ch. 5)";
        /// line
        line_kb: u64 = 8, from "chosen: a database block", in 1.0..=1e6;
        /// time of a hit without the time of its bytes
        hit_us: f64 = 60.0, from "assumed: command and memory of a SAS controller";
        /// rate into and out of memory
        rate_mb_s: f64 = 1_000.0, from "PCIe-attached SAS controllers of the time: order of size";
        /// writes to the device below at once
        destages: u64 = 16, from "chosen: what tagged queueing makes use of", in 1.0..=1e6;
        /// longest write to the device below
        destage_kb: u64 = 256, from "chosen", in 1.0..=1e6;
        /// true if there is a battery
        battery: bool = true, from "X2 to X4: yes";
        /// interval between two learn cycles of the battery; 0: never
        learn_every_s: f64 = 0.0, from "cells: four times a year; 0 here", in 0.0..=1e7;
        /// length of a learn cycle
        learn_s: f64 = 0.0, from "hours on real cells", in 0.0..=1e7;
    }
}

/// State of a line in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Dirty,
    Destaging,
    /// Written again while being destaged.
    Again,
}

struct Open {
    request: Request,
    done: Done,
    arrived_ns: u64,
}

#[derive(Default)]
struct State {
    lines: BTreeMap<u64, Line>,
    /// Dirty lines that wait for a destage.
    dirty: BTreeSet<u64>,
    /// Incomplete requests.
    open: Slab<Open>,
    /// Writes that wait for space.
    stalled: VecDeque<u64>,
    /// First and last line of each write to the device below.
    destaging: Slab<(u64, u64)>,
    /// Where the last destage ended.
    swept: u64,
    station: Station,
    lines_in: u64,
    lines_absorbed: u64,
    lines_out: u64,
}

impl State {
    fn write(&mut self, line: u64) {
        self.lines_in += 1;
        match self.lines.get_mut(&line) {
            None => {
                self.lines.insert(line, Line::Dirty);
                self.dirty.insert(line);
            }
            Some(Line::Dirty | Line::Again) => self.lines_absorbed += 1,
            Some(kind) => *kind = Line::Again,
        }
    }

    /// Returns a run of dirty lines, the first at or after the end of the last sweep, and marks it as being destaged.
    fn sweep(&mut self, longest: u64) -> Option<(u64, u64)> {
        let from = self.dirty.range(self.swept..).next().or_else(|| self.dirty.first());
        let (first, mut last) = (*from?, *from?);
        while last + 1 - first < longest && self.dirty.contains(&(last + 1)) {
            last += 1;
        }
        for line in first..=last {
            self.dirty.remove(&line);
            self.lines.insert(line, Line::Destaging);
        }
        self.swept = last + 1;
        Some((first, last))
    }

    fn swept(&mut self, (first, last): (u64, u64)) {
        for line in first..=last {
            self.lines_out += 1;
            if self.lines.get(&line) == Some(&Line::Again) {
                self.lines.insert(line, Line::Dirty);
                self.dirty.insert(line);
            } else {
                self.lines.remove(&line);
            }
        }
    }
}

/// Cache in front of a device.
pub struct Cache {
    name: String,
    sim: Sim,
    id: Cell<Option<MachineId>>,
    parameters: CacheParameters,
    below: Rc<dyn Device>,
    state: RefCell<State>,
    me: Weak<Self>,
}

/// Tokens at or above this are destages.
const DESTAGE: u64 = 1 << 40;

impl Cache {
    /// Returns an empty cache.
    pub fn new(sim: &Sim, name: &str, parameters: CacheParameters, below: Rc<dyn Device>) -> Rc<Self> {
        let cache = Rc::new_cyclic(|me| Self {
            name: name.into(),
            sim: sim.clone(),
            id: Cell::default(),
            parameters,
            below,
            state: RefCell::default(),
            me: me.clone(),
        });
        cache.id.set(Some(sim.add_machine(cache.clone())));
        cache
    }

    /// Returns the number of lines that are dirty or being destaged.
    pub fn lines(&self) -> u64 {
        self.state.borrow().lines.len() as u64
    }

    /// Returns the number of written lines that took no space because they were dirty already.
    pub fn absorbed(&self) -> u64 {
        self.state.borrow().lines_absorbed
    }

    /// Returns true if no line is lost: lines in = absorbed + written below + held; a line that was written again while
    /// being destaged is held twice.
    pub fn holds(&self) -> bool {
        let state = self.state.borrow();
        let again = state.lines.values().filter(|&&line| line == Line::Again).count();
        let held = (state.lines.len() + again) as u64;
        state.lines_in == state.lines_absorbed + state.lines_out + held && state.lines.len() as u64 <= self.room()
    }

    /// Returns true if writes are acknowledged from memory now.
    pub fn writes_back(&self) -> bool {
        let CacheParameters { battery, learn_every_s, learn_s, .. } = self.parameters;
        let (every_ns, length_ns) = (whole_ns(learn_every_s * 1e9), whole_ns(learn_s * 1e9));
        // The first learning ends the first period.
        let learns = every_ns > 0 && self.sim.now_ns() % every_ns >= every_ns.saturating_sub(length_ns);
        battery && !learns
    }

    fn line_bytes(&self) -> u64 {
        self.parameters.line_kb << 10
    }

    /// Returns the number of lines that the memory holds.
    pub fn room(&self) -> u64 {
        self.parameters.capacity_kb / self.parameters.line_kb
    }

    /// Serves the request from memory.
    fn hit(&self, state: &mut State, token: u64) {
        let Some(open) = state.open.get_mut(token) else { return };
        let CacheParameters { hit_us, rate_mb_s, .. } = self.parameters;
        let ns = whole_ns(hit_us * 1e3 + open.request.bytes as f64 / rate_mb_s * 1e3);
        let arrived_ns = state.station.arrived_ns(open.arrived_ns);
        state.station.start(self.sim.now_ns(), arrived_ns);
        if let Some(id) = self.id.get() {
            self.sim.call_at(self.sim.now_ns() + ns, id, token);
        }
    }

    /// Passes the request to the device.
    fn pass(&self, state: &mut State, token: u64) {
        let Some(open) = state.open.get_mut(token) else { return };
        let arrived_ns = state.station.arrived_ns(open.arrived_ns);
        state.station.start(self.sim.now_ns(), arrived_ns);
        if let Some(me) = self.me.upgrade() {
            self.below.submit(open.request, Done::new(me, token));
        }
    }

    /// Admits waiting writes, in order, while they fit.
    fn admit(&self, state: &mut State) {
        while let Some(&token) = state.stalled.front() {
            let Some(open) = state.open.get_mut(token) else { return };
            let (first, last) = open.request.units(self.line_bytes());
            let new = (first..=last).filter(|line| !state.lines.contains_key(line)).count() as u64;
            if state.lines.len() as u64 + new > self.room() {
                return;
            }
            state.stalled.pop_front();
            (first..=last).for_each(|line| state.write(line));
            self.hit(state, token);
        }
    }

    fn destage(&self, state: &mut State) {
        let longest = (self.parameters.destage_kb / self.parameters.line_kb).max(1);
        while (state.destaging.len() as u64) < self.parameters.destages.max(1) {
            let Some(run) = state.sweep(longest) else { return };
            let bytes = (run.1 + 1 - run.0) * self.line_bytes();
            let token = DESTAGE + state.destaging.insert(run);
            let request = Request::write(run.0 * self.line_bytes(), bytes);
            if let Some(me) = self.me.upgrade() {
                self.below.submit(request, Done::new(me, token));
            }
        }
    }

    fn complete(&self, token: u64) {
        let mut state = self.state.borrow_mut();
        let Some(open) = state.open.remove(token) else { return };
        let arrived_ns = state.station.arrived_ns(open.arrived_ns);
        state.station.depart(self.sim.now_ns(), arrived_ns);
        drop(state);
        open.done.tell();
    }
}

impl Observer for Cache {
    fn done(&self, token: u64) {
        if token < DESTAGE {
            self.complete(token);
            return;
        }
        let state = &mut *self.state.borrow_mut();
        let Some(run) = state.destaging.remove(token - DESTAGE) else { return };
        state.swept(run);
        self.admit(state);
        self.destage(state);
    }
}

impl Machine for Cache {
    fn event(&self, token: u64) {
        self.complete(token);
    }
}

impl Device for Cache {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity_bytes(&self) -> u64 {
        self.below.capacity_bytes()
    }

    fn submit(&self, mut request: Request, done: Done) {
        request.offset_bytes %= self.capacity_bytes();
        let arrived_ns = self.sim.now_ns();
        let state = &mut *self.state.borrow_mut();
        state.station.arrive(arrived_ns);
        let token = state.open.insert(Open { request, done, arrived_ns });
        let (first, last) = request.units(self.line_bytes());
        if request.kind == Kind::Read {
            if (first..=last).all(|line| state.lines.contains_key(&line)) {
                self.hit(state, token);
            } else {
                self.pass(state, token);
            }
        } else if self.writes_back() && last + 1 - first <= self.room() {
            state.stalled.push_back(token);
            self.admit(state);
            self.destage(state);
        } else {
            self.pass(state, token);
        }
    }

    fn reports(&self) -> Vec<StationReport> {
        let state = self.state.borrow();
        let own = state.station.report(&self.name, 1, self.sim.now_ns());
        std::iter::once(own).chain(self.below.reports()).collect()
    }

    fn reset(&self) {
        self.state.borrow_mut().station.reset(self.sim.now_ns());
        self.below.reset();
    }
}
