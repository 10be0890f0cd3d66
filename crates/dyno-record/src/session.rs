//! One process of the server: its notes, in time order, become calls and waits that account for all of its time.
//!
//! A client's backend waits for its client (think time) or works. A new call begins whenever the backend begins a
//! statement. So calls and think time add up to the observed time, and CPU, waits and the rest add up to a call's time.
//! CPU is the time on a processor outside of waits; the rest is time in which the process could have run but did not.
//!
//! Limits: a wait for the client during a COPY belongs to the call; during any other call it ends the call.

mod known;
mod late;
mod text;

use crate::probes::Kind;
use crate::store::{CallRow, Store, Sums, UNOBSERVED, WaitRow};
pub use known::Known;
use text::{Sort, statement_of};

/// Identity of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// Kind: `client backend`, `parallel worker`, `checkpointer` ...
    pub kind: String,
    /// Leader of a parallel worker.
    pub leader: Option<i32>,
    /// Name of the process's database.
    pub database: String,
    /// Name of the process's user.
    pub user: String,
}

/// Flag of a wait whose start was not observed; [`NOT_ENDED`] is the flag if its end was not observed.
const BEGUN_BEFORE: i64 = 1;
const NOT_ENDED: i64 = 2;

#[derive(Clone, Copy, Debug)]
struct Waiting {
    event: u32,
    since_ns: u64,
    cpu_ns: u64,
    think: bool,
    cut: i64,
    price_ns: u64,
    class: u8,
}

#[derive(Clone, Debug)]
struct Calling {
    number: u64,
    kind: &'static str,
    since_ns: u64,
    statement: u32,
    query_id: u64,
    /// True if a statement has begun in this call.
    is_taken_up: bool,
    sort: Sort,
    is_done: bool,
    rows: Option<u64>,
    cpu_ns: u64,
    wait_ns: u64,
    state: Option<u32>,
    waits: Vec<WaitRow>,
}

impl Calling {
    fn copies(&self) -> bool {
        self.kind == "exec" && self.sort == Sort::Copy && !self.is_done
    }
}

/// Number of waits kept until the end of their call, when its query id is known; further waits of the call are written
/// earlier.
const WAITS_KEPT: usize = 1 << 12;

/// Recorded process.
pub struct Session {
    /// Session number in the recording.
    pub number: u32,
    /// Process id.
    pub pid: i32,
    /// Identity of the process.
    pub who: Who,
    /// Time of the first observation, by the monotonic clock [ns].
    pub since_ns: u64,
    /// Time of the last note, by the monotonic clock [ns].
    pub until_ns: u64,
    /// Sums of the session's calls and waits.
    pub sums: Sums,
    is_born_here: bool,
    had_statement: bool,
    last_state: u32,
    running: Option<bool>,
    ticked_ns: u64,
    waiting: Option<Waiting>,
    calling: Option<Calling>,
    /// Number of the statement bound most recently since the last wait for the client.
    bound: Option<u32>,
    /// Query id that was reported before a statement began; 0 for none.
    bound_id: u64,
    lost_since: Option<u64>,
    done: bool,
}

impl Session {
    /// Returns the session of a process that is observed from `since_ns` on; `event` is its current wait if the process
    /// existed before.
    pub fn new(number: u32, pid: i32, who: Who, since_ns: u64, event: Option<u32>, known: &mut Known) -> Self {
        let mut made = Self::unseen(number, pid, who, since_ns, event.is_none());
        made.lost_since = None;
        made.running = if event.is_none() { Some(true) } else { None };
        made.begin(event.unwrap_or(0), known);
        made
    }

    fn begin(&mut self, event: u32, known: &mut Known) {
        let since_ns = self.until_ns;
        let think = known.is_idle(event);
        if !think {
            self.open(since_ns, known);
        }
        if event != 0 {
            self.waiting =
                Some(Waiting { event, since_ns, cpu_ns: 0, think, cut: BEGUN_BEFORE, price_ns: 0, class: 0 });
        }
    }

    fn open(&mut self, at_ns: u64, known: &mut Known) {
        let kind = match self.who.kind.as_str() {
            _ if self.is_born_here && !self.had_statement => "connect",
            "client backend" | "" => "message",
            "parallel worker" => "worker",
            _ => "background",
        };
        known.next_call += 1;
        self.calling = Some(Calling {
            number: known.next_call - 1,
            kind,
            since_ns: at_ns,
            statement: u32::MAX,
            query_id: 0,
            is_taken_up: false,
            sort: Sort::Planned,
            is_done: false,
            rows: None,
            cpu_ns: 0,
            wait_ns: 0,
            state: None,
            waits: Vec::new(),
        });
    }

    /// Advances the session to `at_ns`; CPU time since the last step is added to the open wait or call.
    fn tick(&mut self, at_ns: u64) {
        let at_ns = at_ns.max(self.until_ns);
        if self.running == Some(true) {
            let used = at_ns.saturating_sub(self.ticked_ns);
            if let Some(waiting) = &mut self.waiting {
                waiting.cpu_ns += used;
            } else if let Some(calling) = &mut self.calling {
                calling.cpu_ns += used;
            }
        }
        self.ticked_ns = at_ns;
        self.until_ns = at_ns;
    }

