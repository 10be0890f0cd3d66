//! A statement without its literals, which are recognized by the same rules as in the server's lexer. The result is the
//! same for calls that differ only in values, and contains no values.
//!
//! ```
//! use dyno_evidence::normal::normal;
//! assert_eq!(normal(b"select *\n from t -- all\n where a = 'x''y' and b1 = -1.5e3 and c = $1"), "select * from t where a = ? and b1 = ? and c = $1");
//! ```
//!
//! Limits: `standard_conforming_strings` is assumed to be on, as it is by default since `PostgreSQL` 9.1; `MariaDB`'s
//! `sql_mode` is assumed to contain neither `ANSI_QUOTES` nor `NO_BACKSLASH_ESCAPES`. A text is truncated to
//! [`LONGEST`] bytes.

mod mariadb;

use std::ops::Range;

/// Length to which a text is truncated [bytes].
pub const LONGEST: usize = 8192;

/// SQL dialect of a text: it determines which characters open a literal, a name and a comment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// `PostgreSQL`.
    #[default]
    Postgres,
    /// `MariaDB`: double quotes open strings, backslashes escape, `#` opens a comment.
    MariaDb,
}

/// A piece of an SQL text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A literal: a string or a number, with the characters that delimit it.
    Literal(Range<usize>),
    /// White space or a comment.
    Space(Range<usize>),
    /// Anything else.
    Other(Range<usize>),
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Splits a `PostgreSQL` statement into pieces, in order and without gaps.
pub fn pieces(sql: &[u8]) -> impl Iterator<Item = Piece> {
    pieces_of(sql, Dialect::Postgres)
}

/// Splits a statement of this dialect into pieces, in order and without gaps.
pub fn pieces_of(sql: &[u8], dialect: Dialect) -> impl Iterator<Item = Piece> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let begin = at;
        let rest = sql.get(begin..).filter(|rest| !rest.is_empty())?;
        let own = if dialect == Dialect::MariaDb { mariadb::piece(rest) } else { None };
        let (length, make) = own.unwrap_or_else(|| piece(rest));
        at = begin + length.max(1);
        Some(make(begin..at.min(sql.len())))
    })
}

/// Length of a piece, and a function that makes a piece of this kind from its range.
type Made = (usize, fn(Range<usize>) -> Piece);

/// Returns the first piece of a `PostgreSQL` text.
fn piece(rest: &[u8]) -> Made {
    let first = rest[0];
    match first {
        b' ' | b'\t' | b'\n' | b'\r' | 0x0c | 0x0b => {
            (rest.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == 0x0b).count(), Piece::Space)
        }
        b'-' if rest.starts_with(b"--") => (rest.iter().take_while(|byte| **byte != b'\n').count(), Piece::Space),
        b'/' if rest.starts_with(b"/*") => (comment(rest), Piece::Space),
        b'\'' => (quoted(rest, 1, b'\'', false), Piece::Literal),
        b'"' => (quoted(rest, 1, b'"', false), Piece::Other),
        b'e' | b'E' if rest.get(1) == Some(&b'\'') => (quoted(rest, 2, b'\'', true), Piece::Literal),
        b'b' | b'B' | b'x' | b'X' | b'n' | b'N' if rest.get(1) == Some(&b'\'') => {
            (quoted(rest, 2, b'\'', false), Piece::Literal)
        }
        b'u' | b'U' if rest.len() > 2 && rest[1] == b'&' && rest[2] == b'\'' => {
            (quoted(rest, 3, b'\'', false), Piece::Literal)
        }
        b'$' => match dollar(rest) {
            Some(length) => (length, Piece::Literal),
            None => (1 + rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count(), Piece::Other),
        },
        b'0'..=b'9' => (number(rest), Piece::Literal),
        b'.' if rest.starts_with(b"..") => (2, Piece::Other),
        b'.' if rest.get(1).is_some_and(u8::is_ascii_digit) => (number(rest), Piece::Literal),
        _ if is_word(first) => (rest.iter().take_while(|byte| is_word(**byte)).count(), Piece::Other),
        _ => (1, Piece::Other),
    }
}

/// Returns the length of a literal up to and including its closing quote, or up to the end of the text; the first
/// `from` bytes open the literal.
fn quoted(rest: &[u8], from: usize, quote: u8, has_escapes: bool) -> usize {
    let mut at = from;
    while at < rest.len() {
        match rest[at] {
            b'\\' if has_escapes => at += 2,
            byte if byte == quote && rest.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Returns the length of a comment; comments can be nested.
fn comment(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (2, 1);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Returns the length of the string `$tag$ ... $tag$` at the beginning of the text, or `None` if there is no such
/// string.
fn dollar(rest: &[u8]) -> Option<usize> {
    let tag = rest[1..].iter().take_while(|byte| is_word(**byte) && **byte != b'$').count();
    if rest.get(tag + 1) != Some(&b'$') || rest[1].is_ascii_digit() {
        return None;
    }
    let mark = &rest[..tag + 2];
    let body = &rest[mark.len()..];
    let end = body.windows(mark.len()).position(|window| window == mark);
    Some(end.map_or(rest.len(), |end| mark.len() + end + mark.len()))
}

fn number(rest: &[u8]) -> usize {
    let mut at = 0;
    while at < rest.len() {
        let byte = rest[at];
        let is_sign = matches!(byte, b'+' | b'-') && matches!(rest[at - 1], b'e' | b'E') && !rest.starts_with(b"0x");
        let goes_on = byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.' || (at > 0 && is_sign);
        if !goes_on || rest[at..].starts_with(b"..") {
            break;
        }
        at += 1;
    }
    at
}

/// Drops a minus sign at the end if it follows an operator, a comma or a parenthesis: there it is the sign of a number.
fn drop_sign(out: &mut Vec<u8>) {
    let Some((b'-', before)) = out.split_last() else { return };
    let last = before.iter().rev().find(|byte| **byte != b' ');
    if last.is_some_and(|byte| b"(,=<>+-*/%^|&!~[:".contains(byte)) {
        out.pop();
    }
}

/// Returns a `PostgreSQL` statement with `?` in place of literals, without comments, and with single spaces.
pub fn normal(sql: &[u8]) -> String {
    normal_of(sql, Dialect::Postgres)
}

/// Returns a statement of this dialect with `?` in place of literals, without comments, and with single spaces.
pub fn normal_of(sql: &[u8], dialect: Dialect) -> String {
    let mut out: Vec<u8> = Vec::with_capacity(sql.len().min(LONGEST));
    for piece in pieces_of(sql, dialect) {
        match piece {
            Piece::Space(_) => {
                if out.last().is_some_and(|last| *last != b' ') {
                    out.push(b' ');
                }
            }
            Piece::Literal(range) => {
                if sql[range.start].is_ascii_digit() || sql[range.start] == b'.' {
                    drop_sign(&mut out);
                }
                out.push(b'?');
            }
            Piece::Other(range) => out.extend_from_slice(&sql[range]),
        }
        if out.len() >= LONGEST {
            out.truncate(LONGEST);
            break;
        }
    }
    while matches!(out.last(), Some(b' ' | b';')) {
        out.pop();
    }
    String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
