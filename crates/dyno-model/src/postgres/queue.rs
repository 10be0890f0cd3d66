//! A core with its run queue, and the scheduler's state of a process.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::kernel::ProcessId;

/// Order in a run queue: virtual time, then arrival.
pub(super) type Key = (i64, u64);

/// Scheduler's state of a process.
pub(super) struct Seat {
    pub process: Cell<ProcessId>,
    pub running: Cell<bool>,
    /// True while an idle core wakes up to run the process.
    pub starting: Cell<bool>,
    pub core: Cell<usize>,
    /// Core on which the process was before it last woke up.
    pub core_before: Cell<usize>,
    /// Virtual time up to `since_ns` [ns].
    pub had_ns: Cell<i64>,
    /// Virtual time relative to the average of the core, when the process went to sleep [ns].
    pub ahead_ns: Cell<i64>,
    pub since_ns: Cell<u64>,
    pub arrived_ns: Cell<u64>,
    pub slice_from_ns: Cell<u64>,
    /// Time at which the process last ran [ns].
    pub ran_ns: Cell<u64>,
    /// True if others have run on the core since the process last ran, so that its data are no longer in the core's
    /// cache.
    pub cold: Cell<bool>,
    /// True if the process must stop computing and check its state: the other hyperthread has started or stopped, or
    /// another process preempts this one.
    pub changed: Cell<bool>,
    /// True if a process that woke up preempts this one.
    pub preempted: Cell<bool>,
    /// Place of the process in the queue of its core.
    pub key: Cell<Option<Key>>,
    /// True if the process sleeps while it is in the queue.
    pub asleep: Cell<bool>,
}

impl Seat {
    pub fn new() -> Rc<Self> {
        Rc::new(Self {
            process: Cell::new(ProcessId::NONE),
            running: Cell::new(false),
            starting: Cell::new(false),
            core: Cell::new(0),
            core_before: Cell::new(0),
            had_ns: Cell::new(0),
            ahead_ns: Cell::new(0),
            since_ns: Cell::new(0),
            arrived_ns: Cell::new(0),
            slice_from_ns: Cell::new(0),
            ran_ns: Cell::new(0),
            cold: Cell::new(false),
            changed: Cell::new(false),
            preempted: Cell::new(false),
            key: Cell::new(None),
            asleep: Cell::new(false),
        })
    }

    /// Returns true if the process has a core.
    pub fn is_running(&self) -> bool {
        self.running.get()
    }

    /// Returns true if the process started on a core where others had run since its last run; only the first call
    /// returns true.
    pub fn take_cold(&self) -> bool {
        self.cold.replace(false)
    }

    pub fn had_at(&self, now_ns: u64) -> i64 {
        let ran_ns = if self.starting.get() { 0 } else { now_ns - self.since_ns.get() };
        self.had_ns.get() + ran_ns as i64
    }
}

/// A core: the process that runs, and those in its queue, some of which sleep.
#[derive(Default)]
pub(super) struct Core {
    pub running: Option<Rc<Seat>>,
    queue: BTreeMap<Key, Rc<Seat>>,
    asleep: usize,
    /// Sum of the virtual times in the queue [ns].
    queued_ns: i64,
    /// Average virtual time when the core was last busy [ns].
    pub average_ns: i64,
    /// Time at which the core last stopped computing [ns].
    pub idle_from_ns: u64,
    /// The last two processes on this core.
    last: [Option<Rc<Seat>>; 2],
}

impl Core {
    /// Returns the number of processes that wait for this core.
    pub fn waiting(&self) -> usize {
        self.queue.len() - self.asleep
    }

    /// Returns the number of processes that run or wait here.
    pub fn present(&self) -> usize {
        self.waiting() + usize::from(self.running.is_some())
    }

