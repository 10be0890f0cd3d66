//! Places of keys in statements: which parameters, literals and returned columns are keys, and of which key space.
//!
//! The places come with the request, one entry per distinct [shape]; before a replay begins, [`attach`] gives every
//! message and every end of a statement its own. A key space is a column with keys together with the foreign keys
//! that reference it.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;

use super::ids::{Ids, Kind};
use super::read::{Said, Session};
use super::shape::shape;
use crate::framing::text;

/// Place of a key: number of the parameter (from 1) or literal (from 0), key space, and true for an array of keys.
pub type Place = (usize, usize, bool);

/// Places of keys in the statements of a capture.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyPlan {
    /// Kind of the values of each key space.
    pub spaces: Vec<Kind>,
    /// Places by shape.
    pub statements: Vec<Places>,
}

/// Places of keys in a text.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Places {
    /// Shape of the text.
    pub shape: String,
    /// Places of parameters.
    #[serde(default)]
    pub parameters: Vec<Place>,
    /// Places of literals.
    #[serde(default)]
    pub literals: Vec<Place>,
    /// For each statement of the text the key space of each column that it returns, if its values are generated.
    #[serde(default)]
    pub returns: Vec<Vec<Option<usize>>>,
    /// True if it changes data although the end of a statement may not say so: `with x as (insert ...) select ...`.
    #[serde(default)]
    pub writes: bool,
}

/// Generated keys in the rows of one execution.
#[derive(Clone, Debug)]
pub struct Returned {
    places: Arc<Places>,
    statement: usize,
    /// Formats of the columns, as a Bind requests them.
    formats: Vec<bool>,
}

impl Returned {
    /// Returns the key space of each column.
    pub fn spaces(&self) -> &[Option<usize>] {
        self.places.returns.get(self.statement).map_or(&[], Vec::as_slice)
    }

    /// Returns true if a column is in binary form.
    pub fn is_binary(&self, column: usize) -> bool {
        format_of(&self.formats, column)
    }
}

/// Returns the format of a place: none means text, one applies to all.
pub fn format_of(formats: &[bool], place: usize) -> bool {
    match formats {
        [] => false,
        [all] => *all,
        _ => formats.get(place).copied().unwrap_or(false),
    }
}

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

/// Gives each message its places, and each end of a statement the keys that it returns.
pub fn attach(sessions: &mut [Session], plan: KeyPlan) {
    let all: HashMap<String, Arc<Places>> =
        plan.statements.into_iter().map(|one| (one.shape.clone(), Arc::new(one))).collect();
    if all.is_empty() {
        return;
    }
    for session in sessions {
        let mut prepared: HashMap<Vec<u8>, Arc<Places>> = HashMap::new();
        let mut portals: HashMap<Vec<u8>, Returned> = HashMap::new();
        for turn in &mut session.turns {
            for said in turn.said.iter_mut().filter(|said| said.is_whole) {
                let mut places = None;
                match statement(said) {
                    Spoken::Text(sql) => {
                        places = all.get(&shape(sql)).cloned();
                        let returned = |(statement, places): (usize, &Arc<Places>)| {
                            Some(Returned { places: Arc::clone(places), statement, formats: Vec::new() })
                        };
                        let count = places.as_ref().map_or(0, |places| places.returns.len());
                        turn.returned.extend(places.iter().cycle().take(count).enumerate().map(returned));
                        turn.has_writers |= places.as_ref().is_some_and(|places| places.writes);
                    }
                    Spoken::Prepared(name, sql) => {
                        places = all.get(&shape(sql)).cloned();
                        match &places {
                            Some(places) => prepared.insert(name.to_vec(), Arc::clone(places)),
                            None => prepared.remove(name),
                        };
                    }
                    Spoken::Bound(portal, name) => {
                        places = prepared.get(name).cloned();
                        match &places {
                            Some(places) => {
                                let (places, formats) = (Arc::clone(places), result_formats(&said.body));
                                portals.insert(portal.to_vec(), Returned { places, statement: 0, formats });
                            }
                            None => drop(portals.remove(portal)),
                        }
                    }
                    Spoken::Executed(portal) => {
                        let returned = portals.get(portal).cloned();
                        turn.has_writers |= returned.as_ref().is_some_and(|returned| returned.places.writes);
                        turn.returned.push(returned);
                    }
                    Spoken::Other => {}
                }
                said.places = places.filter(|one| !(one.parameters.is_empty() && one.literals.is_empty()));
            }
        }
    }
}

/// Returns the formats that a Bind requests for results.
fn result_formats(body: &[u8]) -> Vec<bool> {
    Bind::of(body).map(|bind| formats(bind.behind)).unwrap_or_default()
}

fn formats(bytes: &[u8]) -> Vec<bool> {
    let Some((count, rest)) = bytes.split_first_chunk::<2>() else { return Vec::new() };
    rest.chunks_exact(2).take(u16::from_be_bytes(*count).into()).map(|code| code[1] == 1).collect()
}

/// Parts of a Bind message.
pub struct Bind<'a> {
    /// Everything up to the number of values, including it.
    pub head: &'a [u8],
    /// Formats of the parameters.
    pub formats: Vec<bool>,
    /// Values; `None` for NULL.
    pub values: Vec<Option<&'a [u8]>>,
    /// Formats of the results.
    pub behind: &'a [u8],
}

impl<'a> Bind<'a> {
    /// Parses a body; `None` if it is incomplete.
    pub fn of(body: &'a [u8]) -> Option<Self> {
        let (_, rest) = text(body);
        let (_, rest) = text(rest);
        let count = usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?]));
        let values = rest.get(2 + 2 * count..)?;
        let head = &body[..body.len() - values.len() + 2];
        let (values, behind) = fields(values)?;
        Some(Self { head, formats: formats(rest), values, behind })
    }
}

/// Values of a row or of a Bind, and the bytes behind them.
pub type Fields<'a> = (Vec<Option<&'a [u8]>>, &'a [u8]);

/// Parses a number of values with their lengths; `None` if they are incomplete.
pub fn fields(bytes: &[u8]) -> Option<Fields<'_>> {
    let (count, mut rest) = bytes.split_first_chunk::<2>()?;
    let mut found = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        rest = behind;
        let Ok(size) = usize::try_from(i32::from_be_bytes(*length)) else {
            found.push(None);
            continue;
        };
        found.push(Some(rest.get(..size)?));
        rest = &rest[size..];
    }
    Some((found, rest))
}

/// Learns the keys in pairs of rows of one execution.
pub fn learn(ids: &Ids, returned: &Returned, then: &[u8], now: &[u8]) {
    let (Some((then, _)), Some((now, _))) = (fields(then), fields(now)) else { return };
    let spaces = returned.spaces();
    if spaces.len() != then.len() || then.len() != now.len() {
        return;
    }
    for (at, space) in spaces.iter().enumerate() {
        if let (Some(space), Some(old), Some(new)) = (space, then[at], now[at]) {
            ids.learn(*space, old, new, returned.is_binary(at));
        }
    }
}
