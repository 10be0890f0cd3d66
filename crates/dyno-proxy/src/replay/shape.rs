//! Shape of a statement: its text with a numbered mark in place of each literal and parameter.
//!
//! Texts that differ only in their literals have the same shape, so each shape is parsed once. In the parsed statement
//! every mark says which literal or parameter it is.
//!
//! ```
//! use dyno_proxy::replay::shape::shape;
//! assert_eq!(shape(b"update t set a = 'x', b = 5 /* now */ where c = $2"), "update t set a = 'l0', b = 1000001 where c = 'p2x0'");
//! ```
//!
//! | in the text | in the shape |
//! |---|---|
//! | literal number k, a string | `'lk'` |
//! | literal number k, a number | `1000000 + k` |
//! | parameter `$n`, at the k-th mention of any parameter | `'pnxk'` |
//!
//! Literals are counted from 0, in the order of the text.

use std::collections::HashMap;

use dyno_evidence::normal::{Piece, pieces};

use super::read::Session;
use super::spoken::{Spoken, statement};

/// Offset added to the number of a numeric literal.
pub const NUMBERS: usize = 1_000_000;
/// Longest text that has a shape [bytes]; longer ones are not parsed.
const LONGEST: usize = 1 << 20;

/// Returns the shape of a text.
pub fn shape(sql: &[u8]) -> String {
    let mut out: Vec<u8> = Vec::with_capacity(sql.len());
    let (mut literals, mut mentions) = (0, 0);
    for piece in pieces(sql) {
        match piece {
            Piece::Space(_) => {
                if out.last().is_some_and(|last| *last != b' ') {
                    out.push(b' ');
                }
            }
            Piece::Literal(range) => {
                let is_number = sql[range.start].is_ascii_digit() || sql[range.start] == b'.';
                let mark = if is_number { (NUMBERS + literals).to_string() } else { format!("'l{literals}'") };
                out.extend_from_slice(mark.as_bytes());
                literals += 1;
            }
            Piece::Other(range) => {
                let bytes = &sql[range];
                match parameter(bytes) {
                    Some(number) => {
                        out.extend_from_slice(format!("'p{number}x{mentions}'").as_bytes());
                        mentions += 1;
                    }
                    None => out.extend_from_slice(bytes),
                }
            }
        }
    }
    String::from_utf8_lossy(&out).trim_end().to_owned()
}

/// Returns the number of a parameter mark: 2 for `$2`.
fn parameter(bytes: &[u8]) -> Option<u16> {
    std::str::from_utf8(bytes.strip_prefix(b"$")?).ok()?.parse().ok()
}

/// Returns the distinct shapes in these sessions, each with the number of times that it was sent or bound, most
/// frequent first. The shape of a text that is too long to be parsed is its beginning.
pub fn shapes(sessions: &[Session]) -> Vec<(String, u64)> {
    let mut found: HashMap<String, u64> = HashMap::new();
    for session in sessions {
        let mut prepared: HashMap<&[u8], String> = HashMap::new();
        for said in session.turns.iter().flat_map(|turn| &turn.said).filter(|said| said.is_whole) {
            match statement(said) {
                Spoken::Text(sql) => *found.entry(bounded(sql)).or_default() += 1,
                Spoken::Prepared(name, sql) => {
                    let text = bounded(sql);
                    found.entry(text.clone()).or_default();
                    prepared.insert(name, text);
                }
                Spoken::Bound(_, name) => {
                    if let Some(count) = prepared.get(name).and_then(|text| found.get_mut(text)) {
                        *count += 1;
                    }
                }
                Spoken::Executed(_) | Spoken::Other => {}
            }
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_unstable_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    found
}

/// Returns the shape of a text; for a long text its beginning, with an ending that no parser accepts.
fn bounded(sql: &[u8]) -> String {
    if sql.len() <= LONGEST { shape(sql) } else { format!("{} (", dyno_evidence::normal::normal(sql)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_differ_by_literals_have_one_shape() {
        assert_eq!(shape(b"select 17, 'a''b' -- x\n from t"), shape(b"select  5, E'c' from t"));
        assert_eq!(shape(b"select $1,$12, $1"), "select 'p1x0','p12x1', 'p1x2'");
        assert_eq!(shape(b"do $a$ begin end $a$;"), "do 'l0';");
        assert_eq!(shape(b"select a$1, $$x$$"), "select a$1, 'l0'");
    }
}
