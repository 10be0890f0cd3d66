//! Effects of `***` lines and the header: changes of session, attributes, clock.

use super::super::clock::{TICK_NS, TimUnit};
use super::super::record::{Batch, NONE, Stamp, StampKind};
use super::super::rows::{Belongs, NO_STATEMENT, Place, Sink};
use super::super::session::Session;
use super::{CENTISECOND_NS, HEADER_LINES_MAX, MICROSECOND_NS, Reader};

impl<S: Sink> Reader<S> {
    /// Returns the unit according to the stamps, if it differs from the one in use and the user set none: centiseconds
    /// in a file without a version (8i), ticks of 1.024 µs up to 9i.
    pub fn other_unit_ns(&self) -> Option<i64> {
        if self.reading.unit_ns.is_some() || self.unit_ns != MICROSECOND_NS {
            return None;
        }
        let major = self.facts.major();
        self.sessions.iter().find_map(|session| match session.clock.unit() {
            TimUnit::Centisecond if major.is_none() => Some(CENTISECOND_NS),
            TimUnit::Tick if major.is_none_or(|major| major <= 9) => Some(TICK_NS),
            _ => None,
        })
    }

    pub(super) fn stamp(&mut self, batch: &Batch, place: Place, stamp: &Stamp) {
        let value = String::from_utf8_lossy(batch.bytes_of(stamp.value)).into_owned();
        match stamp.kind {
            StampKind::Clock => self.clock_stamp(batch, stamp),
            StampKind::Process => self.go_to_process(&value),
            StampKind::Session => self.go_to_session(&value),
            StampKind::Appname => self.appname(&value),
            StampKind::ContinuedFrom => self.pieces.continued = true,
            StampKind::ContinuesIn => self.pieces.continues = true,
            StampKind::SizeLimit => self.pieces.cut = true,
            StampKind::Unknown => {}
            StampKind::Container => {
                let container = &mut self.sessions[self.current].context.container;
                if container.ends_with(&format!("({value})")) {
                    // The plain stamp already told its name.
                } else if *container != value {
                    *container = value;
                    self.context_changed();
                }
            }
            _ => self.attribute(stamp.kind, value),
        }
        let at_ns = stamp.wall_ns;
        let at = Belongs { place, session: self.current as u32, statement: NO_STATEMENT, at_ns };
        self.sink.stamp(batch, stamp, at);
    }

    fn context_changed(&mut self) {
        self.sessions[self.current].context_number = None;
    }

    fn clock_stamp(&mut self, batch: &Batch, stamp: &Stamp) {
        let session = &mut self.sessions[self.current];
        session.clock.stamp(stamp.wall_ns);
        let container = batch.bytes_of(stamp.container);
        if !container.is_empty() && session.context.container.as_bytes() != container {
            session.context.container = String::from_utf8_lossy(container).into_owned();
            self.context_changed();
        }
    }

    fn attribute(&mut self, kind: StampKind, value: String) {
        let context = &mut self.sessions[self.current].context;
        let place = match kind {
            StampKind::Client => &mut context.client_id,
            StampKind::Service => &mut context.service,
            StampKind::Module => &mut context.module,
            StampKind::Action => &mut context.action,
            StampKind::Driver => &mut context.driver,
            StampKind::ClientIp => &mut context.client_ip,
            StampKind::Connection => &mut context.connection,
            _ => return,
        };
        if *place != value {
            *place = value;
            self.context_changed();
        }
    }

    /// Parses `APPNAME mod='x' mh=n act='y' ah=n`: module and action up to 9i.
    fn appname(&mut self, line: &str) {
        let between = |from: &str, to: &str| {
            let at = line.find(from)? + from.len();
            let length = line[at..].find(to)?;
            Some(line[at..at + length].to_owned())
        };
        if let Some(module) = between("mod='", "' mh=") {
            self.attribute(StampKind::Module, module);
        }
        if let Some(action) = between("act='", "' ah=") {
            self.attribute(StampKind::Action, action);
        }
    }

    /// Switches to a process at the beginning of a block of trcsess.
    fn go_to_process(&mut self, process: &str) {
        let current = &mut self.sessions[self.current];
        if current.process == process {
            return;
        }
        if current.is_fresh() && current.process.is_empty() {
            process.clone_into(&mut current.process);
            self.tell_session();
            return;
        }
        let found = self.sessions.iter().rposition(|known| known.process == process);
        self.switch(found, process, "");
    }

    /// Handles SESSION ID: names the session if it has no name yet, otherwise switches to the session of that name.
    fn go_to_session(&mut self, name: &str) {
        let current = &mut self.sessions[self.current];
        if current.name != name {
            let process = current.process.clone();
            let same = |known: &Session| known.name == name && known.process == process;
            let found = self.sessions.iter().position(same);
            let current = &mut self.sessions[self.current];
            if found.is_none() && current.name.is_empty() {
                name.clone_into(&mut current.name);
                self.tell_session();
            } else {
                self.switch(found, &process, name);
            }
        }
        let context = &mut self.sessions[self.current].context;
        if context.session_id != name {
            name.clone_into(&mut context.session_id);
            self.context_changed();
        }
    }

    /// Switches to a session, which is created if it was not found. A stamp whose record has not been read yet moves to
    /// the new session, since that record belongs to it.
    fn switch(&mut self, found: Option<usize>, process: &str, name: &str) {
        let stamp = self.sessions[self.current].clock.take_stamp();
        self.current = found.unwrap_or(self.sessions.len());
        if found.is_none() {
            let mut session = Session::default();
            name.clone_into(&mut session.name);
            process.clone_into(&mut session.process);
            session.unanchored = (self.calls, self.waits);
            self.sessions.push(session);
            self.tell_session();
        }
        self.sessions[self.current].clock.stamp(stamp);
    }

    fn tell_session(&mut self) {
        let session = &self.sessions[self.current];
        let process = if session.process.is_empty() { &self.facts.pid } else { &session.process };
        self.sink.session(self.current as u32, &session.name, process);
    }

    pub(super) fn header_line(&mut self, place: Place, line: &str) {
        if self.calls + self.waits > 0 {
            self.header_again = true;
            let session = self.current as u32;
            let at = Belongs { place, session, statement: NO_STATEMENT, at_ns: NONE };
            self.sink.header_again(line, at);
        } else if self.header.len() < HEADER_LINES_MAX {
            self.header.push(line.to_owned());
            self.facts.add(line.as_bytes());
            self.tell_session();
            if self.reading.unit_ns.is_none() && self.facts.major() == Some(8) {
                self.set_unit(CENTISECOND_NS);
            }
        }
    }
}
