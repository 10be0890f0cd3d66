//! Keys in the messages of a capture. Before a replay begins, [`attach`] stores the positions of keys with every
//! message and every end of a statement.
//!
//! The request contains these positions, one entry per distinct [shape]. A key space consists of a column with keys and
//! the foreign keys that reference it.

use std::collections::HashMap;
use std::sync::Arc;

use super::bind::{fields, result_formats};
use super::ids::Ids;
use super::places::{KeyPlan, Places, Returned};
use super::read::{Session, Turn};
use super::shape::shape;
use super::spoken::{Spoken, statement};

/// Stores with each message its positions of keys, and with each end of a statement the keys that it returns.
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

/// Calls `on` with the key space, value and format of each generated key that a round trip returned in the capture.
pub fn each_key(turn: &Turn, mut on: impl FnMut(usize, &[u8], bool)) {
    let mut end = 0;
    for said in &turn.answers {
        if said.tag != b'D' {
            end += 1;
            continue;
        }
        let Some(returned) = turn.returned.get(end).and_then(Option::as_ref) else { continue };
        let Some((values, _)) = fields(&said.body) else { continue };
        for (at, space) in returned.spaces().iter().enumerate() {
            if let (Some(space), Some(Some(value))) = (space, values.get(at)) {
                on(*space, value, returned.is_binary(at));
            }
        }
    }
}

/// Records keys from pairs of rows of one execution.
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
