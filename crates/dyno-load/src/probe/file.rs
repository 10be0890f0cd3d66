//! Files of a log: created, filled, opened for the requested kind of I/O, removed.
//!
//! The probe never writes to a file that it did not create.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::fstatvfs;
#[cfg(target_os = "linux")]
use rustix::fs::{AtFlags, StatxFlags, fstatfs, statx};

use super::ProbeError;
use super::block::{HEAD, Head};
use super::buffer::Buffer;
use super::medium::FileMedium;
use super::size;
use super::spec::Sync;

/// Size of each write that fills a new file \[bytes\].
const FILL: usize = 1 << 20;
/// Free space that must remain on the file system in addition to the log \[bytes\].
const SPARE_BYTES: u64 = 16 << 20;
#[cfg(target_os = "linux")]
/// File system types of `statfs` that are in memory: tmpfs and ramfs.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// File of a log; removed when dropped, unless it is to be kept.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    keep: bool,
}

impl Drop for LogFile {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl LogFile {
    /// Creates the file, writes all of it once, forces it to the disk, and opens it for the log.
    ///
    /// It is filled with random bytes instead of only being allocated: the first write into an allocated but never
    /// written block also changes the file system's metadata, and some devices answer faster for blocks that hold
    /// zeros.
    ///
    /// # Errors
    /// The path names something that the probe did not create, there is too little space, or the I/O is refused.
    pub fn create(
        path: &Path,
        head: &Head,
        bytes: u64,
        sync: Sync,
        keep: bool,
    ) -> Result<(Self, FileMedium), ProbeError> {
        refuse_foreign(path)?;
        let fresh = !path.exists();
        let mut options = OpenOptions::new();
        options.write(true).create(true).custom_flags(libc::O_NOFOLLOW);
        let file = options.create_new(fresh).open(path).map_err(|e| ProbeError::io(path, "cannot be made", e))?;
        // Until the file is complete, one that existed before is kept and a new one is removed on drop.
        let mut made = Self { path: path.to_owned(), keep: !fresh };
        check_room(path, &file, bytes)?;
        check_direct(path, &file, sync, head.block_bytes)?;
        fill(&file, head, bytes).map_err(|e| ProbeError::io(path, "cannot be filled", e))?;
        let medium = open(path, sync, head.block_bytes)?;
        made.keep = keep;
        Ok((made, medium))
    }
}

/// Refuses every path that the probe did not create: devices, folders, and files with other content.
fn refuse_foreign(path: &Path) -> Result<(), ProbeError> {
    const OWN: &str = "name a new file; the probe creates and removes it";
    let kind = match fs::symlink_metadata(path) {
        Ok(about) => about.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(ProbeError::io(path, "cannot be looked at", error)),
    };
    let what = if kind.is_block_device() || kind.is_char_device() {
        "is a device, and the probe would destroy what is on it"
    } else if kind.is_symlink() {
        "is a symbolic link"
    } else if kind.is_dir() {
        "is a folder"
    } else if !kind.is_file() {
        "is no file"
    } else if read_head(path)?.is_none() {
        "is there already and was not made by the probe"
    } else {
        return Ok(());
    };
    Err(ProbeError::refused(path, what, OWN))
}

/// Returns the head of a file, or `None` if the probe did not create the file.
pub(super) fn read_head(path: &Path) -> Result<Option<Head>, ProbeError> {
    let mut bytes = Vec::with_capacity(HEAD);
    File::open(path)
        .and_then(|file| file.take(HEAD as u64).read_to_end(&mut bytes))
        .map_err(|e| ProbeError::io(path, "cannot be read", e))?;
    Ok(Head::read(&bytes))
}

pub(super) fn check_room(path: &Path, file: &File, bytes: u64) -> Result<(), ProbeError> {
    let about = fstatvfs(file).map_err(|e| ProbeError::io(path, "cannot be asked", e.into()))?;
    let held = file.metadata().map_or(0, |m| m.blocks() * 512);
    let free = about.f_bavail.saturating_mul(about.f_frsize) + held;
    if free >= bytes.saturating_add(SPARE_BYTES) {
        return Ok(());
    }
    Err(ProbeError::refused(
        path,
        format!(
            "{} and {} to spare are needed there, {} are free",
            size::said(bytes),
            size::said(SPARE_BYTES),
            size::said(free)
        ),
        "free space, choose a smaller --file-size, or another path",
    ))
}

/// Checks that direct I/O in blocks of this size is possible on the file.
#[cfg(not(target_os = "linux"))]
pub(super) fn check_direct(path: &Path, _file: &File, sync: Sync, _block: usize) -> Result<(), ProbeError> {
    if !sync.direct {
        return Ok(());
    }
    Err(ProbeError::refused(path, "direct I/O is measured on Linux only", "give --sync dsync or --sync fdatasync"))
}

/// Checks that direct I/O in blocks of this size is possible on the file.
#[cfg(target_os = "linux")]
pub(super) fn check_direct(path: &Path, file: &File, sync: Sync, block: usize) -> Result<(), ProbeError> {
    if !sync.direct {
        return Ok(());
    }
    let about = fstatfs(file).map_err(|e| ProbeError::io(path, "cannot be asked", e.into()))?;
    // The node of a device is on a file system in memory; the device itself is not.
    let device = file.metadata().is_ok_and(|m| m.file_type().is_block_device());
    if !device && IN_MEMORY.contains(&about.f_type) {
        return Err(ProbeError::refused(
            path,
            "lies in memory (tmpfs): there is no device, so nothing can be direct or durable",
            "name a path on a disk, or give --sync dsync to try out the probe in memory",
        ));
    }
    let found = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)
        .map_err(|e| ProbeError::io(path, "cannot be asked", e.into()))?;
    let known = found.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    if !known {
        return Ok(()); // older kernel: the trial write in `open` decides
    }
    let sector = found.stx_dio_offset_align as usize;
    if sector == 0 {
        return Err(no_direct(path));
    }
    if !block.is_multiple_of(sector) {
        return Err(ProbeError::refused(
            path,
            format!("direct I/O there goes in steps of {sector} bytes, the block size is {block}"),
            format!("give --block-size {sector}, or leave direct out of --sync"),
        ));
    }
    Ok(())
}

