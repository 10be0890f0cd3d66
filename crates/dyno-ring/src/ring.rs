//! The ring: its thread waits for requests, and commits replies.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::squeue::Entry128;
use io_uring::{EnterFlags, IoUring, cqueue, opcode, types};

use crate::memory::{Entries, Request};

/// `FUSE_IO_URING_CMD_REGISTER`: offers a new entry.
const REGISTER: u32 = 1;
/// `FUSE_IO_URING_CMD_COMMIT_AND_FETCH`: answers a request, and offers its entry again.
const COMMIT_AND_FETCH: u32 = 2;
/// Number that marks the completion of a wake-up.
const WOKEN: u64 = u64::MAX;
/// Number of segments of an entry: one for the header, one for the payload.
const SEGMENTS: u32 = 2;

/// How long to wait for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    None,
    /// This time at most.
    AtMost(Duration),
    /// Until a request arrives, or a [`Waker`] is used.
    Forever,
}

/// Handle that ends a wait of the ring from another thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<File>);

impl Waker {
    /// Ends the current or the next wait.
    pub fn wake(&self) {
        // The counter of an eventfd takes 2^64 - 2 wake-ups.
        let _ = (&*self.0).write(&1_u64.to_ne_bytes());
    }
}

/// A ring with entries for all queues of a FUSE connection; see the [crate](crate).
pub struct Ring {
    // First, so that it is closed before its memory is freed.
    uring: IoUring<Entry128>,
    entries: Entries,
    queues: u16,
    fuse: Option<OwnedFd>,
    alive: usize,
    waker: Waker,
    wakes: Box<[u8; 8]>,
    full: Vec<u32>,
}

impl Ring {
    /// Makes a ring with `depth` entries for each of `queues` queues, each with a payload of `payload_bytes`. The
    /// thread that makes it is the only one that may use it.
    ///
    /// # Errors
    /// The kernel does not support such a ring, or refuses it to this process.
    pub fn new(queues: u16, depth: u16, payload_bytes: usize) -> io::Result<Self> {
        let count = usize::from(queues) * usize::from(depth);
        let size = (count as u32 + 2).next_power_of_two();
        let uring =
            IoUring::<Entry128, cqueue::Entry>::builder().setup_single_issuer().setup_defer_taskrun().build(size)?;
        Ok(Self {
            uring,
            entries: Entries::new(count, payload_bytes)?,
            queues,
            fuse: None,
            alive: 0,
            waker: Waker(Arc::new(event_counter()?)),
            wakes: Box::new([0; 8]),
            full: Vec::with_capacity(count),
        })
    }

    /// Returns a handle that ends waits.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Offers all entries to the kernel for requests of an opened `/dev/fuse` whose mount has agreed to use them.
    ///
    /// # Errors
    /// The kernel refuses an entry.
    pub fn register(&mut self, fuse: OwnedFd) -> io::Result<()> {
        let file = fuse.as_raw_fd();
        self.fuse = Some(fuse);
        let depth = self.entries.count() / usize::from(self.queues);
        for entry in 0..self.entries.count() {
            let command = command(file, REGISTER, 0, (entry / depth) as u16).addr(Some(self.entries.segments(entry)));
            self.push(&with_length(command.build(), SEGMENTS).user_data(entry as u64))?;
        }
        self.listen()?;
        self.alive = self.entries.count();
        self.uring.submit()?;
        // A refusal is there at once; a request may be, too.
        self.enter(Wait::None)?;
        let mut refused = None;
        for completion in self.uring.completion() {
            match (completion.user_data(), completion.result()) {
                (WOKEN, _) => {}
                (entry, 0) => self.full.push(entry as u32),
                (_, error) => refused = Some(io::Error::from_raw_os_error(-error)),
            }
        }
        refused.map_or(Ok(()), Err)
    }

