"""Differences of two periods besides counter rates: wait classes, and objects that were added, removed or changed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from made_store import MadeServer, counters, key, text
from snapshot_help import Lab, section, settle

from dbdyno.base.json_types import TableRow
from dbdyno.base.sections import column
from dbdyno.judge.snapshots import compare
from dbdyno.snapshot.engines.postgres.sampler import ACTIVITY
from dbdyno.snapshot.engines.view import Options, View
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.long_timeline import DRAWN_MOST, chart_events, long_events
from dbdyno.snapshot.reading.periods import period
from dbdyno.snapshot.reading.timeline import events
from dbdyno.snapshot.report import report
from dbdyno.snapshot.store.folder import Snapshot
from dbdyno.snapshot.store.pack import pack_full
from dbdyno.snapshot.taking.take import open_collector, take
from soaked import first

LOOKS = 60


class Sampled(MadeServer):
    """A synthetic server whose sessions are sampled each second, with roles, columns and checkpoints."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.roles = {"10": "postgres"}
        self.table_columns: dict[tuple[int, int], tuple[str, str]] = {}
        self.checkpoints = 0
        self.sessions: list[TableRow] = []

    def step(self, commits: int = 600) -> Snapshot:
        self.at_s += self.every_s
        self.database["xact_commit"] += commits
        rows = [
            tuple({**one, "at_us": (self.at_s - at) * 10**6}.get(column.name) for column in ACTIVITY)
            for at in range(LOOKS)
            for one in self.sessions
        ]
        views = [*self.views(), View("activity", "now", ACTIVITY, rows)]
        return self.store.add(
            views,
            engine="postgres",
            target="db:1",
            at_ns=self.at_s * 10**9,
            facts={**self.facts(), "roles": dict(self.roles)},
            cost={"looks": LOOKS},
            before=self.store.last("db:1"),
        )

    def views(self) -> list[View]:
        columns = (key("datid"), key("attrelid"), key("attnum"), text("datname"), text("attname"), text("type"))
        rows = [(5, *at, "app", *named, False) for at, named in self.table_columns.items()]
        return [
            *super().views(),
            View("pg_attribute", "now", (*columns, text("attnotnull")), rows),
            View(
                "pg_stat_bgwriter",
                "shared",
                counters(("checkpoints_timed", "checkpoints_req")),
                [(self.checkpoints, 0)],
                appearance="fixed",
            ),
        ]


@pytest.fixture
def server(tmp_path: Path) -> Sampled:
    return Sampled(tmp_path / "snaps")


def session(pid: int, **more: Any) -> dict[str, Any]:
    known = {"session": pid, "kind": "client backend", "datname": "app", "usename": "clerk", "application": "web"}
    return {**known, "state": "active", **more}


def steps(server: Sampled, count: int) -> str:
    """Add `count` sub-intervals; return the period's name."""
    made = [server.step() for _ in range(count + 1)]
    return f"{made[0].number}..{made[-1].number}"


def test_wait_classes_users_and_databases_are_compared_by_their_samples(server: Sampled):
    """One session that works against one that works beside two of another user that wait for a lock."""
    server.sessions = [session(1)]
    first = steps(server, 7)
    locked = {"event_type": "Lock", "event": "tuple", "usename": "batch"}
    server.sessions = [session(1), session(2, **locked), session(3, **locked)]
    second = steps(server, 7)
    model = compare(server.store, period(server.store, first), period(server.store, second))
    shown = {one["title"]: {row["object"]: row for row in one["rows"]} for one in section(model, "objects")["tables"]}
    assert list(shown) == ["By wait class", "By user", "By database"]
    assert section(model, "objects")["tables"][0]["columns"][0] == column("object", "text", "wait class")
    lock = shown["By wait class"]["lock"]
    assert (lock["a"], lock["b"], lock["decision"]) == (0, pytest.approx(2), "new")
    assert "CPU" not in shown["By wait class"], "it did not change"
    assert shown["By user"]["batch"]["b"] == pytest.approx(2)
    database = shown["By database"]["app"]
    assert (database["a"], database["b"]) == (pytest.approx(1), pytest.approx(3))
    assert (database["low"], database["high"]) == (pytest.approx(3), pytest.approx(3)), "no spread, no width"


