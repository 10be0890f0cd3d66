//! Replay of one session: its round trips in order, and the comparison of the answers with the captured ones.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dyno_evidence::normal::normal;
use dyno_load::{ConnectionSpec, RawSession, WireError};

use super::ids::Ids;
use super::keys;
use super::order::Order;
use super::outcome::{Difference, Outcome};
use super::read::{Said, Session, Turn};
use super::spoken::Texts;
use super::timed::{Clock, Timed};
use crate::framing::{Framer, text};
use crate::opening::message;
use crate::statement::{is_same_failure, rows_of, state_of};

/// Size of a read [bytes].
const BUFFER: usize = 1 << 16;
/// Longest uninterrupted sleep in a think time, so that a request to stop is noticed.
const NAP: Duration = Duration::from_millis(100);

/// State that all sessions of a replay share.
pub(super) struct Stage<'a> {
    pub(super) spec: &'a ConnectionSpec,
    pub(super) stop: &'a Arc<AtomicBool>,
    /// Speed relative to the capture; 0 for no pauses at all.
    pub(super) speed: f64,
    pub(super) order: Option<&'a Order>,
    pub(super) ids: &'a Ids,
    pub(super) begun: Instant,
    /// Time of the capture's first message [ns].
    pub(super) first_ns: u64,
    pub(super) progress: &'a Progress,
    /// SQL that each session sends before anything else.
    pub(super) session_sql: &'a [String],
    /// Clock for timed transactions; `None` if they are not timed.
    pub(super) clock: Option<Clock>,
}

/// Progress of a running replay.
#[derive(Debug, Default)]
pub struct Progress {
    /// Number of finished round trips.
    pub turns: AtomicU64,
    /// Number of active sessions.
    pub sessions: AtomicU64,
    /// Number of answers that differ from the capture.
    pub differing: AtomicU64,
}

struct Player<'a> {
    stage: &'a Stage<'a>,
    wire: RawSession,
    framer: Framer,
    buffer: Vec<u8>,
    waiting: Vec<Said>,
    /// SQLSTATE of the last error, if no other message followed it.
    refusal: Option<String>,
    outcome: Outcome,
    /// Texts of the session's statements.
    texts: Texts,
    /// Index of the session (`place`), and its current transaction (`open`).
    place: u32,
    open: Option<Timed>,
}

/// Runs a session to its end; `place` is its index.
pub(super) fn play(stage: &Stage<'_>, place: u32, session: &Session) -> Outcome {
    stage.progress.sessions.fetch_add(1, Ordering::Relaxed);
    let begin = session.turns.first().map_or(stage.first_ns, |turn| turn.sent_ns);
    pause_until(stage, stage.begun + scaled(begin.saturating_sub(stage.first_ns), stage.speed));
    let (outcome, done) = match RawSession::connect(stage.spec, stage.stop) {
        Ok(wire) => {
            let (framer, buffer) = (Framer::default(), vec![0; BUFFER]);
            let (waiting, outcome) = (Vec::new(), Outcome::default());
            let refusal = None;
            let (texts, open) = (Texts::default(), None);
            let mut player = Player { stage, wire, framer, buffer, waiting, refusal, outcome, texts, place, open };
            let done = match player.set_up() {
                Ok(()) => player.run(session),
                Err(error) => {
                    player.outcome.broken += 1;
                    player.outcome.add_example(|| format!("session {}, settings: {}", session.number, error.words("")));
                    0
                }
            };
            player.outcome.timed.extend(player.open.take());
            (player.outcome, done)
        }
        Err(error) => {
            let mut outcome = Outcome { broken: 1, ..Outcome::default() };
            outcome.add_example(|| format!("session {}: {}", session.number, error.words("")));
            (outcome, 0)
        }
    };
    give_up(stage, place, session, done);
    stage.progress.sessions.fetch_sub(1, Ordering::Relaxed);
    outcome
}

/// Marks the round trips from `done` on as done, so that nobody waits for what will never happen.
pub(super) fn give_up(stage: &Stage<'_>, place: u32, session: &Session, done: usize) {
    for turn in done..session.turns.len() {
        if let Some(order) = stage.order {
            order.finish(place as usize, turn);
        }
        settle(stage.ids, &session.turns[turn]);
    }
}

/// Ends the waits for the keys that a round trip was to generate.
fn settle(ids: &Ids, turn: &Turn) {
    if let Some(done_ns) = turn.done_ns {
        keys::each_key(turn, |space, value, is_binary| ids.settle(space, value, is_binary, done_ns));
    }
}

fn scaled(length_ns: u64, speed: f64) -> Duration {
    if speed > 0.0 { Duration::from_nanos((length_ns as f64 / speed) as u64) } else { Duration::ZERO }
}

fn pause_until(stage: &Stage<'_>, moment: Instant) {
    loop {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() || stage.stop.load(Ordering::Relaxed) {
            return;
        }
        std::thread::sleep(left.min(NAP));
    }
}

