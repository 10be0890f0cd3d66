"""Logs without a server: prefixes, the three formats, damaged and foreign bytes, values, identities, plan flips."""

from __future__ import annotations

import gzip
import io
import json
import re
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from command_line import dbdyno, succeeded
from dbdyno.base.errors import SnapshotError
from dbdyno.snapshot.plans.entries import BadTimeError, Clock
from dbdyno.snapshot.plans.executions import GatheredExecutions
from dbdyno.snapshot.plans.explain import ExplainedPlan, TextPlans, UnreadPlanError, read_json
from dbdyno.snapshot.plans.flips import PlanSpan, boundaries, create_log_seen, flips
from dbdyno.snapshot.plans.formats import form_of
from dbdyno.snapshot.plans.markup import read_xml, read_yaml
from dbdyno.snapshot.plans.prefix import Prefix
from dbdyno.snapshot.plans.reader import LogFile, read
from dbdyno.snapshot.plans.source import log_of_stream, open_log
from dbdyno.snapshot.plans.syslog import NO_YEAR
from dbdyno.snapshot.plans.tree import Node, describe_change, identity, sketch
from dbdyno.snapshot.plans.values import mask_condition, mask_statement
from fresh_dice import fresh_dice

PLAN = """Query Text: select sum(amount) from orders where cust = 77
Aggregate  (cost=8.49..8.50 rows=1 width=8) (actual time=0.045..0.046 rows=1 loops=1)
  Buffers: shared hit=1 read=2
  ->  Index Scan using orders_cust on orders  (cost=0.29..8.46 rows=10 width=4) (actual time=0.03..0.03 rows=40 loops=1)
        Index Cond: (cust = 77)
        Buffers: shared hit=1 read=2"""
SCAN = """Query Text: select sum(amount) from orders where cust = 77
Aggregate  (cost=359.02..359.03 rows=1 width=8)
  ->  Seq Scan on orders  (cost=0.00..359.00 rows=10 width=4)
        Filter: (cust = 77)"""
PREFIX = "%m [%p] %u@%d %Q "
START = "2026-11-21 00:59:57.437 UTC"


def text_line(message: str, prefix: str = f"{START} [28] me@app 42 ", severity: str = "LOG") -> str:
    return f"{prefix}{severity}:  " + message.replace("\n", "\n\t") + "\n"


def csv_line(message: str, stamp: str = START, queryid: int = 42, context: str = "") -> str:
    quoted = message.replace('"', '""')
    head = f'{stamp},"me","app",28,"[local]",6b038d92.6dd6,1,"SELECT",{stamp},2/0,0,LOG,00000,'
    return f'{head}"{quoted}",,,,,"{context}",,,,"","client backend",,{queryid}\n'


def json_line(message: str, **more: object) -> str:
    return json.dumps({"timestamp": START, "dbname": "app", "message": message, "query_id": 42, **more}) + "\n"


def logged(content: str | bytes, **more: Any) -> tuple[list[dict[str, Any]], LogFile]:
    """Return the executions in a log, and the parts that were not read."""
    raw = content.encode() if isinstance(content, str) else content
    with GatheredExecutions() as gathered:
        [file] = read([log_of_stream("a.log", io.BytesIO(raw))], gathered, more.pop("clock", Clock()), **more)
        cursor = gathered.connection.execute("from log_executions order by line")
        names = [one[0] for one in cursor.description or []]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()], file


def plan_of(text: str) -> ExplainedPlan:
    return TextPlans().read(text)[1]


@pytest.mark.parametrize("line", [text_line, csv_line, json_line])
def test_an_execution_has_its_time_statement_plan_duration_rows_and_buffers(line: Any) -> None:
    [row], file = logged(line(f"duration: 5.431 ms  plan:\n{PLAN}"), prefix=PREFIX)
    assert (row["at_us"], row["queryid"], row["duration_us"], row["datname"]) == (1795222797437000, 42, 5431, "app")
    assert (row["rows_planned"], row["rows"], row["misestimate"], row["hits"], row["reads"]) == (1, 1, 4.0, 1, 2)
    assert (row["line"], row["source"], row["nested"]) == (1, "plan", False)
    assert (file.executions, file.plans, file.unread.sentences()) == (1, 1, [])


