//! Unix and TCP sockets with a common `Read + Write` interface, a deadline and a stop request ([`Patience`]).
//!
//! A long wait is a series of short ones; deadline and stop request are checked before each.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

/// Longest wait without a check of the deadline and the stop request.
pub const NAP: Duration = Duration::from_millis(50);

/// Limits of waiting: a deadline, and a request to stop.
#[derive(Debug, Clone)]
pub struct Patience {
    /// Time at which waiting ends; `None` for no limit.
    pub deadline: Option<Instant>,
    /// True once the caller has requested a stop.
    pub stop: Arc<AtomicBool>,
}

impl Patience {
    /// Returns limits with a deadline of `limit` from now.
    pub fn new(limit: Option<Duration>, stop: &Arc<AtomicBool>) -> Self {
        Self { deadline: limit.map(|limit| Instant::now() + limit), stop: Arc::clone(stop) }
    }

    fn check(&self) -> io::Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(io::ErrorKind::TimedOut.into()),
            _ => Ok(()),
        }
    }

    /// Waits until the socket is ready for one of `flags`, in short periods between which the limits are checked.
    ///
    /// # Errors
    /// The deadline has passed, or a stop was requested.
    pub fn wait(&self, socket: &impl AsFd, flags: PollFlags) -> io::Result<()> {
        loop {
            self.check()?;
            let left = self.deadline.map_or(NAP, |deadline| deadline.saturating_duration_since(Instant::now()));
            if poll(socket, flags, left.min(NAP))? {
                return Ok(());
            }
        }
    }
}

/// Waits up to `limit`; returns true if the socket is ready.
///
/// # Errors
/// The operating system refused to wait.
pub fn poll(socket: &impl AsFd, flags: PollFlags, limit: Duration) -> io::Result<bool> {
    // A timeout of 0 would spin.
    let limit = limit.max(Duration::from_millis(1));
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
    match rustix::event::poll(&mut [PollFd::new(socket, flags)], Some(&limit)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Socket of the operating system, which must be non-blocking.
#[derive(Debug)]
pub enum Stream {
    /// Unix socket.
    Unix(UnixStream),
    /// TCP socket.
    Tcp(TcpStream),
}

impl Stream {
    /// Reads once.
    ///
    /// # Errors
    /// The read failed.
    #[inline]
    pub fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(s) => s.read(buf),
            Self::Tcp(s) => s.read(buf),
        }
    }

    /// Writes once.
    ///
    /// # Errors
    /// The write failed.
    #[inline]
    pub fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(s) => s.write(buf),
            Self::Tcp(s) => s.write(buf),
        }
    }

    /// Returns a second handle to the same socket.
    ///
    /// # Errors
    /// The socket cannot be duplicated.
    pub fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Unix(s) => s.try_clone().map(Self::Unix),
            Self::Tcp(s) => s.try_clone().map(Self::Tcp),
        }
    }

    /// Shuts the socket down for all handles.
    pub fn shut_down(&self) {
        // The peer may be gone already, which has the same effect.
        let _ = self.shut(Shutdown::Both);
    }

    /// Shuts down one direction or both, for all handles.
    ///
    /// # Errors
    /// The socket is not connected any more.
    pub fn shut(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Unix(s) => s.shutdown(how),
            Self::Tcp(s) => s.shutdown(how),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(s) => s.as_fd(),
            Self::Tcp(s) => s.as_fd(),
        }
    }
}

/// Socket, and how long its reads and writes wait.
#[derive(Debug)]
pub struct Wire {
    pub stream: Stream,
    /// How long reads and writes wait; `None` if they do not wait.
    pub patience: Option<Patience>,
    /// True once the connection was ended by its [`Control`](super::socket::Control).
    pub severed: Arc<AtomicBool>,
}

impl Wire {
    /// Returns a socket that waits with `patience`; `stream` itself must be non-blocking.
    pub fn new(stream: Stream, patience: Patience, severed: Arc<AtomicBool>) -> Self {
        Self { stream, patience: Some(patience), severed }
    }

    fn check(&self) -> io::Result<()> {
        if self.severed.load(Ordering::Relaxed) { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }

    /// Waits until the socket is ready, if `error` reports that it is not; returns the error if the socket must not
    /// wait.
    #[cold]
    fn pause(&self, error: io::Error, flags: PollFlags) -> io::Result<()> {
        match (error.kind(), &self.patience) {
            (io::ErrorKind::Interrupted, _) => Ok(()),
            (io::ErrorKind::WouldBlock, Some(patience)) => patience.wait(&self.stream, flags),
            _ => Err(error),
        }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Read for Wire {
    #[inline]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            self.check()?;
            if let Some(patience) = &self.patience {
                patience.check()?;
            }
            match self.stream.read(buf) {
                Err(e) => self.pause(e, PollFlags::IN)?,
                done => return done,
            }
        }
    }
}

impl Write for Wire {
    #[inline]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        loop {
            self.check()?;
            match self.stream.write(buf) {
                Err(e) => self.pause(e, PollFlags::OUT)?,
                done => return done,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
