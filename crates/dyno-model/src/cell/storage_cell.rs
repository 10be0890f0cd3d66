//! A storage cell: receives requests from the network, passes them to disks and flash modules, and answers.
//!
//! ```text
//!   request --> network --> redo write? --> flash log (the race)      disk i behind
//!               (dispatch)  otherwise   --> flash cache                      the controller
//!                                             |   \
//!                                             |    resource management --> disk 0 .. n
//!   answer  <-- network <-- last part <-------+--------------------------> module 0 .. m
//! ```
//!
//! A request waits for its bytes on the network (a write's on the way in, a read's on the way out) and for the request
//! time, which overlaps with that of others. All modules share one path, which one flash request uses at a time, so
//! that the requests per second of a cell are bounded while the bandwidths of its modules add up. Events at one
//! instant: the parts of a request are passed to the disk first, then to flash. Of two copies that complete at the same
//! instant, the one whose device scheduled this event first wins.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use super::Purpose;
use super::ask::Ask;
use super::counts::DatabaseCounts;
use super::iorm::{Directive, Next, Plan};
use super::parameters::{FlashLogParameters, RackParameters, ScanParameters};
use super::state::{Io, Op, Slice, State, Then, Units};
use crate::device::{Device, Done, Kind, Observer, Request};
use crate::kernel::sample::whole_ns;
use crate::kernel::{Machine, MachineId, Sim, StationReport};

/// A storage cell.
pub struct StorageCell {
    name: String,
    pub(super) sim: Sim,
    id: Cell<Option<MachineId>>,
    pub(super) disks: usize,
    pub(super) devices: Vec<Rc<dyn Device>>,
    request_ns: u64,
    ns_per_byte: f64,
    flash_request_ns: u64,
    pub(super) log_parameters: FlashLogParameters,
    scan_parameters: ScanParameters,
    small_bytes: u64,
    pub(super) state: RefCell<State>,
    me: Weak<Self>,
}

/// Lowest tokens of three kinds of events: an answer was sent, a module starts an I/O, a limit has expired.
const ANSWER: u64 = 1 << 40;
const TO_FLASH: u64 = 1 << 41;
const LIMIT: u64 = 1 << 42;

impl StorageCell {
    /// Returns a cell with these disks and modules.
    pub(super) fn new(
        sim: &Sim,
        name: &str,
        parameters: &RackParameters,
        (disks, modules): (Units, Units),
        slices: Vec<Slice>,
    ) -> Rc<Self> {
        let (disk_count, module_count) = (disks.len(), modules.len());
        let dice = sim.stream(&format!("{name}/common cause"));
        let state = State::new(parameters, (disk_count, module_count), slices, dice);
        let cell = Rc::new_cyclic(|me| Self {
            name: name.into(),
            sim: sim.clone(),
            id: Cell::default(),
            disks: disk_count,
            devices: disks.into_iter().chain(modules).collect(),
            request_ns: whole_ns(parameters.network.request_us * 1e3),
            flash_request_ns: whole_ns(parameters.flash_request_us * 1e3),
            ns_per_byte: 1e3 / parameters.network.rate_mb_s,
            log_parameters: parameters.flash_log.clone(),
            scan_parameters: parameters.scan.clone(),
            small_bytes: parameters.flash_cache.small_kb << 10,
            state: RefCell::new(state),
            me: me.clone(),
        });
        cell.id.set(Some(sim.add_machine(cell.clone())));
        cell
    }

    /// Returns the name of the cell.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if a request of this size is large.
    pub(super) fn is_large(&self, bytes: u64) -> bool {
        bytes > self.small_bytes
    }

    /// Sets the databases from which the cell may receive requests, in order of their numbers.
    pub(super) fn know(&self, databases: &[String]) {
        let state = &mut *self.state.borrow_mut();
        state.databases = databases.to_vec();
        state.by_database.resize(databases.len(), DatabaseCounts::default());
        Self::replan(state);
    }

