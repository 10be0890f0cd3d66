//! Kernel requests, passed on to the files and names of the mounted folder.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig, LockOwner,
    OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use crate::filesystem::{DeviceFiles, KEEP, Opened, locked};
use crate::names::Wanted;
use crate::nodes::STATUS_NUMBER;
use crate::status::Transport;

const FIRST: Generation = Generation(0);
/// Largest write that the kernel sends in one request [bytes].
pub const LARGEST_WRITE: u32 = 1 << 20;
/// Number of background requests that the kernel may have outstanding.
const AT_ONCE: u16 = 512;

fn entry(reply: ReplyEntry, found: Result<fuser::FileAttr, Errno>) {
    match found {
        Ok(attributes) => reply.entry(&KEEP, &attributes, FIRST),
        Err(error) => reply.error(error),
    }
}

fn empty(reply: ReplyEmpty, done: Result<(), Errno>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for DeviceFiles {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let mut wanted = InitFlags::FUSE_ASYNC_DIO | InitFlags::FUSE_PARALLEL_DIROPS;
        if self.0.kernel_writeback {
            wanted |= InitFlags::FUSE_WRITEBACK_CACHE;
        }
        if self.0.transport == Transport::Ring && config.capabilities().contains(InitFlags::FUSE_OVER_IO_URING) {
            wanted |= InitFlags::FUSE_OVER_IO_URING;
        }
        // A kernel that lacks one works without it.
        let _ = config.add_capabilities(wanted & config.capabilities());
        let _ = config.set_max_write(LARGEST_WRITE);
        let _ = config.set_max_background(AT_ONCE);
        let _ = config.set_congestion_threshold(AT_ONCE);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(reply, self.0.lookup(parent.0, name));
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.0.attributes(ino.0) {
            Ok(attributes) => reply.attr(&KEEP, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let wanted = Wanted { mode, owner: (uid, gid), size, times: (atime, mtime) };
        match self.0.set(ino.0, &wanted) {
            Ok(attributes) => reply.attr(&KEEP, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        match self.0.path(ino.0).and_then(|path| Ok(fs::read_link(path)?)) {
            Ok(target) => reply.data(target.as_os_str().as_encoded_bytes()),
            Err(error) => reply.error(error),
        }
    }

    fn mkdir(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let made = self.0.make(req, parent.0, name, |path| fs::DirBuilder::new().mode(mode & !umask).create(path));
        entry(reply, made);
    }

    fn symlink(&self, req: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        entry(reply, self.0.make(req, parent.0, name, |path| std::os::unix::fs::symlink(target, path)));
    }

    fn link(&self, req: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let source = self.0.path(ino.0);
        match source {
            Ok(source) => entry(reply, self.0.make(req, parent.0, name, |path| fs::hard_link(source, path))),
            Err(error) => reply.error(error),
        }
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.0.remove(parent.0, name, false));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.0.remove(parent.0, name, true));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        empty(reply, self.0.rename((parent.0, name), (new_parent.0, new_name), flags));
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if ino.0 == STATUS_NUMBER {
            let text = serde_json::to_string(&self.0.status()).unwrap_or_default();
            return reply.opened(self.0.keep(Opened::Status(text)), FopenFlags::FOPEN_DIRECT_IO);
        }
        match self.0.open_below(ino.0) {
            Ok(file) => reply.opened(self.0.keep(Opened::File(ino.0, file)), self.0.open_flags(flags.0)),
            Err(error) => reply.error(error),
        }
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let made = self.0.make(req, parent.0, name, |path| {
            File::options().read(true).write(true).create_new(true).mode(mode & !umask).open(path).map(|_| ())
        });
        let opened = made.and_then(|made| Ok((made, self.0.open_below(made.ino.0)?)));
        match opened {
            Ok((made, file)) => {
                let handle = self.0.keep(Opened::File(made.ino.0, file));
                reply.created(&KEEP, &made, FIRST, handle, self.0.open_flags(flags));
            }
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.0.read(fh, offset, size, |read| match read {
            Ok(content) => reply.data(&content),
            Err(error) => reply.error(error),
        });
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let size = data.len() as u32;
        self.0.write(fh, offset, data, move |written| match written {
            Ok(()) => reply.written(size),
            Err(error) => reply.error(error),
        });
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Closing a file makes nothing durable.
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        fh: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        locked(&self.0.opened).remove(&fh.0);
        reply.ok();
    }

    fn fsync(&self, _: &Request, ino: INodeNo, fh: FileHandle, _: bool, reply: ReplyEmpty) {
        self.0.sync(ino.0, fh, |done| empty(reply, done));
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, fh: FileHandle, _: bool, reply: ReplyEmpty) {
        self.0.sync(ino.0, fh, |done| empty(reply, done));
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.0.entries(ino.0) {
            Ok(entries) => reply.opened(self.0.keep(entries), FopenFlags::empty()),
            Err(error) => reply.error(error),
        }
    }

    fn readdir(&self, _: &Request, _: INodeNo, fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if let Ok(Opened::Folder(entries)) = self.0.opened(fh).as_deref() {
            for (at, (number, kind, name)) in entries.iter().enumerate().skip(offset as usize) {
                if reply.add(INodeNo(*number), at as u64 + 1, *kind, name) {
                    break;
                }
            }
        }
        reply.ok();
    }

    fn releasedir(&self, _: &Request, _: INodeNo, fh: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        locked(&self.0.opened).remove(&fh.0);
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let Ok(below) = nix::sys::statvfs::statvfs(&self.0.root) else { return reply.error(Errno::EIO) };
        let block = below.block_size().max(512);
        let capacity = self.0.clock.as_ref().map_or(u64::MAX, |clock| clock.capacity_bytes() / block);
        let used = locked(&self.0.extents).used_bytes() / block;
        let all = below.blocks().min(capacity);
        let free = below.blocks_available().min(capacity.saturating_sub(used));
        reply.statfs(all, free, free, below.files(), below.files_free(), block as u32, 255, block as u32);
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let arrived_ns = self.0.arrival_ns();
        match self.0.allocate(fh, offset, length, mode) {
            Ok(ranges) => self.0.discard(arrived_ns, ranges, reply),
            Err(error) => reply.error(error),
        }
    }

    fn destroy(&mut self) {
        self.0.ended.store(true, Ordering::Relaxed);
    }
}
