"""Planted causes in access to tables: hidden by a statement's text, in wider rows, in TOAST, in dead rows that stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_store import MadeServer
from snapshot_help import Lab
from test_snapshot_causes import OnPostgres, asks

from dbdyno.snapshot.causes.change import Pair
from dbdyno.snapshot.causes.postgres import PostgresChange
from dbdyno.snapshot.causes.statements import more_calls
from dbdyno.snapshot.causes.what_happened import causes


@pytest.fixture
def on(lab: Lab, major: int) -> OnPostgres:
    return OnPostgres(lab, major)


def filled(lab: Lab, table: str, rows: int = 20_000) -> None:
    lab.run(
        f"create table {table} (id int primary key, k int, v int)",
        f"insert into {table} select n, n / 10, n from generate_series(1, {rows}) n",
        f"vacuum analyze {table}",
    )


def test_a_table_that_is_scanned_as_often_as_a_statement_is_called_that_does_not_name_it(tmp_path: Path) -> None:
    server, taken = MadeServer(tmp_path / "snaps"), []
    server.texts[1], server.names[7] = "delete from parent where id = $1", "child"
    for minute in range(13):
        late = minute > 6
        server.call(1, 100, 900.0 if late else 30.0, shared_blks_hit=18_000 if late else 1400)
        server.call(2, 1000, 20.0, shared_blks_hit=5000)
        server.touch(7, seq_scan=100 if late else 0, seq_tup_read=10**6 if late else 0)
        taken.append(server.step())
    with server.change(taken, 6) as change:
        first = causes(change)[0]
    assert first.words == "child is scanned whenever this runs: delete from parent where id = $1 (1)"
    assert first.statements == {1}


@pytest.mark.soak
def test_an_index_that_only_a_foreign_key_used(on: OnPostgres) -> None:
    filled(on.lab, "child")
    on.lab.run(
        "create table parent as select n as id from generate_series(1, 30000) n",
        "alter table parent add primary key (id)",
        "alter table child add foreign key (v) references parent",
        "create index child_v on child (v)",
        "vacuum analyze parent",
    )
    done = [20_000]

    def deletes() -> None:
        done[0] += 20
        on.lab.run(*(f"delete from parent where id = {one}" for one in range(done[0] - 19, done[0] + 1)))

    assert on.first_causes(deletes, on.plant("drop index child_v")) == ["index child_v on child was dropped"] * 2


@pytest.mark.soak
def test_a_trigger_that_scans(on: OnPostgres) -> None:
    filled(on.lab, "orders")
    on.lab.run(
        "create function looks() returns trigger language plpgsql as"
        " $$ begin perform count(*) from orders where v % 7 = 1; return new; end $$"
    )
    load = asks(on.lab, "update orders set v = v where id = 5", 20)
    made = on.plant("create trigger t before update on orders for each row execute function looks()")
    found = on.first_causes(load, made)
    words = "orders is scanned by trigger t whenever this runs: update orders set v = v"
    assert all(one.startswith(words) for one in found)


@pytest.mark.soak
def test_a_column_that_made_rows_wide(on: OnPostgres) -> None:
    filled(on.lab, "orders")
    load = asks(on.lab, "select count(*) from orders where v % 7 = 3", 10)
    wide = ("alter table orders add note text", "update orders set note = repeat('n', 400)", "vacuum full orders")
    for model in on.models(load, on.plant(*wide), None, sampled=False):
        first = model["sections"][0]["tables"][0]["rows"][0]
        assert first["what"].startswith("table orders takes ") and "as many rows" in first["what"]
        assert "columns that came: note" in first["evidence"]


@pytest.mark.soak
def test_values_that_grew_into_toast(on: OnPostgres) -> None:
    on.lab.run(
        "create table doc (id int primary key, body text)",
        "alter table doc alter body set storage external",
        "insert into doc select n, repeat('d', 500) from generate_series(1, 500) n",
        "vacuum analyze doc",
    )
    load = asks(on.lab, "select sum(length(body || '')) from doc", 5)
    found = on.first_causes(load, on.plant("update doc set body = repeat(md5(id::text), 500)", "vacuum doc"))
    assert all(one.startswith("more is read from the TOAST of doc") for one in found)


@pytest.mark.soak
def test_a_forgotten_transaction_that_keeps_dead_rows(on: OnPostgres) -> None:
    filled(on.lab, "queue", 2000)
    held = []

    def load() -> None:
        on.lab.run(
            *["update queue set v = v + 1"] * 2, "vacuum queue", *["select count(*) from queue where v > 0"] * 10
        )

    def forget() -> None:
        held.append(on.lab.connect(application_name="forgotten"))
        held[0].execute("begin isolation level repeatable read")
        held[0].execute("select count(*) from queue")

    models = on.models(load, forget, None, sampled=True)
    held[0].close()
    for model in models:
        first = model["sections"][0]["tables"][0]["rows"][0]
        assert first["what"] == "table queue is bloated"
        assert "a transaction held back vacuum for" in first["evidence"]
        assert "of forgotten, idle in transaction): rows that it may see stay, back to " in first["evidence"]


@pytest.mark.soak
def test_autovacuum_that_was_turned_off_for_one_table(on: OnPostgres) -> None:
    filled(on.lab, "orders")
    load = asks(on.lab, "select count(*) from orders where v % 7 = 3", 10)
    off = ("alter table orders set (autovacuum_enabled = off)", *["update orders set v = v + 1"] * 12)
    found = on.first_causes(load, on.plant(*off))
    assert found == ["autovacuum was turned off for orders, which is bloated"] * 2


@pytest.mark.soak
def test_a_setting_of_the_planner_is_named_with_the_plan_that_changed(on: OnPostgres) -> None:
    on.lab.run(
        "create table facts (a int, b int, c text)",
        "insert into facts select n * 7919 % 2000, n, repeat('x', 100) from generate_series(1, 60000) n",
        "create index facts_a on facts (a)",
        "vacuum analyze facts",
        "alter system set random_page_cost = 1.1",
        "alter system set enable_bitmapscan = off",
        "select pg_reload_conf()",
    )
    load = asks(on.lab, "select sum(b) from facts where a between 10 and 40", 10)
    dear = ("alter system set random_page_cost = 400", "select pg_reload_conf()", "select pg_sleep(0.2)")
    try:
        models = on.models(load, on.plant(*dear), None, sampled=False)
    finally:
        on.lab.run("alter system reset all", "select pg_reload_conf()")
    for model in models:
        first = model["sections"][0]["tables"][0]["rows"][0]
        assert first["what"] == "another plan for facts, with the same indexes"
        assert "random_page_cost: 1.1 → 400" in first["evidence"]


def test_what_rules_ask_of_ten_times_the_statements_is_ten_times_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report over 10,000 statements took 20 s of CPU: each statement's share added up all of them."""
    asked = [0]

    def grown(one: Pair, what: str) -> float:
        asked[0] += 1
        return one.after[what] - one.before[what]

    monkeypatch.setattr(Pair, "growth", grown)
    counts = []
    for many in (100, 1000):
        asked[0] = 0
        change = object.__new__(PostgresChange)
        side = {"calls": 1.0, "ms": 1.0, "work": 1.0}
        after = {**side, "calls": 3.0, "ms": 3.0}
        change.__dict__["statements"] = {n: Pair(str(n), "select 1", side, after) for n in range(many)}
        assert not list(more_calls(change)), "of so many alike none is named"
        counts.append(asked[0])
    assert counts[1] <= 11 * counts[0]


