//! Mapping of generated keys: captured values to values of the replay.
//!
//! If an INSERT with RETURNING returned 17 in the capture and returns 23 now, 17 is replaced by 23 in what is sent
//! afterwards, but only in the places of keys of the same space ([`super::keys`]): parameters of either format, arrays,
//! and literals. Every other value is sent as it was captured. If a message contains a key that another session had
//! received in the capture before the message was sent, the replay waits until that session receives its key, or until
//! [`PATIENCE`] is over.
//!
//! Limits: only plain literals are mapped (`17`, `'17'`), not `E'17'` or `-17`. The rows of a COPY are sent as
//! captured.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use dyno_evidence::normal::{Piece, pieces};

use super::bind::{Bind, format_of};
use super::places::{Place, Places};
use super::values::{Kind, Value, in_binary_array, in_text_array};
use crate::framing::text;

/// Mapping of old values to new ones, by key space.
#[derive(Debug, Default)]
pub struct Ids {
    spaces: Vec<Space>,
    late: AtomicU64,
}

/// Longest time that a round trip waits for a key that another session will generate.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Space {
    kind: Kind,
    known: Mutex<HashMap<Value, Value>>,
    /// Captured keys that are still to be generated, with the time at which they were returned in the capture [ns].
    awaited: Mutex<HashMap<Value, u64>>,
    moved: Condvar,
    /// Number of replaced values.
    mapped: AtomicU64,
}

impl Ids {
    /// Returns an empty mapping for spaces with these kinds of values.
    pub fn new(kinds: &[Kind]) -> Self {
        let space = |kind: &Kind| Space {
            kind: *kind,
            known: Mutex::default(),
            awaited: Mutex::default(),
            moved: Condvar::new(),
            mapped: AtomicU64::default(),
        };
        Self { spaces: kinds.iter().map(space).collect(), late: AtomicU64::default() }
    }

    /// Records that a key will be generated; it was returned at this time in the capture [ns].
    pub fn expect(&self, space: usize, then: &[u8], is_binary: bool, returned_ns: u64) {
        let Some(space) = self.spaces.get(space) else { return };
        if let Some(value) = Value::of(space.kind, then, is_binary) {
            let mut awaited = space.awaited.lock().unwrap_or_else(PoisonError::into_inner);
            let first = awaited.entry(value).or_insert(returned_ns);
            *first = returned_ns.min(*first);
        }
    }

    /// Ends the waits for a key that was returned at this time in the capture, whether or not it was generated.
    pub fn settle(&self, space: usize, then: &[u8], is_binary: bool, returned_ns: u64) {
        let Some(space) = self.spaces.get(space) else { return };
        if let Some(value) = Value::of(space.kind, then, is_binary) {
            let mut awaited = space.awaited.lock().unwrap_or_else(PoisonError::into_inner);
            if awaited.get(&value) == Some(&returned_ns) {
                awaited.remove(&value);
                space.moved.notify_all();
            }
        }
    }

