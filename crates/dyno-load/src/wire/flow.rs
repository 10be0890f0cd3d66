//! Reading of a connection for which a reactor waits: when to read immediately, and when to wait for an event.

use std::io;

use super::WireError;
use super::buffer::Buffer;
use super::socket::Socket;
use crate::reactor::Pulse;

/// Largest number of consecutive buffer-filling reads before other sessions get their turn.
pub const READS_MAX: u32 = 64;

/// Whether to read without waiting for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum More {
    No,
    /// Yes: the last read left bytes in the socket.
    Yes,
    /// Yes, until the socket is empty: an event has perhaps been missed.
    UntilEmpty,
}

/// Tracks whether a connection can have bytes for which no event will come.
#[derive(Debug)]
pub struct Flow {
    more: More,
    /// Number of consecutive reads after which there was more to read.
    reads: u32,
}

impl Flow {
    /// Returns the state of a new connection.
    pub fn new() -> Self {
        Self { more: More::UntilEmpty, reads: 0 }
    }

    /// Waits for bytes, unless some can already be available, and reads once; returns true if bytes were read.
    ///
    /// A read that does not fill the buffer has emptied the socket, and the next arrival is a new event. Waiting for it
    /// directly saves one system call per round trip. The end of the stream is the exception, because it can arrive
    /// together with the last bytes, in one event: the socket is then read until it is empty.
    ///
    /// # Errors
    /// The connection has ended or the read failed.
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

    /// Makes the next reads check the socket even without an event.
    ///
    /// Needed after the session has waited on its other connections: an event of this connection could have been
    /// consumed there.
    pub fn doubt(&mut self) {
        self.more = More::UntilEmpty;
    }
}
