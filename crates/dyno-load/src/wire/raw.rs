//! A logged-in session whose messages are the caller's: bytes out, bytes in.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::WireError;
use super::socket::Socket;
use super::startup::LoggedIn;
use crate::connection::ConnectionSpec;
use crate::dialler::Dialler;

/// A session that waits on its socket by itself.
#[derive(Debug)]
pub struct RawSession {
    socket: Socket,
    process: u32,
}

impl RawSession {
    /// Opens a socket and logs in; `stop` ends that and everything after it.
    pub fn connect(spec: &ConnectionSpec, stop: &Arc<AtomicBool>) -> Result<Self, WireError> {
        let LoggedIn { socket, process, .. } = Dialler::new(spec)?.connect_to_copy(stop)?;
        Ok(Self { socket, process })
    }

    /// Number of the server's process.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Sends all of it.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        Ok(self.socket.send(bytes)?)
    }

    /// Waits for bytes; an error at the end.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, WireError> {
        match self.socket.read(buffer)? {
            0 => Err(WireError::Closed),
            count => Ok(count),
        }
    }
}
