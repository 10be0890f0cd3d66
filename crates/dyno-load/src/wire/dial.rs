//! Opening of sockets: from a host name or a folder to a connected socket with keepalive settings.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::net::{AddressFamily, SocketType, sockopt};

use super::WireError;
use super::stream::{Patience, Stream};
use crate::connection::{ConnectionSpec, Engine, Liveness};

/// Opens a non-blocking socket.
///
/// # Errors
/// No address of the host accepts the connection, or the attempt is stopped or times out.
pub fn open(spec: &ConnectionSpec, patience: &Patience) -> Result<Stream, WireError> {
    if spec.is_unix() {
        let path: PathBuf = match spec.engine {
            Engine::Postgres => [&spec.host, &format!(".s.PGSQL.{}", spec.port)].iter().collect(),
            Engine::Mariadb => PathBuf::from(&spec.host),
        };
        let stream = UnixStream::connect(path).map_err(WireError::Io)?;
        stream.set_nonblocking(true).map_err(WireError::Io)?;
        return Ok(Stream::Unix(stream));
    }
    let host = spec.hostaddr.as_deref().unwrap_or(&spec.host);
    let mut last = WireError::Io(io::Error::new(io::ErrorKind::NotFound, "the host name has no address"));
    for address in (host, spec.port).to_socket_addrs().map_err(WireError::Io)? {
        match open_tcp(address, patience) {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(WireError::Io)?;
                keep_alive(&stream, spec.liveness).map_err(WireError::Io)?;
                return Ok(Stream::Tcp(stream));
            }
            Err(e @ (WireError::Timeout | WireError::Stopped)) => return Err(e),
            Err(e) => last = e,
        }
    }
    Err(last)
}

fn open_tcp(address: SocketAddr, patience: &Patience) -> Result<TcpStream, WireError> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket(family, SocketType::STREAM, None).map_err(io::Error::from)?;
    // In two steps: not every system makes a socket with these flags.
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC).map_err(io::Error::from)?;
    rustix::io::ioctl_fionbio(&socket, true).map_err(io::Error::from)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) => {}
        Err(rustix::io::Errno::INPROGRESS | rustix::io::Errno::INTR) => {
            patience.wait(&socket, PollFlags::OUT)?;
            sockopt::socket_error(&socket).map_err(io::Error::from)?.map_err(io::Error::from)?;
        }
        Err(e) => return Err(io::Error::from(e).into()),
    }
    Ok(socket.into())
}

fn keep_alive(stream: &TcpStream, how: Liveness) -> io::Result<()> {
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    sockopt::set_socket_keepalive(stream, how.keepalives)?;
    if how.keepalives && how.keepalives_idle_s > 0 {
        sockopt::set_tcp_keepidle(stream, seconds(how.keepalives_idle_s))?;
    }
    if how.keepalives && how.keepalives_interval_s > 0 {
        sockopt::set_tcp_keepintvl(stream, seconds(how.keepalives_interval_s))?;
    }
    if how.keepalives && how.keepalives_count > 0 {
        sockopt::set_tcp_keepcnt(stream, how.keepalives_count)?;
    }
    #[cfg(target_os = "linux")]
    if how.tcp_user_timeout_ms > 0 {
        sockopt::set_tcp_user_timeout(stream, how.tcp_user_timeout_ms)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn spec(port: u16, liveness: &str) -> ConnectionSpec {
        let text = format!(
            r#"{{"host": "db.example", "hostaddr": "127.0.0.1", "port": {port}, "user": "u", "dbname": "d",
                "liveness": {liveness}}}"#
        );
        serde_json::from_str(&text).expect("is good")
    }

    fn dial(liveness: &str) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let patience = Patience::new(Some(Duration::from_secs(5)), &Arc::new(AtomicBool::new(false)));
        match open(&spec(port, liveness), &patience).expect("connects to the address, not to the name") {
            Stream::Tcp(stream) => stream,
            Stream::Unix(_) => unreachable!("not a folder"),
        }
    }

    #[test]
    fn a_connection_notices_a_silent_network_by_itself() {
        let stream = dial("{}");
        assert!(sockopt::socket_keepalive(&stream).expect("asks"));
        assert_eq!(sockopt::tcp_keepidle(&stream).expect("asks"), Duration::from_secs(10));
        assert_eq!(sockopt::tcp_keepintvl(&stream).expect("asks"), Duration::from_secs(5));
        assert_eq!(sockopt::tcp_keepcnt(&stream).expect("asks"), 3);
        #[cfg(target_os = "linux")]
        assert_eq!(sockopt::tcp_user_timeout(&stream).expect("asks"), 25_000);
    }

    #[test]
    fn the_users_own_values_count() {
        let stream = dial(r#"{"keepalives": false, "tcp_user_timeout_ms": 0}"#);
        assert!(!sockopt::socket_keepalive(&stream).expect("asks"));
        let stream = dial(r#"{"keepalives_idle_s": 77}"#);
        assert_eq!(sockopt::tcp_keepidle(&stream).expect("asks"), Duration::from_secs(77));
    }
}
