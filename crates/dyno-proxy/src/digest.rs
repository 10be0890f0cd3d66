//! Digest of a capture: its distinct statements with calls, time, failures and sample parameters.
//!
//! Two statements are the same if these are equal: their texts without literals, the group of their session (user and
//! database), and the settings that the session had changed. The capture is read once, message by message; memory use
//! grows with the number of distinct statements, not with the number of executions.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::path::Path;

use dyno_evidence::normal::{Dialect, normal_of};

use crate::framing::text;
use crate::replay::ReplayError;
use crate::replay::read::{Kept, Said, each_message};

mod settings;

/// Number of executions of each statement that are kept until the samples are chosen.
const RESERVOIR: usize = 48;
/// Length from which the parameters of an execution are not kept as a sample [bytes].
const LONGEST_SAMPLE: usize = 1 << 20;

/// Value of a parameter: its bytes, or `None` for NULL.
pub type Value = Option<Vec<u8>>;

/// An execution with its values, in a form that can be sent again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Time until the server was ready again, shared among the executions of a round trip [ns].
    pub elapsed_ns: u64,
    /// Text as sent, with its literals.
    pub text: Vec<u8>,
    /// Values of the parameters.
    pub values: Vec<Value>,
    /// True for each value in binary format.
    pub binary: Vec<bool>,
    /// Parameter types named by the client; 0 if the client left the type to the server.
    pub types: Vec<u32>,
    /// True if the execution was sent as a simple query, so that it may consist of several statements.
    pub is_simple: bool,
}

/// A distinct statement.
#[derive(Clone, Debug, Default)]
pub struct Digest {
    /// Text without literals.
    pub text: String,
    /// Group of the sessions that executed the statement.
    pub group: u32,
    /// Earlier statements that changed the session's settings.
    pub settings: Vec<String>,
    /// Number of executions.
    pub calls: u64,
    /// Number of executions that ended in an error.
    pub failed: u64,
    /// Time of all executions [ns].
    pub total_ns: u64,
    /// Number of executions whose parameters or text were truncated.
    pub cut: u64,
    /// Executions with their values, sorted by elapsed time.
    pub samples: Vec<Sample>,
    /// Largest number of executions of one named prepared statement; 0 if none was executed by name.
    pub prepared: u64,
    /// Number of executions with settings from SET LOCAL or `set_config`, which are not in `settings`.
    pub unsettled: u64,
}

#[derive(Default)]
struct Prepared {
    text: Vec<u8>,
    types: Vec<u32>,
    is_whole: bool,
    /// Number of executions of the statement by name so far.
    executed: u64,
}

#[derive(Default)]
struct Session {
    prepared: HashMap<Vec<u8>, Prepared>,
    portals: HashMap<Vec<u8>, Execution>,
    settings: Vec<(String, String)>,
    /// True if the transaction or the session has settings from SET LOCAL or `set_config`.
    unsettled: (bool, bool),
    /// Portals with rows left to fetch.
    suspended: HashSet<Vec<u8>>,
    /// Executions of unfinished round trips, by round trip.
    turns: std::collections::VecDeque<Turn>,
}

#[derive(Default)]
struct Turn {
    sent_ns: u64,
    is_closed: bool,
    executions: Vec<Execution>,
    ends: Vec<bool>,
}

#[derive(Clone, Default)]
struct Execution {
    sample: Sample,
    is_whole: bool,
    /// Running number of this execution among the executions of its named prepared statement; 0 if the statement has no
    /// name.
    prepared: u64,
    portal: Vec<u8>,
    /// True if this fetches further rows of an execution that has already been counted.
    is_continued: bool,
}

/// Reads a captured run and returns its distinct statements, the one with the most time first.
///
/// `groups` maps sessions to groups; statements of different groups are different. `samples` is the number of
/// executions to return for each statement; they are chosen at quantiles of their elapsed time.
///
/// # Errors
/// There are no messages, or the evidence cannot be read.
pub fn digest<S: BuildHasher>(
    run: &Path,
    groups: &HashMap<u32, u32, S>,
    samples: usize,
    dialect: Dialect,
) -> Result<Vec<Digest>, ReplayError> {
    let mut sessions: HashMap<u32, Session> = HashMap::new();
    let mut found = Found { dialect, ..Found::default() };
    each_message(run, |kept| {
        let session = sessions.entry(kept.session).or_default();
        let group = groups.get(&kept.session).copied().unwrap_or(0);
        session.take(&kept, group, &mut found);
    })?;
    let mut digests = found.digests;
    for digest in &mut digests {
        digest.samples = chosen(std::mem::take(&mut digest.samples), samples);
    }
    digests.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.text.cmp(&b.text)));
    Ok(digests)
}

