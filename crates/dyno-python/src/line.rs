//! Python interface of an emulated network line with a port, for clients that are other programs.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dyno_load::{Line, LineSpec};
use pyo3::prelude::*;

use crate::errors::raise;

/// Timeout of a connection to the server [s].
const CONNECT_S: u64 = 10;

/// Port on 127.0.0.1 in front of a server.
///
/// It accepts connections but forwards none by itself: each waits until the caller lets it in or turns it away.
#[pyclass(frozen, module = "dbdyno._core")]
pub(crate) struct LinePort {
    line: Line,
    listener: TcpListener,
    server: SocketAddr,
    knocking: Mutex<Option<TcpStream>>,
}

impl LinePort {
    fn taken(&self) -> Option<TcpStream> {
        self.knocking.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[pymethods]
impl LinePort {
    /// Open a port in front of the server at `address` (numeric: `192.0.2.1:5432`).
    ///
    /// Raises:
    ///     TargetError: The address is invalid, or the line cannot be opened.
    #[new]
    fn new(py: Python<'_>, address: &str, delay_ns: u64, rate_bit_per_s: Option<u64>) -> PyResult<Self> {
        let failed = |what: String| raise(py, "TargetError", &what);
        let server = address.parse().map_err(|_| failed(format!("{address} is no address of a server")))?;
        let opened = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            listener.set_nonblocking(true)?;
            Ok((Line::open(LineSpec { delay_ns, rate_bit_per_s })?, listener))
        };
        let (line, listener) = opened().map_err(|e: std::io::Error| failed(format!("a line cannot be opened: {e}")))?;
        Ok(Self { line, listener, server, knocking: Mutex::default() })
    }

    /// Return the port number.
    fn port(&self, py: Python<'_>) -> PyResult<u16> {
        let address = self.listener.local_addr().map_err(|e| raise(py, "TargetError", &e.to_string()))?;
        Ok(address.port())
    }

    /// Return the file descriptor, which is readable when a client connects.
    fn fileno(&self) -> i32 {
        self.listener.as_raw_fd()
    }

    /// Accept the next client and return the port it comes from, or None if there is none.
    ///
    /// The previous client is turned away if it was not let in.
    fn accept(&self) -> Option<u16> {
        drop(self.taken());
        let (stream, peer) = self.listener.accept().ok()?;
        *self.knocking.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
        Some(peer.port())
    }

    /// Connect the accepted client to the server.
    ///
    /// Raises:
    ///     TargetError: The server does not answer; the client's connection is closed.
    fn let_in(&self, py: Python<'_>) -> PyResult<()> {
        let Some(near) = self.taken() else { return Ok(()) };
        let connected = || {
            let server = TcpStream::connect_timeout(&self.server, Duration::from_secs(CONNECT_S))?;
            self.line.carry(near, server)
        };
        match py.detach(connected) {
            // The client has disconnected already: nothing is to be carried.
            Err(e) if e.kind() == ErrorKind::NotConnected => Ok(()),
            done => done.map_err(|e| raise(py, "TargetError", &format!("{}: {e}", self.server))),
        }
    }

    /// Close the connection of the accepted client.
    fn turn_away(&self) {
        drop(self.taken());
    }

    /// Return the line's lateness since the last call: number of pieces, sum and maximum of their lateness [ns].
    fn lateness(&self) -> (u64, u64, u64) {
        let late = self.line.lateness();
        (late.pieces, late.late_ns, late.late_max_ns)
    }
}
