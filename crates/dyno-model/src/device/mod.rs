//! Storage devices.
//!
//! ```text
//!   a host's request
//!        |
//!   lun        at most so many requests outstanding, the rest wait at the host
//!        |
//!   channel    shared by LUNs: commands and bytes take their time on the cable
//!        |
//!   cache      controller memory: writes are acknowledged here until it fills
//!        |
//!   stripe     pieces go to different members; the last to arrive completes the request
//!   mirror     every member writes; the slowest decides
//!        |
//!   disk       arm, rotation, transfer          flash      dies, pages, erase blocks, collector
//!   empirical  measured quantiles, without a mechanism
//! ```
//!
//! All of them are [`Device`]s, so that they stack in any order. A request is submitted with an
//! [`Observer`] to tell; a process uses [`start`] and awaits the result. An I/O once submitted goes
//! on to its end even if nobody waits for it any longer, as on real devices.
//!
//! A completion is told within the event that made it. Devices borrow nothing while they tell.
//!
//! Each device has a parameter structure to be read from TOML, and a table of [`Parameter`]s with
//! unit, meaning and source of the default of each.

pub mod array;
pub mod cache;
pub mod calibrate;
pub mod disk;
pub mod empirical;
pub mod flash;
pub mod flash_parameters;
pub mod ftl;
pub mod lun;
mod parameter;
pub mod partition;
pub mod regimes;
pub mod slab;

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

pub(crate) use parameter::parameters;
pub use parameter::{Outside, Parameter, number, outside, parameter, shown, unit_of};

use crate::kernel::sim::Place;
use crate::kernel::{Sim, StationReport};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes; complete when the device says that it is safe.
    Write,
}

/// One I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Read or write.
    pub kind: Kind,
    /// Where it begins; offsets beyond the capacity count from its beginning again.
    pub offset_bytes: u64,
    /// How long it is; > 0.
    pub bytes: u64,
}

impl Request {
    /// A read.
    pub fn read(offset_bytes: u64, bytes: u64) -> Self {
        Self { kind: Kind::Read, offset_bytes, bytes }
    }

    /// A write.
    pub fn write(offset_bytes: u64, bytes: u64) -> Self {
        Self { kind: Kind::Write, offset_bytes, bytes }
    }

    /// The first and the last unit of `unit_bytes` that it touches.
    pub fn units(&self, unit_bytes: u64) -> (u64, u64) {
        let last = self.offset_bytes + self.bytes.max(1) - 1;
        (self.offset_bytes / unit_bytes, last / unit_bytes)
    }
}

/// Who is told of completions.
pub trait Observer {
    /// The request submitted with this token is complete.
    fn done(&self, token: u64);
}

/// Whom to tell of a completion, and which of its requests it was.
#[derive(Clone)]
pub struct Done {
    observer: Rc<dyn Observer>,
    token: u64,
}

impl Done {
    /// Tell `observer` that `token` is complete.
    pub fn new(observer: Rc<dyn Observer>, token: u64) -> Self {
        Self { observer, token }
    }

    /// Tells.
    #[inline]
    pub fn tell(self) {
        self.observer.done(self.token);
    }
}

/// Something that takes requests.
pub trait Device {
    /// Its name.
    fn name(&self) -> &str;
    /// How much fits on it.
    fn capacity_bytes(&self) -> u64;
    /// Takes a request; tells when it is complete, never before this returns.
    fn submit(&self, request: Request, done: Done);
    /// What its queues have seen, and those of the devices below.
    fn reports(&self) -> Vec<StationReport>;
    /// Forgets statistics, here and below: the end of a warm-up.
    fn reset(&self);
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

/// A request under way; ready with the time at which it was complete.
pub struct Io(Rc<Flag>);

/// Submits a request.
pub fn start(sim: &Sim, device: &dyn Device, request: Request) -> Io {
    let process = Cell::new(sim.running());
    let flag = Rc::new(Flag { sim: sim.clone(), done_ns: Cell::default(), process });
    device.submit(request, Done::new(flag.clone(), 0));
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