    fn replan(state: &mut State) {
        let names = &state.databases;
        state.directives = names.iter().map(|name| state.iorm.directive(name)).collect();
        // Number 0 is what no database asked for.
        let shared = state.iorm.shares_out(names.get(1..).unwrap_or_default());
        state.plan = shared.then(|| Plan::new(&state.iorm, names));
    }

    /// Activates a plan of resource management, for new and waiting requests.
    pub fn set_plan(&self, plan: std::collections::BTreeMap<String, Directive>) {
        let state = &mut *self.state.borrow_mut();
        (state.iorm.plan, state.iorm.active) = (plan, true);
        Self::replan(state);
        for unit in 0..self.disks {
            self.serve(state, unit);
        }
    }

    /// Returns the active plan; empty if there is none.
    pub fn plan(&self) -> std::collections::BTreeMap<String, Directive> {
        let iorm = &self.state.borrow().iorm;
        if iorm.has_plan() { iorm.plan.clone() } else { std::collections::BTreeMap::new() }
    }

    /// Sets the caching policy of a group's grid disks; cached lines stay until they are evicted.
    pub(super) fn set_grid_caching(&self, group: usize, caching: super::Caching) {
        self.state.borrow_mut().slices[group].cached = caching != super::Caching::None;
    }

    /// Returns true if blocks of a group's grid disks may be cached.
    pub fn caches(&self, group: usize) -> bool {
        self.state.borrow().slices.get(group).is_some_and(|slice| slice.cached)
    }

    fn call(&self, time_ns: u64, token: u64) {
        if let Some(id) = self.id.get() {
            self.sim.call_at(time_ns, id, token);
        }
    }

    /// Receives a request.
    pub(super) fn submit(&self, ask: Ask, done: Done) {
        let now = self.sim.now_ns();
        let state = &mut *self.state.borrow_mut();
        state.station.arrive(now);
        state.station.start(now, now);
        let op = Op { ask, done: Some(done), arrived_ns: now, left: 1, race: None, from: [false; 2] };
        let op = state.ops.insert(op);
        let mut at = now + self.request_ns;
        if ask.request.kind == Kind::Write {
            let ns = whole_ns(ask.request.bytes as f64 * self.ns_per_byte);
            state.in_free_ns = state.in_free_ns.max(now) + ns;
            at = state.in_free_ns + self.request_ns;
            if ask.label.purpose == Purpose::Redo {
                at += self.redo_delay_ns(state, &ask);
            }
        }
        self.call(at, op);
    }

    /// Returns the time to dispatch a race, including a delay common to both copies [ns].
    fn redo_delay_ns(&self, state: &mut State, ask: &Ask) -> u64 {
        let parameters = &self.log_parameters;
        let raced = state.log.exists && Self::may_not_race(state, ask).is_none();
        let dispatch_ns = if raced { whole_ns(parameters.dispatch_us * 1e3) } else { 0 };
        let ratio = parameters.common_cause_ratio;
        let held = ratio > 0.0 && state.dice.chance(ratio);
        dispatch_ns + if held { parameters.common_cause.sample_ns(&mut state.dice) } else { 0 }
    }

    /// Handles a request that has arrived in the cell.
    fn arrived(&self, state: &mut State, op: u64) {
        let Some(&mut Op { ask, .. }) = state.ops.get_mut(op) else { return };
        if ask.label.purpose == Purpose::Redo && ask.request.kind == Kind::Write {
            self.write_redo(state, op, ask);
        } else if usize::from(ask.unit) >= self.disks {
            self.io(state, ask, Then::Part(op));
        } else if ask.request.kind == Kind::Read {
            self.read_data(state, op, ask);
        } else {
            self.write_data(state, op, ask);
        }
    }

