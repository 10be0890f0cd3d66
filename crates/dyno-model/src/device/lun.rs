//! Host's view of storage: a LUN with a queue limit, behind a channel that LUNs share.
//!
//! ```text
//!   LUN 0  [waits at the host] --limit--\
//!   LUN 1  [waits at the host] --limit---+-- channel [waits] --limit-- cable --> device of the LUN
//!   LUN 2  [waits at the host] --limit--/            command + bytes on the cable, one at a time
//! ```
//!
//! There are two different limits: a host's throttle (`sd_max_throttle`) is per LUN; a port's is per channel and shared
//! by all its LUNs. A request counts against both until it is complete. The bytes of a write pass over the cable before
//! the device serves the request, those of a read afterwards.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use super::slab::Slab;
use super::{Device, Done, Kind, Observer, Request, parameters};
use crate::kernel::sample::whole_ns;
use crate::kernel::{Machine, MachineId, Sim, Station, StationReport};

parameters! {
    /// Parameters of a channel.
    pub struct ChannelParameters {
        /// number of requests of all LUNs that the channel accepts at once
        queue_limit: u64 = 1_024, from "Sun handbook for the 9900 array: 1,024 commands a port", in 1.0..=1e6;
        /// transfer rate of the cable
        rate_mb_s: f64 = 400.0, from "fibre channel of 4 Gbit/s";
        /// time of a command on the cable
        command_us: f64 = 5.0, from "assumed: a few frames";
    }
}

/// Limit on the number of requests under way; the others wait in order of arrival.
struct Gate {
    limit: u64,
    inside: u64,
    queue: VecDeque<(u64, u64)>,
    station: Station,
}

impl Gate {
    fn new(limit: u64) -> Self {
        Self { limit: limit.max(1), inside: 0, queue: VecDeque::new(), station: Station::default() }
    }

    fn arrive(&mut self, now_ns: u64, token: u64) {
        self.station.arrive(now_ns);
        self.queue.push_back((token, now_ns));
    }

    /// Admits the next waiting request if the limit allows it; returns its token and its arrival time [ns].
    fn admit(&mut self, now_ns: u64) -> Option<(u64, u64)> {
        if self.inside >= self.limit {
            return None;
        }
        let (token, arrived_ns) = self.queue.pop_front()?;
        self.inside += 1;
        self.station.start(now_ns, self.station.arrived_ns(arrived_ns));
        Some((token, arrived_ns))
    }

    fn leave(&mut self, now_ns: u64, arrived_ns: u64) {
        self.inside -= 1;
        self.station.depart(now_ns, self.station.arrived_ns(arrived_ns));
    }
}

struct Passing {
    request: Request,
    target: Rc<dyn Device>,
    done: Option<Done>,
    arrived_ns: u64,
    /// True if the device has done its part.
    served: bool,
}

struct ChannelState {
    gate: Gate,
    passing: Slab<Passing>,
    cable_free_ns: u64,
}

/// A channel.
pub struct HbaChannel {
    name: String,
    sim: Sim,
    id: RefCell<Option<MachineId>>,
    parameters: ChannelParameters,
    state: RefCell<ChannelState>,
    me: Weak<Self>,
}

impl HbaChannel {
    /// Returns an idle channel.
    pub fn new(sim: &Sim, name: &str, parameters: ChannelParameters) -> Rc<Self> {
        let gate = Gate::new(parameters.queue_limit);
        let channel = Rc::new_cyclic(|me| Self {
            name: name.into(),
            sim: sim.clone(),
            id: RefCell::default(),
            parameters,
            state: RefCell::new(ChannelState { gate, passing: Slab::default(), cable_free_ns: 0 }),
            me: me.clone(),
        });
        *channel.id.borrow_mut() = Some(sim.add_machine(channel.clone()));
        channel
    }

    fn submit(&self, target: Rc<dyn Device>, request: Request, done: Done) {
        let now = self.sim.now_ns();
        let mut state = self.state.borrow_mut();
        let passing = Passing { request, target, done: Some(done), arrived_ns: now, served: false };
        let token = state.passing.insert(passing);
        state.gate.arrive(now, token);
        self.admit(&mut state);
    }

    fn admit(&self, state: &mut ChannelState) {
        while let Some((token, _)) = state.gate.admit(self.sim.now_ns()) {
            let Some(passing) = state.passing.get_mut(token) else { continue };
            let bytes = if passing.request.kind == Kind::Write { passing.request.bytes } else { 0 };
            self.use_cable(state, token, bytes);
        }
    }

