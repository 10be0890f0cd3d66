//! Which core a process gets when it wakes up, and when queues are balanced.

use std::rc::Rc;

use super::cores::{Inner, State};
use super::queue::{Key, Seat};

/// Number of attempts to balance that find no process to move, after which hot processes are moved, too (`sd_init`:
/// `cache_nice_tries` of cores that share a cache).
const CACHE_NICE_TRIES: u32 = 1;

impl State {
    /// Returns the core for a process that wakes up, based on its last two cores and the core of its waker.
    pub(super) fn choose(&mut self, seat: &Seat, waker: Option<usize>, now_ns: u64) -> usize {
        let (last, before) = (seat.core.get(), seat.core_before.get());
        if self.is_idle(last) {
            // A waker that is alone on its core is about to leave it idle (`wake_affine_idle`).
            let alone = waker.filter(|&waker| waker != last && self.cores[waker].present() == 1);
            return alone.filter(|_| !self.is_awake(last, now_ns)).unwrap_or(last);
        }
        if self.is_idle(before) && self.is_searched(before, now_ns) {
            return before;
        }
        let chosen = waker.filter(|&waker| self.is_pulled(last, waker)).unwrap_or(last);
        let all = self.cores.len();
        let searched = if self.search_by_utilisation { self.busy.searched(now_ns) } else { all };
        let mut others = (1..=searched).map(|next| (chosen + next) % all);
        match others.find(|&core| self.is_idle(core)) {
            Some(core) if self.is_searched(core, now_ns) => core,
            _ => chosen,
        }
    }

    /// Wakes a process that sleeps in the queue: it waits there, but loses any lead in virtual time (`DELAY_ZERO`).
    pub(super) fn resume(&mut self, inner: &Inner, seat: &Rc<Seat>, now_ns: u64) {
        let core = seat.core.get();
        if let Some(key) = seat.key.get() {
            self.cores[core].remove(key);
        }
        seat.asleep.set(false);
        let average_ns = self.cores[core].average_ns(now_ns);
        let had_ns = seat.had_ns.get().max(average_ns);
        if had_ns > seat.had_ns.get() {
            seat.deadline_ns.set(had_ns + seat.virtual_ns(inner.slice_ns));
        }
        self.enter(seat, had_ns, now_ns);
    }

    /// Removes a process that sleeps in the queue of a core: it wakes up on another core, where it is neither ahead nor
    /// behind.
    pub(super) fn depart(&mut self, seat: &Rc<Seat>) {
        if let Some(key) = seat.key.get() {
            self.cores[seat.core.get()].remove(key);
        }
        seat.asleep.set(false);
        seat.ahead_ns.set(0);
    }

    fn is_idle(&self, core: usize) -> bool {
        self.cores[core].present() == 0
    }

    /// Returns true if an idle core counts as idle: a virtual processor that has been idle for long is halted, and the
    /// system treats a halted processor like one that the host has taken away (`vcpu_is_preempted`).
    fn is_awake(&mut self, core: usize, now_ns: u64) -> bool {
        let long = now_ns - self.cores[core].idle_from_ns > self.halt_ns;
        !long || self.searches_late >= 1.0 || self.dice.chance(self.searches_late)
    }

    /// Returns true if a process leaves its last core, which is busy, for the core of its waker.
    fn is_pulled(&mut self, last: usize, waker: usize) -> bool {
        // The waker itself does not count: it is about to sleep.
        let shorter = self.cores[waker].present() - 1 < self.cores[last].present();
        waker != last && shorter && (self.pulls >= 1.0 || self.dice.chance(self.pulls))
    }

    /// Returns true if a process that found this idle core takes it; random, with the configured share.
    fn is_searched(&mut self, core: usize, now_ns: u64) -> bool {
        let long = now_ns - self.cores[core].idle_from_ns > self.halt_ns;
        let share = if long { self.searches_late } else { self.searches };
        share >= 1.0 || self.dice.chance(share)
    }

    /// Moves a process to a core that becomes idle: the first process in the longest queue that is not hot, that is,
    /// has not run recently.
    pub(super) fn pull(&mut self, inner: &Inner, to: usize, now_ns: u64) {
        let Some(from) =
            (0..self.cores.len()).filter(|&core| core != to).max_by_key(|&core| self.cores[core].waiting())
        else {
            return;
        };
        let cold = |seat: &Seat| now_ns - seat.ran_ns.get() >= inner.hot_ns;
        let key = self.cores[from].waiters().find(|(_, seat)| cold(seat)).map(|(key, _)| key);
        if let Some(key) = key {
            self.move_to(from, key, to, now_ns);
        }
    }

    /// Moves a process from the longest queue to an idle core.
    ///
    /// A tick that finds a waiting process wakes an idle core to balance (`kick_ilb`), also if no process is moved. So a
    /// halted core counts as awake for a while.
    pub(super) fn balance_idle(&mut self, inner: &Inner, now_ns: u64) {
        let all = || 0..self.cores.len();
        let from = all().max_by_key(|&core| self.cores[core].waiting());
        let to = all().find(|&core| self.cores[core].present() == 0);
        let (Some(from), Some(to)) = (from, to) else { return };
        if self.cores[from].waiting() > 0 {
            self.cores[to].idle_from_ns = now_ns;
            self.move_last(inner, from, to, 1, now_ns);
        }
    }

    /// Moves processes from the longest queue to the shortest one: half of the difference between them.
    pub(super) fn balance(&mut self, inner: &Inner, now_ns: u64) {
        let present = |&core: &usize| self.cores[core].present();
        let all = || 0..self.cores.len();
        let (Some(from), Some(to)) = (all().max_by_key(present), all().min_by_key(present)) else { return };
        let count = (present(&from) - present(&to)) / 2;
        if count > 0 {
            self.move_last(inner, from, to, count, now_ns);
        }
    }

