//! Tests properties of the readers of `MariaDB`'s logs: what a server writes is read back, a truncated log loses only
//! its end, and no bytes make a reader panic.

#![allow(clippy::format_push_string)] // short texts, once a test

use std::io::Cursor;

use dyno_proxy::server_log::entry::Reading;
use dyno_proxy::server_log::event::{Event, What};
use dyno_proxy::server_log::input::Lines;
use dyno_proxy::server_log::mariadb::{general, slow};
use dyno_proxy::server_log::reason::Reason;
use proptest::prelude::*;

use crate::some_words;

const BANNER: &str = "/usr/sbin/mariadbd, Version: 10.11.6-MariaDB-log (Debian). started with:\n\
    Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock\nTime\t\t    Id Command\tArgument\n";
const HEAD: &str = "# User@Host: app[app] @ localhost [127.0.0.1]\n# Thread_id: 5  Schema: shop  QC_hit: No\n\
    # Query_time: 0.000250  Lock_time: 0.000010  Rows_sent: 1  Rows_examined: 1\n\
    # Rows_affected: 0  Bytes_sent: 60\n# Full_scan: Yes  Full_join: No\n#\n# explain: id\tselect_type\n";

/// Reads a log, and returns the events and what could not be used.
fn events(is_slow: bool, bytes: &[u8]) -> (Vec<Event>, Reading) {
    let mut lines = Lines::of(Box::new(Cursor::new(bytes.to_vec())));
    let mut reading = Reading::default();
    let mut found = Vec::new();
    let on = |event: Event, _: &mut Reading| found.push(event);
    if is_slow {
        slow::read(&mut lines, &mut reading, on);
    } else {
        general::read(&mut lines, &mut reading, on);
    }
    (found, reading)
}

fn texts(events: &[Event]) -> Vec<String> {
    let texts = events.iter().filter_map(|event| match &event.what {
        What::Done(said, _) => Some(String::from_utf8_lossy(&said.sql).into_owned()),
        _ => None,
    });
    texts.collect()
}

fn written(is_slow: bool, all: &[String]) -> String {
    let mut out = BANNER.to_owned();
    for (at, sql) in all.iter().enumerate() {
        if is_slow {
            let time = if at % 2 == 0 { "# Time: 261129  1:35:02\n" } else { "" };
            let own = if at == 0 { "use shop;\n" } else { "" };
            out.push_str(&format!("{time}{HEAD}{own}SET insert_id=7,timestamp=1795916102;\n{sql};\n"));
        } else {
            let time = if at % 2 == 0 { "261129  1:35:02\t" } else { "\t\t" };
            out.push_str(&format!("{time}     5 Query\t{sql}\n"));
        }
    }
    out
}

fn some_text() -> impl Strategy<Value = String> {
    let own = ["`", "# Time", "# x\n", "SET timestamp=1;", "use shop", "/*", "5 Query", "Tcp port: 1", "261129"];
    some_words(&own).prop_map(|words| format!("select {words} 1"))
}

