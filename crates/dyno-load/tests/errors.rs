//! Tests of errors on the engine's side: they are counted and recorded, lead to a retry or a reconnect, or are reported
//! clearly.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{load, millis, run, run_until, server, signal, transactions};
use dyno_load::LoadError;
use serde_json::json;

#[test]
fn a_constraint_is_an_error_in_its_row_and_the_load_goes_on() {
    let Some(server) = server() else { return };
    server.sql("create table once (id int primary key)");
    let script = "begin;\ninsert into once values (1);\nselect 1;\ncommit;\n";
    for (protocol, first) in [("prepared", ""), ("extended", "23505"), ("simple", "23505")] {
        let mut spec = server.spec("unique", script, json!({}));
        spec["protocol"] = protocol.into();
        let block = run(&mut load(&spec), &transactions(4)).expect("runs");
        assert_eq!(block.errors("transaction"), [first, "23505", "23505", "23505"]);
        let failed = if first.is_empty() { 3 } else { 4 };
        let arm = &block.report.arms[0];
        assert_eq!((arm.transactions, arm.errors, arm.retries), (4, failed, 0));
        assert_eq!(block.kind("rollback").len() as u64, failed);
        assert_eq!(block.kind("commit").len() as u64, 4 - failed);
        let words = arm.first_error.as_deref().unwrap_or_default();
        assert!(words.contains("duplicate key") && words.contains("23505"), "{words}");
        assert_eq!(block.report.error_codes, ["23505"]);
    }
    assert_eq!(server.sql("select count(*) from once"), "1");
}

#[test]
fn serialization_failures_are_retried_with_the_same_values() {
    let Some(server) = server() else { return };
    server.sql("create table counter (id int, v int); insert into counter values (1, 0)");
    server.sql("create table draws (client int, try int generated always as identity, d int)");
    let script = "\\set d random(1, 1000000000)\nbegin isolation level repeatable read;\n\
        select v from counter;\n\\sleep 3 ms\nupdate counter set v = v + 1;\ncommit;\n\
        insert into draws (client, d) values (:client_id, :d);\n";
    let spec = server.spec("retry", script, json!({"sessions": 4, "max_tries": 100}));
    let block = run(&mut load(&spec), &transactions(40)).expect("runs");
    let arm = &block.report.arms[0];
    assert_eq!((arm.transactions, arm.errors), (40, 0), "{arm:?}");
    assert!(arm.retries > 0);
    assert_eq!(server.sql("select v from counter"), "40");
    assert!(block.errors("exec").contains(&"40001"));
    assert!(block.errors("transaction").iter().all(|code| code.is_empty()));
    // However often it was tried, each transaction of a session drew its values once: the values are the same in a run
    // without conflicts.
    let values = |client: u32| server.sql(&format!("select d from draws where client = {client} order by try"));
    let first = values(0);
    server.sql("truncate draws");
    let alone = server.spec("retry-alone", script, json!({}));
    run(&mut load(&alone), &transactions(40)).expect("runs");
    assert!(values(0).starts_with(&first), "{first}");

    server.sql("update counter set v = 0");
    let spec = server.spec("no-retry", script, json!({"sessions": 4}));
    let block = run(&mut load(&spec), &transactions(40)).expect("runs");
    let arm = &block.report.arms[0];
    assert!(arm.errors > 0 && arm.retries == 0);
    assert_eq!(server.sql("select v from counter"), (arm.transactions - arm.errors).to_string());
}

#[test]
fn deadlocks_are_retried() {
    let Some(server) = server() else { return };
    server.sql("create table pair (id int, v int); insert into pair values (1, 0), (2, 0)");
    let script = "\\set a 1 + :client_id\n\\set b 2 - :client_id\nbegin;\n\
        update pair set v = v + 1 where id = :a;\n\\sleep 20 ms\n\
        update pair set v = v + 1 where id = :b;\ncommit;\n";
    let more = json!({"sessions": 2, "max_tries": 50,
        "session_sql": ["set deadlock_timeout = '10ms'"]});
    let block = run(&mut load(&server.spec("deadlock", script, more)), &transactions(6)).expect("runs");
    let arm = &block.report.arms[0];
    assert_eq!((arm.transactions, arm.errors), (6, 0), "{arm:?}");
    assert!(arm.retries > 0 && block.errors("exec").contains(&"40P01"));
    assert_eq!(server.sql("select sum(v) from pair"), "12");
}

