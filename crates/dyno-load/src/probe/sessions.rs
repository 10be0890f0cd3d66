//! Sessions that commit: when each next commit arrives, and which sessions are free.
//!
//! Sessions are simulated: they are times, not threads. So a hundred sessions cost nothing, and the probe measures the
//! log and not the scheduler. The figures do not include the time that the kernel needs to wake a real session.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use dyno_evidence::NONE;
use dyno_script::Rng;

use super::Sizes;
use super::record::Commit;
use super::spec::ProbeArm;

/// How commits arrive.
enum Loop {
    /// A session commits again after its think time; entries are (time, session), the earliest first.
    Closed { think_ns: u64, next: BinaryHeap<Reverse<(i64, u16)>> },
    /// Commits arrive at times that do not depend on the sessions; a free session takes each of them.
    Open(Arrivals),
}

/// Arrivals of an open loop.
struct Arrivals {
    gap_ns: f64,
    next_ns: f64,
    /// Arrivals that found no free session.
    waiting: VecDeque<i64>,
    free: Vec<u16>,
    /// Arrivals that have got a session: (session, intended start, actual start).
    ready: VecDeque<(u16, i64, i64)>,
}

impl Arrivals {
    /// Generates the arrivals up to `until_ns`.
    fn advance(&mut self, until_ns: i64, dice: &mut Rng) {
        while self.next_ns <= until_ns as f64 {
            let at = self.next_ns as i64;
            match self.free.pop() {
                Some(session) => self.ready.push_back((session, at, at)),
                None => self.waiting.push_back(at),
            }
            self.next_ns += exponential(dice, self.gap_ns);
        }
    }
}

/// Sessions of an arm.
pub(super) struct Sessions {
    count: u16,
    sizes: Sizes,
    dice: Rng,
    kind: Loop,
    numbers: u64,
    end_ns: i64,
}

impl Sessions {
    /// Returns the sessions of an arm; `sizes` is the distribution of the commits' redo.
    pub fn new(arm: &ProbeArm, sizes: Sizes, seed: u64) -> Self {
        let kind = match arm.rate_per_s {
            None => Loop::Closed { think_ns: arm.think_ns, next: BinaryHeap::new() },
            Some(rate) => Loop::Open(Arrivals {
                gap_ns: 1e9 / rate,
                next_ns: 0.0,
                waiting: VecDeque::new(),
                free: Vec::new(),
                ready: VecDeque::new(),
            }),
        };
        Self { count: arm.sessions, sizes, dice: Rng::new(seed), kind, numbers: 0, end_ns: 0 }
    }

    /// Begins a slice in which no commit begins at `end_ns` or later.
    ///
    /// All sessions are free, and begin with their think time.
    pub fn begin(&mut self, now_ns: i64, end_ns: i64) {
        self.end_ns = end_ns;
        match &mut self.kind {
            Loop::Closed { think_ns, next } => {
                next.clear();
                for session in 0..self.count {
                    let pause = exponential(&mut self.dice, *think_ns as f64);
                    next.push(Reverse((now_ns + pause as i64, session)));
                }
            }
            Loop::Open(arrivals) => {
                arrivals.waiting.clear();
                arrivals.ready.clear();
                arrivals.free = (0..self.count).rev().collect();
                arrivals.next_ns = now_ns as f64 + exponential(&mut self.dice, arrivals.gap_ns);
            }
        }
    }

    /// Ends the slice at `now_ns`, if its planned end is later.
    pub fn cut_short(&mut self, now_ns: i64) {
        self.end_ns = self.end_ns.min(now_ns);
    }

    /// Appends to `pending`, in order, the commits that have begun by `now_ns`, until `pending` contains `most`
    /// commits.
    pub fn arrived(&mut self, now_ns: i64, most: usize, pending: &mut VecDeque<Commit>) {
        let until = now_ns.min(self.end_ns - 1);
        while pending.len() < most {
            let found = match &mut self.kind {
                Loop::Closed { next, .. } => {
                    let due = next.peek().is_some_and(|Reverse((at, _))| *at <= until);
                    let first = if due { next.pop() } else { None };
                    first.map(|Reverse((at, session))| (session, NONE, at))
                }
                Loop::Open(arrivals) => {
                    arrivals.advance(until, &mut self.dice);
                    arrivals.ready.pop_front()
                }
            };
            let Some((session, intended_ns, started_ns)) = found else { return };
            self.numbers += 1;
            let redo_bytes = self.sizes.draw(&mut self.dice);
            let number = self.numbers;
            pending.push_back(Commit { session, intended_ns, started_ns, redo_bytes, number });
        }
    }

