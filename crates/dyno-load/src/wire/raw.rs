//! Logged-in session for callers that write and parse the messages themselves: it sends and receives bytes.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::WireError;
use super::socket::Socket;
use super::startup::LoggedIn;
use crate::connection::ConnectionSpec;
use crate::dialler::Dialler;

/// Session that blocks on its socket.
#[derive(Debug)]
pub struct RawSession {
    socket: Socket,
    process: u32,
}

impl RawSession {
    /// Opens a socket and logs in; `stop` interrupts this and every later operation.
    ///
    /// # Errors
    /// The connection or the login fails.
    pub fn connect(spec: &ConnectionSpec, stop: &Arc<AtomicBool>) -> Result<Self, WireError> {
        let LoggedIn { socket, process, .. } = Dialler::new(spec)?.connect_to_copy(stop)?;
        Ok(Self { socket, process })
    }

    /// Returns the number of the server process.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Sends all bytes.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        Ok(self.socket.send(bytes)?)
    }

    /// Waits for bytes and returns their number.
    ///
    /// # Errors
    /// The connection is lost or has ended.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, WireError> {
        match self.socket.read(buffer)? {
            0 => Err(WireError::Closed),
            count => Ok(count),
        }
    }
}