@pytest.mark.parametrize(
    ("prefix", "before"),
    [
        ("%m [%p] ", "2026-11-21 00:59:57.437 UTC [28] "),
        (
            "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
            "2026-11-21 00:59:57 UTC [28]: [3-1] user=me,db=app,app=,client= ",
        ),
        ("%n %q%u@%d ", "1795222797.437 me@app "),
        ("%m %q%d %Q ", "2026-11-21 00:59:57.437 UTC "),
        ("%m %5p %e %c 100%% ", "2026-11-21 00:59:57.437 UTC    28 00000 6b038d92.6dd6 100% "),
        ("<%u|%m> ", "<|2026-11-21 00:59:57.437 UTC> "),
    ],
)
def test_a_prefix_is_read_by_its_pattern_and_guessed_alike(prefix: str, before: str) -> None:
    made, guessed = Prefix(prefix).read(before), Prefix(None).read(before)
    assert made is not None and guessed is not None
    assert Clock().read(made.stamp) == Clock().read(guessed.stamp)
    assert Clock().read(made.stamp) // 1_000_000 == 1795222797


def test_a_prefix_without_a_time_is_refused_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="has no field for the time"):
        Prefix("[%p] ")
    (tmp_path / "a.log").write_text(text_line("duration: 1.000 ms  statement: select 1", prefix="[28] "))
    done = dbdyno("snap", "plans", "--log", "a.log", cwd=tmp_path)
    assert "1 entry was not read: its prefix differs from the others, or has no time (a.log:1)" in " ".join(
        done.stdout.split()
    )


@pytest.mark.parametrize(
    ("stamp", "zone", "utc"),
    [
        ("2026-11-21 01:59:57.437 CET", "Europe/Berlin", "2026-11-21 00:59:57.437 UTC"),
        ("2026-10-25 02:30:00.000 CEST", "Europe/Berlin", "2026-10-25 00:30:00.000 UTC"),
        ("2026-10-25 02:30:00.000 CET", "Europe/Berlin", "2026-10-25 01:30:00.000 UTC"),
        ("2026-11-21 06:29:57.437 +0530", None, "2026-11-21 00:59:57.437 UTC"),
        ("2026-11-20 21:59:57.437 -03", None, "2026-11-21 00:59:57.437 UTC"),
    ],
)
def test_times_of_any_zone_are_instants(stamp: str, zone: str | None, utc: str) -> None:
    assert Clock(ZoneInfo(zone) if zone else None).read(stamp) == Clock().read(utc)


