"""The table of settings that versions renamed, removed or changed, compared with real servers of these versions."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from dbdyno.bench.postgres.binaries import Binaries, inspect, installed_folders, wheel_folders
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from dbdyno.rehearse.catalog import Catalog
from dbdyno.rehearse.changed_settings import change_clause, changed_settings, default_since, name_in, value_in
from dbdyno.rehearse.new_server import CARRIED_NAMES, carried_settings
from dbdyno.rehearse.settings import settable_value, why_differing

BY_BUILD = re.compile(
    "server_version.*|ssl_(library|ciphers|ecdh_curve)|krb_server_keyfile|unix_socket_directories|lc_.*"
    "|extension_destdir|output_plugin_libraries"
)
"""Settings that depend on a server's build, its minor version, or its packager."""
MAJORS = range(12, 19)
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Known:
    """Default and category of each setting of a server."""

    defaults: dict[str, str]
    categories: dict[str, str]


@functools.cache
def servers() -> dict[int, Binaries]:
    """Return servers by major version: installed ones, those of the wheel, and those that tools/matrix has fetched."""
    fetched = sorted((ROOT / "target" / "matrix").glob("1[2-8].*/bin"))
    found = {one.major: one for one in inspect((*fetched, *wheel_folders(), *installed_folders(os.environ)), "a test")}
    return {major: one for major, one in found.items() if major in MAJORS}


@functools.cache
def known(major: int) -> Known:
    if major not in servers():
        pytest.skip(f"no PostgreSQL {major} here; tools/matrix --fetch {major} gets one")
    with (
        EmbeddedPostgres(binaries=servers()[major]) as engine,
        contextlib.closing(Postgres.from_engine(engine).connect()) as conn,
    ):
        rows = conn.execute(
            "select name, coalesce(boot_val, '') || coalesce(' ' || unit, ''), category from pg_settings"
        ).fetchall()
    return Known(
        {name: settable_value(value) for name, value, _ in rows}, {name: category for name, _, category in rows}
    )


def pairs() -> list[object]:
    """Return pairs of successive versions: those that the test packages provide, and in the soak all others."""
    soak = [pytest.param(a, b, marks=pytest.mark.soak) for a, b in itertools.pairwise(MAJORS) if (a, b) != (15, 16)]
    return [(15, 16), (16, 18), *soak, pytest.param(12, 18, marks=pytest.mark.soak)]


@pytest.mark.parametrize(("old", "new"), pairs())
def test_the_table_has_what_changed_between_two_servers(old: int, new: int) -> None:
    before, after = known(old), known(new)
    gone = {name for name in before.defaults.keys() - after.defaults.keys() if not BY_BUILD.fullmatch(name)}
    told = {one.name for one in changed_settings() if one.kind in ("renamed", "removed") and old < one.since <= new}
    assert {name for name in told if not BY_BUILD.fullmatch(name)} == gone
    for name in gone:
        assert change_clause(name, old, new), name
        later = name_in(name, new)
        assert later == name or later in after.defaults
    changed = {
        name: (before.defaults[name], after.defaults[name])
        for name in before.defaults.keys() & after.defaults.keys()
        if before.defaults[name] != after.defaults[name] and not BY_BUILD.fullmatch(name)
    }
    listed = {one.name for one in changed_settings() if one.kind == "default" and old < one.since <= new}
    assert listed & before.defaults.keys() == changed.keys()
    for name, values in changed.items():
        assert default_since(name, values, (old, new)), (name, values)
        assert default_since(name, values[::-1], (new, old)), (name, values)
        assert default_since(name, (values[0], "x"), (old, new)) is None


@pytest.mark.parametrize(
    "major", [15, 18, *(pytest.param(one, marks=pytest.mark.soak) for one in (12, 13, 14, 16, 17))]
)
def test_a_new_server_gets_every_setting_that_steers_the_planner(major: int) -> None:
    tuning = {name for name, category in known(major).categories.items() if category.startswith("Query Tuning")}
    assert tuning - set(CARRIED_NAMES) == set()


def test_names_and_values_are_those_of_the_version() -> None:
    assert name_in("wal_keep_size", 12) == "wal_keep_segments"
    assert change_clause("wal_keep_segments", 12, 18) == (
        "wal_keep_segments is wal_keep_size since 13: its value is a size, no longer a number of files"
    )
    assert change_clause("work_mem", 12, 18) is None and change_clause("db_user_namespace", 17, 18) is None
    assert value_in("effective_io_concurrency", "200", 12, 18) == "1176"
    assert default_since("hash_mem_multiplier", ("1", "2"), (14, 18)) == 15
    assert default_since("hash_mem_multiplier", ("1", "2"), (15, 18)) is None, "somebody has set it"


def test_the_page_says_that_a_default_is_the_reason() -> None:
    old = Catalog(140000, settings={"hash_mem_multiplier": "1", "work_mem": "4096 kB"})
    new = Catalog(180000, settings={"hash_mem_multiplier": "2", "work_mem": "8192 kB"})
    assert why_differing("hash_mem_multiplier", old, new) == "default of 15 and later"
    assert why_differing("work_mem", old, new) == ""


def test_settings_that_are_gone_or_renamed_are_told_with_the_version() -> None:
    if not {15, 18} <= servers().keys():
        pytest.skip("no PostgreSQL 15 and 18 here; make setup-test")
    settings = {"force_parallel_mode": "on", "old_snapshot_threshold": "60min", "random_page_cost": "1.3"}
    with EmbeddedPostgres(binaries=servers()[15], settings=settings) as engine:
        carried = carried_settings(Postgres.from_engine(engine), servers()[18])
    assert carried.settings["debug_parallel_query"] == "on" and carried.settings["random_page_cost"] == "1.3"
    assert carried.fates == (
        "force_parallel_mode is debug_parallel_query since 16",
        "old_snapshot_threshold was removed in 17",
    )
