//! Emulated network line between the sessions and the server: it delays bytes in each direction and limits their rate.
//!
//! It answers questions such as: what if the application were 5 ms away from the server?
//!
//! ```text
//!   session -- socket pair -- [ delay, rate ] -- socket -- server
//!                              one thread per line
//! ```
//!
//! The near end is one half of a socket pair inside this process, never a port: nobody else on the machine can reach
//! the server through it. TLS runs through the line, from end to end. A client that is another program needs a port;
//! the code that listens on that port must check whose connections it passes to [`Line::carry`].
//!
//! # What a line does to bytes
//!
//! - `delay_ns` applies to one way, so a round trip takes twice as long. A new connection waits one more round trip,
//!   for the TCP handshake.
//! - `rate_bit_per_s` applies to each way and is shared by all connections of the line: bytes leave in the order in
//!   which they came in. A piece of at most [`PIECE_BYTES`] arrives when its last bit arrives.
//! - The bytes under way on one connection and way are limited by a window ([`window`]); further bytes stay with the
//!   sender, whose writes then block.
//! - The end of a stream, a reset and a cancel request take as long as other bytes.
//!
//! # Limits
//!
//! No loss, no reordering, no jitter, and no slow start. The thread adds its own wake-up time, some ten microseconds
//! each way; `benches/line.py` measures it. The delay that the line itself adds is counted and reported ([`Lateness`]).

mod carrier;
mod connection;
mod direction;
mod pace;

use std::io;
use std::mem;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use mio::Waker;
use serde::{Deserialize, Serialize};

use crate::wire::stream::Stream;
use carrier::Carrier;

/// Largest number of bytes that are carried as one piece.
pub const PIECE_BYTES: usize = 16 << 10;
const WINDOW_LEAST: usize = 64 << 10;
const WINDOW_MOST: usize = 4 << 20;

/// Delay and rate of a network line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineSpec {
    /// Delay of each way [ns].
    #[serde(default)]
    pub delay_ns: u64,
    /// Rate of each way, shared by all connections [bit/s]; `None` for no limit.
    #[serde(default)]
    pub rate_bit_per_s: Option<u64>,
}

/// Returns the largest number of bytes under way on one connection and in one direction.
///
/// The window is twice the product of rate and delay, at least 64 KiB and at most 4 MiB; 4 MiB if the rate is not
/// limited.
pub fn window(spec: LineSpec) -> usize {
    let Some(rate) = spec.rate_bit_per_s else { return WINDOW_MOST };
    let on_line = u128::from(rate) * u128::from(spec.delay_ns) / 8_000_000_000;
    usize::try_from(2 * on_line).unwrap_or(WINDOW_MOST).clamp(WINDOW_LEAST, WINDOW_MOST)
}

/// Lateness of a line's pieces, which occurs when the line's thread does not run in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Lateness {
    /// Number of pieces delivered.
    pub pieces: u64,
    /// Total lateness of the pieces [ns].
    pub late_ns: u64,
    /// Largest lateness of one piece [ns].
    pub late_max_ns: u64,
}

/// State that the thread and the line's owner share.
#[derive(Debug, Default)]
struct Shared {
    /// Connections that the thread has not seen yet: the near end's socket and the server's.
    waiting: Mutex<Vec<[Stream; 2]>>,
    stop: AtomicBool,
    /// Lateness since it was last read; under a lock, so that all its figures cover the same pieces.
    lateness: Mutex<Lateness>,
}

/// Network line with its thread; all its connections end when it is dropped.
#[derive(Debug)]
pub struct Line {
    spec: LineSpec,
    shared: Arc<Shared>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Line {
    /// Opens a line without connections and starts its thread.
    ///
    /// # Errors
    /// The system cannot start a thread, or has no descriptor left.
    pub fn open(spec: LineSpec) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (carrier, waker) = Carrier::new(spec, Arc::clone(&shared))?;
        let thread = std::thread::Builder::new().name("line".into()).spawn(move || carrier.run())?;
        Ok(Self { spec, shared, waker, thread: Some(thread) })
    }

    /// Returns the near end of a new connection through the line to this server socket; both sockets are non-blocking.
    ///
    /// # Errors
    /// The line's thread has ended, or the system has no descriptor left.
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

    /// Carries bytes between two TCP connections: one that a client made to a local port, and the server's.
    ///
    /// # Errors
    /// A connection has ended, or the line's thread has ended.
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

    /// Returns how much longer a login can take because of the line: 12 round trips, for TCP, TLS and the password.
    pub fn login(&self) -> Duration {
        Duration::from_nanos(self.spec.delay_ns.saturating_mul(24))
    }

    /// Returns the line's lateness since the last call.
    pub fn lateness(&self) -> Lateness {
        mem::take(&mut *self.shared.lateness.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // The thread may have ended already; then there is nothing to wake.
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
