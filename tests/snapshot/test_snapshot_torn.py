"""Damage in a store affects only the snapshots that use the file, is explained in a sentence, and can be repaired."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from made_store import MadeServer

from command_line import dbdyno as run
from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.base.sections import Part
from dbdyno.snapshot.model import build_sections
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.names import find
from dbdyno.snapshot.report import report
from dbdyno.snapshot.store.check import check, repair
from dbdyno.snapshot.store.folder import Store
from dbdyno.snapshot.store.pack import pack_full

COUNT, GROUP = 8, 3
Rows = dict[str, list[TableRow] | tuple[str, str | None] | None]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store of eight snapshots: two packs of three, and two separate ones; all sums are cached."""
    server = MadeServer(tmp_path_factory.mktemp("torn") / "snaps")
    for minute in range(COUNT):
        for statement in range(1, 40):
            server.call(statement, 100 + statement * minute, 7.5 * statement)
            server.touch(statement, idx_scan=minute + statement, seq_tup_read=statement**3)
        server.before = None  # each snapshot has files of its own
        server.step()
    assert pack_full(server.store, "db:1", group=GROUP) == 2
    whole_report(server.store)
    return server.store.folder


@pytest.fixture(scope="module")
def before(made: Path) -> dict[tuple[int, int], Rows]:
    """Return the rows of each pair of neighbouring snapshots before any damage."""
    return neighbours(Store(made))


@pytest.fixture(scope="module")
def good(made: Path) -> JsonObject:
    """Return the output of the command that reports on the whole store."""
    return output(made)


def output(folder: Path) -> JsonObject:
    done = run("snap", "report", "1", COUNT, "--store", folder, "--format", "json")
    assert done.returncode == 0, done
    return dict(json.loads(done.stdout))


def whole_report(store: Store) -> JsonObject:
    with Interval(store, find(store, "1"), find(store, str(COUNT))) as interval:
        return report(interval)


def neighbours(store: Store) -> dict[tuple[int, int], Rows]:
    found: dict[tuple[int, int], Rows] = {}
    for first, last in pairwise(store):
        rows: Rows = {}
        with Interval(store, first, last, [first, last]) as interval:
            for view in interval.after.views:
                rows[view] = interval.missing_reason(view) or interval.query(f"select * from {view} order by all", view)
        found[first.number, last.number] = rows
    return found


def torn_off(content: bytearray, dice: random.Random) -> bytes:
    return bytes(content[: dice.randrange(len(content))])


def flipped(content: bytearray, dice: random.Random) -> bytes:
    content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    return bytes(content)


def zeroed(content: bytearray, dice: random.Random) -> bytes:
    at = dice.randrange(len(content))
    until = min(at + 512, len(content))
    return bytes(content[:at]) + bytes(until - at) + bytes(content[until:])


DAMAGES: tuple[Callable[[bytearray, random.Random], bytes], ...] = (torn_off, flipped, zeroed)


def users(store: Store, file: Path) -> set[int]:
    """Return the numbers of the snapshots that use a file of the store."""
    name = str(file.relative_to(store.folder))
    if file.name == "manifest.json":
        return {int(file.parent.name)}
    return {one.number for one in store for record in one.views.values() if record.get("file") == name}


def hurt(file: Path, how: Callable[[bytearray, random.Random], bytes], dice: random.Random) -> None:
    old = file.read_bytes()
    new = how(bytearray(old), dice)
    file.write_bytes(new if new != old else old[:-1])


BLAMED = 1236
"""Seed of the case in which a manifest's checksum of a file is damaged, for which the file was once blamed."""
USUAL = (1, 13, BLAMED)
"""Seeds of three cases: a truncated pack, a file of one snapshot with zeros in it, a manifest with a changed bit."""
SOAK = (pytest.param(seed, marks=pytest.mark.soak) for seed in range(120) if seed not in USUAL)


@pytest.mark.parametrize("seed", [*USUAL, *SOAK])
def test_damage_at_any_place_costs_those_that_name_the_file_and_is_repaired(
    made: Path, before: Mapping[tuple[int, int], Rows], tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    folder = tmp_path / "snaps"
    shutil.copytree(made, folder)
    pattern = dice.choice(["packs/*/*.parquet", "packs/*/*.parquet", "0*/*.parquet", "0*/manifest.json"])
    file = dice.choice(sorted(folder.glob(pattern)))
    costs = users(Store(folder), file)
    hurt(file, dice.choice(DAMAGES), dice)
    print(seed, file.relative_to(folder), sorted(costs))
    store = Store(folder)
    for ends, rows in neighbours(store).items():
        if not costs & set(ends):
            assert rows == before.get(ends, rows), ends
        for view, found in rows.items():
            if isinstance(found, tuple):
                assert f"its file {file.parent.name}/{file.name} " in found[0] and found[1]
            elif ends in before and file.name != "manifest.json":
                assert found == before[ends][view], "right, or said to be unknown"
    if not {1, COUNT} & store.damaged.keys():
        whole_report(store)
    assert check(store), "it is found"
    repair(store, check(store))
    assert not [fault for fault in check(Store(folder)) if fault.repair]
    for ends, rows in neighbours(Store(folder)).items():
        if not costs & set(ends):
            assert rows == before.get(ends, rows), ends


@pytest.mark.parametrize("pattern", ["*/*/*/*.parquet", "*/*/*/chunk.json", "index.parquet"])
def test_kept_sums_that_are_damaged_come_back(made: Path, good: JsonObject, tmp_path: Path, pattern: str) -> None:
    folder = tmp_path / "snaps"
    shutil.copytree(made, folder)
    for at, how in enumerate(DAMAGES):
        for file in (folder / "sums").glob(pattern):
            hurt(file, how, random.Random(at))
        assert output(folder) == good, how


def test_a_pack_that_was_damaged_is_told_where_its_rows_are_asked_for(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "snaps"
    shutil.copytree(made, folder)
    (file, *_) = sorted(folder.glob("packs/*/pg_stat_statements.parquet"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    done = run("snap", "report", "2", "3", "--store", folder)
    said = " ".join(done.stdout.split())
    assert done.returncode == 0, done
    assert f"its file {file.parent.name}/{file.name} was changed after it was written" in said
    assert "dbdyno snap check --repair" in said


def test_a_section_that_cannot_be_read_has_its_heading_and_plain_words(made: Path) -> None:
    store = Store(made)

    def statements(interval: Interval, top: int) -> Part:
        interval.query(f"select {'nonsense' if top else 'calls::date'} from pg_stat_statements", "pg_stat_statements")
        raise AssertionError("the query must fail")

    with Interval(store, find(store, "1"), find(store, "2")) as interval:
        (lacking,) = build_sections([("sql", statements)], interval, 1)
        (unread,) = build_sections([("settings", statements)], interval, 0)
    assert (lacking["title"], unread["title"]) == ("Top SQL", "Settings")
    (lack,) = lacking["not_measured"]
    assert lack["why"] == "snapshots 1 and 2 of db:1: they lack the column nonsense"
    assert "next:" not in lack["why"] and "dbdyno snap check" in lack["next"]
    assert " Error:" not in unread["not_measured"][0]["why"], "the words of the database that reads the files"