    /// Processes the acknowledgement of a session's commit: the session thinks, takes a waiting arrival, or becomes
    /// free.
    pub fn acknowledged(&mut self, session: u16, now_ns: i64) {
        match &mut self.kind {
            Loop::Closed { think_ns, next } => {
                let pause = exponential(&mut self.dice, *think_ns as f64);
                next.push(Reverse((now_ns + pause as i64, session)));
            }
            Loop::Open(arrivals) => {
                arrivals.advance(now_ns.min(self.end_ns - 1), &mut self.dice);
                let late = now_ns >= self.end_ns;
                match arrivals.waiting.pop_front() {
                    Some(intended) if !late => {
                        arrivals.ready.push_back((session, intended, now_ns));
                    }
                    given_up => {
                        arrivals.waiting.extend(given_up);
                        arrivals.free.push(session);
                    }
                }
            }
        }
    }

    /// Returns the earliest possible start of the next commit, or `None` if there is none in this slice.
    pub fn next_ns(&self) -> Option<i64> {
        let next = match &self.kind {
            Loop::Closed { next, .. } => next.peek().map(|Reverse((at, _))| *at),
            Loop::Open(arrivals) => Some(arrivals.next_ns.ceil() as i64),
        };
        next.filter(|at| *at < self.end_ns)
    }

    /// Removes and returns the slice's arrivals that found no free session; empty in a closed loop.
    pub fn given_up(&mut self) -> Vec<i64> {
        match &mut self.kind {
            Loop::Closed { .. } => Vec::new(),
            Loop::Open(arrivals) => arrivals.waiting.drain(..).collect(),
        }
    }
}

fn exponential(dice: &mut Rng, mean: f64) -> f64 {
    if mean > 0.0 { -(1.0 - dice.unit()).ln() * mean } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(json: &str) -> Sessions {
        let arm: ProbeArm = serde_json::from_str(&format!(r#"{{"name": "a", "paths": ["x"], {json}}}"#)).unwrap();
        Sessions::new(&arm, Sizes::Levels(vec![100]), 3)
    }

    #[test]
    fn without_thinking_every_session_commits_at_once_and_again() {
        let mut all = sessions(r#""sessions": 3"#);
        let mut pending = VecDeque::new();
        all.begin(1000, 9000);
        all.arrived(1000, usize::MAX, &mut pending);
        assert_eq!(pending.iter().map(|c| c.session).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(pending.iter().map(|c| c.number).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(all.next_ns(), None, "all wait for the log");
        all.acknowledged(1, 2000);
        assert_eq!(all.next_ns(), Some(2000));
        all.cut_short(2000);
        all.arrived(9000, usize::MAX, &mut pending);
        assert_eq!((pending.len(), all.next_ns()), (3, None), "nothing begins at the end");
    }

    #[test]
    fn an_open_loop_arrives_by_the_clock_whoever_is_busy() {
        const SECOND: i64 = 1_000_000_000;
        let mut all = sessions(r#""sessions": 2, "rate_per_s": 1000.0"#);
        let mut pending = VecDeque::new();
        all.begin(0, SECOND);
        all.arrived(SECOND, usize::MAX, &mut pending);
        assert_eq!(pending.len(), 2, "as many as there are sessions");
        assert!(pending.iter().all(|c| c.started_ns == c.intended_ns));
        let left = all.given_up().len() + 2;
        // Poisson distribution with mean 1000: four standard deviations.
        assert!((874..=1126).contains(&left), "{left} arrivals in a second, seed 3");
    }

    #[test]
    fn an_arrival_that_waits_takes_the_session_that_comes_free_unless_the_turn_is_over() {
        let mut all = sessions(r#""sessions": 1, "rate_per_s": 1000.0"#);
        let mut pending = VecDeque::new();
        all.begin(0, 100_000_000);
        all.arrived(50_000_000, usize::MAX, &mut pending);
        all.acknowledged(0, 60_000_000);
        all.arrived(60_000_000, usize::MAX, &mut pending);
        assert_eq!((pending.len(), pending[1].started_ns), (2, 60_000_000));
        assert!(pending[1].intended_ns < 50_000_000);
        all.acknowledged(0, 100_000_000);
        all.arrived(100_000_000, usize::MAX, &mut pending);
        assert_eq!(pending.len(), 2);
        assert!(!all.given_up().is_empty());
    }
}
