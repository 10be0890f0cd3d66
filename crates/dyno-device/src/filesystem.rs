//! Files of the mounted folder: I/O is done in the underlying folder immediately, and the reply follows when the
//! modelled device is done.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use dyno_model::device::Kind;
use fuser::{Errno, FileHandle, FopenFlags, ReplyEmpty};

use crate::clock::Clock;
use crate::extents::Extents;
use crate::faults::{FaultKind, Faults, Operation};
use crate::journal::Journal;
use crate::nodes::Nodes;
use crate::orders::{Range, Reply, Timing};
use crate::status::{Status, Times, Transport};
use crate::undo::Changes;
use crate::write_hole::Hole;

/// Time for which the kernel may cache names and attributes, since nobody else changes the underlying folder.
pub const KEEP: Duration = Duration::from_secs(59);

/// Longest pause that a write to the status file can request [ns].
const LONGEST_PAUSE_NS: u64 = 1_000_000;

/// An open file or folder.
pub enum Opened {
    /// A file, with its node number.
    File(u64, File),
    /// A folder, with the number, kind and name of its entries.
    Folder(Vec<(u64, fuser::FileType, std::ffi::OsString)>),
    /// The status file, with its content at the time of opening.
    Status(String),
}

/// Journals of changes that a power cut can undo.
pub struct Undoable {
    /// Changes of file contents.
    pub journal: Journal,
    /// Changes of folders.
    pub changes: Changes,
}

/// Power state of the device.
#[derive(Default)]
pub struct Power {
    /// True if the power is off, so that every operation fails.
    pub off: bool,
}

/// State shared by all threads of a mount.
pub struct Shared {
    pub root: PathBuf,
    pub nodes: Mutex<Nodes>,
    pub opened: Mutex<HashMap<u64, Arc<Opened>>>,
    pub next_handle: AtomicU64,
    pub clock: Option<Clock>,
    pub extents: Mutex<Extents>,
    pub undoable: Option<Mutex<Undoable>>,
    pub faults: Faults,
    /// Array whose write hole a power cut opens.
    pub hole: Option<Hole>,
    pub power: RwLock<Power>,
    /// Number of changes until the power fails; `u64::MAX` for never.
    pub changes_left: AtomicU64,
    pub changes: AtomicU64,
    pub ended: AtomicBool,
    pub floor_ns: AtomicU64,
    pub floor_p99_ns: AtomicU64,
    pub wake_ns: AtomicU64,
    pub direct_io: bool,
    pub polls: bool,
    /// How the kernel passes requests to the mount.
    pub transport: Transport,
    pub kernel_writeback: bool,
    pub device: String,
}

pub fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The filesystem that the kernel calls.
pub struct DeviceFiles(pub Arc<Shared>);

impl Shared {
    /// Returns the path in the underlying folder of the node with this number.
    pub fn path(&self, number: u64) -> Result<PathBuf, Errno> {
        locked(&self.nodes).path(number).ok_or(Errno::ENOENT)
    }

    /// Returns the path in the underlying folder of a name in a folder.
    pub fn place(&self, parent: u64, name: &OsStr) -> Result<PathBuf, Errno> {
        Ok(self.path(parent)?.join(name))
    }

    /// Registers an open file or folder, and returns its handle.
    pub fn keep(&self, opened: Opened) -> FileHandle {
        let handle = self.next_handle.fetch_add(1, Ordering::Relaxed);
        locked(&self.opened).insert(handle, Arc::new(opened));
        FileHandle(handle)
    }

    pub fn opened(&self, handle: FileHandle) -> Result<Arc<Opened>, Errno> {
        locked(&self.opened).get(&handle.0).cloned().ok_or(Errno::EBADF)
    }

    /// Returns the flags that tell the kernel how to treat an open file.
    pub fn open_flags(&self, flags: i32) -> FopenFlags {
        if self.direct_io || flags & nix::libc::O_DIRECT != 0 {
            FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
        } else {
            FopenFlags::FOPEN_KEEP_CACHE
        }
    }

