"""Everything that a rehearsal executes stays in its transaction: statements that try to leave it, on one server."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from rehearsal_help import database, engine_with

from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from dbdyno.bench.postgres.session import StopRequested
from dbdyno.rehearse.answer import Answer
from dbdyno.rehearse.blocks import run_block
from dbdyno.rehearse.changes import refuse_change
from dbdyno.rehearse.effects import NO_OUTSIDE_EFFECTS, OutsideEffects, may_change, reason_left_out
from dbdyno.rehearse.outside_effects import read_outside_effects
from dbdyno.rehearse.rehearsal import unsuited_reason
from dbdyno.rehearse.rehearsed_statement import CUSTOM_PLANS, RehearsedStatement, Trial
from dbdyno.rehearse.side import Side
from dbdyno.rehearse.sides import open_with_change
from dbdyno.rehearse.statement import Parameters, Statement

SCHEMA = "create table t (a int primary key, b text); insert into t values (1, 'one')"
engine = engine_with("safe", SCHEMA)


@pytest.fixture
def side(engine: EmbeddedPostgres) -> Iterator[Side]:
    opened = Side("old", Postgres.from_engine(engine).in_database("safe"))
    yield opened
    opened.close()


def statement(text: str, *values: bytes, is_simple: bool = False, shown: str = "", **more: object) -> Statement:
    """Return a statement with one set of values."""
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
        unsuited_reason(statement(f"{sent}; commit", is_simple=True, shown=cut), NO_OUTSIDE_EFFECTS)
        == "several statements in one message"
    )
    assert unsuited_reason(statement(f"{sent}; -- that is all;", is_simple=True, shown=cut), NO_OUTSIDE_EFFECTS) == ""


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
create function "of Two words"(int) returns int language sql as 'select indirect()';
create table "Two words' own" (a int); create trigger sends after delete on "Two words' own" for each row
  execute function sent();
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
def reaching(engine: EmbeddedPostgres) -> OutsideEffects:
    database(engine, "reaching", REACHING)
    return read_outside_effects(Postgres.from_engine(engine).in_database("reaching"))


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
        ('select "of Two words" (1)', f"it calls words, {SETVAL}"),
        ('delete from "Two words\' own"', f"it uses words, {SETVAL}"),
        ("select '\"', indirect(), '\"' from plain", f"it calls indirect, {SETVAL}"),
        ("select '--' || indirect/* a */ ()", f"it calls indirect, {SETVAL}"),
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
    reaching: OutsideEffects, text: str, reason: str | None
) -> None:
    assert reason_left_out(text, reaching) == reason


@pytest.mark.parametrize(
    ("allowed", "text"),
    [
        ("indirect", "select indirect()"),
        ("indirect", "select looped(1)"),
        ("setval", "insert into audited values (1)"),
        ("prices", "select 1 from priced"),
        ("Prices", 'select * from "Prices"'),
        ("audited", "insert into audited values (1)"),
    ],
)
def test_what_the_user_allows_is_rehearsed(
    engine: EmbeddedPostgres, reaching: OutsideEffects, allowed: str, text: str
) -> None:
    assert reason_left_out(text, reaching) is not None
    server = Postgres.from_engine(engine).in_database("reaching")
    assert reason_left_out(text, read_outside_effects(server, allowed=[allowed, "setval"])) is None


def test_a_name_to_allow_that_does_not_exist_is_an_error(engine: EmbeddedPostgres, reaching: OutsideEffects) -> None:
    with pytest.raises(TargetError, match="--allow indirekt: there is neither a function of this name"):
        read_outside_effects(Postgres.from_engine(engine).in_database("reaching"), allowed=["indirekt"])


@pytest.mark.parametrize(
    "change",
    [
        "alter system set work_mem = '1GB'",
        "/* a */ ALTER /* b */ SYSTEM RESET ALL",
        "alter role postgres set work_mem = '1GB'",
        "create user someone",
        "drop database other",
        "grant one to another",
        "grant connect on database safe to public",
        "comment on role postgres is 'x'",
        "reassign owned by one to another",
        "do $$ begin execute 'alter role postgres set work_mem = 1'; end $$",
    ],
)
def test_a_change_of_more_than_the_copy_is_refused_before_anything_is_executed(change: str) -> None:
    with pytest.raises(TargetError, match="changes the whole server") as refused, changed("host=nowhere", change):
        pass
    assert "set NAME = VALUE" in refused.value.next_step


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("set local work_mem = '1MB'", "has no effect after the transaction"),
        ("/* c */ set transaction isolation level serializable", "has no effect after the transaction"),
        ("select set_config('work_mem', '1MB', false)", "changes nothing that the rehearsal executes"),
        ("reset work_mem", "changes nothing that the rehearsal executes"),
        ("-- nothing", "is not a statement"),
    ],
)
def test_a_change_without_effect_is_refused(change: str, says: str) -> None:
    with pytest.raises(TargetError, match=says), changed("host=nowhere", change):
        pass


def test_one_change_is_one_statement(engine: EmbeddedPostgres) -> None:
    for change in ("set work_mem = '1MB'; create index made on t (a)", "drop index if exists one; drop table t"):
        with pytest.raises(TargetError, match="multiple commands") as refused, changed(where(engine), change):
            pass
        assert refused.value.next_step == "give each statement its own --change"
    with psycopg.connect(where(engine)) as connection:
        assert connection.execute("select count(*) from pg_indexes where indexname = 'made'").fetchone() == (0,)
        assert connection.execute("select count(*) from pg_database where datname ~ 'dbdyno'").fetchone() == (0,)


def test_a_setting_behind_a_comment_holds_for_the_new_side(engine: EmbeddedPostgres) -> None:
    asked = statement("show work_mem")
    with (
        changed(where(engine), "/* less */ set session work_mem = '321kB'") as (old, new),
        old.transaction(asked),
        new.transaction(asked),
    ):
        assert new.answer(asked.samples[0]).kept == ((b"321kB",),)
        assert old.answer(asked.samples[0]).kept != ((b"321kB",),)


def test_a_setting_that_the_server_does_not_know_is_an_error_before_anything_is_measured(
    engine: EmbeddedPostgres,
) -> None:
    with pytest.raises(TargetError, match="unrecognized configuration parameter"), changed(where(engine), "set x = 1"):
        pass


@pytest.mark.parametrize("change", ["create user mapping for public server s", "create index on grants (role)"])
def test_a_change_within_the_database_is_not_refused(change: str) -> None:
    refuse_change(change)


def test_a_stop_while_a_change_is_made_is_no_error_of_the_change(engine: EmbeddedPostgres) -> None:
    with (
        pytest.raises(StopRequested),
        open_with_change(where(engine), ["select pg_sleep(30)"], lambda _: None, Asked(20)),
    ):
        pass


def test_an_interrupt_while_a_side_is_made_ends_the_command(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dbdyno", "rehearse", where(engine), "--change", "select pg_sleep(60)"]
    with subprocess.Popen([*command, "--load", "statements"], stderr=subprocess.PIPE, text=True) as running:
        asked = "select count(*) from pg_stat_activity where query ~ 'pg_sleep' and pid <> pg_backend_pid()"
        with psycopg.connect(**engine.conninfo(), autocommit=True) as connection:
            while connection.execute(asked).fetchone() == (0,) and running.poll() is None:
                time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=20)
    assert running.returncode == 130, errors
    assert "correct the change" not in errors
    with psycopg.connect(where(engine)) as connection:
        assert connection.execute("select count(*) from pg_database where datname ~ 'dbdyno'").fetchone() == (0,)


@pytest.mark.parametrize("sqlstate", ["08001", "57P01"])
def test_an_error_of_a_connection_elsewhere_does_not_end_the_session(side: Side, sqlstate: str) -> None:
    body = f"begin raise exception 'far' using errcode = '{sqlstate}'; end"
    sent = statement(
        "select pg_temp.far()", settings=(f"create function pg_temp.far() returns int language plpgsql as $${body}$$",)
    )
    with side.transaction(sent):
        assert side.answer(sent.samples[0]).sqlstate == sqlstate
        assert side.answer(Parameters("select 1")).sqlstate == ""


def test_a_session_that_the_server_ends_is_lost(side: Side) -> None:
    sent = statement("select pg_terminate_backend(pg_backend_pid())")
    with pytest.raises(TargetError, match="closed the connection"), side.transaction(sent):
        side.answer(sent.samples[0])


@pytest.mark.parametrize("setting", ['set "statement_timeout" = 0', "set statement_timeout = 0"])
def test_no_setting_of_the_load_or_the_change_lifts_the_limits(engine: EmbeddedPostgres, setting: str) -> None:
    sent = statement("select pg_sleep(20)", settings=(setting, "set lock_timeout = 0"))
    side = Side("new", Postgres.from_engine(engine).in_database("safe"), timeout_ms=150, settings=(setting,))
    with side.transaction(sent):
        assert side.answer(sent.samples[0]).sqlstate == "57014"
        assert side.answer(Parameters("show lock_timeout")).kept == ((b"5s",),)
    side.close()


def test_a_statement_that_fails_half_way_in_a_block_is_not_executed_again(engine: EmbeddedPostgres) -> None:
    text = "select a / greatest($1, 0) from t"
    sets = tuple(Parameters(text, (value,)) for value in (b"1", b"0"))
    one = Statement(1, text, 1, 1, samples=sets)
    same = Answer(1)
    item = RehearsedStatement(one, trials=[Trial(sent, same, same, "", elapsed_ns=30_000_000) for sent in sets])
    with two_sides(engine) as (old, new):
        run_block(item, old, new, random.Random(1), 0, is_first=True)
        assert "it failed during its timing" in item.reason
        run_block(item, old, new, random.Random(1), 0, is_first=True)
    assert item.old_ns == []


@pytest.mark.parametrize("text", ["select a from t for update", "select taken()"])
def test_what_locks_rows_is_undone_before_the_other_side_executes_it(engine: EmbeddedPostgres, text: str) -> None:
    make = "create or replace function taken() returns int language sql as 'select a from t for no key update'"
    with psycopg.connect(where(engine), autocommit=True) as connection:
        connection.execute(make)
    one, same = statement(text), Answer(1)
    volatile = read_outside_effects(Postgres.from_engine(engine).in_database("safe")).volatile
    item = RehearsedStatement(one, trials=[Trial(one.samples[0], same, same, "")], undo=may_change(text, volatile))
    with two_sides(engine) as (old, new):
        run_block(item, old, new, random.Random(1), 0, is_first=True)
    assert item.reason == ""
    assert not may_change("select a from t where taken = 1", volatile)


@contextmanager
def two_sides(engine: EmbeddedPostgres) -> Iterator[tuple[Side, Side]]:
    """Yield two sides that use the same database as if they were two servers."""
    sides = [Side(name, Postgres.from_engine(engine).in_database("safe")) for name in ("old", "new")]
    yield sides[0], sides[1]
    for side in sides:
        side.close()


class Asked:
    """Stop signal that becomes true at the n-th check."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def __call__(self) -> bool:
        self.looks -= 1
        return self.looks < 0


def where(engine: EmbeddedPostgres) -> str:
    """Connection string of the database."""
    return make_conninfo("", **{**engine.conninfo(), "dbname": "safe"})


def changed(dsn: str, *changes: str) -> AbstractContextManager[tuple[Side, Side]]:
    """Both sides of a rehearsal of changes."""
    return open_with_change(dsn, changes, lambda _: None, lambda: False)


@pytest.mark.parametrize("text", ["select count(*) from t where a <> $1", "select count(*) from t"])
def test_a_slow_prepared_statement_passes_its_custom_plans_without_being_executed(
    engine: EmbeddedPostgres, text: str
) -> None:
    values = (b"1",) if "$" in text else ()
    sent = Parameters(text, values, is_prepared=True)
    with two_sides(engine) as (old, _), old.transaction(Statement(1, text, 1, 1)):
        assert ("$1" in old.explain_prepared(sent)) is False
        old.use_up_custom_plans([sent] * CUSTOM_PLANS)
        assert ("$1" in old.explain_prepared(sent)) is bool(values), "the generic plan"
        assert not old.has_written()