    /// Passes an I/O to a device, or to the queue of a disk that a plan divides.
    pub(super) fn io(&self, state: &mut State, ask: Ask, then: Then) {
        let now = self.sim.now_ns();
        let unit = usize::from(ask.unit);
        let managed = state.plan.is_some() && unit < self.disks && ask.label.purpose != Purpose::Redo;
        let io = Io { ask, then, asked_ns: now, started_ns: now, managed };
        let token = state.ios.insert(io);
        if managed {
            let cost_ns = state.iorm.cost_ns(ask.request.bytes);
            state.queues[unit].push(ask.label.database, token, cost_ns);
            self.serve(state, unit);
        } else if unit >= self.disks && self.flash_request_ns > 0 {
            state.flash_free_ns = state.flash_free_ns.max(now) + self.flash_request_ns;
            self.call(state.flash_free_ns, TO_FLASH + token);
        } else {
            self.start(state, token);
        }
    }

    /// Starts an I/O on its device.
    fn start(&self, state: &mut State, token: u64) {
        let Some(&mut Io { ask, .. }) = state.ios.get_mut(token) else { return };
        if let Some(me) = self.me.upgrade() {
            self.devices[usize::from(ask.unit)].submit(ask.request, Done::new(me, token));
        }
    }

    /// Starts the requests that the plan allows on a disk.
    fn serve(&self, state: &mut State, unit: usize) {
        let now = self.sim.now_ns();
        while state.queues[unit].waiting() > 0 {
            // A plan that was lifted: what waits has its way.
            let lifted = state.plan.is_none().then(|| Plan::lifted(&state.databases));
            let Some(plan) = state.plan.as_ref().or(lifted.as_ref()) else { return };
            match state.queues[unit].next(plan, now) {
                Next::Nothing => return,
                Next::NotBefore(time_ns) => return self.call(time_ns, LIMIT + unit as u64),
                Next::Serve(token) => {
                    let Some(io) = state.ios.get_mut(token) else { continue };
                    io.started_ns = now;
                    let (ask, wait_ns) = (io.ask, now - io.asked_ns);
                    let size = usize::from(self.is_large(ask.request.bytes));
                    let database = usize::from(ask.label.database);
                    state.by_database[database].wait_ns[size] += wait_ns;
                    self.start(state, token);
                }
            }
        }
    }

    /// Counts a completed I/O.
    fn count(&self, state: &mut State, io: &Io) {
        let elapsed_ns = self.sim.now_ns() - io.started_ns;
        let Request { kind, bytes, .. } = io.ask.request;
        let (unit, large) = (usize::from(io.ask.unit), self.is_large(bytes));
        state.units[unit].add(kind, large, bytes, elapsed_ns);
        if io.ask.group != Ask::NO_GROUP {
            let grid = usize::from(io.ask.group) * self.devices.len() + unit;
            state.grids[grid].add(kind, large, bytes, elapsed_ns);
        }
        let database = &mut state.by_database[usize::from(io.ask.label.database)];
        let (sums, ns) = if unit < self.disks {
            (&mut database.disk, &mut database.disk_ns)
        } else {
            (&mut database.flash, &mut database.flash_ns)
        };
        sums[usize::from(large)].add(bytes);
        ns[usize::from(large)] += elapsed_ns;
    }

    /// Handles a completed part of a request; returns the observer to notify if it was the last part of a write.
    pub(super) fn part(&self, state: &mut State, op: u64) -> Option<Done> {
        let open = state.ops.get_mut(op)?;
        open.left -= 1;
        if open.left > 0 {
            return None;
        }
        if open.ask.request.kind == Kind::Write {
            return self.finish(state, op);
        }
        let (ask, from) = (open.ask, open.from);
        let bytes = self.scanned(state, ask, from);
        let ns = whole_ns(bytes as f64 * self.ns_per_byte);
        state.out_free_ns = state.out_free_ns.max(self.sim.now_ns()) + ns;
        self.call(state.out_free_ns, ANSWER + op);
        None
    }

