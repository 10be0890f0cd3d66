//! Several I/Os of one process that are waited for together.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use crate::device::{Device, Done, Observer, Request};
use crate::kernel::sim::Place;
use crate::kernel::{ProcessId, Sim};

struct Open {
    sim: Sim,
    left: Cell<u64>,
    process: Cell<ProcessId>,
}

impl Observer for Open {
    fn done(&self, _: u64) {
        self.left.set(self.left.get() - 1);
        if self.left.get() == 0 {
            self.sim.wake(self.process.get());
        }
    }
}

/// I/Os of a process that it waits for together.
pub(super) struct Batch(Rc<Open>);

impl Batch {
    /// Returns an empty batch.
    pub fn new(sim: &Sim) -> Self {
        let process = Cell::new(ProcessId::NONE);
        Self(Rc::new(Open { sim: sim.clone(), left: Cell::new(0), process }))
    }

    /// Submits one more I/O.
    pub fn submit(&self, device: &dyn Device, request: Request) {
        self.0.left.set(self.0.left.get() + 1);
        device.submit(request, Done::new(Rc::<Open>::clone(&self.0), 0));
    }

    /// Completes when the last I/O is complete.
    pub async fn all_done(&self) {
        poll_fn(|_| {
            if self.0.left.get() == 0 {
                return Poll::Ready(());
            }
            self.0.process.set(self.0.sim.running());
            self.0.sim.stops_at(Place::IO);
            Poll::Pending
        })
        .await;
    }
}