BY_K = "select sum(v) from parcels where k = 77"


def test_a_new_statement_that_no_index_serves_is_told_with_the_index_that_it_lacks(on: OnPostgres) -> None:
    """It was "new statement" alone: whoever read that did not know that an index would make it cheap."""
    filled(on.lab, "parcels")
    load = asks(on.lab, "select v from parcels where id = 77")

    def release() -> None:
        load()
        on.lab.run(*[BY_K] * 30)

    for model in on.models(load, lambda: None, release, sampled=False):
        first = model["sections"][0]["tables"][0]["rows"][0]
        assert first["what"].startswith("new statement, which reads parcels whole: select sum(v) from parcels where k")
        assert first["evidence"].endswith("; 20,000 rows a call for 1 of its result; no index begins with k")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("index", "statement"),
    [
        ("create index parcels_k on parcels (k)", BY_K),
        ("select 1", "select count(*) from parcels where v % 7 = 3"),
        ("select 1", "select * from parcels where v <> 77"),
        ("select 1", "select sum(v) from parcels where k = 77 or v > 5"),
    ],
)
def test_a_new_statement_that_an_index_serves_or_that_needs_all_rows_lacks_none(
    on: OnPostgres, index: str, statement: str
) -> None:
    filled(on.lab, "parcels")
    on.lab.run(index, "analyze parcels")
    load = asks(on.lab, "select v from parcels where id = 77", 5)

    def release() -> None:
        load()
        on.lab.run(*[statement] * 20)

    found = on.first_causes(load, after=release)
    assert all(one.startswith("new statement: select") for one in found)


@pytest.mark.soak
def test_a_new_statement_that_returns_few_rows_of_a_range_reads_its_table_whole(on: OnPostgres) -> None:
    """No index is named: the text does not say which column one would begin with."""
    filled(on.lab, "parcels")
    load = asks(on.lab, "select v from parcels where id = 77", 5)

    def release() -> None:
        load()
        on.lab.run(*["select * from parcels where v between 5 and 9"] * 20)

    for model in on.models(load, lambda: None, release, sampled=False):
        first = model["sections"][0]["tables"][0]["rows"][0]
        assert first["what"].startswith("new statement, which reads parcels whole: select * from parcels")
        assert first["evidence"].endswith("; 20,000 rows a call for 5 of its result")