#[test]
fn a_killed_backend_is_one_failed_transaction_and_a_reconnect() {
    let Some(server) = server() else { return };
    server.sql("create table survived (id int)");
    for host in [json!(server.dir), json!("127.0.0.1")] {
        let mut spec = server.spec("killed", "insert into survived values (1);", json!({"sessions": 2}));
        spec["arms"][0]["connection"]["host"] = host;
        server.sql("truncate survived");
        let mut load = load(&spec);
        let block = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(150));
                let kill =
                    "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'killed'";
                assert_eq!(server.sql(kill), "2");
            });
            run(&mut load, &millis(500)).expect("runs")
        });
        assert_eq!(block.report.reconnects, 2);
        let failed: Vec<&str> = block.errors("transaction").into_iter().filter(|code| !code.is_empty()).collect();
        assert_eq!(failed, ["57P01", "57P01"]);
        let arm = &block.report.arms[0];
        assert_eq!(arm.errors, 2);
        let rows: u64 = server.sql("select count(*) from survived").parse().expect("a number");
        // A backend may be terminated between its commit and its answer.
        let done = arm.transactions - arm.errors;
        assert!((done..=done + 2).contains(&rows), "{rows} {done}");
        let after = block.values("transaction", |c| &c.started_ns).into_iter().max();
        assert!(after > Some(block.report.started_ns + 300_000_000), "it went on");
    }
}

#[test]
fn a_connection_that_ended_between_blocks_is_made_again() {
    let Some(server) = server() else { return };
    let spec = server.spec("between", "select 1;", json!({}));
    let mut load = load(&spec);
    run(&mut load, &transactions(1)).expect("runs");
    server.sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'between'");
    thread::sleep(Duration::from_millis(50));
    let block = run(&mut load, &transactions(3)).expect("runs");
    assert_eq!(block.errors("transaction"), ["57P01", "", ""]);
    assert_eq!(block.report.reconnects, 1);
}

#[test]
fn prepared_statements_that_the_script_drops_are_prepared_again() {
    let Some(server) = server() else { return };
    let spec = server.spec("discard", "select 1;\ndeallocate all;\n", json!({}));
    let block = run(&mut load(&spec), &transactions(4)).expect("runs");
    // `deallocate all` is itself a prepared statement, so each transaction loses what it prepared.
    let failed = block.errors("exec").iter().filter(|code| **code == "26000").count();
    assert!(failed >= 1 && block.report.arms[0].errors < 4, "{:?}", block.errors("exec"));
}

#[test]
fn a_server_that_stays_away_ends_the_load_with_the_place() {
    // Accepts one session, answers its login, and closes.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let server = thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        drop(client.read(&mut [0; 512]));
        let welcome = [b'R', 0, 0, 0, 8, 0, 0, 0, 0, b'Z', 0, 0, 0, 5, b'I'];
        client.write_all(&welcome).expect("sends");
        drop(client.read(&mut [0; 512]));
    });
    let spec = json!({"seed": 7, "arms": [{"name": "gone", "sessions": 1,
        "connection": {"host": "127.0.0.1", "port": port, "user": "u", "dbname": "d",
            "password": "geheim", "sslmode": "disable"},
        "scripts": [{"name": "s", "text": "select 1;"}]}]});
    let start = Instant::now();
    let error = run(&mut load(&spec), &transactions(5)).err().expect("fails");
    assert!((8..20).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    let text = format!("{error} {error:?}");
    assert!(matches!(error, LoadError::Reconnect { .. }), "{text}");
    assert!(text.contains(&format!("lost the connection to host 127.0.0.1, port {port}, user u")));
    assert!(!text.contains("geheim"));
    server.join().expect("ends");
}

#[test]
fn a_wish_to_stop_ends_a_long_query_within_a_second() {
    let Some(server) = server() else { return };
    for (script, frozen) in
        [("select pg_sleep(60);", false), ("select pg_sleep(60);", true), ("\\sleep 60 s\nselect 1;", false)]
    {
        let name = format!("stop-{frozen}-{}", script.len());
        let mut load = load(&server.spec(&name, script, json!({"sessions": 1})));
        load.connect(0, &Arc::default()).expect("connects");
        let backend = server.backend(&name);
        let stop = Arc::new(AtomicBool::new(false));
        let (block, took) = thread::scope(|scope| {
            let stopper = scope.spawn(|| {
                thread::sleep(Duration::from_millis(150));
                if frozen {
                    signal("STOP", backend);
                }
                stop.store(true, Ordering::Relaxed);
                Instant::now()
            });
            let block = run_until(&mut load, &millis(60_000), &stop).expect("ends well");
            (block, stopper.join().expect("stops").elapsed())
        });
        if frozen {
            signal("CONT", backend);
        }
        assert!(block.report.interrupted);
        assert!(took < Duration::from_millis(1_200), "{took:?}");
        // A transaction that the client itself interrupted is not an observation.
        assert_eq!(block.kind("transaction").len(), 0);
        assert_eq!((block.report.arms[0].errors, block.report.reconnects), (0, 0));
    }
}

