"""Other content of logs: every format, every way to log a parameter, truncated entries, and files that are not logs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from log_help import STAMP, Sent, imported, imported_text, log, reasons, sent
from record_help import rows

from command_line import dbdyno, succeeded
from dbdyno.base.errors import SnapshotError, TraceError
from dbdyno.snapshot.plans.prefix_guess import COMMON_PREFIXES

SIMPLE = "LOG:  duration: 0.250 ms  statement: select 1"


def only(run: Path) -> list[Sent]:
    """Return what the only session of a capture sent."""
    [own] = sent(run)
    return own


def notes(done: object) -> str:
    return "\n".join(done.notes)  # type: ignore[attr-defined]


# How statements are logged.


def test_parse_bind_and_execute_are_one_execution_with_all_of_their_time(tmp_path: Path) -> None:
    text = log(
        "LOG:  duration: 1.000 ms  parse <unnamed>: select $1",
        "LOG:  duration: 2.000 ms  bind <unnamed>: select $1",
        "DETAIL:  parameters: $1 = '5'",
        at="2026-11-21 00:59:57.100 UTC",
    ) + log(
        "LOG:  duration: 3.000 ms  execute <unnamed>: select $1",
        "DETAIL:  parameters: $1 = '5'",
        at="2026-11-21 00:59:57.200 UTC",
    )
    done = imported_text(tmp_path, text)
    assert only(tmp_path / "run") == [Sent("select $1", ("5",))]
    assert done.report["executions"] == 1
    [(elapsed_ns,)] = rows(tmp_path / "run", "select elapsed_ns from calls where kind = 'exec'")
    assert 99e6 < elapsed_ns < 103e6


def test_log_statement_with_log_duration_has_a_line_for_each(tmp_path: Path) -> None:
    text = log(
        "LOG:  statement: select 1\n  from t",
        "LOG:  duration: 0.250 ms",
        "LOG:  duration: 0.010 ms",  # parse
        "LOG:  duration: 0.020 ms",  # bind
        "LOG:  execute <unnamed>: select $1",
        "DETAIL:  parameters: $1 = 'x'",
        "LOG:  duration: 0.030 ms",
    )
    done = imported_text(tmp_path, text)
    assert only(tmp_path / "run") == [Sent("select 1\n  from t"), Sent("select $1", ("x",))]
    assert reasons(done) == {}
    assert done.report["untimed"] == 0


def test_statements_without_durations_are_used_and_told(tmp_path: Path) -> None:
    done = imported_text(tmp_path, log("LOG:  statement: select 1", "LOG:  statement: select 2"))
    assert only(tmp_path / "run") == [Sent("select 1"), Sent("select 2")]
    assert "count as zero time: 1" in notes(done)
    assert reasons(done) == {"it was not over when its session or the log ended": 1}


def test_durations_without_statements_are_told(tmp_path: Path) -> None:
    done = imported_text(tmp_path, log(SIMPLE, "LOG:  duration: 0.1 ms", "LOG:  duration: 0.2 ms"))
    assert reasons(done) == {"a duration without its statement (log_duration logs no texts)": 2}
    (tmp_path / "none").mkdir()
    with pytest.raises(TraceError, match="log_min_duration_statement = 0"):
        imported_text(tmp_path / "none", log("LOG:  duration: 0.1 ms"))


def test_plans_of_auto_explain_are_no_executions(tmp_path: Path) -> None:
    plan = "LOG:  duration: 0.100 ms  plan:\nQuery Text: select 1\nResult  (cost=0.00..0.01 rows=1 width=4)"
    done = imported_text(tmp_path, log(plan, SIMPLE))
    assert done.report["executions"] == 1
    assert reasons(done) == {"a plan of auto_explain, whose statement is logged apart": 1}


def test_a_threshold_shows_in_the_shortest_duration(tmp_path: Path) -> None:
    slow = "LOG:  duration: 100.250 ms  statement: select 1"
    assert "the shortest execution took 100 ms" in notes(imported_text(tmp_path, log(*[slow] * 30)))


# Parameters.


def test_parameters_have_quotes_line_ends_and_null(tmp_path: Path) -> None:
    text = log(
        "LOG:  duration: 0.1 ms  execute s1: select $1, $2, $3",
        "DETAIL:  Parameters: $1 = 'it''s\nof two lines, $9 = ''x''', $2 = NULL, $3 = ''",
    )
    done = imported_text(tmp_path, text)
    assert only(tmp_path / "run") == [Sent("select $1, $2, $3", ("it's\nof two lines, $9 = 'x'", None, ""))]
    assert "prepares them again: 1" in notes(done)


def test_parameters_that_may_be_cut_are_left_out_of_a_replay_and_told(tmp_path: Path) -> None:
    text = log(
        "LOG:  duration: 0.1 ms  execute <unnamed>: select $1",
        "DETAIL:  parameters: $1 = 'abc...'",
        "LOG:  duration: 0.1 ms  execute <unnamed>: select $1",
        "DETAIL:  parameters: $1 = 'a value longer than three'",
        "LOG:  duration: 0.1 ms  execute <unnamed>: select $1",
        "DETAIL:  parameters: $1 = 'yes...'",  # whole: a longer one was not cut
    )
    done = imported_text(tmp_path, text)
    assert reasons(done) == {"its parameters may be cut (log_parameter_max_length)": 1}
    whole = rows(tmp_path / "run", "select octet_length(encode(body)) = length from wire where tag = 'B'")
    assert whole == [(False,), (True,), (True,)]
    assert "kept, but not replayed: 1 x" in notes(done)


def test_parameters_that_are_not_logged_are_told(tmp_path: Path) -> None:
    done = imported_text(tmp_path, log("LOG:  duration: 0.1 ms  execute <unnamed>: select $1", SIMPLE))
    assert reasons(done) == {"its parameters are not in the log": 1}


# Prepared statements, cursors, COPY.


def test_a_name_that_gets_another_text_is_closed_and_parsed_again(tmp_path: Path) -> None:
    execute = "LOG:  duration: 0.1 ms  execute s1: select "
    imported_text(tmp_path, log(f"{execute}1", f"{execute}1", f"{execute}2"))
    assert only(tmp_path / "run") == [Sent("select 1"), Sent("select 1"), Sent("select 2")]
    tags = "".join(tag for (tag,) in rows(tmp_path / "run", "select tag from wire where side = 'client'"))
    assert tags == "PBESBESCPBES-"


def test_a_statement_that_is_only_prepared_is_prepared(tmp_path: Path) -> None:
    done = imported_text(tmp_path, log("LOG:  duration: 0.1 ms  parse s1: select $1", SIMPLE))
    assert rows(tmp_path / "run", "select body from wire where tag = 'P'") == [("s1\0select $1\0\0\0",)]
    assert done.report["executions"] == 1


def test_what_an_execute_refers_to_is_prepared_if_the_log_did_not(tmp_path: Path) -> None:
    execute = ("LOG:  duration: 0.1 ms  statement: execute p(1)", "DETAIL:  prepare: prepare p as select $1")
    done = imported_text(tmp_path, log(*execute, *execute))
    assert [one.sql for one in only(tmp_path / "run")] == ["prepare p as select $1", "execute p(1)", "execute p(1)"]
    assert done.report["prepared_before"] == 1


def test_rows_fetched_from_a_portal_are_those_of_its_execution(tmp_path: Path) -> None:
    text = log(
        "LOG:  duration: 0.1 ms  execute S_1/C_1: select a from t",
        "LOG:  duration: 0.1 ms  execute fetch from S_1/C_1: select a from t",
        "LOG:  duration: 0.1 ms  statement: fetch 10 from c",
    )
    done = imported_text(tmp_path, text)
    assert only(tmp_path / "run") == [Sent("select a from t"), Sent("fetch 10 from c")]
    assert reasons(done) == {"rows fetched later from a portal: the execution before takes all rows": 1}


def test_a_copy_from_the_client_is_kept_without_rows_and_told(tmp_path: Path) -> None:
    done = imported_text(tmp_path, log("LOG:  duration: 9 ms  statement: copy t from stdin", SIMPLE))
    assert reasons(done) == {"a COPY from the client: its rows are not in a log": 1}
    assert rows(tmp_path / "run", "select count(*) from wire where tag = 'Q' and length > length(body)") == [(1,)]


def test_a_text_that_names_a_password_is_kept_without_it(tmp_path: Path) -> None:
    imported_text(tmp_path, log("LOG:  duration: 9 ms  statement: alter role a password 'geheim'", SIMPLE))
    assert b"geheim" not in b"".join(file.read_bytes() for file in (tmp_path / "run").rglob("*.parquet"))
    assert rows(tmp_path / "run", "select count(*) from wire where body like '%geheim%'") == [(0,)]


# Failures.


def test_a_failure_has_its_statement_and_its_sqlstate_where_the_log_has_one(tmp_path: Path) -> None:
    failure = ('ERROR:  column "x" does not exist at character 8', "STATEMENT:  select x\n from t")
    done = imported_text(tmp_path, log(*failure, SIMPLE))
    assert only(tmp_path / "run") == [Sent("select x\n from t", state="?????"), Sent("select 1")]
    assert "a replay accepts any: 1" in notes(done)
    (tmp_path / "state").mkdir()
    text = log(*failure).replace("] ", "] 42703 ")
    imported_text(tmp_path / "state", text, prefix="%m [%p] %e ")
    assert only(tmp_path / "state" / "run") == [Sent("select x\n from t", state="42703")]


def test_a_failed_execution_has_the_parameters_of_its_bind_or_of_its_context(tmp_path: Path) -> None:
    text = log(
        "LOG:  duration: 0.1 ms  parse <unnamed>: select 1/$1",
        "LOG:  duration: 0.1 ms  bind <unnamed>: select 1/$1",
        "DETAIL:  parameters: $1 = '0'",
        "ERROR:  division by zero",
        "STATEMENT:  select 1/$1",
        "ERROR:  division by zero",
        "CONTEXT:  unnamed portal with parameters: $1 = '00'",
        "STATEMENT:  select 1/$1",
        "ERROR:  division by zero",
        "STATEMENT:  select 1/$1",
    )
    done = imported_text(tmp_path, text)
    values = [one.parameters for one in only(tmp_path / "run")]
    assert values == [("0",), ("00",), ()]
    assert reasons(done) == {"its parameters are not in the log": 1}
    assert done.report["failed"] == 3


def test_a_failed_transaction_is_failed_until_its_end(tmp_path: Path) -> None:
    statement = "LOG:  duration: 0.1 ms  statement: "
    text = log(
        f"{statement}begin",
        f"{statement}savepoint a",
        "ERROR:  no",
        "STATEMENT:  select x",
        f"{statement}rollback to a",
        "ERROR:  no",
        "STATEMENT:  select x",
        f"{statement}commit",
    )
    imported_text(tmp_path, text)
    assert rows(tmp_path / "run", "select body from wire where tag = 'Z'") == [(one,) for one in "TTETEI"]
    [*_, last] = rows(tmp_path / "run", "select body from wire where tag = 'C' and side = 'server'")
    assert last == ("ROLLBACK\0",)


def test_a_session_within_a_transaction_at_the_begin_is_told(tmp_path: Path) -> None:
    done = imported_text(tmp_path, log(SIMPLE, "LOG:  duration: 0.1 ms  statement: commit"))
    assert "within a transaction when the log began: 1" in notes(done)


# Sessions.


def test_sessions_of_one_process_number_are_told_apart(tmp_path: Path) -> None:
    def at(hour: int, *entries: str) -> str:
        return log(*entries, at=f"2026-11-21 {hour:02}:00:00.000 UTC")

    for number, (text, expected) in enumerate(
        (
            (at(1, SIMPLE) + at(2, SIMPLE), 1),
            (at(1, SIMPLE) + at(4, SIMPLE), 2),  # silence of more than an hour
            (at(1, SIMPLE, "LOG:  disconnection: session time: 0:00:01.000 user=a database=b host=c", SIMPLE), 2),
            (at(1, SIMPLE, "LOG:  connection received: host=[local]", SIMPLE), 2),
            (at(1, SIMPLE, "LOG:  database system is shut down", SIMPLE), 2),
        )
    ):
        (tmp_path / str(number)).mkdir()
        done = imported_text(tmp_path / str(number), text)
        assert (done.report["sessions"], done.report["by_gaps"]) == (expected, True), text
    (tmp_path / "c").mkdir()
    text = log(SIMPLE).replace("[28]", "[28] 6920b3a1.1c") + log(SIMPLE).replace("[28]", "[28] 6920b3a2.1c")
    done = imported_text(tmp_path / "c", text, prefix="%m [%p] %c ")
    assert (done.report["sessions"], done.report["by_gaps"]) == (2, False)


def test_user_and_database_come_from_the_connection_where_the_prefix_has_none(tmp_path: Path) -> None:
    authorized = "LOG:  connection authorized: user=me database=shop application_name=psql"
    done = imported_text(tmp_path, log(authorized, SIMPLE))
    assert done.report["databases"] == {"shop": 1}
    (tmp_path / "one").mkdir()
    with pytest.raises(TraceError, match="no statement of database 'other'"):
        imported_text(tmp_path / "one", log(authorized, SIMPLE), database="other")


@pytest.mark.parametrize("before", [(), ("LOG:  connection authorized: user=me database=shop",)])
def test_a_log_without_the_requested_database_says_to_leave_the_database_out(
    tmp_path: Path, before: tuple[str, ...]
) -> None:
    with pytest.raises(TraceError) as refused:
        imported_text(tmp_path, log(*before, SIMPLE), database="app")
    assert refused.value.next_step == (
        "check the name 'app', or leave out --database to keep the statements of all databases"
    )


# Forms.

PREFIXES = {
    "%m [%p] ": f"{STAMP} [28] ",
    "%m [%p] %q%u@%d ": f"{STAMP} [28] me@app ",
    "%t:%r:%u@%d:[%p]:": "2026-11-21 00:59:57 UTC:10.0.0.1(51234):me@app:[28]:",
    "%m [%p]: [%l-1] db=%d,user=%u ": f"{STAMP} [28]: [3-1] db=app,user=me ",
    "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ": (
        "2026-11-21 00:59:57 UTC [28]: [3-1] user=me,db=app,app=psql,client=10.0.0.1 "
    ),
    "%t-%c-": "2026-11-21 00:59:57 UTC-6920b3a1.1c-",
    "%n [%p] ": "1795222797.437 [28] ",
    "anything": f"node1 pid=28 {STAMP} db=app, ",
}


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_prefix_is_found_from_the_log(tmp_path: Path, prefix: str) -> None:
    before = PREFIXES[prefix]
    text = (
        f"{before}LOG:  duration: 0.1 ms  execute <unnamed>: select\n\t\t$1\n"
        f"{before}DETAIL:  parameters: $1 = 'a\n\tb'\n{before}ERROR:  no\n{before}STATEMENT:  select x\n"
    )
    done = imported_text(tmp_path, text)
    assert only(tmp_path / "run") == [Sent("select\n\t$1", ("a\nb",)), Sent("select x", state="?????")]
    [(pid,)] = rows(tmp_path / "run", "select process from sessions")
    assert pid == "28"
    if "d" in prefix:
        assert done.report["databases"] == {"app": 2}
    assert ("whole seconds" in notes(done)) == ("%t" in prefix)


def test_every_common_prefix_is_tried() -> None:
    assert {one for one in PREFIXES if one != "anything"} <= set(COMMON_PREFIXES)


SYSLOG = """\
Nov 21 00:59:57 db1 postgres[28]: [3-1] {prefix}LOG:  duration: 0.1 ms  execute <unnamed>: select $1,
Nov 21 00:59:57 db1 sshd[11]: Accepted publickey for me
Nov 21 00:59:57 db1 postgres[29]: [7-1] {other}LOG:  duration: 0.1 ms  statement: select 2
Nov 21 00:59:57 db1 postgres[28]: [3-2] #011 a long
Nov 21 00:59:57 db1 postgres[28]: [3-3]  line
Nov 21 00:59:57 db1 postgres[28]: [3-4] {prefix}DETAIL:  parameters: $1 = 'x'
Nov 21 00:59:58 db1 postgres[28]: [4-1] {prefix}LOG:  duration: 0.1 ms  statement: select 3
"""


@pytest.mark.parametrize("prefix", ["", f"{STAMP} [28] ", "[28] ", "me@app "])
def test_pieces_of_syslog_are_put_together(tmp_path: Path, prefix: str) -> None:
    text = SYSLOG.format(prefix=prefix, other=prefix.replace("28", "29"))
    done = imported_text(tmp_path, text)
    expected = [[Sent("select $1,\n a long line", ("x",)), Sent("select 3")], [Sent("select 2")]]
    assert sorted(sent(tmp_path / "run"), key=len, reverse=True) == expected
    assert ("times have no year" in notes(done)) == (STAMP not in prefix)


@pytest.mark.parametrize("key", ["textPayload", "message"])
def test_objects_of_a_log_service_hold_entries_or_lines_of_them(tmp_path: Path, key: str) -> None:
    before = f"{STAMP} [28]: [3-1] db=app,user=me "
    payloads = (
        f"{before}LOG:  duration: 0.1 ms  execute <unnamed>: select $1",
        "\tfrom t",
        f"{before}DETAIL:  parameters: $1 = 'a\n\tb'",
        f"{before}LOG:  duration: 0.1 ms  statement: select 2",
    )
    lines = [json.dumps({"insertId": "x", key: one, "timestamp": "2026-11-21T00:59:57.437Z"}) for one in payloads]
    imported_text(tmp_path, "\n".join(lines) + "\n", "export.json")
    assert only(tmp_path / "run") == [Sent("select $1\nfrom t", ("a\nb",)), Sent("select 2")]


def test_an_export_with_the_newest_first_is_refused_with_the_way_to_turn_it(tmp_path: Path) -> None:
    text = "".join(log(SIMPLE, at=f"2026-11-21 00:{minute:02}:00.000 UTC") for minute in range(9, 0, -1))
    with pytest.raises(TraceError, match="descending order") as caught:
        imported_text(tmp_path, text)
    assert "tac pg.log" in str(caught.value)


# Times.


def test_a_zone_that_is_not_known_is_taken_as_utc_and_told(tmp_path: Path) -> None:
    cet = log(SIMPLE, at="2026-11-21 00:59:57.437 CET")
    done = imported_text(tmp_path, cet)
    assert "times are in CET: read as UTC; --timezone" in notes(done)
    summer = log(SIMPLE, at="2026-10-20 00:59:57.437 CEST")
    (tmp_path / "two").mkdir()
    with pytest.raises(TraceError, match="several zones"):
        imported_text(tmp_path / "two", summer + cet)
    run = tmp_path / "named"
    words = ("--timezone", "Europe/Berlin", "--out", run)
    done_named = succeeded("trace", "import", "--log", tmp_path / "pg.log", *words)
    assert "read as UTC" not in done_named.stderr
    [(started,)] = rows(run, "select (make_timestamp_ns(started_ns))::varchar from calls where kind = 'exec'")
    assert started.startswith("2026-11-20 23:59:57.437")


def test_what_waited_for_a_commit_ended_after_it_was_sent_whichever_line_comes_first(tmp_path: Path) -> None:
    def at(millisecond: int, pid: int, duration_ms: float, sql: str) -> str:
        stamp = f"2026-11-21 00:59:57.{millisecond:03} UTC"
        return log(f"LOG:  duration: {duration_ms:.3f} ms  statement: {sql}", at=stamp, pid=pid)

    begun = at(0, 1, 0.01, "begin") + at(0, 2, 0.01, "begin") + at(1, 1, 0.01, "update t set a = 1")
    waited, commit = at(1, 2, 0.9, "update t set a = 2"), at(2, 1, 0.1, "commit")
    after = at(2, 2, 0.01, "insert into t values (3)")
    for number, lines in enumerate((waited + after + commit, waited + commit + after, commit + waited + after)):
        (tmp_path / str(number)).mkdir()
        imported_text(tmp_path / str(number), begun + lines)
        run = tmp_path / str(number) / "run"
        [(sent_ns,)] = rows(run, "select tim from wire where side = 'client' and body = 'commit' || chr(0)")
        [(ended_ns,)] = rows(
            run,
            "select max(tim) from wire where side = 'server' and tag = 'C' and body = 'UPDATE' || chr(0) and session ="
            " (select session from wire where body = 'update t set a = 2' || chr(0))",
        )
        assert sent_ns < ended_ns, number


# Cuts.


def test_of_a_log_that_is_cut_whole_entries_are_kept_and_the_cut_is_told(tmp_path: Path) -> None:
    columns = (
        '"me","app",28,"1",6920b3a1.1c,{line},"SELECT",2026-11-21 00:00:00 UTC,3/4,0,LOG,00000,{message},,,,,,,,,"",'
    )
    record = f"{STAMP},{columns}" + '"client backend",,0\n'
    csv = "".join(
        record.format(line=line, message=f'"duration: 0.1 ms  statement: select\n {line}"') for line in range(3)
    )
    text = log(SIMPLE) * 3
    packed = gzip.compress(text.encode() * 1000)
    expected = {"csv": csv[: len(csv) - 90], "log": text[:-5], "gz": packed[: len(packed) // 2], "tail": csv[30:]}
    for name, content in expected.items():
        (tmp_path / name).mkdir()
        done = imported_text(tmp_path / name, content, f"pg.{name}")
        if name == "gz":
            assert done.report["executions"] > 10
            assert "cannot be read to its end" in done.refused[0]
            assert done.is_flawed
        elif name == "tail":
            assert done.report["executions"] == 2
            assert sum(reasons(done).values()) >= 1
        else:
            assert done.report["executions"] == 2
            assert reasons(done) == {"the log is cut within the record": 1}
            assert not done.is_flawed


def test_a_record_that_was_cut_in_the_middle_does_not_take_the_next_one_with_it(tmp_path: Path) -> None:
    columns = '"me","app",28,"1",6920b3a1.1c,1,"SELECT",2026-11-21 00:00:00 UTC,3/4,0,LOG,00000,"duration: 0.1 ms'
    whole = f'{STAMP},{columns}  statement: select 1",,,,,,,,,"","client backend",,0\n'
    done = imported_text(tmp_path, whole + f"{STAMP},{columns}  statement: sel\n" + whole, "pg.csv")
    assert done.report["executions"] == 2
    assert reasons(done) == {"the log is cut within the record": 1}


def test_lines_of_jsonlog_that_are_no_objects_are_told(tmp_path: Path) -> None:
    entry = {"timestamp": STAMP, "pid": 28, "session_id": "6920b3a1.1c", "error_severity": "LOG"}
    line = json.dumps(entry | {"message": "duration: 0.1 ms  statement: select 'ü\n'"}, ensure_ascii=False)
    done = imported_text(tmp_path, f"{line}\n{line[:-20]}\n{line}\n{line[:40]}", "pg.json")
    assert only(tmp_path / "run") == [Sent("select 'ü\n'"), Sent("select 'ü\n'")]
    assert reasons(done) == {"its line is no object of jsonlog": 1, "the log is cut within the record": 1}
    assert done.is_flawed


def test_line_ends_of_windows_are_those_of_the_file_or_of_a_statement(tmp_path: Path) -> None:
    text = log("LOG:  duration: 0.1 ms  statement: select 'a\r\nb'", SIMPLE)
    imported_text(tmp_path, text)
    assert only(tmp_path / "run")[0] == Sent("select 'a\r\nb'")
    (tmp_path / "windows").mkdir()
    imported_text(
        tmp_path / "windows", log("LOG:  duration: 0.1 ms  statement: select\n1", SIMPLE).replace("\n", "\r\n")
    )
    assert only(tmp_path / "windows" / "run")[0] == Sent("select\n1")


# What is no log.


def test_a_file_that_is_no_log_is_an_error_and_nothing_is_written(tmp_path: Path) -> None:
    for name, content in {
        "bytes": bytes(range(256)) * 20,
        "prose": b"To whom it may concern.\n" * 30,
        "empty": b"",
    }.items():
        file = tmp_path / name
        file.write_bytes(content)
        done = dbdyno("trace", "import", "--log", file, "--out", tmp_path / "run")
        assert (done.returncode, "no log entry of PostgreSQL or MariaDB" in done.stderr) == (2, True), done.stderr
        assert not (tmp_path / "run").exists()
        assert [one for one in tmp_path.iterdir() if one.name.startswith(".")] == []
    with pytest.raises(SnapshotError):
        imported(tmp_path / "run", tmp_path / "not there")


def test_a_log_without_statements_is_an_error_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no statement that can be used"):
        imported_text(tmp_path, log("LOG:  checkpoint starting: time", "LOG:  checkpoint complete: wrote 3 buffers"))
    assert not (tmp_path / "run").exists()


def test_one_file_that_is_no_log_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "pg.log").write_text(log(SIMPLE))
    (tmp_path / "notes.txt").write_text("nothing\n" * 9)
    done = dbdyno("trace", "import", "--log", tmp_path / "pg.log", tmp_path / "notes.txt", "--out", tmp_path / "run")
    assert done.returncode == 2
    assert "notes.txt is no log of PostgreSQL or MariaDB" in done.stderr
    assert "1 statement of 1 session" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a.trc", "--database", "x"), "--database has no effect with no --log"),
        (("--log", "pg.log", "--think-time", "2s"), "--think-time has no effect with --log"),
        (("--log", "pg.log", "--tim-unit", "1us"), "--tim-unit has no effect with --log"),
        ((), "expected FILES or --log FILE"),
        (("--log", "pg.log", "--line-prefix", "%m "), "has no field for the process"),
        (("--log", "pg.log", "--timezone", "Nowhere/Land"), "is not a time zone"),
    ],
)
def test_options_that_cannot_work_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pg.log").write_text(log(SIMPLE))
    done = dbdyno("trace", "import", *words, "--out", "run")
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
