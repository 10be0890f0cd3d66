//! What is known late or never: a process that is seen some time after it began, the text of a statement that is under
//! way, and time of which nothing was seen.

use super::text::{Sort, statement_of};
use super::{Calling, Known, NOT_ENDED, Session, Waiting, Who};
use crate::store::{Store, Sums, UNOBSERVED};

impl Session {
    /// A process that is there from `since_ns` on, and is not seen yet; `is_born_here`: it began then.
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

    /// From here on it is seen; `event` is what it waits for now.
    pub fn observe(&mut self, at_ns: u64, event: u32, store: &mut Store, known: &mut Known) {
        self.tick(at_ns);
        if let Some(since_ns) = self.lost_since.take() {
            self.tell_unobserved(since_ns, store, known);
        }
        self.begin(event, known);
    }

    /// Whether the text of the statement that is worked at is still to be told.
    pub fn lacks_text(&self, store: &Store) -> bool {
        let lacks = |calling: &Calling| calling.is_taken_up && !store.has_text(calling.statement);
        self.calling.as_ref().is_some_and(lacks)
    }

    /// The text of the statement that is worked at.
    pub fn learn(&mut self, text: &[u8], store: &mut Store) {
        let Some(calling) = self.calling.as_mut().filter(|calling| calling.is_taken_up) else { return };
        let of_text = statement_of(text, store);
        let id = calling.query_id;
        calling.sort = Sort::of(text);
        calling.statement = if id == 0 { of_text } else { store.statement_of_id(id, of_text) };
    }

    /// Whether it was there before the recording.
    pub fn was_there(&self) -> bool {
        !self.is_born_here
    }

    /// Notes were lost: what is open ends where it was last seen, and nothing is known from there on.
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

    /// Waits of a class are no longer noted: nobody will tell when the one that is open ends.
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
