//! The simulation of a device, in the thread that drives it: virtual time follows the clock from event to event.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use dyno_model::device::{Device, Done, Kind, Observer, Request};
use dyno_model::kernel::{Sim, Simulation};

use crate::orders::{Order, Range, Reply, Shared};

/// Time for which the thread spins before an event [ns]: longer than the system takes to wake the thread.
const SPIN_NS: u64 = 60_000;

/// Pieces of requests that the device has completed at the current instant.
struct Finished {
    sim: Sim,
    pieces: RefCell<Vec<(u64, u64)>>,
}

impl Observer for Finished {
    fn done(&self, token: u64) {
        self.pieces.borrow_mut().push((token, self.sim.now_ns()));
    }
}

/// Time until the thread that drives a device is needed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The thread is not needed until it is woken.
    Forever,
    /// The thread may sleep for at most this time; it then spins until the event.
    AtMost(Duration),
    /// The thread is needed now.
    None,
}

/// Kind of a program's request to the device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Io(Kind),
    Discard,
    Pause,
}

struct Open {
    arrived_ns: u64,
    pieces: usize,
    asked: Asked,
    reply: Reply,
}

/// The simulation of a device, in the thread that drives it.
pub struct Engine {
    shared: Arc<Shared>,
    simulation: Simulation,
    device: Rc<dyn Device>,
    finished: Rc<Finished>,
    number: u64,
    open: BTreeMap<u64, Open>,
    writes: BTreeSet<u64>,
    flushes: BTreeMap<u64, (u64, Reply)>,
}

impl Engine {
    pub(crate) fn new(shared: Arc<Shared>, simulation: Simulation, device: Rc<dyn Device>) -> Self {
        let finished = Rc::new(Finished { sim: simulation.sim().clone(), pieces: RefCell::default() });
        let (open, writes, flushes) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Self { shared, simulation, device, finished, number: 0, open, writes, flushes }
    }

    /// Drives the device until it is stopped.
    pub(crate) fn run(mut self) {
        while !self.is_stopping() {
            match self.turn() {
                // A request that came in the meantime has unparked it already.
                Rest::Forever => std::thread::park(),
                Rest::AtMost(time) => std::thread::park_timeout(time),
                Rest::None => std::hint::spin_loop(),
            }
        }
        self.complete_all();
    }