#[test]
fn a_script_that_cannot_work_is_an_error_with_its_line() {
    let Some(server) = server() else { return };
    let cases = [
        ("select 1;\n\\set x 1 / 0\n", "script script, line 2: division by zero"),
        ("begin;\nselect 1;\n", "ended inside a transaction\n  next: end the transaction with COMMIT"),
        ("\\if :client_id = 0\n\\startpipeline\n\\endif\nselect 1;\n", "ended inside a pipeline"),
        ("\\if :client_id = 1\n\\startpipeline\n\\endif\nselect 1;\n\\endpipeline\n", "line 5: no pipeline is open"),
    ];
    for (script, expected) in cases {
        let mut load = load(&server.spec("cannot", script, json!({"sessions": 2})));
        // Enough that each session gets some of them.
        let error = run(&mut load, &transactions(5_000)).err().expect("fails").to_string();
        assert!(error.contains(expected), "{error}");
    }
    // Checked once the server has noticed the end of these sessions; other tests have sessions idle in a transaction.
    let left = "select count(*) from pg_stat_activity where application_name = 'cannot' and state like 'idle in%'";
    let gone = (0..500).any(|_| {
        thread::sleep(Duration::from_millis(10));
        server.sql(left) == "0"
    });
    assert!(gone);
}

#[test]
fn a_load_can_run_again_after_it_was_stopped() {
    let Some(server) = server() else { return };
    let mut load = load(&server.spec("again", "select 1;", json!({"sessions": 2})));
    let stop = Arc::new(AtomicBool::new(true));
    let block = run_until(&mut load, &millis(1_000), &stop).expect("ends well");
    assert!(block.report.interrupted && block.kind("transaction").is_empty());
    let block = run(&mut load, &transactions(10)).expect("runs");
    assert_eq!(block.report.arms[0].transactions, 10);
}

#[test]
fn no_value_of_a_row_reaches_the_evidence_by_an_error() {
    let Some(server) = server() else { return };
    server.sql(
        "create table vault (id text primary key, n int check (n < 10)); insert into vault values ('hunter2', 1); \
         create function shout() returns void language plpgsql as \
         $$ begin raise unique_violation using message = 'hunter2 is broke', detail = 'hunter2', hint = 'hunter2'; end $$",
    );
    let cases = [
        ("insert into vault select id, n from vault;", "vault_pkey"),
        ("insert into vault select id || '!', n + 99 from vault;", "vault_n_check"),
        ("select id::int from vault;", "22P02"),
        ("select id::timestamp from vault;", "22007"),
        ("select ('{' || id)::int[] from vault;", "22P02"),
        ("select ('{' || id)::jsonb from vault;", "22P02"),
        ("select shout();", "23505"),
        ("select set_config(id, 'x', false) from vault;", "42704"),
    ];
    for (script, kept) in cases {
        for protocol in ["prepared", "simple"] {
            let mut spec = server.spec("vault", script, json!({}));
            spec["protocol"] = protocol.into();
            let block = run(&mut load(&spec), &transactions(1)).expect("runs");
            let shown = format!("{:?}", block.report);
            assert!(!shown.contains("hunter"), "{shown}");
            assert!(shown.contains(kept), "{script}: {shown}");
        }
    }
    let spec = server.spec("vault", "select 1;", json!({"session_sql": ["select id::int from vault"]}));
    let error = load(&spec).connect(0, &Arc::default()).expect_err("fails");
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
}

#[test]
fn an_expected_error_is_an_outcome_and_others_are_failures() {
    let Some(server) = server() else { return };
    server.sql(
        "create function refuse(code text) returns int language plpgsql as \
         $$ begin raise exception 'refused' using errcode = code; end $$",
    );
    for (code, errors) in [("P0001", 0), ("U0001", 0), ("P0002", 3)] {
        let more = json!({"expected_errors": ["U0001", "P0001"]});
        let spec = server.spec("expected", &format!("begin;\nselect refuse('{code}');\ncommit;\n"), more);
        let block = run(&mut load(&spec), &transactions(3)).expect("runs");
        let arm = &block.report.arms[0];
        assert_eq!((arm.transactions, arm.errors), (3, errors), "{code}");
        assert_eq!(arm.first_error.is_some(), errors > 0);
        // The evidence has every error, and no transaction stays open.
        assert_eq!(block.errors("transaction"), [code; 3]);
        assert_eq!(block.kind("rollback").len(), 3);
    }
}
