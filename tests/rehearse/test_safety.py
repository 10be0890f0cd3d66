"""What a rehearsal executes stays in its transaction: one server, and statements that try to leave it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from rehearsal_help import database

from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from dbdyno.rehearse.rehearsal import unsuited
from dbdyno.rehearse.side import Side
from dbdyno.rehearse.statement import Parameters, Statement

SCHEMA = "create table t (a int primary key, b text); insert into t values (1, 'one')"


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres() as running:
        database(running, "safe", SCHEMA)
        yield running


@pytest.fixture
def side(engine: EmbeddedPostgres) -> Iterator[Side]:
    opened = Side("old", Postgres.on(engine).in_database("safe"))
    yield opened
    opened.close()


def statement(text: str, *values: bytes, is_simple: bool = False, shown: str = "", **more: object) -> Statement:
    """A statement with one set of values."""
    sample = Parameters(text, values, is_simple=is_simple)
    return Statement(1, shown or text, 1, 1_000_000, samples=(sample,), **more)  # type: ignore[arg-type]


def rows(engine: EmbeddedPostgres) -> list[tuple[object, ...]]:
    with psycopg.connect(**{**engine.conninfo(), "dbname": "safe"}) as connection:
        return connection.execute("select * from t order by a").fetchall()


MANY = "insert into t values (2, 'x'); commit; delete from t"


def test_several_commands_in_one_message_are_refused_by_the_server(engine: EmbeddedPostgres, side: Side) -> None:
    sent = statement(MANY, is_simple=True)
    with side.transaction(sent):
        assert side.answer(sent.samples[0]).sqlstate == "42601"
    assert rows(engine) == [(1, "one")]


def test_several_commands_are_seen_behind_a_text_that_was_cut_short() -> None:
    values = ", ".join(f"({at}, 'x;y')" for at in range(2, 2000))
    cut = "insert into t values ($1, $2)"
    sent = f"insert into t values {values}"
    assert unsuited(statement(f"{sent}; commit", is_simple=True, shown=cut), ()) == "several statements in one message"
    assert unsuited(statement(f"{sent}; -- that is all;", is_simple=True, shown=cut), ()) == ""


def test_a_statement_that_ends_its_transaction_ends_the_rehearsal(side: Side) -> None:
    sent = statement("select 1")
    with pytest.raises(TargetError, match="ended its transaction on the old server"), side.transaction(sent):
        side._command("commit")
        side.execute(sent.samples[0])
