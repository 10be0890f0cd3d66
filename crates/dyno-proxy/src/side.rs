//! One side of a session: a socket that does not block, TLS over it or not, and what could not be sent yet.

use std::io::{self, Read, Write};

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rustls::Connection;

/// A socket of either family.
pub(crate) enum Net {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Net {
    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
        }
    }

    /// Whether the connection stands.
    pub(crate) fn is_connected(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.peer_addr().is_ok(),
            Self::Unix(_) => true,
        }
    }

    /// Why it could not be connected; nothing while it is under way or done.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        match self {
            Self::Tcp(stream) => stream.take_error(),
            Self::Unix(stream) => stream.take_error(),
        }
        .unwrap_or_else(Some)
    }
}

impl Read for Net {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buf),
            Self::Unix(stream) => stream.read(buf),
        }
    }
}

impl Write for Net {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(buf),
            Self::Unix(stream) => stream.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One side.
#[allow(clippy::struct_excessive_bools)] // what the kernel said of one socket: facts that come one by one
pub(crate) struct Side {
    net: Net,
    tls: Option<Box<Connection>>,
    /// What the socket did not take, from `sent` on.
    out: Vec<u8>,
    sent: usize,
    token: Token,
    waits_for_room: bool,
    /// Until it is connected; the socket says so by having room.
    pub(crate) is_connecting: bool,
    /// Whether bytes may be there to be read.
    pub(crate) may_read: bool,
    /// Whether the peer has said its last.
    pub(crate) is_closed: bool,
    /// Whether the kernel knows that it will: then a short read is not all there is.
    pub(crate) is_closing: bool,
}

impl Side {
    /// A socket, registered; `connecting` waits until it is writable, too.
    pub(crate) fn new(mut net: Net, token: Token, registry: &Registry, connecting: bool) -> io::Result<Self> {
        let interest = if connecting { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        registry.register(net.source(), token, interest)?;
        Ok(Self {
            net,
            tls: None,
            out: Vec::new(),
            sent: 0,
            token,
            waits_for_room: connecting,
            is_connecting: connecting,
            may_read: true,
            is_closed: false,
            is_closing: false,
        })
    }

    pub(crate) fn net(&self) -> &Net {
        &self.net
    }

    /// From here on TLS.
    pub(crate) fn encrypt(&mut self, tls: Option<Connection>) {
        self.tls = tls.map(|mut tls| {
            // What waits is bounded by who stops to read.
            tls.set_buffer_limit(None);
            Box::new(tls)
        });
        self.may_read = true;
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Reads once; `WouldBlock` where there is nothing, 0 at the end.
    pub(crate) fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let found = match &mut self.tls {
            None => self.net.read(buf),
            Some(tls) => read_tls(tls, &mut self.net, buf),
        };
        match &found {
            Ok(0) => (self.may_read, self.is_closed) = (false, true),
            // A short read took all there was; the next byte wakes us.
            Ok(count) if *count < buf.len() && self.tls.is_none() && !self.is_closing => self.may_read = false,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.may_read = false,
            _ => {}
        }
        found
    }

    /// Bytes that a TLS handshake is to begin with, although they were read already.
    pub(crate) fn give_back(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while !bytes.is_empty() {
            tls.read_tls(&mut bytes)?;
            tls.process_new_packets().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
        Ok(())
    }

    /// Sends what can be sent; keeps the rest.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(bytes)?;
            return self.flush();
        }
        let mut at = 0;
        while self.out.is_empty() && at < bytes.len() {
            match self.net.write(&bytes[at..]) {
                Ok(count) => at += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_later(&error) => break,
                Err(error) => return Err(error),
            }
        }
        self.out.extend_from_slice(&bytes[at..]);
        Ok(())
    }

    /// Sends more of what was kept.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                match tls.write_tls(&mut self.net) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if is_later(&error) => break,
                    Err(error) => return Err(error),
                }
            }
            return Ok(());
        }
        while self.sent < self.out.len() {
            match self.net.write(&self.out[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        // An idle session keeps no room.
        (self.out, self.sent) = (Vec::new(), 0);
        Ok(())
    }

    /// Whether something waits to be sent.
    pub(crate) fn is_full(&self) -> bool {
        self.sent < self.out.len() || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Asks to be told of room exactly while something waits for it.
    pub(crate) fn watch(&mut self, registry: &Registry) -> io::Result<()> {
        let wants = self.is_full() || self.is_connecting;
        if wants == self.waits_for_room {
            return Ok(());
        }
        self.waits_for_room = wants;
        let interest = if wants { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        registry.reregister(self.net.source(), self.token, interest)
    }

    /// Nothing more is watched.
    pub(crate) fn leave(&mut self, registry: &Registry) {
        let _ = registry.deregister(self.net.source());
    }
}

fn is_later(error: &io::Error) -> bool {
    // A socket that is not yet connected says so.
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected)
}

fn read_tls(tls: &mut Connection, net: &mut Net, buf: &mut [u8]) -> io::Result<usize> {
    loop {
        match tls.reader().read(buf) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // Many do not say good-bye.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
            done => return done,
        }
        if tls.read_tls(net)? == 0 {
            return Ok(0);
        }
        let seen = tls.process_new_packets();
        // What the handshake wants to say goes out at once, an alert, too.
        while tls.wants_write() && tls.write_tls(net).is_ok() {}
        seen.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    }
}
