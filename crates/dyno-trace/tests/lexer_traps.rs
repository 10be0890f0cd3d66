//! Tests the traps of the format, one test for each. Each was met in real files, or made another reader's result wrong.
#![allow(clippy::unwrap_used)]

use crate::lexer_common::{batch_of, only, read, read_in, words};
use dyno_trace::oracle_10046::header::Facts;
use dyno_trace::oracle_10046::lexer::{Lexer, Options};
use dyno_trace::oracle_10046::record::{Batch, NONE, Reason, Record};

const FETCH: &str = "FETCH #7:c=1,e=2,p=0,cr=0,cu=0,mis=0,r=1,dep=0,og=1,plh=5,tim=5793511831311";
const WAIT: &str = "WAIT #7: nam='log file sync' ela= 186 buffer#=1 sync scn=2 p3=0 obj#=-1 tim=5793511831524";

/// Returns a statement with its text, whose head states `len` as the length.
fn statement(len: usize, text: &str, end: &str) -> String {
    format!(
        "=====================\nPARSING IN CURSOR #7 len={len} dep=0 uid=0 oct=3 lid=0 tim=5 \
         hv=1 ad='0' sqlid='aaaaaaaaaaaaa'\n{text}{end}"
    )
}

fn sql(text: &str) -> String {
    let batch = batch_of(text);
    let record = batch.records.iter().find_map(|placed| match placed.record {
        Record::Cursor(cursor) | Record::ParseError(cursor) => Some(cursor),
        _ => None,
    });
    words(&batch, record.unwrap().sql)
}

#[test]
fn cursors_above_2_to_the_63_are_whole() {
    for cursor in [18_446_744_071_422_692_152_u64, 11_529_215_045_668_893_824, u64::MAX, 1, 9] {
        let line = format!("CLOSE #{cursor}:c=0,e=1,dep=0,type=0,tim=5\n");
        let Record::Call(call) = only(line).1 else { panic!() };
        assert_eq!(call.cursor, cursor);
    }
}

#[test]
fn a_number_that_does_not_fit_is_counted_and_the_line_is_not_believed() {
    let reading = read("CLOSE #18446744073709551616:c=0,e=1,dep=0,type=0,tim=5\n");
    assert!(reading.records.is_empty());
    assert_eq!(reading.reasons(), [Reason::TooLarge]);
}

#[test]
fn records_without_their_statement_are_records() {
    assert_eq!(read(format!("{FETCH}\n{WAIT}\n")).records.len(), 2);
}

#[test]
fn two_lines_glued_together_are_both_read() {
    let reading = read(format!("{FETCH}{WAIT}\n{FETCH}\n"));
    assert_eq!(reading.reasons(), [Reason::Glued]);
    let places: Vec<(u64, u64)> = reading.records.iter().map(|r| (r.0, r.1)).collect();
    let second = FETCH.len() as u64;
    assert_eq!(places, [(0, 1), (second, 1), (second + WAIT.len() as u64 + 1, 2)]);
}

#[test]
fn three_lines_glued_and_a_torn_one_among_them() {
    let torn = &WAIT[..40];
    let reading = read(format!("{FETCH}{torn}{FETCH}\n"));
    assert_eq!(reading.records.len(), 2);
    assert_eq!(reading.reasons(), [Reason::Glued, Reason::Glued, Reason::Torn]);
}

#[test]
fn a_wait_glued_inside_another_s_parameters_is_found() {
    let reading = read(format!("{}{WAIT}\n", &WAIT[..60]));
    assert_eq!(reading.records.len(), 1);
    assert_eq!(reading.reasons(), [Reason::Glued, Reason::Torn]);
    let reading = read(format!("{}{WAIT}\n", &WAIT[..22]));
    assert_eq!(reading.records.len(), 1);
}

#[test]
fn a_torn_line_is_counted_with_its_place_and_a_sample() {
    let text = format!("{FETCH}\nSTAT #1 (cr=0 pr=0 pw=0 str=1 time=29 us)'\n{FETCH}\n");
    let reading = read(&text);
    assert_eq!(reading.records.len(), 2);
    let (offset, line, reason, sample) = &reading.unread[0];
    assert_eq!((*offset, *line, *reason), (FETCH.len() as u64 + 1, 2, Reason::Torn));
    assert!(sample.starts_with("STAT #1 (cr=0"));
}