impl Player<'_> {
    /// Runs `session_sql`.
    fn set_up(&mut self) -> Result<(), WireError> {
        for sql in self.stage.session_sql {
            let mut body = sql.clone().into_bytes();
            body.push(0);
            self.wire.send(&message(b'Q', &body))?;
            let mut refused = None;
            loop {
                let said = self.next()?;
                match said.tag {
                    b'E' => refused = Some(String::from_utf8_lossy(&state_of(&said.body)).into_owned()),
                    b'Z' => break,
                    _ => {}
                }
            }
            if let Some(state) = refused {
                return Err(WireError::Protocol(format!("{sql} was refused with SQLSTATE {state}")));
            }
        }
        Ok(())
    }

    /// Runs the round trips; returns how many were done.
    fn run(&mut self, session: &Session) -> usize {
        let mut free_ns = None;
        for (at, turn) in session.turns.iter().enumerate() {
            if self.stage.stop.load(Ordering::Relaxed) {
                return at;
            }
            if let Some(free_ns) = free_ns {
                let think = scaled(turn.sent_ns.saturating_sub(free_ns), self.stage.speed);
                pause_until(self.stage, Instant::now() + think);
            }
            free_ns = turn.done_ns;
            let (order, place) = (self.stage.order, self.place as usize);
            if order.is_some_and(|order| !order.begin(place, at, self.stage.stop)) {
                self.outcome.out_of_order += 1;
            }
            let done = self.turn(session.number, turn);
            settle(self.stage.ids, turn);
            if let Some(order) = order {
                order.finish(place, at);
            }
            if let Err(error) = done {
                self.outcome.broken += 1;
                if let Some(open) = &mut self.open {
                    open.fail(*b"08006", false);
                }
                let (number, words) = (session.number, self.why(&error));
                self.outcome.add_example(|| format!("session {number}, round trip {}: {words}", at + 1));
                return at + 1;
            }
        }
        // A session has ended when the server has let go of what it held.
        if self.wire.send(&message(b'X', b"")).is_ok() {
            while self.next().is_ok() {}
        }
        session.turns.len()
    }

    /// Explains why a session could not continue: by the server's last error before it closed the connection, if it
    /// sent one.
    fn why(&mut self, error: &WireError) -> String {
        if let WireError::Io(error) = error
            && matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
        {
            while self.next().is_ok() {}
        }
        let Some(state) = self.refusal.take() else { return error.words("") };
        match setting_of(&state) {
            Some(cause) => format!("the server ended the session, SQLSTATE {state} ({cause})"),
            None => format!("the server ended the session, SQLSTATE {state}"),
        }
    }

    fn turn(&mut self, number: u32, turn: &Turn) -> Result<(), WireError> {
        if !turn.is_whole() || turn.done_ns.is_none() {
            self.outcome.left_out += 1;
            return Ok(());
        }
        if self.stage.speed > 0.0 {
            let due = self.stage.begun + scaled(turn.sent_ns.saturating_sub(self.stage.first_ns), self.stage.speed);
            let late = Instant::now().saturating_duration_since(due);
            self.outcome.late_ns = self.outcome.late_ns.max(late.as_nanos() as u64);
        }
        let begun = Instant::now();
        if let Some(clock) = &self.stage.clock
            && self.open.is_none()
        {
            self.open = Some(Timed::begin(self.place, clock.at_ns(begun)));
        }
        self.texts.note(turn);
        self.send(&turn.said, turn.sent_ns)?;
        let mut answers = Vec::new();
        let mut copied = turn.copied.as_slice();
        let status = loop {
            let said = self.next()?;
            match said.tag {
                b'G' if copied.is_empty() => self.refuse_rows(turn)?,
                b'G' => self.send(std::mem::take(&mut copied), turn.sent_ns)?,
                b'Z' => break said.body.first().copied(),
                b'C' | b's' | b'I' | b'D' => answers.push(said),
                b'E' => {
                    let body = state_of(&said.body).to_vec();
                    answers.push(Said { tag: b'E', body, is_whole: true, places: None });
                }
                _ => {}
            }
        };
        if let Some(mut open) = self.open.take() {
            open.add(begun.elapsed(), turn, &answers);
            match status {
                Some(b'I') if open.did => self.outcome.timed.push(open),
                Some(b'I') => {}
                _ => self.open = Some(open),
            }
        }
        self.compare(number, turn, &answers);
        self.outcome.turns += 1;
        self.stage.progress.turns.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Refuses to send COPY rows that the server asks for, because the capture does not have them.
    fn refuse_rows(&mut self, turn: &Turn) -> Result<(), WireError> {
        let mut out = message(b'f', b"no rows were captured\0");
        if turn.said.first().is_some_and(|said| said.tag != b'Q') {
            out.extend_from_slice(&message(b'S', b""));
        }
        self.wire.send(&out)
    }

    fn send(&mut self, said: &[Said], sent_ns: u64) -> Result<(), WireError> {
        let mut out = Vec::new();
        for one in said {
            let places = one.places.as_ref();
            match places.and_then(|places| self.stage.ids.mapped(one.tag, &one.body, places, sent_ns)) {
                Some((body, count)) => {
                    self.outcome.mapped += count;
                    out.extend_from_slice(&message(one.tag, &body));
                }
                None => out.extend_from_slice(&message(one.tag, &one.body)),
            }
        }
        self.wire.send(&out)
    }

    /// Returns the server's next message that matters for the comparison.
    fn next(&mut self) -> Result<Said, WireError> {
        while self.waiting.is_empty() {
            let count = self.wire.read(&mut self.buffer)?;
            let waiting = &mut self.waiting;
            self.framer
                .feed(
                    &self.buffer[..count],
                    |tag| if matches!(tag, b'd' | b'T' | b'N' | b'S') { 0 } else { 1 << 16 },
                    |m| {
                        if matches!(m.tag, b'C' | b's' | b'I' | b'D' | b'E' | b'Z' | b'G') {
                            let (tag, body, is_whole) = (m.tag, m.body.to_vec(), m.is_whole());
                            waiting.push(Said { tag, body, is_whole, places: None });
                        }
                    },
                )
                .map_err(|error| WireError::Protocol(error.to_string()))?;
            waiting.reverse();
        }
        if let Some(said) = self.waiting.last() {
            match said.tag {
                b'E' => self.refusal = Some(String::from_utf8_lossy(&state_of(&said.body)).into_owned()),
                _ => self.refusal = None,
            }
        }
        self.waiting.pop().ok_or(WireError::Closed)
    }

    fn compare(&mut self, number: u32, turn: &Turn, now: &[Said]) {
        let before = self.outcome.same;
        let (then_ends, then_rows) = ends(&turn.answers);
        let (now_ends, now_rows) = ends(now);
        learn(self.stage.ids, turn, &then_rows, &now_rows);
        for (end, (then, now)) in then_ends.iter().zip(&now_ends).enumerate() {
            let difference = match (then.tag, now.tag) {
                (b'E', b'E') if !is_same_failure(&then.body, &now.body) => Some(Difference::FailsOtherwise),
                (b'E', b'E') => None,
                (_, b'E') => Some(Difference::FailsNow),
                (b'E', _) => Some(Difference::FailedThen),
                // A capture from a log has no numbers.
                (b'C', b'C') if rows_of(text(&then.body).0).is_none() && rows_of(text(&now.body).0).is_some() => {
                    self.outcome.uncounted += 1;
                    None
                }
                _ if rows_of(text(&then.body).0) != rows_of(text(&now.body).0) => Some(Difference::Rows),
                _ => None,
            };
            let Some(difference) = difference else {
                self.outcome.same += 1;
                continue;
            };
            self.stage.progress.differing.fetch_add(1, Ordering::Relaxed);
            let sql = normal(&self.texts.of(turn, end));
            self.outcome.differs(difference, &sql);
            self.outcome.add_example(|| format!("session {number}: {} then, {} now: {sql}", words(then), words(now)));
        }
        if then_ends.len() != now_ends.len() {
            self.outcome.uneven += 1;
            if self.outcome.same == before {
                self.stage.progress.differing.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Returns the setting or event that ends a session with this SQLSTATE.
fn setting_of(state: &str) -> Option<&'static str> {
    Some(match state {
        "57P01" => "the server was stopped, or the session was terminated",
        "57P02" => "another session of the server crashed",
        "57P05" => "idle_session_timeout of the target",
        "25P03" => "idle_in_transaction_session_timeout of the target",
        "25P04" => "transaction_timeout of the target",
        _ => return None,
    })
}

fn words(said: &Said) -> String {
    let body = String::from_utf8_lossy(text(&said.body).0).into_owned();
    match said.tag {
        b'E' if body == "57014" => format!("SQLSTATE {body} (cancelled; a replay cancels nothing itself)"),
        b'E' => format!("SQLSTATE {body}"),
        b's' => "a part of the rows".to_owned(),
        b'I' => "an empty statement".to_owned(),
        _ => body,
    }
}

/// A row, with the index of the statement end that it belongs to.
type Row<'a> = (usize, &'a [u8]);

fn ends(answers: &[Said]) -> (Vec<&Said>, Vec<Row<'_>>) {
    let (mut found, mut rows) = (Vec::new(), Vec::new());
    for said in answers {
        if said.tag == b'D' { rows.push((found.len(), said.body.as_slice())) } else { found.push(said) }
    }
    (found, rows)
}

/// Records keys from pairs of rows of one statement in order: first with first, second with second. If the number of
/// rows differs from the capture, nothing is recorded.
fn learn(ids: &Ids, turn: &Turn, then: &[Row<'_>], now: &[Row<'_>]) {
    for (end, returned) in turn.returned.iter().enumerate() {
        let of = |rows: &[Row<'_>]| rows.partition_point(|row| row.0 < end)..rows.partition_point(|row| row.0 <= end);
        let (then, now) = (&then[of(then)], &now[of(now)]);
        if let Some(returned) = returned.as_ref().filter(|_| then.len() == now.len()) {
            for ((_, old), (_, new)) in then.iter().zip(now) {
                keys::learn(ids, returned, old, new);
            }
        }
    }
}
