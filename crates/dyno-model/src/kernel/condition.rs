//! Waiting for news, and a latch that opens once.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use super::sim::Sim;
use super::waitlist::{Discipline, WaitList};

/// A place to wait until somebody says that something has changed. The state that changed is the
/// user's; look at it again after the wait.
#[derive(Clone)]
pub struct Condition(WaitList<()>);

impl Condition {
    /// Nobody waits yet.
    pub fn new(sim: &Sim, name: &str) -> Self {
        Self(WaitList::new(sim, name, Discipline::Fifo))
    }

    /// Waits for the next notice.
    pub async fn wait(&self) {
        self.0.wait(0).await;
    }

    /// Waits for the next notice, or up to a time; `true` if there was a notice.
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

    /// Tells the one that waits longest; `false` if nobody waits.
    pub fn notify_one(&self) -> bool {
        self.0.hand(()).is_ok()
    }

    /// Tells all that wait now, in order of arrival; how many.
    pub fn notify_all(&self) -> usize {
        (0..self.0.len()).take_while(|_| self.notify_one()).count()
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.0.len()
    }
}

/// Opens once and stays open. It counts down, so that it can stand for several things that must
/// all have happened.
#[derive(Clone)]
pub struct Latch {
    left: Rc<Cell<u64>>,
    condition: Condition,
}

impl Latch {
    /// Opens after `count` calls of [`Latch::count_down`]; open from the start for 0.
    pub fn new(sim: &Sim, name: &str, count: u64) -> Self {
        Self { left: Rc::new(Cell::new(count)), condition: Condition::new(sim, name) }
    }

    /// One of the things has happened.
    pub fn count_down(&self) {
        let left = self.left.get().saturating_sub(1);
        self.left.set(left);
        if left == 0 {
            self.condition.notify_all();
        }
    }

    /// Is it open?
    pub fn is_open(&self) -> bool {
        self.left.get() == 0
    }

    /// Waits until it is open.
    pub async fn wait(&self) {
        while !self.is_open() {
            self.condition.wait().await;
        }
    }
}

impl Sim {
    /// Waits until all that is already due at this instant has happened.
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
