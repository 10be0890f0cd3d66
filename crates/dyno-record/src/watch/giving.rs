//! Assignment of backends' notes to their sessions.

use super::backend::Seen;
use super::watching::Watching;

impl Watching {
    /// Processes all available notes.
    pub fn drain(&mut self) {
        let pids: Vec<i32> = self.backends.keys().copied().collect();
        for pid in pids {
            self.drain_one(pid);
        }
    }

    fn drain_one(&mut self, pid: i32) {
        let mut notes = std::mem::take(&mut self.notes);
        let Some(backend) = self.backends.get_mut(&pid) else { return };
        let layout = self.target.layout.as_ref();
        backend.drain(layout, &mut self.target.stores, &mut notes);
        let (at, is_seen) = (backend.at, backend.is_seen);
        let is_over = notes.iter().any(|(_, seen)| *seen == Seen::Exit);
        if let Some(at) = at {
            let (last, text) = self.last_text(pid, at, &notes);
            for (number, (at_ns, seen)) in notes.iter().enumerate() {
                let text = text.as_deref().filter(|_| Some(number) == last);
                self.give(at, is_seen, *at_ns, seen, text);
            }
        }
        notes.clear();
        self.notes = notes;
        if is_over {
            self.backends.remove(&pid);
        }
    }

    /// Returns the index of the last note that begins a statement, and its text.
    ///
    /// The text is `None` if it is known already or can no longer be read.
    fn last_text(&mut self, pid: i32, at: usize, notes: &[(u64, Seen)]) -> (Option<usize>, Option<Vec<u8>>) {
        let last = notes.iter().rposition(|(_, seen)| matches!(seen, Seen::TakeUp(_)));
        let (Some(layout), Some(backend)) = (&self.target.layout, self.backends.get(&pid)) else { return (None, None) };
        let text = match last {
            Some(last) if self.lacks_text(&notes[last..]) => backend.text(layout),
            None if self.sessions[at].lacks_text(&self.store) => {
                if let Some(text) = backend.text(layout) {
                    self.sessions[at].learn(&text, &mut self.store);
                }
                None
            }
            _ => None,
        };
        (last, text)
    }

    /// Returns true if these notes contain no query id whose statement's text is already known.
    fn lacks_text(&self, notes: &[(u64, Seen)]) -> bool {
        let id = notes.iter().find_map(|(_, seen)| if let Seen::QueryId(id) = seen { Some(*id) } else { None });
        id.is_none_or(|id| !self.store.knows_id(id))
    }

    fn pay(&mut self, at: usize, price_ns: u64) {
        self.counts.notes += 1;
        self.counts.probes_ns += price_ns;
        self.known.price_ns = price_ns;
        *self.busy.entry(at).or_default() += price_ns;
    }

    fn give(&mut self, at: usize, is_seen: bool, at_ns: u64, seen: &Seen, text: Option<&[u8]>) {
        let price = self.target.price;
        match seen {
            Seen::Wait(_) => self.pay(at, price.wait_ns),
            Seen::TakeUp(_) | Seen::QueryId(_) => self.pay(at, price.call_ns),
            _ => {}
        }
        let (session, store, known) = (&mut self.sessions[at], &mut self.store, &mut self.known);
        // Notes from before the observation, or from outside of it, count only if they report the end.
        if !is_seen || at_ns < session.until_ns {
            if *seen == Seen::Exit {
                session.end(at_ns, true, store, known);
            }
            return;
        }
        match seen {
            Seen::Wait(Some(event)) => session.wait(at_ns, *event, store, known),
            Seen::Wait(None) => {
                self.counts.undecoded += 1;
                session.lose(at_ns, store, known);
            }
            Seen::TakeUp(kind) => session.take_up(at_ns, *kind, text, store, known),
            Seen::QueryId(id) => session.query_id(at_ns, *id, store, known),
            Seen::Switch(off) => session.switched(at_ns, *off),
            Seen::Exit => session.end(at_ns, true, store, known),
            Seen::Lost(count) => {
                self.counts.lost += count;
                self.gaps.push((*count, session.until_ns, at_ns));
                session.lose(session.until_ns, store, known);
            }
        }
    }
}