    /// Returns the capacity of the device [bytes].
    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }

    /// Returns true once the device has been requested to stop.
    pub fn is_stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Relaxed)
    }

    /// Takes the requests that have arrived, and processes all events that are due; returns the time until the next
    /// event.
    pub fn turn(&mut self) -> Rest {
        self.accept();
        self.advance();
        self.rest()
    }

    /// Completes all outstanding requests immediately.
    pub fn complete_all(&mut self) {
        for (_, open) in std::mem::take(&mut self.open) {
            (open.reply)();
        }
        for (_, (_, reply)) in std::mem::take(&mut self.flushes) {
            reply();
        }
    }

    fn half_floor_ns(&self) -> u64 {
        self.shared.half_floor_ns.load(Ordering::Relaxed)
    }

    /// Returns how much earlier than the modelled time a reply must be sent, for the time it still takes to arrive [ns].
    fn early_ns(&self) -> u64 {
        let alone = self.open.len() + self.flushes.len() == 1;
        self.half_floor_ns() + if alone { self.shared.wake_ns.load(Ordering::Relaxed) } else { 0 }
    }

    /// Submits the requests that have arrived.
    fn accept(&mut self) {
        let mut orders = std::mem::take(&mut *self.shared.inbox.lock().unwrap_or_else(PoisonError::into_inner));
        orders.sort_by_key(Order::arrived_ns);
        for order in orders {
            let early_ns = order.arrived_ns().saturating_sub(self.half_floor_ns());
            let arrived_ns = early_ns.max(self.simulation.now_ns());
            self.move_to(arrived_ns);
            self.number += 1;
            match order {
                Order::Io { pieces, reply, .. } => self.submit(arrived_ns, pieces, reply),
                Order::Flush { reply, .. } if self.writes.is_empty() => self.complete_flush(0, reply),
                Order::Flush { reply, .. } => drop(self.flushes.insert(self.number, (arrived_ns, reply))),
                Order::Discard { ranges, reply, .. } => self.discard(arrived_ns, &ranges, reply),
                Order::Wear { answer, .. } => drop(answer.send(self.device.wear())),
                Order::Pause { pause_ns, reply, .. } => self.pause(arrived_ns, pause_ns, reply),
            }
        }
    }

    fn pause(&mut self, arrived_ns: u64, pause_ns: u64, reply: Reply) {
        self.open.insert(self.number, Open { arrived_ns, pieces: 1, asked: Asked::Pause, reply });
        let (sim, finished, number) = (self.simulation.sim().clone(), Rc::clone(&self.finished), self.number);
        self.simulation.spawn("pause", async move {
            sim.hold(pause_ns).await;
            finished.done(number);
        });
    }

    fn submit(&mut self, arrived_ns: u64, pieces: Vec<Request>, reply: Reply) {
        let Some(first) = pieces.first() else {
            reply();
            return;
        };
        let open = Open { arrived_ns, pieces: pieces.len(), asked: Asked::Io(first.kind), reply };
        if open.asked == Asked::Io(Kind::Write) {
            self.writes.insert(self.number);
        }
        self.open.insert(self.number, open);
        for piece in pieces {
            let observer: Rc<dyn Observer> = Rc::<Finished>::clone(&self.finished);
            self.device.submit(piece, Done::new(observer, self.number));
        }
        self.deliver();
    }

    fn discard(&mut self, arrived_ns: u64, ranges: &[Range], reply: Reply) {
        let observer = || -> Rc<dyn Observer> { Rc::<Finished>::clone(&self.finished) };
        let done = || Done::new(observer(), self.number);
        let taken = ranges.iter().filter(|(offset, bytes)| self.device.discard(*offset, *bytes, done()).is_none());
        let pieces = taken.count();
        if pieces == 0 {
            reply();
            return;
        }
        self.open.insert(self.number, Open { arrived_ns, pieces, asked: Asked::Discard, reply });
    }

    /// Processes all events that are due.
    fn advance(&mut self) {
        loop {
            let limit_ns = self.shared.now_ns() + self.early_ns();
            match self.simulation.next_ns() {
                Some(next_ns) if next_ns <= limit_ns => self.move_to(next_ns),
                _ => return,
            }
        }
    }

    fn move_to(&mut self, time_ns: u64) {
        // There are no processes, hence no deadlock; devices never stand still.
        let _ = self.simulation.run_until(time_ns);
        self.deliver();
    }

    fn deliver(&mut self) {
        let pieces = std::mem::take(&mut *self.finished.pieces.borrow_mut());
        for (number, at_ns) in pieces {
            let Some(open) = self.open.get_mut(&number) else { continue };
            open.pieces -= 1;
            if open.pieces > 0 {
                continue;
            }
            let early_ns = self.early_ns();
            let Some(open) = self.open.remove(&number) else { continue };
            self.send(early_ns, open.asked, at_ns - open.arrived_ns, at_ns, open.reply);
            if open.asked == Asked::Io(Kind::Write) {
                self.writes.remove(&number);
                self.release_flushes(at_ns);
            }
        }
    }

    fn send(&self, early_ns: u64, asked: Asked, took_ns: u64, at_ns: u64, reply: Reply) {
        reply();
        let late_ns = (self.shared.now_ns() + early_ns).saturating_sub(at_ns);
        let mut timing = self.shared.timing.lock().unwrap_or_else(PoisonError::into_inner);
        match asked {
            Asked::Io(Kind::Read) => timing.read_ns.record(took_ns),
            Asked::Io(Kind::Write) => timing.write_ns.record(took_ns),
            Asked::Discard => timing.discard_ns.record(took_ns),
            Asked::Pause => return,
        }
        timing.late_ns.record(late_ns);
    }

    fn release_flushes(&mut self, at_ns: u64) {
        let first = self.writes.first().copied().unwrap_or(u64::MAX);
        while let Some(entry) = self.flushes.first_entry() {
            if *entry.key() > first {
                return;
            }
            let (arrived_ns, reply) = entry.remove();
            self.complete_flush(at_ns - arrived_ns, reply);
        }
    }

    fn complete_flush(&self, took_ns: u64, reply: Reply) {
        reply();
        let mut timing = self.shared.timing.lock().unwrap_or_else(PoisonError::into_inner);
        timing.flush_ns.record(took_ns);
    }

    /// Returns the time until the thread is needed again.
    fn rest(&self) -> Rest {
        let Some(next_ns) = self.simulation.next_ns() else { return Rest::Forever };
        let wait_ns = next_ns.saturating_sub(self.shared.now_ns() + self.early_ns());
        if wait_ns > SPIN_NS { Rest::AtMost(Duration::from_nanos(wait_ns - SPIN_NS)) } else { Rest::None }
    }
}
