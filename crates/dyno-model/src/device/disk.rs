//! Spinning disk: arm, rotation, transfer.
//!
//! ```text
//!   request --> overhead --> queue --> seek a + b sqrt(d) --> rotation --> transfer --> done
//!               (overlaps)   FIFO,                            waits for     bytes / rate
//!                            elevator                         its angle     of the zone
//! ```
//!
//! The model uses no random numbers: the platter turns with the clock, and the offset of a byte determines when it
//! passes under the head. Random offsets meet a random angle, so that the rotational wait is uniform with mean T/2. A
//! request that appends shortly after the one before has just missed its place and waits almost a full turn, which
//! slows down a log without a write cache.
//!
//! The disk is divided into zones of equal capacity whose rate falls linearly from the outer to the inner edge. The
//! distance `d` of a seek is the difference of the two offsets as a share of the capacity. Not modelled: head switches,
//! skew (one track follows the other without a gap), track buffer and read ahead, thermal recalibration.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::{Device, Done, Request, parameters};
use crate::kernel::sample::whole_ns;
use crate::kernel::{Machine, MachineId, Sim, Station, StationReport};

/// Order in which requests are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// In order of arrival.
    Fifo,
    /// In the direction of the arm while there is a request ahead, then back.
    #[default]
    Elevator,
    /// Shortest time of seek and rotation first, as a disk with tagged queueing does.
    Nearest,
}

parameters! {
    /// Parameters of a disk.
    pub struct DiskParameters {
        /// capacity
        capacity_gb: f64 = 600.0, from SHEET, in 0.001..=1e6;
        /// speed of rotation
        rotation_rpm: f64 = 15_000.0, from SHEET;
        /// time of a seek to a neighbouring track
        seek_track_ms: f64 = 0.5, from SHEET;
        /// additional time of a seek over the full disk, beyond `seek_track_ms`; 8/15 of it on average
        seek_span_ms: f64 = 4.5, from "so that the mean read seek is the 2.9 ms of the data sheet";
        /// number of tracks from edge to edge
        cylinders: u64 = 100_000, from "order of size for this capacity", in 1.0..=1e9;
        /// transfer rate at the outer edge
        outer_mb_s: f64 = 204.0, from SHEET;
        /// transfer rate at the inner edge
        inner_mb_s: f64 = 122.0, from SHEET;
        /// number of zones of equal capacity
        zones: u64 = 16, from "order of size", in 1.0..=10_000.0;
        /// time to decode a command
        overhead_us: f64 = 50.0, from "assumed: tens of microseconds";
        /// order of requests: fifo, elevator or nearest
        scheduler: Scheduler = Scheduler::Nearest, from "tagged queueing of SAS disks";
    }
}

const SHEET: &str = "data sheets of 15,000 rpm SAS disks (Cheetah 15K.7, Ultrastar C15K600)";

/// Parameters of a disk as whole numbers, with its positions and times.
struct Geometry {
    capacity_bytes: u64,
    turn_ns: u64,
    /// Length of a zone [bytes].
    zone_bytes: u64,
    /// Length of a track in each zone [bytes].
    track_bytes: Vec<u64>,
    parameters: DiskParameters,
}

impl Geometry {
    fn new(parameters: DiskParameters) -> Self {
        let turn_ns = whole_ns(60e9 / parameters.rotation_rpm);
        let capacity_bytes = (parameters.capacity_gb * 1e9) as u64;
        let zones = parameters.zones.max(1);
        let track_bytes = |zone: u64| {
            let share = (zone as f64 + 0.5) / zones as f64;
            let rate = parameters.outer_mb_s + (parameters.inner_mb_s - parameters.outer_mb_s) * share;
            ((rate * 1e6 * turn_ns as f64 / 1e9) as u64).max(1)
        };
        let track_bytes = (0..zones).map(track_bytes).collect();
        let zone_bytes = capacity_bytes.div_ceil(zones).max(1);
        Self { capacity_bytes, turn_ns, zone_bytes, track_bytes, parameters }
    }

    fn cylinder(&self, offset_bytes: u64) -> u64 {
        let cylinders = u128::from(self.parameters.cylinders);
        (u128::from(offset_bytes) * cylinders / u128::from(self.capacity_bytes)) as u64
    }

    fn seek_ns(&self, from: u64, to: u64) -> u64 {
        if from == to {
            return 0;
        }
        let distance = from.abs_diff(to) as f64 / self.parameters.cylinders as f64;
        let DiskParameters { seek_track_ms, seek_span_ms, .. } = self.parameters;
        whole_ns((seek_track_ms + seek_span_ms * libm::sqrt(distance)) * 1e6)
    }

    /// Returns the time from `now_ns` until the byte at this offset is under the head [ns].
    fn rotation_ns(&self, now_ns: u64, offset_bytes: u64) -> u64 {
        let (zone, within) = (offset_bytes / self.zone_bytes, offset_bytes % self.zone_bytes);
        let track = self.track_bytes[zone as usize];
        let angle_ns = (u128::from(within % track) * u128::from(self.turn_ns) / u128::from(track)) as u64;
        (angle_ns + self.turn_ns - now_ns % self.turn_ns) % self.turn_ns
    }

