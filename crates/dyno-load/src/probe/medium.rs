//! Targets of a log's copies: a real file, or a sink that costs nothing.

use std::io;
use std::os::unix::fs::FileExt;

/// Target that writes blocks at an offset and returns once they are durable.
pub trait Medium: Send {
    /// Writes `bytes` at `offset`; they are durable when it returns without an error.
    ///
    /// # Errors
    /// The operating system refused the write.
    fn write_durably(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;
}

/// File opened with the flags that make its writes durable.
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

/// Sink that accepts every write immediately, to measure the probe's own cost.
#[derive(Debug)]
pub(super) struct Sink;

impl Medium for Sink {
    fn write_durably(&mut self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Ok(())
    }
}
