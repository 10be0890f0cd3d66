//! Servers with a queue in front.
//!
//! A permit is one server; dropping the permit passes the server at that instant to the next process in the queue.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::sim::Sim;
use super::station::{Station, StationReport};
use super::waitlist::{Discipline, Wait, WaitList};

struct Inner {
    name: String,
    servers: u64,
    free: Cell<u64>,
    queue: WaitList<()>,
    station: RefCell<Station>,
}

/// Servers with a queue; clones share it.
#[derive(Clone)]
pub struct Resource(Rc<Inner>);

impl Resource {
    /// Returns a resource with this many servers and a queue in order of arrival.
    pub fn new(sim: &Sim, name: &str, servers: u64) -> Self {
        Self::with(sim, name, servers, Discipline::Fifo)
    }

    /// Returns a resource with this many servers and a queue with this discipline.
    pub fn with(sim: &Sim, name: &str, servers: u64, discipline: Discipline) -> Self {
        let queue = WaitList::new(sim, name, discipline);
        let station = RefCell::default();
        let (name, free) = (name.to_owned(), Cell::new(servers));
        let inner = Rc::new(Inner { name, servers, free, queue, station });
        let weak = Rc::downgrade(&inner);
        inner.queue.on_give_back(move |()| {
            if let Some(inner) = weak.upgrade() {
                pass_on(&inner);
            }
        });
        Self(inner)
    }

    /// Waits for a server.
    #[inline]
    pub fn acquire(&self) -> Acquire<'_> {
        self.acquire_at(0)
    }

    /// Waits for a server with this priority (smallest first), if the discipline uses priorities.
    #[inline]
    pub fn acquire_at(&self, priority: u32) -> Acquire<'_> {
        let inner = &self.0;
        Acquire { inner, wait: inner.queue.wait(priority), arrived_ns: 0, stage: Stage::Before }
    }

    /// Returns a server if one is free now.
    pub fn try_acquire(&self) -> Option<Permit> {
        let inner = &self.0;
        if inner.free.get() == 0 {
            return None;
        }
        inner.free.set(inner.free.get() - 1);
        let now_ns = inner.queue.sim().now_ns();
        let mut station = inner.station.borrow_mut();
        station.arrive(now_ns);
        station.start(now_ns, now_ns);
        Some(Permit { inner: Rc::clone(inner), arrived_ns: now_ns })
    }

    /// Returns the number of free servers.
    pub fn free(&self) -> u64 {
        self.0.free.get()
    }

    /// Returns the number of waiting processes.
    pub fn queue_len(&self) -> usize {
        self.0.queue.len()
    }

    /// Resets the statistics at the end of a warm-up.
    pub fn reset(&self) {
        self.0.station.borrow_mut().reset(self.0.queue.sim().now_ns());
    }

    /// Returns the statistics up to now.
    pub fn report(&self) -> StationReport {
        let now_ns = self.0.queue.sim().now_ns();
        self.0.station.borrow().report(&self.0.name, self.0.servers, now_ns)
    }
}

/// Passes a free server to the next process in the queue; leaves it free if no process waits.
#[inline]
fn pass_on(inner: &Inner) {
    if inner.queue.hand(()).is_err() {
        inner.free.set(inner.free.get() + 1);
    }
}

/// State of a request for a server: not made yet, in the queue, or served.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Before,
    Queued,
    Served,
}

/// Future of a process that arrives and waits for a server. It is a single future, not several nested `async fn`,
/// because a process that waits is polled twice in each wait.
#[must_use = "nobody arrives until it is awaited"]
pub struct Acquire<'a> {
    inner: &'a Rc<Inner>,
    wait: Wait<'a, ()>,
    arrived_ns: u64,
    stage: Stage,
}

impl Future for Acquire<'_> {
    type Output = Permit;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Permit> {
        let inner = self.inner;
        let now_ns = inner.queue.sim().now_ns();
        if self.stage == Stage::Before {
            self.arrived_ns = now_ns;
            inner.station.borrow_mut().arrive(now_ns);
            if inner.free.get() == 0 {
                self.stage = Stage::Queued;
            } else {
                inner.free.set(inner.free.get() - 1);
            }
        }
        if self.stage == Stage::Queued && Pin::new(&mut self.wait).poll(context).is_pending() {
            return Poll::Pending;
        }
        self.stage = Stage::Served;
        let mut station = inner.station.borrow_mut();
        let arrived_ns = station.arrived_ns(self.arrived_ns);
        station.start(now_ns, arrived_ns);
        Poll::Ready(Permit { inner: Rc::clone(inner), arrived_ns: self.arrived_ns })
    }
}

/// Records in the statistics that a process was dropped while it waited.
impl Drop for Acquire<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.stage == Stage::Queued {
            let mut station = self.inner.station.borrow_mut();
            let arrived_ns = station.arrived_ns(self.arrived_ns);
            station.give_up(self.inner.queue.sim().now_ns(), arrived_ns);
        }
    }
}

/// One server, which is free again when this is dropped.
#[must_use = "dropped at once, it serves nobody"]
pub struct Permit {
    inner: Rc<Inner>,
    arrived_ns: u64,
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        let now_ns = self.inner.queue.sim().now_ns();
        {
            let mut station = self.inner.station.borrow_mut();
            let arrived_ns = station.arrived_ns(self.arrived_ns);
            station.depart(now_ns, arrived_ns);
        }
        pass_on(&self.inner);
    }
}
