//! A longer line that has a port: for clients that are other programs.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dyno_load::{Line, LineSpec};
use pyo3::prelude::*;

use crate::errors::raise;

/// Longest wait for the server [s].
const CONNECT_S: u64 = 10;

/// A port on 127.0.0.1 in front of a server. It lets nobody through by itself: whoever knocks waits until it is said
/// which server's connection it gets, or that it gets none.
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
    /// Opens a port in front of the server at `address` (numbers: `192.0.2.1:5432`). Raises `TargetError`.
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

    /// Its number.
    fn port(&self, py: Python<'_>) -> PyResult<u16> {
        let address = self.listener.local_addr().map_err(|e| raise(py, "TargetError", &e.to_string()))?;
        Ok(address.port())
    }

    /// Its descriptor, which is readable when somebody knocks.
    fn fileno(&self) -> i32 {
        self.listener.as_raw_fd()
    }

    /// Whoever knocks next, by the port it comes from; None where there is nobody. The one before is turned away.
    fn accept(&self) -> Option<u16> {
        drop(self.taken());
        let (stream, peer) = self.listener.accept().ok()?;
        *self.knocking.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
        Some(peer.port())
    }

    /// Connects whoever knocked to the server. Raises `TargetError` where the server does not answer; the one who
    /// knocked finds its connection closed.
    fn let_in(&self, py: Python<'_>) -> PyResult<()> {
        let Some(near) = self.taken() else { return Ok(()) };
        let connected = || {
            let server = TcpStream::connect_timeout(&self.server, Duration::from_secs(CONNECT_S))?;
            self.line.carry(near, server)
        };
        match py.detach(connected) {
            // Gone already: nothing is to be carried.
            Err(e) if e.kind() == ErrorKind::NotConnected => Ok(()),
            done => done.map_err(|e| raise(py, "TargetError", &format!("{}: {e}", self.server))),
        }
    }

    /// Turns whoever knocked away.
    fn turn_away(&self) {
        drop(self.taken());
    }

    /// How late the line was since this was last asked: pieces, the sum over them and the latest of them [ns].
    fn lateness(&self) -> (u64, u64, u64) {
        let late = self.line.lateness();
        (late.pieces, late.late_ns, late.late_max_ns)
    }
}
