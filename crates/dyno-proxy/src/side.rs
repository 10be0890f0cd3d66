//! One side of a session: a non-blocking socket, optional TLS, and the bytes that could not be sent yet.

use std::io::{self, Read, Write};

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rustls::Connection;

/// TCP socket or Unix socket.
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

    /// Returns true if the connection is established.
    pub(crate) fn is_connected(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.peer_addr().is_ok(),
            Self::Unix(_) => true,
        }
    }

    /// Returns why connecting failed; `None` while it is in progress or after success.
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

/// One side of a session.
#[allow(clippy::struct_excessive_bools)] // facts about one socket that arrive separately
pub(crate) struct Side {
    net: Net,
    tls: Option<Box<Connection>>,
    /// Bytes to send; those before `sent` have been sent.
    out: Vec<u8>,
    sent: usize,
    token: Token,
    waits_for_room: bool,
    /// True until the socket is connected, which it reports by becoming writable.
    pub(crate) is_connecting: bool,
    /// True if there may be bytes to read.
    pub(crate) may_read: bool,
    /// True if the stream has ended.
    pub(crate) is_closed: bool,
    /// True if the kernel has reported that the stream will end; then a short read may not have emptied the socket.
    pub(crate) is_closing: bool,
}

impl Side {
    /// Registers a socket; with `connecting` it is also watched until it is writable.
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

    /// Switches to TLS.
    pub(crate) fn encrypt(&mut self, tls: Option<Connection>) {
        self.tls = tls.map(|mut tls| {
            // The pending bytes are limited by stopping to read on the other side.
            tls.set_buffer_limit(None);
            Box::new(tls)
        });
        self.may_read = true;
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Reads once; `WouldBlock` if there is nothing, 0 at the end.
    pub(crate) fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let found = match &mut self.tls {
            None => self.net.read(buf),
            Some(tls) => read_tls(tls, &mut self.net, buf),
        };
        match &found {
            Ok(0) => (self.may_read, self.is_closed) = (false, true),
            // A short read has emptied the socket; the next byte causes an event.
            Ok(count) if *count < buf.len() && self.tls.is_none() && !self.is_closing => self.may_read = false,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.may_read = false,
            _ => {}
        }
        found
    }

    /// Passes to the TLS handshake the bytes that were already read.
    pub(crate) fn give_back(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while !bytes.is_empty() {
            tls.read_tls(&mut bytes)?;
            tls.process_new_packets().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
        Ok(())
    }

    /// Sends what can be sent and keeps the rest.
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

    /// Sends more of the kept bytes.
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
        // An idle session keeps no buffer.
        (self.out, self.sent) = (Vec::new(), 0);
        Ok(())
    }

    /// Returns true if bytes are waiting to be sent.
    pub(crate) fn is_full(&self) -> bool {
        self.sent < self.out.len() || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Watches whether the socket is writable, but only while it is connecting or bytes are waiting to be sent.
    pub(crate) fn watch(&mut self, registry: &Registry) -> io::Result<()> {
        let wants = self.is_full() || self.is_connecting;
        if wants == self.waits_for_room {
            return Ok(());
        }
        self.waits_for_room = wants;
        let interest = if wants { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        registry.reregister(self.net.source(), self.token, interest)
    }

    /// Deregisters the socket.
    pub(crate) fn leave(&mut self, registry: &Registry) {
        let _ = registry.deregister(self.net.source());
    }
}

fn is_later(error: &io::Error) -> bool {
    // A socket that is not yet connected reports that.
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected)
}

fn read_tls(tls: &mut Connection, net: &mut Net, buf: &mut [u8]) -> io::Result<usize> {
    loop {
        match tls.reader().read(buf) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // Many peers do not send a close_notify.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
            done => return done,
        }
        if tls.read_tls(net)? == 0 {
            return Ok(0);
        }
        let seen = tls.process_new_packets();
        // Messages of the handshake are sent immediately, alerts included.
        while tls.wants_write() && tls.write_tls(net).is_ok() {}
        seen.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    }
}
