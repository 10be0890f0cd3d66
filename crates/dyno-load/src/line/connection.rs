//! One connection on a line: two sockets, and a way from each to the other.

use std::io;
use std::net::Shutdown;

use super::PIECE_BYTES;
use super::pace::Pace;
use super::way::{LetGo, Way};
use crate::wire::stream::Stream;

/// One connection. End 0 is the session's, end 1 the server's; way `n` begins at end `n`.
#[derive(Debug)]
pub struct Connection {
    /// The two sockets.
    pub ends: [Stream; 2],
    ways: [Way; 2],
    /// A way whose window was full: its socket may hold bytes that no event will tell of.
    stalled: [bool; 2],
    /// A way whose far end had no room: its socket is watched for it.
    pub blocked: [bool; 2],
    /// Nothing travels before: the time of a handshake.
    opens_ns: i64,
    window: usize,
}

impl Connection {
    /// A connection that carries nothing before `opens_ns`.
    pub fn new(ends: [Stream; 2], opens_ns: i64, window: usize) -> Self {
        Self { ends, ways: Default::default(), stalled: [false; 2], blocked: [false; 2], opens_ns, window }
    }

    /// Whether both ways are at their ends.
    pub fn is_finished(&self) -> bool {
        self.ways.iter().all(Way::is_finished)
    }

    /// Takes what an end has sent, up to the window; `until_empty` where an event may have told of
    /// more than bytes. Calls `due` with the time of each arrival.
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
                // The end of the stream; a reset travels as one.
                Ok(0) | Err(_) => {
                    let arrives_ns = pace.arrival_ns(now_ns, 0);
                    self.ways[way].end(arrives_ns);
                    due(arrives_ns);
                }
            }
        }
    }

    /// Lets go of what is due on a way. Returns that, and whether its sender has waited for room.
    pub fn let_go(&mut self, way: usize, now_ns: i64) -> (LetGo, bool) {
        let far = &mut self.ends[1 - way];
        let gone = self.ways[way].let_go(now_ns, |bytes| far.write(bytes));
        if gone.ended {
            // A peer that is gone needs not be told.
            let _ = far.shut(Shutdown::Write);
        }
        let waits = self.stalled[way] && self.ways[way].held() < self.window;
        self.stalled[way] &= !waits;
        (gone, waits)
    }
}
