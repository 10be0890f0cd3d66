//! RAID-5: in each row, one member has the parity and all others have data; the parity member changes from row to row.
//!
//! ```text
//!   member    0    1    2    3        a write of part of a row          a write of a whole row
//!   row 0     a    b    c    P        1. read old data, old parity      1. write data and parity
//!   row 1     e    f    P    d        2. write new data, new parity
//! ```
//!
//! So a small write is two reads and two writes on two members, one after the other, and members that serve `r` I/Os a
//! second serve a quarter of `n r` small random writes. Writes of one row run one after the other, because each
//! computes the parity from the data and parity that the previous one wrote. A write within several pieces of a row
//! reads and writes the parity once.
//!
//! Limits: to write part of a row, the array always reads the old data and parity; it never computes the parity from
//! the other pieces, even if that needs fewer reads. No member fails. The data and parity that a power cut leaves are
//! not modelled here: the crate `dyno-device` damages files as such an array would (`write_hole.rs`).

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::{Rc, Weak};

use super::array::Open;
use super::slab::Slab;
use super::{Device, Done, Kind, Observer, Request, parameters};

parameters! {
    /// Parameters of a RAID-5 array.
    pub struct Raid5Parameters {
        /// size of the piece of each member in a row
        stripe_kb: u64 = 64, from "chosen: a usual width of controllers", in 1.0..=1e9;
    }
}

/// Write of a row, or of part of it.
struct RowWrite {
    row: u64,
    /// Request that this write is part of.
    request: u64,
    /// Pieces on members as (member, offset, bytes); the parity is the last.
    pieces: Vec<(usize, u64, u64)>,
    reads: bool,
    left: usize,
}

#[derive(Default)]
struct State {
    writes: Slab<RowWrite>,
    /// Writes that wait for each row that is being written.
    rows: BTreeMap<u64, VecDeque<u64>>,
}

/// A RAID-5 array.
pub struct Raid5 {
    name: String,
    members: Vec<Rc<dyn Device>>,
    piece_bytes: u64,
    open: Open,
    state: RefCell<State>,
    me: Weak<Self>,
}

/// Tokens at or above this are pieces of reads.
const READ: u64 = 1 << 40;

impl Raid5 {
    /// Smallest number of members.
    pub const LEAST: usize = 3;

    /// Returns an array over three or more members.
    pub fn new(name: &str, parameters: &Raid5Parameters, members: Vec<Rc<dyn Device>>) -> Rc<Self> {
        assert!(members.len() >= Self::LEAST, "a RAID-5 array has three members or more");
        Rc::new_cyclic(|me| Self {
            name: name.into(),
            members,
            piece_bytes: parameters.stripe_kb << 10,
            open: Open::default(),
            state: RefCell::default(),
            me: me.clone(),
        })
    }

    fn data_pieces(&self) -> u64 {
        self.members.len() as u64 - 1
    }

    fn row_bytes(&self) -> u64 {
        self.data_pieces() * self.piece_bytes
    }

    /// Returns the member that has the parity of a row: the last member for row 0, then the one before it for each
    /// further row.
    fn parity_member(&self, row: u64) -> usize {
        (self.data_pieces() - row % self.members.len() as u64) as usize
    }

    /// Returns the pieces of a range of addresses: for each its member, the offset on it and its length [bytes].
    fn pieces(&self, from: u64, to: u64) -> Vec<(usize, u64, u64)> {
        let piece = |unit: u64| {
            let (begin, end) = (from.max(unit * self.piece_bytes), to.min((unit + 1) * self.piece_bytes));
            let (row, column) = (unit / self.data_pieces(), unit % self.data_pieces());
            let member = (self.parity_member(row) + 1 + column as usize) % self.members.len();
            (member, row * self.piece_bytes + begin % self.piece_bytes, end - begin)
        };
        (from / self.piece_bytes..=(to - 1) / self.piece_bytes).map(piece).collect()
    }

    /// Returns the write of one row, whose last piece is the parity.
    fn row_write(&self, request: u64, from: u64, to: u64) -> RowWrite {
        let row = from / self.row_bytes();
        let mut pieces = self.pieces(from, to);
        let (within, bytes) = match pieces[..] {
            [(_, offset, bytes)] => (offset % self.piece_bytes, bytes),
            // The end of one piece and the begin of the next: together all offsets, or nearly.
            _ => (0, self.piece_bytes),
        };
        pieces.push((self.parity_member(row), row * self.piece_bytes + within, bytes));
        let reads = to - from < self.row_bytes();
        RowWrite { row, request, left: pieces.len(), pieces, reads }
    }

    /// Starts a write, or queues it if another write of the same row is under way.
    fn start_or_wait(&self, write: RowWrite) {
        let mut state = self.state.borrow_mut();
        let row = write.row;
        let token = state.writes.insert(write);
        if let Some(waiting) = state.rows.get_mut(&row) {
            waiting.push_back(token);
            return;
        }
        state.rows.insert(row, VecDeque::new());
        drop(state);
        self.send(token);
    }

    /// Sends the reads or the writes of a row to the members.
    fn send(&self, token: u64) {
        let Some(me) = self.me.upgrade() else { return };
        let mut state = self.state.borrow_mut();
        let Some(write) = state.writes.get_mut(token) else { return };
        let kind = if write.reads { Kind::Read } else { Kind::Write };
        let pieces = write.pieces.clone();
        drop(state);
        for (member, offset_bytes, bytes) in pieces {
            self.members[member].submit(Request { kind, offset_bytes, bytes }, Done::new(me.clone(), token));
        }
    }

    /// Handles a completed piece of a write.
    fn piece_done(&self, token: u64) {
        let mut state = self.state.borrow_mut();
        let Some(write) = state.writes.get_mut(token) else { return };
        write.left -= 1;
        if write.left > 0 {
            return;
        }
        if write.reads {
            (write.reads, write.left) = (false, write.pieces.len());
            drop(state);
            return self.send(token);
        }
        let (row, request) = (write.row, write.request);
        state.writes.remove(token);
        let next = state.rows.get_mut(&row).and_then(VecDeque::pop_front);
        if next.is_none() {
            state.rows.remove(&row);
        }
        drop(state);
        if let Some(next) = next {
            self.send(next);
        }
        self.open.piece(request);
    }
}

impl Observer for Raid5 {
    fn done(&self, token: u64) {
        if token >= READ { self.open.piece(token - READ) } else { self.piece_done(token) }
    }
}

impl Device for Raid5 {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity_bytes(&self) -> u64 {
        let least = self.members.iter().map(|member| member.capacity_bytes()).min().unwrap_or(0);
        (least / self.piece_bytes).max(1) * self.row_bytes()
    }

    fn submit(&self, request: Request, done: Done) {
        let Some(me) = self.me.upgrade() else { return };
        let (from, to) = (request.offset_bytes, request.offset_bytes + request.bytes.max(1));
        if request.kind == Kind::Read {
            let pieces = self.pieces(from, to);
            let token = self.open.add(pieces.len(), done);
            for (member, offset_bytes, bytes) in pieces {
                let done = Done::new(me.clone(), READ + token);
                self.members[member].submit(Request::read(offset_bytes, bytes), done);
            }
            return;
        }
        let rows = from / self.row_bytes()..=(to - 1) / self.row_bytes();
        let token = self.open.add(rows.clone().count(), done);
        for row in rows {
            let (begin, end) = (from.max(row * self.row_bytes()), to.min((row + 1) * self.row_bytes()));
            self.start_or_wait(self.row_write(token, begin, end));
        }
    }

    fn below(&self) -> &[Rc<dyn Device>] {
        &self.members
    }
}