    /// Submits the committed replies, waits, and adds the entries with requests to `full`. Returns false once the
    /// connection has ended.
    ///
    /// # Errors
    /// A system call fails.
    pub fn wait(&mut self, wait: Wait, full: &mut Vec<u32>) -> io::Result<bool> {
        full.append(&mut self.full);
        self.enter(if full.is_empty() { wait } else { Wait::None })?;
        let mut woken = false;
        for completion in self.uring.completion() {
            match (completion.user_data(), completion.result()) {
                (WOKEN, _) => woken = true,
                (entry, 0) => full.push(entry as u32),
                _ => self.alive -= 1,
            }
        }
        if woken {
            self.listen()?;
        }
        Ok(self.alive > 0)
    }

    /// Returns the request of an entry.
    pub fn request(&self, entry: u32) -> Request<'_> {
        self.entries.request(entry as usize)
    }

    /// Answers the request of an entry with an error (negative) or content, and offers the entry again. The answer is
    /// sent at the next wait.
    ///
    /// # Errors
    /// A system call fails.
    pub fn commit(&mut self, entry: u32, error: i32, content: &[u8]) -> io::Result<()> {
        let Some(file) = self.fuse.as_ref().map(AsRawFd::as_raw_fd) else { return Ok(()) };
        let id = self.entries.reply(entry as usize, error, content);
        let depth = self.entries.count() / usize::from(self.queues);
        let queue = (entry as usize / depth) as u16;
        self.push(&command(file, COMMIT_AND_FETCH, id, queue).build().user_data(u64::from(entry)))
    }

    /// Requests a completion at the next wake-up.
    fn listen(&mut self) -> io::Result<()> {
        let counter = types::Fd(self.waker.0.as_raw_fd());
        let read = opcode::Read::new(counter, self.wakes.as_mut_ptr(), 8).build().user_data(WOKEN);
        self.push(&read.into())
    }

    #[allow(unsafe_code)]
    fn push(&mut self, entry: &Entry128) -> io::Result<()> {
        loop {
            // SAFETY: what an entry points to (segments, payloads, `wakes`) lives as long as the ring.
            if unsafe { self.uring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            self.uring.submit()?;
        }
    }

    #[allow(unsafe_code)]
    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        let entered = match wait {
            Wait::Forever => self.uring.submit_and_wait(1),
            Wait::AtMost(time) => {
                let time = types::Timespec::from(time);
                self.uring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&time))
            }
            Wait::None => {
                let count = self.uring.submission().len() as u32;
                let flags = EnterFlags::GETEVENTS.bits();
                // SAFETY: there is no argument.
                unsafe { self.uring.submitter().enter::<libc::sigset_t>(count, 0, flags, None) }
            }
        };
        match entered {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => Ok(()),
            other => other.map(drop),
        }
    }
}

/// Returns a FUSE command for `io_uring` with its arguments (`fuse_uring_cmd_req`).
fn command(file: i32, code: u32, commit_id: u64, queue: u16) -> opcode::UringCmd80 {
    let mut arguments = [0; 80];
    arguments[8..16].copy_from_slice(&commit_id.to_ne_bytes());
    arguments[16..18].copy_from_slice(&queue.to_ne_bytes());
    opcode::UringCmd80::new(types::Fd(file), code).cmd(arguments)
}

/// Sets the length of a submission, which its builder leaves at 0.
#[allow(unsafe_code)]
fn with_length(mut entry: Entry128, length: u32) -> Entry128 {
    const LENGTH: usize = 24;
    const { assert!(size_of::<Entry128>() == 128) };
    let place = std::ptr::from_mut(&mut entry).cast::<[u8; 4]>();
    // SAFETY: `io_uring_sqe` has its length in the four bytes at 24.
    unsafe { place.add(LENGTH / 4).write(length.to_ne_bytes()) };
    entry
}

#[allow(unsafe_code)]
fn event_counter() -> io::Result<File> {
    // SAFETY: the call has no memory; its result is a new descriptor, or an error.
    unsafe {
        match libc::eventfd(0, libc::EFD_CLOEXEC) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(File::from_raw_fd(descriptor)),
        }
    }
}
