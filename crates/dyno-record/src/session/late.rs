//! Handling of late or missing information: sessions first observed late, texts that are read later, and unobserved
//! time.

use super::text::{Sort, statement_of};
use super::{Calling, Known, NOT_ENDED, Session, Waiting, Who};
use crate::store::{Store, Sums, UNOBSERVED};

impl Session {
    /// Returns the session of a process that exists from `since_ns` on but is not observed yet.
    ///
    /// `is_born_here` is true if the process began at that time.
    pub fn unseen(number: u32, pid: i32, who: Who, since_ns: u64, is_born_here: bool) -> Self {
        Self {
            number,
            pid,
            who,
            since_ns,
            until_ns: since_ns,
            sums: Sums::default(),
            is_born_here,
            had_statement: !is_born_here,
            last_state: 0,
            running: None,
            ticked_ns: since_ns,
            waiting: None,
            calling: None,
            bound: None,
            bound_id: 0,
            lost_since: Some(since_ns),
            done: false,
        }
    }

    /// Begins the observation; `event` is what the process waits for now.
    pub fn observe(&mut self, at_ns: u64, event: u32, store: &mut Store, known: &mut Known) {
        self.tick(at_ns);
        if let Some(since_ns) = self.lost_since.take() {
            self.tell_unobserved(since_ns, store, known);
        }
        self.begin(event, known);
    }

    /// Sets whether the process is working, that is, not waiting. A recorder that reads memory cannot tell whether the
    /// process runs or queues for a processor.
    pub fn is_at_work(&mut self, is_at_work: bool) {
        self.running = Some(is_at_work);
    }

    /// Returns true if the text of the current statement is still unknown.
    pub fn lacks_text(&self, store: &Store) -> bool {
        let lacks = |calling: &Calling| calling.is_taken_up && !store.has_text(calling.statement);
        self.calling.as_ref().is_some_and(lacks)
    }

    /// Sets the text of the current statement.
    pub fn learn(&mut self, text: &[u8], store: &mut Store) {
        let Some(calling) = self.calling.as_mut().filter(|calling| calling.is_taken_up) else { return };
        let of_text = statement_of(text, store);
        let id = calling.query_id;
        calling.sort = Sort::of(text);
        calling.statement = if id == 0 { of_text } else { store.statement_of_id(id, of_text) };
    }

    /// Returns true if the process existed before the recording.
    pub fn was_there(&self) -> bool {
        !self.is_born_here
    }

    /// Handles lost notes: open calls and waits end at the last observation, and the time after it is unobserved.
    pub fn lose(&mut self, since_ns: u64, store: &mut Store, known: &mut Known) {
        if self.done || self.lost_since.is_some() {
            return;
        }
        let at_ns = since_ns.max(self.until_ns);
        self.tick(at_ns);
        self.end_wait(at_ns, NOT_ENDED, store, known);
        self.end_call(at_ns, store);
        self.running = None;
        self.lost_since = Some(at_ns);
    }

    /// Ends the open wait of a class that is no longer recorded, because its end will not be observed.
    pub fn give_up(&mut self, class: u8, at_ns: u64, store: &mut Store, known: &mut Known) {
        if self.waiting.is_some_and(|waiting| waiting.class == class) {
            self.tick(at_ns);
            self.end_wait(self.until_ns, NOT_ENDED, store, known);
        }
    }

    pub(super) fn not_observed(&mut self, since_ns: u64, store: &mut Store, known: &mut Known) {
        self.tell_unobserved(since_ns, store, known);
        self.open(self.until_ns, known);
    }

    pub(super) fn tell_unobserved(&mut self, since_ns: u64, store: &mut Store, known: &mut Known) {
        let event = UNOBSERVED;
        self.waiting = Some(Waiting { event, since_ns, cpu_ns: 0, think: false, cut: 0, price_ns: 0, class: 0 });
        self.end_wait(self.until_ns, 0, store, known);
    }
}