    /// Runs `work`, which changes files or folders; fails if the power is off, or goes off at this change.
    pub fn change<T>(&self, work: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
        let power = self.power.read().unwrap_or_else(PoisonError::into_inner);
        if power.off || self.ended.load(Ordering::Relaxed) {
            return Err(Errno::EIO);
        }
        self.changes.fetch_add(1, Ordering::Relaxed);
        let left = self.changes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            (left != u64::MAX).then(|| left.saturating_sub(1))
        });
        if left == Ok(0) {
            drop(power);
            self.power.write().unwrap_or_else(PoisonError::into_inner).off = true;
            return Err(Errno::EIO);
        }
        work()
    }

    /// Returns the journals, if power cuts are possible.
    pub fn undoable(&self) -> Option<MutexGuard<'_, Undoable>> {
        self.undoable.as_ref().map(locked)
    }

    /// Returns the arrival time of a request.
    pub fn arrival_ns(&self) -> u64 {
        self.clock.as_ref().map_or(0, Clock::now_ns)
    }

    /// Submits I/O on a range of a file to the device, and replies when the device has completed it.
    fn submit(&self, kind: Kind, number: u64, range: (u64, u64), arrived_ns: u64, reply: Reply) -> Result<(), Reply> {
        let Some(clock) = &self.clock else {
            reply();
            return Ok(());
        };
        let pieces = locked(&self.extents).pieces(kind, number, range.0, range.1);
        let Some(pieces) = pieces else { return Err(reply) };
        clock.submit(arrived_ns, pieces, reply);
        Ok(())
    }

    /// Allocates space for a range of a file, if the device is an array with a write hole.
    fn settle(&self, kind: Kind, number: u64, range: (u64, u64)) {
        if self.hole.is_some() {
            locked(&self.extents).pieces(kind, number, range.0, range.1);
        }
    }

    /// Replies when the device has completed a discard.
    pub fn discard(&self, arrived_ns: u64, ranges: Vec<Range>, reply: ReplyEmpty) {
        match &self.clock {
            Some(clock) if !ranges.is_empty() => clock.discard(arrived_ns, ranges, Box::new(move || reply.ok())),
            _ => reply.ok(),
        }
    }

    /// Informs the device that these ranges are free, without waiting for a reply.
    pub fn forget_ranges(&self, ranges: Vec<Range>) {
        if let Some(clock) = self.clock.as_ref().filter(|_| !ranges.is_empty()) {
            clock.discard(clock.now_ns(), ranges, Box::new(|| {}));
        }
    }

    /// Applies the fault rule that matches an operation, and returns the resulting error.
    fn strike(&self, operation: Operation, number: u64, offset: u64, bytes: u64) -> Result<Option<FaultKind>, Errno> {
        if self.faults.is_empty() {
            return Ok(None);
        }
        let file = || locked(&self.nodes).shown(number);
        let Some(rule) = self.faults.strike(operation, file, offset, bytes) else { return Ok(None) };
        match rule.kind {
            FaultKind::Eio => return Err(Errno::EIO),
            FaultKind::Enospc => return Err(Errno::ENOSPC),
            FaultKind::Slow => std::thread::sleep(Duration::from_millis(rule.ms)),
            FaultKind::Stuck => {
                while !self.ended.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(20));
                }
                return Err(Errno::EIO);
            }
            FaultKind::LyingFlush | FaultKind::FailedFlush => {}
            _ => debug_assert!(false, "no rule has this kind"),
        }
        Ok(Some(rule.kind))
    }

    /// Reads from an open file; `reply` gets the content, or an error.
    pub fn read(
        &self,
        handle: FileHandle,
        offset: u64,
        size: u32,
        reply: impl FnOnce(Result<Vec<u8>, Errno>) + Send + 'static,
    ) {
        let arrived_ns = self.arrival_ns();
        let found = self.opened(handle);
        let (number, file) = match found.as_deref() {
            Ok(Opened::File(number, file)) => (*number, file),
            Ok(Opened::Status(text)) => {
                let from = text.len().min(offset as usize);
                let to = text.len().min(from + size as usize);
                return reply(Ok(text.as_bytes()[from..to].to_vec()));
            }
            Ok(Opened::Folder(_)) => return reply(Err(Errno::EISDIR)),
            Err(error) => return reply(Err(*error)),
        };
        if self.power.read().unwrap_or_else(PoisonError::into_inner).off {
            return reply(Err(Errno::EIO));
        }
        if let Err(error) = self.strike(Operation::Read, number, offset, u64::from(size)) {
            return reply(Err(error));
        }
        let content = match read_all(file, offset, size as usize) {
            Ok(content) => content,
            Err(error) => return reply(Err(error.into())),
        };
        let range = (offset, content.len() as u64);
        self.settle(Kind::Read, number, range);
        let reply: Reply = Box::new(move || reply(Ok(content)));
        // A read finds space: what has none reads as zeros, without the device.
        if let Err(reply) = self.submit(Kind::Read, number, range, arrived_ns, reply) {
            reply();
        }
    }

    /// Writes to an open file; `reply` gets an error if it fails.
    pub fn write(
        &self,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        reply: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let arrived_ns = self.arrival_ns();
        let found = self.opened(handle);
        let (number, file) = match found.as_deref() {
            Ok(Opened::File(number, file)) => (*number, file),
            Ok(Opened::Status(_)) => return self.measure(offset, arrived_ns, reply),
            Ok(Opened::Folder(_)) => return reply(Err(Errno::EISDIR)),
            Err(error) => return reply(Err(*error)),
        };
        let bytes = data.len() as u64;
        let written = self.change(|| {
            self.strike(Operation::Write, number, offset, bytes)?;
            if let Some(mut undoable) = self.undoable() {
                undoable.journal.before_write(number, file, offset, bytes)?;
                undoable.journal.rewrite(number, offset, bytes);
                self.settle(Kind::Write, number, (offset, bytes));
                file.write_all_at(data, offset)?;
                return Ok(());
            }
            if self.clock.is_some() && locked(&self.extents).pieces(Kind::Write, number, offset, bytes).is_none() {
                return Err(Errno::ENOSPC);
            }
            Ok(file.write_all_at(data, offset)?)
        });
        if let Err(error) = written {
            return reply(Err(error));
        }
        let reply: Reply = Box::new(move || reply(Ok(())));
        if let Err(reply) = self.submit(Kind::Write, number, (offset, bytes), arrived_ns, reply) {
            reply();
        }
    }

    /// Replies to a write to the status file; such writes measure the cost of a request on this machine. The reply
    /// follows immediately, or after a pause whose length [ns] is the offset of the write.
    fn measure(&self, pause_ns: u64, arrived_ns: u64, reply: impl FnOnce(Result<(), Errno>) + Send + 'static) {
        match &self.clock {
            Some(clock) if (1..=LONGEST_PAUSE_NS).contains(&pause_ns) => {
                clock.pause(arrived_ns, pause_ns, Box::new(move || reply(Ok(()))));
            }
            _ => reply(Ok(())),
        }
    }

    /// Makes a file or folder durable, once the device has completed its flush.
    pub fn sync(&self, number: u64, handle: FileHandle, reply: impl FnOnce(Result<(), Errno>) + Send + 'static) {
        let arrived_ns = self.arrival_ns();
        let found = self.opened(handle);
        let synced = self.change(|| {
            let fault = self.strike(Operation::Flush, number, 0, 0)?;
            let Some(mut undoable) = self.undoable() else {
                return if fault == Some(FaultKind::FailedFlush) { Err(Errno::EIO) } else { Ok(()) };
            };
            match fault {
                Some(FaultKind::LyingFlush) => return Ok(()),
                Some(FaultKind::FailedFlush) => {
                    undoable.journal.fail_sync(number);
                    return Err(Errno::EIO);
                }
                _ => {}
            }
            let file = match found.as_deref() {
                Ok(Opened::File(_, file)) => Some(file),
                _ => None,
            };
            if let Some(file) = file {
                let size = file.metadata()?.len();
                undoable.journal.sync(number, size);
            }
            for gone in undoable.changes.sync(file.is_none().then_some(number)) {
                undoable.journal.forget(gone);
            }
            Ok(())
        });
        match (synced, &self.clock) {
            (Err(error), _) => reply(Err(error)),
            (Ok(()), None) => reply(Ok(())),
            (Ok(()), Some(clock)) => clock.flush(arrived_ns, Box::new(move || reply(Ok(())))),
        }
    }

    /// Returns the state of the mount.
    pub fn status(&self) -> Status {
        let none = Times::default();
        let timing = self.clock.as_ref().map_or_else(Timing::default, Clock::timing);
        let status = Status {
            device: self.device.clone(),
            back: self.root.display().to_string(),
            process: std::process::id(),
            floor_ns: self.floor_ns.load(Ordering::Relaxed),
            floor_p99_ns: self.floor_p99_ns.load(Ordering::Relaxed),
            wake_ns: self.wake_ns.load(Ordering::Relaxed),
            kernel_writeback: self.kernel_writeback,
            direct_io: self.direct_io,
            polls: self.polls,
            transport: self.transport,
            capacity_bytes: self.clock.as_ref().map_or(0, Clock::capacity_bytes),
            used_bytes: locked(&self.extents).used_bytes(),
            read: none,
            write: none,
            flush: none,
            discard: none,
            wear: self.clock.as_ref().map_or_else(Vec::new, Clock::wear),
            late: none,
            faults: self.faults.rows(),
        };
        status.with(&timing)
    }
}

fn read_all(file: &File, offset: u64, size: usize) -> io::Result<Vec<u8>> {
    let mut content = vec![0; size];
    let mut have = 0;
    while have < size {
        match file.read_at(&mut content[have..], offset + have as u64)? {
            0 => break,
            more => have += more,
        }
    }
    content.truncate(have);
    Ok(content)
}
