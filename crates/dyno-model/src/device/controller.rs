//! Disk controller: one processor and one memory in front of the devices of a cell, or of a single device.
//!
//! ```text
//!   write --> room? --yes--> dirty lines --> processor --> done (a hit's time)
//!               |no                |          one command at a time; the host's come first
//!               v                  v              |
//!            wait in line     flush, or start_ratio reached: runs of neighbours,
//!                             some at once of each device, in the order of offsets --> device
//! ```
//!
//! **Memory.** All devices share the memory. Dirty lines stay in it until a flush, which comes every `flush_s` and
//! writes all lines that are dirty at that time. They are also written when `start_ratio` of the memory is filled,
//! until `stop_ratio` is reached. A write to lines that are already dirty takes no space: it is absorbed. While a line
//! is being written to disk, it cannot be changed (`locks`); a log that is appended to in pieces smaller than a line
//! meets such a line at each flush. Reads entirely within lines in memory are hits; all others, and writes larger than
//! the memory, go to the device.
//!
//! **Processor.** Each command occupies the processor for `command_us` and for the transfer of its bytes: a write
//! before its lines are safe or go to disk, a read after the device has answered. So the controller's own writes delay
//! some commands of the host by the rest of one transfer: the share of these commands is the bytes per second of its
//! own writes / `rate_mb_s`. Writes to quiet disks are slow now and then. The same path limits the scans of all disks.
//!
//! **Battery.** In a learn cycle, or without a battery, every write goes to the device before it is acknowledged.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use super::cache_lines::{Lines, Run};
use super::cache_parameters::CacheParameters;
use super::slab::Slab;
use super::{Device, Done, Kind, Observer, Request};
use crate::kernel::sample::whole_ns;
use crate::kernel::{Machine, MachineId, Sim, Station, StationReport};

struct Open {
    port: usize,
    request: Request,
    done: Done,
    arrived_ns: u64,
}

/// Command of the processor.
#[derive(Clone, Copy)]
enum Command {
    /// A request that is served from memory.
    Hit(u64),
    /// A write that goes through to the device.
    Through(u64),
    /// A read that the device has answered.
    Answer(u64),
    /// A write of the controller itself.
    Destage(u64),
}

/// A device with its part of the memory.
struct Port {
    below: Rc<dyn Device>,
    lines: Lines,
    /// Number of writes to the device that are under way.
    destages: u64,
    /// Writes that wait for a line that is being written to disk.
    locked: VecDeque<u64>,
    station: Station,
}

#[derive(Default)]
struct State {
    ports: Vec<Port>,
    open: Slab<Open>,
    /// Writes of all ports that wait for space.
    stalled: VecDeque<u64>,
    /// Writes to devices under way.
    destaging: Slab<(usize, Run)>,
    /// Number of lines in memory, summed over all ports.
    used: u64,
    /// True from the time when `start_ratio` is exceeded until the memory is down to `stop_ratio`.
    urgent: bool,
    flush_armed: bool,
    commands: VecDeque<(Command, u64)>,
    own_commands: VecDeque<(Command, u64)>,
    serving: Option<(Command, u64)>,
    processor: Station,
}

/// A controller.
pub struct Controller {
    name: String,
    sim: Sim,
    id: Cell<Option<MachineId>>,
    parameters: CacheParameters,
    phase_ns: u64,
    state: RefCell<State>,
    me: Weak<Self>,
}

/// Tokens at or above this are writes of the controller itself.
const DESTAGE: u64 = 1 << 40;
/// Token of the event that the processor has completed a command.
const PROCESSED: u64 = 1 << 41;
/// Token of the event that a flush is due.
const FLUSH: u64 = 1 << 42;

impl Controller {
    /// Returns a controller without devices. Its first flush is at a random time, so controllers do not flush together.
    pub fn new(sim: &Sim, name: &str, parameters: CacheParameters) -> Rc<Self> {
        let every_ns = whole_ns(parameters.flush_s * 1e9).max(1);
        let controller = Rc::new_cyclic(|me| Self {
            name: name.into(),
            sim: sim.clone(),
            id: Cell::default(),
            parameters,
            phase_ns: sim.stream(&format!("{name}/flush")).below(every_ns),
            state: RefCell::default(),
            me: me.clone(),
        });
        controller.id.set(Some(sim.add_machine(controller.clone())));
        controller
    }

    /// Adds a device; returns its number.
    pub(super) fn add(&self, below: Rc<dyn Device>) -> usize {
        let (lines, locked, station) = (Lines::default(), VecDeque::new(), Station::default());
        let ports = &mut self.state.borrow_mut().ports;
        ports.push(Port { below, lines, destages: 0, locked, station });
        ports.len() - 1
    }

    pub(super) fn lines(&self, port: usize) -> u64 {
        self.state.borrow().ports[port].lines.len()
    }

    pub(super) fn absorbed(&self, port: usize) -> u64 {
        self.state.borrow().ports[port].lines.absorbed
    }

