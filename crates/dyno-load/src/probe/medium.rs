//! Where a copy of the log goes: a real file, or the sink that costs nothing.

use std::io;
use std::os::unix::fs::FileExt;

/// Takes blocks at a place and returns once they are durable there.
pub trait Medium: Send {
    /// Writes `bytes` at `offset`; durable when it returns without an error.
    fn write_durably(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;
}

/// A file, opened the way that makes its writes durable.
#[derive(Debug)]
pub(super) struct FileMedium {
    pub file: std::fs::File,
    pub fdatasync: bool,
}

impl Medium for FileMedium {
    fn write_durably(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)?;
        if self.fdatasync { self.file.sync_data() } else { Ok(()) }
    }
}

/// Accepts everything at once: what remains is the probe's own cost.
#[derive(Debug)]
pub(super) struct Sink;

impl Medium for Sink {
    fn write_durably(&mut self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Ok(())
    }
}
