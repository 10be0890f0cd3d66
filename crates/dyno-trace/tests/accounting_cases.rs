//! Tests accounting case by case, for each peculiarity of the format.
#![allow(clippy::unwrap_used)]

use crate::accounting_common::{Rows, call, read, read_chunked, wait};
use dyno_trace::oracle_10046::reader::{Reader, Reading};
use dyno_trace::oracle_10046::record::NONE;

/// 2020-06-13T12:20:03Z [ns since 1970].
const NOON: i64 = 1_592_050_803_000_000_000;

fn own(reader: &Reader<Rows>) -> Vec<i64> {
    reader.sink.calls.iter().map(|row| row.own.elapsed_ns / 1000).collect()
}

#[test]
fn the_parent_is_the_first_later_call_one_level_up_that_contains_the_span() {
    // The CLOSE at depth 0 is the next call one level up, and contains nothing.
    let text =
        call("EXEC", 2, 0, 10, 1, 110) + "CLOSE #3:c=0,e=1,dep=0,type=0,tim=115\n" + &call("EXEC", 1, 0, 50, 0, 130);
    let reader = read(&text);
    assert_eq!(reader.sink.parents[&0], 2);
    assert_eq!(own(&reader), [10, 1, 40]);
}

#[test]
fn a_grandchild_is_not_subtracted_twice() {
    let text = call("FETCH", 3, 0, 10, 2, 110) + &call("EXEC", 2, 0, 30, 1, 120) + &call("EXEC", 1, 0, 100, 0, 180);
    assert_eq!(own(&read(&text)), [10, 20, 70]);
}

#[test]
fn an_orphan_counts_as_the_sessions_own_time() {
    let text = call("EXEC", 2, 0, 10, 1, 110) + &call("EXEC", 1, 0, 5, 0, 130);
    let reader = read(&text);
    let account = reader.account();
    assert_eq!((account.orphans(), account.calls_ns, account.elapsed_ns), (1, 15_000, 30_000));
    assert_eq!(account.unexplained_ns(), 15_000);
}

#[test]
fn a_wait_belongs_to_the_innermost_call_that_contains_it() {
    let text = wait(2, "latch free", 4, 108)
        + &call("EXEC", 2, 0, 10, 1, 110)
        + &wait(1, "latch free", 6, 120)
        + &call("EXEC", 1, 0, 50, 0, 140)
        + &wait(1, "SQL*Net message from client", 9, 150);
    let rows = read(&text).sink;
    assert_eq!((rows.owners[&0], rows.owners[&1], rows.owners.get(&2)), (0, 1, None));
}

#[test]
fn a_lob_call_owns_the_wait_of_no_cursor_inside_its_span() {
    let text = wait(0, "direct path read", 4, 105)
        + "LOBREAD: type=PERSISTENT LOB,bytes=8,c=1,e=10,p=1,cr=0,cu=0,tim=110\n"
        + &wait(0, "SQL*Net message to client", 1, 112);
    let reader = read(&text);
    assert_eq!(reader.sink.owners.len(), 1);
    assert_eq!(reader.lob_calls.name(u32::from(reader.sink.calls[0].kind) - 8), b"LOBREAD");
    assert_eq!(reader.sink.calls[0].own_wait_ns, 4_000);
}

#[test]
fn cpu_beyond_elapsed_leaves_a_negative_rest_as_it_is() {
    let reader = read(&call("EXEC", 1, 30, 20, 0, 100));
    assert_eq!(reader.sink.calls[0].unaccounted_ns(), -10_000);
    assert_eq!(reader.account().unaccounted_ns(), -10_000);
}

#[test]
fn time_that_goes_back_by_more_than_a_second_begins_a_segment() {
    let text = call("EXEC", 1, 0, 10, 0, 9_000_010)
        + &call("EXEC", 2, 0, 10, 1, 9_000_500)
        + &call("EXEC", 1, 0, 10, 0, 7_000_010)
        + &call("EXEC", 1, 0, 10, 0, 7_000_030);
    let reader = read(&text);
    assert_eq!((reader.account().segments, reader.account().elapsed_ns), (2, 530_000));
    assert_eq!(reader.account().orphans(), 1, "no parent from another segment");
}

