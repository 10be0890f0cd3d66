//! Client and its connection to the server, from the first byte to the last.
//!
//! ```text
//! Opening --startup--> Asking (TLS with the server?) --> Passing --> over
//!    |  \--cancel----> Asking --------------------------> Passing (not followed)
//!    \--TLS, GSSAPI: answered here
//! ```
//!
//! Bytes are forwarded before they are examined. While one side does not accept what is pending, nothing is read from
//! the other, so a session never keeps more than the bytes of one read.

mod begin;

use std::io;

use mio::{Registry, Token};

use crate::follow::Follower;
use crate::framing::Framer;
use crate::now_ns;
use crate::shared::{BROKEN, Shared};
use crate::side::Side;
use crate::tls::Tls;

/// Number of reads from one side before other pairs get their turn.
const READS: usize = 8;

/// Resources that the loop lends to the pair whose turn it is.
pub(crate) struct Turn<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) tls: &'a Tls,
    pub(crate) shared: &'a mut Shared,
    pub(crate) counts: &'a mut Counts,
    pub(crate) buffer: &'a mut [u8],
    /// Function that connects to the server.
    pub(crate) dial: &'a dyn Fn(Token, &Registry) -> io::Result<Side>,
}

/// Counters of events outside of sessions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) connections: u64,
    pub(crate) cancels: u64,
    pub(crate) unreachable: u64,
    pub(crate) rubbish: u64,
    pub(crate) broken: u64,
    pub(crate) lost_track: u64,
    pub(crate) tls_refused: u64,
    /// Description of the last event outside of sessions.
    pub(crate) last: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Waits for the client's first packet.
    Opening,
    /// The proxy connects to the server, or asks it for TLS.
    Asking,
    /// Bytes are forwarded.
    Passing,
    /// Pending bytes are sent to the client, then the pair ends.
    Closing,
}

/// Result of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The pair waits for its sockets.
    Waits,
    /// The pair has more to do.
    Again,
    /// The pair has ended.
    Over,
}

/// Client and its connection to the server.
pub(crate) struct Pair {
    client: Side,
    server: Option<Side>,
    stage: Stage,
    /// Received bytes that the next stage will use: the first packet.
    inbox: Vec<u8>,
    server_token: Token,
    follower: Option<Box<Follower>>,
    of_client: Framer,
    of_server: Framer,
    /// Bytes of the server that are examined before forwarding, because its login offer may have to be changed.
    held: Option<Vec<u8>>,
    said_goodbye: bool,
    pub(crate) peer: String,
    since_ns: u64,
}

impl Pair {
    pub(crate) fn new(client: Side, server_token: Token, peer: String) -> Self {
        Self {
            client,
            server: None,
            stage: Stage::Opening,
            inbox: Vec::new(),
            server_token,
            follower: None,
            of_client: Framer::default(),
            of_server: Framer::default(),
            held: None,
            said_goodbye: false,
            peer,
            since_ns: now_ns(),
        }
    }

    /// Records that a socket is ready.
    pub(crate) fn ready(&mut self, is_client: bool, is_readable: bool, is_closing: bool) {
        let side = if is_client { Some(&mut self.client) } else { self.server.as_mut() };
        if let Some(side) = side {
            side.may_read |= is_readable;
            side.is_closing |= is_closing;
        }
    }

    /// Returns true for a session that is followed.
    pub(crate) fn is_session(&self) -> bool {
        self.follower.is_some()
    }

    /// Removes and returns the follower, after the pair has ended.
    pub(crate) fn take_follower(&mut self) -> Option<Box<Follower>> {
        self.follower.take()
    }

    /// Ends the followed session.
    pub(crate) fn finish(&mut self, cut: i64, state: Option<u32>, shared: &mut Shared) {
        if let Some(follower) = &mut self.follower {
            follower.end(now_ns(), cut, state, shared);
        }
    }

    pub(crate) fn leave(&mut self, registry: &Registry) {
        self.client.leave(registry);
        if let Some(server) = &mut self.server {
            server.leave(registry);
        }
    }

    /// Does everything that is possible without waiting.
    pub(crate) fn advance(&mut self, turn: &mut Turn<'_>) -> Ended {
        let ended = match self.step(turn) {
            Ok(ended) => ended,
            Err(error) => {
                self.broke(&error, turn);
                Ended::Over
            }
        };
        let watched = self.client.watch(turn.registry);
        let watched = watched.and_then(|()| self.server.as_mut().map_or(Ok(()), |server| server.watch(turn.registry)));
        if watched.is_err() { Ended::Over } else { ended }
    }

    fn broke(&mut self, error: &io::Error, turn: &mut Turn<'_>) {
        // A client that has sent Terminate need not read what still comes.
        if !self.said_goodbye {
            turn.counts.broken += 1;
            turn.counts.last = format!("{}: {error}", self.peer);
        }
        self.finish(0, (!self.said_goodbye).then_some(BROKEN), turn.shared);
    }

    fn step(&mut self, turn: &mut Turn<'_>) -> io::Result<Ended> {
        if self.stage == Stage::Opening {
            self.open(turn)?;
        }
        if self.stage == Stage::Asking {
            self.ask(turn)?;
        }
        match self.stage {
            Stage::Passing => self.pass(turn),
            Stage::Closing => {
                let sent = self.client.flush();
                Ok(if sent.is_err() || !self.client.is_full() { Ended::Over } else { Ended::Waits })
            }
            // The client disconnected before it sent anything.
            _ if self.client.is_closed => Ok(Ended::Over),
            _ => Ok(Ended::Waits),
        }
    }