    /// Advances the session to the time of a note; `was_running` tells, for the first note, whether the process was on
    /// a processor before.
    fn noted(&mut self, at_ns: u64, was_running: bool, store: &mut Store, known: &mut Known) {
        if self.running.is_none() {
            self.running = Some(was_running);
        }
        self.tick(at_ns);
        if let Some(since_ns) = self.lost_since.take() {
            self.not_observed(since_ns, store, known);
        }
    }

    /// Records that the process was taken off the processor (`off`) or put on it.
    pub fn switched(&mut self, at_ns: u64, off: bool) {
        if self.running.is_none() {
            self.running = Some(off);
        }
        self.tick(at_ns);
        self.running = Some(!off);
    }

    /// Records a store to the process's wait word: a wait begins, or ends (0).
    pub fn wait(&mut self, at_ns: u64, event: u32, store: &mut Store, known: &mut Known) {
        self.noted(at_ns, true, store, known);
        let at_ns = self.until_ns;
        self.running = Some(true);
        let was_thinking = self.waiting.is_some_and(|waiting| waiting.think);
        self.end_wait(at_ns, 0, store, known);
        let inside = self.calling.as_ref().is_some_and(Calling::copies);
        let think = known.is_idle(event) && !inside;
        if think {
            self.end_call(at_ns, store);
            (self.bound, self.bound_id) = (None, 0);
        } else if was_thinking || self.calling.is_none() {
            self.open(at_ns, known);
        }
        if event != 0 {
            let Known { price_ns, class, .. } = *known;
            self.waiting = Some(Waiting { event, since_ns: at_ns, cpu_ns: 0, think, cut: 0, price_ns, class });
        }
    }

    fn end_wait(&mut self, at_ns: u64, cut: i64, store: &mut Store, known: &mut Known) {
        let Some(waiting) = self.waiting.take() else { return };
        let elapsed_ns = at_ns.saturating_sub(waiting.since_ns);
        known.waited_ns[usize::from(waiting.class & 0xf)] += elapsed_ns;
        let cut = waiting.cut | cut;
        let corrected_ns = if cut == 0 { elapsed_ns.saturating_sub(waiting.price_ns) } else { elapsed_ns };
        let mut row = WaitRow {
            session: self.number,
            number: known.next_wait,
            event: waiting.event,
            since_ns: waiting.since_ns,
            elapsed_ns,
            cpu_ns: waiting.cpu_ns.min(elapsed_ns),
            corrected_ns,
            cut,
            think: waiting.think,
            statement: u32::MAX,
            call: None,
            holder: if waiting.event == UNOBSERVED { 0 } else { known.holder },
            within_ns: known.within_ns,
        };
        known.next_wait += 1;
        self.sums.waits += 1;
        let calling = if waiting.think || waiting.event == UNOBSERVED { None } else { self.calling.as_mut() };
        if let Some(calling) = calling {
            calling.wait_ns += elapsed_ns;
            row.call = Some(calling.number);
            calling.waits.push(row);
            if calling.waits.len() >= WAITS_KEPT {
                flush(calling, store);
            }
        } else {
            self.sums.between_ns += elapsed_ns;
            store.wait(row);
        }
    }

    /// Records that a statement begins.
    pub fn take_up(&mut self, at_ns: u64, kind: Kind, text: Option<&[u8]>, store: &mut Store, known: &mut Known) {
        self.noted(at_ns, true, store, known);
        let at_ns = self.until_ns;
        let text = text.unwrap_or_default();
        let statement = if text.is_empty() { u32::MAX } else { statement_of(text, store) };
        if let Some(bind) = self.calling.as_ref().filter(|calling| calling.kind == "bind") {
            self.bound_id = bind.query_id;
        }
        let id = if kind == Kind::Exec { std::mem::take(&mut self.bound_id) } else { 0 };
        // Before the previous call ends: a parse is identified by the query id, too.
        let statement = if id == 0 { statement } else { store.statement_of_id(id, statement) };
        if self.calling.as_ref().is_none_or(|calling| calling.is_taken_up) {
            self.end_call(at_ns, store);
            self.open(at_ns, known);
        }
        self.had_statement = true;
        let is_worker = self.who.leader.is_some();
        let Some(calling) = &mut self.calling else { return };
        calling.is_taken_up = true;
        calling.kind = match kind {
            _ if is_worker => "worker",
            Kind::Exec => "exec",
            Kind::Parse => "parse",
            Kind::Bind => "bind",
        };
        calling.sort = Sort::of(text);
        calling.statement = statement;
        calling.query_id = id;
    }

    /// Sets the statement of a call that had begun before the recording.
    pub fn recall(&mut self, text: &[u8], store: &mut Store) {
        if let Some(calling) = &mut self.calling {
            calling.kind = "exec";
            calling.is_taken_up = true;
            calling.sort = Sort::of(text);
            calling.statement = statement_of(text, store);
        }
    }

