//! Storage devices.
//!
//! ```text
//!   a host's request
//!        |
//!   lun        limits the requests outstanding; the rest wait at the host
//!        |
//!   channel    shared by LUNs: commands and bytes take their time on the cable
//!        |
//!   cache      controller memory: writes are acknowledged in it until it is full; devices may share a controller
//!        |
//!   stripe     pieces go to different members; the last to arrive completes the request
//!   mirror     every member writes; the slowest decides
//!   raid5      one parity piece in each row: a small write reads before it writes
//!   race       every member writes; the quickest decides
//!        |
//!   disk       arm, rotation, transfer          flash      dies, pages, erase blocks, collector
//!   empirical  measured quantiles, without a mechanism
//!   volume     published rates of a cloud: token buckets, then a network
//! ```
//!
//! All of them are [`Device`]s, so that they stack in any order. A request is submitted with an [`Observer`] to notify;
//! a process uses [`start`] and awaits the result. A submitted I/O runs to its end even if nobody waits for it any
//! longer, as on real devices.
//!
//! A completion is reported within the event that caused it. Devices hold no borrow of their state while they report a
//! completion.
//!
//! Each device has a parameter structure to be read from TOML, and a table of [`Parameter`]s with the unit, the meaning
//! and the source of the default of each parameter.

pub mod array;
pub mod cache;
mod cache_lines;
mod cache_parameters;
pub mod calibrate;
pub mod controller;
pub mod disk;
pub mod empirical;
pub mod flash;
mod flash_die;
pub mod flash_parameters;
pub mod ftl;
pub mod lun;
mod mapping_cache;
mod parameter;
pub mod partition;
pub mod raid5;
pub mod regimes;
pub mod slab;
pub mod volume;
mod wear;

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

pub(crate) use parameter::parameters;
pub use parameter::{Outside, Parameter, number, outside, parameter, shown, unit_of};
pub use wear::Wear;

use crate::kernel::sim::Place;
use crate::kernel::{Sim, StationReport};

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Read.
    Read,
    /// Write; complete when the device reports it as safe.
    Write,
}

/// One I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Read or write.
    pub kind: Kind,
    /// Offset at which the request begins [bytes]; offsets beyond the capacity wrap around.
    pub offset_bytes: u64,
    /// Length [bytes], > 0.
    pub bytes: u64,
}

impl Request {
    /// Returns a read.
    pub fn read(offset_bytes: u64, bytes: u64) -> Self {
        Self { kind: Kind::Read, offset_bytes, bytes }
    }

    /// Returns a write.
    pub fn write(offset_bytes: u64, bytes: u64) -> Self {
        Self { kind: Kind::Write, offset_bytes, bytes }
    }

    /// Returns the numbers of the first and the last unit of `unit_bytes` that the request touches.
    pub fn units(&self, unit_bytes: u64) -> (u64, u64) {
        let last = self.offset_bytes + self.bytes.max(1) - 1;
        (self.offset_bytes / unit_bytes, last / unit_bytes)
    }
}

/// Receiver of completions.
pub trait Observer {
    /// Reports that the request submitted with this token is complete.
    fn done(&self, token: u64);
}

/// Observer of a request, and the token of the request.
#[derive(Clone)]
pub struct Done {
    observer: Rc<dyn Observer>,
    token: u64,
}

impl Done {
    /// Returns a handle that notifies `observer` of `token`.
    pub fn new(observer: Rc<dyn Observer>, token: u64) -> Self {
        Self { observer, token }
    }

    /// Notifies the observer.
    #[inline]
    pub fn tell(self) {
        self.observer.done(self.token);
    }
}

/// Device that accepts requests.
pub trait Device {
    /// Returns the name.
    fn name(&self) -> &str;
    /// Returns the capacity [bytes].
    fn capacity_bytes(&self) -> u64;
    /// Submits a request; `done` is notified when the request is complete, never before this function returns.
    fn submit(&self, request: Request, done: Done);
    /// Discards a range of bytes. Returns `done` if the device ignores discards; otherwise `done` is notified later,
    /// when the range is free. Stripes and mirrors pass discards on; caches, LUNs, RAID-5 and races do not.
    fn discard(&self, _offset_bytes: u64, _bytes: u64, done: Done) -> Option<Done> {
        Some(done)
    }
    /// Returns the devices directly below.
    fn below(&self) -> &[Rc<dyn Device>] {
        &[]
    }
    /// Returns the wear of this device, if it is flash, and of the devices below.
    fn wear(&self) -> Vec<Wear> {
        self.below().iter().flat_map(|device| device.wear()).collect()
    }
    /// Returns the statistics of the queues of this device, if it has any, and of the devices below.
    fn reports(&self) -> Vec<StationReport> {
        self.below().iter().flat_map(|device| device.reports()).collect()
    }
    /// Resets the statistics of this device and of the devices below at the end of a warm-up.
    fn reset(&self) {
        self.below().iter().for_each(|device| device.reset());
    }
}

struct Flag {
    sim: Sim,
    done_ns: Cell<Option<u64>>,
    process: Cell<crate::kernel::ProcessId>,
}

impl Observer for Flag {
    fn done(&self, _: u64) {
        self.done_ns.set(Some(self.sim.now_ns()));
        self.sim.wake(self.process.get());
    }
}

/// Future of a request under way, which yields the time of its completion [ns].
pub struct Io(Rc<Flag>);

/// Submits a request; returns a future that is ready when the request is complete.
pub fn start(sim: &Sim, device: &dyn Device, request: Request) -> Io {
    let process = Cell::new(sim.running());
    let flag = Rc::new(Flag { sim: sim.clone(), done_ns: Cell::default(), process });
    device.submit(request, Done::new(flag.clone(), 0));
    Io(flag)
}

/// Submits a discard; returns a future that is ready when the discard is complete, which is immediately if the device
/// ignores discards.
pub fn start_discard(sim: &Sim, device: &dyn Device, offset_bytes: u64, bytes: u64) -> Io {
    let process = Cell::new(sim.running());
    let flag = Rc::new(Flag { sim: sim.clone(), done_ns: Cell::default(), process });
    if device.discard(offset_bytes, bytes, Done::new(flag.clone(), 0)).is_some() {
        flag.done_ns.set(Some(sim.now_ns()));
    }
    Io(flag)
}

impl Future for Io {
    type Output = u64;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u64> {
        if let Some(done_ns) = self.0.done_ns.get() {
            return Poll::Ready(done_ns);
        }
        self.0.process.set(self.0.sim.running());
        self.0.sim.stops_at(Place::IO);
        Poll::Pending
    }
}
