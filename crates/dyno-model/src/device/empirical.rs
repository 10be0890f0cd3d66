//! Device known only by measurement: it serves a fixed number of requests at once, with random service times.
//!
//! Regimes: real devices have good and bad periods (a scheduler tick, a battery's learn cycle, load from a neighbour).
//! Each regime has its service times and a mean duration; the device changes from one to another at random. Latencies
//! within a regime are independent; successive latencies resemble each other only because they are in the same regime.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::slab::Slab;
use super::{Device, Done, Kind, Request, parameters};
use crate::kernel::sample::{Times, whole_ns};
use crate::kernel::{Machine, MachineId, Sim, Station, StationReport, Stream};

/// Regime: a state of the device that lasts for a while.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Regime {
    /// Service time of a read.
    pub read: Times,
    /// Service time of a write.
    pub write: Times,
    /// Mean duration, exponentially distributed [ms]; unused if there is only one regime.
    #[serde(default)]
    pub stay_ms: f64,
    /// Additional service time of a write for each KB [us].
    #[serde(default)]
    pub write_us_per_kb: f64,
    /// Factor by which all times of the regime are multiplied; 0 counts as 1.
    #[serde(default)]
    pub time_factor: f64,
}

impl Regime {
    fn service_ns(&self, kind: Kind, bytes: u64, dice: &mut Stream) -> u64 {
        let ns = match kind {
            Kind::Read => self.read.sample_ns(dice),
            Kind::Write => self.write.sample_ns(dice) + whole_ns(self.write_us_per_kb * 1e3 * bytes as f64 / 1_024.0),
        };
        if self.time_factor > 0.0 { whole_ns(ns as f64 * self.time_factor) } else { ns }
    }
}

parameters! {
    /// Parameters of an empirical device. The next regime is drawn uniformly from the others.
    pub struct EmpiricalParameters {
        /// capacity
        capacity_gb: f64, from "the measured device", in 0.001..=1e6;
        /// number of requests in service at once
        servers: u64, from "the queue depth of the measurement", in 1.0..=4_096.0;
        /// regimes: read times, write times and mean duration of each
        regimes: Vec<Regime>, from "fitted to a measured trace";
    }
}

struct Waiting {
    kind: Kind,
    bytes: u64,
    done: Done,
    arrived_ns: u64,
}

struct State {
    queue: VecDeque<Waiting>,
    served: Slab<Waiting>,
    station: Station,
    regime: usize,
    until_ns: u64,
    times: Stream,
    stays: Stream,
}

/// An empirical device.
pub struct Empirical {
    name: String,
    sim: Sim,
    id: Cell<Option<MachineId>>,
    parameters: EmpiricalParameters,
    state: RefCell<State>,
}

impl Empirical {
    /// Returns an idle device in its first regime.
    pub fn new(sim: &Sim, name: &str, parameters: EmpiricalParameters) -> Rc<Self> {
        let state = RefCell::new(State {
            queue: VecDeque::new(),
            served: Slab::default(),
            station: Station::default(),
            regime: 0,
            until_ns: 0,
            times: sim.stream(&format!("{name}/times")),
            stays: sim.stream(&format!("{name}/stays")),
        });
        let (name, sim_) = (name.to_owned(), sim.clone());
        let device = Rc::new(Self { name, sim: sim_, id: Cell::default(), parameters, state });
        device.id.set(Some(sim.add_machine(device.clone())));
        device
    }

    /// Returns the regime at this instant, after skipping those that have ended.
    fn regime<'a>(&'a self, state: &mut State, now_ns: u64) -> Option<&'a Regime> {
        let regimes = &self.parameters.regimes;
        if regimes.len() > 1 {
            while state.until_ns <= now_ns {
                if state.until_ns > 0 {
                    let step = 1 + state.stays.below(regimes.len() as u64 - 1) as usize;
                    state.regime = (state.regime + step) % regimes.len();
                }
                let stay_ns = state.stays.exponential(regimes[state.regime].stay_ms * 1e6);
                state.until_ns += whole_ns(stay_ns).max(1);
            }
        }
        regimes.get(state.regime)
    }

    fn next(&self, state: &mut State) {
        let now = self.sim.now_ns();
        while (state.served.len() as u64) < self.parameters.servers.max(1) {
            let Some(waiting) = state.queue.pop_front() else { return };
            let ns = self
                .regime(state, now)
                .map_or(0, |regime| regime.service_ns(waiting.kind, waiting.bytes, &mut state.times));
            let arrived_ns = state.station.arrived_ns(waiting.arrived_ns);
            state.station.start(now, arrived_ns);
            let token = state.served.insert(waiting);
            if let Some(id) = self.id.get() {
                self.sim.call_at(now + ns, id, token);
            }
        }
    }
}

impl Device for Empirical {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity_bytes(&self) -> u64 {
        (self.parameters.capacity_gb * 1e9) as u64
    }

    fn submit(&self, request: Request, done: Done) {
        let arrived_ns = self.sim.now_ns();
        let mut state = self.state.borrow_mut();
        state.station.arrive(arrived_ns);
        let Request { kind, bytes, .. } = request;
        state.queue.push_back(Waiting { kind, bytes, done, arrived_ns });
        self.next(&mut state);
    }

    fn reports(&self) -> Vec<StationReport> {
        let state = self.state.borrow();
        vec![state.station.report(&self.name, self.parameters.servers.max(1), self.sim.now_ns())]
    }

    fn reset(&self) {
        self.state.borrow_mut().station.reset(self.sim.now_ns());
    }
}

impl Machine for Empirical {
    fn event(&self, token: u64) {
        let mut state = self.state.borrow_mut();
        let Some(served) = state.served.remove(token) else { return };
        let arrived_ns = state.station.arrived_ns(served.arrived_ns);
        state.station.depart(self.sim.now_ns(), arrived_ns);
        self.next(&mut state);
        drop(state);
        served.done.tell();
    }
}