#[test]
fn every_cut_of_every_record_is_survived_and_counted() {
    let lines = [
        FETCH,
        WAIT,
        "CLOSE #7:c=0,e=1,dep=0,type=0,tim=5",
        "STAT #7 id=1 cnt=14 pid=0 pos=1 obj=0 op='FULL (cr=5)'",
        "XCTEND rlbk=0, rd_only=1, tim=5793511831940",
        "ERROR #7:err=54 tim=2421140713066",
        "LOBREAD: type=TEMPORARY LOB,bytes=4096,c=16,e=17,p=1,cr=2,cu=3,tim=779563412",
    ];
    for line in lines {
        // A number cut short is still a number: cuts inside the last one cannot be seen.
        let last = line.rfind(['=', '\'']).unwrap();
        for cut in 14..=last {
            let reading = read(format!("{}\n{FETCH}\n", &line[..cut]));
            let known = reading.records.len() + reading.unread.len();
            assert!(known >= 2, "{}: {reading:?}", &line[..cut]);
            let old = ["XCTEND rlbk=0, rd_only=1", "ERROR #7:err=54"].contains(&&line[..cut]);
            assert!(old || !reading.unread.is_empty(), "{}: {reading:?}", &line[..cut]);
        }
    }
}

#[test]
fn the_end_of_a_file_inside_a_record_is_told() {
    let reading = read(format!("{FETCH}\n{}", &WAIT[..50]));
    assert_eq!(reading.records.len(), 1);
    assert_eq!(reading.reasons(), [Reason::Truncated]);
    let reading = read(statement(100, "select 1", ""));
    assert_eq!(reading.reasons(), [Reason::Truncated]);
    assert_eq!(reading.records.len(), 1, "the head is known, and what there is of the text");
}

#[test]
fn a_last_line_without_its_end_is_whole_if_it_is() {
    let reading = read(FETCH);
    assert_eq!(reading.records.len(), 1);
    assert!(reading.unread.is_empty());
}

#[test]
fn a_file_may_begin_with_a_stamp_or_in_mid_line() {
    let reading = read(format!("93,plh=5,tim=57\n*** 2017-01-18 12:24:14.701\n{FETCH}\n"));
    assert_eq!((reading.records.len(), reading.reasons()), (2, vec![Reason::Torn]));
}

#[test]
fn nuls_of_log_rotation_are_one_stretch_and_what_follows_is_read() {
    let text = [&[0; 5000][..], FETCH.as_bytes(), b"\n"].concat();
    for sizes in [&[usize::MAX][..], &[1000], &[1]] {
        let reading = read_in(&text, sizes, Options::default());
        assert_eq!(reading.records.len(), 1);
        assert_eq!(reading.reasons(), [Reason::Zeros]);
    }
    let torn = [b"FETCH #1:c=", &[0; 100][..], FETCH.as_bytes(), b"\n"].concat();
    let reading = read(torn);
    assert_eq!(reading.records.len(), 1);
    assert_eq!(reading.reasons(), [Reason::Torn, Reason::Zeros]);
}

#[test]
fn waits_of_26ai_are_read() {
    let line =
        "WAIT #140: nam='db file sequential read' ela=1 file#=1 block#=2 blocks=3 obj#=4294967295 tim=7782175080545\n";
    let Record::Wait(wait) = only(line).1 else { panic!() };
    assert_eq!((wait.ela, wait.obj, wait.tim), (1, 4_294_967_295, 7_782_175_080_545));
}

#[test]
fn plans_of_26ai_are_read() {
    let line = "STAT #140 id=1 cnt=1 pid=0 pos=1 obj=0 op='X (cr=1 pr=0 pw=0 str=1 time=120 dr=0 dw=0 us cost=1 size=2 card=3)'\n";
    let (batch, Record::Stat(stat)) = only(line) else { panic!() };
    assert!(words(&batch, stat.op).contains("dr=0 dw=0 us"));
}

#[test]
fn the_process_header_of_26ai_takes_four_lines() {
    let text = "Trace file /u01/x.trc\nUnix process pid:       1949\n             NID:       40\n\
        created:  2026\n             image:  oracle@h\n*** 2026-01-01T00:00:00.000000+00:00\n";
    let batch = batch_of(text);
    let lines = batch.records.iter().filter_map(|placed| match placed.record {
        Record::Header(text) => Some(batch.bytes_of(text)),
        _ => None,
    });
    assert_eq!(Facts::of(lines).image, "oracle@h");
}

