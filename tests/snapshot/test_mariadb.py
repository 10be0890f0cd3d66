"""Known loads on a MariaDB server give exactly the expected numbers; a restart of the server is recognised."""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dbdyno.base.errors import SnapshotError
from dbdyno.base.json_types import JsonObject
from dbdyno.snapshot.engines.mariadb.connection import address
from dbdyno.snapshot.engines.mariadb.live import open_live
from dbdyno.snapshot.engines.mariadb.sections import CONSUMER
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.report import report
from dbdyno.snapshot.sessions.history import History
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.snapshot.taking.take import open_collector, take, watch
from mariadb_server import MariaServer, missing, running_server
from together import together

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

DIGESTS = "events_statements_summary_by_digest"
TABLES = "table_io_waits_summary_by_table"
INDEXES = "table_io_waits_summary_by_index_usage"


running = pytest.fixture(scope="module")(running_server)


@pytest.fixture
def server(running: MariaServer) -> MariaServer:
    run(running, "drop database if exists test", "create database test")
    run(running, "create table test.t (a int primary key, b int, key (b))")
    return running


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "snaps")


def run(server: MariaServer, *statements: str) -> list[Any]:
    """Execute statements in a new connection; return the rows of the last one."""
    connection = server.connect()
    with connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def snap(server: MariaServer, store: Store, **options: Any) -> Snapshot:
    with open_collector(server.dsn, Options(**options)) as collector:
        return take(collector, store, engine_name="mariadb")


def rows(interval: Interval, view: str, where: str = "true") -> list[dict[str, Any]]:
    return interval.query(f'select * from "{view}" where {where}', view)


def status(interval: Interval, name: str) -> float | None:
    (row,) = rows(interval, "global_status", f"name = '{name}'")
    return row["value"]


LOAD = [f"insert into test.t values ({a}, {a})" for a in range(37)]
LOAD += [f"update test.t set b = -1 where a = {a}" for a in range(11)]
LOAD += [f"delete from test.t where a = {a}" for a in range(5)]
LOAD += [f"select * from test.t where a = {a}" for a in range(20, 29)]
LOAD += ["start transaction", "insert into test.t values (99, 1)", "rollback"] * 3


def test_a_known_load_comes_out_as_exactly_those_numbers(server: MariaServer, store: Store) -> None:
    before = snap(server, store)
    run(server, *LOAD)
    with Interval(store, before, snap(server, store)) as interval:
        (table,) = rows(interval, TABLES, "OBJECT_SCHEMA = 'test'")
        found = [table[f"COUNT_{kind}"] for kind in ("INSERT", "UPDATE", "DELETE")]
        assert found == [40, 11, 5], "three of the inserts were rolled back"
        assert table["COUNT_FETCH"] == 11 + 5 + 9, "each by its primary key, once"
        for name, count in {
            "com_insert": 40,
            "com_update": 11,
            "com_delete": 5,
            "com_rollback": 3,
            "com_begin": 3,
            "handler_rollback": 3,
            "handler_write": 40,
            "com_select": 9,
        }.items():
            assert status(interval, name) == count, name
        said_by_the_driver = (1, 2)  # its SET NAMES, and good-bye, which the server may read after the snapshot
        assert status(interval, "questions") - len(LOAD) in said_by_the_driver
        calls = {row["DIGEST"]: row["COUNT_STAR"] for row in rows(interval, DIGESTS, "life='new'")}
        assert sorted(calls.values(), reverse=True)[:4] == [40, 11, 9, 5]
        (index,) = rows(interval, INDEXES, "INDEX_NAME = 'PRIMARY' and OBJECT_SCHEMA = 'test'")
        assert index["COUNT_READ"] == 25
        (unused,) = rows(interval, INDEXES, "INDEX_NAME = 'b' and OBJECT_SCHEMA = 'test'")
        assert unused["COUNT_READ"] == 0


def test_the_collectors_own_statements_are_not_among_the_digests(server: MariaServer, store: Store) -> None:
    before = snap(server, store)
    with Interval(store, before, snap(server, store)) as interval:
        assert {status(interval, name) for name in ("questions", "com_select", "com_update")} == {0}
        texts = store.last(before.target).file("statement_texts")  # type: ignore[union-attr]
        found = interval.query(f"select query from read_parquet('{texts}')")
        assert not [row for row in found if "innodb_sys_tables" in row["query"].lower()]


