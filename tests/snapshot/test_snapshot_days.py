"""Sums of days are computed once; a long interval uses them, and its figures are exactly those of the samples."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from made_store import MadeServer
from test_sessions import START_US, look, stored, view

from dbdyno.base.json_types import TableRow
from dbdyno.snapshot.causes.postgres.sampled_activity import sampled_activity
from dbdyno.snapshot.engines.postgres import waits
from dbdyno.snapshot.engines.postgres.sampler import ACTIVITY
from dbdyno.snapshot.reading.active_rates import active_rates
from dbdyno.snapshot.reading.days import cache_days
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.long_timeline import long_events
from dbdyno.snapshot.reading.sums.chain import Chain
from dbdyno.snapshot.reading.sums.day import NAME, SESSIONS
from dbdyno.snapshot.sessions.history import DIMENSIONS, History
from dbdyno.snapshot.store.folder import Store
from dbdyno.snapshot.store.upkeep import tidy_when_due

DAY_S = 86_400
SEED = random.randrange(1 << 32)
EVENTS = ((None, None), ("Lock", "tuple"), ("IO", "DataFileRead"), ("LWLock", "WALWrite"))


def rows_of(dice: random.Random, seconds: int, count: int) -> list[TableRow]:
    """Return random sessions of four days: active or idle in a transaction, some open for hours, some of dbdyno."""
    found = []
    for _ in range(count):
        kind, event = dice.choice(EVENTS)
        second, of_looks = dice.randrange(1, seconds), dice.randrange(900, 1000)
        found.append(
            look(
                second,
                dice.randrange(1, 9),
                usename=dice.choice(["app", "batch", None]),
                application=dice.choice(["web", "", None, "dbdyno snap", "o'brien"]),
                client=dice.choice(["10.0.0.1", "local"]),
                statement=dice.choice([1, 2, 3, None]),
                state=dice.choice(["active", "active", "idle in transaction", "idle"]),
                event_type=kind,
                event=event,
                transaction_us=dice.choice([None, 0, 5_000_000, dice.randrange(min(second, 90_000)) * 1_000_000]),
                statement_us=dice.randrange(10_000_000),
                state_us=dice.randrange(10_000_000),
                horizon_age=dice.choice([None] * 30 + [dice.randrange(10**6)]),
                **dice.choice([{}, {"looks": dice.randrange(1, of_looks), "of_looks": of_looks}]),
            )
        )
    return found


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    dice = random.Random(SEED)
    seconds = 4 * DAY_S
    folder = tmp_path_factory.mktemp("days") / "snaps"
    with stored(folder, rows_of(dice, seconds, 1500), seconds=seconds, parts=16, looks=16 * 180) as interval:
        return interval.store


def figures(interval: Interval, where: dict[str, str]) -> dict[str, Any]:
    """Return all figures that a page of sessions shows."""
    history = History(interval, where)
    return {
        **{by: history.averages_by(by) for by in DIMENSIONS},
        "time": history.over_time(),
        "transactions": history.transactions(10),
        "horizons": history.horizons(10),
        "idle": history.idle_in_transaction(),
        "waits": waits.waits(interval, 10),
        "verdicts": interval.verdicts,
        "events": long_events(interval),
    }


WHERE: tuple[dict[str, str], ...] = (
    {},
    {"class": "lock", "application": "o'brien"},
    {"statement": "none", "client": "local", "user": "batch"},
)


@pytest.mark.parametrize("where", WHERE)
def test_figures_from_sums_of_days_are_those_of_the_samples(store: Store, where: dict[str, str]) -> None:
    dice = random.Random(SEED + len(where))
    known = list(store)
    low = dice.randrange(3)
    high = dice.randrange(len(known) - 3, len(known))
    print(f"seed {SEED}, snapshots {known[low].number} to {known[high].number}")
    with Interval(store, known[low], known[high]) as interval:
        summed = figures(interval, where)
        assert len(interval.sums.days) >= 2
    with (
        mock.patch.object(Chain, "whole_days", []),
        Interval(store, known[low], known[high]) as interval,
    ):
        assert interval.sums.hours_with_look_sums(interval.sums.chunks)
        assert figures(interval, where) == summed
    with read_from_samples(), Interval(store, known[low], known[high]) as interval:
        assert figures(interval, where) == summed


@contextmanager
def read_from_samples() -> Iterator[None]:
    """Disable the sums of days and of hours, so that samples are read."""
    with mock.patch.object(Chain, "whole_days", []), mock.patch.object(Chain, "hours_with_look_sums", return_value=[]):
        yield


def rates(interval: Interval, *, hourly: bool) -> dict[str, Any]:
    """Return what a comparison of periods computes from the sampled sessions."""
    active = active_rates(interval, hourly=hourly)
    assert active is not None
    table, looks = sampled_activity(interval)
    means = {by: active.means(by) for by in ("class", "database", "user")}
    return {
        **means,
        "values": {by: active.values(by, sorted(names)).tolist() for by, names in means.items()},
        "states": interval.query(f"from {table} order by all"),
        "looks": looks,
    }


@pytest.mark.parametrize("hourly", [False, True])
def test_rates_from_sums_of_hours_are_those_of_the_samples(store: Store, hourly: bool) -> None:
    dice = random.Random(SEED)
    known = list(store)
    low, high = dice.randrange(3), dice.randrange(len(known) - 3, len(known))
    print(f"seed {SEED}, snapshots {known[low].number} to {known[high].number}")
    with Interval(store, known[low], known[high]) as interval:
        assert interval.sums.hours_with_look_sums(interval.sums.chunks)
        summed = rates(interval, hourly=hourly)
    with read_from_samples(), Interval(store, known[low], known[high]) as interval:
        assert rates(interval, hourly=hourly) == summed


VIEWS = ("pg_stat_statements", "pg_stat_user_tables", "pg_stat_database")


def counts(interval: Interval) -> dict[str, Any]:
    """The rows of all views, over the interval and by sub-interval, in the order in which they are read."""
    found: dict[str, Any] = {name: interval.query(f"from {name}", name) for name in VIEWS}
    for name in VIEWS:
        source, columns = interval.sums.relation(name, folded=False)
        names = ", ".join(sorted(column.name for column in columns))
        found[f"parts of {name}"] = names, interval.query(f"select {names}, life, verdict, why from {source}")
    return found


def test_counts_of_days_are_those_of_their_hours_to_the_last_digit(tmp_path: Path) -> None:
    dice = random.Random(SEED)
    print(f"seed {SEED}")
    server = MadeServer(tmp_path / "snaps")
    for at in range(28):
        server.every_s = 43_200 if at % 4 == 0 else 900
        for statement in dice.sample(range(8), 5):
            server.call(statement, dice.randrange(9), dice.random() * 1e3)
        server.touch(dice.randrange(3), idx_scan=dice.randrange(9), n_tup_ins=at)
        if dice.random() < 0.05:
            server.statements.clear()
            server.statements_reset_us = server.at_s * 10**6 + 1
        server.step()
    known = list(server.store)
    low, high = known[dice.randrange(3)], known[-1 - dice.randrange(3)]
    with Interval(server.store, low, high) as interval:
        by_hour = counts(interval)
    with Interval(server.store, low, high) as interval:
        assert len(list(cache_days(interval.sums))) >= 2
        few = {name for day in interval.sums.days for name in VIEWS if day.has(name, folded=False)}
        assert "pg_stat_database" in few and "pg_stat_statements" not in few
        assert counts(interval) == by_hour


def days_of(store: Store) -> list[Path]:
    return sorted((store.folder / "sums").glob(f"*/*/*/{NAME}"))


def test_a_day_is_made_once_and_again_where_its_files_were_changed(store: Store) -> None:
    known = list(store)
    with Interval(store, known[0], known[-1]) as interval:
        before = figures(interval, {})
    made = days_of(store)
    assert len(made) >= 3
    times = [one.stat().st_mtime_ns for one in made]
    with Interval(store, known[0], known[-1]) as interval:
        assert figures(interval, {}) == before
    assert [one.stat().st_mtime_ns for one in days_of(store)] == times
    (made[0].parent / SESSIONS).write_bytes(b"PAR1 torn")
    made[1].write_text("{")
    shutil.rmtree(made[2].parent)
    with Interval(store, known[0], known[-1]) as interval:
        assert figures(interval, {}) == before
    assert days_of(store) == made


def test_the_day_that_still_grows_is_no_day(store: Store) -> None:
    known = list(store)
    newest = f"{known[-1].at_utc:%Y%m%d}"
    with Interval(store, known[0], known[-1]) as interval:
        History(interval)
        names = [day.home.name for day in interval.sums.whole_days]
    assert newest not in names and names == sorted(names)
    first = f"{known[2].at_utc:%Y%m%d}"
    with Interval(store, known[2], known[-1]) as interval:
        assert first not in [day.home.name for day in interval.sums.whole_days], "begins before the interval"


def test_a_store_that_is_read_only_is_read_from_its_samples(store: Store, tmp_path: Path) -> None:
    known = list(store)
    with (
        mock.patch("dbdyno.snapshot.reading.sums.chain._writable", lambda _: (tmp_path, tmp_path)),
        Interval(store, known[0], known[8]) as interval,
    ):
        assert History(interval).averages_by("class") and not interval.sums.days


def test_a_watch_makes_the_sums_of_a_day_when_the_next_begins(tmp_path: Path) -> None:
    store = Store(tmp_path / "snaps")
    begin = START_US // 10**6 // DAY_S * DAY_S
    for at in range(8):
        at_s = begin + at * 8 * 3600
        rows = [look(at_s - START_US // 10**6 - 60, 1, statement=7)]
        made = store.add(
            [view("activity", ACTIVITY, rows)],
            engine="postgres",
            target="made:1",
            at_ns=at_s * 10**9,
            facts={},
            cost={"looks": 9},
        )
        tidy_when_due(store, made)
    names = [one.parent.parent.name for one in days_of(store)]
    assert names == [f"{datetime.fromtimestamp(begin + day * DAY_S, UTC):%Y%m%d}" for day in (0, 1)]