    /// Returns true if no line is lost, and the memory holds no more lines than it has room for.
    pub fn holds(&self) -> bool {
        let state = self.state.borrow();
        let used: u64 = state.ports.iter().map(|port| port.lines.len()).sum();
        used == state.used && used <= self.room() && state.ports.iter().all(|port| port.lines.holds())
    }

    /// Returns true if writes are now acknowledged as soon as they are in memory.
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

    /// Returns the number of lines for which the memory has room.
    pub fn room(&self) -> u64 {
        self.parameters.capacity_kb / self.parameters.line_kb
    }

    fn call(&self, time_ns: u64, token: u64) {
        if let Some(id) = self.id.get() {
            self.sim.call_at(time_ns, id, token);
        }
    }

    /// Receives a request of a port.
    pub(super) fn submit(&self, port: usize, request: Request, done: Done) {
        let arrived_ns = self.sim.now_ns();
        let state = &mut *self.state.borrow_mut();
        state.ports[port].station.arrive(arrived_ns);
        let token = state.open.insert(Open { port, request, done, arrived_ns });
        let (first, last) = request.units(self.line_bytes());
        if request.kind == Kind::Read {
            self.begin(state, token);
            if (first..=last).all(|line| state.ports[port].lines.has(line)) {
                self.command(state, Command::Hit(token));
            } else {
                self.pass(state, token);
            }
        } else if self.writes_back() && last + 1 - first <= self.room() {
            self.write(state, token);
            self.destage(state);
        } else {
            self.begin(state, token);
            self.command(state, Command::Through(token));
        }
    }

    /// Records that the service of a request begins now.
    fn begin(&self, state: &mut State, token: u64) {
        let Some(open) = state.open.get_mut(token) else { return };
        let station = &mut state.ports[open.port].station;
        let arrived_ns = station.arrived_ns(open.arrived_ns);
        station.start(self.sim.now_ns(), arrived_ns);
    }

    /// Passes the request to the device.
    fn pass(&self, state: &mut State, token: u64) {
        let (Some(open), Some(me)) = (state.open.get_mut(token), self.me.upgrade()) else { return };
        state.ports[open.port].below.submit(open.request, Done::new(me, token));
    }

    /// Queues a write until none of its lines is locked and there is space for it.
    fn write(&self, state: &mut State, token: u64) {
        let Some(open) = state.open.get_mut(token) else { return };
        let (port, run) = (&mut state.ports[open.port], open.request.units(self.line_bytes()));
        if self.parameters.locks && port.lines.on_their_way(run) {
            port.locked.push_back(token);
        } else {
            state.stalled.push_back(token);
            self.admit(state);
        }
    }

    /// Admits waiting writes, in order, while they fit.
    fn admit(&self, state: &mut State) {
        while let Some(&token) = state.stalled.front() {
            let Some(open) = state.open.get_mut(token) else { return };
            let (port, run) = (open.port, open.request.units(self.line_bytes()));
            let lines = &mut state.ports[port].lines;
            let new = lines.new_lines(run);
            if state.used + new > self.room() {
                return;
            }
            state.stalled.pop_front();
            // A line that began its way to disk while this write waited for space.
            if self.parameters.locks && lines.on_their_way(run) {
                state.ports[port].locked.push_back(token);
                continue;
            }
            (run.0..=run.1).for_each(|line| lines.write(line));
            state.used += new;
            self.begin(state, token);
            self.command(state, Command::Hit(token));
        }
    }

    /// Starts writes of dirty lines to the devices. These are the lines that a flush must write or, if the memory is
    /// too full or writes are not cached now, all dirty lines.
    fn destage(&self, state: &mut State) {
        let CacheParameters { start_ratio, stop_ratio, destages, destage_kb, .. } = self.parameters;
        let (used, room) = (state.used as f64, self.room() as f64);
        if used > room * start_ratio || !state.stalled.is_empty() {
            state.urgent = true;
        } else if used <= room * stop_ratio.min(start_ratio) {
            state.urgent = false;
        }
        let any = state.urgent || !self.writes_back();
        let longest = (destage_kb / self.parameters.line_kb).max(1);
        for port in 0..state.ports.len() {
            while state.ports[port].destages < destages.max(1) {
                let Some(run) = state.ports[port].lines.sweep(longest, any) else { break };
                state.ports[port].destages += 1;
                let token = state.destaging.insert((port, run));
                self.command(state, Command::Destage(token));
            }
        }
        self.arm(state);
    }

    /// Sets the time of the next flush if there is something to write.
    fn arm(&self, state: &mut State) {
        let every_ns = whole_ns(self.parameters.flush_s * 1e9);
        if every_ns == 0 || state.flush_armed || !state.ports.iter().any(|port| port.lines.is_dirty()) {
            return;
        }
        state.flush_armed = true;
        let since_ns = (self.sim.now_ns() + every_ns - self.phase_ns) % every_ns;
        self.call(self.sim.now_ns() + every_ns - since_ns, FLUSH);
    }

    fn flush(&self, state: &mut State) {
        state.flush_armed = false;
        state.ports.iter_mut().for_each(|port| port.lines.flush());
        self.destage(state);
    }

