//! jsonlog with one object per line, and text logs that log services store as one object per entry or line.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value as Json;

use super::entry::{Entry, Reading, Severity, start_of, state};
use super::input::{LONGEST, Line, Lines};
use super::reason::Reason;
use super::text::{Assembler, Head};

type Text<'a> = Option<Cow<'a, str>>;

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    #[serde(borrow)]
    user: Text<'a>,
    #[serde(borrow)]
    dbname: Text<'a>,
    pid: u32,
    #[serde(borrow)]
    session_id: Text<'a>,
    #[serde(borrow)]
    error_severity: Cow<'a, str>,
    #[serde(borrow)]
    state_code: Text<'a>,
    #[serde(borrow)]
    message: Text<'a>,
    #[serde(borrow)]
    detail: Text<'a>,
    #[serde(borrow)]
    statement: Text<'a>,
    #[serde(borrow)]
    context: Text<'a>,
    #[serde(borrow)]
    application_name: Text<'a>,
    #[serde(borrow)]
    backend_type: Text<'a>,
}

fn bytes(text: &Text<'_>) -> Vec<u8> {
    text.as_deref().unwrap_or_default().as_bytes().to_vec()
}

/// Reads a jsonlog.
pub fn read(lines: &mut Lines, reading: &mut Reading, mut on: impl FnMut(Entry, &mut Reading)) {
    while let Some(Line { bytes: line, number, is_whole }) = lines.next_line() {
        if line.is_empty() {
            continue;
        }
        if line.len() > LONGEST {
            reading.skip(Reason::TooLong, number);
            continue;
        }
        let Ok(found) = serde_json::from_slice::<Object<'_>>(line) else {
            reading.skip(if is_whole { Reason::NoObject } else { Reason::Cut }, number);
            continue;
        };
        let Some(at_ns) = reading.clock.read(found.timestamp.as_bytes()) else {
            reading.skip(Reason::NoTime, number);
            continue;
        };
        reading.entries += 1;
        let is_client = matches!(found.backend_type.as_deref(), None | Some("client backend" | "postmaster"));
        let severity = Severity::of(found.error_severity.as_bytes());
        if severity == Severity::Other || !is_client {
            continue;
        }
        let entry = Entry {
            at_ns,
            line: number,
            pid: found.pid,
            start: start_of(&bytes(&found.session_id)),
            who: reading.who(&bytes(&found.user), &bytes(&found.dbname), &bytes(&found.application_name)),
            severity,
            state: state(found.state_code.as_deref().unwrap_or_default().as_bytes()),
            message: bytes(&found.message),
            detail: bytes(&found.detail),
            statement: bytes(&found.statement),
            context: bytes(&found.context),
        };
        on(entry, reading);
    }
    if lines.broken.is_some() {
        reading.skip(Reason::Cut, 0);
    }
}

/// Reads a text log in a log service's objects; `keys` are those under which the service stores the server's output.
pub fn read_service(
    lines: &mut Lines,
    head: &Head,
    keys: &[String],
    reading: &mut Reading,
    mut on: impl FnMut(Entry, &mut Reading),
) {
    let mut assembler = Assembler::new(head);
    let mut cut = None;
    while let Some(Line { bytes: line, number, is_whole }) = lines.next_line() {
        let object = line.trim_ascii().trim_suffix_comma();
        if object.is_empty() || object == b"[" || object == b"]" {
            continue;
        }
        let found = serde_json::from_slice::<Json>(object).ok();
        let payload = found.as_ref().and_then(|found| keys.iter().find_map(|key| found.get(key)?.as_str()));
        let Some(payload) = payload else {
            if is_whole {
                reading.skip(Reason::NoPayload, number);
            } else {
                cut = Some(number);
            }
            continue;
        };
        for part in payload.trim_end_matches(['\r', '\n']).split('\n') {
            if let Some(entry) = assembler.line(part.trim_end_matches('\r').as_bytes(), number, None, reading) {
                on(entry, reading);
            }
        }
    }
    if let Some(number) = cut.or(lines.broken.is_some().then_some(0)) {
        assembler.cut(number, reading);
    } else if let Some(entry) = assembler.end(reading) {
        on(entry, reading);
    }
}

/// Removal of the comma after an object, in arrays with one object per line.
trait TrimSuffixComma {
    fn trim_suffix_comma(&self) -> &Self;
}

impl TrimSuffixComma for [u8] {
    fn trim_suffix_comma(&self) -> &Self {
        self.strip_suffix(b",").unwrap_or(self)
    }
}