#[test]
fn negative_objects_and_parameters_beyond_32_bits_are_kept() {
    let line = "WAIT #1: nam='library cache: mutex X' ela= 7 idn=-5 value=2164663517184 where=5241669798475071594 obj#=-40016363 tim=9\n";
    let (batch, Record::Wait(wait)) = only(line) else { panic!() };
    assert_eq!(wait.obj, -40_016_363);
    let values: Vec<i64> = batch.parameters(&wait).map(|(_, value)| value).collect();
    assert_eq!(values, [-5, 2_164_663_517_184, 5_241_669_798_475_071_594]);
}

#[test]
fn a_parameter_named_like_the_clock_does_not_take_its_place() {
    let line = "WAIT #1: nam='x' ela= 7 tim=1 obj#=2 p3=3 obj#=4 tim=99999999\n";
    let (batch, Record::Wait(wait)) = only(line) else { panic!() };
    assert_eq!((wait.tim, wait.obj), (99_999_999, 4));
    assert_eq!(words(&batch, wait.parameters), "tim=1 obj#=2 p3=3");
}

#[test]
fn the_length_finds_the_end_of_a_text_that_holds_everything() {
    let text = format!("select '\n{FETCH}\n=====================\nEND OF STMT\n*** x\n' from dual");
    let whole = statement(text.len(), &text, "\nEND OF STMT\n");
    let reading = read(&whole);
    assert_eq!((reading.records.len(), reading.unread.len()), (1, 0));
    assert_eq!(sql(&whole), text.as_bytes().escape_ascii().to_string());
}

#[test]
fn a_length_that_counts_a_nul_is_one_too_many() {
    assert_eq!(sql(&statement(9, "select 1", "\nEND OF STMT\n")), "select 1");
}

#[test]
fn a_text_may_end_in_a_line_feed_and_may_be_empty() {
    assert_eq!(sql(&statement(9, "select 1\n", "\nEND OF STMT\n")), "select 1\\n");
    assert_eq!(sql(&statement(0, "", "\nEND OF STMT\n")), "");
}

#[test]
fn a_wrong_length_is_not_believed() {
    for len in [0, 3, 500, 99_999_999_999_999] {
        let text = statement(len, "select 1\nfrom dual", "\nEND OF STMT\n") + FETCH + "\n";
        assert_eq!(sql(&text), "select 1\\nfrom dual", "{len}");
        assert_eq!(read(&text).records.len(), 2, "{len}");
    }
}

#[test]
fn a_text_without_its_end_stops_at_the_next_record() {
    let text = statement(300, "select 1\nfrom du", &format!("\n{FETCH}\n{WAIT}\n"));
    let reading = read(&text);
    assert_eq!(reading.records.len(), 3);
    assert_eq!(reading.reasons(), [Reason::NoEndOfStatement]);
    assert_eq!(sql(&text), "select 1\\nfrom du");
}

#[test]
fn lines_with_cr_lf_are_read_like_others() {
    let lf = format!("{FETCH}\n{WAIT}\nXCTEND rlbk=0, rd_only=1, tim=5\n*** 2017-01-18 12:24:14.701\n");
    let crlf = lf.replace('\n', "\r\n");
    let (lf, crlf) = (read(lf), read(crlf));
    assert_eq!(lf.shown(), crlf.shown());
    assert!(crlf.unread.is_empty());
}

#[test]
fn a_length_in_a_file_with_cr_lf_does_not_count_the_crs() {
    let inner = "select 1\nEND OF STMT\nfrom dual";
    let text = statement(inner.len(), inner, "\nEND OF STMT\n").replace('\n', "\r\n") + FETCH + "\r\n";
    assert_eq!(sql(&text), "select 1\\r\\nEND OF STMT\\r\\nfrom dual");
    assert_eq!(read(&text).records.len(), 2);
    let error = "PARSE ERROR #1:len=17 dep=0 uid=0 oct=3 lid=0 tim=5 err=942\r\nselect 1\r\nfrom x\r\n\r\nERROR #1:err=942 tim=6\r\n";
    assert_eq!(sql(error), "select 1\\r\\nfrom x\\r\\n");
}