def test_texts_hold_no_literals_and_redact_drops_them(server: MariaServer, store: Store) -> None:
    snap(server, store)
    run(server, "select 'a secret' from test.t where b = 4711")
    after = snap(server, store)
    with Interval(store, *store.snapshots_of(None)) as interval:
        texts = interval.query(f"select * from read_parquet('{after.file('statement_texts')}')")
    assert any("`b` = ?" in row["query"] for row in texts)
    assert not any("secret" in row["query"] or "4711" in row["query"] for row in texts)
    assert "statement_texts" not in snap(server, store, redact=True).views


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_restart_condemns_every_counter(server: MariaServer, store: Store, end: str) -> None:
    before = snap(server, store)
    time.sleep(2.5)
    getattr(server, end)()
    server.start()
    run(server, *LOAD[:3])
    with Interval(store, before, snap(server, store)) as interval:
        assert {verdict.word for verdict in interval.verdicts.values()} == {"restart"}
        assert status(interval, "com_insert") is None
        for view in ("global_status", DIGESTS, TABLES, INDEXES):
            assert {row["verdict"] for row in rows(interval, view)} <= {"restart"}, view


def test_another_server_at_the_same_address_is_another_server(server: MariaServer, store: Store) -> None:
    before = snap(server, store)
    after = snap(server, store)
    after.facts["identity"] = "another"
    with Interval(store, before, after) as interval:
        assert interval.verdict("status").word == "failover"


def test_a_table_dropped_and_made_again_is_another_table(server: MariaServer, store: Store) -> None:
    run(server, *LOAD[:2], "select * from test.t where a = 1")
    before = snap(server, store)
    run(server, "drop table test.t", "create table test.t (a int primary key, b int)")
    run(server, *LOAD[:37], *["select * from test.t"] * 10)  # more than before: nothing fell
    with Interval(store, before, snap(server, store)) as interval:
        (row,) = rows(interval, TABLES, "OBJECT_SCHEMA = 'test'")
        assert (row["verdict"], row["COUNT_INSERT"]) == ("reset", None)


def test_a_dropped_table_is_shown_as_gone(server: MariaServer, store: Store) -> None:
    run(server, *LOAD[:2])
    before = snap(server, store)
    run(server, "drop table test.t")
    with Interval(store, before, snap(server, store)) as interval:
        (row,) = rows(interval, TABLES, "OBJECT_SCHEMA = 'test'")
        assert (row["life"], row["verdict"], row["COUNT_INSERT"]) == ("gone", "partial", None)


def test_a_truncate_keeps_the_numbers(server: MariaServer, store: Store) -> None:
    run(server, *LOAD[:37])
    before = snap(server, store)
    run(server, "truncate test.t", *LOAD[:1])
    with Interval(store, before, snap(server, store)) as interval:
        (row,) = rows(interval, TABLES, "OBJECT_SCHEMA = 'test'")
        assert row["TABLE_ID"] != row["TABLE_ID_before"]
        assert (row["verdict"], row["COUNT_INSERT"]) == ("ok", 1)


def test_an_emptied_table_of_digests_is_a_reset_of_the_statements_only(server: MariaServer, store: Store) -> None:
    run(server, *LOAD)
    before = snap(server, store)
    time.sleep(1.1)  # FIRST_SEEN is in whole seconds
    run(server, f"truncate performance_schema.{DIGESTS}", "select * from test.t")
    with Interval(store, before, snap(server, store)) as interval:
        assert {row["verdict"] for row in rows(interval, DIGESTS)} == {"reset"}
        assert status(interval, "com_truncate") == 1


def test_flush_status_leaves_what_accumulates(server: MariaServer, store: Store) -> None:
    before = snap(server, store)
    run(server, *LOAD[:4], "flush status", *LOAD[4:8])
    with Interval(store, before, snap(server, store)) as interval:
        assert status(interval, "com_insert") == 8


def test_a_role_without_rights_gets_what_it_may_read(server: MariaServer, store: Store) -> None:
    run(server, "create or replace user poor@'127.0.0.1' identified by 'a-known-secret'")
    run(server, "create or replace user poor@localhost identified by 'a-known-secret'")
    dsn = f"mariadb://poor:a-known-secret@127.0.0.1:{server.port}/"
    with open_collector(dsn, Options()) as collector:
        found = take(collector, store, engine_name="mariadb")
    assert "a-known-secret" not in str(found.manifest)
    assert found.views["global_status"]["rows"] > 300
    record = found.views[TABLES]
    assert record["rows"] == 0 or "problem" in record


def made(interval: Interval) -> dict[str, JsonObject]:
    return {one["name"]: one for one in report(interval)["sections"]}


