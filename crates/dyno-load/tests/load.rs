//! Tests of the load on a real server: what is sent and what is recorded, in every protocol.

use crate::common::{Block, load, millis, run, server, transactions};
use dyno_evidence::NONE;
use dyno_load::{Length, Slice};
use serde_json::json;
use std::sync::Arc;

#[test]
fn a_closed_loop_keeps_one_row_per_transaction_without_gaps_or_overlaps() {
    let Some(server) = server() else { return };
    let spec = server.spec("closed", "select 1;", json!({"sessions": 3}));
    let block = run(&mut load(&spec), &millis(200)).expect("runs");
    let arm = &block.report.arms[0];
    assert_eq!(block.calls.kind.len() as u64, arm.transactions);
    assert!(arm.transactions > 100 && arm.errors == 0 && !block.report.interrupted);
    assert!(block.names().iter().all(|name| *name == ("transaction", "script")));
    assert!(block.calls.rows.iter().all(|&rows| rows == NONE || rows == 1));
    let mut busy = 0;
    for session in 0..3 {
        let rows: Vec<usize> = (0..block.calls.session.len()).filter(|&r| block.calls.session[r] == session).collect();
        let end = |r: usize| block.calls.started_ns[r] + block.calls.elapsed_ns[r];
        assert!(rows.windows(2).all(|w| end(w[0]) <= block.calls.started_ns[w[1]]));
        let (first, last) = (rows[0], rows[rows.len() - 1]);
        assert!(block.calls.started_ns[first] >= block.report.started_ns);
        assert!(end(last) <= block.report.ended_ns);
        assert!(block.calls.started_ns[last] - block.calls.started_ns[first] < 200_000_000);
        busy += end(last) - block.report.started_ns;
    }
    // Busy time counts from the slice's common start, slightly after the block's.
    let busy_ns = arm.busy_ns as i64;
    assert!(busy_ns <= busy && busy - busy_ns < 3 * 50_000_000, "{busy_ns} {busy}");
    assert!(block.report.cpu_ns > 0);
}

#[test]
fn every_protocol_sends_the_script_and_counts_what_the_server_counts() {
    let Some(server) = server() else { return };
    for protocol in ["prepared", "extended", "simple"] {
        server.sql(&format!("create table hits_{protocol} (v int); create sequence seq_{protocol}"));
        let script = format!(
            "\\set v random(1, 10)\nbegin;\ninsert into hits_{protocol} select :v from generate_series(1, 3);\n\
             select nextval('seq_{protocol}') where 1 = 1;\nend;\n"
        );
        let mut spec = server.spec(protocol, &script, json!({"sessions": 2}));
        spec["protocol"] = protocol.into();
        let block = run(&mut load(&spec), &transactions(25)).expect("runs");
        assert_eq!(block.report.arms[0].transactions, 25, "{:?}", block.report.arms[0]);
        assert_eq!(block.report.arms[0].errors, 0, "{:?}", block.report.arms[0].first_error);
        for (kind, count) in [("transaction", 25), ("begin", 25), ("exec", 50), ("commit", 25)] {
            assert_eq!(block.kind(kind).len(), count, "{protocol} {kind}");
        }
        assert_eq!(server.sql(&format!("select count(*) from hits_{protocol}")), "75");
        assert_eq!(server.sql(&format!("select last_value from seq_{protocol}")), "25");
        let rows = block.values("exec", |c| &c.rows);
        assert_eq!(rows.iter().filter(|&&r| r == 3).count(), 25);
        assert_eq!(rows.iter().filter(|&&r| r == 1).count(), 25);
        assert!(block.values("begin", |c| &c.rows).iter().all(|&r| r == NONE));
        assert!(block.values("exec", |c| &c.intended_ns).iter().all(|&t| t == NONE));
    }
}

#[test]
fn seeded_values_are_those_of_pgbench_session_by_session() {
    let Some(server) = server() else { return };
    server.sql("create table drawn (who text, id serial, client int, v bigint, w float8, h bigint)");
    let script = |who: &str| {
        format!(
            "\\set v random(1, 1000000)\n\\set w random_gaussian(1, 1000, 3.5)\n\\set h hash(:v)\n\
             insert into drawn (who, client, v, w, h) values ('{who}', :client_id, :v, :w, :h);\n"
        )
    };
    let spec = server.spec("seeded", &script("dyno"), json!({"sessions": 2}));
    run(&mut load(&spec), &millis(150)).expect("runs");
    let file = server.file("seeded.sql", &script("pgbench"));
    let file = file.display().to_string();
    let args = ["-n", "-M", "prepared", "-c2", "-t20", "--random-seed=7", "-f", &file, "postgres"];
    server.program("pgbench", &args);
    for client in 0..2 {
        let values = |who: &str| {
            server.sql(&format!(
                "select v, w, h from drawn where who = '{who}' and client = {client} order by id limit 20"
            ))
        };
        let ours = values("dyno");
        assert_eq!(ours.lines().count(), 20);
        assert_eq!(ours, values("pgbench"));
    }
}

