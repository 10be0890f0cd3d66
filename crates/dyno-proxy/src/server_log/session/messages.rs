//! Messages of a session: what its client must have sent, and the answers as far as the log has them.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use super::super::command::{Command, Effect, has_parameters};
use super::super::event::{Said, Step};
use super::{Counts, Ending, Lack, Session, is_same};
use crate::framing::Message;
use crate::shared::Shared;

fn hash(sql: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    sql.hash(&mut hasher);
    hasher.finish()
}

impl Session {
    pub(super) fn client(&mut self, at_ns: u64, tag: u8, body: &[u8], shared: &mut Shared) {
        self.follower.client(at_ns, Message { tag, length: body.len(), body }, shared);
    }

    /// Keeps a message without its complete body, so that a replay leaves out its round trip.
    pub(super) fn client_in_part(&mut self, at_ns: u64, tag: u8, body: &[u8], shared: &mut Shared) {
        self.follower.client(at_ns, Message { tag, length: body.len() + 1, body }, shared);
    }

    pub(super) fn server(&mut self, at_ns: u64, tag: u8, body: &[u8], shared: &mut Shared) {
        self.follower.server(at_ns, Message { tag, length: body.len(), body }, shared);
    }

    pub(super) fn ready(&mut self, at_ns: u64, shared: &mut Shared) {
        let status = [self.status];
        self.server(at_ns, b'Z', &status, shared);
        self.follower.settle(at_ns, shared);
        self.free_ns = at_ns;
    }

    pub(super) fn parse(&mut self, said: &Said, at_ns: u64, shared: &mut Shared) {
        let digest = hash(&said.sql);
        if !said.name.is_empty() && self.named.insert(said.name.clone(), digest).is_some_and(|known| known != digest) {
            self.client(at_ns, b'C', &[b"S", said.name.as_slice(), b"\0"].concat(), shared);
        }
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        body.extend_from_slice(&said.name);
        body.push(0);
        body.extend_from_slice(&said.sql);
        body.extend_from_slice(&[0, 0, 0]);
        self.client(at_ns, b'P', &body, shared);
        self.body = body;
    }

    pub(super) fn simple(
        &mut self,
        said: &Said,
        found: &[Command],
        sent_ns: u64,
        shared: &mut Shared,
        lacks: &mut Vec<Lack>,
    ) {
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        body.extend_from_slice(&said.sql);
        body.push(0);
        if found.iter().any(|command| command.effect == Effect::CopyIn) {
            lacks.push(Lack::Rows);
            self.client_in_part(sent_ns, b'Q', &body, shared);
        } else {
            self.client(sent_ns, b'Q', &body, shared);
        }
        self.body = body;
    }

    pub(super) fn extended(
        &mut self,
        said: &Said,
        sent_ns: u64,
        shared: &mut Shared,
        counts: &mut Counts,
        lacks: &mut Vec<Lack>,
    ) {
        let pending = self.pending.take().filter(|pending| is_same(pending, said));
        let is_parsed = pending.as_ref().is_some_and(|pending| pending.is_parsed);
        let is_known = !said.name.is_empty() && self.named.get(&said.name) == Some(&hash(&said.sql));
        if is_parsed || !is_known {
            counts.prepared_before += u64::from(!is_parsed && !said.name.is_empty());
            self.parse(said, sent_ns, shared);
        }
        let own = &said.parameters;
        let given = match &pending {
            Some(pending) if own.count == 0 && !own.is_broken => &pending.said.parameters,
            _ => own,
        };
        counts.with_parameters += u64::from(given.count > 0);
        let lack = if given.is_broken || (given.count == 0 && has_parameters(&said.sql)) {
            Some(Lack::Parameters)
        } else if given.cut_at.is_some_and(|length| length >= counts.longest.max(given.longest)) {
            Some(Lack::Cut)
        } else {
            None
        };
        counts.longest = counts.longest.max(given.longest);
        // Portal, statement; no formats: text; parameters; no formats of results.
        let mut body = vec![0];
        body.extend_from_slice(&said.name);
        body.extend_from_slice(&[0, 0, 0]);
        body.extend_from_slice(&given.count.to_be_bytes());
        body.extend_from_slice(&given.values);
        body.extend_from_slice(&[0, 0]);
        match lack {
            Some(lack) => {
                lacks.push(lack);
                self.client_in_part(sent_ns, b'B', &body, shared);
            }
            None => self.client(sent_ns, b'B', &body, shared),
        }
        self.client(sent_ns, b'E', &[0, 0, 0, 0, 0], shared);
        self.client(sent_ns, b'S', &[], shared);
        if is_parsed || !is_known {
            self.server(sent_ns, b'1', &[], shared);
        }
        self.server(sent_ns, b'2', &[], shared);
    }

    /// Adds the PREPARE of the statement that an EXECUTE needs, if the log has no earlier PREPARE of it.
    pub(super) fn prepare_before(
        &mut self,
        said: &Said,
        found: &[Command],
        sent_ns: u64,
        shared: &mut Shared,
        counts: &mut Counts,
    ) {
        let [Command { effect: Effect::Execute(name), .. }] = found else { return };
        if said.prepare.is_empty() || self.prepared.contains(name) {
            return;
        }
        counts.prepared_before += 1;
        self.prepared.insert(name.clone());
        self.client(sent_ns, b'Q', &[said.prepare.as_slice(), b"\0"].concat(), shared);
        self.server(sent_ns, b'C', b"PREPARE\0", shared);
        self.ready(sent_ns, shared);
    }

    /// Writes the server's answer.
    pub(super) fn end(
        &mut self,
        step: Step,
        commands: &[Command],
        ending: Ending,
        done_ns: u64,
        shared: &mut Shared,
        counts: &mut Counts,
    ) {
        if let Ending::Failed(state) = ending {
            let body = [b"C", &state[..], b"\0\0"].concat();
            self.server(done_ns, b'E', &body, shared);
            if self.status == b'T' {
                self.status = b'E';
            }
        } else if commands.is_empty() {
            self.server(done_ns, b'I', &[], shared);
        }
        for command in commands {
            let mut tag = &*command.tag;
            if self.status == b'E' && command.effect == (Effect::End { commits: true, chains: false }) {
                tag = "ROLLBACK";
            }
            let mut body = std::mem::take(&mut self.body);
            body.clear();
            body.extend_from_slice(tag.as_bytes());
            body.push(0);
            self.server(done_ns, b'C', &body, shared);
            self.body = body;
            self.apply(&command.effect, counts);
            if step != Step::Simple {
                break;
            }
        }
        self.ready(done_ns, shared);
    }

    pub(super) fn apply(&mut self, effect: &Effect, counts: &mut Counts) {
        match effect {
            Effect::Begin => (self.status, self.has_begun) = (b'T', true),
            Effect::End { chains, .. } => {
                counts.begun_before += u64::from(!self.has_begun);
                self.has_begun = true;
                self.status = if *chains { b'T' } else { b'I' };
            }
            Effect::ToSavepoint => self.status = b'T',
            Effect::Prepare(name) => drop(self.prepared.insert(name.clone())),
            Effect::Deallocate(name) if name.is_empty() => {
                self.prepared.clear();
                self.named.clear();
            }
            Effect::Deallocate(name) => {
                self.prepared.remove(name);
                self.named.remove(name);
            }
            Effect::None | Effect::CopyIn | Effect::Execute(_) => {}
        }
    }
}