def test_a_zone_that_may_mean_several_has_to_be_named(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(text_line("duration: 1.0 ms  statement: select 1", f"{START[:-3]}CST [1] "))
    done = dbdyno("snap", "plans", "--log", "a.log", cwd=tmp_path)
    assert (done.returncode, "--timezone Europe/Berlin" in done.stderr) == (2, True)
    assert dbdyno("snap", "plans", "--log", "a.log", "--timezone", "Asia/Shanghai", cwd=tmp_path).returncode == 0
    assert dbdyno("snap", "plans", "--log", "a.log", "--timezone", "../x", cwd=tmp_path).returncode == 2


@pytest.mark.parametrize("text", ["2026-13-01 00:00:00 UTC", "yesterday", "9999-01-01 00:00:00 UTC", "1.5", ""])
def test_what_is_no_time_is_said_to_be_none(text: str) -> None:
    with pytest.raises(BadTimeError):
        Clock().read(text)


def test_of_a_statement_in_a_function_only_an_identifier_in_the_plan_counts() -> None:
    context = text_line('SQL statement "select 1"\nPL/pgSQL function f() line 3 at RETURN', severity="CONTEXT")
    nested = text_line(f"duration: 1.0 ms  plan:\n{PLAN}") + context
    verbose = text_line(f"duration: 1.0 ms  plan:\n{PLAN}\nQuery Identifier: -7") + context
    rows, _ = logged(nested + verbose + text_line("duration: 2.0 ms  statement: select f()"), prefix=PREFIX)
    assert [(row["queryid"], row["nested"]) for row in rows] == [(None, True), (-7, True), (42, False)]
    [row], _ = logged(csv_line(f"duration: 1.0 ms  plan:\n{PLAN}", context="PL/pgSQL function f() line 3"))
    assert (row["queryid"], row["nested"]) == (None, True)


def test_a_statement_in_a_function_is_told_in_any_language_of_the_server() -> None:
    """A German server's plan inside a function would have stood under the statement around it."""
    for severity, detail, context in (
        ("LOG", "DETAIL", "ZUSAMMENHANG"),
        ("LOG", "DÉTAIL", "CONTEXTE "),
        ("СООБЩЕНИЕ", "ПОДРОБНОСТИ", "КОНТЕКСТ"),
        ("日志", "详细信息", "上下文"),
    ):
        plan = text_line(f"duration: 1.0 ms  plan:\n{PLAN}", severity=severity)
        rows, _ = logged(plan + text_line("x", severity=detail) + text_line("f()", severity=context), prefix=PREFIX)
        assert [(row["queryid"], row["nested"]) for row in rows] == [(None, True)], context


def test_a_prepared_statement_may_have_any_name_and_a_shipper_may_take_a_space() -> None:
    lines = [text_line(f"duration: 1.5 ms{more}: select 1") for more in ("  execute py:0x7f67:", "  execute a:b/c")]
    rows, file = logged("".join(lines) + text_line("duration: 2.5 ms statement: select 1"), prefix=PREFIX)
    assert [row["duration_us"] for row in rows] == [1500, 1500, 2500]
    assert file.unread.counts == {}


def test_parse_and_bind_settings_and_our_own_statements_are_no_executions() -> None:
    messages = ("parse <unnamed>: select 1", "bind <unnamed>: select 1", "statement: set x = 1", "statement: COMMIT")
    lines = [text_line(f"duration: 1.0 ms  {one}") for one in (*messages, "statement: select /* dbdyno */ 1")]
    lines.append(text_line("statement: select 'LOG:  duration: 1.0 ms  statement: select 1'"))
    rows, file = logged("".join(lines) + text_line("duration: 1.0 ms  execute s1/c: select 1"))
    assert [row["source"] for row in rows] == ["statement"]
    assert file.unread.counts == {}


def test_what_cannot_be_read_is_counted_with_its_place_and_the_rest_is_read() -> None:
    good = text_line(f"duration: 1.0 ms  plan:\n{PLAN}")
    xml = text_line("duration: 1.0 ms  plan:\n<explain xmlns='x'></explain>")
    torn = text_line("duration: 1.0 ms  plan:\nQuery Text: select 1")
    rows, file = logged(good + xml + torn + good)
    assert [row["line"] for row in rows] == [1, 12]
    assert file.unread.places == {
        "a plan: the text is not a plan (TypeError)": ["a.log:8"],
        "a plan: no plan follows the text of the statement": ["a.log:10"],
    }


def test_a_csv_record_that_a_crash_cut_off_costs_itself_alone() -> None:
    good = csv_line(f"duration: 1.0 ms  plan:\n{PLAN}")
    rows, file = logged(good[:200] + "\n" + good + good[:150])
    assert len(rows) == 1
    assert file.unread.places == {"its record is cut off": ["a.log:1", "a.log:10"]}


@pytest.mark.parametrize("line", [lambda m, at: csv_line(m, at), lambda m, at: json_line(m, timestamp=at)])
def test_an_entry_whose_time_is_none_costs_itself_alone(line: Any) -> None:
    message = f"duration: 1.0 ms  plan:\n{PLAN}"
    rows, file = logged(line(message, START) + line(message, "yesterday") + line(message, START))
    assert len(rows) == 2
    [(why, places)] = file.unread.places.items()
    assert why == "its time is not valid" and len(places) == 1


def test_a_plan_whose_root_has_no_estimate_is_told() -> None:
    rows, file = logged(
        text_line("duration: 1.0 ms  plan:\nQuery Text: select 1\nResult  (cost=0.00..0.01 rows=? width=4)")
    )
    assert rows == []
    assert list(file.unread.places) == ["a plan: the root of the plan has no estimate"]


def test_packed_logs_are_read_and_a_torn_one_up_to_where_it_is_torn(tmp_path: Path) -> None:
    lines = "".join(text_line(f"duration: {n}.0 ms  statement: select {n}") for n in range(3000))
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(lines.encode())[:-2000])
    with GatheredExecutions() as gathered:
        whole, torn = read([open_log(tmp_path / name) for name in ("a.log.gz", "b.log.gz")], gathered, Clock())
    assert whole.executions == 3000
    assert 0 < torn.executions < 3000
    assert "the file is cut off here" in torn.unread.sentences()[0]
    assert whole.head == torn.head


