//! The sessions that commit: when each next commit arrives, and who is free.
//!
//! Sessions are no threads: they are moments. So a hundred of them cost nothing, and what is
//! measured is the log, not the scheduler; what the kernel needs to wake a real session is not in
//! the figures.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use dyno_evidence::NONE;
use dyno_script::Rng;

use super::Sizes;
use super::record::Commit;
use super::spec::ProbeArm;

/// When commits arrive.
enum Loop {
    /// A session commits again when it has thought; (when, session), the earliest first.
    Closed { think_ns: u64, next: BinaryHeap<Reverse<(i64, u16)>> },
    /// Commits arrive by the clock and take a free session.
    Open { gap_ns: f64, next_ns: f64, waiting: VecDeque<i64>, free: Vec<u16> },
}

/// The sessions of an arm.
pub(super) struct Sessions {
    count: u16,
    sizes: Sizes,
    dice: Rng,
    kind: Loop,
    numbers: u64,
}

impl Sessions {
    /// The sessions of an arm; `sizes` is the law of its commits.
    pub fn new(arm: &ProbeArm, sizes: Sizes, seed: u64) -> Self {
        let kind = match arm.rate_per_s {
            None => Loop::Closed { think_ns: arm.think_ns, next: BinaryHeap::new() },
            Some(rate) => Loop::Open {
                gap_ns: 1e9 / rate,
                next_ns: 0.0,
                waiting: VecDeque::new(),
                free: Vec::new(),
            },
        };
        Self { count: arm.sessions, sizes, dice: Rng::new(seed), kind, numbers: 0 }
    }

    /// A turn begins: all sessions are free, and begin by thinking.
    pub fn begin(&mut self, now_ns: i64) {
        match &mut self.kind {
            Loop::Closed { think_ns, next } => {
                next.clear();
                for session in 0..self.count {
                    let pause = exponential(&mut self.dice, *think_ns as f64);
                    next.push(Reverse((now_ns + pause as i64, session)));
                }
            }
            Loop::Open { gap_ns, next_ns, waiting, free } => {
                waiting.clear();
                *free = (0..self.count).rev().collect();
                *next_ns = now_ns as f64 + exponential(&mut self.dice, *gap_ns);
            }
        }
    }

    /// Puts the commits that have arrived by `now_ns` and before `end_ns` behind `pending`, in the
    /// order of their arrival, until it holds `most`.
    pub fn arrived(
        &mut self,
        now_ns: i64,
        end_ns: i64,
        most: usize,
        pending: &mut VecDeque<Commit>,
    ) {
        let until = now_ns.min(end_ns - 1);
        while pending.len() < most {
            let (session, intended_ns, started_ns) = match &mut self.kind {
                Loop::Closed { next, .. } => match next.peek() {
                    Some(Reverse((at, session))) if *at <= until => {
                        let found = (*session, NONE, *at);
                        next.pop();
                        found
                    }
                    _ => return,
                },
                Loop::Open { gap_ns, next_ns, waiting, free } => {
                    while *next_ns <= until as f64 {
                        waiting.push_back(*next_ns as i64);
                        *next_ns += exponential(&mut self.dice, *gap_ns);
                    }
                    if waiting.is_empty() {
                        return;
                    }
                    let Some(session) = free.pop() else { return };
                    let intended = waiting.pop_front().unwrap_or(now_ns);
                    (session, intended, now_ns.max(intended))
                }
            };
            self.numbers += 1;
            let redo_bytes = self.sizes.draw(&mut self.dice);
            let number = self.numbers;
            pending.push_back(Commit { session, intended_ns, started_ns, redo_bytes, number });
        }
    }

    /// A session's commit is acknowledged: it thinks, or is free.
    pub fn acknowledged(&mut self, session: u16, now_ns: i64) {
        match &mut self.kind {
            Loop::Closed { think_ns, next } => {
                let pause = exponential(&mut self.dice, *think_ns as f64);
                next.push(Reverse((now_ns + pause as i64, session)));
            }
            Loop::Open { free, .. } => free.push(session),
        }
    }

    /// When the next commit arrives; `None` when none can.
    pub fn next_ns(&self) -> Option<i64> {
        match &self.kind {
            Loop::Closed { next, .. } => next.peek().map(|Reverse((at, _))| *at),
            Loop::Open { next_ns, .. } => Some(next_ns.ceil() as i64),
        }
    }

    /// Open loop: arrivals before `end_ns` that found no free session. Forgets them.
    pub fn given_up(&mut self) -> Vec<i64> {
        match &mut self.kind {
            Loop::Closed { .. } => Vec::new(),
            Loop::Open { waiting, .. } => waiting.drain(..).collect(),
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
        let arm: ProbeArm =
            serde_json::from_str(&format!(r#"{{"name": "a", "paths": ["x"], {json}}}"#)).unwrap();
        Sessions::new(&arm, Sizes::Levels(vec![100]), 3)
    }

    #[test]
    fn without_thinking_every_session_commits_at_once_and_again() {
        let mut all = sessions(r#""sessions": 3"#);
        let mut pending = VecDeque::new();
        all.begin(1000);
        all.arrived(1000, 9000, usize::MAX, &mut pending);
        assert_eq!(pending.iter().map(|c| c.session).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(pending.iter().map(|c| c.number).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(all.next_ns(), None, "all wait for the log");
        all.acknowledged(1, 2000);
        assert_eq!(all.next_ns(), Some(2000));
        all.arrived(9000, 2000, usize::MAX, &mut pending);
        assert_eq!(pending.len(), 3, "nothing begins at or after the end");
    }

    #[test]
    fn an_open_loop_arrives_by_the_clock_whoever_is_busy() {
        let mut all = sessions(r#""sessions": 2, "rate_per_s": 1000.0"#);
        let mut pending = VecDeque::new();
        all.begin(0);
        all.arrived(1_000_000_000, 1_000_000_000, usize::MAX, &mut pending);
        assert_eq!(pending.len(), 2, "as many as there are sessions");
        let left = all.given_up().len() + 2;
        // Poisson with mean 1000: four standard deviations.
        assert!((874..=1126).contains(&left), "{left} arrivals in a second, seed 3");
        assert!(pending[0].started_ns >= pending[0].intended_ns);
    }
}
