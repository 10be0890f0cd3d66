//! Thread of a line: it waits for bytes, for room in sockets, and for the times at which bytes are due.
//!
//! Events are edge-triggered, as in the sessions' reactor. In one direction (way), pieces are due in the order in which
//! they were received, so one queue per way is enough to find the next piece.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};

use super::connection::Connection;
use super::direction::LetGo;
use super::pace::Pace;
use super::{LineSpec, Shared, window};
use crate::clock::{self, Clock};
use crate::reactor::alarm::Alarm;
use crate::wire::stream::Stream;

/// Token of the waker; the alarm has the next higher token.
const WAKE: Token = Token(usize::MAX - 1);

/// Work of the line's thread: carries bytes between the ends of its connections.
pub struct Carrier {
    spec: LineSpec,
    shared: Arc<Shared>,
    poll: Poll,
    alarm: Alarm,
    clock: Clock,
    paces: [Pace; 2],
    /// For each way, its pieces: time at which the piece is due [ns since the epoch], and connection to which it
    /// belongs.
    due: [VecDeque<(i64, usize)>; 2],
    connections: HashMap<usize, Connection>,
    next: usize,
}

impl Carrier {
    /// Creates a carrier without connections, and the waker that wakes its thread.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new(spec: LineSpec, shared: Arc<Shared>) -> io::Result<(Self, Waker)> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKE)?;
        let alarm = Alarm::new(poll.registry())?;
        let carrier = Self {
            spec,
            shared,
            poll,
            alarm,
            clock: Clock::new(),
            paces: [Pace::new(spec), Pace::new(spec)],
            due: Default::default(),
            connections: HashMap::new(),
            next: 0,
        };
        Ok((carrier, waker))
    }

    /// Carries bytes until the line is dropped; bytes that are still under way are then delivered immediately.
    pub fn run(mut self) {
        clock::sharpen_sleep();
        let mut events = Events::with_capacity(256);
        while !self.shared.stop.load(Ordering::Acquire) {
            // If waiting fails, the connections end, which their sessions notice.
            if self.wait(&mut events).is_err() {
                return;
            }
            for event in &events {
                if event.token().0 < WAKE.0 {
                    let (id, end) = (event.token().0 / 2, event.token().0 % 2);
                    if event.is_readable() || event.is_read_closed() || event.is_error() {
                        self.receive(id, end, event.is_read_closed() || event.is_error());
                    }
                    if event.is_writable() {
                        self.let_go(id, 1 - end, self.clock.now_ns());
                    }
                }
            }
            self.welcome();
            self.let_go_due();
        }
        self.welcome();
        for id in self.connections.keys().copied().collect::<Vec<_>>() {
            (0..2).for_each(|way| self.receive(id, way, true));
            (0..2).for_each(|way| self.let_go(id, way, i64::MAX));
        }
    }

    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        let next_ns = self.due.iter().filter_map(|queue| queue.front()).map(|(due_ns, _)| *due_ns).min();
        let timeout = match next_ns {
            Some(due_ns) => self.alarm.set(due_ns.saturating_sub(self.clock.now_ns()))?,
            None => None,
        };
        match self.poll.poll(events, timeout) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => Err(e),
            _ => Ok(()),
        }
    }

    /// Accepts new connections that are waiting for the thread.
    fn welcome(&mut self) {
        let waiting = std::mem::take(&mut *self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        for ends in waiting {
            let id = self.next;
            self.next += 1;
            // A connection that cannot be watched is closed, which its session notices.
            if ends.iter().enumerate().all(|(end, socket)| watch(&self.poll, socket, 2 * id + end).is_ok()) {
                let handshake_ns = i64::try_from(self.spec.delay_ns.saturating_mul(2)).unwrap_or(i64::MAX);
                let opens_ns = self.clock.now_ns().saturating_add(handshake_ns);
                self.connections.insert(id, Connection::new(ends, opens_ns, window(self.spec)));
                (0..2).for_each(|way| self.receive(id, way, true));
            }
        }
    }

    fn receive(&mut self, id: usize, way: usize, until_empty: bool) {
        let (now_ns, due) = (self.clock.now_ns(), &mut self.due[way]);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.receive(way, now_ns, until_empty, &mut self.paces[way], |due_ns| due.push_back((due_ns, id)));
        }
    }

    fn let_go_due(&mut self) {
        for way in 0..2 {
            let now_ns = self.clock.now_ns();
            while let Some(&(due_ns, id)) = self.due[way].front()
                && due_ns <= now_ns
            {
                self.due[way].pop_front();
                self.let_go(id, way, now_ns);
            }
        }
    }

    fn let_go(&mut self, id: usize, way: usize, now_ns: i64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let (gone, waits) = connection.let_go(way, now_ns);
        if connection.blocked[way] != gone.blocked {
            connection.blocked[way] = gone.blocked;
            let far = 1 - way;
            // A connection that can no longer be watched is closed, which its session notices.
            if watch_room(&self.poll, &connection.ends[far], 2 * id + far, gone.blocked).is_err() {
                self.connections.remove(&id);
                return;
            }
        }
        if connection.is_finished() {
            self.connections.remove(&id);
        } else if waits {
            self.receive(id, way, true);
        }
        self.count(&gone);
    }

    fn count(&self, gone: &LetGo) {
        let mut lateness = self.shared.lateness.lock().unwrap_or_else(PoisonError::into_inner);
        lateness.pieces += gone.pieces;
        lateness.late_ns += gone.late_ns;
        lateness.late_max_ns = lateness.late_max_ns.max(gone.late_max_ns);
    }
}

/// Registers a socket for readable events.
fn watch(poll: &Poll, socket: &Stream, token: usize) -> io::Result<()> {
    let number = socket.as_fd().as_raw_fd();
    poll.registry().register(&mut SourceFd(&number), Token(token), Interest::READABLE)
}

/// Starts or stops watching a socket for room to write.
///
/// A socket is watched only while bytes wait for room, because otherwise the event would wake the thread without need.
fn watch_room(poll: &Poll, socket: &Stream, token: usize, room: bool) -> io::Result<()> {
    let number = socket.as_fd().as_raw_fd();
    let interest = if room { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
    poll.registry().reregister(&mut SourceFd(&number), Token(token), interest)
}