def test_a_log_of_mixed_encodings_is_read() -> None:
    rows, file = logged(text_line(f"duration: 1.0 ms  plan:\n{PLAN}").replace("orders", "größe").encode("latin-1"))
    assert (len(rows), file.unread.counts) == (1, {})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("select 'a', E'b\\'c', $$d$$, $x$e$x$, 1, .5, 0xFF, 1e-3 from t1", "select ?, … from t1"),
        ("select * from \"T 1\" where a = 'x''y' -- secret", 'select * from "T 1" where a = ?'),
        ("select '\\' as a, 'secret'", "select ?"),
        ("select 'never closed", "select ?"),
        ("select /* a /* b */ secret */ 1", "select"),
        ("select a from t where b like'x\\y' and c = 3", "select a from t where b like? and c = ?"),
        ('select "' + "x" * 200 + '" from t', "select ?"),
    ],
)
def test_values_and_comments_leave_a_text(text: str, shown: str) -> None:
    assert mask_statement(text) == shown


@given(
    st.lists(
        st.sampled_from(["'", '"', "\\", "$", "$a$", "E'", "/*", "*/", "--", "\n", " ", "x=", "4711"]), max_size=25
    )
)
@example(['"', "'", '"', "4711"])
@settings(max_examples=150, deadline=None)
def test_a_number_is_never_left_in_any_text(parts: list[str]) -> None:
    text = "".join(parts)
    outside = re.sub(r'"(?:[^"]|"")*(?:"|$)', "", mask_statement(text))  # what stands in double quotes is a name
    assert "4711" not in outside or "$4711" in text or "a$4711" in text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(cust = 77)", "(orders.cust = $1)"),
        ("(note = 'it''s'::text)", "(note = $2)"),
        ("(id = ANY ('{1,2,3}'::integer[]))", "(id = ANY ('{4}'::integer[]))"),
        ("(at > '2026-01-01 00:00:00+00'::timestamp with time zone)", "(at > $1)"),
        ("(a = '1'::character varying(10))", "(a = $1)"),
    ],
)
def test_a_condition_is_the_same_for_any_value_with_verbose_and_of_a_generic_plan(one: str, other: str) -> None:
    assert mask_condition(one) == mask_condition(other)


