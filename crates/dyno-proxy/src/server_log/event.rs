//! Meaning of an entry for the load: statements, their durations and failures, and the ends of sessions.

use std::sync::Arc;

use super::entry::{Entry, Reading, Severity, Who};
use super::parameters::Parameters;
use super::reason::Reason;

/// Step of the protocol that an entry reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A simple query.
    Simple,
    /// Parsing of a prepared statement.
    Parse,
    /// Binding of parameters.
    Bind,
    /// Execution of a portal.
    Execute,
    /// Continued execution of a portal.
    Fetch,
}

/// A statement as reported by an entry.
#[derive(Clone, Debug)]
pub struct Said {
    /// Step of the protocol.
    pub step: Step,
    /// Name of the prepared statement, empty for the unnamed one.
    pub name: Vec<u8>,
    /// Text of the statement.
    pub sql: Vec<u8>,
    /// Parameters of the statement.
    pub parameters: Parameters,
    /// Text of the PREPARE that an EXECUTE refers to, if the entry contains it.
    pub prepare: Vec<u8>,
}

/// A failure.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Text of the statement, empty if the entry does not contain it.
    pub sql: Vec<u8>,
    /// SQLSTATE, if the entry contains it.
    pub state: Option<[u8; 5]>,
    /// Parameters, if the entry contains them.
    pub parameters: Parameters,
    /// True if the failure ends the session.
    pub is_fatal: bool,
}

/// What an entry reports.
#[derive(Clone, Debug)]
pub enum What {
    /// A statement begins (`log_statement`).
    Begun(Said),
    /// A statement has ended after this time [ns].
    Done(Said, u64),
    /// An unnamed step has ended after this time [ns] (`log_duration`).
    Ended(u64),
    /// A statement failed.
    Failed(Failure),
    /// A client has connected.
    Connected,
    /// The session's user and database are now known.
    Authorized,
    /// The session has ended.
    Disconnected,
    /// The server has started or stopped; with its version, if the entry contains it.
    Restarted(Option<String>),
}

/// Event of a session.
#[derive(Clone, Debug)]
pub struct Event {
    /// Time of the event's log entry [ns since 1970].
    pub at_ns: u64,
    /// Earliest time that the entry's stamp allows [ns since 1970].
    pub floor_ns: u64,
    /// Latest time that the entry's stamp allows [ns since 1970].
    pub latest_ns: u64,
    /// Name of the log file.
    pub file: Arc<str>,
    /// Number of the entry's first line in the file.
    pub line: u64,
    /// Process id of the session at the server.
    pub pid: u32,
    /// Distinguishes sessions with the same process number; 0 if unknown.
    pub start: u64,
    /// User and database, if known.
    pub who: Option<Arc<Who>>,
    /// What happened.
    pub what: What,
}

impl Event {
    /// Returns the number of bytes of the event's texts.
    pub fn size(&self) -> usize {
        match &self.what {
            What::Begun(said) | What::Done(said, _) => said.sql.len() + said.parameters.values.len(),
            What::Failed(failure) => failure.sql.len(),
            _ => 0,
        }
    }
}

/// Beginning of a message with a duration.
const DURATION: &[u8] = b"duration: ";

/// Returns the event in an entry; `None` if the entry does not concern the load.
pub fn event(entry: Entry, reading: &mut Reading) -> Option<Event> {
    let Entry { at_ns, line, pid, start, mut who, severity, state, mut message, detail, statement, context } = entry;
    let what = match severity {
        Severity::Error | Severity::Fatal => What::Failed(Failure {
            sql: statement,
            state,
            parameters: Parameters::of_failure(&context),
            is_fatal: severity == Severity::Fatal,
        }),
        Severity::Other => return None,
        Severity::Log => {
            if message.starts_with(DURATION) {
                timed(message, &detail, line, reading)?
            } else if let Some(said) = said(&mut message, 0, &detail) {
                What::Begun(said)
            } else {
                who = authorized(&message, reading).or(who);
                about_session(&message, line, reading)?
            }
        }
    };
    let file = Arc::clone(&reading.file);
    Some(Event { at_ns, floor_ns: at_ns, latest_ns: at_ns, file, line, pid, start, who, what })
}

fn timed(mut message: Vec<u8>, detail: &[u8], line: u64, reading: &mut Reading) -> Option<What> {
    let Some((duration_ns, rest)) = duration(&message[DURATION.len()..]) else {
        reading.skip(Reason::NoDuration, line);
        return None;
    };
    if rest.is_empty() {
        return Some(What::Ended(duration_ns));
    }
    let from = message.len() - rest.trim_ascii_start().len();
    if let Some(said) = said(&mut message, from, detail) {
        return Some(What::Done(said, duration_ns));
    }
    let is_plan = message[from..].starts_with(b"plan:");
    reading.skip(if is_plan { Reason::Plan } else { Reason::NoDuration }, line);
    None
}