#[test]
fn a_parse_error_cut_in_its_head_does_not_take_the_records_behind_it() {
    let reading = read(format!("PARSE ERROR #1:len=67 dep=1 uid=112 oct=3 li\nselect 1\n{WAIT}\n"));
    assert_eq!(reading.records.len(), 2);
    assert_eq!(reading.reasons(), [Reason::Torn]);
}

#[test]
fn bytes_that_are_no_utf_8_stand_in_texts_and_values() {
    let text =
        b"WAIT #1: nam='caf\xe9' ela= 1 p1=1 p2=2 p3=3\n*** MODULE NAME:(\xff\x00\xfe) 2017-01-18 12:24:14.701\n";
    let reading = read(text);
    assert_eq!(reading.records.len(), 2);
    assert!(reading.unread.is_empty());
}

#[test]
fn foreign_lines_never_stop_a_read() {
    let foreign = "kkoqbc: optimizing query block SEL$1 (#0)\n-----\n\u{1}\u{2}\n**** odd\n*** \n= \nWAIT\n\
        PARSE\nLOB\nSTAT\n#\n'\nDEADLOCK DETECTED ( ORA-00060 )\n";
    let reading = read(format!("{FETCH}\n{foreign}{FETCH}\n"));
    assert_eq!(reading.shown().iter().filter(|shown| shown.starts_with("Call")).count(), 2);
    assert!(reading.unread.is_empty());
}

#[test]
fn a_clock_rewritten_in_seconds_is_read() {
    let line = "CLOSE #7:c=0,e=1,dep=0,type=0,tim=1268756.518200\n";
    let Record::Call(call) = only(line).1 else { panic!() };
    assert_eq!(call.tim, 1_268_756_518_200);
}

#[test]
fn calls_of_8i_are_read_as_they_stand() {
    let line = "EXEC #1:c=12,e=15,p=0,cr=3,cu=0,mis=0,r=0,dep=0,og=4,tim=173456789\n";
    let Record::Call(call) = only(line).1 else { panic!() };
    assert_eq!((call.c, call.e, call.tim, call.plh), (12, 15, 173_456_789, NONE));
}

#[test]
fn a_line_longer_than_the_cap_is_skipped_and_memory_stays_flat() {
    let mut lexer = Lexer::new(Options { cap: 4096, ..Options::default() });
    let mut batch = Batch::default();
    let mut largest = 0;
    let mut reasons = Vec::new();
    for _ in 0..2000 {
        batch = lexer.push(&[b'x'; 1000], batch);
        largest = largest.max(batch.bytes.len());
        reasons.extend(batch.unread.iter().map(|unread| unread.reason));
    }
    batch = lexer.push(format!("\n{FETCH}\n").as_bytes(), batch);
    let mut records = batch.records.len();
    batch = lexer.finish(batch);
    records += batch.records.len();
    assert_eq!((records, reasons), (1, vec![Reason::TooLong]));
    assert!(largest < 10_000, "{largest}");
}

#[test]
fn a_text_longer_than_the_cap_is_given_up() {
    let text = statement(50_000, &"select 1 -- \n".repeat(4000), "") + FETCH + "\n";
    let options = Options { cap: 4096, ..Options::default() };
    for sizes in [&[usize::MAX][..], &[777]] {
        let reading = read_in(text.as_bytes(), sizes, options);
        assert_eq!(reading.reasons(), [Reason::TooLong]);
        assert!(reading.shown().last().unwrap().starts_with("Call"));
    }
}

#[test]
fn hostile_heads_do_not_cost_more_than_their_bytes() {
    let head = "PARSING IN CURSOR #1 len=16000000 dep=0 uid=0 oct=3 lid=0 tim=1 hv=1 ad='0'\r\n";
    let start = std::time::Instant::now();
    let reading = read(head.repeat(40_000));
    assert_eq!(reading.records.len(), 40_000);
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn a_torn_fragment_without_its_head_is_told_not_counted_as_other() {
    let reading = read(format!("{FETCH}\ndep=0,og=4,tim=5793511831399\n{WAIT}\n"));
    assert_eq!((reading.records.len(), reading.reasons()), (2, vec![Reason::Torn]));
    let first = read(format!("ial read' ela= 12 file#=4 block#=9 blocks=1 obj#=7 tim=5793511831311\n{FETCH}\n"));
    assert_eq!((first.records.len(), first.reasons()), (1, vec![Reason::Torn]));
}
