//! Tests how each kind of line is read, version by version.
#![allow(clippy::unwrap_used)]

use crate::lexer_common::{batch_of, only, read, words};
use dyno_trace::oracle_10046::record::{CallKind, NONE, Record, Stamp, StampKind};

fn call(line: &str) -> dyno_trace::oracle_10046::record::Call {
    match only(line).1 {
        Record::Call(call) => call,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_fetch_of_19c_has_all_fields() {
    let fetch = call(
        "FETCH #140641987987624:c=444,e=445,p=1,cr=4,cu=2,mis=0,r=10,dep=0,og=1,plh=2725028981,tim=5793511831311\n",
    );
    assert_eq!((fetch.kind, fetch.cursor), (CallKind::Fetch, 140_641_987_987_624));
    assert_eq!((fetch.c, fetch.e, fetch.p, fetch.cr, fetch.cu), (444, 445, 1, 4, 2));
    assert_eq!((fetch.mis, fetch.r, fetch.dep, fetch.og), (0, 10, 0, 1));
    assert_eq!((fetch.plh, fetch.tim), (2_725_028_981, 5_793_511_831_311));
    assert_eq!((fetch.close_type, fetch.bytes), (255, NONE));
}

#[test]
fn calls_of_9i_have_no_plan_hash() {
    let parse = call("PARSE #1:c=0,e=91,p=0,cr=0,cu=0,mis=1,r=0,dep=0,og=4,tim=1071608209311673\n");
    assert_eq!((parse.kind, parse.cursor, parse.mis), (CallKind::Parse, 1, 1));
    assert_eq!((parse.plh, parse.tim), (NONE, 1_071_608_209_311_673));
}

#[test]
fn fields_are_taken_by_name_in_any_order() {
    let exec = call("EXEC #7:tim=9,dep=2,e=5,c=4,og=1,r=1,mis=0,cu=3,cr=2,p=1,new=77\n");
    assert_eq!((exec.kind, exec.c, exec.e, exec.p), (CallKind::Exec, 4, 5, 1));
    assert_eq!((exec.cr, exec.cu, exec.r, exec.dep, exec.tim), (2, 3, 1, 2, 9));
}

#[test]
fn unmap_and_sort_unmap_are_calls() {
    let fields = "c=1,e=2,p=0,cr=0,cu=0,mis=0,r=0,dep=0,og=4,tim=50";
    assert_eq!(call(&format!("UNMAP #1:{fields}\n")).kind, CallKind::Unmap);
    let sort = call(&format!("SORT UNMAP #18446744071422692152:{fields}\r\n"));
    assert_eq!((sort.kind, sort.cursor), (CallKind::SortUnmap, 18_446_744_071_422_692_152));
}

#[test]
fn close_tells_what_became_of_the_cursor() {
    let close = call("CLOSE #140472196482632:c=0,e=10,dep=1,type=3,tim=664028828663\n");
    assert_eq!((close.kind, close.close_type, close.dep), (CallKind::Close, 3, 1));
    assert_eq!((close.p, close.r, close.mis, close.og), (NONE, NONE, 255, 255));
}

#[test]
fn lob_calls_carry_name_type_and_bytes_and_no_cursor() {
    let line = "LOBREAD: type=TEMPORARY LOB,bytes=4096,c=16,e=17,p=1,cr=2,cu=3,tim=7795634127291\n";
    let (batch, Record::Call(lob)) = only(line) else { panic!("{line}") };
    assert_eq!((lob.kind, lob.cursor, lob.dep), (CallKind::Lob, 0, 0));
    assert_eq!((words(&batch, lob.name).as_str(), lob.bytes), ("LOBREAD", 4096));
    assert_eq!(words(&batch, lob.lob_type), "TEMPORARY LOB");
    assert_eq!((lob.c, lob.e, lob.tim), (16, 17, 7_795_634_127_291));
}

#[test]
fn lob_calls_of_any_name_and_without_bytes() {
    let line = "LOBARRTMPFRE: type=PERSISTENT LOB,c=1,e=2,p=0,cr=0,cu=0,tim=9\n";
    let (batch, Record::Call(lob)) = only(line) else { panic!("{line}") };
    assert_eq!((words(&batch, lob.name).as_str(), lob.bytes), ("LOBARRTMPFRE", NONE));
}

#[test]
fn rpc_exec_is_a_call_and_other_rpc_lines_are_not() {
    let reading = read("RPC CALL:FUNCTION X.Y(Z);\nRPC BIND 0:dty=1\nRPC EXEC:c=10,e=20\n");
    assert!(reading.shown()[2].contains("kind: Rpc"), "{reading:?}");
    assert_eq!(reading.records.len(), 3);
    assert!(reading.unread.is_empty());
    assert_eq!(call("RPC EXEC:c=10,e=20\n").e, 20);
}

#[test]
fn a_wait_of_10g_and_later() {
    let line = "WAIT #140641987987624: nam='db file sequential read' ela= 343 file#=414 block#=2090520 blocks=1 obj#=89440 tim=5793511831255\n";
    let (batch, Record::Wait(wait)) = only(line) else { panic!("{line}") };
    assert_eq!(words(&batch, wait.nam), "db file sequential read");
    assert_eq!((wait.cursor, wait.ela), (140_641_987_987_624, 343));
    assert_eq!((wait.obj, wait.tim), (89_440, 5_793_511_831_255));
    let parameters: Vec<_> = batch.parameters(&wait).map(|(_, value)| value).collect();
    assert_eq!(parameters, [414, 2_090_520, 1]);
    assert_eq!(words(&batch, wait.parameters), "file#=414 block#=2090520 blocks=1");
}

#[test]
fn a_wait_of_9i_has_no_clock() {
    let line = "WAIT #2: nam='SQL*Net message from client' ela= 1160 p1=1650815232 p2=1 p3=0\n";
    let (batch, Record::Wait(wait)) = only(line) else { panic!("{line}") };
    assert_eq!((wait.ela, wait.tim, wait.obj), (1160, NONE, NONE));
    assert_eq!(words(&batch, wait.parameters), "p1=1650815232 p2=1 p3=0");
}

#[test]
fn equal_names_have_equal_hashes_and_others_hardly() {
    let of = |name: &str| {
        let line = format!("WAIT #1: nam='{name}' ela= 1 p1=1 p2=2 p3=3\n");
        let Record::Wait(wait) = only(line).1 else { panic!("{name}") };
        wait.nam_hash
    };
    assert_eq!(of("log file sync"), of("log file sync"));
    let names: Vec<String> = (0..2000).map(|i| format!("event name number {i}")).collect();
    let hashes: std::collections::HashSet<u32> = names.iter().map(|name| of(name)).collect();
    assert_eq!(hashes.len(), names.len());
}

#[test]
fn a_statement_with_its_text() {
    let text = "=====================\n\
        PARSING IN CURSOR #140641987987624 len=33 dep=0 uid=127 oct=3 lid=128 tim=5793511830707 hv=41568804 ad='b3cba2e50' sqlid='atxg62s17nkj4'\n\
        select something from some_table;\nEND OF STMT\n";
    let (batch, Record::Cursor(cursor)) = only(text) else { panic!("{text}") };
    assert_eq!((cursor.len, cursor.dep, cursor.uid, cursor.lid), (33, 0, 127, 128));
    assert_eq!((cursor.oct, cursor.hv, cursor.err), (3, 41_568_804, NONE));
    assert_eq!(words(&batch, cursor.ad), "b3cba2e50");
    assert_eq!(words(&batch, cursor.sqlid), "atxg62s17nkj4");
    assert_eq!(words(&batch, cursor.sql), "select something from some_table;");
}

#[test]
fn a_parse_error_takes_its_text_by_length() {
    let text = "PARSE ERROR #140604232973104:len=66 dep=1 uid=112 oct=3 lid=112 tim=6149052610789 err=10980\n\
        /* SQL Analyze(436,0) */ select username from dba_users order by 1\n";
    let (batch, Record::ParseError(cursor)) = only(text) else { panic!("{text}") };
    assert_eq!((cursor.err, cursor.hv, cursor.dep), (10_980, NONE, 1));
    assert!(words(&batch, cursor.sql).ends_with("order by 1"));
}

#[test]
fn a_parse_error_s_text_may_end_in_line_feeds_and_hold_records() {
    let sql = "select 1\nFETCH #1:c=1\n*** x\n\n\n";
    let head = format!("PARSE ERROR #1:len={} dep=0 uid=0 oct=3 lid=0 tim=5 err=942\n", sql.len());
    let batch = batch_of(format!("{head}{sql}\nERROR #1:err=942 tim=6\n"));
    let Record::ParseError(cursor) = batch.records[0].record else { panic!("{batch:?}") };
    assert_eq!(batch.bytes_of(cursor.sql), sql.as_bytes());
    assert!(matches!(batch.records[1].record, Record::Error(failure) if failure.err == 942));
}

#[test]
fn a_line_of_a_plan() {
    let line = "STAT #140463666059192 id=1 cnt=14 pid=0 pos=1 obj=-1 op='TABLE ACCESS FULL O'BRIEN (cr=5 pr=1 pw=0 str=1 time=439 us cost=4 size=246 card=6)'\n";
    let (batch, Record::Stat(stat)) = only(line) else { panic!("{line}") };
    assert_eq!((stat.id, stat.cnt, stat.pid, stat.pos, stat.obj), (1, 14, 0, 1, -1));
    assert!(words(&batch, stat.op).starts_with("TABLE ACCESS FULL O\\'BRIEN (cr=5"));
    assert!(words(&batch, stat.op).ends_with("card=6)"));
}

#[test]
fn errors_and_ends_of_transactions() {
    let Record::Error(failure) = only("ERROR #1:err=54 tim=2421140713066\n").1 else { panic!() };
    assert_eq!((failure.cursor, failure.err, failure.tim), (1, 54, 2_421_140_713_066));
    let Record::Xct(xct) = only("XCTEND rlbk=1, rd_only=0, tim=600392574302\n").1 else { panic!() };
    assert_eq!((xct.rollback, xct.read_only, xct.tim), (true, false, 600_392_574_302));
    let Record::Xct(old) = only("XCTEND rlbk=0, rd_only=1\n").1 else { panic!() };
    assert_eq!((old.rollback, old.read_only, old.tim), (false, true, NONE));
}

fn stamp(line: &str) -> (Stamp, String, String) {
    let (batch, Record::Stamp(stamp)) = only(line) else { panic!("{line}") };
    (stamp, words(&batch, stamp.value), words(&batch, stamp.container))
}

#[test]
fn stamps_before_and_after_12_2() {
    let (old, _, container) = stamp("*** 2017-01-18 12:24:14.701\n");
    assert_eq!((old.kind, old.wall_ns, old.zone), (StampKind::Clock, 1_484_742_254_701_000_000, NONE));
    assert_eq!((old.digits, container.as_str()), (3, ""));
    let (new, _, container) = stamp("*** 2024-03-26T18:41:01.013083-07:00 (ORCLPDB1(3))\r\n");
    assert_eq!((new.wall_ns, new.zone, new.digits), (1_711_503_661_013_083_000, -420, 6));
    assert_eq!(container, "ORCLPDB1(3)");
    let (bare, _, container) = stamp("*** 2023-05-19T05:28:00.339263 (TESTPDB(11))\n");
    assert_eq!((bare.zone, container.as_str()), (NONE, "TESTPDB(11)"));
}

#[test]
fn stamps_with_a_key() {
    let keys = [
        ("SESSION ID", StampKind::Session),
        ("CLIENT ID", StampKind::Client),
        ("SERVICE NAME", StampKind::Service),
        ("MODULE NAME", StampKind::Module),
        ("ACTION NAME", StampKind::Action),
        ("CLIENT DRIVER", StampKind::Driver),
        ("CONTAINER ID", StampKind::Container),
        ("CLIENT IP", StampKind::ClientIp),
        ("CONNECTION ID", StampKind::Connection),
    ];
    for (key, kind) in keys {
        let (stamp, value, _) = stamp(&format!("*** {key}:(a (b) c) 2020-06-13T12:20:03.212098+01:00\n"));
        assert_eq!((stamp.kind, value.as_str(), stamp.zone), (kind, "a (b) c", 60));
    }
    let (old, value, _) = stamp("*** SESSION ID:(142.6373) 2010-04-29 18:11:44.984\n");
    assert_eq!((old.kind, value.as_str(), old.digits), (StampKind::Session, "142.6373", 3));
    let (empty, value, _) = stamp("*** ACTION NAME:() 2010-04-29 18:11:44.984\n");
    assert_eq!((empty.kind, value.as_str()), (StampKind::Action, ""));
    let (unknown, value, _) = stamp("*** OTHER NAME:(x) 2010-04-29 18:11:44.984\n");
    assert_eq!(unknown.kind, StampKind::Unknown);
    assert!(value.starts_with("*** OTHER NAME"));
}

#[test]
fn pieces_and_trcsess_blocks() {
    let (from, value, _) = stamp("*** TRACE CONTINUED FROM FILE /u01/x_ora_1.trc ***\n");
    assert_eq!((from.kind, value.as_str()), (StampKind::ContinuedFrom, "/u01/x_ora_1.trc"));
    let (to, value, _) = stamp("*** TRACE CONTINUES IN FILE /u01/x_ora_1_Y.trc ***\n");
    assert_eq!((to.kind, value.as_str()), (StampKind::ContinuesIn, "/u01/x_ora_1_Y.trc"));
    let (dump, value, _) = stamp("*** TRACE DUMP CONTINUED FROM FILE c:\\x\\ora1.trc ***\n");
    assert_eq!((dump.kind, value.as_str()), (StampKind::ContinuedFrom, "c:\\\\x\\\\ora1.trc"));
    let (limit, value, _) = stamp("*** DUMP FILE SIZE IS LIMITED TO 5242880 BYTES ***\n");
    assert_eq!((limit.kind, value.as_str()), (StampKind::SizeLimit, "5242880"));
    let (block, value, _) = stamp("*** [ Unix process pid: 9850 ]\n");
    assert_eq!((block.kind, value.as_str()), (StampKind::Process, "9850"));
}

#[test]
fn appname_of_9i_keeps_its_line() {
    let (appname, value, _) = stamp("APPNAME mod='SQL*Plus' mh=3669949024 act='' ah=4029777240\n");
    assert_eq!(appname.kind, StampKind::Appname);
    assert!(value.starts_with("APPNAME mod="));
}

#[test]
fn the_header_ends_with_the_first_record_or_stamp_and_begins_again_in_joined_files() {
    let text = "Trace file /u01/x.trc\nInstance name: x\n\n*** 2017-01-18 12:24:14.701\nsome dump\n\
        XCTEND rlbk=0, rd_only=1, tim=5\nmore dump\nTrace file /u01/y.trc\nInstance name: y\n\
        XCTEND rlbk=0, rd_only=1, tim=9\n";
    let reading = read(text);
    let kinds: Vec<&str> = reading.shown().iter().map(|shown| shown.split([' ', '(']).next().unwrap()).collect();
    assert_eq!(kinds, ["Header", "Header", "Stamp", "Other", "Xct", "Other", "Header", "Header", "Xct"]);
}
