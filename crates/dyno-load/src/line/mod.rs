//! A longer line between the sessions and the server: bytes are held back each way for a time and
//! sent on at a rate. What if the application stood 5 ms away?
//!
//! ```text
//!   session -- socket pair -- [ delay, rate ] -- socket -- server
//!                              one thread per line
//! ```
//!
//! The near end is one half of a socket pair inside this process, never a port: nobody else on the
//! machine can get to the server through it. TLS is spoken through the line, from end to end. A client
//! that is another program needs a port; whose connections [`Line::carry`] takes is its owner's to check.
//!
//! # What a line does to bytes
//!
//! - `delay_ns` is for one way, so a round trip takes twice as long, and a new connection waits one
//!   round trip more for the handshake that TCP would have made.
//! - `rate_bit_per_s` is for each way and shared by all connections of the line: bytes leave in the
//!   order in which they came in. A piece of at most [`PIECE_BYTES`] arrives when its last bit does.
//! - On one connection and way so many bytes are under way at once as a window lets through; more
//!   stay with the sender, whose writes then wait ([`window`]).
//! - The end of a stream, a reset and a cancel request take as long as bytes do.
//!
//! # Limits
//!
//! No loss, no reordering, no jitter, and no slow start. The thread adds its own time to wake up,
//! some ten microseconds each way; `benches/line.py` measures it. What the line itself was late is
//! counted and reported ([`Lateness`]).

mod carrier;
mod connection;
mod pace;
mod way;

use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use mio::Waker;
use serde::{Deserialize, Serialize};

use crate::wire::stream::Stream;
use carrier::Carrier;

/// Most bytes that travel together.
pub const PIECE_BYTES: usize = 16 << 10;
const WINDOW_LEAST: usize = 64 << 10;
const WINDOW_MOST: usize = 4 << 20;

/// How long a line is, and how wide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineSpec {
    /// Each way [ns].
    #[serde(default)]
    pub delay_ns: u64,
    /// Each way, for all connections together; `None` is without limit.
    #[serde(default)]
    pub rate_bit_per_s: Option<u64>,
}

/// Most bytes under way on one connection and in one direction: twice what fits on a line of that
/// rate, at least 64 KiB; 4 MiB where there is no rate.
pub fn window(spec: LineSpec) -> usize {
    let Some(rate) = spec.rate_bit_per_s else { return WINDOW_MOST };
    let on_line = u128::from(rate) * u128::from(spec.delay_ns) / 8_000_000_000;
    usize::try_from(2 * on_line).unwrap_or(WINDOW_MOST).clamp(WINDOW_LEAST, WINDOW_MOST)
}

/// How late a line let go of its pieces, because its thread did not run in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Lateness {
    /// Pieces that were let go.
    pub pieces: u64,
    /// Sum over them [ns].
    pub late_ns: u64,
    /// The latest of them [ns].
    pub late_max_ns: u64,
}

/// What the thread and the line's owner share.
#[derive(Debug, Default)]
struct Shared {
    /// Connections that the thread has not seen yet: the near end and the server's.
    waiting: Mutex<Vec<[Stream; 2]>>,
    stop: AtomicBool,
    pieces: AtomicU64,
    late_ns: AtomicU64,
    late_max_ns: AtomicU64,
}

/// A line with its thread; ends with all its connections when it is dropped.
#[derive(Debug)]
pub struct Line {
    spec: LineSpec,
    shared: Arc<Shared>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Line {
    /// A line without connections.
    ///
    /// # Errors
    /// The system has no thread or no descriptor left.
    pub fn open(spec: LineSpec) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (carrier, waker) = Carrier::new(spec, Arc::clone(&shared))?;
        let thread = std::thread::Builder::new().name("line".into()).spawn(move || carrier.run())?;
        Ok(Self { spec, shared, waker, thread: Some(thread) })
    }

    /// The near end of a line to this server's socket, which must not block. Neither does the near end.
    pub fn through(&self, server: Stream) -> io::Result<Stream> {
        if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            return Err(io::Error::other("the line's thread has ended"));
        }
        let (near, far) = UnixStream::pair()?;
        near.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner).push([Stream::Unix(far), server]);
        self.waker.wake()?;
        Ok(Stream::Unix(near))
    }

    /// Carries between two connections by TCP: the near end's, which somebody made to a port of ours, and the server's.
    ///
    /// # Errors
    /// A connection that is gone, or a line that has ended.
    pub fn carry(&self, near: TcpStream, server: TcpStream) -> io::Result<()> {
        if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            return Err(io::Error::other("the line's thread has ended"));
        }
        for end in [&near, &server] {
            end.set_nonblocking(true)?;
            end.set_nodelay(true)?;
        }
        let pair = [Stream::Tcp(near), Stream::Tcp(server)];
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(pair);
        self.waker.wake()
    }

    /// What a login may take longer over it: some round trips for TCP, TLS and the password.
    pub fn login(&self) -> Duration {
        Duration::from_nanos(self.spec.delay_ns.saturating_mul(24))
    }

    /// How late it was since this was last asked.
    pub fn lateness(&self) -> Lateness {
        let take = |number: &AtomicU64| number.swap(0, Ordering::Relaxed);
        let shared = &*self.shared;
        Lateness {
            pieces: take(&shared.pieces),
            late_ns: take(&shared.late_ns),
            late_max_ns: take(&shared.late_max_ns),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // A thread that is gone needs no waking.
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
