//! Names, folders and attributes of the mounted folder.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::SystemTime;

use fuser::{Errno, FileHandle, FileType, RenameFlags, Request, TimeOrNow};
use nix::fcntl::FallocateFlags;

use crate::filesystem::{Opened, Shared, locked};
use crate::nodes::{ROOT, STATUS_NUMBER, attributes};
use crate::orders::Range;
use crate::status::STATUS;
use crate::undo::{Change, is_hidden};

/// Changes of attributes that a program requests.
pub struct Wanted {
    pub mode: Option<u32>,
    pub owner: (Option<u32>, Option<u32>),
    pub size: Option<u64>,
    pub times: (Option<TimeOrNow>, Option<TimeOrNow>),
}

impl Shared {
    pub fn attributes(&self, number: u64) -> Result<fuser::FileAttr, Errno> {
        if number == STATUS_NUMBER {
            let mut attributes = attributes(number, &self.root.symlink_metadata()?);
            (attributes.kind, attributes.perm, attributes.size) = (FileType::RegularFile, 0o666, 0);
            return Ok(attributes);
        }
        let found = match self.path(number) {
            Ok(path) => path.symlink_metadata()?,
            // Removed, and still open.
            Err(error) => self.open_file(number).ok_or(error)?,
        };
        Ok(attributes(number, &found))
    }

    fn open_file(&self, number: u64) -> Option<Metadata> {
        locked(&self.opened).values().find_map(|opened| match &**opened {
            Opened::File(of, file) if *of == number => file.metadata().ok(),
            _ => None,
        })
    }

    pub fn lookup(&self, parent: u64, name: &OsStr) -> Result<fuser::FileAttr, Errno> {
        if parent == ROOT && name == STATUS {
            return self.attributes(STATUS_NUMBER);
        }
        if parent == ROOT && is_hidden(name) {
            return Err(Errno::ENOENT);
        }
        let found = self.place(parent, name)?.symlink_metadata()?;
        let number = locked(&self.nodes).adopt(parent, name, &found);
        Ok(attributes(number, &found))
    }

