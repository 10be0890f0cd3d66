"""What a rehearsal executes stays in its transaction: one server, and statements that try to leave it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from rehearsal_help import database

from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from dbdyno.rehearse.effects import NOTHING, Outside, reason_left_out
from dbdyno.rehearse.outside import read_outside
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
    assert (
        unsuited(statement(f"{sent}; commit", is_simple=True, shown=cut), NOTHING)
        == "several statements in one message"
    )
    assert unsuited(statement(f"{sent}; -- that is all;", is_simple=True, shown=cut), NOTHING) == ""


def test_a_statement_that_ends_its_transaction_ends_the_rehearsal(side: Side) -> None:
    sent = statement("select 1")
    with pytest.raises(TargetError, match="ended its transaction on the old server"), side.transaction(sent):
        side._command("commit")
        side.execute(sent.samples[0])


REACHING = """
create table audited (a int, b text); create table noted (a int); create table parts (a int) partition by range (a);
create table part partition of parts for values from (0) to (9); create table plain (a int primary key, b text);
create table children (a int references plain on delete cascade); create table checked (a int); create sequence s;
create function far(text) returns text language sql volatile as $$select 'x'$$;
create function moved(int) returns bigint language sql as $$select setval('s', $1)$$;
create function indirect() returns int language plpgsql as 'begin perform moved(1); return 1; end';
create function sent() returns trigger language plpgsql as 'begin perform indirect(); return new; end';
create function notes() returns trigger language plpgsql as $$begin perform pg_notify('c', 'x'); return new; end$$;
create function looped(int) returns int language plpgsql as 'begin return indirect(); end';
create function added(int, int) returns int language sql as 'select indirect()';
create function filed() returns int language plpgsql as $$begin copy plain to program 'cat'; return 1; end$$;
create function deletes() returns int language plpgsql as 'begin delete from plain; return 1; end';
create trigger audits after insert or update on audited for each row execute function sent();
create trigger notifies after insert on noted for each row execute function notes();
create trigger sends after delete on children for each row execute function sent();
create trigger sends after insert on part for each row execute function sent();
alter table checked alter a set default moved(1);
create view shown as select a, b from audited; create view computed as select moved(1) as m;
create foreign data wrapper nothing; create server elsewhere foreign data wrapper nothing;
create foreign table "Prices" (a int) server elsewhere; create view priced as select * from "Prices";
create aggregate summed (int) (sfunc = added, stype = int)
"""
SETVAL = "which reaches setval, whose effect is not rolled back"


@pytest.fixture(scope="module")
def reaching(engine: EmbeddedPostgres) -> Outside:
    database(engine, "reaching", REACHING)
    return read_outside(Postgres.on(engine).in_database("reaching"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("select indirect()", f"it calls indirect, {SETVAL}"),
        ('select public."looped"(1)', f"it calls looped, {SETVAL}"),
        ("select summed(a) from parts", f"it calls summed, {SETVAL}"),
        (
            "select filed()",
            "it calls filed, which reaches a file or a program by COPY, whose effect is not rolled back",
        ),
        ("select deletes()", f"it calls deletes, {SETVAL}"),
        ("insert into audited values (1)", f"it uses audited, {SETVAL}"),
        ("with x as (update shown set b = 1 returning 1) select * from x", f"it uses shown, {SETVAL}"),
        ("delete from plain where a = 1", f"it uses plain, {SETVAL}"),
        ("insert into parts values (1)", f"it uses parts, {SETVAL}"),
        ("insert into checked default values", f"it uses checked, {SETVAL}"),
        ("select * from computed", f"it uses computed, {SETVAL}"),
        (
            "select 1 from priced",
            "it uses priced, which reaches the foreign table prices, whose rows are on another server",
        ),
        ('select * from "Prices"', "it uses the foreign table prices, whose rows are on another server"),
        ("select * from audited where b = 'x' for update", None),
        ("select a from shown", None),
        ("select far('x')", None),
        ("insert into noted values (1)", None),
    ],
)
def test_an_effect_outside_is_found_behind_functions_triggers_and_views(
    reaching: Outside, text: str, reason: str | None
) -> None:
    assert reason_left_out(text, reaching) == reason