#[derive(Default)]
struct Found {
    digests: Vec<Digest>,
    places: HashMap<(u32, Vec<String>, String), usize>,
    /// Texts without literals, keyed by the original text, so that a statement with parameters is normalised only once.
    normals: HashMap<Vec<u8>, String>,
    /// State of the generator that draws the executions to keep; the same capture gives the same samples.
    drawn: u64,
    dialect: Dialect,
}

impl Found {
    fn add(
        &mut self,
        group: u32,
        settings: &[(String, String)],
        mut execution: Execution,
        elapsed_ns: u64,
        failed: bool,
        unsettled: bool,
    ) {
        let settings: Vec<String> = settings.iter().map(|(_, text)| text.clone()).collect();
        let known = self.normals.get(&execution.sample.text).cloned();
        let text = known.unwrap_or_else(|| {
            let made = normal_of(&execution.sample.text, self.dialect);
            if !execution.sample.is_simple && self.normals.len() < 100_000 {
                self.normals.insert(execution.sample.text.clone(), made.clone());
            }
            made
        });
        let key = (group, settings, text);
        let place = self.places.get(&key).copied().unwrap_or_else(|| {
            let (group, settings, text) = key.clone();
            self.digests.push(Digest { text, group, settings, ..Digest::default() });
            self.places.insert(key, self.digests.len() - 1);
            self.digests.len() - 1
        });
        let digest = &mut self.digests[place];
        digest.failed += u64::from(failed);
        digest.total_ns += elapsed_ns;
        if execution.is_continued {
            return;
        }
        digest.calls += 1;
        digest.unsettled += u64::from(unsettled);
        digest.prepared = digest.prepared.max(execution.prepared);
        let size = execution.sample.text.len() + execution.sample.values.iter().flatten().map(Vec::len).sum::<usize>();
        if !execution.is_whole || size > LONGEST_SAMPLE {
            digest.cut += 1;
            return;
        }
        execution.sample.elapsed_ns = elapsed_ns;
        let kept = digest.calls - digest.cut;
        if digest.samples.len() < RESERVOIR {
            digest.samples.push(execution.sample);
        } else {
            let at = draw(&mut self.drawn) % kept;
            if (at as usize) < RESERVOIR {
                digest.samples[at as usize] = execution.sample;
            }
        }
    }
}

/// Returns the next number of the generator `SplitMix64` (Steele, Lea and Flood 2014).
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns at most `count` of the samples, at equally spaced quantiles of their elapsed time, without repeated values.
fn chosen(mut samples: Vec<Sample>, count: usize) -> Vec<Sample> {
    samples.sort_by_key(|sample| sample.elapsed_ns);
    let mut seen = std::collections::HashSet::new();
    samples.retain(|sample| seen.insert((sample.text.clone(), sample.values.clone())));
    if samples.len() <= count {
        return samples;
    }
    (0..count).map(|at| samples[(2 * at + 1) * samples.len() / (2 * count)].clone()).collect()
}

impl Session {
    fn take(&mut self, kept: &Kept, group: u32, found: &mut Found) {
        if kept.is_server {
            self.server(kept.at_ns, &kept.said, group, found);
        } else {
            self.client(kept.at_ns, &kept.said);
        }
    }

    fn client(&mut self, at_ns: u64, said: &Said) {
        if matches!(said.tag, b'X' | b'-' | b'H' | b'd' | b'c' | b'f') {
            return;
        }
        if self.turns.back().is_none_or(|turn| turn.is_closed) {
            self.turns.push_back(Turn { sent_ns: at_ns, ..Turn::default() });
        }
        match said.tag {
            b'P' => {
                let (name, rest) = text(&said.body);
                let (sql, types) = text(rest);
                let prepared =
                    Prepared { text: sql.to_vec(), types: words(types), is_whole: said.is_whole, executed: 0 };
                self.prepared.insert(name.to_vec(), prepared);
            }
            b'B' => self.bind(said),
            b'C' if said.body.first() == Some(&b'S') => {
                self.prepared.remove(text(&said.body[1..]).0);
            }
            _ => {}
        }
        let Some(turn) = self.turns.back_mut() else { return };
        match said.tag {
            b'E' => {
                let portal = text(&said.body).0;
                let mut execution = self.portals.get(portal).cloned().unwrap_or_default();
                execution.portal = portal.to_vec();
                execution.is_continued = self.suspended.remove(portal);
                turn.executions.push(execution);
            }
            b'Q' => turn.executions.push(Execution {
                sample: Sample { text: text(&said.body).0.to_vec(), is_simple: true, ..Sample::default() },
                is_whole: said.is_whole,
                ..Execution::default()
            }),
            _ => {}
        }
        turn.is_closed = matches!(said.tag, b'Q' | b'S' | b'F');
    }

