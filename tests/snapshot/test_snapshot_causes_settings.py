"""Causes in a server's settings, scans of tables that a statement reaches, shares that add up, sleeps, and resets."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from made_store import MadeServer
from snapshot_help import FAMILY, FOREIGN_KEY, Lab, section
from test_snapshot_causes import OnPostgres

from dbdyno.judge.interval_report import judged_report
from dbdyno.judge.snapshots import compare
from dbdyno.snapshot.causes import Cause, change_of, reported_causes
from dbdyno.snapshot.causes.postgres.reachable_tables import names_of
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.periods import period


@pytest.fixture
def on(lab: Lab, major: int) -> OnPostgres:
    lab.run(
        "drop role if exists shop",
        "create role shop login",
        "create table ord (id int primary key, cust int, amount int)",
        "insert into ord select n, n / 10, n from generate_series(1, 20000) n",
        "create index ord_cust on ord (cust)",
        "create table q (k int primary key, v int)",
        "insert into q select n, n from generate_series(1, 5000) n",
        "grant all on ord, q to shop",
        "vacuum analyze",
    )
    return OnPostgres(lab, major)


def as_shop(lab: Lab, *statements: str, times: int = 20) -> None:
    with lab.connect(user="shop") as conn:
        for _ in range(times):
            for statement in statements:
                conn.execute(statement)  # type: ignore[arg-type]


def test_a_setting_of_a_role_is_named_before_the_plans_that_it_changed(on: OnPostgres):
    """It was "q is scanned whenever this runs: select ... from ord", of a statement that never touches q."""

    def load() -> None:
        as_shop(on.lab, "select sum(amount) from ord where cust = 77", "select v from q where k = 4", times=15)

    kinds = ("index", "bitmap", "indexonly")
    off = [f"alter role shop set enable_{kind}scan = off" for kind in kinds]
    try:
        models = on.models(load, on.plant(*off), None, sampled=False)
    finally:
        on.lab.run("alter role shop reset all")
    for model in models:
        rows = model["sections"][0]["tables"][0]["rows"]
        assert rows[0]["what"].startswith("settings of role shop: enable_bitmapscan: (not there) → off")
        assert rows[0]["share"] > 0.9
        assert not [row for row in rows if "is scanned" in row["what"]]
        assert sum(row["share"] or 0 for row in rows) <= 1.0001
    changed = section(models[0], "settings")["tables"][0]["rows"]
    assert ("kept setting", "enable_indexscan of role shop", None, "off") in [
        (row["kind"], row["what"], row["first"], row["second"]) for row in changed
    ]


@pytest.mark.soak
def test_a_setting_of_a_function_is_named(on: OnPostgres):
    on.lab.run(
        "create function dear() returns bigint language sql stable as 'select sum(amount) from ord where cust = 5'"
    )
    load = lambda: on.lab.run(*["select dear()"] * 20)  # noqa: E731
    slow = "alter function dear() set enable_bitmapscan = off"
    more = "alter function dear() set enable_indexscan = off"
    found = on.first_causes(load, on.plant(slow, more))
    assert all(one.startswith("settings of function public.dear: (none) → enable_bitmapscan=off") for one in found)


@pytest.mark.soak
def test_a_foreign_key_without_an_index_is_named_with_the_columns_that_lack_it(on: OnPostgres):
    on.lab.run(*FAMILY)
    done = [0]

    def deletes() -> None:
        done[0] += 20
        on.lab.run(*(f"delete from parent where id = {one}" for one in range(done[0] - 19, done[0] + 1)))

    found = on.first_causes(deletes, on.plant(FOREIGN_KEY))
    assert all(
        one.startswith("foreign key child_parent_fkey has no index on child (parent_id), which is scanned whenever")
        for one in found
    )


@pytest.mark.parametrize(
    ("text", "tables", "functions"),
    [
        ("select sum(v) from app.ord o join q using (k) where o.k = $1", {"ord", "q"}, {"sum"}),
        ("with x as (select * from a) select app.dear($1) from x", {"a", "x"}, {"dear"}),
        ("update ord set v = 'from q' where id = $1 /* join r */", {"ord"}, set()),
        ("select from where ((", {"select", "from", "where"}, {"select", "from", "where"}),
    ],
)
def test_a_text_names_its_tables_and_functions(text: str, tables: set[str], functions: set[str]):
    found = names_of(text)
    assert found.tables == tables
    assert found.functions >= functions


class Shares:
    """A change of which only the shares of statements are known."""

    def __init__(self, gains: dict[int, float]) -> None:
        self.gains = gains

    def share(self, statements: Any) -> float:
        return sum(self.gains[one] for one in statements) / sum(self.gains.values())


@pytest.mark.parametrize("seed", range(20))
def test_shares_of_causes_add_up_to_one_at_most_and_every_cause_is_told_once(seed: int):
    dice = random.Random(seed)
    gains = {one: dice.expovariate(1) for one in range(dice.randint(1, 12))}
    ranked = [
        Cause(f"cause {at}", "", frozenset(dice.sample(sorted(gains), dice.randint(0, len(gains)))))
        for at in range(dice.randint(1, 9))
    ]
    told = reported_causes(Shares(gains), ranked)  # type: ignore[arg-type]
    assert sum(one.share or 0 for one in told) <= 1 + 1e-9
    assert sorted([one.cause.words for one in told] + [words for one in told for words in one.also]) == sorted(
        one.words for one in ranked
    )


def test_a_sleep_is_no_database_time(tmp_path: Path):
    """ "new statement: select pg_sleep" came first, with 83 % of the change."""
    server = MadeServer(tmp_path / "snaps")
    server.texts = {1: "select v from t where k = $1", 2: "select pg_sleep($1)", 3: "savepoint s"}
    for at in range(17):
        late = at > 8
        server.call(1, 600, 60.0)
        server.call(2, 100 if late else 0, 5000.0 if late else 0.0)
        server.call(3, 12_000 if late else 0, 120.0 if late else 0.0)
        server.step()
    periods = [period(server.store, one) for one in ("snap:1..9", "snap:9..17")]
    model = compare(server.store, *periods)
    rows = model["sections"][0]["tables"][0]["rows"]
    assert rows[0]["what"].startswith("new statement: savepoint s")
    assert rows[0]["share"] == pytest.approx(1.0)
    assert "83.3 ms a second of sleeping statements are left out: not database time" in model["sections"][0]["notes"]
    assert model["verdict"]["title"].startswith("More work: new statement: savepoint s")
    taken = server.store.snapshots_of(None)
    with Interval(server.store, taken[0], taken[-1]) as interval:
        assert change_of(interval, interval).spent_ms[0] == pytest.approx((17 * 60 - 60 + 8 * 120) / 960, rel=0.01)


def test_the_reset_of_one_statement_is_in_the_head(lab: Lab, major: int):
    """The head said "no reset" while the statement was listed as reset."""
    lab.run(*["select 'a'"] * 50, *["select 1 + 1, 2"] * 30)
    first = lab.take()
    which = "from pg_stat_statements where query like 'select $1 + $2%'"
    lab.run(f"select pg_stat_statements_reset(0, 0, queryid) {which}", *["select 1 + 1, 2"] * 3)
    last = lab.take()
    with lab.between(first, last) as interval:
        head = judged_report(interval, 10)
    assert head["verdict"]["word"] == ("reset" if major >= 14 else head["verdict"]["word"])
    assert "rows of pg_stat_statements were reset" in head["verdict"]["sentences"][0]
    others = [one for one in lab.rows(first, last, "pg_stat_statements") if one["verdict"] == "ok"]
    assert len(others) > 5, "the others are not condemned"
