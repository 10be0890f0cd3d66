//! Part of a capture: the complete transactions that begin in it.
//!
//! What a session had set up before is repeated first, in the captured order: named statements that were not closed,
//! and round trips outside of a transaction that consisted only of SET or PREPARE.
//!
//! Limits: temporary tables, cursors `WITH HOLD`, `set_config` and statements prepared in a failed round trip are not
//! restored.

use super::read::{Said, Session, Turn};
use crate::framing::text;

/// Number of round trips that were removed or are repeated as setup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Number of round trips whose transaction began before or after the part.
    pub outside: usize,
    /// Number of round trips that set up sessions and are run first.
    pub set_up: usize,
}

/// Keeps the transactions that begin in `from_ns..to_ns`, by the monotonic clock of the capture [ns].
pub fn cut(sessions: &mut Vec<Session>, from_ns: u64, to_ns: u64) -> Cut {
    let mut found = Cut::default();
    for session in &mut *sessions {
        let (mut kept, mut done) = (Vec::new(), SetUp::default());
        let mut begun_ns = None;
        for turn in std::mem::take(&mut session.turns) {
            let since_ns = *begun_ns.get_or_insert(turn.sent_ns);
            let is_alone = since_ns == turn.sent_ns;
            if turn.done_ns.is_some() && turn.status == b'I' {
                begun_ns = None;
            }
            if (from_ns..to_ns).contains(&since_ns) {
                kept.push(turn);
                continue;
            }
            found.outside += 1;
            if since_ns < from_ns {
                done.note(&turn, is_alone && begun_ns.is_none());
            }
        }
        if !kept.is_empty() {
            let first =
                done.turns.into_iter().map(|(_, turn)| Turn { sent_ns: from_ns, done_ns: Some(from_ns), ..turn });
            session.turns = first.collect();
            found.set_up += session.turns.len();
            session.turns.append(&mut kept);
        }
    }
    sessions.retain(|session| !session.turns.is_empty());
    found
}

/// Round trips that set up a session; a round trip that prepares a statement has the statement's name beside it.
#[derive(Default)]
struct SetUp {
    turns: Vec<(Option<Vec<u8>>, Turn)>,
}

impl SetUp {
    fn note(&mut self, turn: &Turn, is_outside: bool) {
        if !turn.is_whole() || turn.done_ns.is_none() || turn.answers.iter().any(|said| said.tag == b'E') {
            return;
        }
        let ends =
            |words: &[&[u8]]| turn.answers.iter().all(|said| said.tag == b'C' && words.contains(&text(&said.body).0));
        let has_ended = turn.answers.iter().any(|said| said.tag == b'C');
        if has_ended && ends(&[b"DISCARD ALL"]) {
            self.turns.clear();
        } else if has_ended && ends(&[b"DEALLOCATE ALL"]) {
            self.turns.retain(|(name, _)| name.is_none());
        } else if has_ended && is_outside && ends(&[b"SET", b"RESET", b"PREPARE", b"DEALLOCATE"]) {
            self.turns.push((None, turn.clone()));
        }
        for said in &turn.said {
            match (said.tag, said.body.split_first()) {
                (b'P', _) => {
                    let name = text(&said.body).0;
                    if !name.is_empty() {
                        self.turns.push((Some(name.to_vec()), preparing(said)));
                    }
                }
                (b'C', Some((b'S', name))) => {
                    let closed = text(name).0;
                    self.turns.retain(|(name, _)| name.as_deref() != Some(closed));
                }
                _ => {}
            }
        }
    }
}

fn preparing(said: &Said) -> Turn {
    let sync = Said { tag: b'S', body: Vec::new(), is_whole: true, places: None };
    Turn { said: vec![said.clone(), sync], status: b'I', ..Turn::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(tag: u8, body: &[u8]) -> Said {
        Said { tag, body: body.to_vec(), is_whole: true, places: None }
    }

    fn turn(sent_ns: u64, status: u8, sent: Vec<Said>, ends: &[u8]) -> Turn {
        let answers = if ends.is_empty() { Vec::new() } else { vec![said(b'C', ends)] };
        Turn { sent_ns, done_ns: Some(sent_ns + 1), status, said: sent, answers, ..Turn::default() }
    }

    fn simple(sent_ns: u64, status: u8, ends: &[u8]) -> Turn {
        turn(sent_ns, status, vec![said(b'Q', b"x\0")], ends)
    }

    fn sent(session: &Session) -> Vec<u64> {
        session.turns.iter().map(|turn| turn.sent_ns).collect()
    }

    #[test]
    fn a_transaction_is_in_the_part_in_which_it_begins_and_is_kept_whole() {
        let turns = vec![
            simple(10, b'T', b"BEGIN\0"),
            simple(20, b'I', b"COMMIT\0"),
            simple(25, b'T', b"BEGIN\0"),
            simple(40, b'I', b"COMMIT\0"),
            simple(45, b'I', b"SELECT 1\0"),
        ];
        let late = Session { number: 2, turns: vec![simple(90, b'I', b"SELECT 1\0")], ..Session::default() };
        let mut sessions = vec![Session { number: 1, turns, ..Session::default() }, late];
        assert_eq!(cut(&mut sessions, 15, 30), Cut { outside: 4, set_up: 0 });
        assert_eq!(sessions.len(), 1);
        assert_eq!(sent(&sessions[0]), [25, 40]);
    }

    #[test]
    fn statements_and_settings_of_before_are_made_again_but_for_those_that_were_closed() {
        let prepare = |at, name: &[u8]| {
            let parse = [name, b"\0select 1\0\0\0"].concat();
            turn(at, b'I', vec![said(b'P', &parse), said(b'B', b"\0"), said(b'S', b"")], b"SELECT 1\0")
        };
        let turns = vec![
            simple(1, b'I', b"SET\0"),
            prepare(2, b"kept"),
            prepare(3, b"closed"),
            turn(4, b'I', vec![said(b'C', b"Sclosed\0"), said(b'S', b"")], b""),
            prepare(5, b""),
            simple(6, b'I', b"INSERT 0 1\0"),
            simple(10, b'I', b"SELECT 1\0"),
        ];
        let mut sessions = vec![Session { turns, ..Session::default() }];
        assert_eq!(cut(&mut sessions, 10, u64::MAX), Cut { outside: 6, set_up: 2 });
        let found = &sessions[0].turns;
        assert_eq!(sent(&sessions[0]), [10, 10, 10]);
        assert_eq!(found[0].answers[0].body, b"SET\0");
        assert_eq!(found[1].said.iter().map(|said| said.tag).collect::<Vec<_>>(), [b'P', b'S']);
        assert!(found[1].said[0].body.starts_with(b"kept\0"));
    }
}
