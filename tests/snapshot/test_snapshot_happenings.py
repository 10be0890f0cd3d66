"""Parts of a comparison besides its tests: both periods on one clock, events, and no false growth."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_store import MadeServer, counters, key, text

from dbdyno.base.json_types import JsonObject
from dbdyno.judge.snapshots import compare
from dbdyno.pages.snapshot import page
from dbdyno.report.figures import draw, snapshot_series, theme
from dbdyno.snapshot.causes.postgres.objects import grown_tables
from dbdyno.snapshot.causes.what_happened import causes, causes_within, describe_time_change
from dbdyno.snapshot.engines.view import Column, View
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.long_timeline import long_events
from dbdyno.snapshot.reading.periods import period
from dbdyno.snapshot.report import report


class Sized(MadeServer):
    """A server whose tables have live rows."""

    live = 1000

    def views(self) -> list[View]:
        live = Column("n_live_tup", "gauge", "count", "BIGINT")
        return [
            View(v.name, v.scope, (*v.columns, live), [(*row, self.live) for row in v.rows], v.scope_by)
            if v.name == "pg_stat_user_tables"
            else v
            for v in super().views()
        ]


class Indexed(MadeServer):
    """A server whose tables have indexes."""

    indexes: tuple[str, ...] = ("orders_cust", "orders_note")

    def views(self) -> list[View]:
        keys, texts = ("datid", "relid", "indexrelid"), ("schemaname", "relname", "indexrelname")
        names = (*map(key, keys), *map(text, texts), *counters(("idx_scan",)))
        rows = [(5, 7, sum(map(ord, one)), "public", "orders", one, self.at_s) for one in self.indexes]
        return [*super().views(), View("pg_stat_user_indexes", "objects", names, rows, "datid")]


@pytest.fixture
def server(tmp_path: Path) -> Sized:
    return Sized(tmp_path / "snaps")


def grown(server: Sized, rows: list[int]) -> list[str]:
    """Return the reported growth between two periods of three snapshots with these numbers of rows."""
    server.names, server.texts = {7: "orders"}, {1: "select * from orders"}
    taken = []
    for at, live in enumerate(rows):
        server.live = live
        server.call(1, 10, 10.0 if at < 3 else 100.0)
        server.touch(7, seq_scan=10)
        taken.append(server.step())
    with server.change(taken, 2) as change:
        return [cause.words for cause in grown_tables(change)]


def test_a_table_whose_load_was_counted_twice_grew_by_the_rows_that_came(server: Sized):
    """A session that loads a table and vacuums it has its rows counted twice: the state says 2,000 before and after."""
    server.names, server.texts, server.live = {7: "orders"}, {1: "select * from orders"}, 2000
    taken = []
    for at in range(5):
        rows = 1000 if at < 3 else 2000
        server.call(1, 10, 10.0 if at < 3 else 20.0, shared_blks_hit=10 * rows / 20)
        server.touch(7, seq_scan=10, seq_tup_read=10 * rows, n_tup_ins=1000 if at == 3 else 0)
        taken.append(server.step())
    with server.change(taken, 2) as change:
        words = [cause.words for cause in grown_tables(change)]
    assert words == ["table orders grew to 2 times its rows"]


def test_a_table_that_grew_in_the_second_stretch_is_a_cause(server: Sized):
    assert grown(server, [1000, 1000, 1000, 2000, 2000]) == ["table orders grew to 2 times its rows"]


def test_rows_that_were_counted_late_are_no_growth(server: Sized):
    """A load before the first snapshot, of which the server had counted one half then."""
    assert grown(server, [1000, 2000, 2000, 2000, 2000]) == []


def steady(server: MadeServer, count: int) -> None:
    for _ in range(count):
        server.call(1, 100, 200.0)
        server.touch(7, idx_scan=100)
        server.step()


@pytest.mark.parametrize(("ms", "scans", "is_cause"), [(10, 10, False), (100, 10, True), (10, 40, True)])
def test_a_dropped_index_is_a_cause_only_where_a_statement_or_the_scans_of_its_table_show_it(
    tmp_path: Path, ms: float, scans: int, is_cause: bool
):
    server = Indexed(tmp_path / "snaps")
    server.names, server.texts, taken = {7: "orders"}, {1: "select * from orders", 2: "select 2"}, []
    for at in range(6):
        later = at > 2
        server.indexes = ("orders_cust",) if later else Indexed.indexes
        server.call(1, 10, ms if later else 10.0)
        server.call(2, 10, 90.0 if later else 10.0)
        server.touch(7, seq_scan=scans if later else 10)
        taken.append(server.step())
    with server.change(taken, 2) as change:
        words = [cause.words for cause in causes(change)]
        assert ("index orders_note on orders was dropped" in words) == is_cause
        assert "index public.orders_note was dropped" in [row["what"] for row in long_events(change.after)]


def test_a_database_that_is_never_read_is_told_once_with_its_name(tmp_path: Path):
    class Shut(MadeServer):
        def facts(self) -> JsonObject:
            problem = {"view": "objects", "database": "app", "problem": "no right to connect"}
            return {**super().facts(), "databases": [], "problems": [problem]}

    server = Shut(tmp_path / "snaps")
    first, *_, last = [server.step() for _ in range(6)]
    with Interval(server.store, first, last) as interval:
        verdict = interval.verdicts["objects", "5"]
    assert (verdict.word, verdict.why.partition("; ")[2]) == (
        "partial",
        "the database app was not read: no right to connect",
    )


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        (1, "calls 1.67 → 0.0167 a second, mean 10 ms → 10 ms"),
        (0, "no call ended after that"),
    ],
)
def test_of_a_fall_it_is_said_whose_it_is(server: Sized, calls: int, said: str):
    server.texts, taken = {1: "select * from orders", 2: "select 2"}, []
    for at in range(6):
        server.call(1, 100 if at <= 2 else calls, 1000 if at <= 2 else 10 * calls)
        server.call(2, 10, 10.0)
        taken.append(server.step())
    with server.change(taken, 2) as change:
        words = describe_time_change(change, causes(change))
    assert words.startswith("-16") and f"of the fall 100% select * from orders (1): {said}" in words


def test_objects_and_resets_of_a_stretch_are_events(server: Sized):
    steady(server, 3)
    server.touch(8)
    steady(server, 1)
    del server.tables[8]
    server.statements_reset_us = server.at_s * 10**6 + 10**6
    server.statements.clear()
    steady(server, 2)
    with Interval(server.store, server.store.open(1), server.store.open(6)) as interval:
        told = long_events(interval)
    found = {row["what"].split(" was reset")[0]: row for row in told}
    assert set(found) == {"table public.t8 was created", "table public.t8 was dropped", "pg_stat_statements"}
    assert found["pg_stat_statements"]["after_us"] is None, "its instant is known"
    came = found["table public.t8 was created"]
    assert came["at_us"] - came["after_us"] == 60_000_000, "between two snapshots"


@pytest.mark.parametrize("apart_s", [0, 7 * 86400])
def test_both_periods_are_on_one_clock(server: Sized, apart_s: int):
    steady(server, 8)
    server.at_s += apart_s
    steady(server, 8)
    model = compare(server.store, period(server.store, "1..8"), period(server.store, "9..16"))
    one, other = model["series"]["periods"]
    assert (one["points"], other["points"]) == (7, 7)
    assert other["from_us"] - one["to_us"] == (60 + apart_s) * 10**6
    place, (low, high), axis = snapshot_series._clock([one, other], theme.WIDE)
    assert place(one["from_us"]) == low and place(other["to_us"]) == high
    assert high - low < 2 * 7 * 60 * 1.2 + 60, "a week between them is cut out"
    assert ("cut between" in axis["title"]) == bool(apart_s)
    assert draw("snapshot_series", model) is not None
    assert page(model).head.question.startswith("1..8: db:1 from 2027-01-15 08:01:00 to 08:08:00 UTC; 9..16: db:1")


@pytest.mark.parametrize("other", [None, "3"])
def test_a_report_is_cut_where_a_setting_was_changed_beside_the_change_of_time(server: Sized, other: str | None):
    """A buffer pool was made smaller: its first minute was slower by little, and the reads of that minute hid those
    that followed. Where settings changed at two places beside the point, neither is taken."""
    server.texts = {1: "select * from orders"}
    server.settings["work_mem"] = "4"
    taken = []
    for at, spent in enumerate((100, 100, 100, 100, 100, 130, 400, 400, 400)):
        if at == 5:
            server.settings["work_mem"] = "1"
        if at == 6 and other:
            server.settings["work_mem"] = other
        server.call(1, 10, spent)
        taken.append(server.step())
    with Interval(server.store, taken[0], taken[-1]) as interval:
        about = causes_within(interval)["about"]
    if other:
        assert f"ms a second at snapshot {taken[5].number} " in about
    else:
        assert f"a setting was changed after snapshot {taken[4].number} " in about


@pytest.mark.parametrize("steps", [2, 5])
def test_a_report_of_few_sub_intervals_opens_with_its_events_and_says_why_no_causes(server: Sized, steps: int):
    """After a pruning the section was gone without a word, and the dropped index with it."""
    server.settings["work_mem"] = "4"
    taken = []
    for at in range(steps):
        server.settings["work_mem"] = "4" if at < steps - 1 else "8"
        server.call(1, 10, 100)
        taken.append(server.step())
    with Interval(server.store, taken[0], taken[-1]) as interval:
        first = report(interval)["sections"][0]
    assert first["name"] == "happened"
    assert [row["what"] for row in first["tables"][0]["rows"]] == ["work_mem: 4 → 8"]
    assert first["notes"][0].startswith("the causes were not searched for: ")
    assert ("one sub-interval has no" if steps == 2 else "4 sub-intervals are too few") in first["notes"][0]
