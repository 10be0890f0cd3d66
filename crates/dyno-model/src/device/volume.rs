//! Cloud volume: two token buckets, then a network.
//!
//! ```text
//!   request --> in order of arrival --> tokens of I/Os and of bytes --> network and service --> done
//!               at most queue_depth      steady rates, and credits      drawn for each request
//! ```
//!
//! Clouds publish rates, not mechanisms: the numbers of I/Os and of bytes per second, a burst rate while credits last,
//! and the size above which a request counts as several. A request begins once the requests before it have begun and
//! every bucket holds the tokens that it needs. Its service time is then drawn at random. Requests overlap.
//!
//! A bucket of rate `r` and size `b` admits at most `b + r t` tokens in any time `t`, and a backlog that meets a full
//! bucket gets its n-th token at `max(0, (n - b) / r)`: the closed form that the tests use.
//!
//! Limits: the load of other customers, snapshots that are loaded lazily and failures of a volume are not modelled;
//! small requests are never merged, although some clouds count adjacent requests as one.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::slab::Slab;
use super::{Device, Done, Kind, Request, parameters};
use crate::kernel::sample::{Times, whole_ns};
use crate::kernel::{Machine, MachineId, Sim, Station, StationReport, Stream};

parameters! {
    /// Parameters of a cloud volume.
    pub struct VolumeParameters {
        /// capacity
        capacity_gb: f64 = 500.0, from "chosen", in 0.001..=1e6;
        /// I/Os per second that are always available
        iops: f64 = 3_000.0, from EBS, in 1.0..=1e7;
        /// I/Os per second while there are credits
        burst_iops: f64 = 3_000.0, from "no burst", in 1.0..=1e7;
        /// credits, in I/Os above the steady rate; 0: no burst
        credit_ios: f64 = 0.0, from "no burst", in 0.0..=1e12;
        /// throughput that is always available
        throughput_mb_s: f64 = 125.0, from EBS;
        /// time over which the rates apply: what is unused within it may be used at once
        window_ms: f64 = 100.0, from "assumed: clouds hold their rates over less than a second", in 0.001..=60_000.0;
        /// size above which a request counts as several
        io_kb: u64 = 256, from EBS, in 0.5..=1e6;
        /// number of requests in service at once; the others wait
        queue_depth: u64 = 128, from "assumed: the queue of a virtual NVMe controller", in 1.0..=4_096.0;
        /// time of a read after the buckets have admitted it
        read: Times = LATENCY, from ASSUMED;
        /// time of a write after the buckets have admitted it
        write: Times = LATENCY, from ASSUMED;
    }
}

const EBS: &str = "Amazon EBS user guide: gp3, 3,000 IOPS, 125 MiB/s, 256 KiB an I/O";
const ASSUMED: &str = "assumed: clouds publish `single-digit milliseconds`; half of one, as users report";
const LATENCY: Times = Times::Lognormal { median_us: 550.0, sigma: 0.2 };

/// A token bucket.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    rate_per_ns: f64,
    size: f64,
    level: f64,
    at_ns: u64,
}

impl Bucket {
    /// Returns a full bucket with this many tokens per second and this capacity.
    pub fn full(rate_per_s: f64, size: f64) -> Self {
        Self { rate_per_ns: rate_per_s / 1e9, size: size.max(1.0), level: size.max(1.0), at_ns: 0 }
    }

    /// Returns the first time from `now_ns` on at which the bucket has `tokens` [ns]. A request for more than its
    /// capacity waits for a full bucket, which then becomes negative.
    pub fn ready_ns(&self, now_ns: u64, tokens: f64) -> u64 {
        let missing = tokens.min(self.size) - self.level;
        let wait_ns = if missing > 0.0 { whole_ns((missing / self.rate_per_ns).ceil()) } else { 0 };
        now_ns.max(self.at_ns + wait_ns)
    }

    /// Removes tokens at a time that [`Bucket::ready_ns`] returned.
    pub fn take(&mut self, at_ns: u64, tokens: f64) {
        self.level = self.level_at(at_ns) - tokens;
        self.at_ns = at_ns;
    }

    /// Returns the number of tokens at `at_ns`.
    pub fn level_at(&self, at_ns: u64) -> f64 {
        self.size.min(self.level + (at_ns - self.at_ns) as f64 * self.rate_per_ns)
    }
}