def test_the_identity_is_of_the_shape_and_of_nothing_else() -> None:
    first = plan_of(PLAN)
    assert identity(first.plan) == identity(plan_of(PLAN.replace("77", "78").replace("8.4", "9.4")).plan)
    for old, new in (("orders_cust", "orders_other"), ("on orders", "on orders_2024"), ("cust = 77", "cust > 77")):
        assert identity(first.plan) != identity(plan_of(PLAN.replace(old, new)).plan)
    assert (sketch(first.plan), first.misestimate) == ("Index Scan orders_cust → Aggregate", 4.0)
    assert describe_change(first.plan, plan_of(SCAN).plan) == "Index Scan using orders_cust → Seq Scan on orders"


def test_a_change_that_no_node_tells_is_told_by_order_or_conditions() -> None:
    a, b = Node("Seq Scan", "a"), Node("Seq Scan", "b")
    assert describe_change(Node("Nested Loop", children=(a, b)), Node("Nested Loop", children=(b, a))).startswith(
        "another order"
    )
    assert (
        describe_change(a, Node("Seq Scan", "a", conditions=(("Filter", "(x = ?)"),)))
        == "other conditions in Seq Scan a"
    )


def test_a_literal_that_looks_like_a_plan_is_no_part_of_it() -> None:
    evil = "'\n  ->  Seq Scan on evil  (cost=0.00..1.00 rows=1 width=4)\n'::text"
    plan = plan_of(PLAN.replace("(cust = 77)", f"(cust = {evil})"))
    assert sketch(plan.plan) == "Index Scan orders_cust → Aggregate"


def runs(words: str) -> list[PlanSpan]:
    """Return runs of plans from a text: `A30 B5` is thirty executions with plan A, then five with plan B."""
    return [PlanSpan(word[0], at, at, int(word[1:])) for at, word in enumerate(words.split())]


@pytest.mark.parametrize(
    ("words", "places"),
    [
        ("A30 B30", [1]),
        ("A30 B1", [1]),
        ("A2 B2", [1]),
        ("A1 B30", []),
        ("A30 B1 A30", []),
        ("A30 B30 A30", [1, 2]),
        ("A30 B5 A1 B30", [1]),
        ("A9 B9 A9 B9 A9 B9", []),
        ("A30 B25 C25", [1, 2]),
        ("A30 B2 A40 B3", []),
        ("A30", []),
        ("", []),
    ],
)
def test_a_flip_is_a_plan_that_takes_over_and_not_one_of_several_by_turns(words: str, places: list[int]) -> None:
    assert boundaries(runs(words)) == places


def test_a_flip_inside_of_a_whole_second_has_its_medians() -> None:
    """With %t, the prefix that log readers recommend, it said "p50 before 0 ns"."""
    whole = "2026-11-21 00:59:57 UTC [28]: user=me,db=app "
    text = "".join(
        text_line(f"duration: {ms} ms  plan:\n{plan}", prefix=whole)
        for ms, plan in [("2.0", PLAN)] * 25 + [("9.0", SCAN)] * 25 + [("3.0", PLAN)] * 25
    )
    with GatheredExecutions() as gathered:
        read([log_of_stream("a.log", io.BytesIO(text.encode()))], gathered, Clock())
        create_log_seen(gathered.connection)
        found = sorted(flips(gathered.connection), key=lambda one: one.line)
    assert [(one.old_ns, one.new_ns, one.before, one.after) for one in found] == [
        (2e6, 9e6, 25, 25),
        (9e6, 3e6, 25, 25),
    ]


class CountedRuns(list[PlanSpan]):
    """List of runs that counts how often its items are read."""

    looks = 0

    def __getitem__(self, place: Any) -> Any:
        self.looks += len(range(*place.indices(len(self)))) if isinstance(place, slice) else 1
        return super().__getitem__(place)


def test_looking_for_flips_among_plans_by_turns_is_linear() -> None:
    counted = CountedRuns(runs("A1 B9 " * 1000))
    assert boundaries(counted) == []
    assert counted.looks < 40 * len(counted)


