//! Sockets: Unix, TCP, and TLS over TCP, with a common `Read + Write` interface.
//!
//! A socket has two modes. Until its session is logged in, it blocks, but only for short periods, between which it
//! checks its [`Patience`]: a deadline for the complete login, however slowly the bytes arrive, and a request to stop.
//! After the login the socket is non-blocking, and a reactor waits for it. In both modes a socket can no longer be used
//! once its [`Control`] has shut it down: if only the kernel's socket were shut down, bytes from a flooding peer would
//! still be delivered.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::PollFlags;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::stream::{NAP, Patience, Stream, Wire, poll};
use super::{WireError, dial, tls, x509};
use crate::connection::ConnectionSpec;
use crate::line::Line;

/// Bytes of the protocol's request for TLS: its length and its code.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// Connected socket.
#[derive(Debug)]
pub enum Socket {
    /// Unencrypted.
    Plain(Wire),
    /// TLS over TCP.
    Tls(Box<StreamOwned<ClientConnection, Wire>>),
}

impl Socket {
    /// Opens a socket without TLS, over the line if there is one.
    ///
    /// # Errors
    /// The connection fails, times out, or is stopped.
    pub fn open(
        spec: &ConnectionSpec,
        line: Option<&Line>,
        patience: &Patience,
        severed: &Arc<AtomicBool>,
    ) -> Result<Self, WireError> {
        let mut stream = dial::open(spec, patience)?;
        if let Some(line) = line {
            stream = line.through(stream).map_err(WireError::Io)?;
        }
        Ok(Self::Plain(Wire::new(stream, patience.clone(), Arc::clone(severed))))
    }

    /// Asks the server for TLS; returns true if it agrees.
    ///
    /// # Errors
    /// The connection is lost, or the answer violates the protocol.
    pub fn offers_tls(&mut self) -> Result<bool, WireError> {
        self.write_all(&SSL_REQUEST)?;
        let mut answer = [0];
        self.read_exact(&mut answer)?;
        match answer[0] {
            b'S' => Ok(true),
            b'N' => Ok(false),
            // An error message could come from anybody: nothing of it is read or shown.
            other => Err(WireError::Protocol(format!("answer 0x{other:02x} to the TLS request"))),
        }
    }

    /// Begins TLS.
    ///
    /// # Errors
    /// The handshake fails.
    pub fn encrypt(self, spec: &ConnectionSpec, config: &Arc<ClientConfig>) -> Result<Self, WireError> {
        let Self::Plain(mut wire) = self else { return Ok(self) };
        let connection = tls::handshake(spec, config, &mut wire)?;
        Ok(Self::Tls(Box::new(StreamOwned::new(connection, wire))))
    }

    /// Returns true if the connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    fn wire(&self) -> &Wire {
        match self {
            Self::Plain(wire) => wire,
            Self::Tls(tls) => &tls.sock,
        }
    }

    /// Sets how long the socket waits; with `None` the socket itself never waits, but a
    /// [`Reactor`](crate::reactor::Reactor) waits for it.
    pub fn set_patience(&mut self, patience: Option<Patience>) {
        match self {
            Self::Plain(wire) => wire.patience = patience,
            Self::Tls(tls) => tls.sock.patience = patience,
        }
    }

    /// Returns true if the TLS layer can hold bytes that are ready and that the operating system does not know about.
    pub fn holds_bytes(&self) -> bool {
        self.is_encrypted()
    }

    /// Sends all bytes; waits for room in the socket.
    ///
    /// # Errors
    /// The connection is lost, or its [`Control`] has ended it.
    #[inline]
    pub fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(e) => self.wait_for_room(e)?,
            }
        }
        // Only TLS holds bytes back.
        while let Err(e) = self.flush() {
            self.wait_for_room(e)?;
        }
        Ok(())
    }

    #[cold]
    fn wait_for_room(&self, error: io::Error) -> io::Result<()> {
        match error.kind() {
            io::ErrorKind::Interrupted => Ok(()),
            // In naps: the next attempt notices if the connection was ended meanwhile.
            io::ErrorKind::WouldBlock => poll(self, PollFlags::OUT, NAP).map(|_| ()),
            _ => Err(error),
        }
    }

    /// Returns the server's certificate, or `None` without TLS.
    pub fn certificate(&self) -> Option<&[u8]> {
        match self {
            Self::Tls(s) => s.conn.peer_certificates()?.first().map(AsRef::as_ref),
            Self::Plain(_) => None,
        }
    }

    /// Returns the hash of the certificate for SCRAM channel binding; `None` without TLS, or if no such hash is
    /// defined.
    pub fn end_point_hash(&self) -> Option<Vec<u8>> {
        x509::end_point_hash(self.certificate()?)
    }

    /// Returns a handle that another thread can use to end the connection.
    ///
    /// # Errors
    /// The socket cannot be duplicated.
    pub fn control(&self) -> Result<Control, WireError> {
        let wire = self.wire();
        let stream = wire.stream.try_clone().map_err(WireError::Io)?;
        Ok(Control { stream: Some(stream), severed: Arc::clone(&wire.severed) })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire().as_fd()
    }
}

impl Read for Socket {
    #[inline]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(s) => s.read(buf),
            Self::Tls(s) => s.read(buf),
        }
    }
}

impl Write for Socket {
    #[inline]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(s) => s.write(buf),
            Self::Tls(s) => s.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(s) => s.flush(),
            Self::Tls(s) => s.flush(),
        }
    }
}

/// Handle that another thread uses to end a connection; it exists even before the socket is opened.
#[derive(Debug)]
pub struct Control {
    stream: Option<Stream>,
    severed: Arc<AtomicBool>,
}

impl Control {
    /// Returns the handle of a socket that is about to be opened.
    pub fn ahead(severed: &Arc<AtomicBool>) -> Self {
        Self { stream: None, severed: Arc::clone(severed) }
    }

    /// Ends the connection: nothing more is read from it or written to it.
    pub fn shut_down(&self) {
        self.severed.store(true, Ordering::Relaxed);
        if let Some(stream) = &self.stream {
            stream.shut_down();
        }
    }
}