@pytest.mark.soak
def test_without_samples_wait_classes_are_said_to_be_unknown(server: Sampled):
    made = MadeServer(server.store.folder)
    for _ in range(16):
        made.step()
    model = compare(made.store, period(made.store, "1..8"), period(made.store, "9..16"))
    assert any("were not sampled" in note for note in section(model, "objects")["notes"])


def changed(server: Sampled) -> list[tuple[str, ...]]:
    """Return the changes that a comparison of 1..6 with 7..12 lists, without the values of settings."""
    model = compare(server.store, period(server.store, "1..6"), period(server.store, "7..12"))
    rows = [row for table in section(model, "settings")["tables"] for row in table["rows"]]
    return [(row["kind"], row["what"], row["change"], row["when"]) for row in rows]


@pytest.mark.parametrize("packed", first(False, True))
def test_what_came_went_or_changed_is_listed_with_its_time(server: Sampled, packed: bool):
    """Packed or not: snapshots of a pack share files."""
    server.touch(1)
    server.touch(2)
    server.table_columns = {(1, 1): ("id", "integer"), (1, 2): ("note", "text"), (2, 1): ("id", "integer")}
    steps(server, 5)
    server.settings["work_mem"] = "4096"
    steps(server, 1)
    server.touch(3)
    del server.tables[2]
    server.table_columns = {(1, 1): ("id", "bigint"), (1, 3): ("at", "date"), (3, 1): ("id", "integer")}
    server.names[1] = "orders"
    server.roles["11"] = "batch"
    steps(server, 5)
    if packed:
        assert pack_full(server.store, "db:1", group=12)
    at = "2027-01-15 08:08:00 to 08:09:00"
    assert changed(server) == [
        ("table", "app.public.orders", "renamed", at),
        ("table", "app.public.t2", "went", at),
        ("table", "app.public.t3", "came", at),
        ("column", "app.public.orders.at", "came", at),
        ("column", "app.public.orders.id", "changed", at),
        ("column", "app.public.t1.note", "went", at),
        ("user", "batch", "came", at),
        ("setting", "work_mem", "came", "2027-01-15 08:06:00 to 08:07:00"),
    ]
    with Interval(server.store, server.store.open(1), server.store.open(14)) as whole:
        told = {row["what"]: row["at_us"] - server.at_s * 10**6 for row in events(whole)}
    assert told == {
        "work_mem: (not there) → 4096": -7 * 60_000_000,
        "table public.t2 was dropped": -5 * 60_000_000,
        "table public.t3 was created": -5 * 60_000_000,
    }


def test_a_table_under_its_name_with_another_number_was_made_anew(server: Sampled):
    server.touch(1)
    steps(server, 5)
    del server.tables[1]
    server.touch(4)
    server.names[4] = "t1"
    steps(server, 5)
    assert [row[:3] for row in changed(server)] == [("table", "app.public.t1", "recreated")]


def test_checkpoints_and_settings_are_on_the_clock_of_a_comparison(server: Sampled):
    steps(server, 3)
    server.checkpoints += 2
    server.settings["work_mem"] = "4096"
    steps(server, 3)
    with Interval(server.store, server.store.open(1), server.store.open(8)) as interval:
        told = {row["kind"]: row for row in long_events(interval)}
        drawn = report(interval)["series"]["events"]
    assert told["checkpoint"]["what"] == "checkpoints: 2 timed"
    assert told["setting"]["what"] == "work_mem: (not there) → 4096"
    assert all(row["at_us"] - row["after_us"] == 60_000_000 for row in told.values())
    assert {row["kind"] for row in drawn} == set(told), "the figure of a report said what happened, and drew nothing"


def test_the_events_of_neighbours_are_those_of_the_whole_that_reads_sums(server: Sampled):
    steps(server, 1)
    server.touch(8)
    steps(server, 1)
    del server.tables[8]
    server.checkpoints += 2
    server.settings["work_mem"] = "4096"
    server.statements_reset_us = server.at_s * 10**6 + 10**6
    server.statements.clear()
    steps(server, 1)

    def told(first: Snapshot, last: Snapshot) -> list[TableRow]:
        with Interval(server.store, first, last) as interval:
            return long_events(interval)

    known = list(server.store)
    apart = [row for ends in pairwise(known) for row in told(*ends)]
    assert {row["kind"] for row in apart} == {"checkpoint", "object", "reset", "setting"}
    assert apart == told(known[0], known[-1])


