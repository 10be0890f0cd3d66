//! A core with its run queue, and the scheduler's state of a process.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::kernel::ProcessId;

/// Order in a run queue: virtual deadline, then arrival.
pub(super) type Key = (i64, u64);

/// Weight of a process with the default priority (`NICE_0_LOAD`).
pub(super) const WEIGHT: i64 = 1_024;

/// Scheduler's state of a process.
pub(super) struct Seat {
    pub process: Cell<ProcessId>,
    /// Weight: a process with half of it gets half of the CPU time of others.
    pub weight: Cell<i64>,
    pub running: Cell<bool>,
    /// True while an idle core wakes up to run the process.
    pub starting: Cell<bool>,
    pub core: Cell<usize>,
    /// Core on which the process was before it last woke up.
    pub core_before: Cell<usize>,
    /// Virtual time up to `since_ns`: CPU time over weight [ns].
    pub had_ns: Cell<i64>,
    /// Virtual time relative to the average of the core, when the process went to sleep [ns].
    pub ahead_ns: Cell<i64>,
    /// Virtual time at which the slice of the process ends [ns].
    pub deadline_ns: Cell<i64>,
    pub since_ns: Cell<u64>,
    pub arrived_ns: Cell<u64>,
    /// Time at which the process last ran [ns].
    pub ran_ns: Cell<u64>,
    /// True if others have run on the core since the process last ran, or if the core was idle: the process's data are
    /// no longer in the core's cache.
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
            weight: Cell::new(WEIGHT),
            running: Cell::new(false),
            starting: Cell::new(false),
            core: Cell::new(0),
            core_before: Cell::new(0),
            had_ns: Cell::new(0),
            ahead_ns: Cell::new(0),
            deadline_ns: Cell::new(0),
            since_ns: Cell::new(0),
            arrived_ns: Cell::new(0),
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

    /// Returns true if the process started on a core that was idle, or where others had run since its last run; only
    /// the first call returns true.
    pub fn take_cold(&self) -> bool {
        self.cold.replace(false)
    }

    /// Returns the virtual time of the process [ns].
    pub fn had_at(&self, now_ns: u64) -> i64 {
        let ran_ns = if self.starting.get() { 0 } else { now_ns - self.since_ns.get() };
        self.had_ns.get() + self.virtual_ns(ran_ns)
    }

    /// Returns how much virtual time CPU time is [ns] (`calc_delta_fair`).
    pub fn virtual_ns(&self, ns: u64) -> i64 {
        ns as i64 * WEIGHT / self.weight.get()
    }

    /// Returns the CPU time left until the end of the slice [ns].
    pub fn left_ns(&self) -> u64 {
        (self.deadline_ns.get() - self.had_ns.get()).max(0) as u64 * self.weight.get() as u64 / WEIGHT as u64
    }
}

/// A core: the process that runs, and those in its queue, some of which sleep.
#[derive(Default)]
pub(super) struct Core {
    pub running: Option<Rc<Seat>>,
    queue: BTreeMap<Key, Rc<Seat>>,
    asleep: usize,
    /// Sum of the weights in the queue.
    weight: i64,
    /// Sum of the virtual times in the queue, each multiplied by its weight [ns].
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

    /// Returns the average virtual time of the running process and the queue, by weight [ns] (`avg_vruntime`).
    pub fn average_ns(&self, now_ns: u64) -> i64 {
        let (weight, sum_ns) = self.load(now_ns);
        if weight == 0 { self.average_ns } else { sum_ns.div_euclid(weight) }
    }

    /// Returns the sum of the weights of the running process and the queue, and that of their virtual times [ns].
    fn load(&self, now_ns: u64) -> (i64, i64) {
        let running = self.running.as_ref();
        let (weight, sum_ns) =
            running.map_or((0, 0), |seat| (seat.weight.get(), seat.had_at(now_ns) * seat.weight.get()));
        (self.weight + weight, self.queued_ns + sum_ns)
    }

    /// Returns true if a process with this virtual time has had at most the average (`entity_eligible`).
    pub fn is_eligible(&self, had_ns: i64, now_ns: u64) -> bool {
        had_ns <= self.average_ns(now_ns)
    }

    /// Returns the virtual time with which a process must enter the queue to be ahead of the average by `ahead_ns`
    /// afterwards (`place_entity`) [ns].
    pub fn placed_ns(&self, seat: &Seat, ahead_ns: i64, now_ns: u64) -> i64 {
        let (weight, _) = self.load(now_ns);
        let inflated_ns = if weight > 0 { ahead_ns * (weight + seat.weight.get()) / weight } else { 0 };
        self.average_ns(now_ns) + inflated_ns
    }

