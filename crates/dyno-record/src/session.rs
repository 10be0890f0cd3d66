//! One process of the server: its notes, in the order of time, become calls and waits that leave no time out.
//!
//! A client's backend either waits for its client (think time) or works; what it works from the end of one such wait to
//! the begin of the next is cut into calls where it takes up a statement. So calls and think time add up to the time that
//! was seen, and inside a call CPU, waits and the rest do: CPU is when the kernel had the process on a processor outside
//! of its waits; what is left is time in which it could have run and did not.
//!
//! Limits: a wait for the client in the middle of a COPY belongs to the call; one in the middle of any other call ends it.

mod late;
mod text;

use crate::probes::Kind;
use crate::store::{CallRow, Store, Sums, UNOBSERVED, WaitRow};
use text::{Sort, statement_of};

/// What a process is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// `client backend`, `parallel worker`, `checkpointer` ...
    pub kind: String,
    /// The leader of a parallel worker.
    pub leader: Option<i32>,
    /// Its database.
    pub database: String,
    /// Its user.
    pub user: String,
}

/// How a wait was seen.
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
    /// Whether it has taken up a statement.
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

/// So many waits wait for the end of their call, where its query id is known; a longer call's are written before.
const WAITS_KEPT: usize = 1 << 12;

/// A process that is recorded.
pub struct Session {
    /// Number in the recording.
    pub number: u32,
    /// The process.
    pub pid: i32,
    /// What it is.
    pub who: Who,
    /// Monotonic clock.
    pub since_ns: u64,
    /// The same, of its last note.
    pub until_ns: u64,
    /// Sums.
    pub sums: Sums,
    is_born_here: bool,
    had_statement: bool,
    last_state: u32,
    running: Option<bool>,
    ticked_ns: u64,
    waiting: Option<Waiting>,
    calling: Option<Calling>,
    /// The statement that was bound last, since the client was waited for.
    bound: Option<u32>,
    /// The query id that was said before a statement is taken up; 0: none.
    bound_id: u64,
    lost_since: Option<u64>,
    done: bool,
}

/// The class `Activity` in the number of an event.
const ACTIVITY: u32 = 0x05;

/// What events and statements the sessions name by numbers.
pub struct Known {
    /// `Client:ClientRead`.
    pub client_read: u32,
    /// Number of a call.
    pub next_call: u64,
    /// Number of a wait.
    pub next_wait: u64,
    /// What the probe of the note at hand costs, ns.
    pub price_ns: u64,
    /// The class of waits that it would be given up with, else 0.
    pub class: u8,
    /// How long waits of such classes took, ns, since it was last asked.
    pub waited_ns: [u64; 16],
}

impl Known {
    /// Whether nothing is to be done while it lasts: the client is waited for, or a process of the server's own rests.
    fn is_idle(&self, event: u32) -> bool {
        event == self.client_read || event >> 24 == ACTIVITY
    }
}

impl Session {
    /// A process that is seen from `since_ns` on; `event` is what it waited for then, where it was there before.
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

    /// Time passes; CPU goes to the wait or the call that is open.
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

    /// The first note tells whether the process was on a processor when it was first seen.
    fn noted(&mut self, at_ns: u64, was_running: bool, store: &mut Store, known: &mut Known) {
        if self.running.is_none() {
            self.running = Some(was_running);
        }
        self.tick(at_ns);
        if let Some(since_ns) = self.lost_since.take() {
            self.not_observed(since_ns, store, known);
        }
    }

    /// It went off the processor, or came on it.
    pub fn switched(&mut self, at_ns: u64, off: bool) {
        if self.running.is_none() {
            self.running = Some(off);
        }
        self.tick(at_ns);
        self.running = Some(!off);
    }

    /// A store to its word.
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

    /// A statement is taken up.
    pub fn take_up(&mut self, at_ns: u64, kind: Kind, text: Option<&[u8]>, store: &mut Store, known: &mut Known) {
        self.noted(at_ns, true, store, known);
        let at_ns = self.until_ns;
        let text = text.unwrap_or_default();
        let statement = if text.is_empty() { u32::MAX } else { statement_of(text, store) };
        if let Some(bind) = self.calling.as_ref().filter(|calling| calling.kind == "bind") {
            self.bound_id = bind.query_id;
        }
        let id = if kind == Kind::Exec { std::mem::take(&mut self.bound_id) } else { 0 };
        // Before the call ahead is over: a parse is known by the id, too.
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

    /// The statement of a call that had begun before the recording.
    pub fn recall(&mut self, text: &[u8], store: &mut Store) {
        if let Some(calling) = &mut self.calling {
            calling.kind = "exec";
            calling.is_taken_up = true;
            calling.sort = Sort::of(text);
            calling.statement = statement_of(text, store);
        }
    }

    /// A plan begins, and says its query id. Of a statement that is sent as a text that is after it was taken up, and the first
    /// id is its own; those behind it are of statements inside. A prepared one says it when it is bound: before it is taken
    /// up, within the call ahead where the client was so quick that the server did not wait for it.
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

    /// A statement is done.
    pub fn finish_statement(&mut self, at_ns: u64, rows: Option<u64>, store: &mut Store, known: &mut Known) {
        self.noted(at_ns, true, store, known);
        self.bound_id = 0; // of the second statement of one text
        if let Some(calling) = &mut self.calling {
            calling.is_done = true;
            calling.rows = match (calling.rows, rows) {
                (Some(known), Some(more)) => Some(known + more),
                (known, more) => known.or(more),
            };
        }
    }

    /// A SQLSTATE is being reported, of an error or of less. Where no statement was taken up there is one, it is being bound.
    pub fn state(&mut self, at_ns: u64, state: u32, text: Option<&[u8]>, store: &mut Store, known: &mut Known) {
        self.noted(at_ns, true, store, known);
        self.last_state = state;
        let text = text.filter(|text| !text.is_empty());
        if let (Some(calling), Some(text)) = (self.calling.as_mut().filter(|calling| !calling.is_taken_up), text) {
            (calling.is_taken_up, calling.kind) = (true, "bind");
            calling.statement = statement_of(text, store);
        }
    }

    /// The error was one.
    pub fn abort(&mut self, at_ns: u64, store: &mut Store, known: &mut Known) {
        const INTERNAL_ERROR: u32 = 2_600; // XX000 packed as the server does
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
            // 14 and 15 say the query id when a statement is bound, and not again when it is executed.
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

    /// The process, or the recording, is over.
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

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.done
    }
}

/// Hands the waits of a call on, with the statement that is known by now.
fn flush(calling: &mut Calling, store: &mut Store) {
    for mut row in calling.waits.drain(..) {
        row.statement = calling.statement;
        store.wait(row);
    }
}