def test_the_report_of_a_known_load(server: MariaServer, store: Store) -> None:
    run(server, "create table test.idle (a int primary key, b int, key (b))")
    before = snap(server, store)
    run(server, *LOAD)
    with Interval(store, before, snap(server, store)) as interval:
        found, seconds = made(interval), interval.seconds
    (whole, *databases) = found["throughput"]["tables"][0]["rows"]
    assert whole["tps"] * seconds == pytest.approx(3), "three ROLLBACK"
    assert whole["ins_ps"] * seconds == pytest.approx(40)
    (test,) = [row for row in databases if row["database"] == "test"]
    assert test["upd_ps"] * seconds == pytest.approx(11)
    (table,) = found["tables"]["tables"][0]["rows"]
    assert (table["table"], table["tuples_pct"]) == ("test.t", 1.0)
    by_calls = next(t for t in found["sql"]["tables"] if t["title"] == "By calls")["rows"]
    assert by_calls[0]["calls"] == 40
    texts = {row["statement"]: row["text"] for row in found["sql"]["tables"][-1]["rows"]}
    assert "INSERT INTO" in texts[by_calls[0]["statement"]]
    assert by_calls[0]["begins"].startswith("INSERT INTO")
    unused = next(t for t in found["indexes"]["tables"] if t["title"].startswith("Not read"))
    assert {"index": "b", "table": "test.t", "read_ever": 0} in unused["rows"]
    assert any("not sampled" in one["why"] for one in found["waits"]["not_measured"])
    assert found["settings"]["notes"] == ["no setting changed"]
    assert found["io"]["tables"][0]["rows"] or found["io"]["notes"], "I/O is never empty without a word"


def test_io_that_no_instrument_counts_says_what_to_switch_on(server: MariaServer, store: Store) -> None:
    instruments = "update performance_schema.setup_instruments set enabled = '{}' where name like 'wait/io/file/%'"
    run(server, instruments.format("NO"), "truncate performance_schema.file_summary_by_event_name")
    try:
        with Interval(store, snap(server, store), snap(server, store)) as interval:
            found = made(interval)["io"]
    finally:
        run(server, instruments.format("YES"))
    assert not found["tables"]
    assert "setup_instruments" in found["not_measured"][0]["next"]


@pytest.mark.soak
def test_the_report_over_a_restart_has_no_number_that_is_not_known(server: MariaServer, store: Store) -> None:
    run(server, *LOAD)
    before = snap(server, store)
    time.sleep(2.5)
    server.kill()
    server.start()
    run(server, "set global max_statement_time = 7")
    with Interval(store, before, snap(server, store)) as interval:
        whole = report(interval)
        found = made(interval)
    assert whole["verdict"]["word"] == "restart"
    (row, *_) = found["throughput"]["tables"][0]["rows"]
    assert row["tps"] is None
    assert row["verdict"] == "restart"
    assert all(line["total"] is None for line in found["profile"]["tables"][0]["rows"])
    changed = found["settings"]["tables"][0]["rows"]
    assert {"setting": "max_statement_time", "before": "0.000000", "after": "7.000000"} in changed


def test_a_watch_gives_active_sessions_and_who_blocked_whom(server: MariaServer, store: Store) -> None:
    run(server, *LOAD[:3], CONSUMER.format("events_statements_current"), "set global max_statement_time = 0")
    holder, waiter = server.connect(autocommit=False), server.connect(autocommit=False)
    with holder, waiter:
        holder.cursor().execute("update test.t set b = 7 where a = 1")
        with together(partial(waiter.cursor().execute, "update test.t set b = 8 where a = 1")):
            taken = list(watch(server.dsn, store, Options(), every_s=1.5, for_s=1.5, sample_s=0.05))
            holder.rollback()
    assert not [one for one in taken if isinstance(one, SnapshotError)], taken
    first, last = taken
    with Interval(store, first, last) as interval:
        found = made(interval)
    (by_class, by_event, *_) = found["waits"]["tables"]
    assert [row["class"] for row in by_class["rows"]] == ["lock"]
    assert by_class["rows"][0]["aas"] == pytest.approx(1, abs=0.1)
    assert by_event["rows"][0]["event"] == "innodb row lock"
    roots, trees = found["blocking"]["tables"]
    assert [(row["state"], row["text"]) for row in roots["rows"]] == [
        ("idle in transaction", "UPDATE `test` . `t` SET `b` = ? WHERE `a` = ?")
    ]
    assert [(row["user"], row["object"]) for row in trees["rows"]] == [("root", None), ("root", "test.t")]
    assert [row["mostly"] for row in found["sessions"]["tables"][0]["rows"]] == ["lock 100 %"]
    assert [row["text"] for row in trees["rows"]] == ["UPDATE `test` . `t` SET `b` = ? WHERE `a` = ?"] * 2


