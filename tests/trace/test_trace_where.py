"""Conditions: the rows that they select, and errors that name the place of a mistake."""

from __future__ import annotations

import pytest

from dbdyno.base.errors import TraceError
from dbdyno.trace.conditions import restrict, to_sql
from dbdyno.trace.source import Traces
from dbdyno.trace.units import length_ns, moment_ns


def counted(traces: Traces, table: str, where: str) -> int:
    text = f"select count(*) as n from {table} t where {to_sql(where, table)}"
    return int(traces.rows(text.replace("all_calls", "calls"))[0]["n"])


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("event = 'log file sync'", 40),
        ("event='log file sync' or event = \"db file sequential read\"", 80),
        ("not event = 'log file sync'", 80),
        ("event ~ LOG", 40),
        ("event ~ 'db file%'", 40),
        ("event ~ 'db file sequential rea?'", 40),
        ("event ~ '*read' or event ~ 'x*'", 40),
        ("event ~ 'read%'", 0),
        ("object != 5 and action != x", 120),
        ("class != commit", 80),
        ("elapsed_us >= 1000", 40),
        ("elapsed_us < 101 and class = 'data read'", 40),
        ("(class = commit or class = network) and module = app", 80),
        ("not depth > 3", 120),
        ("p1 = 1 and object = -1", 120),
        ("service = 'it''s'", 0),
        ("kind = fetch", 40),
        ("session = '0.1'", 120),
        ("file = 'orcl_ora_4000.trc'", 120),
    ],
)
def test_a_condition_chooses_waits(traces: Traces, where: str, count: int):
    assert counted(traces, "waits", where) == count


def test_what_a_table_lacks_is_unknown_there(traces: Traces):
    assert counted(traces, "calls", "event = 'log file sync'") == 0
    assert counted(traces, "calls", "statement = ins") == 40


@pytest.mark.parametrize(
    ("where", "place", "words"),
    [
        ("evnt = 'x'", 0, "is not a name"),
        ("event == ", 9, "value"),
        ("event is 'x'", 6, "one of ="),
        ("elapsed_us > much", 13, "number"),
        ("event = 'x", 8, "quote"),
        ("(event = x", 10, "bracket"),
        ("event = x event = y", 10, "`and` or `or`"),
        ("event =", 7, "missing"),
    ],
)
def test_an_error_shows_the_place(where: str, place: int, words: str):
    with pytest.raises(TraceError) as caught:
        to_sql(where, "waits")
    assert words in str(caught.value)
    lines = str(caught.value).splitlines()
    assert lines[2] == " " * (place + 2) + "^"


def test_a_value_cannot_leave_its_quotes(traces: Traces):
    assert counted(traces, "waits", 'event = "x\' or 1=1 --"') == 0


def test_everything_asked_later_sees_only_what_fits(traces: Traces):
    restrict(traces, where="class = commit", from_ns=0)
    assert traces.rows("select count(*) as n from waits")[0]["n"] == 40


def test_depth_and_moments_narrow_the_calls(traces: Traces):
    first = traces.rows("select min(started_ns) as ns from sessions")[0]["ns"]
    restrict(traces, depth=0, to_ns=first + 10_000_000)
    rows = traces.rows("select max(depth) as depth, max(started_ns) as last from calls")
    assert rows[0]["depth"] == 0
    assert rows[0]["last"] < first + 10_000_000


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1s", 10**9),
        ("500ms", 5 * 10**8),
        ("0.5 ms", 500_000),
        ("2min", 120 * 10**9),
        ("3", 3 * 10**9),
    ],
)
def test_a_length_of_time(text: str, ns: int):
    assert length_ns(text, "--every") == ns


@pytest.mark.parametrize("text", ["", "x", "-1s", "0", "1 fortnight"])
def test_what_is_no_length_of_time(text: str):
    with pytest.raises(TraceError):
        length_ns(text, "--every")


def test_a_moment_without_a_zone_is_utc():
    assert moment_ns("1970-01-01T00:00:01", "--from") == 10**9
    assert moment_ns("1970-01-01T01:00:01.000001+01:00", "--from") == 1_000_001_000
    with pytest.raises(TraceError):
        moment_ns("yesterday", "--from")
