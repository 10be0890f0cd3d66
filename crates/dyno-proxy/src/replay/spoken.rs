//! Information on statements in the messages of a client.

use std::collections::HashMap;

use super::read::{Said, Turn};
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

/// Texts of the statements that a session has prepared, by name.
#[derive(Debug, Default)]
pub struct Texts {
    prepared: HashMap<Vec<u8>, Vec<u8>>,
}

impl Texts {
    /// Records the statements that a round trip prepares.
    pub fn note(&mut self, turn: &Turn) {
        for said in &turn.said {
            if let Spoken::Prepared(name, sql) = statement(said) {
                self.prepared.insert(name.to_vec(), sql.to_vec());
            }
        }
    }

    /// Returns the text of the statement whose end has the index `end` among the ends in the round trip.
    pub fn of(&self, turn: &Turn, end: usize) -> Vec<u8> {
        let (mut portals, mut executions, mut last) = (HashMap::new(), 0, None);
        for said in &turn.said {
            match statement(said) {
                Spoken::Text(sql) => return sql.to_vec(),
                Spoken::Bound(portal, name) => drop(portals.insert(portal, name)),
                Spoken::Executed(portal) => {
                    last = portals.get(portal).copied().or(last);
                    if executions == end {
                        break;
                    }
                    executions += 1;
                }
                Spoken::Prepared(..) | Spoken::Other => {}
            }
        }
        let prepared = last.and_then(|name| self.prepared.get(name)).cloned();
        prepared.or_else(|| turn.texts().next().map(<[u8]>::to_vec)).unwrap_or_default()
    }
}