#[test]
fn a_parse_that_is_a_few_microseconds_back_begins_none() {
    let text = call("EXEC", 1, 0, 10, 0, 9_000_010) + &call("PARSE", 1, 0, 3, 0, 9_000_005);
    assert_eq!(read(&text).account().segments, 1);
}

#[test]
fn plain_stamps_set_the_clock_for_the_record_behind_them() {
    let text = "*** 2020-06-13T12:20:03.000000+00:00 (PDB(3))\n".to_owned()
        + &call("EXEC", 1, 0, 10, 0, 5_000_010)
        + &call("EXEC", 1, 0, 10, 0, 5_500_010)
        + "*** 2020-06-13T12:20:04.000250+00:00 (PDB(3))\n"
        + &call("EXEC", 1, 0, 10, 0, 6_000_010);
    let reader = read(&text);
    let starts: Vec<i64> = reader.sink.calls.iter().map(|row| row.started_ns - NOON).collect();
    assert_eq!(starts, [-10_000, 499_990_000, 1_000_240_000]);
    assert_eq!(reader.sink.residuals, [NONE, 250_000]);
    assert_eq!(reader.sessions[0].clock.residual_max_ns, 250_000);
    assert_eq!(reader.sink.contexts[0].container, "PDB(3)");
}

#[test]
fn rows_before_the_first_stamp_get_their_time_from_it() {
    let text = call("EXEC", 1, 0, 0, 0, 4_000_000)
        + "*** 2020-06-13T12:20:03.000000+00:00\n"
        + &call("EXEC", 1, 0, 0, 0, 5_000_000);
    let rows = read(&text).sink;
    assert_eq!(rows.calls[0].started_ns, NOON - 1_000_000_000);
    assert_eq!(rows.calls[1].started_ns, NOON);
}

#[test]
fn without_a_stamp_the_traces_clock_is_taken_for_the_time() {
    let rows = read(&call("EXEC", 1, 0, 5, 0, 1_371_608_209_311_673)).sink;
    assert_eq!(rows.calls[0].started_ns, 1_371_608_209_311_668_000);
}

#[test]
fn blocks_of_trcsess_are_sessions_of_their_own() {
    let text = "*** [ Unix process pid: 10 ]\n".to_owned()
        + &wait(1, "latch free", 5, 105)
        + "*** [ Unix process pid: 11 ]\n"
        + &call("EXEC", 1, 0, 50, 0, 110)
        + "*** [ Unix process pid: 10 ]\n"
        + &call("EXEC", 1, 0, 20, 0, 115);
    let reader = read(&text);
    let names: Vec<&str> = reader.sessions.iter().map(|s| s.process.as_str()).collect();
    assert_eq!(names, ["10", "11"]);
    assert_eq!(reader.sink.owners[&0], 1, "not the other session's call, though it contains it");
    let sessions: Vec<u32> = reader.sink.calls.iter().map(|row| row.session).collect();
    assert_eq!(sessions, [1, 0]);
}

#[test]
fn a_session_id_names_the_session_or_goes_to_another() {
    let stamp = |id: &str| format!("*** SESSION ID:({id}) 2020-06-13T12:20:03.000000+00:00\n");
    let text = call("EXEC", 1, 0, 1, 0, 100)
        + &stamp("7.1")
        + &call("EXEC", 1, 0, 1, 0, 200)
        + &stamp("8.1")
        + &call("EXEC", 1, 0, 1, 0, 300)
        + &stamp("7.1")
        + &call("EXEC", 1, 0, 1, 0, 400);
    let reader = read(&text);
    let names: Vec<&str> = reader.sessions.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["7.1", "8.1"]);
    let sessions: Vec<u32> = reader.sink.calls.iter().map(|row| row.session).collect();
    assert_eq!(sessions, [0, 0, 1, 0]);
}