#[test]
fn slices_alternate_between_arms_and_both_keep_their_connections() {
    let Some(server) = server() else { return };
    let mut spec = server.spec("left", "select 1;", json!({"sessions": 2}));
    let right = server.spec("right", "select 2;", json!({"sessions": 1}));
    spec["arms"].as_array_mut().expect("a list").push(right["arms"][0].clone());
    let slices: Vec<Slice> = [0, 1, 1, 0, 1, 0]
        .iter()
        .zip(0..)
        .map(|(&arm, slice)| Slice { arm, slice, length: Length::DurationNs(20_000_000) })
        .collect();
    let mut load = load(&spec);
    let block = run(&mut load, &slices).expect("runs");
    let (mut ends, mut starts) = (vec![0; 6], vec![i64::MAX; 6]);
    for row in 0..block.calls.slice.len() {
        let slice = block.calls.slice[row] as usize;
        let started = block.calls.started_ns[row];
        assert_eq!(block.calls.words[block.calls.arm[row] as usize], ["left", "right"][usize::from(slices[slice].arm)]);
        assert_eq!(block.calls.block[row], 3);
        assert!(slices[slice].arm == 0 || block.calls.session[row] == 0);
        starts[slice] = starts[slice].min(started);
        ends[slice] = ends[slice].max(started + block.calls.elapsed_ns[row]);
    }
    assert!((1..6).all(|slice| ends[slice - 1] <= starts[slice]), "{ends:?} {starts:?}");
    let sessions = "select count(*) from pg_stat_activity where application_name in ('left', 'right')";
    assert_eq!(server.sql(sessions), "3");
    assert_eq!(block.report.arms.iter().map(|arm| arm.arm).collect::<Vec<_>>(), [0, 1]);
    load.disconnect(0);
    drop(load);
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(server.sql(sessions), "0");
}

#[test]
fn a_slice_of_a_count_runs_exactly_so_many_over_all_sessions() {
    let Some(server) = server() else { return };
    let spec = server.spec("counted", "select 1;", json!({"sessions": 4}));
    let mut load = load(&spec);
    for count in [1, 2, 97] {
        let block = run(&mut load, &transactions(count)).expect("runs");
        assert_eq!(block.report.arms[0].transactions, count);
        assert_eq!(block.calls.kind.len() as u64, count);
    }
}

#[test]
fn many_sessions_share_threads_and_none_starves() {
    let Some(server) = server() else { return };
    let script = "select :client_id as me \\gset my_\nbegin;\n\\sleep 2 ms\nselect pg_sleep(0.001);\n\
        select 1 / (:my_me = :client_id)::int;\nend;\n";
    let spec = server.spec("many", &script.replace(":my_me", ":my_me::int"), json!({"sessions": 40}));
    let mut load = load(&spec);
    let block = run(&mut load, &millis(300)).expect("runs");
    assert_eq!(block.report.arms[0].first_error, None);
    for session in 0..40 {
        let own = block.calls.session.iter().filter(|&&s| s == session).count();
        assert!(own >= 5, "session {session} has {own} rows");
    }
    assert_eq!(run(&mut load, &transactions(100)).expect("runs").report.arms[0].transactions, 100);
}

#[test]
fn scripts_are_chosen_by_their_weights() {
    let Some(server) = server() else { return };
    let scripts = json!([{"name": "often", "text": "select 1;", "weight": 3},
        {"name": "never", "text": "select 2;", "weight": 0},
        {"name": "seldom", "text": "select 3;", "weight": 1}]);
    let spec = server.spec("weights", "", json!({"scripts": scripts}));
    let block = run(&mut load(&spec), &transactions(2_000)).expect("runs");
    let often = block.names().iter().filter(|name| name.1 == "often").count();
    // 1500 expected, standard deviation 19.
    assert!((1_400..1_600).contains(&often), "{often}");
    assert!(block.names().iter().all(|name| name.1 != "never"));
}

