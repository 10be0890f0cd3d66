//! Recorder that writes the events of a simulation as parts of evidence while it runs.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;

use dyno_evidence::{CallsWriter, EventName, EvidenceError, WaitRow, WaitsWriter};

use super::stations::Stations;
use crate::cell::Rack;
use crate::database::{Call, CallKind, Event, Process, Sink, Wait};
use crate::kernel::StationReport;

/// Number of rows kept before they are written.
const ROWS: usize = 1 << 16;
/// First session number of background processes; sessions of the load have lower ones.
const BACKGROUND: i64 = 1 << 16;
const OBJECTS: [&str; 3] = ["session", "lgwr", "dbwr"];

struct Out<W, R> {
    writer: Option<W>,
    rows: Vec<R>,
}

/// Recorder of calls, waits and metrics of one block.
pub struct Recorder {
    block: u32,
    /// Arm whose turn it is, and virtual time 0 of its turn [ns since 1970].
    turn: Cell<(u16, i64)>,
    /// Time from which rows count [ns]: the end of the warm-up. Calls and waits that began before are not written.
    since_ns: Cell<u64>,
    calls: RefCell<Out<CallsWriter, dyno_evidence::Call>>,
    waits: RefCell<Out<WaitsWriter, WaitRow>>,
    stations: RefCell<Stations>,
    failed: RefCell<Option<EvidenceError>>,
}

impl Recorder {
    /// Opens the parts of a block.
    ///
    /// # Errors
    /// A part cannot be created.
    pub fn create(
        folder: &Path,
        block: u32,
        arms: &[String],
        statements: &[String],
    ) -> Result<Rc<Self>, EvidenceError> {
        let name = part_name(block);
        let calls = CallsWriter::create(&folder.join("calls"), &name, arms, statements)?;
        let events = Event::ALL.map(|event| EventName {
            event: event.name().into(),
            event_type: event.group().into(),
            class: event.class().into(),
        });
        let waits = WaitsWriter::create(
            &folder.join("waits"),
            &name,
            block,
            arms.to_vec(),
            events.into(),
            OBJECTS.map(Into::into).into(),
        )?;
        Ok(Rc::new(Self {
            block,
            turn: Cell::new((0, 0)),
            since_ns: Cell::new(u64::MAX),
            calls: RefCell::new(Out { writer: Some(calls), rows: Vec::with_capacity(ROWS) }),
            waits: RefCell::new(Out { writer: Some(waits), rows: Vec::with_capacity(ROWS) }),
            stations: RefCell::new(Stations::new(block, arms)),
            failed: RefCell::default(),
        }))
    }

    /// Begins an arm's turn: nothing counts yet.
    pub fn turn(&self, arm: u16, started_ns: i64) {
        self.turn.set((arm, started_ns));
        self.since_ns.set(u64::MAX);
    }

    /// Begins counting at the end of the warm-up.
    pub fn count_from(&self, now_ns: u64) {
        self.since_ns.set(now_ns);
    }

    /// Returns a virtual time of the current arm as time since 1970 [ns].
    pub fn at_ns(&self, now_ns: u64) -> i64 {
        self.turn.get().1 + now_ns as i64
    }

    /// Returns true if writing has failed, so that there is no point in continuing.
    pub fn has_failed(&self) -> bool {
        self.failed.borrow().is_some()
    }

    /// Writes the statistics of a station since the warm-up.
    pub fn station(&self, arm: u16, report: &StationReport, now_ns: u64) {
        self.stations.borrow_mut().station(arm, self.at_ns(now_ns), report);
    }

    /// Writes the number of transactions of a database since the warm-up, if a machine has several databases.
    pub fn database(&self, arm: u16, name: &str, transactions: u64, now_ns: u64) {
        self.stations.borrow_mut().database(arm, self.at_ns(now_ns), name, transactions);
    }

    /// Writes the current metrics of the cells under Oracle's names.
    pub fn cells(&self, arm: u16, rack: &Rack, now_ns: u64) {
        self.stations.borrow_mut().cells(arm, self.at_ns(now_ns), rack);
    }

    fn note(&self, written: Option<Result<(), EvidenceError>>) {
        if let Some(Err(error)) = written {
            self.failed.borrow_mut().get_or_insert(error);
        }
    }

    /// Writes the remaining rows and renames the parts into place; returns the numbers of calls and of waits.
    ///
    /// # Errors
    /// A part cannot be written.
    pub fn finish(&self, folder: &Path) -> Result<(u64, u64), EvidenceError> {
        if let Some(error) = self.failed.borrow_mut().take() {
            return Err(error);
        }
        let (mut calls, mut waits) = (0, 0);
        let out = &mut *self.waits.borrow_mut();
        if let Some(mut writer) = out.writer.take() {
            writer.push(&out.rows)?;
            waits = writer.finish()?;
        }
        self.stations.borrow().write(&folder.join("metrics"), &part_name(self.block))?;
        // Calls last: where they are, the rest is.
        let out = &mut *self.calls.borrow_mut();
        if let Some(mut writer) = out.writer.take() {
            writer.push(&out.rows, &[])?;
            calls = writer.finish()?;
        }
        Ok((calls, waits))
    }
}

fn part_name(block: u32) -> String {
    format!("b{block:06}")
}

/// Returns the object number and the session number of a process in the evidence.
fn who(process: Process) -> (u32, i64) {
    match process {
        Process::Session(number) => (0, i64::from(number)),
        Process::LogWriter => (1, BACKGROUND),
        Process::DatabaseWriter => (2, BACKGROUND + 1),
    }
}

impl Sink for Recorder {
    fn wait(&self, wait: &Wait) {
        if wait.start_ns < self.since_ns.get() {
            return;
        }
        let (arm, base_ns) = self.turn.get();
        let (object, session) = who(wait.process);
        let out = &mut *self.waits.borrow_mut();
        out.rows.push(WaitRow {
            arm: u32::from(arm),
            session,
            started_ns: base_ns + wait.start_ns as i64,
            elapsed_ns: wait.elapsed_ns as i64,
            event: wait.event as u32,
            object,
            p: wait.p.map(|p| p as i64),
        });
        if out.rows.len() == ROWS {
            self.note(out.writer.as_mut().map(|writer| writer.push(&out.rows)));
            out.rows.clear();
        }
    }

    fn call(&self, call: &Call) {
        if call.started_ns < self.since_ns.get() {
            return;
        }
        let (arm, base_ns) = self.turn.get();
        let kind = match call.kind {
            CallKind::Transaction => dyno_evidence::CallKind::Transaction,
            CallKind::Commit => dyno_evidence::CallKind::Commit,
            CallKind::Exec => dyno_evidence::CallKind::Exec,
            CallKind::Fetch => dyno_evidence::CallKind::Fetch,
        };
        let out = &mut *self.calls.borrow_mut();
        out.rows.push(dyno_evidence::Call {
            arm,
            block: self.block,
            slice: u32::from(arm),
            session: call.session as u16,
            kind,
            statement: 0,
            started_ns: base_ns + call.started_ns as i64,
            elapsed_ns: call.elapsed_ns as i64,
            rows: call.rows as i64,
            redo_bytes: call.redo_bytes as i64,
            unflushed_bytes: if call.kind == CallKind::Commit {
                call.unflushed_bytes as i64
            } else {
                dyno_evidence::NONE
            },
            ..dyno_evidence::Call::new()
        });
        if out.rows.len() == ROWS {
            self.note(out.writer.as_mut().map(|writer| writer.push(&out.rows, &[])));
            out.rows.clear();
        }
    }
}