@given(st.binary(max_size=400))
@example(b"duration: ")
@settings(max_examples=25, deadline=None)
def test_any_bytes_are_a_log(raw: bytes) -> None:
    logged(raw)


def test_mutations_of_logs_lose_only_what_they_touch() -> None:
    """Bytes changed, cut out, doubled: reading never fails, and never gives more executions than there are marks."""
    dice = fresh_dice()
    message = f"duration: 1.0 ms  plan:\n{PLAN}"
    made = json.dumps(
        {"Query Text": "select 1", "Plan": {"Node Type": "Seq Scan", "Relation Name": "t", "Plan Rows": 5}}
    )
    by_syslog: Any = lambda message: "".join(pieces(text_line(message), 1, 28, stamp=BSD, limit=900))  # noqa: E731
    by_service: Any = lambda message: json.dumps({"textPayload": text_line(message)}) + "\n"  # noqa: E731
    for line in (text_line, csv_line, json_line, by_syslog, by_service):
        whole = (line(message) * 3 + line(f"duration: 2.0 ms  plan:\n{made}") * 2).encode()
        for _ in range(4):
            raw = bytearray(whole)
            for _ in range(dice.randint(1, 6)):
                at, size = dice.randrange(len(raw)), dice.randint(1, 60)
                kind = dice.randrange(3)
                raw[at : at + size] = (b"", raw[at : at + size] * 2, dice.randbytes(size))[kind]
            rows, _ = logged(bytes(raw))
            assert len(rows) <= bytes(raw).count(b"duration: ")


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"Plan": 5}', '{"Plan": {"Node Type": "X", "Plans": [5]}}', "[" * 10_000, '{"Plan": {}}']
)
def test_json_that_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(UnreadPlanError):
        read_json(text)


def pieces(line: str, number: int, pid: int, *, stamp: str, limit: int = 60, escaped: bool = True) -> list[str]:
    """Return a message as the server sends it to syslog: one piece per line; a long piece is cut before a blank."""
    made = []
    for whole in line.rstrip("\n").split("\n"):
        rest = whole
        while rest:
            cut = len(rest) if len(rest) <= limit else max(rest.rfind(" ", 1, limit), 0) or limit
            made.append(rest[:cut])
            rest = rest[cut:]
    shown = [one.replace("\t", "#011") if escaped else one for one in made]
    return [f"{stamp} db1 postgres[{pid}]: [{number}-{at}] {one}\n" for at, one in enumerate(shown, 1)]


BSD, ISO = "Nov 21 00:59:57", "2026-11-21T00:59:57.437123+00:00"


@pytest.mark.parametrize("stamp", [BSD, ISO])
@pytest.mark.parametrize("escaped", [True, False])
def test_syslog_gives_what_the_text_log_gives(stamp: str, escaped: bool) -> None:
    """Two sessions whose pieces take turns, cut lines, a function's statement."""
    nested = text_line("duration: 3.0 ms  plan:\n" + SCAN) + text_line("SQL function f", severity="CONTEXT")
    messages = [text_line("duration: 1.0 ms  plan:\n" + PLAN), nested, text_line("checkpoint starting: time")]
    one = [
        piece for at, line in enumerate(messages) for piece in pieces(line, at + 3, 28, stamp=stamp, escaped=escaped)
    ]
    other = pieces(text_line("duration: 2.0 ms  plan:\n" + SCAN), 7, 29, stamp=stamp, escaped=escaped)
    mixed = [piece for pair in zip(one, other, strict=False) for piece in pair] + one[len(other) :]
    rows, file = logged("".join([*mixed, f"{stamp} db1 cron[5]: another program's\n"]))
    assert (file.form, file.unread.counts) == ("syslog", {})
    whole, _ = logged("".join([*messages, text_line("duration: 2.0 ms  plan:\n" + SCAN)]))
    for row in (*rows, *whole):
        del row["line"]
    assert sorted(rows, key=lambda row: row["duration_us"]) == sorted(whole, key=lambda row: row["duration_us"])


