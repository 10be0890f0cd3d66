//! Several devices that act as one: stripe, mirror and race.
//!
//! A stripe splits a request at stripe boundaries and sends each piece to its member. A mirror sends a write to every
//! member, and a read to one member, in rotation. In both, a request is complete with its last piece: the slowest
//! member determines the time. A race, such as a log that is written to disk and flash at once, also sends a write to
//! every member, but the write is complete when the first member has it. Its reads go to the first member.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use super::slab::Slab;
use super::{Device, Done, Kind, Observer, Request};

/// Requests whose pieces are under way.
#[derive(Default)]
pub(crate) struct Open(RefCell<Slab<(usize, Option<Done>)>>);

impl Open {
    /// Adds a request with this number of pieces.
    pub(crate) fn add(&self, pieces: usize, done: Done) -> u64 {
        self.0.borrow_mut().insert((pieces, Some(done)))
    }

    /// Removes a request; returns the observer that it would have notified.
    fn cancel(&self, token: u64) -> Option<Done> {
        self.0.borrow_mut().remove(token).and_then(|(_, done)| done)
    }

    /// Records a completed piece; notifies the observer if this piece was the last.
    pub(crate) fn piece(&self, token: u64) {
        self.end_of_piece(token, false);
    }

    /// Records a completed piece; notifies the observer after the last piece of the request or, with `race`, after the
    /// first.
    fn end_of_piece(&self, token: u64, race: bool) {
        let mut open = self.0.borrow_mut();
        let Some((left, done)) = open.get_mut(token) else { return };
        *left -= 1;
        let is_last = *left == 0;
        let told = if is_last || race { done.take() } else { None };
        if is_last {
            open.remove(token);
        }
        drop(open);
        if let Some(done) = told {
            done.tell();
        }
    }
}

/// Distribution of data over the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Stripe { stripe_bytes: u64 },
    Mirror,
    Race,
}

/// Several devices as one.
pub struct Array {
    name: String,
    members: Vec<Rc<dyn Device>>,
    layout: Layout,
    turn: Cell<usize>,
    open: Open,
    me: Weak<Self>,
}

impl Array {
    /// Returns a stripe over one or more members: pieces of `stripe_bytes` go to the members in rotation.
    pub fn stripe(name: &str, stripe_bytes: u64, members: Vec<Rc<dyn Device>>) -> Rc<Self> {
        Self::new(name, Layout::Stripe { stripe_bytes: stripe_bytes.max(1) }, members)
    }

    /// Returns a mirror of one or more members.
    pub fn mirror(name: &str, members: Vec<Rc<dyn Device>>) -> Rc<Self> {
        Self::new(name, Layout::Mirror, members)
    }

    /// Returns a race of one or more members: a write is complete when the quickest member has completed it.
    pub fn race(name: &str, members: Vec<Rc<dyn Device>>) -> Rc<Self> {
        Self::new(name, Layout::Race, members)
    }

    fn new(name: &str, layout: Layout, members: Vec<Rc<dyn Device>>) -> Rc<Self> {
        assert!(!members.is_empty(), "an array has a member or more");
        Rc::new_cyclic(|me| Self {
            name: name.into(),
            members,
            layout,
            turn: Cell::new(0),
            open: Open::default(),
            me: me.clone(),
        })
    }

    /// Returns the pieces of a request: for each its member and the request to that member.
    fn pieces(&self, request: Request) -> Vec<(usize, Request)> {
        let Layout::Stripe { stripe_bytes } = self.layout else {
            if request.kind == Kind::Write {
                return (0..self.members.len()).map(|member| (member, request)).collect();
            }
            let member = if self.layout == Layout::Race { 0 } else { self.turn.get() };
            self.turn.set((member + 1) % self.members.len());
            return vec![(member, request)];
        };
        let (first, last) = request.units(stripe_bytes);
        let (begin, end) = (request.offset_bytes, request.offset_bytes + request.bytes);
        let members = self.members.len() as u64;
        let piece = |unit: u64| {
            let from = begin.max(unit * stripe_bytes);
            let to = end.min((unit + 1) * stripe_bytes);
            let offset_bytes = unit / members * stripe_bytes + from % stripe_bytes;
            let kind = request.kind;
            ((unit % members) as usize, Request { kind, offset_bytes, bytes: to - from })
        };
        (first..=last).map(piece).collect()
    }
}

impl Observer for Array {
    fn done(&self, token: u64) {
        self.open.end_of_piece(token, self.layout == Layout::Race);
    }
}

impl Device for Array {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity_bytes(&self) -> u64 {
        let least = self.members.iter().map(|member| member.capacity_bytes()).min().unwrap_or(0);
        match self.layout {
            Layout::Stripe { .. } => least * self.members.len() as u64,
            Layout::Mirror | Layout::Race => least,
        }
    }

    fn submit(&self, request: Request, done: Done) {
        let Some(me) = self.me.upgrade() else { return };
        let pieces = self.pieces(request);
        let token = self.open.add(pieces.len(), done);
        for (member, piece) in pieces {
            self.members[member].submit(piece, Done::new(me.clone(), token));
        }
    }

    fn discard(&self, offset_bytes: u64, bytes: u64, done: Done) -> Option<Done> {
        let Some(me) = self.me.upgrade().filter(|_| self.layout != Layout::Race) else { return Some(done) };
        // As a write: to every member of a mirror.
        let pieces = self.pieces(Request::write(offset_bytes, bytes));
        let token = self.open.add(pieces.len(), done);
        let ignored = pieces.iter().filter(|(member, piece)| {
            let done = Done::new(me.clone(), token);
            self.members[*member].discard(piece.offset_bytes, piece.bytes, done).is_some()
        });
        let ignored = ignored.count();
        if ignored == pieces.len() {
            return self.open.cancel(token);
        }
        (0..ignored).for_each(|_| self.open.piece(token));
        None
    }

    fn below(&self) -> &[Rc<dyn Device>] {
        &self.members
    }
}
