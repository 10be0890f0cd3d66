//! Tests properties of the readers of logs: what a server writes is read back, a truncated log loses only its end, and
//! no bytes make a reader panic.

#![allow(clippy::format_push_string)] // short texts, once a test

use std::io::Cursor;

use dyno_evidence::normal::Dialect;
use dyno_evidence::trace_store::Store;
use dyno_proxy::server_log::entry::{Entry, Reading};
use dyno_proxy::server_log::event::{Event, What, event};
use dyno_proxy::server_log::input::Lines;
use dyno_proxy::server_log::parameters::Parameters;
use dyno_proxy::server_log::syslog::Pieces;
use dyno_proxy::server_log::text::Head;
use dyno_proxy::server_log::{Form, Import, csvlog, jsonlog, syslog, text};
use proptest::prelude::*;

use crate::some_words;

const PREFIX: &str = r"(?P<m>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [A-Z]{3}) \[(?P<p>\d+)\] ";
const PIECE: &str = r"(?P<stamp>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) \S+ (?P<who>[a-z]+\[\d{1,10}\]): (?:\[(?P<number>\d+)-(?P<piece>\d+)\] ?)?";
const STAMP: &str = "2026-11-21 00:59:57.437 UTC";
const FORMS: [Form; 5] = [Form::Text, Form::Csvlog, Form::Jsonlog, Form::Json, Form::Syslog];

/// A statement with the parameters in its log line.
type Statement = (String, Vec<Option<String>>);

/// Reads bytes as a log of this format.
fn events(form: Form, bytes: &[u8]) -> Vec<Event> {
    let mut lines = Lines::of(Box::new(Cursor::new(bytes.to_vec())));
    let mut reading = Reading::default();
    reading.year = 2026;
    let head = Head::new(PREFIX, &["DETAIL".to_owned()]).expect("a pattern");
    let pieces = Pieces::new(PIECE).expect("a pattern");
    let mut found = Vec::new();
    let on = |entry: Entry, reading: &mut Reading| found.extend(event(entry, reading));
    match form {
        Form::Text => text::read(&mut lines, &head, &mut reading, on),
        Form::Csvlog => csvlog::read(&mut lines, &mut reading, on),
        Form::Jsonlog => jsonlog::read(&mut lines, &mut reading, on),
        Form::Json => jsonlog::read_service(&mut lines, &head, &["log".to_owned()], &mut reading, on),
        Form::Syslog => syslog::read(&mut lines, &pieces, &head, &mut reading, on),
        Form::Slow | Form::General => unreachable!("MariaDB's logs have tests of their own"),
    }
    found
}

fn statements(events: Vec<Event>) -> Vec<(String, Parameters)> {
    let done = events.into_iter().filter_map(|event| match event.what {
        What::Done(said, _) => Some((String::from_utf8_lossy(&said.sql).into_owned(), said.parameters)),
        _ => None,
    });
    done.collect()
}

fn detail(parameters: &[Option<String>]) -> String {
    let each = parameters.iter().enumerate().map(|(at, value)| match value {
        Some(value) => format!("${} = '{}'", at + 1, value.replace('\'', "''")),
        None => format!("${} = NULL", at + 1),
    });
    format!("parameters: {}", each.collect::<Vec<_>>().join(", "))
}

/// Writes statements as a server would log them.
fn written(form: Form, statements: &[Statement]) -> Vec<u8> {
    let mut out = String::new();
    for (number, (sql, parameters)) in statements.iter().enumerate() {
        let message = format!("duration: 0.125 ms  execute <unnamed>: {sql}");
        let detail = if parameters.is_empty() { String::new() } else { detail(parameters) };
        let tabbed = |text: &str| text.replace('\n', "\n\t");
        let mut plain = format!("{STAMP} [28] LOG:  {}", tabbed(&message));
        if !detail.is_empty() {
            plain += &format!("\n{STAMP} [28] DETAIL:  {}", tabbed(&detail));
        }
        match form {
            Form::Text => out += &format!("{plain}\n"),
            Form::Csvlog => {
                let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
                out += &format!(
                    "{STAMP},\"me\",\"app\",28,\"[local]\",6920b3a1.1c,{number},\"SELECT\",{STAMP},3/4,0,LOG,00000,{},{},,,,,,,,\"psql\",\"client backend\",,0\n",
                    quoted(&message),
                    if detail.is_empty() { String::new() } else { quoted(&detail) },
                );
            }
            Form::Jsonlog => {
                let object = serde_json::json!({
                    "timestamp": STAMP, "pid": 28, "session_id": "6920b3a1.1c", "error_severity": "LOG",
                    "message": message, "detail": detail, "backend_type": "client backend",
                });
                out += &format!("{object}\n");
            }
            Form::Json => {
                for line in plain.split('\n') {
                    out += &format!("{}\n", serde_json::json!({"log": line, "stream": "stderr"}));
                }
            }
            Form::Syslog => {
                for (piece, line) in plain.split('\n').enumerate() {
                    let escaped = line.replace('\t', "#011").replace('\r', "#015");
                    out += &format!("Nov 21 00:59:57 db1 postgres[28]: [{number}-{}] {escaped}\n", piece + 1);
                }
            }
            Form::Slow | Form::General => unreachable!("MariaDB's logs have tests of their own"),
        }
    }
    out.into_bytes()
}