#[test]
fn waits_without_tim_belong_to_the_next_call_of_their_cursor() {
    let old = |cursor: u64, event: &str, ela: i64| format!("WAIT #{cursor}: nam='{event}' ela= {ela} p1=1 p2=2 p3=3\n");
    let text = old(1, "db file sequential read", 7)
        + &old(2, "latch free", 3)
        + &old(1, "SQL*Net message from client", 900)
        + "FETCH #1:c=0,e=20,p=0,cr=0,cu=0,mis=0,r=0,dep=0,og=4,tim=1000\n";
    let reader = read(&text);
    assert_eq!(reader.sink.owners.len(), 1);
    assert_eq!(reader.sink.calls[0].own_wait_ns, 7_000);
    assert_eq!(reader.account().between_ns(), 903_000);
    assert_eq!(reader.sink.waits[0].tim, NONE);
}

#[test]
fn oracle_8i_counts_centiseconds_as_its_header_or_the_caller_says() {
    let line = call("EXEC", 1, 2, 5, 0, 1000);
    let header = "Oracle8i Enterprise Edition Release 8.1.7.0.0 - Production\n\n";
    let by_header = read(&format!("/u01/x_ora_1.trc\n{header}{line}"));
    let asked = Reading { unit_ns: Some(10_000_000), ..Reading::default() };
    let by_caller = read_chunked(&line, asked, 1 << 16);
    for reader in [by_header, by_caller] {
        assert_eq!(reader.sink.calls[0].elapsed_ns, 50_000_000);
        assert_eq!(reader.sink.calls[0].cpu_ns, 20_000_000);
    }
}

#[test]
fn a_cursors_statement_outlives_its_close_until_the_next_text() {
    let cursor = |id: &str, tim: i64| {
        format!(
            "=====================\nPARSING IN CURSOR #5 len=8 dep=0 uid=3 oct=3 lid=3 tim={tim} \
             hv=1 ad='a' sqlid='{id}'\nselect 1\nEND OF STMT\n"
        )
    };
    let text = cursor("aaaaaaaaaaaaa", 90)
        + &call("EXEC", 5, 0, 1, 0, 100)
        + "CLOSE #5:c=0,e=1,dep=0,type=3,tim=102\n"
        + &call("EXEC", 5, 0, 1, 0, 110)
        + &cursor("bbbbbbbbbbbbb", 115)
        + &call("EXEC", 5, 0, 1, 0, 120)
        + &call("EXEC", 6, 0, 1, 0, 130);
    let reader = read(&text);
    let statements: Vec<u32> = reader.sink.calls.iter().map(|row| row.statement).collect();
    assert_eq!(statements, [0, 0, 0, 1, 2]);
    assert_eq!((reader.sink.calls[0].user_id, reader.sink.calls[4].user_id), (3, NONE));
}

#[test]
fn an_error_names_the_call_before_it() {
    let text = call("EXEC", 5, 0, 1, 0, 100) + "ERROR #5:err=54 tim=101\nERROR #6:err=1 tim=102\n";
    assert_eq!(read(&text).sink.errors, [(54, Some(0)), (1, None)]);
}

#[test]
fn only_long_messages_from_the_client_are_think_time() {
    let text = wait(1, "SQL*Net message from client", 999_999, 2_000_000)
        + &wait(1, "SQL*Net message from client", 1_000_000, 4_000_000)
        + &wait(1, "db file sequential read", 5_000_000, 9_000_000);
    let think: Vec<bool> = read(&text).sink.waits.iter().map(|row| row.think).collect();
    assert_eq!(think, [false, true, false]);
}

#[test]
fn waits_without_any_time_are_noticed() {
    let reader = read("WAIT #1: nam='x' elapsed= 5 tim=7\n");
    assert!(reader.tally.lost_all_waits());
    assert!(!read(&wait(1, "x", 0, 7)).tally.lost_all_waits());
}
