//! When to read from a connection that a reactor waits for, and when to wait for an event.

use std::io;

use super::WireError;
use super::buffer::Buffer;
use super::socket::Socket;
use crate::reactor::Pulse;

/// Reads in a row that fill the buffer, before other sessions get their turn.
pub const READS_MAX: u32 = 64;

/// Whether to read without waiting for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum More {
    No,
    /// The last read left something.
    Yes,
    /// An event may have been missed: until the socket is found empty.
    UntilEmpty,
}

/// Whether there may be bytes that no event will tell of.
#[derive(Debug)]
pub struct Flow {
    more: More,
    /// Reads in a row that left more to read.
    reads: u32,
}

impl Flow {
    /// Of a connection that was just made.
    pub fn new() -> Self {
        Self { more: More::UntilEmpty, reads: 0 }
    }

    /// Waits for bytes, unless there may be some at once, and reads once. Returns whether any came.
    ///
    /// A read that comes back short has emptied the socket, and the next arrival is a new event: one
    /// system call less per round trip. The end of the stream is the exception, since it can arrive
    /// together with the last bytes, in one event: then it is read until there is no more.
    #[inline]
    pub async fn receive(
        &mut self,
        buffer: &mut Buffer,
        socket: &mut Socket,
        pulse: &Pulse,
    ) -> Result<bool, WireError> {
        if self.more == More::No {
            self.reads = 0;
            pulse.readable().await;
            if pulse.take_ended() {
                self.more = More::UntilEmpty;
            }
        } else if self.reads >= READS_MAX {
            self.reads = 0;
            pulse.give_way().await;
        }
        match buffer.fill(socket) {
            Ok(full) => {
                self.reads += 1;
                if self.more != More::UntilEmpty {
                    self.more = if full || socket.holds_bytes() { More::Yes } else { More::No };
                }
                Ok(true)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                (self.more, self.reads) = (More::No, 0);
                Ok(false)
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Other connections of the same session were listened to meanwhile: an event of this one may
    /// have been taken for theirs.
    pub fn doubt(&mut self) {
        self.more = More::UntilEmpty;
    }
}