/// Returns the duration [ns] at the beginning of a text such as `0.123 ms  statement: select 1`, and the text after the
/// unit.
fn duration(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().take(24).position(|byte| *byte == b' ')?;
    let rest = text[end..].strip_prefix(b" ms")?;
    let (whole, fraction) = match text[..end].iter().position(|byte| *byte == b'.') {
        Some(point) => (&text[..point], &text[point + 1..end]),
        None => (&text[..end], &b""[..]),
    };
    let digits = |text: &[u8]| {
        text.iter().try_fold(0_u64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0')))
    };
    if whole.is_empty() || whole.len() > 12 || fraction.len() > 6 {
        return None;
    }
    let fraction_ns = digits(fraction)? * 10_u64.pow(6 - fraction.len() as u32);
    Some((digits(whole)? * 1_000_000 + fraction_ns, rest))
}

/// Parses `statement: TEXT`, `parse NAME: TEXT`, `bind NAME/PORTAL: TEXT`, `execute NAME: TEXT`, `execute fetch from ...`
/// in a message, beginning at byte `from`; only the SQL text is left in the message.
fn said(message: &mut Vec<u8>, from: usize, detail: &[u8]) -> Option<Said> {
    let (step, rest) = [
        (&b"statement: "[..], Step::Simple),
        (b"execute fetch from ", Step::Fetch),
        (b"execute ", Step::Execute),
        (b"parse ", Step::Parse),
        (b"bind ", Step::Bind),
    ]
    .into_iter()
    .find_map(|(word, step)| Some((step, message[from..].strip_prefix(word)?)))?;
    let begin = message.len() - rest.len();
    if step == Step::Simple {
        let prepare = detail.strip_prefix(b"prepare: ").unwrap_or_default().to_vec();
        let sql = behind(message, begin);
        return Some(Said { step, name: Vec::new(), sql, parameters: Parameters::default(), prepare });
    }
    let end = memchr::memmem::find(rest, b": ")?;
    let name = &rest[..end];
    // A name has no line end.
    if name.contains(&b'\n') {
        return None;
    }
    let name = if step == Step::Parse { name } else { name.split(|byte| *byte == b'/').next().unwrap_or(name) };
    let name = if name == b"<unnamed>" { Vec::new() } else { name.to_vec() };
    let sql = behind(message, begin + end + 2);
    Some(Said { step, name, sql, parameters: Parameters::of(detail), prepare: Vec::new() })
}

/// Returns the part of a message from an offset on, reusing its allocation.
fn behind(message: &mut Vec<u8>, place: usize) -> Vec<u8> {
    let mut whole = std::mem::take(message);
    whole.drain(..place);
    whole
}

/// Parses user and database in `connection authorized: user=me database=app application_name=psql`.
fn authorized(message: &[u8], reading: &mut Reading) -> Option<Arc<Who>> {
    let rest = message.strip_prefix(b"connection authorized: ")?;
    let value = |name: &[u8]| {
        let at = memchr::memmem::find(rest, name)? + name.len();
        rest[at..].split(|byte| *byte == b' ').next()
    };
    let part = |name: &[u8]| value(name).unwrap_or_default();
    reading.who(part(b"user="), part(b"database="), part(b"application_name="))
}

fn about_session(message: &[u8], line: u64, reading: &mut Reading) -> Option<What> {
    let begins = |words: &[u8]| message.starts_with(words);
    if begins(b"connection received: ") {
        return Some(What::Connected);
    }
    if begins(b"connection authorized: ") {
        return Some(What::Authorized);
    }
    if begins(b"disconnection: ") {
        return Some(What::Disconnected);
    }
    if let Some(version) = message.strip_prefix(b"starting PostgreSQL ") {
        let version = version.split(|byte| *byte == b' ').next().unwrap_or_default();
        return Some(What::Restarted(Some(String::from_utf8_lossy(version).into_owned())));
    }
    if begins(b"database system is shut down") || begins(b"all server processes terminated") {
        return Some(What::Restarted(None));
    }
    if begins(b"fastpath function call: ") {
        reading.skip(Reason::Fastpath, line);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_read_to_the_microsecond() {
        assert_eq!(duration(b"0.123 ms  statement: x"), Some((123_000, &b"  statement: x"[..])));
        assert_eq!(duration(b"12345.6 ms"), Some((12_345_600_000, &b""[..])));
        assert_eq!(duration(b"7 ms"), Some((7_000_000, &b""[..])));
        for text in [&b""[..], b"x ms", b".5 ms", b"1.5 s", b"1e3 ms", b"9999999999999999999999 ms", b"1.2"] {
            assert_eq!(duration(text), None);
        }
    }

    #[test]
    fn a_step_has_a_name_a_portal_and_a_text() {
        let of = |message: &[u8]| said(&mut message.to_vec(), 0, b"").map(|said| (said.step, said.name, said.sql));
        assert_eq!(of(b"statement: select 1"), Some((Step::Simple, vec![], b"select 1".to_vec())));
        assert_eq!(of(b"execute <unnamed>: a: b"), Some((Step::Execute, vec![], b"a: b".to_vec())));
        assert_eq!(of(b"execute S_1/C_2: x"), Some((Step::Execute, b"S_1".to_vec(), b"x".to_vec())));
        assert_eq!(of(b"execute fetch from S_1/C_2: x"), Some((Step::Fetch, b"S_1".to_vec(), b"x".to_vec())));
        assert_eq!(of(b"bind p:1: x\ny"), Some((Step::Bind, b"p:1".to_vec(), b"x\ny".to_vec())));
        assert_eq!(of(b"parse a/b: x"), Some((Step::Parse, b"a/b".to_vec(), b"x".to_vec())));
        assert_eq!(of(b"execute something"), None);
        assert_eq!(of(b"checkpoint starting: time"), None);
    }
}