fn some_text() -> impl Strategy<Value = String> {
    some_words(&[
        "''",
        ": ",
        "$1",
        " = ",
        "NULL",
        "LOG:  ",
        "DETAIL:  ",
        "2026-11-21 00:59:57.437 UTC [28] LOG:  ",
        "/",
        ";",
        "\r",
        "{",
        "}",
        "...",
    ])
}

fn some_statements() -> impl Strategy<Value = Vec<Statement>> {
    let value = prop::option::of(some_text());
    prop::collection::vec((some_text(), prop::collection::vec(value, 0..4)), 1..5)
}

proptest! {
    #[test]
    fn what_a_server_writes_comes_back(all in some_statements(), at in 0..FORMS.len()) {
        let form = FORMS[at];
        // The first line shows whether lines end as on Windows, which ours do not.
        let first = ("select 1".to_owned(), vec![]);
        let all: Vec<Statement> = std::iter::once(first).chain(all).collect();
        let found = statements(events(form, &written(form, &all)));
        prop_assert_eq!(found.len(), all.len());
        for ((sql, parameters), (expected, values)) in found.iter().zip(&all) {
            // A text ends with the line in objects of a service and in pieces, which have no other end.
            let is_trimmed = form == Form::Json;
            let trim = |text: &str| if is_trimmed { text.replace('\r', "") } else { text.to_owned() };
            prop_assert_eq!(trim(sql), trim(expected));
            if !is_trimmed {
                let detail = if values.is_empty() { String::new() } else { detail(values) };
                prop_assert_eq!(parameters, &Parameters::of(detail.as_bytes()));
                prop_assert!(!parameters.is_broken);
            }
            prop_assert_eq!(usize::from(parameters.count), values.len());
        }
    }

    #[test]
    fn a_cut_takes_the_end_and_nothing_else(all in some_statements(), at in 0..FORMS.len(), cut in 0.0..1.0_f64) {
        let form = FORMS[at];
        let bytes = written(form, &all);
        let whole = statements(events(form, &bytes));
        let part = statements(events(form, &bytes[..(bytes.len() as f64 * cut) as usize]));
        prop_assert!(part.len() <= whole.len());
        // Of the last entry its DETAIL, or lines, may be missing where the cut is at the end of a line.
        let known = part.len().saturating_sub(1);
        prop_assert_eq!(&part[..known], &whole[..known]);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(
        all in some_statements(),
        at in 0..FORMS.len(),
        as_another in 0..FORMS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        is_as_another in any::<bool>(),
    ) {
        let mut bytes = written(FORMS[at], &all);
        for (index, byte) in changes {
            let place = index.index(bytes.len());
            bytes[place] = byte;
        }
        let _ = events(FORMS[if is_as_another { as_another } else { at }], &bytes);
    }

    #[test]
    fn no_events_make_an_import_panic(all in prop::collection::vec((0..9_u8, 0..3_u32, some_text(), 0..3_u64), 0..40)) {
        let dir = std::env::temp_dir().join(format!("dyno-logs-{}-{:?}", std::process::id(), std::thread::current().id()));
        std::fs::create_dir_all(&dir).expect("a folder for the test");
        let mut import = Import::new(Store::new(&dir, 0), None, Dialect::Postgres);
        let mut log = String::new();
        for (kind, pid, sql, step) in &all {
            let sql = sql.replace('\n', "\n\t");
            let what = match kind {
                0 => format!("LOG:  duration: 0.1 ms  parse s{step}: {sql}"),
                1 => format!("LOG:  duration: 0.1 ms  bind s{step}: {sql}"),
                2 => format!("LOG:  duration: 0.1 ms  execute s{step}: {sql}"),
                3 => format!("LOG:  duration: 0.1 ms  statement: {sql}"),
                4 => format!("LOG:  statement: {sql}"),
                5 => "LOG:  duration: 99999999.1 ms".to_owned(),
                6 => format!("ERROR:  no\n{STAMP} [{pid}] STATEMENT:  {sql}"),
                7 => "FATAL:  no".to_owned(),
                _ => "LOG:  disconnection: session time: 0:00:01".to_owned(),
            };
            log += &format!("{STAMP} [{pid}] {what}\n");
        }
        for event in events(Form::Text, log.as_bytes()) {
            import.add(event);
        }
        let (sessions, ..) = import.finish(String::new()).expect("written");
        std::fs::remove_dir_all(&dir).ok();
        prop_assert!(sessions as usize <= all.len());
    }
}