proptest! {
    #[test]
    fn what_a_server_writes_comes_back(all in prop::collection::vec(some_text(), 1..5), is_slow in any::<bool>()) {
        let (found, reading) = events(is_slow, written(is_slow, &all).as_bytes());
        prop_assert_eq!(texts(&found), all);
        prop_assert_eq!(reading.unused.to_json(), serde_json::json!([]));
    }

    #[test]
    fn a_cut_takes_the_end_and_nothing_else(
        all in prop::collection::vec(some_text(), 1..5), is_slow in any::<bool>(), cut in 0.0..1.0_f64,
    ) {
        let bytes = written(is_slow, &all).into_bytes();
        let (found, _) = events(is_slow, &bytes[..(bytes.len() as f64 * cut) as usize]);
        let part = texts(&found);
        // Lines of the last text may be missing where the cut is at the end of a line.
        let known = part.len().saturating_sub(1);
        prop_assert_eq!(&part[..known], &all[..known]);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(
        all in prop::collection::vec(some_text(), 1..5),
        is_slow in any::<bool>(),
        as_slow in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
    ) {
        let mut bytes = written(is_slow, &all).into_bytes();
        for (index, byte) in changes {
            let place = index.index(bytes.len());
            bytes[place] = byte;
        }
        let _ = events(as_slow, &bytes);
    }
}

#[test]
fn an_entry_of_the_slow_log_has_its_session_its_database_and_its_time() {
    let (found, _) = events(true, written(true, &["use other".to_owned()]).as_bytes());
    let [banner, one] = &found[..] else { panic!("{found:?}") };
    assert!(matches!(&banner.what, What::Restarted(Some(version)) if version == "10.11.6-MariaDB-log"));
    let who = one.who.as_ref().expect("a user");
    assert_eq!((one.pid, who.user.as_str(), who.database.as_str()), (5, "app", "shop"));
    assert_eq!(one.at_ns / 1_000_000_000, 1_795_916_102);
    assert!(matches!(one.what, What::Done(_, 250_000)));
}

#[test]
fn statements_of_routines_and_commands_of_the_driver_are_no_statements_of_clients() {
    let routine = HEAD.replace("#\n", "# Stored_routine: shop.p\n");
    let log = format!(
        "{HEAD}SET timestamp=1795916102;\ncall p();\n{routine}SET timestamp=1795916102;\nselect 1;\n\
         {HEAD}SET timestamp=1795916102;\n# administrator command: Ping;\n\
         {HEAD}SET timestamp=1795916103;\n# administrator command: Quit;\n"
    );
    let (found, reading) = events(true, log.as_bytes());
    assert_eq!(texts(&found), ["call p()"]);
    assert!(matches!(found[1].what, What::Disconnected));
    assert_eq!(reading.unused.count(Reason::Routine), 1);
}

#[test]
fn a_general_log_has_connections_and_prepared_statements_with_their_values() {
    let log = "261129  9:35:02\t    12 Connect\tapp@localhost on shop using TCP/IP\n\
        \t\t    12 Query\tset names utf8\n\t\t    12 Prepare\tselect * from t where a = ?\n\
        \t\t    12 Execute\tselect * from t where a = 5\n\t\t    12 Close stmt\t\n\
        261129 10:00:00\t    12 Query\tprepare s from 'select ?'\n\t\t    12 Prepare\tselect ?\n\
        \t\t    12 Query\texecute s using @a\n\t\t    12 Execute\tselect 3\n\t\t    12 Quit\t\n\
        \t\t    13 Connect\tapp@localhost on  using TCP/IP\n\t\t    13 Connect\tAccess denied for user 'app'@'localhost'\n";
    let (found, _) = events(false, log.as_bytes());
    let expected = ["set names utf8", "select * from t where a = 5", "prepare s from 'select ?'", "execute s using @a"];
    assert_eq!(texts(&found), expected);
    let who = found[0].who.as_ref().expect("a user");
    assert_eq!((who.user.as_str(), who.database.as_str()), ("app", "shop"));
    assert_eq!((found[3].at_ns - found[0].at_ns) / 1_000_000_000, 25 * 60 - 2);
    assert!(matches!(found[7].what, What::Disconnected));
}

#[test]
fn a_log_that_begins_or_ends_within_an_entry_keeps_the_others() {
    let log = format!(
        "from orders;\n{}# User@Host: app[app] @ loc",
        &written(true, &["select 1".to_owned()])[BANNER.len()..]
    );
    let (found, reading) = events(true, log.as_bytes());
    assert_eq!(texts(&found), ["select 1"]);
    assert_eq!((reading.unused.count(Reason::NoPrefix), reading.unused.count(Reason::Cut)), (1, 1));
}

#[test]
fn the_last_statement_before_a_servers_banner_is_kept() {
    let log = written(true, &["select 1".to_owned()]) + &written(true, &["select 2".to_owned()]);
    let (found, reading) = events(true, log.as_bytes());
    assert_eq!(texts(&found), ["select 1", "select 2"]);
    assert_eq!(reading.unused.to_json(), serde_json::json!([]));
}

#[test]
fn a_statement_that_a_crash_cut_before_the_banner_is_left_out() {
    let cut = written(true, &["select 1".to_owned(), "select 2".to_owned()]);
    let log = cut.trim_end_matches("ect 2;\n").to_owned() + &written(true, &["select 3".to_owned()]);
    let (found, reading) = events(true, log.as_bytes());
    assert_eq!(texts(&found), ["select 1", "select 3"]);
    assert_eq!(reading.unused.count(Reason::Cut), 1);
}