pub(super) fn no_direct(path: &Path) -> ProbeError {
    ProbeError::refused(
        path,
        "the file system there does not support direct I/O",
        "give --sync dsync or --sync fdatasync",
    )
}

fn fill(mut file: &File, head: &Head, bytes: u64) -> io::Result<()> {
    file.write_all(&head.bytes())?;
    let noise = Buffer::new(FILL, head.run);
    let mut left = bytes.saturating_sub(HEAD as u64);
    while left > 0 {
        let now = left.min(FILL as u64);
        file.write_all(noise.filled(now as usize))?;
        left -= now;
    }
    file.set_len(bytes)?;
    file.sync_all()
}

/// Returns the flags with which a log is opened.
///
/// The flags are libc's: where rustix 1.1 makes system calls itself, it uses `O_SYNC` for `O_DSYNC`, and `O_SYNC` also
/// forces every change of the file's time stamp to the disk.
pub(super) fn flags(sync: Sync) -> i32 {
    let mut flags = libc::O_NOFOLLOW;
    #[cfg(target_os = "linux")]
    if sync.direct {
        flags |= libc::O_DIRECT;
    }
    if sync.dsync {
        flags |= libc::O_DSYNC;
    }
    flags
}

/// Opens a filled file for the log and writes one block to its first slot as a trial.
fn open(path: &Path, sync: Sync, block: usize) -> Result<FileMedium, ProbeError> {
    use super::medium::Medium;
    let file = match OpenOptions::new().write(true).custom_flags(flags(sync)).open(path) {
        Ok(file) => file,
        Err(error) if sync.direct && error.kind() == io::ErrorKind::InvalidInput => {
            return Err(no_direct(path));
        }
        Err(error) => return Err(ProbeError::io(path, "cannot be opened", error)),
    };
    if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
        let _ = folder.sync_all(); // makes the file name durable where the file system supports it
    }
    let mut medium = FileMedium { file, fdatasync: sync.fdatasync };
    let trial = Buffer::new(block, 1);
    match medium.write_durably(trial.filled(block), HEAD as u64) {
        Ok(()) => Ok(medium),
        Err(error) if sync.direct && error.kind() == io::ErrorKind::InvalidInput => Err(ProbeError::refused(
            path,
            format!("direct I/O in blocks of {block} bytes is refused there"),
            "give --block-size 4096, or leave direct out of --sync",
        )),
        Err(error) => Err(ProbeError::io(path, "cannot be written", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measured on ext4: with `O_SYNC`, a write that normally takes 40 us took 4 ms whenever the clock had ticked since
    /// the previous write.
    #[test]
    fn dsync_is_not_sync() {
        let read = |text: &str| flags(text.parse().unwrap());
        for text in ["dsync", "direct+dsync"] {
            assert_ne!(read(text) & libc::O_DSYNC, 0);
            assert_ne!(read(text) & libc::O_SYNC, libc::O_SYNC, "the times are not forced");
        }
        for text in ["direct", "fdatasync", "direct+fdatasync"] {
            assert_eq!(read(text) & libc::O_SYNC, 0);
        }
    }
}
