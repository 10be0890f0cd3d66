//! List of waiting processes, in order, and of the values passed to them.
//!
//! Resource, condition and channel each consist of a state and a wait list. Ending a wait *hands over* a value: from
//! that instant the value belongs to that waiter, and no later process can take it, although the waiter runs slightly
//! later. A waiter that is dropped before it took its value gives it back.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::process::ProcessId;
use super::sim::{Place, Sim};

/// Order of waiters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discipline {
    /// In order of arrival.
    #[default]
    Fifo,
    /// By priority, smallest number first; in order of arrival where equal. A process that is served is never
    /// interrupted.
    Priority,
}

enum Queue {
    Fifo(VecDeque<(u64, ProcessId)>),
    Priority(BTreeMap<(u32, u64), ProcessId>),
}

struct State<T> {
    queue: Queue,
    next_ticket: u64,
    /// Values handed over but not yet taken, rarely more than two.
    handed: Vec<(u64, T)>,
}

/// Function that receives the value of a dropped waiter.
type GiveBack<T> = Box<dyn Fn(T)>;

struct Inner<T> {
    sim: Sim,
    place: Place,
    state: RefCell<State<T>>,
    give_back: RefCell<Option<GiveBack<T>>>,
}

/// List of waiters; clones share it.
pub struct WaitList<T>(Rc<Inner<T>>);

impl<T> Clone for WaitList<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T> WaitList<T> {
    /// Returns an empty list; the name appears in a message about a deadlock.
    pub fn new(sim: &Sim, name: &str, discipline: Discipline) -> Self {
        let queue = match discipline {
            Discipline::Fifo => Queue::Fifo(VecDeque::new()),
            Discipline::Priority => Queue::Priority(BTreeMap::new()),
        };
        let state = RefCell::new(State { queue, next_ticket: 0, handed: Vec::new() });
        let (sim, place) = (sim.clone(), sim.place(name));
        Self(Rc::new(Inner { sim, place, state, give_back: RefCell::default() }))
    }

    /// Returns the handle on the run.
    #[inline]
    pub fn sim(&self) -> &Sim {
        &self.0.sim
    }

    /// Sets the function that receives a value if its waiter is dropped before taking it; without such a function, the
    /// value is dropped.
    pub fn on_give_back(&self, give_back: impl Fn(T) + 'static) {
        *self.0.give_back.borrow_mut() = Some(Box::new(give_back));
    }

    /// Waits for a value.
    #[inline]
    pub fn wait(&self, priority: u32) -> Wait<'_, T> {
        Wait { list: self, priority, ticket: None }
    }

    /// Hands a value to the first process in the queue.
    ///
    /// # Errors
    /// The value itself, if no process waits.
    #[inline]
    pub fn hand(&self, value: T) -> Result<(), T> {
        let mut state = self.0.state.borrow_mut();
        let first = match &mut state.queue {
            Queue::Fifo(queue) => queue.pop_front(),
            Queue::Priority(queue) => queue.pop_first().map(|((_, ticket), id)| (ticket, id)),
        };
        let Some((ticket, process)) = first else { return Err(value) };
        state.handed.push((ticket, value));
        self.0.sim.wake(process);
        Ok(())
    }

    /// Returns the number of waiting processes.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0.state.borrow().queue {
            Queue::Fifo(queue) => queue.len(),
            Queue::Priority(queue) => queue.len(),
        }
    }

    /// Returns true if no process waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Future of a process that waits for a value.
#[must_use = "nobody waits until it is awaited"]
pub struct Wait<'a, T> {
    list: &'a WaitList<T>,
    priority: u32,
    ticket: Option<u64>,
}

impl<T> Future for Wait<'_, T> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        let inner = &*self.list.0;
        let mut state = inner.state.borrow_mut();
        if let Some(ticket) = self.ticket {
            if let Some(at) = state.handed.iter().position(|&(mine, _)| mine == ticket) {
                let (_, value) = state.handed.swap_remove(at);
                drop(state);
                self.ticket = None;
                return Poll::Ready(value);
            }
        } else {
            let ticket = state.next_ticket;
            state.next_ticket += 1;
            let process = inner.sim.running();
            match &mut state.queue {
                Queue::Fifo(queue) => queue.push_back((ticket, process)),
                Queue::Priority(queue) => {
                    queue.insert((self.priority, ticket), process);
                }
            }
            drop(state);
            self.ticket = Some(ticket);
        }
        self.list.0.sim.stops_at(self.list.0.place);
        Poll::Pending
    }
}

impl<T> Drop for Wait<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut state = self.list.0.state.borrow_mut();
        match &mut state.queue {
            Queue::Fifo(queue) => queue.retain(|&(mine, _)| mine != ticket),
            Queue::Priority(queue) => {
                queue.remove(&(self.priority, ticket));
            }
        }
        if let Some(at) = state.handed.iter().position(|&(mine, _)| mine == ticket) {
            let (_, value) = state.handed.swap_remove(at);
            drop(state);
            if let Some(give_back) = &*self.list.0.give_back.borrow() {
                give_back(value);
            }
        }
    }
}
