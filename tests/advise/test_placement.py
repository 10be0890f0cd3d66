"""Choice of tables and indexes for a fast device: the knapsack compared with brute force, advice on rows, a store."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

from command_line import dbdyno, succeeded
from dbdyno.advise.facts import Facts
from dbdyno.advise.judge import choose_rules, judge
from dbdyno.advise.kinds import Database, Server, Setting
from dbdyno.advise.placement import FastDevice, Segment, pack
from dbdyno.base.json_types import JsonObject
from dbdyno.snapshot.engines.view import Column, View
from dbdyno.snapshot.store.folder import Store

GB = 1024**3


@pytest.mark.parametrize("seed", range(30))
def test_the_knapsack_is_the_best_of_all_choices(seed: int) -> None:
    dice = random.Random(seed)
    items = [(dice.randint(1, 40), float(dice.randint(0, 60))) for _ in range(dice.randint(1, 11))]
    room = dice.randint(1, 120)
    subsets = itertools.chain.from_iterable(itertools.combinations(items, n) for n in range(len(items) + 1))
    best = max(sum(gain for _, gain in one) for one in subsets if sum(size for size, _ in one) <= room)
    picked, bound = pack(items, room)
    assert sum(items[at][0] for at in picked) <= room
    assert sum(items[at][1] for at in picked) == best == bound


def test_where_the_steps_do_not_suffice_the_bound_says_how_much_better_it_could_be() -> None:
    dice = random.Random(1)
    items = [(size := dice.randint(100, 200), size + dice.random()) for _ in range(60)]
    picked, bound = pack(items, 3333, steps=80)
    assert 0 < sum(items[at][1] for at in picked) <= bound


def test_three_thousand_segments_are_packed() -> None:
    dice = random.Random(7)
    items = [(dice.randint(1, 10**10), float(dice.randint(0, 10**6))) for _ in range(3000)]
    picked, bound = pack(items, 10**12, steps=5000)
    assert sum(items[at][1] for at in picked) >= 0.99 * bound


def advice(*segments: Segment, gb: float = 10, read_ms: float | None = 100_000.0, temp: int = 0) -> JsonObject:
    counters: dict[str, Any] = dict.fromkeys(Database.__dataclass_fields__, 0)
    counters |= {"name": "app", "reads": 100_000, "read_ms": read_ms, "temp_bytes": temp}
    rows = {
        Server: [Server("postgres", "16.1", 160001)],
        Setting: [],
        Database: [Database(**counters)],
        Segment: list(segments),
        FastDevice: [FastDevice(round(gb * GB))],
    }
    return judge(Facts("t", "snapshots", rows), choose_rules(["placement"]))


def heap(name: str, gb: float, reads: int, database: str = "app") -> Segment:
    return Segment(f'"public"."{name}"', "table", round(gb * GB), reads, database)


def test_reads_per_gigabyte_decide_and_not_the_most_read() -> None:
    model = advice(heap("large", 9, 60_000), heap("a", 4, 35_000), heap("b", 4, 35_000))
    (one,) = model["findings"]
    assert [line.split('"')[3] for line in one["fix"]] == ["a", "b"]
    assert one["fix"][0] == 'alter table "public"."a" set tablespace fast'
    figures = {each["what"]: each["value"] for each in one["evidence"]}
    assert figures["time of a read"] == pytest.approx(1e6), "100 s for 100,000 reads"
    assert figures["seconds saved per GB at most"] == pytest.approx(70 / 8)
    assert "70 s" in one["sentence"] and "no other choice saves more" in one["expected"]


def test_what_is_in_cache_gains_nothing() -> None:
    assert advice(heap("hot", 1, 0))["findings"] == []
    told = advice(heap("a", 1, 1000), read_ms=1000.0)["not_judged"]
    assert "page cache" in told[0]["why"]


def test_without_timing_the_gain_is_blocks_and_is_said_to_be() -> None:
    (one,) = advice(heap("a", 1, 1000), read_ms=None)["findings"]
    assert "1,000 block reads" in one["sentence"] and "track_io_timing" in one["evidence"][0]["place"]


def test_nothing_that_fits_is_said() -> None:
    assert "fits into" in advice(heap("a", 11, 1000))["not_judged"][0]["why"]


def test_temp_wal_and_a_flash_cache_are_rivals() -> None:
    (one,) = advice(heap("a", 1, 1000), temp=8192 * 1000)["findings"]
    assert all(word in one["expected"] for word in ("temporary files", "at most 1 s", "WAL", "flash cache"))


def test_statements_of_several_databases_say_which() -> None:
    (one,) = advice(heap("a", 1, 1000), heap("b", 1, 1000, "other"))["findings"]
    assert one["fix"][1].endswith("-- in database other")


def key(name: str) -> Column:
    return Column(name, "key", "count", "BIGINT")


def text(name: str) -> Column:
    return Column(name, "text", "text", "VARCHAR")


def views(step: int) -> list[View]:
    """Return the views of a table whose name needs quotes, of its index and of the database after that many steps."""
    names = (key("datid"), key("relid"), text("datname"), text("schemaname"), text("relname"))
    reads = Column("heap_blks_read", "counter", "count", "BIGINT")
    index = Column("idx_blks_read", "counter", "count", "BIGINT")
    counters = [Column(name, "counter", "count", "BIGINT") for name in ("blks_read", "blks_hit", "xact_commit")]
    counters += [Column(name, "counter", "count", "BIGINT") for name in ("temp_files", "temp_bytes")]
    time = Column("blk_read_time", "counter", "ms", "DOUBLE")
    since = Column("stats_reset", "gauge", "us", "BIGINT")
    pages = Column("relpages", "gauge", "count", "BIGINT")
    sizes = [(5, 1, 131072), (5, 2, 13107)]
    row = (step * 1000, 0, step, 0, 0, step * 2000.0)
    return [
        View(
            "pg_stat_database",
            "database",
            (key("datid"), text("datname"), since, *counters, time),
            [(5, "app", None, *row)],
            "datid",
        ),
        View(
            "pg_statio_user_tables", "objects", (*names, reads), [(5, 1, "app", "public", 'a"b', 900 * step)], "datid"
        ),
        View(
            "pg_statio_user_indexes",
            "objects",
            (*names[:2], key("indexrelid"), *names[2:], text("indexrelname"), index),
            [(5, 1, 2, "app", "public", 'a"b', "i", 100 * step)],
            "datid",
        ),
        View("pg_class", "now", (key("datid"), key("oid"), pages), sizes),
        View(
            "pg_settings",
            "now",
            (Column("name", "key", "text", "VARCHAR"), text("setting"), text("source")),
            [("track_io_timing", "on", "x")],
        ),
    ]


def test_an_interval_of_snapshots_on_the_command_line(tmp_path: Path) -> None:
    store = Store(tmp_path / "snaps")
    facts = {"version": "16.1", "version_num": 160001, "databases": ["app"], "database": "app", "started_us": 1}
    for step in (1, 2):
        store.add(views(step), engine="postgres", target="db:1", at_ns=(1_800_000_000 + 60 * step) * 10**9, facts=facts)
    words = ("advise", "snap:1..2", "--store", store.folder, "--only", "placement", "--format", "json")
    done = succeeded(*words, "--fast-gb", "2")
    model = json.loads(done.stdout)
    assert model["not_judged"] == []
    (one,) = model["findings"]
    assert one["fix"] == [
        'alter index "public"."i" set tablespace fast',
        'alter table "public"."a""b" set tablespace fast',
    ]
    assert "--fast-gb" in json.loads(dbdyno(*words).stdout)["not_judged"][0]["next"]
    assert dbdyno("advise", "host", "--fast-gb", "2").returncode == 2
    assert dbdyno(*words, "--fast-gb", "0").returncode == 2
