//! Unix and TCP sockets behind one `Read + Write`, and how long they wait.
//!
//! What waits does so in short naps between which its [`Patience`] is asked.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

/// Longest wait without asking whether to go on.
pub const NAP: Duration = Duration::from_millis(50);

/// How long a login may take, and who may end it early.
#[derive(Debug, Clone)]
pub struct Patience {
    /// `None` is without limit.
    pub deadline: Option<Instant>,
    /// The caller's wish to stop.
    pub stop: Arc<AtomicBool>,
}

impl Patience {
    /// So much time from now on.
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

    /// Waits in naps until the socket is ready for these.
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

/// Waits at most so long; whether the socket is ready.
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

/// The operating system's socket; never blocks by itself.
#[derive(Debug)]
pub enum Stream {
    /// A Unix socket.
    Unix(UnixStream),
    /// TCP.
    Tcp(TcpStream),
}

impl Stream {
    /// Reads once.
    #[inline]
    pub fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(s) => s.read(buf),
            Self::Tcp(s) => s.read(buf),
        }
    }

    /// Writes once.
    #[inline]
    pub fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(s) => s.write(buf),
            Self::Tcp(s) => s.write(buf),
        }
    }

    /// A second handle.
    pub fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Unix(s) => s.try_clone().map(Self::Unix),
            Self::Tcp(s) => s.try_clone().map(Self::Tcp),
        }
    }

    /// Ends it for all handles.
    pub fn shut_down(&self) {
        // The peer may be gone already, which is what is wanted.
        let _ = self.shut(Shutdown::Both);
    }

    /// Ends one direction of it, or both, for all handles.
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

/// A socket with its manner of waiting.
#[derive(Debug)]
pub struct Wire {
    pub stream: Stream,
    /// Waits with it while there is one.
    pub patience: Option<Patience>,
    /// Shut down by its [`Control`](super::socket::Control).
    pub severed: Arc<AtomicBool>,
}

impl Wire {
    /// A socket that waits; it must not block by itself.
    pub fn new(stream: Stream, patience: Patience, severed: Arc<AtomicBool>) -> Self {
        Self { stream, patience: Some(patience), severed }
    }

    fn check(&self) -> io::Result<()> {
        if self.severed.load(Ordering::Relaxed) { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }

    /// After an attempt that failed: waits where that is the manner, else gives the error back.
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