def test_syslogs_own_time_is_taken_where_it_has_a_year_and_told_where_it_has_none() -> None:
    line = text_line("duration: 1.0 ms  plan:\n" + PLAN, prefix="")
    (row,), _ = logged("".join(pieces(line, 1, 28, stamp=ISO)))
    assert row["at_us"] == 1795222797437123
    rows, file = logged("".join(pieces(line, 1, 28, stamp=BSD)))
    assert rows == []
    assert [reason.partition(":")[0] for reason in file.unread.counts] == ["its time has no year"]
    assert file.unread.places[NO_YEAR] == ["a.log:1"]


def test_without_sequence_numbers_a_severity_begins_a_message() -> None:
    """syslog_sequence_numbers = off."""
    lines = [*pieces(text_line("duration: 1.0 ms  plan:\n" + PLAN), 1, 28, stamp=BSD, limit=900)] * 2
    rows, _ = logged("".join(re.sub(r"\[1-\d+\] ", "", line) for line in lines))
    assert [row["duration_us"] for row in rows] == [1000, 1000]


XML = "<explain><Query-Text>select 1 &lt; 2</Query-Text><Plan><Node-Type>Result</Node-Type></Plan></explain>"
YAML = """Query Text: "select \\"a b\\""
Plan:
  Node Type: "Aggregate"
  Plan Rows: 1
  Sort Key:
    - "a"
    - "b"
  Plans:
    - Node Type: "Seq Scan"
      Relation Name: "t"
    - Node Type: "Result"
"""


def test_xml_and_yaml_are_read_as_the_values_that_they_mean() -> None:
    text, plan = read_xml(XML)
    assert (text, plan.plan) == ("select 1 < 2", Node("Result"))
    text, plan = read_yaml(YAML)
    assert text == 'select "a b"'
    assert plan.rows_planned == 1
    children = (Node("Seq Scan", "t"), Node("Result"))
    assert plan.plan == Node("Aggregate", conditions=(("Sort Key", "a, b"),), children=children)


@pytest.mark.parametrize(
    "text",
    [
        *("<explain>", "<explain/>", XML[:-20], "<a>" * 5000, XML.replace("Node-Type", "X")),
        f"<!DOCTYPE x [<!ENTITY a '{'a' * 50}'>]>{XML.replace('Result', '&a;')}",
    ],
)
def test_xml_that_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(UnreadPlanError):
        read_xml(text)


NESTED = "".join(f"{'    ' * at}  - Plans: \n" for at in range(3000))


@pytest.mark.parametrize(
    "text",
    [
        *("", "Plan: ", YAML.replace("Node Type", "X"), YAML.replace('"Result"', '"Res'), YAML + "         Late: 1\n"),
        *(YAML.replace("    - Node", "   x Node"), f'Query Text: "x"\nPlan: \n{NESTED}'),
    ],
)
def test_yaml_that_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(UnreadPlanError):
        read_yaml(text)


def test_the_form_of_a_log_is_found_from_its_first_lines() -> None:
    assert [form_of(line("duration: 1.0 ms").encode()) for line in (text_line, csv_line, json_line)] == [
        "text",
        "csvlog",
        "jsonlog",
    ]