    /// Queues a command for the processor, which serves commands of the host before those of the controller.
    fn command(&self, state: &mut State, command: Command) {
        let now_ns = self.sim.now_ns();
        state.processor.arrive(now_ns);
        let own = matches!(command, Command::Destage(_));
        let queue = if own { &mut state.own_commands } else { &mut state.commands };
        queue.push_back((command, now_ns));
        self.serve(state);
    }

    /// Starts the next command of an idle processor.
    fn serve(&self, state: &mut State) {
        if state.serving.is_some() {
            return;
        }
        let Some((command, arrived_ns)) = state.commands.pop_front().or_else(|| state.own_commands.pop_front()) else {
            return;
        };
        let now_ns = self.sim.now_ns();
        state.processor.start(now_ns, state.processor.arrived_ns(arrived_ns));
        state.serving = Some((command, arrived_ns));
        let ns = self.command_ns() + whole_ns(self.bytes_of(state, command) as f64 / self.parameters.rate_mb_s * 1e3);
        self.call(now_ns + ns, PROCESSED);
    }

    fn command_ns(&self) -> u64 {
        let CacheParameters { command_us, hit_us, .. } = self.parameters;
        whole_ns(command_us.min(hit_us) * 1e3)
    }

    fn bytes_of(&self, state: &mut State, command: Command) -> u64 {
        match command {
            Command::Destage(token) => state.destaging.get_mut(token).map_or(0, |(_, run)| self.run_bytes(*run)),
            Command::Hit(token) | Command::Through(token) | Command::Answer(token) => {
                state.open.get_mut(token).map_or(0, |open| open.request.bytes)
            }
        }
    }

    fn run_bytes(&self, (first, last): Run) -> u64 {
        (last + 1 - first) * self.line_bytes()
    }

    /// Handles the end of a command; returns the observer of the request that this completes, or `None`.
    fn processed(&self, state: &mut State) -> Option<Done> {
        let (command, arrived_ns) = state.serving.take()?;
        let now_ns = self.sim.now_ns();
        state.processor.depart(now_ns, state.processor.arrived_ns(arrived_ns));
        let mut complete = None;
        match command {
            Command::Hit(token) => {
                let rest_ns = whole_ns(self.parameters.hit_us * 1e3) - self.command_ns();
                self.call(now_ns + rest_ns, token);
            }
            Command::Through(token) => self.pass(state, token),
            Command::Answer(token) => complete = self.complete(state, token),
            Command::Destage(token) => {
                let &mut (port, run) = state.destaging.get_mut(token)?;
                let request = Request::write(run.0 * self.line_bytes(), self.run_bytes(run));
                let done = Done::new(self.me.upgrade()?, DESTAGE + token);
                state.ports[port].below.submit(request, done);
            }
        }
        self.serve(state);
        complete
    }

    fn complete(&self, state: &mut State, token: u64) -> Option<Done> {
        let open = state.open.remove(token)?;
        let station = &mut state.ports[open.port].station;
        station.depart(self.sim.now_ns(), station.arrived_ns(open.arrived_ns));
        Some(open.done)
    }

    /// Handles a run that has been written to its device: continues the writes that waited for its lines or for space.
    fn destaged(&self, state: &mut State, token: u64) {
        let Some((port, run)) = state.destaging.remove(token) else { return };
        let of = &mut state.ports[port];
        of.destages -= 1;
        state.used -= of.lines.swept(run);
        let locked = std::mem::take(&mut of.locked);
        for token in locked {
            self.write(state, token);
        }
        self.admit(state);
        self.destage(state);
    }

    /// Returns the statistics of a port under this name, and of the processor.
    pub(super) fn reports(&self, port: usize, name: &str) -> [StationReport; 2] {
        let (state, now_ns) = (self.state.borrow(), self.sim.now_ns());
        let own = state.ports[port].station.report(name, 1, now_ns);
        [own, state.processor.report(&self.name, 1, now_ns)]
    }

    pub(super) fn reset(&self, port: usize) {
        let (mut state, now_ns) = (self.state.borrow_mut(), self.sim.now_ns());
        state.ports[port].station.reset(now_ns);
        state.processor.reset(now_ns);
    }
}

impl Observer for Controller {
    fn done(&self, token: u64) {
        let mut borrowed = self.state.borrow_mut();
        let state = &mut *borrowed;
        if token >= DESTAGE {
            self.destaged(state, token - DESTAGE);
            return;
        }
        let is_read = state.open.get_mut(token).is_some_and(|open| open.request.kind == Kind::Read);
        if is_read {
            self.command(state, Command::Answer(token));
            return;
        }
        let complete = self.complete(state, token);
        drop(borrowed);
        if let Some(done) = complete {
            done.tell();
        }
    }
}

impl Machine for Controller {
    fn event(&self, token: u64) {
        let mut borrowed = self.state.borrow_mut();
        let state = &mut *borrowed;
        let complete = match token {
            FLUSH => {
                self.flush(state);
                None
            }
            PROCESSED => self.processed(state),
            token => self.complete(state, token),
        };
        drop(borrowed);
        if let Some(done) = complete {
            done.tell();
        }
    }
}