    /// Queues a transfer on the cable, which serves requests in order.
    fn use_cable(&self, state: &mut ChannelState, token: u64, bytes: u64) {
        let ChannelParameters { rate_mb_s, command_us, .. } = self.parameters;
        let ns = whole_ns(command_us * 1e3 + bytes as f64 / rate_mb_s * 1e3);
        state.cable_free_ns = state.cable_free_ns.max(self.sim.now_ns()) + ns;
        if let Some(id) = *self.id.borrow() {
            self.sim.call_at(state.cable_free_ns, id, token);
        }
    }

    fn report(&self) -> StationReport {
        let state = self.state.borrow();
        state.gate.station.report(&self.name, state.gate.limit, self.sim.now_ns())
    }
}

impl Machine for HbaChannel {
    /// Handles the end of a transfer: passes the request on to the device or, if the device has served it, back to the
    /// host.
    fn event(&self, token: u64) {
        let mut state = self.state.borrow_mut();
        let Some(passing) = state.passing.get_mut(token) else { return };
        if !passing.served {
            let (target, request) = (Rc::clone(&passing.target), passing.request);
            drop(state);
            if let Some(me) = self.me.upgrade() {
                target.submit(request, Done::new(me, token));
            }
            return;
        }
        let Some(passing) = state.passing.remove(token) else { return };
        state.gate.leave(self.sim.now_ns(), passing.arrived_ns);
        self.admit(&mut state);
        drop(state);
        if let Some(done) = passing.done {
            done.tell();
        }
    }
}

impl Observer for HbaChannel {
    fn done(&self, token: u64) {
        let mut state = self.state.borrow_mut();
        let Some(passing) = state.passing.get_mut(token) else { return };
        passing.served = true;
        let bytes = if passing.request.kind == Kind::Read { passing.request.bytes } else { 0 };
        self.use_cable(&mut state, token, bytes);
    }
}

struct LunState {
    gate: Gate,
    open: Slab<(Request, Option<Done>, u64)>,
}

/// A LUN.
pub struct Lun {
    name: String,
    sim: Sim,
    target: Rc<dyn Device>,
    channel: Option<Rc<HbaChannel>>,
    state: RefCell<LunState>,
    me: Weak<Self>,
}

impl Lun {
    /// Returns a LUN with at most `limit` requests at a time, behind a channel if there is one.
    pub fn new(sim: &Sim, name: &str, limit: u64, target: Rc<dyn Device>, channel: Option<Rc<HbaChannel>>) -> Rc<Self> {
        let state = LunState { gate: Gate::new(limit), open: Slab::default() };
        Rc::new_cyclic(|me| Self {
            name: name.into(),
            sim: sim.clone(),
            target,
            channel,
            state: RefCell::new(state),
            me: me.clone(),
        })
    }

    /// Admits requests up to the limit.
    fn admit(&self) {
        let Some(me) = self.me.upgrade() else { return };
        loop {
            let mut state = self.state.borrow_mut();
            let Some((token, _)) = state.gate.admit(self.sim.now_ns()) else { return };
            let Some(&mut (request, _, _)) = state.open.get_mut(token) else { continue };
            drop(state);
            let done = Done::new(me.clone(), token);
            match &self.channel {
                Some(channel) => channel.submit(Rc::clone(&self.target), request, done),
                None => self.target.submit(request, done),
            }
        }
    }
}

impl Observer for Lun {
    fn done(&self, token: u64) {
        let mut state = self.state.borrow_mut();
        let Some((_, done, arrived_ns)) = state.open.remove(token) else { return };
        state.gate.leave(self.sim.now_ns(), arrived_ns);
        drop(state);
        self.admit();
        if let Some(done) = done {
            done.tell();
        }
    }
}

impl Device for Lun {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity_bytes(&self) -> u64 {
        self.target.capacity_bytes()
    }

    fn submit(&self, request: Request, done: Done) {
        let now = self.sim.now_ns();
        {
            let mut state = self.state.borrow_mut();
            let token = state.open.insert((request, Some(done), now));
            state.gate.arrive(now, token);
        }
        self.admit();
    }

    /// Returns the statistics of this LUN, its channel (the same for all its LUNs), and the device.
    fn reports(&self) -> Vec<StationReport> {
        let state = self.state.borrow();
        let own = state.gate.station.report(&self.name, state.gate.limit, self.sim.now_ns());
        let channel = self.channel.iter().map(|channel| channel.report());
        std::iter::once(own).chain(channel).chain(self.target.reports()).collect()
    }

    fn below(&self) -> &[Rc<dyn Device>] {
        std::slice::from_ref(&self.target)
    }

    fn reset(&self) {
        let now = self.sim.now_ns();
        self.state.borrow_mut().gate.station.reset(now);
        if let Some(channel) = &self.channel {
            channel.state.borrow_mut().gate.station.reset(now);
        }
        self.target.reset();
    }
}