    /// Returns the process in the queue with the earliest deadline of those that have had at most the average; it may
    /// sleep (`pick_eevdf`).
    pub fn best(&self, now_ns: u64) -> Option<&Rc<Seat>> {
        let average_ns = self.average_ns(now_ns);
        let found = self.queue.values().find(|seat| seat.had_ns.get() <= average_ns);
        found.or_else(|| self.queue.values().next())
    }

    /// Returns the waiting processes in the order of their deadlines.
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

    pub fn push(&mut self, seat: &Rc<Seat>, arrival: u64) {
        let key = (seat.deadline_ns.get(), arrival);
        seat.key.set(Some(key));
        self.weight += seat.weight.get();
        self.queued_ns += seat.had_ns.get() * seat.weight.get();
        self.asleep += usize::from(seat.asleep.get());
        self.queue.insert(key, Rc::clone(seat));
    }

    pub fn remove(&mut self, key: Key) -> Option<Rc<Seat>> {
        let seat = self.queue.remove(&key)?;
        seat.key.set(None);
        self.weight -= seat.weight.get();
        self.queued_ns -= seat.had_ns.get() * seat.weight.get();
        self.asleep -= usize::from(seat.asleep.get());
        Some(seat)
    }

    /// Removes and returns the best process in the queue that waits for the core; sleeping processes whose turn comes
    /// before are removed, too.
    pub fn pop(&mut self, now_ns: u64) -> Option<Rc<Seat>> {
        while let Some(key) = self.best(now_ns).and_then(|seat| seat.key.get()) {
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
    use super::{Core, Seat, WEIGHT};
    use std::rc::Rc;

    /// Returns a process in the queue of `core` that waits, or sleeps there.
    fn queued(core: &mut Core, had_ns: i64, deadline_ns: i64, asleep: bool) -> Rc<Seat> {
        let seat = Seat::new();
        seat.asleep.set(asleep);
        seat.ahead_ns.set(7);
        seat.had_ns.set(had_ns);
        seat.deadline_ns.set(deadline_ns);
        core.push(&seat, 0);
        seat
    }

    #[test]
    fn the_earliest_deadline_runs_of_those_that_have_had_at_most_the_average() {
        let mut core = Core::default();
        let hungry = queued(&mut core, 0, 300, false);
        let sated = queued(&mut core, 90, 100, false);
        let urgent = queued(&mut core, 30, 200, false);
        assert_eq!(core.average_ns(0), 40);
        let order: Vec<_> = std::iter::from_fn(|| core.pop(0)).collect();
        // Without the urgent one, the average is that of the other two.
        assert!([urgent, hungry, sated].iter().zip(&order).all(|(is, was)| Rc::ptr_eq(is, was)), "another order");
    }

    #[test]
    fn a_process_of_half_the_weight_ages_twice_as_fast_and_counts_half() {
        let mut core = Core::default();
        let half = Seat::new();
        half.weight.set(WEIGHT / 2);
        half.had_ns.set(half.virtual_ns(30));
        core.push(&half, 0);
        queued(&mut core, 0, 0, false);
        assert_eq!((half.had_ns.get(), core.average_ns(0)), (60, 20));
        half.deadline_ns.set(100);
        assert_eq!(half.left_ns(), 20, "CPU time until the deadline");
        assert_eq!(core.placed_ns(&half, 30, 0), 20 + 30 * 4 / 3, "its own weight moves the average");
    }

    #[test]
    fn a_sleeping_process_leaves_the_queue_when_its_turn_comes() {
        let mut core = Core::default();
        let (sleeper, waiter) = (queued(&mut core, 10, 10, true), queued(&mut core, 20, 20, false));
        assert_eq!((core.waiting(), core.present(), core.is_alone()), (1, 1, false));
        assert!(Rc::ptr_eq(&core.pop(0).unwrap(), &waiter));
        assert!(!sleeper.asleep.get() && sleeper.ahead_ns.get() == 0);
        assert!(core.is_alone() && core.pop(0).is_none());
    }

    #[test]
    fn a_sleeping_process_keeps_its_place_until_then() {
        let mut core = Core::default();
        let (waiter, sleeper) = (queued(&mut core, 10, 10, false), queued(&mut core, 20, 20, true));
        assert!(Rc::ptr_eq(&core.pop(0).unwrap(), &waiter));
        assert!(sleeper.asleep.get() && sleeper.key.get() == Some((20, 0)));
        assert_eq!(core.average_ns(0), 20, "it counts in the average until then");
        assert!(core.pop(0).is_none(), "nobody waits");
    }
}