    /// Returns true if no other process is in the queue, not even a sleeping one.
    pub fn is_alone(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the average virtual time of the running process and the queue [ns].
    pub fn average_ns(&self, now_ns: u64) -> i64 {
        let running_ns = self.running.as_ref().map_or(0, |seat| seat.had_at(now_ns));
        match self.queue.len() + usize::from(self.running.is_some()) {
            0 => self.average_ns,
            all => (self.queued_ns + running_ns) / all as i64,
        }
    }

    /// Returns the virtual time with which a process must enter the queue to be ahead of the average by `ahead_ns`
    /// afterwards (`place_entity`) [ns].
    pub fn placed_ns(&self, ahead_ns: i64, now_ns: u64) -> i64 {
        let all = (self.queue.len() + usize::from(self.running.is_some())) as i64;
        let inflated_ns = if all > 0 { ahead_ns * (all + 1) / all } else { 0 };
        self.average_ns(now_ns) + inflated_ns
    }

    /// Returns the waiting processes in their order.
    pub fn waiters(&self) -> impl DoubleEndedIterator<Item = (Key, &Rc<Seat>)> {
        self.queue.iter().filter(|(_, seat)| !seat.asleep.get()).map(|(&key, seat)| (key, seat))
    }

    pub fn run(&mut self, seat: Rc<Seat>) {
        let is = |other: &Option<Rc<Seat>>| other.as_ref().is_some_and(|other| Rc::ptr_eq(other, &seat));
        if !is(&self.last[0]) {
            if !is(&self.last[1]) {
                seat.cold.set(true);
            }
            self.last[1] = self.last[0].replace(Rc::clone(&seat));
        }
        self.running = Some(seat);
    }

    pub fn push(&mut self, seat: &Rc<Seat>, key: Key) {
        seat.key.set(Some(key));
        self.queued_ns += key.0;
        self.asleep += usize::from(seat.asleep.get());
        self.queue.insert(key, Rc::clone(seat));
    }

    pub fn remove(&mut self, key: Key) -> Option<Rc<Seat>> {
        let seat = self.queue.remove(&key)?;
        seat.key.set(None);
        self.queued_ns -= key.0;
        self.asleep -= usize::from(seat.asleep.get());
        Some(seat)
    }

    /// Removes and returns the first process in the queue that waits for the core; sleeping processes ahead of it are
    /// removed, too.
    pub fn pop(&mut self) -> Option<Rc<Seat>> {
        while let Some((&key, _)) = self.queue.first_key_value() {
            let seat = self.remove(key)?;
            if !seat.asleep.replace(false) {
                return Some(seat);
            }
            // Its turn has come: it is neither ahead nor behind (`DELAY_ZERO`).
            seat.ahead_ns.set(0);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Core, Key, Seat};
    use std::rc::Rc;

    /// Returns a process in the queue of `core` that waits, or sleeps there.
    fn queued(core: &mut Core, key: Key, asleep: bool) -> Rc<Seat> {
        let seat = Seat::new();
        seat.asleep.set(asleep);
        seat.ahead_ns.set(7);
        core.push(&seat, key);
        seat
    }

    #[test]
    fn a_sleeping_process_leaves_the_queue_when_its_turn_comes() {
        let mut core = Core::default();
        let (sleeper, waiter) = (queued(&mut core, (10, 1), true), queued(&mut core, (20, 2), false));
        assert_eq!((core.waiting(), core.present(), core.is_alone()), (1, 1, false));
        assert!(Rc::ptr_eq(&core.pop().unwrap(), &waiter));
        assert!(!sleeper.asleep.get() && sleeper.ahead_ns.get() == 0);
        assert!(core.is_alone() && core.pop().is_none());
    }

    #[test]
    fn a_sleeping_process_keeps_its_place_until_then() {
        let mut core = Core::default();
        let (waiter, sleeper) = (queued(&mut core, (10, 1), false), queued(&mut core, (20, 2), true));
        assert!(Rc::ptr_eq(&core.pop().unwrap(), &waiter));
        assert!(sleeper.asleep.get() && sleeper.key.get() == Some((20, 2)));
        assert_eq!(core.average_ns(0), 20, "it counts in the average until then");
        assert!(core.pop().is_none(), "nobody waits");
    }
}
