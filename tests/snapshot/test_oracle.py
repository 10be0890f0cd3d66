"""Snapshots of Oracle from recorded rows and a fake driver, because no Oracle instance is available.

The tests cover everything except the server: the scripts' form, the choice of scripts, a missing privilege, epochs, and
the numbers of the report. Only Oracle's documentation confirms that the views have these columns.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest
from oracle_recorded import DSN, Connection, Driver, Snap, instance, state

from command_line import dbdyno as run
from dbdyno.base.errors import SnapshotError
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.events import wait_class
from dbdyno.snapshot.engines.live import frame, open_live
from dbdyno.snapshot.engines.oracle.collector import without_literals
from dbdyno.snapshot.engines.oracle.connection import address
from dbdyno.snapshot.engines.oracle.scripts import LICENSED, script, script_names
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.report import report
from dbdyno.snapshot.store.folder import Store
from dbdyno.snapshot.taking.take import open_collector


def selected(sql: str) -> list[str]:
    """Return the column names of a query in lower case, without anything in parentheses."""
    plain = sql.strip().removeprefix("select")
    while "(" in plain:
        plain = re.sub(r"\([^()]*\)", "", plain)
    items = re.split(r"\s+from\s", plain, maxsplit=1)[0].split(",")
    return [re.findall(r"[\w#]+", item)[-1].lower() for item in items]


@pytest.mark.parametrize("name", script_names())
def test_a_script_names_its_columns_in_the_order_of_its_query(name: str) -> None:
    found = script(name)
    assert found.grants
    assert selected(found.sql) == [column.name for column in found.columns]
    assert found.columns[0].kind == "key"


@pytest.mark.parametrize("name", script_names())
def test_licensed_views_are_in_files_that_say_so(name: str) -> None:
    words = r"active_session_history|dba_hist|dbms_workload|sql_monitor|dbms_sqltune|awr"
    licensed = re.search(words, script(name).sql, re.IGNORECASE) is not None
    assert licensed == name.startswith(LICENSED)


@pytest.mark.parametrize("name", script_names())
def test_a_script_only_reads_and_ends_without_a_semicolon(name: str) -> None:
    sql = script(name).sql.strip()
    assert sql.startswith("select ")
    assert ";" not in sql
    assert not re.search(r"\b(insert|update|delete|merge|alter|create|execute)\b", sql, re.I)


def test_no_licensed_script_is_run_unless_the_connection_string_names_it(driver: Driver, snap: Snap) -> None:
    snap(state())
    assert not [name for name in driver.run if name.startswith(LICENSED)]
    snap(state(60), dsn=f"{DSN}?licensed=active_session_history")
    assert [name for name in driver.run if name.startswith(LICENSED)] == ["licensed_active_session_history"]


def test_a_licensed_view_that_is_not_there_is_refused() -> None:
    with pytest.raises(SnapshotError, match="is not a view that needs a licence"):
        address(f"{DSN}?licensed=dba_hist")


def test_an_interval_gives_exactly_the_growth(store: Store, snap: Snap) -> None:
    first, last = snap(state()), snap(state(100, grown=500))
    with Interval(store, first, last) as interval:
        found = {one["name"]: one for one in report(interval)["sections"]}
    (row,) = found["throughput"]["tables"][0]["rows"]
    assert row["tps"] == 5.0
    assert row["lio_ps"] == 200.0
    assert row["hitrate"] == pytest.approx(1 - 500 / 20_000)
    lines = {line["what"]: line for line in found["profile"]["tables"][0]["rows"]}
    assert lines["DB time (active sessions)"]["total"] == 500 * 3_000_000
    assert lines["redo size"]["per_transaction"] == 512
    assert lines["hard parses"]["total"] is None, "not among the recorded statistics"
    events = {r["event"]: r for r in found["waits"]["tables"][1]["rows"]}
    assert events["log file sync"]["mean"] == 1_500_000
    assert set(events) == {"log file sync", "db file sequential read", "DB CPU"}, "idle is left out"
    assert sum(r["share"] for r in found["waits"]["tables"][0]["rows"]) == pytest.approx(1)
    lengths = found["waits"]["tables"][2]["rows"]
    assert [r["waits"] for r in lengths] == [250, 250]
    top = found["sql"]["tables"][0]["rows"]
    assert [(r["statement"], r["elapsed"], r["executions"]) for r in top] == [("a1", 10**9, 500)]
    (segment,) = found["segments"]["tables"][0]["rows"]
    assert (segment["segment"], segment["logical_reads"]) == ("APP.ORDERS", 20_000)
    assert found["settings"]["notes"] == ["no parameter changed"]


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"started": "2026-11-20 01:00:00"}, "restart"),
        ({"dbid": 8}, "failover"),
    ],
)
def test_another_life_gives_no_number(store: Store, snap: Snap, changed: JsonObject, word: str) -> None:
    first = snap(state())
    last = snap(state(100, grown=500, instance=instance(100, **changed)))
    with Interval(store, first, last) as interval:
        made = report(interval)
        values = interval.query("select value, verdict from sysstat", "sysstat")
    assert made["verdict"]["word"] == word
    assert {(row["value"], row["verdict"]) for row in values} == {(None, word)}


def test_beside_a_statement_that_aged_out_a_new_one_has_at_least_what_it_holds(store: Store, snap: Snap) -> None:
    first = snap(state())
    recorded = state(100, grown=500)
    a1, b2 = recorded["sql"]
    last = snap({**recorded, "sql": [a1, ("c3", *b2[1:])]})
    with Interval(store, first, last) as interval:
        assert interval.verdict("statements").word == "evicted"
        rows = interval.query("select sql_id, verdict, executions from sql", "sql")
    assert {row["sql_id"]: (row["verdict"], row["executions"]) for row in rows} == {
        "a1": ("ok", 500),
        "b2": ("evicted", None),
        "c3": ("evicted", 5),
    }


def test_a_view_without_a_right_fails_alone(driver: Driver, store: Store, snap: Snap) -> None:
    driver.refused = {"segment_statistics": "ORA-00942: table or view does not exist"}
    first, last = snap(state()), snap(state(100, grown=1))
    with Interval(store, first, last) as interval:
        found = {one["name"]: one for one in report(interval)["sections"]}
    (lacks,) = found["segments"]["not_measured"]
    assert "ORA-00942" in lacks["why"]
    assert "v_$segment_statistics" in lacks["next"]
    assert found["throughput"]["tables"]


def test_a_lost_connection_is_an_error_that_says_where(driver: Driver, snap: Snap) -> None:
    driver.refused, driver.healthy = {"sysstat": "DPY-4011: the connection was closed"}, False
    with pytest.raises(SnapshotError, match="closed the connection") as caught:
        snap(state())
    assert "secret" not in str(caught.value)


def test_no_literal_and_no_password_lands_in_the_store(driver: Driver, store: Store, snap: Snap) -> None:
    last = snap(state())
    assert driver.parameters["password"] == "secret"
    assert "secret" not in str(last.manifest)
    import duckdb

    texts = duckdb.sql(f"select sql_id, query from '{last.file('statement_texts')}'").fetchall()
    assert dict(texts)["a1"] == "select /*+ index(o) */ * from orders o where id = ? and n = ?"
    assert "statement_texts" not in snap(state(9), redact=True).views


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("select q'[it's]', N'x', 'it''s' from t1", "select ?, ?, ? from t1"),
        ("select 1.5e3, -7 from t where c2=10", "select ?, -? from t where c2=?"),
        ("select /* Bob's */ a from t -- pw 'x'\nwhere b=:b1", "select  a from t \nwhere b=:b1"),
    ],
)
def test_literals_of_a_statement(text: str, left: str) -> None:
    assert without_literals(text) == left


@pytest.mark.parametrize(
    ("kind", "event", "found"),
    [
        (None, None, "CPU"),
        ("Application", "enq: TX - row lock contention", "lock"),
        ("Commit", "log file sync", "commit"),
        ("System I/O", "log file parallel write", "log write"),
        ("Configuration", "free buffer waits", "free buffer"),
        ("Other", "never heard of", "other"),
    ],
)
def test_wait_classes(kind: str | None, event: str | None, found: str) -> None:
    assert wait_class("oracle", kind, event) == found


def test_sampling_reads_sessions_on_a_connection_of_its_own(driver: Driver, snap: Snap) -> None:
    with open_collector(DSN, Options()) as collector:
        sampler = collector.sampler(0.02)
        sampler.start()
        while sampler.samples < 3:
            pass
        sampler.stop()
        (activity,), looks = sampler.take()
    assert looks >= 3
    assert len(activity.rows) == looks
    assert set(driver.run) == {"session"}


def test_without_the_driver_the_next_step_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "oracledb", None)
    with pytest.raises(SnapshotError, match="python-oracledb") as caught:
        open_collector(DSN, Options())
    assert "dbdyno[oracle]" in str(caught.value.next_step)


def test_the_live_screen_reads_statistics_and_sessions(driver: Driver) -> None:
    with open_live(DSN, Options()) as live:
        sampler = live.sampler(0.02)
        before = live.read()
        sampler.start()
        while sampler.samples < 3:
            pass
        sampler.stop()
        driver.recorded = state(grown=500)
        now = live.read()
        made = frame(live, before, now, sampler.take(), 10)
    assert made["profile"][0]["value"] == pytest.approx(500 / made["seconds"])
    assert [(row["class"], row["aas"]) for row in made["classes"]] == [("commit", 1.0)]
    assert set(driver.run) == {"sysstat", "session"}


def test_check_asks_each_query_for_no_row_and_names_the_grant_that_is_missing(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def execute(connection: Connection, sql: str, parameters: Any = None) -> None:
        asked.append(sql)
        if "v$parameter" in sql:
            raise Driver.Error("ORA-00942: table or view does not exist")

    monkeypatch.setattr(Connection, "execute", execute)
    monkeypatch.setattr(Connection, "description", [], raising=False)
    done = run("snap", "check", "--target", DSN, "--format", "json")
    rows = {row["query"]: row for row in json.loads(done.stdout)}
    assert done.returncode == 1 and rows["parameter"]["answer"].startswith("ORA-00942")
    assert "v_$parameter" in rows["parameter"]["grants"]
    assert {row["answer"] for name, row in rows.items() if name != "parameter"} == {"ok"}
    assert len(asked) == len(rows) and all(sql.endswith(") where rownum < 1") for sql in asked)
    assert not any(LICENSED in name for name in rows), "what needs a licence is not asked unless it is named"
    assert "secret" not in done.stdout + done.stderr


def test_check_of_another_engine_says_where_to_look() -> None:
    done = run("snap", "check", "--target", "postgresql://127.0.0.1/x")
    assert done.returncode == 2 and "doctor" in done.stderr


def test_every_report_says_that_no_instance_was_ever_seen(store: Store, snap: Snap) -> None:
    first, last = snap(state()), snap(state(100, grown=1))
    with Interval(store, first, last) as interval:
        found = {one["name"]: one for one in report(interval)["sections"]}
    assert "never ran them against an instance" in found["provenance"]["notes"][0]


def test_containers_have_segments_of_their_own(store: Store, snap: Snap) -> None:
    rows = state()["segment_statistics"]
    other = (4, *rows[0][1:7], "INDEX", 5, *rows[0][9:])
    first, last = snap(state(segment_statistics=[*rows, other])), snap(state(100, segment_statistics=[*rows, other]))
    with Interval(store, first, last) as interval:
        assert len(interval.query(f"select * from {interval.table('segment_statistics')}")) == 2
