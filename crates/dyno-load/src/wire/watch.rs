//! Waiting for bytes on a Unix socket.
//!
//! On Linux a thread that blocks in `recv` on a Unix stream is woken twice per round trip: when the
//! server takes the request out of the socket's buffer (room to write), and when the answer is
//! there. Waiting with epoll for "readable" only saves that switch: measured here 1.0 instead of
//! 1.5 to 1.9 switches per round trip and a fifth of the CPU, for one more system call. TCP wakes
//! its readers for data only and needs none of this.
//!
//! The watch is edge-triggered, which saves a second look at the socket per wait. So it may be
//! waited for only when all that had come was read: after a read that did not fill its buffer. A
//! wait that returns too early does no harm, because the read itself blocks.

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, Read};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
    use rustix::io::Errno;

    /// Waits until a socket is readable.
    #[derive(Debug)]
    pub struct Watch {
        epoll: OwnedFd,
        drained: bool,
    }

    impl Watch {
        /// Watches this socket.
        pub fn new(stream: &UnixStream) -> io::Result<Self> {
            let epoll = epoll::create(CreateFlags::CLOEXEC)?;
            epoll::add(&epoll, stream, EventData::new_u64(0), EventFlags::IN | EventFlags::ET)?;
            Ok(Self { epoll, drained: true })
        }

        /// Reads when there is something to read, an end of the stream, or an error.
        #[inline]
        pub fn read(&mut self, stream: &mut UnixStream, buf: &mut [u8]) -> io::Result<usize> {
            if self.drained {
                self.wait()?;
            }
            let count = stream.read(buf)?;
            self.drained = count < buf.len();
            Ok(count)
        }

        fn wait(&self) -> io::Result<()> {
            let mut event = [Event { flags: EventFlags::IN, data: EventData::new_u64(0) }];
            loop {
                match epoll::wait(&self.epoll, &mut event[..], None) {
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
    use std::io::{self, Read};
    use std::os::unix::net::UnixStream;

    /// Nothing to avoid here: the read itself waits.
    #[derive(Debug)]
    pub struct Watch;

    impl Watch {
        /// Watches this socket.
        pub fn new(_: &UnixStream) -> io::Result<Self> {
            Ok(Self)
        }

        /// Reads.
        pub fn read(&mut self, stream: &mut UnixStream, buf: &mut [u8]) -> io::Result<usize> {
            stream.read(buf)
        }
    }
}

pub use linux::Watch;
