//! Target of a flash probe: an unnamed file that it creates, or a file or device whose content may be destroyed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

use super::super::ProbeError;
use super::super::buffer::Buffer;
use super::super::file::{check_direct, check_room, flags, no_direct};
use super::FlashSpec;
use crate::probe::spec::Sync;

const OWN: &str = "name a file that is not there yet, or a folder; --destroy gives up what is there";

/// Open file or device, and how many of its bytes are used.
#[derive(Debug)]
pub(super) struct Target {
    pub file: File,
    pub sync: Sync,
    pub span_bytes: u64,
}

impl Target {
    /// Opens the file or device that the specification names.
    ///
    /// A file that the probe creates is unlinked immediately, so that nothing remains of it, however the probe ends.
    ///
    /// # Errors
    /// The path is refused, there is too little space, or the I/O is not possible.
    pub fn open(spec: &FlashSpec, unit_bytes: u64) -> Result<Self, ProbeError> {
        let sync: Sync = spec.sync.parse()?;
        let path = &spec.path;
        let (file, most) = if spec.destroy { given_up(path, sync)? } else { made(path, sync)? };
        let wanted = spec.file_bytes.unwrap_or(most).min(most);
        let span_bytes = wanted / unit_bytes * unit_bytes;
        if span_bytes == 0 {
            let message = format!("has {most} bytes, too few for one request of {unit_bytes}");
            return Err(ProbeError::refused(path, message, "name a larger file or device"));
        }
        if !spec.destroy {
            check_room(path, &file, span_bytes)?;
            file.set_len(span_bytes).map_err(|e| ProbeError::io(path, "cannot be made so large", e))?;
        }
        check_direct(path, &file, sync, spec.block_bytes)?;
        let target = Self { file, sync, span_bytes };
        target.try_once(spec)?;
        Ok(target)
    }

    /// Writes once at offset 0, so that an error is reported before the probe begins.
    ///
    /// The first write of the probe goes there anyway.
    fn try_once(&self, spec: &FlashSpec) -> Result<(), ProbeError> {
        let block = spec.block_bytes;
        match self.write(Buffer::new(block, spec.seed).filled(block), 0) {
            Ok(()) => Ok(()),
            Err(error) if self.sync.direct && error.kind() == io::ErrorKind::InvalidInput => Err(ProbeError::refused(
                &spec.path,
                format!("direct I/O in requests of {block} bytes is refused there"),
                "give --size 4KiB, or --sync dsync",
            )),
            Err(error) => Err(ProbeError::io(&spec.path, "cannot be written", error)),
        }
    }

    pub fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)?;
        if self.sync.fdatasync { self.file.sync_data() } else { Ok(()) }
    }
}

fn made(path: &Path, sync: Sync) -> Result<(File, u64), ProbeError> {
    if let Ok(about) = fs::symlink_metadata(path) {
        let kind = about.file_type();
        let what = if kind.is_block_device() || kind.is_char_device() { "is a device" } else { "is there already" };
        return Err(ProbeError::refused(path, what, OWN));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600).custom_flags(flags(sync));
    let opened = options.open(path);
    let _ = fs::remove_file(path); // also if the kernel created the file and then refused direct I/O
    match opened {
        Ok(file) => Ok((file, u64::MAX)),
        Err(error) if sync.direct && error.kind() == io::ErrorKind::InvalidInput => Err(no_direct(path)),
        Err(error) => Err(ProbeError::io(path, "cannot be made", error)),
    }
}

/// Opens a file or device whose content may be destroyed; returns the open file and its size \[bytes\].
///
/// `O_EXCL` on a block device fails while the device or a part of it is in use: by a file system, swap or a volume
/// group.
fn given_up(path: &Path, sync: Sync) -> Result<(File, u64), ProbeError> {
    let kind = fs::symlink_metadata(path).map_err(|e| ProbeError::io(path, "cannot be looked at", e))?.file_type();
    let device = kind.is_block_device();
    if !device && !kind.is_file() {
        return Err(ProbeError::refused(path, "is neither a file nor a block device", OWN));
    }
    let exclusive = if device { libc::O_EXCL } else { 0 };
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(flags(sync) | exclusive);
    let mut file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            let message = "is in use (a file system, swap, a volume group or another program has it)";
            return Err(ProbeError::refused(path, message, "name a device that nothing uses"));
        }
        Err(error) => return Err(ProbeError::io(path, "cannot be opened", error)),
    };
    let bytes = file.seek(SeekFrom::End(0)).map_err(|e| ProbeError::io(path, "cannot be asked", e))?;
    Ok((file, bytes))
}