def test_the_sampler_sees_who_waits_for_whom_however_often_it_is_to_look(server: MariaServer) -> None:
    """InnoDB shows no new wait to who asks for its transactions every few milliseconds."""
    run(server, *LOAD[:3])
    holder, waiter = server.connect(autocommit=False), server.connect(autocommit=False)
    with holder, waiter, open_collector(server.dsn, Options()) as collector:
        holder.cursor().execute("update test.t set b = 7 where a = 1")
        thread = threading.Thread(target=waiter.cursor().execute, args=("update test.t set b = 8 where a = 1",))
        sampler = collector.sampler(0.01)
        sampler.start()
        time.sleep(0.1)
        thread.start()
        time.sleep(1.4)
        sampler.stop()
        with open_live(server.dsn, Options()) as live:
            shown = {row["pid"]: row for row in live.sessions()}
            assert live.progress() == []
            with pytest.raises(SnapshotError, match="the plan cannot be read"):
                live.plan(999_999)
        assert shown[waiter.thread_id()]["blockers"] == [holder.thread_id()]
        assert shown[waiter.thread_id()]["query"] == "update test.t set b = 8 where a = 1"
        assert shown[holder.thread_id()]["state"] == "idle in transaction"
        holder.rollback()
        thread.join()
        (activity, blocked), looks = sampler.take()
    assert looks
    assert sampler.problem is None
    lines = bytes(activity.rows).decode().splitlines()
    waiting = [line for line in lines if 'lock,"innodb row lock"' in line]
    assert looks // 2 <= len(waiting) <= looks
    assert all('idle,"idle in transaction"' in one for one in lines if one not in waiting)
    first = bytes(blocked.rows).decode().splitlines()[0].split(",")
    assert [int(first[1]), int(first[2])] == [waiter.thread_id(), holder.thread_id()]


def test_a_running_statement_is_known_by_its_digest_else_by_a_text_of_ours(server: MariaServer, store: Store) -> None:
    old, new = "select sleep(1.2), 'literal%d'", "select sleep(1.2) + 4711 as unheard_of"
    run(server, "truncate performance_schema.events_statements_summary_by_digest", old % 1)
    threads = [threading.Thread(target=run, args=(server, one)) for one in (old % 2, new)]
    with open_collector(server.dsn, Options()) as collector:
        first = take(collector, store, engine_name="mariadb")
        sampler = collector.sampler(0.05)
        sampler.start()
        for thread in threads:
            thread.start()
        time.sleep(1.0)
        sampler.stop()
        sampled = sampler.take()
        last = take(collector, store, engine_name="mariadb", sampled=sampled)
        for thread in threads:
            thread.join()
    with Interval(store, first, last) as interval:
        seen = {row["text"]: row["name"] for row in History(interval).averages_by("statement")}
    digests = run(
        server, f"select digest, digest_text from performance_schema.{DIGESTS} where digest_text like '%sleep%'"
    )
    assert seen.keys() == {"SELECT `sleep` (?) , ?", "select sleep (?) + ? as unheard_of"}
    assert seen["SELECT `sleep` (?) , ?"] in dict(digests)
    assert seen["select sleep (?) + ? as unheard_of"].startswith("text-")
    assert b"literal" not in bytes(sampled[0][0].rows)
    assert "User sleep" in bytes(sampled[0][0].rows).decode()


@pytest.mark.parametrize(
    ("dsn", "says"),
    [
        ("mariadb://127.0.0.1:1/", "cannot log in"),
        ("mariadb://host:nonsense/", "cannot be read"),
        ("mariadb://host/db?colour=red", "colour"),
    ],
)
def test_a_connection_string_that_leads_nowhere(dsn: str, says: str) -> None:
    with pytest.raises(SnapshotError, match=says) as caught:
        open_collector(dsn, Options())
    assert caught.value.next_step


def test_a_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    found = address("mariadb://me:a%20secret@host/db?ssl_ca=x")
    assert found.parameters["password"] == "a secret"
    assert "secret" not in f"{found!r}{found.safe}{found.name}"
    monkeypatch.setenv("MYSQL_PWD", "from outside")
    assert address("mariadb://me@host/db").parameters["password"] == "from outside"
