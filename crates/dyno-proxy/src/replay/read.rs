//! Loading of a captured run: sessions and their round trips.
//!
//! A round trip ends with the server's `ReadyForQuery`. It contains everything that the client sent for it, pipelined
//! or not; the rows of a COPY follow the server's request for them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_evidence::table::read_table;

use super::ReplayError;
use super::places::{Places, Returned};
use crate::capture::END;
use crate::framing::text;

/// A message of the capture.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// Type byte.
    pub tag: u8,
    /// Kept part of the message's body.
    pub body: Vec<u8>,
    /// True if the whole body was kept.
    pub is_whole: bool,
    /// Positions of keys in the message; `None` if there are none.
    pub places: Option<Arc<Places>>,
}

/// Round trip.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// Time at which the first message was sent, by the monotonic clock of the capture [ns].
    pub sent_ns: u64,
    /// Time at which the server was ready again [ns]; `None` if the server never was.
    pub done_ns: Option<u64>,
    /// Messages of the client before any rows of a COPY.
    pub said: Vec<Said>,
    /// Rows of a COPY, and the messages after them.
    pub copied: Vec<Said>,
    /// Answers of the server: ends of statements, errors, rows with generated keys.
    pub answers: Vec<Said>,
    /// Transaction status afterwards: `I` for none, `T` for open, `E` for failed.
    pub status: u8,
    /// Generated keys in the rows of each statement; statements are in the order in which they ended.
    pub returned: Vec<Option<Returned>>,
    /// True if a statement of the round trip changes data although the end of the statement does not show it.
    pub has_writers: bool,
    pub(super) is_copying: bool,
    pub(super) is_closed: bool,
}

/// Session of the capture.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// Number of the session.
    pub number: u32,
    /// Round trips of the session.
    pub turns: Vec<Turn>,
    /// Time at which the session ended, by the monotonic clock of the capture [ns]; `None` if it was still open.
    pub ended_ns: Option<u64>,
    /// Index of the first round trip that the server has not answered yet.
    pub(super) open: usize,
}

impl Session {
    fn take(&mut self, at_ns: u64, is_server: bool, said: Said) {
        if is_server { self.server(at_ns, said) } else { self.client(at_ns, said) }
    }

    fn client(&mut self, at_ns: u64, said: Said) {
        let copying =
            self.turns.get_mut(self.open).filter(|turn| turn.is_copying || matches!(said.tag, b'd' | b'c' | b'f'));
        if let Some(turn) = copying {
            let is_over = said.tag == b'S' || (matches!(said.tag, b'c' | b'f') && is_simple(turn));
            turn.copied.push(said);
            turn.is_copying &= !is_over;
            return;
        }
        if matches!(said.tag, b'X' | END) {
            self.ended_ns.get_or_insert(at_ns);
            return;
        }
        if said.tag == b'H' {
            return;
        }
        if self.turns.last().is_none_or(|turn| turn.is_closed) {
            self.turns.push(Turn { sent_ns: at_ns, ..Turn::default() });
        }
        if let Some(turn) = self.turns.last_mut() {
            turn.is_closed = matches!(said.tag, b'Q' | b'S' | b'F');
            turn.said.push(said);
        }
    }

    fn server(&mut self, at_ns: u64, said: Said) {
        let Some(turn) = self.turns.get_mut(self.open) else { return };
        match said.tag {
            b'Z' => {
                turn.done_ns = Some(at_ns);
                turn.status = said.body.first().copied().unwrap_or(b'I');
                (turn.is_closed, turn.is_copying) = (true, false);
                self.open += 1;
            }
            b'G' => turn.is_copying = true,
            _ => turn.answers.push(said),
        }
    }
}

impl Session {
    /// Returns two times [ns]: that of the session's first message, and that of its end, or of its last message if it
    /// was still open.
    pub fn span_ns(&self) -> (u64, u64) {
        let begin_ns = self.turns.first().map_or(0, |turn| turn.sent_ns);
        let last_ns = self.turns.last().map_or(begin_ns, |turn| turn.done_ns.unwrap_or(turn.sent_ns));
        (begin_ns, self.ended_ns.unwrap_or(last_ns).max(begin_ns))
    }
}

fn is_simple(turn: &Turn) -> bool {
    turn.said.first().is_some_and(|said| said.tag == b'Q')
}

impl Turn {
    /// Returns true if all messages of the client were kept completely.
    pub fn is_whole(&self) -> bool {
        self.said.iter().chain(&self.copied).all(|said| said.is_whole)
    }

    /// Returns true if the round trip changes data, judged by the completion tags and texts of its statements.
    pub fn writes(&self) -> bool {
        const READS: [&[u8]; 15] = [
            b"SELECT",
            b"SHOW",
            b"BEGIN",
            b"SET",
            b"FETCH",
            b"MOVE",
            b"START",
            b"RESET",
            b"DECLARE",
            b"CLOSE",
            b"ROLLBACK",
            b"EXPLAIN",
            b"COMMIT",
            b"DEALLOCATE",
            b"DISCARD",
        ];
        let reads = |tag: &[u8]| READS.iter().any(|read| tag.starts_with(read));
        self.answers.iter().any(|said| said.tag == b'C' && (self.has_writers || !reads(&said.body)))
    }

