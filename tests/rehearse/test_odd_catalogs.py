"""Parts of unusual databases that a rehearsal reads: sequences, statistics, developer settings, errors on one side."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from rehearsal_help import database

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from dbdyno.rehearse.budget import Budget
from dbdyno.rehearse.catalog import read_catalog
from dbdyno.rehearse.load.parameters import ColumnStatistics, value_of
from dbdyno.rehearse.measuring import Bench
from dbdyno.rehearse.new_server import carried_settings
from dbdyno.rehearse.rehearsal import rehearse
from dbdyno.rehearse.rehearsed_statement import FAILS_ON_OLD, RehearsedStatement
from dbdyno.rehearse.side import Side
from dbdyno.rehearse.statement import Parameters, Statement
from server_binaries import binaries_of

SCHEMA = """
create table codes (code text); create sequence of_text owned by codes.code; insert into codes values ('A7');
create sequence down increment by -1; create table falling (id bigint primary key); alter sequence down owned by
  falling.id; insert into falling select nextval('down') from generate_series(1, 5);
create sequence far increment by -1; create table fallen (id bigint); alter sequence far owned by fallen.id;
insert into fallen values (-9); create table risen (id serial, n int); insert into risen values (7, 0)
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(settings={"force_parallel_mode": "on"}) as running:
        database(running, "odd", SCHEMA)
        yield running


def test_sequences_of_texts_and_descending_ones_are_judged_by_their_direction(engine: EmbeddedPostgres) -> None:
    found = read_catalog(Postgres.from_engine(engine).in_database("odd")).sequences
    assert found == {
        "fallen.id": "public.far is at 0, the smallest id is -9",
        "risen.id": "public.risen_id_seq is at 0, the largest id is 7",
    }


@pytest.mark.parametrize(
    ("kind", "bounds", "least", "most"),
    [
        (1700, ("1", "Infinity", "NaN"), 10, 10**9),
        (21, ("1", "900"), 901, 32767),
        (21, ("5", "32767"), -32768, 4),
        (23, ("1", "2147482000"), 2_147_482_001, 2**31 - 1),
        (20, ("1", "9007199254740993"), 9_007_199_254_740_994, 2**63 - 1),
        (23, (), 1, 2**31 - 1),
    ],
)
def test_a_new_key_is_within_the_type_and_outside_of_the_known_ones(
    kind: int, bounds: tuple[str, ...], least: int, most: int
) -> None:
    known = ColumnStatistics(bounds=bounds, is_unique=True)
    made = [int(value_of(kind, share, known, is_new=True)[0] or "") for share in (0.1, 0.5, 0.9)]
    assert len({*made}) == 3
    assert all(least <= value <= most for value in made), made


def test_a_setting_of_developers_takes_the_name_that_the_new_version_has(engine: EmbeddedPostgres) -> None:
    old = Postgres.from_engine(engine)
    newer = binaries_of("wheel")
    assert carried_settings(old, newer).settings["debug_parallel_query"] == "on"
    assert "force_parallel_mode" not in carried_settings(old, newer).gone
    with EmbeddedPostgres(binaries=newer, settings=dict(carried_settings(old, newer).settings)) as running:
        assert Postgres.from_engine(running).facts()["version"]


def test_what_fails_on_the_old_server_alone_is_said_so(engine: EmbeddedPostgres) -> None:
    new = database(engine, "new", "create table later (a int)", template="odd")
    texts = ("select a from later", "select a from never")
    items = [
        RehearsedStatement(Statement(at, text, 1, 1, samples=(Parameters(text),))) for at, text in enumerate(texts, 1)
    ]
    sides = Side("old", Postgres.from_engine(engine).in_database("odd")), Side("new", Postgres.open(new))
    rehearse(items, Bench(*sides, Budget(5), random.Random(1), 0.1))
    for side in sides:
        side.close()
    assert items[0].reason == 'it fails on the old server, but not on the new one: relation "later" does not exist'
    assert items[1].reason == f'{FAILS_ON_OLD}: relation "never" does not exist'