    fn transfer_ns(&self, offset_bytes: u64, bytes: u64) -> u64 {
        let track = self.track_bytes[(offset_bytes / self.zone_bytes) as usize];
        (u128::from(bytes) * u128::from(self.turn_ns) / u128::from(track)) as u64
    }
}

struct Waiting {
    request: Request,
    done: Done,
    arrived_ns: u64,
}

#[derive(Default)]
struct State {
    queue: Vec<Waiting>,
    served: Option<Waiting>,
    head: u64,
    inward: bool,
    station: Station,
}

/// A disk.
pub struct Disk {
    name: String,
    sim: Sim,
    id: Cell<Option<MachineId>>,
    geometry: Geometry,
    state: RefCell<State>,
}

impl Disk {
    /// Returns an idle disk with its arm at the outer edge.
    pub fn new(sim: &Sim, name: &str, parameters: DiskParameters) -> Rc<Self> {
        let disk = Rc::new(Self {
            name: name.into(),
            sim: sim.clone(),
            id: Cell::default(),
            geometry: Geometry::new(parameters),
            state: RefCell::default(),
        });
        disk.id.set(Some(sim.add_machine(disk.clone())));
        disk
    }

    /// Starts the next waiting request, as soon as its command is decoded.
    fn next(&self, state: &mut State) {
        if state.served.is_some() || state.queue.is_empty() {
            return;
        }
        let now = self.sim.now_ns();
        let chosen = state.queue.remove(self.choose(state));
        let arrived_ns = state.station.arrived_ns(chosen.arrived_ns);
        state.station.start(now, arrived_ns);
        let decoded_ns = chosen.arrived_ns + whole_ns(self.geometry.parameters.overhead_us * 1e3);
        let begin = now.max(decoded_ns);
        let done_ns = begin + self.service_ns(begin, state.head, chosen.request);
        let last = chosen.request.offset_bytes + chosen.request.bytes.max(1) - 1;
        let to = self.geometry.cylinder(last % self.geometry.capacity_bytes);
        if to != state.head {
            state.inward = to > state.head;
        }
        state.head = to;
        state.served = Some(chosen);
        if let Some(id) = self.id.get() {
            self.sim.call_at(done_ns, id, 0);
        }
    }

    fn service_ns(&self, begin_ns: u64, head: u64, request: Request) -> u64 {
        let reach_ns = self.reach_ns(begin_ns, head, request.offset_bytes);
        reach_ns + self.geometry.transfer_ns(request.offset_bytes, request.bytes)
    }

    /// Returns the time of seek and rotation until the arm is at this offset [ns].
    fn reach_ns(&self, begin_ns: u64, head: u64, offset_bytes: u64) -> u64 {
        let seek_ns = self.geometry.seek_ns(head, self.geometry.cylinder(offset_bytes));
        seek_ns + self.geometry.rotation_ns(begin_ns + seek_ns, offset_bytes)
    }

    fn choose(&self, state: &State) -> usize {
        let cylinder = |waiting: &Waiting| self.geometry.cylinder(waiting.request.offset_bytes);
        let least = |key: &dyn Fn(&Waiting) -> u64| {
            let keys = state.queue.iter().enumerate().map(|(i, waiting)| (key(waiting), i));
            keys.min().map_or(0, |(_, i)| i)
        };
        match self.geometry.parameters.scheduler {
            Scheduler::Fifo => 0,
            Scheduler::Nearest => {
                let now = self.sim.now_ns();
                least(&|waiting| self.reach_ns(now, state.head, waiting.request.offset_bytes))
            }
            Scheduler::Elevator => least(&|waiting| {
                let (at, head) = (cylinder(waiting), state.head);
                let ahead = if state.inward { at >= head } else { at <= head };
                at.abs_diff(head) + if ahead { 0 } else { 1 << 40 }
            }),
        }
    }
}

impl Device for Disk {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity_bytes(&self) -> u64 {
        self.geometry.capacity_bytes
    }

    fn submit(&self, mut request: Request, done: Done) {
        request.offset_bytes %= self.geometry.capacity_bytes;
        let arrived_ns = self.sim.now_ns();
        let mut state = self.state.borrow_mut();
        state.station.arrive(arrived_ns);
        state.queue.push(Waiting { request, done, arrived_ns });
        self.next(&mut state);
    }

    fn reports(&self) -> Vec<StationReport> {
        vec![self.state.borrow().station.report(&self.name, 1, self.sim.now_ns())]
    }

    fn reset(&self) {
        self.state.borrow_mut().station.reset(self.sim.now_ns());
    }
}

impl Machine for Disk {
    fn event(&self, _: u64) {
        let mut state = self.state.borrow_mut();
        let Some(served) = state.served.take() else { return };
        let arrived_ns = state.station.arrived_ns(served.arrived_ns);
        state.station.depart(self.sim.now_ns(), arrived_ns);
        self.next(&mut state);
        drop(state);
        served.done.tell();
    }
}