    /// Returns true if a read-only session would refuse the round trip (SQLSTATE 25006), judged by the completion tags
    /// and texts of its statements.
    ///
    /// Limits: calls of functions that write, and later executions of a prepared statement that locks rows, are not
    /// detected.
    pub fn needs_writes(&self) -> bool {
        const TAGS: [&[u8]; 12] = [
            b"INSERT",
            b"UPDATE",
            b"DELETE",
            b"MERGE",
            b"CREATE",
            b"ALTER",
            b"DROP",
            b"TRUNCATE",
            b"COMMENT",
            b"GRANT",
            b"REVOKE",
            b"REFRESH",
        ];
        const WORDS: [&str; 6] =
            [" for update", " for no key update", " for share", " for key share", "nextval(", "setval("];
        const PARTS: [&str; 5] = ["insert into ", "delete from ", "merge into ", "(update ", "( update "];
        if self.answers.iter().any(|said| said.tag == b'E') {
            return false;
        }
        let is_write = |said: &Said| said.tag == b'C' && TAGS.iter().any(|tag| said.body.starts_with(tag));
        let is_text = |sql: &[u8]| {
            let text = dyno_evidence::normal::normal(sql).to_ascii_lowercase();
            let is_within = text.starts_with("with ") && PARTS.iter().any(|part| text.contains(part));
            text.starts_with("create ") || is_within || WORDS.iter().any(|word| text.contains(word))
        };
        !self.copied.is_empty() || self.answers.iter().any(is_write) || self.texts().any(is_text)
    }

    /// Returns the texts of the round trip's statements.
    pub fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.said.iter().filter_map(|said| match said.tag {
            b'Q' => Some(text(&said.body).0),
            b'P' => Some(text(text(&said.body).1).0),
            _ => None,
        })
    }
}

fn parts(run: &Path) -> Result<Vec<PathBuf>, ReplayError> {
    let none = || ReplayError::NoMessages(run.display().to_string());
    let listed = std::fs::read_dir(run.join("wire")).map_err(|_| none())?;
    let mut found: Vec<_> = listed.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.extension().is_some_and(|ending| ending == "parquet"));
    found.sort();
    if found.is_empty() { Err(none()) } else { Ok(found) }
}

/// A message as captured: session, time by the monotonic clock of the capture [ns], sender and content.
pub struct Kept {
    /// Session number.
    pub session: u32,
    /// Time [ns].
    pub at_ns: u64,
    /// True if the server sent the message.
    pub is_server: bool,
    /// The message itself.
    pub said: Said,
}

/// Calls `take` with every message of a run, in the order in which they were captured.
///
/// # Errors
/// There are no messages, or the evidence cannot be read.
pub fn each_message(run: &Path, mut take: impl FnMut(Kept)) -> Result<(), ReplayError> {
    for path in parts(run)? {
        for rows in read_table(&path, &["session", "tim", "side", "tag", "length", "body"])? {
            let rows = rows?;
            let (numbers, tims, lengths) = (rows.u32s("session")?, rows.i64s("tim")?, rows.i64s("length")?);
            let (sides, side_words) = rows.words("side")?;
            let (tags, tag_words) = rows.words("tag")?;
            let bodies = rows.texts("body")?;
            let is_servers: Vec<bool> = side_words.iter().map(|word| word == "server").collect();
            let first_bytes: Vec<u8> = tag_words.iter().map(|word| word.bytes().next().unwrap_or(0)).collect();
            for (at, body) in bodies.into_iter().enumerate() {
                // One character per byte.
                let body: Vec<u8> = body.unwrap_or_default().chars().map(|c| c as u32 as u8).collect();
                let is_whole = body.len() as i64 == lengths[at];
                take(Kept {
                    session: numbers[at],
                    at_ns: tims[at] as u64,
                    is_server: sides.get(at).is_some_and(|key| is_servers.get(*key as usize) == Some(&true)),
                    said: Said {
                        tag: tags.get(at).and_then(|key| first_bytes.get(*key as usize)).copied().unwrap_or(0),
                        body,
                        is_whole,
                        places: None,
                    },
                });
            }
        }
    }
    Ok(())
}

/// Reads the messages of a run; sessions are in the order of their first message.
///
/// # Errors
/// There are no messages, or the evidence cannot be read.
pub fn read(run: &Path) -> Result<Vec<Session>, ReplayError> {
    let mut sessions: Vec<Session> = Vec::new();
    let mut places = std::collections::HashMap::new();
    each_message(run, |kept| {
        let place = *places.entry(kept.session).or_insert_with(|| {
            sessions.push(Session { number: kept.session, ..Session::default() });
            sessions.len() - 1
        });
        sessions[place].take(kept.at_ns, kept.is_server, kept.said);
    })?;
    sessions.retain(|session| !session.turns.is_empty());
    Ok(sessions)
}
