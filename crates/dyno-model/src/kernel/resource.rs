//! Servers with a queue in front.
//!
//! A permit is one server; dropping it passes the server to the next in the queue at that instant.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::sim::Sim;
use super::station::{Station, StationReport};
use super::waitlist::{Discipline, WaitList};

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

    /// Returns a resource with this many servers and a queue of that discipline.
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
    pub async fn acquire(&self) -> Permit {
        self.acquire_at(0).await
    }

    /// Waits for a server by priority (smallest first), if the discipline uses it.
    #[inline]
    pub async fn acquire_at(&self, priority: u32) -> Permit {
        let inner = &self.0;
        let arrived_ns = inner.queue.sim().now_ns();
        inner.station.borrow_mut().arrive(arrived_ns);
        if inner.free.get() > 0 {
            inner.free.set(inner.free.get() - 1);
        } else {
            let leaving = Leaving { inner, arrived_ns };
            inner.queue.wait(priority).await;
            std::mem::forget(leaving);
        }
        let mut station = inner.station.borrow_mut();
        let arrived = station.arrived_ns(arrived_ns);
        station.start(inner.queue.sim().now_ns(), arrived);
        Permit { inner: Rc::clone(inner), arrived_ns }
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

/// Passes a free server to the next in the queue, or leaves it free.
#[inline]
fn pass_on(inner: &Inner) {
    if inner.queue.hand(()).is_err() {
        inner.free.set(inner.free.get() + 1);
    }
}

/// Wait that may be abandoned, which the statistics must know.
struct Leaving<'a> {
    inner: &'a Inner,
    arrived_ns: u64,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let mut station = self.inner.station.borrow_mut();
        let arrived_ns = station.arrived_ns(self.arrived_ns);
        station.give_up(self.inner.queue.sim().now_ns(), arrived_ns);
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
