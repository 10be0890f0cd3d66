//! Waits and calls as they are told, and the ledger that each process keeps.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::event::Event;

/// A process of the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Process {
    /// A session, by its number.
    Session(u32),
    /// The log writer.
    LogWriter,
    /// The database writer.
    DatabaseWriter,
}

impl Process {
    /// What kind of process it is, in a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Session(_) => "session",
            Self::LogWriter => "lgwr",
            Self::DatabaseWriter => "dbwr",
        }
    }
}

/// A wait that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Whose.
    pub process: Process,
    /// For what.
    pub event: Event,
    /// From when.
    pub start_ns: u64,
    /// How long.
    pub elapsed_ns: u64,
    /// The event's parameters.
    pub p: [u64; 3],
}

/// What a call was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// All from the first statement to the end of the commit.
    Transaction,
    /// A commit, timed on its own.
    Commit,
    /// A statement that changes or sorts.
    Exec,
    /// A statement that reads.
    Fetch,
}

impl CallKind {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Transaction => "transaction",
            Self::Commit => "commit",
            Self::Exec => "exec",
            Self::Fetch => "fetch",
        }
    }
}

/// A call of a session that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Whose.
    pub session: u32,
    /// What.
    pub kind: CallKind,
    /// Number of the statement in its workload.
    pub statement: u16,
    /// From when.
    pub started_ns: u64,
    /// How long.
    pub elapsed_ns: u64,
    /// Of this, on a core.
    pub cpu_ns: u64,
    /// Redo made in it; for a commit, by its transaction.
    pub redo_bytes: u64,
    /// For a commit, and a transaction at its commit: redo of all sessions that was not yet safe as
    /// the commit began, its own record not counted.
    pub unflushed_bytes: u64,
    /// Rows read or changed.
    pub rows: u64,
    /// Blocks read from devices.
    pub reads: u64,
    /// Blocks asked for in buffers.
    pub gets: u64,
}

/// Where waits and calls go as they end: evidence, a trace file, a test. What is done with them is
/// done at that instant; a sink never changes what happens.
pub trait Sink {
    /// A wait is over.
    fn wait(&self, wait: &Wait) {
        let _ = wait;
    }

    /// A call is over.
    fn call(&self, call: &Call) {
        let _ = call;
    }
}

/// Forgets everything.
impl Sink for () {}

/// The way to the sink, which can be shut: during a warm-up nothing is recorded.
#[derive(Clone)]
pub struct Recorder {
    sink: Rc<dyn Sink>,
    open: Rc<Cell<bool>>,
}

impl Recorder {
    /// Open.
    pub fn new(sink: Rc<dyn Sink>) -> Self {
        Self { sink, open: Rc::new(Cell::new(true)) }
    }

    /// Opens or shuts the way; what ends while it is shut is not recorded.
    pub fn set_open(&self, open: bool) {
        self.open.set(open);
    }

    /// A wait is over.
    #[inline]
    pub fn wait(&self, wait: &Wait) {
        if self.open.get() {
            self.sink.wait(wait);
        }
    }

    /// A call is over.
    #[inline]
    pub fn call(&self, call: &Call) {
        if self.open.get() {
            self.sink.call(call);
        }
    }
}

/// Count and time of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Waits.
    pub count: u64,
    /// Their time.
    pub elapsed_ns: u64,
}

/// What a process did with its time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// When it began.
    pub began_ns: u64,
    /// On a core.
    pub cpu_ns: u64,
    totals: [Total; Event::ALL.len()],
}

impl Ledger {
    /// Waits for an event.
    pub fn of(&self, event: Event) -> Total {
        self.totals[event as usize]
    }

    /// The events that were waited for.
    pub fn waits(&self) -> impl Iterator<Item = (Event, Total)> + '_ {
        let all = Event::ALL.into_iter().map(|event| (event, self.of(event)));
        all.filter(|(_, total)| total.count > 0)
    }

    /// Sum of all waits.
    pub fn waited_ns(&self) -> u64 {
        self.totals.iter().map(|total| total.elapsed_ns).sum()
    }

    /// Is every nanosecond up to `now_ns` accounted for? True between two steps of the process.
    pub fn holds(&self, now_ns: u64) -> bool {
        now_ns - self.began_ns == self.cpu_ns + self.waited_ns()
    }
}

/// The ledger of a process, and the way out for its waits; clones share it.
#[derive(Clone)]
pub struct Account {
    process: Process,
    ledger: Rc<RefCell<Ledger>>,
    recorder: Recorder,
}

impl Account {
    /// An empty ledger that begins now.
    pub fn new(process: Process, now_ns: u64, recorder: &Recorder) -> Self {
        let ledger = Ledger { began_ns: now_ns, ..Ledger::default() };
        Self { process, ledger: Rc::new(RefCell::new(ledger)), recorder: recorder.clone() }
    }

    /// Time on a core.
    #[inline]
    pub fn cpu(&self, ns: u64) {
        self.ledger.borrow_mut().cpu_ns += ns;
    }

    /// Time on a core so far.
    pub fn cpu_ns(&self) -> u64 {
        self.ledger.borrow().cpu_ns
    }

    /// A wait from `start_ns` to `now_ns`; one of no length is none.
    #[inline]
    pub fn wait(&self, event: Event, start_ns: u64, now_ns: u64, p: [u64; 3]) {
        let elapsed_ns = now_ns - start_ns;
        if elapsed_ns == 0 {
            return;
        }
        let mut ledger = self.ledger.borrow_mut();
        let total = &mut ledger.totals[event as usize];
        total.count += 1;
        total.elapsed_ns += elapsed_ns;
        drop(ledger);
        self.recorder.wait(&Wait { process: self.process, event, start_ns, elapsed_ns, p });
    }

    /// The ledger so far.
    pub fn ledger(&self) -> Ledger {
        self.ledger.borrow().clone()
    }

    /// The way out.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }
}
