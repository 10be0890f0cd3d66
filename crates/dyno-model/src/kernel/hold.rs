//! Passing of virtual time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::sim::{Place, Sim};

/// Future that completes at a given virtual time; if it is dropped earlier, its event is removed from the calendar.
#[must_use = "time passes only while it is awaited"]
pub struct Hold<'a> {
    sim: &'a Sim,
    time_ns: u64,
    event: Option<u64>,
}

impl Sim {
    /// Waits for `ns` nanoseconds of virtual time.
    #[inline]
    pub fn hold(&self, ns: u64) -> Hold<'_> {
        self.hold_until(self.now_ns().saturating_add(ns))
    }

    /// Waits until `time_ns`; returns immediately if that is not later than now.
    #[inline]
    pub fn hold_until(&self, time_ns: u64) -> Hold<'_> {
        Hold { sim: self, time_ns, event: None }
    }
}

impl Future for Hold<'_> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.sim.now_ns() >= self.time_ns {
            self.event = None;
            return Poll::Ready(());
        }
        self.sim.stops_at(Place::TIME);
        if self.event.is_none() {
            self.event = Some(self.sim.wake_at(self.time_ns, self.sim.running()));
        }
        Poll::Pending
    }
}

impl Drop for Hold<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(event) = self.event
            && self.sim.now_ns() < self.time_ns
        {
            self.sim.cancel(event);
        }
    }
}
