//! What the messages of a client say about statements.

use super::read::Said;
use crate::framing::text;

/// What a message says about statements.
pub enum Spoken<'a> {
    /// Text of the simple protocol.
    Text(&'a [u8]),
    /// Name and text of a prepared statement.
    Prepared(&'a [u8], &'a [u8]),
    /// Names of a portal and of its statement.
    Bound(&'a [u8], &'a [u8]),
    /// Name of a portal that is executed.
    Executed(&'a [u8]),
    /// Anything else.
    Other,
}

/// Interprets a message of a client.
pub fn statement(said: &Said) -> Spoken<'_> {
    let (first, rest) = text(&said.body);
    match said.tag {
        b'Q' => Spoken::Text(first),
        b'P' => Spoken::Prepared(first, text(rest).0),
        b'B' => Spoken::Bound(first, text(rest).0),
        b'E' => Spoken::Executed(first),
        _ => Spoken::Other,
    }
}