struct Waiting {
    request: Request,
    done: Done,
    arrived_ns: u64,
}

struct State {
    queue: VecDeque<Waiting>,
    served: Slab<Waiting>,
    /// Buckets for the steady rate with credits, the burst rate, and bytes.
    buckets: [Bucket; 3],
    /// Time at which the head of the queue is checked again [ns].
    called_ns: u64,
    station: Station,
    times: Stream,
}

/// A cloud volume.
pub struct Volume {
    name: String,
    sim: Sim,
    id: Cell<Option<MachineId>>,
    parameters: VolumeParameters,
    state: RefCell<State>,
}

/// Token of the event that checks the queue.
const LOOK: u64 = u64::MAX;

impl Volume {
    /// Returns an idle volume with full buckets.
    pub fn new(sim: &Sim, name: &str, parameters: VolumeParameters) -> Rc<Self> {
        let window_s = parameters.window_ms / 1e3;
        let steady = Bucket::full(parameters.iops, parameters.credit_ios.max(parameters.iops * window_s));
        let most_iops = if parameters.credit_ios > 0.0 { parameters.burst_iops } else { parameters.iops };
        let bytes_per_s = parameters.throughput_mb_s * 1e6;
        let state = State {
            queue: VecDeque::new(),
            served: Slab::default(),
            buckets: [
                steady,
                Bucket::full(most_iops, most_iops * window_s),
                Bucket::full(bytes_per_s, bytes_per_s * window_s),
            ],
            called_ns: u64::MAX,
            station: Station::default(),
            times: sim.stream(&format!("{name}/times")),
        };
        let (name, sim_, state) = (name.to_owned(), sim.clone(), RefCell::new(state));
        let volume = Rc::new(Self { name, sim: sim_, id: Cell::default(), parameters, state });
        volume.id.set(Some(sim.add_machine(volume.clone())));
        volume
    }

    fn call(&self, time_ns: u64, token: u64) {
        if let Some(id) = self.id.get() {
            self.sim.call_at(time_ns, id, token);
        }
    }

    /// Starts the requests at the head of the queue for which there are tokens.
    fn next(&self, state: &mut State) {
        let now = self.sim.now_ns();
        while let Some(first) = state.queue.front() {
            if state.served.len() as u64 >= self.parameters.queue_depth {
                return;
            }
            let bytes = first.request.bytes as f64;
            let ios = (bytes / (self.parameters.io_kb << 10) as f64).ceil().max(1.0);
            let tokens = [ios, ios, bytes];
            let ready = state.buckets.iter().zip(tokens).map(|(bucket, tokens)| bucket.ready_ns(now, tokens));
            let ready_ns = ready.max().unwrap_or(now);
            if ready_ns > now {
                if state.called_ns < now || state.called_ns > ready_ns {
                    state.called_ns = ready_ns;
                    self.call(ready_ns, LOOK);
                }
                return;
            }
            for (bucket, tokens) in state.buckets.iter_mut().zip(tokens) {
                bucket.take(now, tokens);
            }
            let Some(waiting) = state.queue.pop_front() else { return };
            let times = if waiting.request.kind == Kind::Read { &self.parameters.read } else { &self.parameters.write };
            let ns = times.sample_ns(&mut state.times);
            let arrived_ns = state.station.arrived_ns(waiting.arrived_ns);
            state.station.start(now, arrived_ns);
            let token = state.served.insert(waiting);
            self.call(now + ns, token);
        }
    }
}

impl Device for Volume {
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
        state.queue.push_back(Waiting { request, done, arrived_ns });
        self.next(&mut state);
    }

    fn reports(&self) -> Vec<StationReport> {
        let state = self.state.borrow();
        vec![state.station.report(&self.name, self.parameters.queue_depth, self.sim.now_ns())]
    }

    fn reset(&self) {
        self.state.borrow_mut().station.reset(self.sim.now_ns());
    }
}

impl Machine for Volume {
    fn event(&self, token: u64) {
        let mut state = self.state.borrow_mut();
        if token == LOOK {
            state.called_ns = u64::MAX;
            self.next(&mut state);
            return;
        }
        let Some(served) = state.served.remove(token) else { return };
        let arrived_ns = state.station.arrived_ns(served.arrived_ns);
        state.station.depart(self.sim.now_ns(), arrived_ns);
        self.next(&mut state);
        drop(state);
        served.done.tell();
    }
}