    /// Returns the number of keys that were sent before they were generated, after a wait that timed out.
    pub fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    /// Waits until the key is generated, if it had been returned before `sent_ns` in the capture.
    fn wait(&self, space: &Space, value: &Value, sent_ns: u64) {
        let awaited = space.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        let is_missing = |awaited: &mut HashMap<Value, u64>| awaited.get(value).is_some_and(|at_ns| *at_ns < sent_ns);
        let waited = space.moved.wait_timeout_while(awaited, PATIENCE, is_missing);
        if waited.is_ok_and(|(_, limit)| limit.timed_out()) {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records that a key was `then` in the capture and is `now` in the replay, in the same form.
    pub fn learn(&self, space: usize, then: &[u8], now: &[u8], is_binary: bool) {
        let Some(space) = self.spaces.get(space) else { return };
        let value = |bytes| Value::of(space.kind, bytes, is_binary);
        if let (Some(old), Some(new)) = (value(then), value(now)) {
            let mut known = space.known.lock().unwrap_or_else(PoisonError::into_inner);
            if old == new {
                known.remove(&old);
            } else {
                known.insert(old, new);
            }
        }
    }

    /// Returns the number of changed keys of each space, and the number of replaced values.
    pub fn counts(&self) -> Vec<(usize, u64)> {
        let count = |space: &Space| {
            let known = space.known.lock().unwrap_or_else(PoisonError::into_inner).len();
            (known, space.mapped.load(Ordering::Relaxed))
        };
        self.spaces.iter().map(count).collect()
    }

    fn new_value(&self, space: usize, old: &[u8], is_binary: bool, sent_ns: u64) -> Option<Vec<u8>> {
        let space = self.spaces.get(space)?;
        let value = Value::of(space.kind, old, is_binary)?;
        self.wait(space, &value, sent_ns);
        let known = space.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new = known.get(&value)?;
        let new = if is_binary { new.as_binary(old.len())? } else { new.as_text() };
        space.mapped.fetch_add(1, Ordering::Relaxed);
        Some(new)
    }

    /// Returns the value to send instead of a captured one, and the number of replaced keys in it.
    fn instead(&self, place: &Place, old: &[u8], is_binary: bool, sent_ns: u64) -> Option<(Vec<u8>, u64)> {
        let (_, space, is_array) = *place;
        if !is_array {
            return Some((self.new_value(space, old, is_binary, sent_ns)?, 1));
        }
        let one = |old: &[u8]| self.new_value(space, old, is_binary, sent_ns);
        let (new, count) = if is_binary { in_binary_array(old, one)? } else { in_text_array(old, one) };
        (count > 0).then_some((new, count))
    }

    /// Returns a message body with replaced keys and their number; `None` if nothing is replaced.
    ///
    /// The message was sent at `sent_ns` in the capture, so keys that had been returned before then are waited for.
    pub fn mapped(&self, tag: u8, body: &[u8], places: &Places, sent_ns: u64) -> Option<(Vec<u8>, u64)> {
        match tag {
            b'B' => self.in_bind(body, &places.parameters, sent_ns),
            b'Q' => self.in_text(text(body).0, &places.literals, sent_ns).map(|(mut sql, count)| {
                sql.push(0);
                (sql, count)
            }),
            b'P' => {
                let (name, rest) = text(body);
                let (sql, types) = text(rest);
                let (sql, count) = self.in_text(sql, &places.literals, sent_ns)?;
                Some(([name, &[0], &sql, &[0], types].concat(), count))
            }
            _ => None,
        }
    }

    fn in_text(&self, sql: &[u8], places: &[Place], sent_ns: u64) -> Option<(Vec<u8>, u64)> {
        if places.is_empty() {
            return None;
        }
        let (mut out, mut count, mut literal) = (Vec::with_capacity(sql.len()), 0, 0);
        for piece in pieces(sql) {
            let (Piece::Literal(range) | Piece::Space(range) | Piece::Other(range)) = piece.clone();
            let bytes = &sql[range];
            let mut new = None;
            if matches!(piece, Piece::Literal(_)) {
                new = places
                    .iter()
                    .find(|place| place.0 == literal)
                    .and_then(|place| self.new_literal(place, bytes, sent_ns));
                literal += 1;
            }
            match new {
                Some((new, replaced)) => {
                    count += replaced;
                    out.extend_from_slice(&new);
                }
                None => out.extend_from_slice(bytes),
            }
        }
        (count > 0).then_some((out, count))
    }

    fn new_literal(&self, place: &Place, literal: &[u8], sent_ns: u64) -> Option<(Vec<u8>, u64)> {
        let Some(quoted) = literal.strip_prefix(b"'").and_then(|rest| rest.strip_suffix(b"'")) else {
            return self.instead(place, literal, false, sent_ns);
        };
        let old = String::from_utf8_lossy(quoted).replace("''", "'");
        let (new, count) = self.instead(place, old.as_bytes(), false, sent_ns)?;
        let new = String::from_utf8_lossy(&new).replace('\'', "''");
        Some((format!("'{new}'").into_bytes(), count))
    }

    fn in_bind(&self, body: &[u8], places: &[Place], sent_ns: u64) -> Option<(Vec<u8>, u64)> {
        if places.is_empty() {
            return None;
        }
        let bind = Bind::of(body)?;
        let (mut out, mut count) = (bind.head.to_vec(), 0);
        for (at, old) in bind.values.iter().enumerate() {
            let Some(old) = old else {
                out.extend_from_slice(&(-1i32).to_be_bytes());
                continue;
            };
            let place = places.iter().find(|place| place.0 == at + 1);
            let new = place.and_then(|place| self.instead(place, old, format_of(&bind.formats, at), sent_ns));
            count += new.as_ref().map_or(0, |new| new.1);
            let value = new.as_ref().map_or(*old, |new| &new.0);
            out.extend_from_slice(&(value.len() as i32).to_be_bytes());
            out.extend_from_slice(value);
        }
        out.extend_from_slice(bind.behind);
        (count > 0).then_some((out, count))
    }
}