    fn bind(&mut self, said: &Said) {
        let (portal, rest) = text(&said.body);
        let (name, rest) = text(rest);
        let Some(prepared) = self.prepared.get_mut(name) else { return };
        prepared.executed += u64::from(!name.is_empty());
        let values = values(rest);
        let is_whole = said.is_whole && prepared.is_whole && values.is_some();
        let (values, binary) = values.unwrap_or_default();
        let sample = Sample {
            elapsed_ns: 0,
            text: prepared.text.clone(),
            values,
            binary,
            types: prepared.types.clone(),
            is_simple: false,
        };
        self.suspended.remove(portal);
        let execution = Execution { sample, is_whole, prepared: prepared.executed, ..Execution::default() };
        self.portals.insert(portal.to_vec(), execution);
    }

    fn server(&mut self, at_ns: u64, said: &Said, group: u32, found: &mut Found) {
        let Some(turn) = self.turns.front_mut() else { return };
        match said.tag {
            b's' => {
                if let Some(execution) = turn.executions.get(turn.ends.len()) {
                    self.suspended.insert(execution.portal.clone());
                }
                turn.ends.push(false);
            }
            b'C' | b'I' => turn.ends.push(false),
            b'E' => turn.ends.push(true),
            b'Z' => {
                let Some(turn) = self.turns.pop_front() else { return };
                let share = at_ns.saturating_sub(turn.sent_ns) / (turn.executions.len() as u64).max(1);
                let any_failed = turn.ends.contains(&true);
                for (at, execution) in turn.executions.into_iter().enumerate() {
                    // After an error the rest of the round trip was not executed.
                    let failed = if execution.sample.is_simple {
                        any_failed
                    } else {
                        turn.ends.get(at).copied().unwrap_or(true)
                    };
                    if !failed {
                        self.remember_setting(&execution.sample.text);
                    }
                    if !execution.sample.text.is_empty() {
                        let unsettled = self.unsettled.0 || self.unsettled.1;
                        found.add(group, &self.settings, execution, share, failed, unsettled);
                    }
                }
                if said.body.first() == Some(&b'I') {
                    self.unsettled.0 = false;
                    self.suspended.clear(); // portals end with their transaction
                }
            }
            _ => {}
        }
    }
}

/// Returns the 32-bit numbers of a list that begins with its 16-bit length.
fn words(bytes: &[u8]) -> Vec<u32> {
    let Some((count, rest)) = count(bytes) else { return Vec::new() };
    rest.chunks_exact(4).take(count).map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]])).collect()
}

fn count(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<2>()?;
    Some((usize::from(u16::from_be_bytes(*head)), rest))
}

/// Parses a Bind message after its names: returns the values, and which of them are binary; `None` if they are cut off.
fn values(bytes: &[u8]) -> Option<(Vec<Value>, Vec<bool>)> {
    let (number, mut rest) = count(bytes)?;
    let mut formats = Vec::with_capacity(number.min(rest.len() / 2));
    for _ in 0..number {
        let (format, behind) = count(rest)?;
        formats.push(format == 1);
        rest = behind;
    }
    let (number, mut rest) = count(rest)?;
    let mut values = Vec::new();
    for _ in 0..number {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        rest = behind;
        let length = i32::from_be_bytes(*length);
        if length < 0 {
            values.push(None);
        } else {
            let (value, behind) = rest.split_at_checked(length as usize)?;
            values.push(Some(value.to_vec()));
            rest = behind;
        }
    }
    // One format may stand for all values, and none means text.
    let binary = (0..values.len()).map(|at| match formats.len() {
        1 => formats[0],
        _ => formats.get(at).copied().unwrap_or(false),
    });
    let binary = binary.collect();
    Some((values, binary))
}

#[cfg(test)]
mod tests;
