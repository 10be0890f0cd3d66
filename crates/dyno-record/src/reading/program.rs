//! Information from a server's program file about its memory, cached for the next server that runs the same file.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::RecordError;
use crate::code::Code;
use crate::elf::Image;
use crate::names::{EventNames, all_events};
use crate::probes::{self, Version};
use crate::watch::layout::layout;

use super::arrays::Published;

pub(super) const NOT_FIT: &str = "record with --mode sites or --mode watch, and send us the server's version";

/// Names of the pointer to the transaction counters: since version 17, and before.
const COUNTERS: [&str; 2] = ["TransamVariables", "ShmemVariableCache"];

/// Information from a program file.
pub struct Program {
    /// Version of the server.
    pub version: Version,
    /// Class and name of each wait event, by its number.
    pub names: EventNames,
    /// Number of the wait event `ClientRead`.
    pub client_read: u32,
    /// Addresses of the exported variables in the file.
    pub(super) variables: Variables,
    pub(super) published: Published,
    /// Address of the first loadable byte.
    pub(super) first: u64,
}

/// Addresses of exported variables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variables {
    pub word: u64,
    pub proc: u64,
    pub entry: u64,
    pub header: u64,
    /// Pointer to the transaction counters; `None` if it has no known name.
    pub counters: Option<u64>,
}

/// Device, inode number, size and modification time of a file [s, ns].
type Identity = (u64, u64, u64, i64, i64);

/// Program that was read last. Decoding megabytes of its code takes time, and a run reads the same server several
/// times.
static LAST: Mutex<Option<(Identity, Arc<Program>)>> = Mutex::new(None);

impl Program {
    /// Returns the information from the program at `path`.
    ///
    /// # Errors
    /// The program cannot be read, or its version or code is unknown.
    pub(super) fn of(path: &Path) -> Result<Arc<Self>, RecordError> {
        let found = path.metadata().ok();
        let identity = found.map(|file| (file.dev(), file.ino(), file.size(), file.mtime(), file.mtime_nsec()));
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(identity), Some((known, program))) = (&identity, &*last)
            && identity == known
        {
            return Ok(Arc::clone(program));
        }
        let program = Arc::new(Self::read(path)?);
        *last = identity.map(|identity| (identity, Arc::clone(&program)));
        Ok(program)
    }

    fn read(path: &Path) -> Result<Self, RecordError> {
        let image = Image::open(path)?;
        let version = Version::of(&image)?;
        let (functions, addresses) = probes::wanted(&image)?;
        let code = Code::read(&image, &functions, &addresses);
        let address = |name| image.need(name).map(|symbol| symbol.addr);
        let (names, client_read) = all_events(&code)?;
        let places = layout(&code, &image).and_then(|found| Some((found.query_id, found.text?)));
        let (query_id, text) = places.ok_or_else(|| {
            let said = "the code that publishes statements is not as expected".to_owned();
            RecordError::Unread(said, NOT_FIT)
        })?;
        Ok(Self {
            client_read,
            names,
            variables: Variables {
                word: address("my_wait_event_info")?,
                proc: address("MyProc")?,
                entry: address("MyBEEntry")?,
                header: address("ProcGlobal")?,
                counters: COUNTERS.iter().find_map(|name| image.symbol(name)).map(|symbol| symbol.addr),
            },
            published: Published { query_id, text },
            first: image.first,
            version,
        })
    }
}