def test_a_chart_puts_many_events_of_a_kind_together_and_leaves_few_alone() -> None:
    many = [{"kind": "checkpoint", "what": f"c{at}", "at_us": at * 10, "after_us": at * 10 - 10} for at in range(1000)]
    few = [{"kind": "setting", "what": f"s{at}", "at_us": at * 3000, "after_us": None} for at in range(3)]
    found = chart_events(sorted([*many, *few], key=lambda row: row["at_us"]))
    kinds = [row["kind"] for row in found]
    assert kinds.count("setting") == 3
    assert kinds.count("checkpoint") == DRAWN_MOST
    first = next(row for row in found if row["kind"] == "checkpoint")
    assert first["what"].startswith("c0; c1; and ") and first["after_us"] == -10
    assert chart_events([]) == []


def test_a_watch_reads_columns_again_when_the_catalog_was_written(lab: Lab):
    """On a server; the collector stays open, and reads nothing while nothing is written."""
    lab.run("create table orders (id int primary key, note text)")
    with open_collector(lab.dsn, Options()) as collector:
        taken = []
        for change in ("select 1", "select 2", "alter table orders add placed date not null default now()"):
            lab.run(change, "select pg_stat_clear_snapshot()")
            settle()  # what the session did is counted when it has ended
            taken.append(take(collector, lab.store, engine_name="postgres"))
    spent = [one.views["pg_attribute"]["elapsed_ns"] > 0 for one in taken]
    assert spent[0] and spent[2]
    assert taken[1].place("pg_attribute") == taken[0].place("pg_attribute")
    chosen = period(lab.store, f"{taken[0].number}..{taken[1].number}")
    model = compare(lab.store, chosen, period(lab.store, f"{taken[1].number}..{taken[2].number}"))
    rows = [row for table in section(model, "settings")["tables"] for row in table["rows"]]
    assert [(row["kind"], row["what"], row["second"]) for row in rows] == [
        ("column", "postgres.public.orders.placed", "date not null")
    ]


def test_columns_that_one_period_does_not_know_are_said_to_be_unknown(tmp_path: Path):
    """Stores of earlier versions have none: no column "came" by the newer version's reading them."""
    server = MadeServer(tmp_path / "snaps")
    server.touch(1)
    for _ in range(6):
        server.step()
    newer = Sampled(tmp_path / "snaps")
    vars(newer).update({name: value for name, value in vars(server).items() if name != "store"})
    newer.table_columns = {(1, 1): ("id", "integer")}
    for _ in range(6):
        newer.step()
    model = compare(newer.store, period(newer.store, "1..6"), period(newer.store, "7..12"))
    found = section(model, "settings")
    assert "columns: not known for both periods" in found["notes"]
    assert not [row for table in found["tables"] for row in table["rows"] if row["kind"] == "column"]


def test_storage_parameters_and_replication_slots_are_rows_of_a_comparison(lab: Lab):
    slot = "select pg_create_physical_replication_slot('second')"
    lab.run("create table orders (id int) with (fillfactor = 90)", "create table kept (id int)")
    first = lab.take()
    lab.run("alter table orders set (fillfactor = 70, autovacuum_enabled = off)", slot)
    try:
        second = lab.take()
    finally:
        lab.run("select pg_drop_replication_slot('second')")
    model = compare(
        lab.store,
        period(lab.store, f"{first.number}..{second.number}"),
        period(lab.store, f"{first.number}..{second.number}"),
    )
    rows = [row for table in section(model, "settings")["tables"] for row in table["rows"]]
    assert [(row["kind"], row["what"], row["change"], row["first"], row["second"]) for row in rows] == [
        ("replication slot", "second", "came", None, "physical"),
        (
            "storage parameters",
            "postgres.public.orders",
            "changed",
            "fillfactor=90",
            "fillfactor=70, autovacuum_enabled=off",
        ),
    ]
