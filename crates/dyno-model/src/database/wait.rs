//! Records of waits and calls, and the ledger that each process keeps.

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
    /// Returns the kind of the process as a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Session(_) => "session",
            Self::LogWriter => "lgwr",
            Self::DatabaseWriter => "dbwr",
        }
    }
}

/// A finished wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Waiting process.
    pub process: Process,
    /// Event.
    pub event: Event,
    /// Start [ns].
    pub start_ns: u64,
    /// Elapsed time [ns].
    pub elapsed_ns: u64,
    /// Parameters of the event.
    pub p: [u64; 3],
}

/// Kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// From the first statement to the end of the commit.
    Transaction,
    /// A commit, timed separately.
    Commit,
    /// A statement that changes data or sorts rows.
    Exec,
    /// A statement that reads.
    Fetch,
}

impl CallKind {
    /// Returns the kind of the call as a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Transaction => "transaction",
            Self::Commit => "commit",
            Self::Exec => "exec",
            Self::Fetch => "fetch",
        }
    }
}

/// A finished call of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Session number.
    pub session: u32,
    /// Kind of the call.
    pub kind: CallKind,
    /// Statement number in its workload.
    pub statement: u16,
    /// Start [ns].
    pub started_ns: u64,
    /// Elapsed time [ns].
    pub elapsed_ns: u64,
    /// Part of the elapsed time on a core [ns].
    pub cpu_ns: u64,
    /// Redo made during the call [bytes]; for a commit, the redo of its transaction.
    pub redo_bytes: u64,
    /// For a commit: redo of all sessions that was not safe when the commit began, without the commit's own record
    /// [bytes]; 0 for other calls.
    pub unflushed_bytes: u64,
    /// Number of rows read or changed.
    pub rows: u64,
    /// Number of blocks read from devices.
    pub reads: u64,
    /// Number of blocks got from buffers.
    pub gets: u64,
}

/// Receiver of waits and calls as they end: evidence, a trace file, a test. A sink acts at that instant and never
/// changes the simulation.
pub trait Sink {
    /// Receives a finished wait.
    fn wait(&self, wait: &Wait) {
        let _ = wait;
    }

    /// Receives a finished call.
    fn call(&self, call: &Call) {
        let _ = call;
    }
}

/// Discards everything.
impl Sink for () {}

/// Passes waits and calls on to a sink while it is open. While it is closed, as during a warm-up, it records nothing.
#[derive(Clone)]
pub struct Recorder {
    sink: Rc<dyn Sink>,
    open: Rc<Cell<bool>>,
}

impl Recorder {
    /// Returns an open recorder.
    pub fn new(sink: Rc<dyn Sink>) -> Self {
        Self { sink, open: Rc::new(Cell::new(true)) }
    }

    /// Opens or closes the recorder; waits and calls that end while it is closed are not recorded.
    pub fn set_open(&self, open: bool) {
        self.open.set(open);
    }

    /// Records a finished wait.
    #[inline]
    pub fn wait(&self, wait: &Wait) {
        if self.open.get() {
            self.sink.wait(wait);
        }
    }

    /// Records a finished call.
    #[inline]
    pub fn call(&self, call: &Call) {
        if self.open.get() {
            self.sink.call(call);
        }
    }
}

/// Number and total time of the waits for an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Number of waits.
    pub count: u64,
    /// Sum of their times [ns].
    pub elapsed_ns: u64,
}

/// Account of a process's time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Start of the process [ns].
    pub began_ns: u64,
    /// Time on a core [ns].
    pub cpu_ns: u64,
    totals: [Total; Event::ALL.len()],
}

impl Ledger {
    /// Returns the number and total time of the waits for an event.
    pub fn of(&self, event: Event) -> Total {
        self.totals[event as usize]
    }

    /// Returns each event that was waited for, with the number and total time of its waits.
    pub fn waits(&self) -> impl Iterator<Item = (Event, Total)> + '_ {
        let all = Event::ALL.into_iter().map(|event| (event, self.of(event)));
        all.filter(|(_, total)| total.count > 0)
    }

    /// Returns the sum of all waits [ns].
    pub fn waited_ns(&self) -> u64 {
        self.totals.iter().map(|total| total.elapsed_ns).sum()
    }

    /// Returns true if every nanosecond up to `now_ns` is accounted for, which holds between two steps of the process.
    pub fn holds(&self, now_ns: u64) -> bool {
        now_ns - self.began_ns == self.cpu_ns + self.waited_ns()
    }
}

/// Ledger of a process with the recorder of its waits; clones share it.
#[derive(Clone)]
pub struct Account {
    process: Process,
    ledger: Rc<RefCell<Ledger>>,
    recorder: Recorder,
}

impl Account {
    /// Returns an empty ledger that begins now.
    pub fn new(process: Process, now_ns: u64, recorder: &Recorder) -> Self {
        let ledger = Ledger { began_ns: now_ns, ..Ledger::default() };
        Self { process, ledger: Rc::new(RefCell::new(ledger)), recorder: recorder.clone() }
    }

    /// Adds time on a core [ns].
    #[inline]
    pub fn cpu(&self, ns: u64) {
        self.ledger.borrow_mut().cpu_ns += ns;
    }

    /// Returns the time on a core so far [ns].
    pub fn cpu_ns(&self) -> u64 {
        self.ledger.borrow().cpu_ns
    }

    /// Adds a wait from `start_ns` to `now_ns`, unless it has no length.
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

    /// Returns the ledger so far.
    pub fn ledger(&self) -> Ledger {
        self.ledger.borrow().clone()
    }

    /// Returns the recorder.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }
}
