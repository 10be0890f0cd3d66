//! Condition to wait for a notification, and a latch that opens once.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use super::sim::Sim;
use super::waitlist::{Discipline, WaitList};

/// Place to wait for a notification that something has changed. The condition does not know what has changed: check the
/// state again after the wait.
#[derive(Clone)]
pub struct Condition(WaitList<()>);

impl Condition {
    /// Returns a condition that no process waits for.
    pub fn new(sim: &Sim, name: &str) -> Self {
        Self(WaitList::new(sim, name, Discipline::Fifo))
    }

    /// Waits for the next notification.
    pub async fn wait(&self) {
        self.0.wait(0).await;
    }

    /// Waits for the next notification, at most until `time_ns`; returns true if there was a notification.
    pub async fn wait_until(&self, time_ns: u64) -> bool {
        let (mut notice, mut time) = (pin!(self.0.wait(0)), pin!(self.0.sim().hold_until(time_ns)));
        std::future::poll_fn(|context| {
            if notice.as_mut().poll(context).is_ready() {
                return Poll::Ready(true);
            }
            time.as_mut().poll(context).map(|()| false)
        })
        .await
    }

    /// Notifies the process that waits longest; returns false if none waits.
    pub fn notify_one(&self) -> bool {
        self.0.hand(()).is_ok()
    }

    /// Notifies all processes that wait now, in order of arrival; returns their number.
    pub fn notify_all(&self) -> usize {
        (0..self.0.len()).take_while(|_| self.notify_one()).count()
    }

    /// Returns the number of waiting processes.
    pub fn waiting(&self) -> usize {
        self.0.len()
    }
}

/// Latch that opens once and stays open. It counts down, so that it can represent several events that must all have
/// happened.
#[derive(Clone)]
pub struct Latch {
    left: Rc<Cell<u64>>,
    condition: Condition,
}

impl Latch {
    /// Returns a latch that opens after `count` calls of [`Latch::count_down`]; if `count` is 0, it is open from the
    /// start.
    pub fn new(sim: &Sim, name: &str, count: u64) -> Self {
        Self { left: Rc::new(Cell::new(count)), condition: Condition::new(sim, name) }
    }

    /// Counts one event; the last event to be counted opens the latch.
    pub fn count_down(&self) {
        let left = self.left.get().saturating_sub(1);
        self.left.set(left);
        if left == 0 {
            self.condition.notify_all();
        }
    }

    /// Returns true if the latch is open.
    pub fn is_open(&self) -> bool {
        self.left.get() == 0
    }

    /// Waits until the latch is open.
    pub async fn wait(&self) {
        while !self.is_open() {
            self.condition.wait().await;
        }
    }
}

impl Sim {
    /// Waits until everything that is already due at this instant has happened.
    pub async fn turn(&self) {
        let mut waited = false;
        std::future::poll_fn(|_| {
            if std::mem::replace(&mut waited, true) {
                return Poll::Ready(());
            }
            self.wake(self.running());
            Poll::Pending
        })
        .await;
    }
}
