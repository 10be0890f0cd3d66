//! Timed transactions of a replay, by which a plan's arms are compared.
//!
//! A transaction is everything that the server does between two moments at which it is in no transaction: a single
//! statement, or everything from a `begin` to its end. A round trip that ends no statement (one that only prepares) is
//! not a transaction. The time of a transaction is that of its round trips, without the client's think time between
//! them.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};

use super::read::{Said, Session, Turn};
use crate::framing::text;
use crate::statement::{is_same_failure, rows_of};

/// Converter of `Instant`s to nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    begun: Instant,
    begun_ns: u64,
}

impl Clock {
    /// Reads both clocks in direct succession.
    pub fn now() -> Self {
        let begun_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        Self { begun: Instant::now(), begun_ns }
    }

    /// Converts a later moment to nanoseconds since 1970.
    pub fn at_ns(&self, moment: Instant) -> u64 {
        self.begun_ns + moment.saturating_duration_since(self.begun).as_nanos() as u64
    }
}

/// Executed transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Index of the session in the capture.
    pub session: u32,
    /// Time at which the transaction's first message was sent [ns since 1970].
    pub started_ns: u64,
    /// Total time of the transaction's round trips [ns].
    pub elapsed_ns: u64,
    /// Number of rows of all statements of the transaction.
    pub rows: u64,
    /// First failure: its SQLSTATE, and whether the capture had the same failure.
    pub failed: Option<([u8; 5], bool)>,
    /// True if at least one statement of the transaction has ended.
    pub did: bool,
}

fn is_end(said: &Said) -> bool {
    matches!(said.tag, b'C' | b's' | b'I' | b'E')
}

impl Timed {
    /// Begins a transaction.
    pub fn begin(session: u32, started_ns: u64) -> Self {
        Self { session, started_ns, elapsed_ns: 0, rows: 0, failed: None, did: false }
    }

    /// Adds a round trip to the transaction.
    pub fn add(&mut self, elapsed: Duration, then: &Turn, now: &[Said]) {
        self.elapsed_ns += elapsed.as_nanos() as u64;
        self.did |= now.iter().any(is_end);
        for said in now {
            match said.tag {
                b'C' => self.rows += rows_of(text(&said.body).0).unwrap_or(0),
                b'E' => {
                    let state = said.body.as_slice().try_into().unwrap_or(*b"XX000");
                    let known =
                        then.answers.iter().any(|other| other.tag == b'E' && is_same_failure(&other.body, &said.body));
                    self.fail(state, known);
                }
                _ => {}
            }
        }
    }

    /// Records a failure, if it is the transaction's first one.
    pub fn fail(&mut self, state: [u8; 5], known: bool) {
        self.failed.get_or_insert((state, known));
    }
}

/// Returns transactions as JSON columns; `error` is 0, or 1 + the index in `failures`.
pub fn columns(timed: &[Timed]) -> Json {
    let mut failures: Vec<([u8; 5], bool)> = Vec::new();
    let mut errors = Vec::with_capacity(timed.len());
    for one in timed {
        errors.push(one.failed.map_or(0, |failed| {
            let place = failures.iter().position(|known| *known == failed).unwrap_or_else(|| {
                failures.push(failed);
                failures.len() - 1
            });
            place + 1
        }));
    }
    let listed: Vec<Json> =
        failures.iter().map(|(state, known)| json!([String::from_utf8_lossy(state), known])).collect();
    let of = |value: fn(&Timed) -> u64| timed.iter().map(value).collect::<Vec<_>>();
    json!({
        "session": of(|one| u64::from(one.session)),
        "started_ns": of(|one| one.started_ns),
        "elapsed_ns": of(|one| one.elapsed_ns),
        "rows": of(|one| one.rows),
        "error": errors,
        "failures": listed,
    })
}

/// Returns a summary of a capture as JSON: sessions, concurrent sessions, round trips, transactions and duration.
pub fn summary(sessions: &[Session]) -> Json {
    let (mut transactions, mut turns, mut edges) = (0_u64, 0_u64, Vec::new());
    let (mut first_ns, mut last_ns) = (u64::MAX, 0);
    for session in sessions {
        let mut inside = false;
        let (begin_ns, end_ns) = session.span_ns();
        for turn in session.turns.iter().filter(|turn| turn.is_whole() && turn.done_ns.is_some()) {
            turns += 1;
            let does = inside || turn.answers.iter().any(is_end);
            inside = turn.status != b'I';
            transactions += u64::from(does && !inside);
        }
        transactions += u64::from(inside);
        edges.push((begin_ns, 1_i64));
        edges.push((end_ns + 1, -1));
        (first_ns, last_ns) = (first_ns.min(begin_ns), last_ns.max(end_ns));
    }
    edges.sort_unstable();
    let at_once = edges.iter().scan(0, |open, edge| {
        *open += edge.1;
        Some(*open)
    });
    json!({
        "sessions": sessions.len(),
        "at_once": at_once.max().unwrap_or(0),
        "turns": turns,
        "transactions": transactions,
        "then_ns": last_ns.saturating_sub(first_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(sent_ns: u64, done_ns: u64, status: u8) -> Turn {
        let end = Said { tag: b'C', body: b"SELECT 1\0".to_vec(), is_whole: true, places: None };
        Turn { sent_ns, done_ns: Some(done_ns), status, answers: vec![end], ..Turn::default() }
    }

    #[test]
    fn a_capture_is_counted_by_transactions_and_by_sessions_at_once() {
        let turns = |from: u64| {
            vec![turn(from, from + 1, b'T'), turn(from + 2, from + 3, b'I'), turn(from + 4, from + 5, b'I')]
        };
        let session = |number, from| Session { number, turns: turns(from), ..Session::default() };
        let found = summary(&[session(1, 0), session(2, 3), session(3, 100)]);
        assert_eq!(found["transactions"], 6);
        assert_eq!(found["turns"], 9);
        assert_eq!((&found["sessions"], &found["at_once"]), (&json!(3), &json!(2)));
        assert_eq!(found["then_ns"], 105);
        let prepares = Turn { answers: vec![], ..turn(0, 1, b'I') };
        assert_eq!(summary(&[Session { turns: vec![prepares], ..Session::default() }])["transactions"], 0);
    }

    #[test]
    fn the_first_failure_counts_and_is_known_where_the_capture_had_it() {
        let said = |tag, body: &[u8]| Said { tag, body: body.to_vec(), is_whole: true, places: None };
        let then = Turn { answers: vec![said(b'E', b"23505")], ..Turn::default() };
        let mut one = Timed::begin(0, 5);
        one.add(Duration::from_nanos(7), &then, &[said(b'C', b"UPDATE 3\0"), said(b'E', b"23505")]);
        one.add(Duration::from_nanos(2), &then, &[said(b'E', b"40001")]);
        assert_eq!((one.rows, one.elapsed_ns, one.failed), (3, 9, Some((*b"23505", true))));
        let other = Timed { failed: Some((*b"40001", false)), ..Timed::begin(1, 6) };
        let found = columns(&[one, Timed::begin(1, 2), other]);
        assert_eq!(found["error"], json!([1, 0, 2]));
        assert_eq!(found["failures"], json!([["23505", true], ["40001", false]]));
    }
}
