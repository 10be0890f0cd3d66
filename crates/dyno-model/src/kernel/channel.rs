//! Channel that passes values from one process to another, in order.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::sim::Sim;
use super::waitlist::{Discipline, WaitList};

/// Queue of any number of values; clones share it. A value goes to the receiver that has waited longest.
pub struct Channel<T> {
    values: Rc<RefCell<VecDeque<T>>>,
    receivers: WaitList<T>,
}

impl<T> Clone for Channel<T> {
    fn clone(&self) -> Self {
        Self { values: Rc::clone(&self.values), receivers: self.receivers.clone() }
    }
}

impl<T: 'static> Channel<T> {
    /// Returns an empty channel.
    pub fn new(sim: &Sim, name: &str) -> Self {
        let values = Rc::new(RefCell::new(VecDeque::new()));
        let receivers = WaitList::new(sim, name, Discipline::Fifo);
        let back = Rc::clone(&values);
        receivers.on_give_back(move |value| back.borrow_mut().push_front(value));
        Self { values, receivers }
    }

    /// Sends a value; never waits.
    #[inline]
    pub fn send(&self, value: T) {
        if let Err(value) = self.receivers.hand(value) {
            self.values.borrow_mut().push_back(value);
        }
    }

    /// Returns the next value, as soon as there is one.
    #[inline]
    pub async fn receive(&self) -> T {
        let value = self.values.borrow_mut().pop_front();
        match value {
            Some(value) => value,
            None => self.receivers.wait(0).await,
        }
    }

    /// Returns the next value if there is one now.
    pub fn try_receive(&self) -> Option<T> {
        self.values.borrow_mut().pop_front()
    }

    /// Returns the number of values in the queue.
    pub fn len(&self) -> usize {
        self.values.borrow().len()
    }

    /// Returns true if there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