    /// Creates a file, folder or link under a new name, and makes the program's user its owner.
    pub fn make(
        &self,
        req: &Request,
        parent: u64,
        name: &OsStr,
        work: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<fuser::FileAttr, Errno> {
        self.change(|| {
            let path = self.place(parent, name)?;
            work(&path)?;
            if nix::unistd::geteuid().is_root() {
                std::os::unix::fs::lchown(&path, Some(req.uid()), Some(req.gid()))?;
            }
            if let Some(mut undoable) = self.undoable() {
                undoable.changes.add(Change::Made((parent, name.to_owned())));
            }
            self.lookup(parent, name)
        })
    }

    pub fn open_below(&self, number: u64) -> Result<File, Errno> {
        let path = self.path(number)?;
        let both = File::options().read(true).write(true).open(&path);
        // What cannot be written is opened for reading: the kernel has checked what the program may do.
        Ok(both.or_else(|_| File::open(&path))?)
    }

    pub fn remove(&self, parent: u64, name: &OsStr, is_folder: bool) -> Result<(), Errno> {
        self.change(|| {
            let path = self.place(parent, name)?;
            let found = path.symlink_metadata()?;
            let number = locked(&self.nodes).known(&found);
            let place = (parent, name.to_owned());
            match (self.undoable(), is_folder) {
                (None, true) => fs::remove_dir(&path)?,
                (None, false) => fs::remove_file(&path)?,
                (Some(mut undoable), true) => {
                    fs::remove_dir(&path)?;
                    undoable.changes.add(Change::RemovedFolder(place));
                }
                (Some(mut undoable), false) => {
                    let kept = undoable.changes.keep(&path)?;
                    undoable.changes.add(Change::Removed(place, number.unwrap_or(0), kept));
                }
            }
            let Some(number) = number else { return Ok(()) };
            let mut nodes = locked(&self.nodes);
            if self.undoable.is_some() || found.nlink() > 1 && !is_folder {
                nodes.displace(number);
            } else {
                nodes.forget(number);
                drop(nodes);
                let free = locked(&self.extents).free(number, 0);
                self.forget_ranges(free);
            }
            Ok(())
        })
    }

    pub fn rename(&self, from: (u64, &OsStr), to: (u64, &OsStr), flags: RenameFlags) -> Result<(), Errno> {
        self.change(|| {
            let (former, new) = (self.place(from.0, from.1)?, self.place(to.0, to.1)?);
            if !(flags - RenameFlags::RENAME_NOREPLACE).is_empty() {
                return Err(Errno::EINVAL);
            }
            let replaced = new.symlink_metadata().ok();
            if flags.contains(RenameFlags::RENAME_NOREPLACE) && replaced.is_some() {
                return Err(Errno::EEXIST);
            }
            let number = self.lookup(from.0, from.1)?.ino.0;
            let old = replaced.as_ref().and_then(|found| locked(&self.nodes).known(found)).filter(|&old| old != number);
            let is_file = replaced.as_ref().is_some_and(|found| !found.is_dir());
            if let Some(mut undoable) = self.undoable() {
                let kept = if is_file { Some((old.unwrap_or(0), undoable.changes.keep(&new)?)) } else { None };
                fs::rename(&former, &new)?;
                let (from, to) = ((from.0, from.1.to_owned()), (to.0, to.1.to_owned()));
                undoable.changes.add(Change::Renamed { from, to, number, replaced: kept });
            } else {
                fs::rename(&former, &new)?;
            }
            let mut nodes = locked(&self.nodes);
            if let Some(old) = old {
                if self.undoable.is_some() { nodes.displace(old) } else { nodes.forget(old) }
            }
            nodes.place(number, to.0, to.1);
            drop(nodes);
            let is_last = replaced.is_some_and(|found| found.nlink() == 1);
            if let Some(old) = old.filter(|_| is_last && self.undoable.is_none()) {
                let free = locked(&self.extents).free(old, 0);
                self.forget_ranges(free);
            }
            Ok(())
        })
    }

    pub fn set(&self, number: u64, wanted: &Wanted) -> Result<fuser::FileAttr, Errno> {
        if number == STATUS_NUMBER {
            return self.attributes(number);
        }
        self.change(|| {
            let path = self.path(number);
            if let (Some(mode), Ok(path)) = (wanted.mode, &path) {
                fs::set_permissions(path, Permissions::from_mode(mode & 0o7777))?;
            }
            if let ((Some(_), _) | (_, Some(_)), Ok(path)) = (wanted.owner, &path) {
                std::os::unix::fs::lchown(path, wanted.owner.0, wanted.owner.1)?;
            }
            if let Some(size) = wanted.size {
                self.resize(number, size)?;
            }
            if let ((Some(_), _) | (_, Some(_)), Ok(path)) = (&wanted.times, &path) {
                set_times(path, &wanted.times);
            }
            self.attributes(number)
        })
    }

    fn resize(&self, number: u64, size: u64) -> Result<(), Errno> {
        let by_handle = locked(&self.opened).values().find_map(|opened| match &**opened {
            Opened::File(of, file) if *of == number => file.try_clone().ok(),
            _ => None,
        });
        let file = by_handle.map_or_else(|| self.open_below(number), Ok)?;
        if let Some(mut undoable) = self.undoable() {
            undoable.journal.before_resize(number, &file, size)?;
        }
        file.set_len(size)?;
        let free = locked(&self.extents).free(number, size);
        self.forget_ranges(free);
        Ok(())
    }

    pub fn entries(&self, number: u64) -> Result<Opened, Errno> {
        let mut found = vec![(number, FileType::Directory, ".".into()), (ROOT, FileType::Directory, "..".into())];
        for entry in fs::read_dir(self.path(number)?)? {
            let entry = entry?;
            let name = entry.file_name();
            if number == ROOT && is_hidden(&name) {
                continue;
            }
            let Ok(below) = entry.path().symlink_metadata() else { continue };
            let inside = locked(&self.nodes).adopt(number, &name, &below);
            found.push((inside, FileType::from_std(below.file_type()).unwrap_or(FileType::RegularFile), name));
        }
        Ok(Opened::Folder(found))
    }

    /// Allocates a range of a file, or punches a hole; returns the ranges of the device that must be discarded.
    pub fn allocate(&self, handle: FileHandle, offset: u64, length: u64, mode: i32) -> Result<Vec<Range>, Errno> {
        let opened = self.opened(handle)?;
        let Opened::File(number, file) = &*opened else { return Err(Errno::EBADF) };
        let flags = FallocateFlags::from_bits_truncate(mode);
        let punches = flags.intersects(FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_ZERO_RANGE);
        self.change(|| {
            if let Some(mut undoable) = self.undoable() {
                let bytes = if punches { length } else { 0 };
                undoable.journal.before_write(*number, file, offset, bytes)?;
            }
            let done = nix::fcntl::fallocate(file, flags, offset as i64, length as i64);
            done.map_err(|error| Errno::from(io::Error::from(error)))?;
            let is_hole = flags.contains(FallocateFlags::FALLOC_FL_PUNCH_HOLE);
            Ok(if is_hole { locked(&self.extents).ranges(*number, offset, length) } else { Vec::new() })
        })
    }
}

fn set_times(path: &Path, (accessed, modified): &(Option<TimeOrNow>, Option<TimeOrNow>)) {
    let time = |of: &TimeOrNow| match of {
        TimeOrNow::SpecificTime(time) => *time,
        TimeOrNow::Now => SystemTime::now(),
    };
    let mut times = FileTimes::new();
    if let Some(accessed) = accessed {
        times = times.set_accessed(time(accessed));
    }
    if let Some(modified) = modified {
        times = times.set_modified(time(modified));
    }
    // A link or a file without rights keeps its times: nothing depends on them.
    let _ = File::open(path).and_then(|file| file.set_times(times));
}