    /// Records that a plan begins and reports its query id.
    ///
    /// A statement sent as text reports its query id after it begins: the first id is its own, later ids belong to
    /// statements inside it. A prepared statement reports its query id when it is bound, which is before it begins and
    /// possibly still within the previous call if the client was quick.
    pub fn query_id(&mut self, at_ns: u64, id: u64, store: &mut Store, known: &mut Known) {
        self.noted(at_ns, true, store, known);
        let Some(calling) = self.calling.as_mut().filter(|_| id != 0) else { return };
        let has_text = calling.statement != u32::MAX;
        if calling.is_done || !calling.is_taken_up || calling.kind == "parse" && has_text {
            self.bound_id = id;
        } else if calling.query_id == 0 && calling.sort == Sort::Planned {
            calling.query_id = id;
            calling.statement = store.statement_of_id(id, calling.statement);
        }
    }

    /// Records that a statement is complete.
    pub fn finish_statement(&mut self, at_ns: u64, rows: Option<u64>, store: &mut Store, known: &mut Known) {
        self.noted(at_ns, true, store, known);
        self.bound_id = 0; // the id belongs to the second statement of the same text
        if let Some(calling) = &mut self.calling {
            calling.is_done = true;
            calling.rows = match (calling.rows, rows) {
                (Some(known), Some(more)) => Some(known + more),
                (known, more) => known.or(more),
            };
        }
    }

    /// Records the SQLSTATE of an error or a notice. If no statement has begun in the call, the SQLSTATE came from the
    /// bind of the statement `text`.
    pub fn state(&mut self, at_ns: u64, state: u32, text: Option<&[u8]>, store: &mut Store, known: &mut Known) {
        self.noted(at_ns, true, store, known);
        self.last_state = state;
        let text = text.filter(|text| !text.is_empty());
        if let (Some(calling), Some(text)) = (self.calling.as_mut().filter(|calling| !calling.is_taken_up), text) {
            (calling.is_taken_up, calling.kind) = (true, "bind");
            calling.statement = statement_of(text, store);
        }
    }

    /// Records that the last SQLSTATE was an error.
    pub fn abort(&mut self, at_ns: u64, store: &mut Store, known: &mut Known) {
        const INTERNAL_ERROR: u32 = 2_600; // XX000, packed as the server packs it
        self.noted(at_ns, true, store, known);
        let state = if self.last_state == 0 { INTERNAL_ERROR } else { self.last_state };
        (self.last_state, self.bound_id) = (0, 0);
        if let Some(calling) = &mut self.calling {
            calling.is_done = true;
            calling.state = Some(state);
        }
    }

    fn end_call(&mut self, at_ns: u64, store: &mut Store) {
        let Some(mut calling) = self.calling.take() else { return };
        let elapsed_ns = at_ns.saturating_sub(calling.since_ns);
        calling.statement = store.settled(calling.statement);
        match calling.kind {
            // 14 and 15 report the query id when a statement is bound, and not again when it is executed.
            "exec" if calling.statement == u32::MAX => calling.statement = self.bound.unwrap_or(u32::MAX),
            "bind" => self.bound = Some(calling.statement),
            _ => {}
        }
        flush(&mut calling, store);
        self.sums.calls += 1;
        self.sums.call_ns += elapsed_ns;
        self.sums.cpu_ns += calling.cpu_ns;
        self.sums.wait_inside_ns += calling.wait_ns;
        store.call(CallRow {
            session: self.number,
            number: calling.number,
            kind: calling.kind,
            statement: calling.statement,
            since_ns: calling.since_ns,
            elapsed_ns,
            cpu_ns: calling.cpu_ns,
            wait_ns: calling.wait_ns,
            rows: calling.rows,
            state: calling.state,
        });
    }

    /// Ends the session because the process (`is_exit`) or the recording is over.
    pub fn end(&mut self, at_ns: u64, is_exit: bool, store: &mut Store, known: &mut Known) {
        if self.done {
            return;
        }
        self.running.get_or_insert(false);
        self.tick(at_ns);
        if let Some(since_ns) = self.lost_since.take() {
            self.tell_unobserved(since_ns, store, known);
        }
        let at_ns = self.until_ns;
        self.end_wait(at_ns, if is_exit { 0 } else { NOT_ENDED }, store, known);
        if let Some(calling) = self.calling.as_mut().filter(|calling| is_exit && calling.kind == "message") {
            calling.kind = "disconnect";
        }
        self.end_call(at_ns, store);
        self.done = true;
    }

    /// Returns true if the session has ended.
    pub fn is_over(&self) -> bool {
        self.done
    }
}

/// Writes the buffered waits of a call, with the call's statement as far as it is known.
fn flush(calling: &mut Calling, store: &mut Store) {
    for mut row in calling.waits.drain(..) {
        row.statement = calling.statement;
        store.wait(row);
    }
}
