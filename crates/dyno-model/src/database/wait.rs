//! Wait events, and the ledger that each session keeps.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A commit until its redo is safe and the session runs again. p1 buffer#, p2 sync scn.
    LogFileSync,
    /// The log writer's write. p1 files, p2 blocks, p3 requests.
    LogFileParallelWrite,
    /// Room in the log buffer.
    LogBufferSpace,
    /// A free buffer. p1 file#, p2 block#, p3 set-id#.
    FreeBufferWaits,
    /// A block read into a buffer. p1 file#, p2 block#, p3 blocks.
    DbFileSequentialRead,
    /// A block that another session reads. p1 file#, p2 block#, p3 class#.
    ReadByOtherSession,
    /// The database writer, for a part of its writes. p1 requests, p2 interrupt, p3 timeout.
    DbFileParallelWrite,
    /// A core.
    CpuQueue,
    /// Nothing to do: the client thinks. p1 driver id, p2 bytes.
    ClientMessage,
    /// The log writer's sleep. p1 timeout in hundredths of a second.
    RdbmsIpcMessage,
}

impl Event {
    /// All events, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::LogFileSync,
        Self::LogFileParallelWrite,
        Self::LogBufferSpace,
        Self::FreeBufferWaits,
        Self::DbFileSequentialRead,
        Self::ReadByOtherSession,
        Self::DbFileParallelWrite,
        Self::CpuQueue,
        Self::ClientMessage,
        Self::RdbmsIpcMessage,
    ];

    /// The engine's own class of it.
    pub fn group(self) -> &'static str {
        match self {
            Self::LogFileSync => "Commit",
            Self::LogFileParallelWrite | Self::DbFileParallelWrite => "System I/O",
            Self::LogBufferSpace | Self::FreeBufferWaits => "Configuration",
            Self::DbFileSequentialRead | Self::ReadByOtherSession => "User I/O",
            Self::CpuQueue => "CPU",
            Self::ClientMessage | Self::RdbmsIpcMessage => "Idle",
        }
    }

    /// The common class of it, the same for every engine.
    pub fn class(self) -> &'static str {
        match self {
            Self::LogFileSync => "commit",
            Self::LogFileParallelWrite | Self::LogBufferSpace => "log write",
            Self::FreeBufferWaits => "free buffer",
            Self::DbFileSequentialRead | Self::ReadByOtherSession => "data read",
            Self::DbFileParallelWrite => "data write",
            Self::CpuQueue => "CPU",
            Self::ClientMessage | Self::RdbmsIpcMessage => "idle",
        }
    }

    /// The engine's name; for the CPU queue, which has none, ours.
    pub fn name(self) -> &'static str {
        match self {
            Self::LogFileSync => "log file sync",
            Self::LogFileParallelWrite => "log file parallel write",
            Self::LogBufferSpace => "log buffer space",
            Self::FreeBufferWaits => "free buffer waits",
            Self::DbFileSequentialRead => "db file sequential read",
            Self::ReadByOtherSession => "read by other session",
            Self::DbFileParallelWrite => "db file parallel write",
            Self::CpuQueue => "cpu queue",
            Self::ClientMessage => "SQL*Net message from client",
            Self::RdbmsIpcMessage => "rdbms ipc message",
        }
    }

    /// Is it a wait for work rather than for a resource?
    pub fn is_idle(self) -> bool {
        matches!(self, Self::ClientMessage | Self::RdbmsIpcMessage)
    }
}

/// A wait that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Whose.
    pub session: u64,
    /// For what.
    pub event: Event,
    /// From when.
    pub start_ns: u64,
    /// How long.
    pub elapsed_ns: u64,
    /// The event's parameters.
    pub p: [u64; 3],
}

/// Where waits go as they end: evidence, a trace file, a test.
pub type Sink = Rc<dyn Fn(Wait)>;

/// Count and time of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Waits.
    pub count: u64,
    /// Their time.
    pub elapsed_ns: u64,
}

/// What a session did with its time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// When it began.
    pub began_ns: u64,
    /// On a core.
    pub cpu_ns: u64,
    /// Waits by event.
    pub waits: BTreeMap<Event, Total>,
}

impl Ledger {
    /// Sum of all waits.
    pub fn waited_ns(&self) -> u64 {
        self.waits.values().map(|total| total.elapsed_ns).sum()
    }

    /// Is every nanosecond up to `now_ns` accounted for? True between two steps of the session.
    pub fn holds(&self, now_ns: u64) -> bool {
        now_ns - self.began_ns == self.cpu_ns + self.waited_ns()
    }
}

/// The ledger of a process, and the way out for its waits.
#[derive(Clone)]
pub struct Account {
    session: u64,
    ledger: Rc<RefCell<Ledger>>,
    sink: Sink,
}

impl Account {
    /// An empty ledger that begins now.
    pub fn new(session: u64, now_ns: u64, sink: Sink) -> Self {
        let ledger = Ledger { began_ns: now_ns, ..Ledger::default() };
        Self { session, ledger: Rc::new(RefCell::new(ledger)), sink }
    }

    /// Time on a core.
    pub fn cpu(&self, ns: u64) {
        self.ledger.borrow_mut().cpu_ns += ns;
    }

    /// A wait from `start_ns` to `now_ns`; one of no length is none.
    pub fn wait(&self, event: Event, start_ns: u64, now_ns: u64, p: [u64; 3]) {
        let elapsed_ns = now_ns - start_ns;
        if elapsed_ns == 0 {
            return;
        }
        let mut ledger = self.ledger.borrow_mut();
        let total = ledger.waits.entry(event).or_default();
        total.count += 1;
        total.elapsed_ns += elapsed_ns;
        drop(ledger);
        (self.sink)(Wait { session: self.session, event, start_ns, elapsed_ns, p });
    }

    /// The ledger so far.
    pub fn ledger(&self) -> Ledger {
        self.ledger.borrow().clone()
    }
}