    /// Moves up to `count` waiting processes that are not hot, the last ones first. After two attempts that found no
    /// process, hot processes are moved, too (`nr_balance_failed > cache_nice_tries`).
    fn move_last(&mut self, inner: &Inner, from: usize, to: usize, count: usize, now_ns: u64) {
        let hot = self.failed > CACHE_NICE_TRIES;
        let fits = |seat: &Seat| hot || now_ns - seat.ran_ns.get() >= inner.hot_ns;
        let waiters = self.cores[from].waiters().rev();
        let keys: Vec<Key> = waiters.filter(|(_, seat)| fits(seat)).map(|(key, _)| key).take(count).collect();
        self.failed = if keys.is_empty() { self.failed + 1 } else { 0 };
        for key in keys {
            self.move_to(from, key, to, now_ns);
        }
    }

    fn move_to(&mut self, from: usize, key: Key, to: usize, now_ns: u64) {
        let Some(seat) = self.cores[from].remove(key) else { return };
        let ahead_ns = seat.had_ns.get() - self.cores[from].average_ns(now_ns);
        seat.core.set(to);
        let had_ns = self.cores[to].average_ns(now_ns) + ahead_ns;
        seat.deadline_ns.set(had_ns + seat.deadline_ns.get() - seat.had_ns.get());
        self.push(&seat, had_ns);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;

    use crate::kernel::Simulation;
    use crate::postgres::cores::{Cores, CoresParameters};

    /// Returns the core on which a process wakes up that sleeps in the queue of core 0, and whether it was idle.
    fn woken(groups: bool) -> (usize, bool) {
        let simulation = Simulation::new(1);
        let sim = simulation.sim().clone();
        let parameters = CoresParameters { groups, searches: 0.0, ..CoresParameters::default() };
        let cores = Cores::new(&sim, 2, &parameters);
        let found = Rc::new(Cell::new((9, false)));
        let out = Rc::clone(&found);
        simulation.sim().spawn_daemon("two processes", async move {
            let (first, second) = (cores.seat(), cores.seat());
            for seat in [&first, &second] {
                seat.core.set(0);
                seat.core_before.set(0);
                seat.process.set(sim.running());
            }
            cores.wake(&first, None);
            cores.arrive(&first, 0).await;
            assert!(!cores.wake(&second, None), "it waits for the core of the first one");
            // The first one has more than its share, and then goes to sleep.
            while sim.now_ns() < 1_000_000 {
                cores.compute(&first, 1_000_000 - sim.now_ns()).await;
            }
            cores.release(&first);
            assert!(first.asleep.get() && second.is_running());
            first.core_before.set(1);
            let idle = cores.wake(&first, None);
            out.set((first.core.get(), idle));
        });
        simulation.run_until(10_000_000).unwrap();
        found.get()
    }

    #[test]
    fn a_process_whose_group_stays_in_the_queue_wakes_up_on_an_idle_core() {
        assert_eq!(woken(true), (1, true));
    }

    #[test]
    fn a_process_that_stays_in_the_queue_itself_waits_there() {
        assert_eq!(woken(false), (0, false));
    }

    /// Returns how long a process waits for its core each time it wakes up, every 5 ms, to compute for 100 us. Another
    /// process always computes.
    fn waits() -> Vec<u64> {
        let simulation = Simulation::new(1);
        let sim = simulation.sim().clone();
        let cores = Cores::new(&sim, 1, &CoresParameters::default());
        let (other, clock) = (cores.clone(), sim.clone());
        sim.spawn_daemon("always computes", async move {
            let seat = other.seat();
            seat.process.set(clock.running());
            other.wake(&seat, None);
            other.arrive(&seat, 0).await;
            loop {
                if other.must_give_way(&seat) {
                    other.give_way(&seat).await;
                }
                other.compute(&seat, 10_000_000).await;
            }
        });
        let found = Rc::new(RefCell::new(Vec::new()));
        let (out, clock) = (Rc::clone(&found), sim.clone());
        sim.spawn_daemon("computes every 5 ms", async move {
            let seat = cores.seat();
            seat.process.set(clock.running());
            loop {
                clock.hold(5_000_000).await;
                let begin_ns = clock.now_ns();
                cores.wake(&seat, None);
                cores.arrive(&seat, 0).await;
                out.borrow_mut().push(clock.now_ns() - begin_ns);
                let mut left_ns = 100_000;
                while left_ns > 0 {
                    left_ns -= cores.compute(&seat, left_ns).await.work_ns;
                }
                cores.release(&seat);
            }
        });
        simulation.run_until(10_000_000_000).unwrap();
        found.take()
    }

    #[test]
    fn a_process_that_had_less_than_the_average_preempts_until_its_credit_is_used() {
        let waits = waits();
        assert!(waits.iter().all(|&ns| ns <= 1_400_000), "it waits for the end of a slice at most");
        // A wait of d earns d / 2 of credit, and each run of 100 us costs half of that. A process without credit waits
        // for the rest of a slice.
        let mut credit_ns = 0;
        for (number, &ns) in waits.iter().enumerate() {
            assert_eq!(ns == 0, credit_ns > 0, "wake-up {number}, after {credit_ns} ns of credit, waited {ns} ns");
            credit_ns = (credit_ns + ns as i64 / 2 - 50_000).max(0);
        }
        let late = waits.iter().filter(|&&ns| ns > 0).count() as f64 / waits.len() as f64;
        assert!((0.05..0.3).contains(&late), "{late}");
    }
}