    /// Forwards bytes in both directions.
    fn pass(&mut self, turn: &mut Turn<'_>) -> io::Result<Ended> {
        let mut reads = 0;
        loop {
            let upward = self.upward(turn)?;
            let downward = self.downward(turn)?;
            if self.stage == Stage::Closing {
                return self.step(turn);
            }
            if upward.is_none() || downward.is_none() {
                return Ok(Ended::Over);
            }
            if upward == Some(false) && downward == Some(false) {
                return Ok(Ended::Waits);
            }
            reads += 1;
            if reads >= READS {
                return Ok(Ended::Again);
            }
        }
    }

    /// Forwards bytes from the client to the server; returns true if there were any, `None` at the end.
    fn upward(&mut self, turn: &mut Turn<'_>) -> io::Result<Option<bool>> {
        let Some(server) = &mut self.server else { return Ok(None) };
        let failed = server.flush();
        if let Err(error) = failed {
            return if server.may_read { Ok(Some(false)) } else { Err(error) };
        }
        if server.is_full() || !self.client.may_read {
            return Ok(Some(false));
        }
        let count = match until_reset(self.client.read(turn.buffer)) {
            Ok(0) => {
                self.client_left(turn);
                return Ok(None);
            }
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Some(false)),
            Err(error) => return Err(error),
        };
        let (at_ns, bytes) = (now_ns(), &turn.buffer[..count]);
        let sent = server.send(bytes);
        let (said_goodbye, shared) = (&mut self.said_goodbye, &mut *turn.shared);
        if let Some(follower) = &mut self.follower {
            let binds = shared.capture.is_some();
            let fed = self.of_client.feed(
                bytes,
                |tag| looked_at(tag, binds),
                |message| {
                    *said_goodbye |= message.tag == b'X';
                    follower.client(at_ns, message, shared);
                },
            );
            if fed.is_err() {
                turn.counts.lost_track += 1;
                turn.counts.last = format!("{}: {}", self.peer, fed.err().map_or_else(String::new, |e| e.to_string()));
                follower.lose(at_ns, shared);
            }
        }
        // A server that is gone may have sent the reason before.
        if sent.is_err() {
            server.may_read = true;
        }
        Ok(Some(true))
    }

    fn client_left(&mut self, turn: &mut Turn<'_>) {
        let state = if self.said_goodbye { None } else { Some(BROKEN) };
        let is_busy = self.follower.as_ref().is_some_and(|follower| follower.is_busy());
        if !self.said_goodbye && is_busy {
            turn.counts.broken += 1;
            turn.counts.last = format!("{}: the client broke off", self.peer);
        }
        self.finish(0, state, turn.shared);
        if let Some(server) = &mut self.server {
            let _ = server.flush();
        }
    }

    /// Forwards bytes from the server to the client; returns true if there were any, `None` at the end.
    fn downward(&mut self, turn: &mut Turn<'_>) -> io::Result<Option<bool>> {
        let Some(server) = &mut self.server else { return Ok(None) };
        let was_full = self.client.is_full();
        self.client.flush()?;
        if self.client.is_full() {
            return Ok(Some(false));
        }
        if was_full && let Some(follower) = &mut self.follower {
            follower.blocked(now_ns(), false);
        }
        if !server.may_read {
            return Ok(Some(false));
        }
        let count = match until_reset(server.read(turn.buffer)) {
            Ok(0) => {
                let is_busy = self.follower.as_ref().is_some_and(|follower| follower.is_busy());
                if is_busy {
                    turn.counts.broken += 1;
                    turn.counts.last = format!("{}: the server broke off", self.peer);
                }
                self.finish(0, is_busy.then_some(BROKEN), turn.shared);
                self.stage = Stage::Closing;
                return Ok(None);
            }
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Some(false)),
            // A refused connection or certificate is reported like an unreachable server.
            Err(error) if is_refused(&error) && self.follower.as_ref().is_none_or(|one| one.is_logging_in()) => {
                self.unreachable(&error, turn)?;
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let at_ns = now_ns();
        let bytes = &turn.buffer[..count];
        match &mut self.held {
            None => self.client.send(bytes)?,
            Some(held) => {
                held.extend_from_slice(bytes);
                let out = begin::let_through(held);
                self.client.send(&out)?;
            }
        }
        if let Some(follower) = &mut self.follower {
            let shared = &mut *turn.shared;
            let fed = {
                let cell = std::cell::RefCell::new((&mut *follower, shared));
                self.of_server.feed(
                    bytes,
                    |tag| cell.borrow().0.keeps_of_server(tag),
                    |message| {
                        let (follower, shared) = &mut *cell.borrow_mut();
                        follower.server(at_ns, message, shared);
                    },
                )
            };
            match fed {
                Ok(()) => follower.settle(at_ns, turn.shared),
                Err(rubbish) => {
                    turn.counts.lost_track += 1;
                    turn.counts.last = format!("{}: {rubbish}", self.peer);
                    follower.lose(at_ns, turn.shared);
                }
            }
            if self.client.is_full() {
                follower.blocked(at_ns, true);
            }
            if self.held.is_some() && !follower.is_logging_in() {
                let rest = self.held.take().unwrap_or_default();
                self.client.send(&rest)?;
            }
        }
        Ok(Some(true))
    }
}

/// Treats a connection reset as the end of the stream.
fn until_reset(read: io::Result<usize>) -> io::Result<usize> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(0),
        other => other,
    }
}

fn is_refused(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::InvalidData)
}

/// Returns how many bytes of a client's message are examined; 0 for a possible password.
fn looked_at(tag: u8, binds: bool) -> usize {
    match tag {
        b'p' => 0,
        _ if binds => 1 << 26,
        b'd' | b'F' => 0,
        _ => 1 << 16,
    }
}