    /// Returns the number of bytes that are sent back for a read, and counts the read if it is part of a scan.
    fn scanned(&self, state: &mut State, ask: Ask, from: [bool; 2]) -> u64 {
        let bytes = ask.request.bytes;
        if ask.label.purpose != Purpose::Scan {
            return bytes;
        }
        let scan = &mut state.scan;
        match from {
            [true, true] => scan.both.add(bytes),
            [true, false] => scan.disk.add(bytes),
            _ => scan.flash.add(bytes),
        }
        if !self.scan_parameters.offload {
            scan.passed_bytes += bytes;
            return bytes;
        }
        let back = whole_ns(bytes as f64 * self.scan_parameters.returned_ratio);
        scan.eligible_bytes += bytes;
        scan.returned_bytes += back;
        back
    }

    /// Ends a request, whose answer leaves the cell; returns the observer to notify.
    pub(super) fn finish(&self, state: &mut State, op: u64) -> Option<Done> {
        let open = state.ops.remove(op)?;
        self.left(state, open.arrived_ns);
        open.done
    }

    /// Handles a request whose answer has left the cell.
    pub(super) fn left(&self, state: &mut State, arrived_ns: u64) {
        let arrived_ns = state.station.arrived_ns(arrived_ns);
        state.station.depart(self.sim.now_ns(), arrived_ns);
    }

    /// Returns true if the invariants of the cell hold.
    pub fn holds(&self) -> bool {
        let state = self.state.borrow();
        state.station.holds(self.sim.now_ns()) && state.caching.holds() && state.log.holds()
    }

    /// Returns the statistics of the cell and of its devices.
    pub fn reports(&self) -> Vec<StationReport> {
        let own = self.state.borrow().station.report(&self.name, 1, self.sim.now_ns());
        std::iter::once(own).chain(self.devices.iter().flat_map(|unit| unit.reports())).collect()
    }

    /// Resets statistics and counters; cached lines stay.
    pub fn reset(&self) {
        let state = &mut *self.state.borrow_mut();
        state.station.reset(self.sim.now_ns());
        state.reset_counts();
        self.devices.iter().for_each(|device| device.reset());
    }
}

impl Observer for StorageCell {
    fn done(&self, token: u64) {
        let mut borrowed = self.state.borrow_mut();
        let state = &mut *borrowed;
        let Some(io) = state.ios.remove(token) else { return };
        self.count(state, &io);
        let complete = match io.then {
            Then::Part(op) => self.part(state, op),
            Then::DiskCopy(op) => self.copy_done(state, op, false),
            Then::FlashCopy(op) => self.copy_done(state, op, true),
            Then::Unraced(op) => self.unraced_done(state, op),
            Then::Miss(op) => self.missed(state, op, io.ask),
            Then::Through(op) => self.written_through(state, op, io.ask),
            Then::Populated => {
                self.populated(state, io.ask.request.bytes);
                None
            }
            Then::Nothing => None,
            Then::DestageRead(place) => {
                self.destage_read(state, place, io.ask);
                None
            }
            Then::DestageWrite(place) => {
                self.destaged(state, place, io.ask.request.bytes);
                None
            }
        };
        if io.managed {
            let unit = usize::from(io.ask.unit);
            state.queues[unit].finished();
            self.serve(state, unit);
        }
        drop(borrowed);
        if let Some(done) = complete {
            done.tell();
        }
    }
}

impl Machine for StorageCell {
    fn event(&self, token: u64) {
        let mut state = self.state.borrow_mut();
        let complete = if token >= LIMIT {
            self.serve(&mut state, (token - LIMIT) as usize);
            None
        } else if token >= TO_FLASH {
            self.start(&mut state, token - TO_FLASH);
            None
        } else if token >= ANSWER {
            self.finish(&mut state, token - ANSWER)
        } else {
            self.arrived(&mut state, token);
            None
        };
        drop(state);
        if let Some(done) = complete {
            done.tell();
        }
    }
}
