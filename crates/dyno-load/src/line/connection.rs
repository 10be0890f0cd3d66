//! One connection on a line: two sockets, and one direction (way) from each to the other.

use std::io;
use std::net::Shutdown;

use super::PIECE_BYTES;
use super::direction::{Direction, LetGo};
use super::pace::Pace;
use crate::wire::stream::Stream;

/// Connection on a line. End 0 is the session's, end 1 the server's; way `n` begins at end `n`.
#[derive(Debug)]
pub struct Connection {
    /// Sockets of the two ends.
    pub ends: [Stream; 2],
    ways: [Direction; 2],
    /// For each way, true if its window was full; its sending socket can then hold bytes for which no event will come.
    stalled: [bool; 2],
    /// For each way, true if its far end had no room; that socket is then watched for room.
    pub blocked: [bool; 2],
    /// Time before which nothing travels [ns since the epoch]: the end of the modelled TCP handshake.
    opens_ns: i64,
    window: usize,
}

impl Connection {
    /// Returns a connection that carries nothing before `opens_ns` [ns since the epoch].
    pub fn new(ends: [Stream; 2], opens_ns: i64, window: usize) -> Self {
        Self { ends, ways: Default::default(), stalled: [false; 2], blocked: [false; 2], opens_ns, window }
    }

    /// Returns true if both ways have ended.
    pub fn is_finished(&self) -> bool {
        self.ways.iter().all(Direction::is_finished)
    }

    /// Reads what the near end of a way has sent, up to the window; calls `due` with the arrival time of each piece.
    ///
    /// `until_empty` must be true if the event can have a cause other than new bytes; the socket is then read until it
    /// is empty.
    pub fn receive(&mut self, way: usize, now_ns: i64, until_empty: bool, pace: &mut Pace, mut due: impl FnMut(i64)) {
        let mut buffer = [0; PIECE_BYTES];
        let now_ns = now_ns.max(self.opens_ns);
        while self.ways[way].is_open() {
            if self.ways[way].held() >= self.window {
                self.stalled[way] = true;
                return;
            }
            match self.ends[way].read(&mut buffer) {
                Ok(count @ 1..) => {
                    let arrives_ns = pace.arrival_ns(now_ns, count);
                    self.ways[way].give(&buffer[..count], arrives_ns);
                    due(arrives_ns);
                    // A short read has emptied the socket: the next arrival is a new event.
                    if count < buffer.len() && !until_empty {
                        return;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // The end of the stream; a reset is carried as an end.
                Ok(0) | Err(_) => {
                    let arrives_ns = pace.arrival_ns(now_ns, 0);
                    self.ways[way].end(arrives_ns);
                    due(arrives_ns);
                }
            }
        }
    }

    /// Delivers the bytes that are due in a direction; returns the result of the delivery, and whether the sender was
    /// waiting for room in the window.
    pub fn let_go(&mut self, way: usize, now_ns: i64) -> (LetGo, bool) {
        let far = &mut self.ends[1 - way];
        let gone = self.ways[way].let_go(now_ns, |bytes| far.write(bytes));
        if gone.ended {
            // The far end may be gone already; then there is nothing to shut down.
            let _ = far.shut(Shutdown::Write);
        }
        let waits = self.stalled[way] && self.ways[way].held() < self.window;
        self.stalled[way] &= !waits;
        (gone, waits)
    }
}
