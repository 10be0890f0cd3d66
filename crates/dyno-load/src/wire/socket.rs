//! Sockets: Unix, TCP and TLS over TCP behind one `Read + Write`.
//!
//! Two manners. Until its session is logged in, a socket waits as ordinary sockets do, but in short
//! naps between which its [`Patience`] is asked: one deadline for all of the dialogue, however the
//! bytes dribble in, and an end when the caller wants to stop. From then on it returns at once and a
//! reactor waits. In both manners a socket is of no use any more from the moment that its
//! [`Control`] is shut down: a kernel goes on handing out bytes that a flooding peer sends.

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

/// The bytes of the protocol's request for TLS: its length and its code.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// A connected socket.
#[derive(Debug)]
pub enum Socket {
    /// In the clear.
    Plain(Wire),
    /// TLS over TCP.
    Tls(Box<StreamOwned<ClientConnection, Wire>>),
}

impl Socket {
    /// Opens a socket without TLS, by way of the line if there is one.
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

    /// Asks the server whether it speaks TLS.
    pub fn offers_tls(&mut self) -> Result<bool, WireError> {
        self.write_all(&SSL_REQUEST)?;
        let mut answer = [0];
        self.read_exact(&mut answer)?;
        match answer[0] {
            b'S' => Ok(true),
            b'N' => Ok(false),
            // An error message could be anybody's: nothing of it is read or shown.
            other => Err(WireError::Protocol(format!("answer 0x{other:02x} to the TLS request"))),
        }
    }

    /// Begins TLS.
    pub fn encrypt(self, spec: &ConnectionSpec, config: &Arc<ClientConfig>) -> Result<Self, WireError> {
        let Self::Plain(mut wire) = self else { return Ok(self) };
        let connection = tls::handshake(spec, config, &mut wire)?;
        Ok(Self::Tls(Box::new(StreamOwned::new(connection, wire))))
    }

    /// Whether nobody in between can read.
    pub fn is_encrypted(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    fn wire(&self) -> &Wire {
        match self {
            Self::Plain(wire) => wire,
            Self::Tls(tls) => &tls.sock,
        }
    }

    /// Changes how long it waits; `None`: not at all, a [`Reactor`](crate::reactor::Reactor) does.
    pub fn set_patience(&mut self, patience: Option<Patience>) {
        match self {
            Self::Plain(wire) => wire.patience = patience,
            Self::Tls(tls) => tls.sock.patience = patience,
        }
    }

    /// Whether bytes may be ready although the operating system knows of none.
    pub fn holds_bytes(&self) -> bool {
        self.is_encrypted()
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
            // In naps: the next attempt sees whether the connection was ended meanwhile.
            io::ErrorKind::WouldBlock => poll(self, PollFlags::OUT, NAP).map(|_| ()),
            _ => Err(error),
        }
    }

    /// The server's certificate, if this is TLS.
    pub fn certificate(&self) -> Option<&[u8]> {
        match self {
            Self::Tls(s) => s.conn.peer_certificates()?.first().map(AsRef::as_ref),
            Self::Plain(_) => None,
        }
    }

    /// The certificate's hash that SCRAM can be bound to, if this is TLS and there is one.
    pub fn end_point_hash(&self) -> Option<Vec<u8>> {
        x509::end_point_hash(self.certificate()?)
    }

    /// A second handle to end the connection from another thread.
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

/// The handle of another thread on a session's socket, made before the socket is.
#[derive(Debug)]
pub struct Control {
    stream: Option<Stream>,
    severed: Arc<AtomicBool>,
}

impl Control {
    /// For a socket that is about to be opened.
    pub fn ahead(severed: &Arc<AtomicBool>) -> Self {
        Self { stream: None, severed: Arc::clone(severed) }
    }

    /// Ends the connection: nothing is read from it or written to it any more.
    pub fn shut_down(&self) {
        self.severed.store(true, Ordering::Relaxed);
        if let Some(stream) = &self.stream {
            stream.shut_down();
        }
    }
}