@pytest.mark.parametrize(
    ("key", "by_line"), [("textPayload", False), ("message", False), ("log", True)], ids=["cloud", "watch", "container"]
)
def test_a_log_that_a_service_keeps_as_json_gives_what_the_text_log_gives(key: str, by_line: bool) -> None:
    """A statement's text had the rest of the object in it, and no plan was read."""
    context = text_line("PL/pgSQL function f() line 3", severity="CONTEXT")
    entries = [
        text_line(f"duration: 5.431 ms  plan:\n{PLAN}"),
        text_line(f"duration: 1.0 ms  plan:\n{PLAN}"),
        context,
        text_line("duration: 2.0 ms  statement: select 'a \"b\"'"),
        text_line("checkpoint starting: time"),
    ]
    pieces = "".join(entries).splitlines(keepends=True) if by_line else [one.rstrip("\n") for one in entries]
    objects = "".join(json.dumps({"timestamp": START, key: piece, "x": {"y": 1}}) + "\n" for piece in pieces)
    assert form_of(objects.encode()) == "JSON"
    rows, file = logged(objects + '{"timestamp": 1}\n', prefix=PREFIX)
    expected, _ = logged("".join(entries), prefix=PREFIX)
    keys = ("at_us", "queryid", "duration_us", "nested", "hits", "source")
    assert [[row[key] for key in keys] for row in rows] == [[row[key] for key in keys] for row in expected]
    assert [row["nested"] for row in rows] == [False, True, False]
    assert file.unread.counts == {"its line is no JSON object with one of textPayload, log, message": 1}


def test_since_and_until_keep_what_is_between(tmp_path: Path) -> None:
    lines = [csv_line("duration: 1.0 ms  statement: select 1", f"2026-11-21 00:0{n}:00.000 UTC") for n in range(5)]
    (tmp_path / "a.csv").write_text("".join(lines))
    words = ("--from", "2026-11-21T00:01", "--to", "2026-11-21T01:03+01:00", "--format", "json")
    done = dbdyno("snap", "plans", "--log", "a.csv", *words, cwd=tmp_path)
    (read_of,) = (one for one in json.loads(done.stdout)["sections"] if one["name"] == "logs")
    rows = read_of["tables"][0]["rows"]
    assert [row["executions"] for row in rows] == [3]
    assert dbdyno("snap", "plans", "--log", "a.csv", "--from", "noon", cwd=tmp_path).returncode == 2


def test_two_logs_of_one_time_are_told_and_a_log_without_plans_says_what_to_set(tmp_path: Path) -> None:
    for name in ("a", "b"):
        lines = [f"{name} ", *(f"2026-11-21 00:0{n}:00.000 UTC [1] " for n in (1, 3))]
        (tmp_path / name).write_text(
            "".join(text_line("duration: 1.0 ms  statement: select 1", one) for one in lines[1:])
        )
    done = dbdyno("snap", "plans", "--log", "a", "--log", "b", cwd=tmp_path)
    said = " ".join(done.stdout.split())
    assert "a and b overlap in time" in said
    assert "session_preload_libraries" in said
    assert "nothing is kept: snaps has no snapshot" in said


def test_a_folder_a_pattern_and_several_files_are_read_as_their_logs(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    (folder / "older").mkdir(parents=True)
    for day in (1, 2):
        (folder / f"postgresql-{day}.log").write_text(text_line(f"duration: {day}.000 ms  plan:\n{PLAN}"))
    (folder / "current_logfiles").write_text("stderr log/postgresql-2.log\n")
    (folder / "torn.gz").write_bytes(gzip.compress(b"x" * 99)[:12])
    (tmp_path / "notes.log").write_text("nothing that tells a duration\n")
    store = ("--store", tmp_path / "none", "--format", "json")
    for named in (
        ("--log", folder),
        ("--log", f"{folder}/*.log"),
        ("--log", *sorted(folder.glob("*.log"))),
        (folder, "--log", tmp_path / "notes.log"),
    ):
        done = succeeded("snap", "plans", *named, *store)
        (read_of,) = [one for one in json.loads(done.stdout)["sections"] if one["name"] == "logs"]
        logs = {row["log"]: row["executions"] for row in read_of["tables"][0]["rows"]}
        assert {"postgresql-1.log": 1, "postgresql-2.log": 1}.items() <= logs.items() and "current_logfiles" not in logs
    refused = dbdyno("snap", "plans", "--log", folder / "older", *store)
    assert refused.returncode == 2 and "contains no file" in refused.stderr