#[test]
fn results_go_into_variables() {
    let Some(server) = server() else { return };
    server.sql("create table got (a int, b text, c int)");
    let script = "select :client_id + 41 as a, 'x y' as b, 5 as unused, null::int as n \\gset p_\n\
        \\if :p_a = 41\n\\set c 1\n\\else\n\\set c 2\n\\endif\n\
        insert into got values (:p_a, :p_b, coalesce(:p_n::int, :c::int));\n";
    for protocol in ["prepared", "extended", "simple"] {
        let script = if protocol == "simple" { script.replace(":p_b", "':p_b'") } else { script.into() };
        let mut spec = server.spec("gset", &script, json!({}));
        spec["protocol"] = protocol.into();
        let block = run(&mut load(&spec), &transactions(3)).expect("runs");
        assert_eq!(block.report.arms[0].first_error, None);
        assert_eq!(server.sql("select a, b, c, count(*) from got group by 1, 2, 3"), "41|x y|1|3");
        server.sql("truncate got");
    }
}

#[test]
fn gset_needs_exactly_one_row_and_aset_does_not() {
    let Some(server) = server() else { return };
    for (query, code) in [("select 1 as a where false", "P0002"), ("select * from (values (1), (2)) t(a)", "P0003")] {
        let spec = server.spec("gset-rows", &format!("{query} \\gset\nselect :a;\n"), json!({}));
        let block = run(&mut load(&spec), &transactions(2)).expect("runs");
        assert_eq!(block.errors("transaction"), [code, code]);
        assert_eq!(block.errors("exec"), [code, code]);
    }
    let mut spec = server.spec(
        "aset",
        "select 1 as a \\; select 7 as b where false \\; select 2 as a, 3 as c \\aset\n\
         \\if :a = 2 and :c = 3\nselect 1;\n\\else\nselect 1 / 0;\n\\endif\n",
        json!({}),
    );
    spec["protocol"] = "simple".into();
    let block = run(&mut load(&spec), &transactions(2)).expect("runs");
    assert_eq!(block.report.arms[0].first_error, None);
}

#[test]
fn a_pipeline_sends_all_then_reads_all() {
    let Some(server) = server() else { return };
    let script = "\\startpipeline\nselect pg_sleep(0.01);\nselect 1;\nselect 1;\n\\syncpipeline\n\
        select generate_series(1, 5);\n\\endpipeline\nselect 2;\n";
    for protocol in ["prepared", "extended"] {
        let mut spec = server.spec("pipe", script, json!({}));
        spec["protocol"] = protocol.into();
        let block = run(&mut load(&spec), &transactions(2)).expect("runs");
        assert_eq!(block.report.arms[0].first_error, None);
        let kinds: Vec<&str> = block.names().iter().map(|name| name.0).collect();
        let once = ["exec", "exec", "exec", "exec", "pipeline", "exec", "transaction"];
        assert_eq!(kinds, [once, once].concat());
        let started: Vec<i64> = block.calls.started_ns[..4].to_vec();
        assert!(started.iter().all(|&s| s == started[0]), "one send for all");
        assert!(block.calls.elapsed_ns[..5].iter().all(|&e| e >= 10_000_000));
        assert!(block.calls.elapsed_ns[..4].is_sorted());
        assert_eq!(block.calls.rows[..4], [1, 1, 1, 5]);
        assert!(block.calls.elapsed_ns[5] < 10_000_000 || protocol == "extended");
    }
}

#[test]
fn a_pipeline_larger_than_any_socket_buffer_does_not_lock_up() {
    let Some(server) = server() else { return };
    let select = "select repeat('x', 2000) from generate_series(1, 100) where :client_id = 0;\n";
    let script = format!("\\startpipeline\n{}\\endpipeline\n", select.repeat(600));
    for host in [json!(server.dir), json!("127.0.0.1")] {
        let mut spec = server.spec("big", &script, json!({}));
        spec["arms"][0]["connection"]["host"] = host;
        let block = run(&mut load(&spec), &transactions(1)).expect("runs");
        assert_eq!(block.kind("exec").len(), 600);
        assert!(block.values("exec", |c| &c.rows).iter().all(|&rows| rows == 100));
    }
}

#[test]
fn an_error_inside_a_pipeline_skips_to_its_sync() {
    let Some(server) = server() else { return };
    let script = "\\startpipeline\nselect 1;\nselect 1 / 0;\nselect 2;\n\\syncpipeline\nselect 3;\n\\endpipeline\n";
    let spec = server.spec("pipe-error", script, json!({}));
    let block = run(&mut load(&spec), &transactions(2)).expect("runs");
    let named = |name: &str| block.names().iter().filter(|n| n.1 == name).count();
    assert_eq!((named("select 1"), named("select 1 / 0"), named("select 2"), named("select 3")), (2, 2, 0, 2));
    assert_eq!(block.errors("transaction"), ["22012", "22012"]);
    assert_eq!(block.errors("pipeline"), ["22012", "22012"]);
}

