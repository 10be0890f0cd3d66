//! Node numbers of files and folders, and their paths in the underlying folder.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo};

/// Number of the mounted folder itself.
pub const ROOT: u64 = 1;

/// Number of the hidden status file.
pub const STATUS_NUMBER: u64 = u64::MAX - 1;

/// Parent number of nodes that no longer have a name.
const NOWHERE: u64 = 0;

struct Node {
    parent: u64,
    name: OsString,
    below: (u64, u64),
}

/// Name and parent folder of each node, by node number.
pub struct Nodes {
    root: PathBuf,
    by_number: HashMap<u64, Node>,
    /// Node numbers by device and inode of the underlying file.
    numbers: HashMap<(u64, u64), u64>,
    next: u64,
}

impl Nodes {
    /// Returns node numbers for an empty folder: only the folder itself has one.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), by_number: HashMap::new(), numbers: HashMap::new(), next: ROOT + 1 }
    }

    /// Returns the path in the underlying folder of the node with this number; `None` if the number is unknown.
    pub fn path(&self, number: u64) -> Option<PathBuf> {
        let mut names = Vec::new();
        let mut at = number;
        while at != ROOT {
            let node = self.by_number.get(&at)?;
            names.push(&node.name);
            at = node.parent;
        }
        let mut path = self.root.clone();
        path.extend(names.iter().rev());
        Some(path)
    }

    /// Returns the path of a node relative to the mounted folder, for messages.
    pub fn shown(&self, number: u64) -> String {
        let path = self.path(number).unwrap_or_default();
        path.strip_prefix(&self.root).unwrap_or(&path).display().to_string()
    }

    /// Records that a name belongs to a file, and returns the file's node number: a new one if its inode is not known
    /// yet.
    pub fn adopt(&mut self, parent: u64, name: &OsStr, found: &Metadata) -> u64 {
        let below = (found.dev(), found.ino());
        let number = *self.numbers.entry(below).or_insert_with(|| {
            self.next += 1;
            self.next - 1
        });
        self.by_number.insert(number, Node { parent, name: name.to_owned(), below });
        number
    }

    /// Records the new folder and name of a node.
    pub fn place(&mut self, number: u64, parent: u64, name: &OsStr) {
        if let Some(node) = self.by_number.get_mut(&number) {
            (node.parent, node.name) = (parent, name.to_owned());
        }
    }

    /// Returns the node number of a file, or `None` if its inode is not known.
    pub fn known(&self, found: &Metadata) -> Option<u64> {
        self.numbers.get(&(found.dev(), found.ino())).copied()
    }

    /// Records that a file that still exists has no name any longer.
    pub fn displace(&mut self, number: u64) {
        if let Some(node) = self.by_number.get_mut(&number) {
            node.parent = NOWHERE;
        }
    }

    /// Forgets a deleted file, so that a new file with the same inode gets another number.
    pub fn forget(&mut self, number: u64) {
        if let Some(node) = self.by_number.get(&number) {
            self.numbers.remove(&node.below);
        }
        self.displace(number);
    }
}

/// Returns the attributes of an underlying file, with its node number.
pub fn attributes(number: u64, of: &Metadata) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        size: of.size(),
        blocks: of.blocks(),
        atime: time(of.atime(), of.atime_nsec()),
        mtime: time(of.mtime(), of.mtime_nsec()),
        ctime: time(of.ctime(), of.ctime_nsec()),
        crtime: UNIX_EPOCH,
        kind: FileType::from_std(of.file_type()).unwrap_or(FileType::RegularFile),
        perm: (of.mode() & 0o7777) as u16,
        nlink: of.nlink() as u32,
        uid: of.uid(),
        gid: of.gid(),
        rdev: of.rdev() as u32,
        blksize: 4_096,
        flags: 0,
    }
}

fn time(seconds: i64, nanoseconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::new(seconds.max(0) as u64, nanoseconds as u32)
}
