//! Sockets: Unix, TCP and TLS over TCP behind one `Read + Write`.
//!
//! A socket blocks, with a time limit, until its session is logged in; from then on it returns at
//! once and a reactor waits. Who must end a session from outside uses its [`Control`].

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::{WireError, tls};
use crate::spec::ConnectionSpec;

/// The bytes of the protocol's request for TLS: its length and its code.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
/// The protocol's code for a cancel request.
const CANCEL_CODE: u32 = 80_877_102;

/// A connected socket.
#[derive(Debug)]
pub enum Socket {
    /// A Unix socket.
    Unix(UnixStream),
    /// Plain TCP.
    Tcp(TcpStream),
    /// TLS over TCP.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Socket {
    /// Opens a socket without TLS.
    pub fn open(spec: &ConnectionSpec, limit: Option<Duration>) -> Result<Self, WireError> {
        let socket = if spec.is_unix() {
            let path: PathBuf = [&spec.host, &format!(".s.PGSQL.{}", spec.port)].iter().collect();
            Self::Unix(UnixStream::connect(path).map_err(WireError::Io)?)
        } else {
            Self::Tcp(open_tcp(spec, limit)?)
        };
        socket.set_limit(limit)?;
        Ok(socket)
    }

    /// Asks the server for TLS and takes it if offered; `Ok(false)` leaves a plain socket.
    pub fn upgrade(self, spec: &ConnectionSpec, config: &Arc<ClientConfig>) -> Result<(Self, bool), WireError> {
        let Self::Tcp(mut stream) = self else { return Ok((self, false)) };
        stream.write_all(&SSL_REQUEST)?;
        let mut answer = [0];
        stream.read_exact(&mut answer)?;
        match answer[0] {
            b'S' => {
                let connection = tls::handshake(spec, config, &mut stream)?;
                Ok((Self::Tls(Box::new(StreamOwned::new(connection, stream))), true))
            }
            b'N' => Ok((Self::Tcp(stream), false)),
            // A server older than 7.0, or none that speaks this protocol.
            other => Err(WireError::Protocol(format!("answer 0x{other:02x} to the TLS request"))),
        }
    }

    /// Limits how long a read or write may block; `None` is without limit.
    pub fn set_limit(&self, limit: Option<Duration>) -> Result<(), WireError> {
        let set = |r: io::Result<()>, w: io::Result<()>| r.and(w).map_err(WireError::Io);
        match self {
            Self::Unix(s) => set(s.set_read_timeout(limit), s.set_write_timeout(limit)),
            Self::Tcp(s) => set(s.set_read_timeout(limit), s.set_write_timeout(limit)),
            Self::Tls(s) => set(s.sock.set_read_timeout(limit), s.sock.set_write_timeout(limit)),
        }
    }

    /// Makes reads and writes return at once; a [`Reactor`](crate::reactor::Reactor) waits.
    pub fn unblock(&self) -> Result<(), WireError> {
        match self {
            Self::Unix(s) => s.set_nonblocking(true),
            Self::Tcp(s) => s.set_nonblocking(true),
            Self::Tls(s) => s.sock.set_nonblocking(true),
        }
        .map_err(WireError::Io)
    }

    /// Whether bytes may be ready although the operating system knows of none.
    pub fn holds_bytes(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Sends all bytes, waiting for room where there is none.
    #[inline]
    pub fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(e) => self.wait_for_room(e)?,
            }
        }
        // Only TLS keeps bytes back.
        while let Err(e) = self.flush() {
            self.wait_for_room(e)?;
        }
        Ok(())
    }

    #[cold]
    fn wait_for_room(&self, error: io::Error) -> io::Result<()> {
        match error.kind() {
            io::ErrorKind::Interrupted => Ok(()),
            io::ErrorKind::WouldBlock => {
                rustix::event::poll(&mut [PollFd::new(self, PollFlags::OUT)], None)?;
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// The certificate's hash that SCRAM can be bound to, if this is TLS.
    pub fn end_point_hash(&self) -> Option<Vec<u8>> {
        match self {
            Self::Tls(s) => tls::end_point_hash(s.conn.peer_certificates()?.first()?),
            _ => None,
        }
    }

    /// A second handle to end blocked reads from another thread.
    pub fn control(&self) -> Result<Control, WireError> {
        Ok(match self {
            Self::Unix(s) => Control::Unix(s.try_clone().map_err(WireError::Io)?),
            Self::Tcp(s) => Control::Tcp(s.try_clone().map_err(WireError::Io)?),
            Self::Tls(s) => Control::Tcp(s.sock.try_clone().map_err(WireError::Io)?),
        })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(s) => s.as_fd(),
            Self::Tcp(s) => s.as_fd(),
            Self::Tls(s) => s.sock.as_fd(),
        }
    }
}

impl Read for Socket {
    #[inline]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(s) => s.read(buf),
            Self::Tcp(s) => s.read(buf),
            Self::Tls(s) => s.read(buf),
        }
    }
}

impl Write for Socket {
    #[inline]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(s) => s.write(buf),
            Self::Tcp(s) => s.write(buf),
            Self::Tls(s) => s.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Unix(s) => s.flush(),
            Self::Tcp(s) => s.flush(),
            Self::Tls(s) => s.flush(),
        }
    }
}

/// The handle of another thread on a session's socket.
#[derive(Debug)]
pub enum Control {
    /// A Unix socket.
    Unix(UnixStream),
    /// TCP, with or without TLS above.
    Tcp(TcpStream),
}

impl Control {
    /// Ends the connection: a blocked read returns at once.
    pub fn shut_down(&self) {
        // The peer may be gone already, which is what is wanted.
        let _ = match self {
            Self::Unix(s) => s.shutdown(Shutdown::Both),
            Self::Tcp(s) => s.shutdown(Shutdown::Both),
        };
    }
}

/// Asks the server, on a connection of its own, to cancel what a session is doing.
pub fn cancel(spec: &ConnectionSpec, process: u32, key: u32) -> Result<(), WireError> {
    let limit = Some(Duration::from_millis(300));
    let mut socket = Socket::open(spec, limit)?;
    let mut message = [0; 16];
    for (slot, word) in message.chunks_exact_mut(4).zip([16, CANCEL_CODE, process, key]) {
        slot.copy_from_slice(&word.to_be_bytes());
    }
    socket.write_all(&message)?;
    Ok(())
}

fn open_tcp(spec: &ConnectionSpec, limit: Option<Duration>) -> Result<TcpStream, WireError> {
    let deadline = limit.map(|limit| Instant::now() + limit);
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    for address in (spec.host.as_str(), spec.port).to_socket_addrs().map_err(WireError::Io)? {
        let tried = match deadline.map(|d| d.saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => return Err(WireError::Timeout),
            Some(left) => TcpStream::connect_timeout(&address, left),
            None => TcpStream::connect(address),
        };
        match tried {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(WireError::Io)?;
                return Ok(stream);
            }
            Err(e) => last = e,
        }
    }
    Err(last.into())
}