#[test]
fn redo_is_measured_between_readings_and_goes_to_the_commit() {
    let Some(server) = server() else { return };
    server.sql("create table logged (t text)");
    let script = "begin;\ninsert into logged select repeat('x', 500) from generate_series(1, 20);\n\\redo\ncommit;\n";
    let spec = server.spec("redo", script, json!({}));
    let block = run(&mut load(&spec), &transactions(5)).expect("runs");
    assert_eq!(block.kind("redo position").len(), 5);
    let redo = block.values("commit", |c| &c.redo_bytes);
    let unflushed = block.values("commit", |c| &c.unflushed_bytes);
    assert_eq!(redo[0], NONE);
    assert!(redo[1..].iter().all(|&bytes| (10_000..10_000_000).contains(&bytes)), "{redo:?}");
    assert!(unflushed.iter().all(|&bytes| bytes >= 0), "{unflushed:?}");
    assert!(block.values("exec", |c| &c.redo_bytes).iter().all(|&bytes| bytes == NONE));
}

#[test]
fn sleeping_is_part_of_the_transaction_but_of_no_command() {
    let Some(server) = server() else { return };
    let spec = server.spec("sleep", "select 1;\n\\sleep 5 ms\nselect 2;\n", json!({}));
    let block = run(&mut load(&spec), &transactions(3)).expect("runs");
    assert!(block.values("transaction", |c| &c.elapsed_ns).iter().all(|&e| e >= 5_000_000));
    let exec = block.values("exec", |c| &c.elapsed_ns);
    assert!(exec.iter().filter(|&&e| e < 5_000_000).count() >= 4, "{exec:?}");
}

#[test]
fn session_sql_and_timeout_hold_on_every_new_connection() {
    let Some(server) = server() else { return };
    let more = json!({"session_sql": ["set work_mem = '7MB'"], "statement_timeout_ms": 40});
    let script = "select 1 / (current_setting('work_mem') = '7MB')::int;\nselect pg_sleep(1);\n";
    let block = run(&mut load(&server.spec("setup", script, more)), &transactions(2)).expect("runs");
    assert_eq!(block.errors("exec"), ["", "57014", "", "57014"]);
    let bad = server.spec("bad-setup", "select 1;", json!({"session_sql": ["set no_such = 1"]}));
    let error = load(&bad).connect(0, &Arc::default()).expect_err("is refused").to_string();
    assert!(error.contains("arm bad-setup, session SQL `set no_such = 1`: ERROR"), "{error}");
}

#[test]
fn what_the_wire_brings_along_is_taken_in_stride() {
    let Some(server) = server() else { return };
    let script = "do $$ begin raise notice 'hello'; perform pg_notify('c', 'x'); end $$;\nlisten c;\n\
        set application_name = 'stride';\ncopy (select 1) to stdout;\nselect;\n\
        select repeat('x', 100000) from generate_series(1, 20);\n";
    for protocol in ["prepared", "extended", "simple"] {
        let mut spec = server.spec("stride", script, json!({}));
        spec["protocol"] = protocol.into();
        let block = run(&mut load(&spec), &transactions(3)).expect("runs");
        assert_eq!(block.report.arms[0].first_error, None);
        assert_eq!(block.values("exec", |c| &c.rows)[5], 20);
        let copy_in =
            server.spec("copy-in", "create temp table if not exists t (i int);\ncopy t from stdin;\n", json!({}));
        let mut copy_in = copy_in;
        copy_in["protocol"] = protocol.into();
        let block = run(&mut load(&copy_in), &transactions(2)).expect("runs");
        assert_eq!(block.errors("transaction"), ["57014", "57014"], "{protocol}");
    }
}

#[test]
fn evidence_of_a_long_block_arrives_in_order_of_each_session() {
    let Some(server) = server() else { return };
    let spec = server.spec("long", "select 1;\nselect 2;\n", json!({"sessions": 2}));
    let block = run(&mut load(&spec), &transactions(15_000)).expect("runs");
    assert_eq!(block.calls.kind.len(), 45_000);
    assert_in_order(&block);
}

fn assert_in_order(block: &Block) {
    for session in 0..2 {
        let ends: Vec<i64> = block
            .kind("exec")
            .into_iter()
            .filter(|&row| block.calls.session[row] == session)
            .map(|row| block.calls.started_ns[row])
            .collect();
        assert!(ends.is_sorted() && ends.len() > 1_000);
    }
}
