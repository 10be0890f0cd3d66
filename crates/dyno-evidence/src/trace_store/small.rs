//! Small tables of a recording: one part per table, written at the end of the recording.

use super::{Server, SessionRow, Store};
use crate::table::{Column, Table, Texts, Values};
use crate::{EvidenceError, NONE, trace_tables};

fn table(store: &Store, name: &str, columns: &[Column], mut values: Vec<Values>) -> Result<(), EvidenceError> {
    let mut table = Table::create(store.dir(), name, columns)?;
    if values.first().is_some_and(|first| !first.is_empty()) {
        table.write(&mut values)?;
    }
    table.finish().map(drop)
}

fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> Values {
    let mut texts = Texts::default();
    values.for_each(|value| texts.push(value));
    Values::Text(texts)
}

/// Writes all small tables.
///
/// # Errors
/// A part cannot be written.
pub fn write(store: &Store, sessions: &[SessionRow], server: &Server) -> Result<(), EvidenceError> {
    statements(store)?;
    errors(store)?;
    contexts(store, sessions)?;
    session_rows(store, sessions, server)?;
    unread(store, server)?;
    let one = |text: &str| texts(std::iter::once(Some(text)));
    let values = vec![
        Values::U32(vec![0]),
        one(&server.path),
        Values::I64(vec![0]),
        Values::I64(vec![0]),
        Values::I64(vec![(store.rows.0 + store.rows.1) as i64]),
        one(&server.version),
        Values::U8(vec![8]),
        Values::I64(vec![1]),
        one(""),
    ];
    table(store, "files", &trace_tables::FILES, values)
}

fn statements(store: &Store) -> Result<(), EvidenceError> {
    let known: Vec<_> = store.texts().collect();
    let n = known.len();
    let none = || Values::I64(vec![NONE; n]);
    let values = vec![
        texts(known.iter().map(|(key, _)| Some(*key))),
        texts((0..n).map(|_| None)),
        none(),
        texts(known.iter().map(|(_, text)| Some(text.as_ref()))),
        Values::I64(known.iter().map(|(_, text)| text.len() as i64).collect()),
        none(),
        none(),
        none(),
        Values::U8(vec![0; n]),
        Values::U32(vec![0; n]),
        Values::I64(vec![0; n]),
        texts((0..n).map(|_| None)),
        texts((0..n).map(|_| None)),
    ];
    table(store, "statements", &trace_tables::STATEMENTS, values)
}

fn errors(store: &Store) -> Result<(), EvidenceError> {
    let rows: Vec<_> = store.failures().collect();
    let n = rows.len();
    let values = vec![
        Values::U32(vec![0; n]),
        Values::I64(vec![0; n]),
        Values::I64(vec![0; n]),
        Values::U32(rows.iter().map(|row| row.0.session).collect()),
        Values::U64(vec![0; n]),
        Values::Words(
            (0..n as u32).map(|at| if rows[at as usize].3.is_some() { at } else { u32::MAX }).collect(),
            rows.iter().map(|row| row.3.unwrap_or_default().to_owned()).collect(),
        ),
        Values::I64(rows.iter().map(|row| i64::from(row.1)).collect()),
        Values::I64(rows.iter().map(|row| row.0.since_ns as i64).collect()),
        Values::I64(rows.iter().map(|row| row.2).collect()),
        Values::I64(rows.iter().map(|row| row.0.number as i64).collect()),
    ];
    table(store, "errors", &trace_tables::ERRORS, values)
}

/// Writes one context per session, with the session's number.
fn contexts(store: &Store, sessions: &[SessionRow]) -> Result<(), EvidenceError> {
    let n = sessions.len();
    let empty = || texts((0..n).map(|_| Some("")));
    let ids: Vec<String> = sessions.iter().map(|session| session.pid.to_string()).collect();
    let values = vec![
        Values::U32(vec![0; n]),
        Values::U32(sessions.iter().map(|session| session.number).collect()),
        texts(ids.iter().map(|id| Some(id.as_str()))),
        texts(sessions.iter().map(|session| Some(session.user.as_str()))),
        texts(sessions.iter().map(|session| Some(session.database.as_str()))),
        texts(sessions.iter().map(|session| Some(session.kind.as_str()))),
        empty(),
        empty(),
        empty(),
        empty(),
        empty(),
    ];
    table(store, "contexts", &trace_tables::CONTEXTS, values)
}

fn session_rows(store: &Store, sessions: &[SessionRow], server: &Server) -> Result<(), EvidenceError> {
    let n = sessions.len();
    let pids: Vec<String> = sessions.iter().map(|session| session.pid.to_string()).collect();
    let numbers = |get: &dyn Fn(&SessionRow) -> i64| Values::I64(sessions.iter().map(get).collect());
    let values = vec![
        Values::U32(sessions.iter().map(|session| session.number).collect()),
        Values::U32(vec![0; n]),
        texts(sessions.iter().map(|session| Some(session.name.as_str()))),
        texts(pids.iter().map(|pid| Some(pid.as_str()))),
        texts((0..n).map(|_| Some(""))),
        texts((0..n).map(|_| Some(server.version.as_str()))),
        numbers(&|session| session.since_ns as i64),
        numbers(&|session| session.until_ns as i64),
        numbers(&|session| store.at(session.since_ns)),
        numbers(&|session| (session.until_ns - session.since_ns) as i64),
        numbers(&|session| session.sums.calls as i64),
        numbers(&|session| session.sums.waits as i64),
        numbers(&|session| session.sums.call_ns as i64),
        numbers(&|session| session.sums.between_ns as i64),
        numbers(&|session| {
            (session.until_ns - session.since_ns) as i64 - session.sums.call_ns as i64 - session.sums.between_ns as i64
        }),
        numbers(&|session| session.sums.cpu_ns as i64),
        numbers(&|session| session.sums.wait_inside_ns as i64),
        numbers(&|session| {
            session.sums.call_ns as i64 - session.sums.cpu_ns as i64 - session.sums.wait_inside_ns as i64
        }),
        numbers(&|_| 0),
        numbers(&|_| 1),
    ];
    table(store, "sessions", &trace_tables::SESSIONS, values)
}

/// Writes each gap in the recording as an unreadable stretch, with its time.
fn unread(store: &Store, server: &Server) -> Result<(), EvidenceError> {
    let gaps = &server.gaps;
    let n = gaps.len();
    let samples: Vec<String> = gaps
        .iter()
        .map(|(lost, from, to)| {
            let (at, long) = (store.at(*from), (to - from) as f64 / 1e6);
            format!("{lost} notes within {long:.1} ms from {at} ns on")
        })
        .collect();
    let values = vec![
        Values::U32(vec![0; n]),
        Values::I64(vec![0; n]),
        Values::I64(vec![0; n]),
        Values::I64(gaps.iter().map(|gap| gap.0 as i64).collect()),
        Values::Words(vec![0; n], vec!["the kernel lost notes".to_owned()]),
        texts(samples.iter().map(|sample| Some(sample.as_str()))),
    ];
    table(store, "unread", &trace_tables::UNREAD, values)
}
