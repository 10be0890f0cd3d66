//! Waiting for bytes on a Unix socket.
//!
//! On Linux a thread that blocks in `recv` on a Unix stream is woken twice per round trip: when the
//! server takes the request out of the socket's buffer (room to write), and when the answer is
//! there. Waiting with epoll for "readable" only saves that switch: measured here 1.0 instead of
//! 1.5 to 1.9 switches per round trip and a fifth of the CPU, for one more system call. TCP wakes
//! its readers for data only and needs none of this.

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
    use rustix::io::Errno;

    /// Waits until a socket is readable.
    #[derive(Debug)]
    pub struct Watch(OwnedFd);

    impl Watch {
        /// Watches this socket.
        pub fn new(stream: &UnixStream) -> io::Result<Self> {
            let watch = epoll::create(CreateFlags::CLOEXEC)?;
            epoll::add(&watch, stream, EventData::new_u64(0), EventFlags::IN)?;
            Ok(Self(watch))
        }

        /// Returns when there is something to read, an end of the stream, or an error.
        #[inline]
        pub fn wait(&self) -> io::Result<()> {
            let mut event = [Event { flags: EventFlags::IN, data: EventData::new_u64(0) }];
            loop {
                match epoll::wait(&self.0, &mut event[..], None) {
                    Ok(0) | Err(Errno::INTR) => {}
                    Ok(_) => return Ok(()),
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod linux {
    use std::io;
    use std::os::unix::net::UnixStream;

    /// Nothing to avoid here: the read itself waits.
    #[derive(Debug)]
    pub struct Watch;

    impl Watch {
        /// Watches this socket.
        pub fn new(_: &UnixStream) -> io::Result<Self> {
            Ok(Self)
        }

        /// Returns at once.
        pub fn wait(&self) -> io::Result<()> {
            Ok(())
        }
    }
}

pub use linux::Watch;
