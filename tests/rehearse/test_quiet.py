"""Executions of a rehearsal are neither logged nor counted, so a server that logs everything does not seem slower."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from rehearsal_help import database

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from dbdyno.rehearse.side import Side
from dbdyno.rehearse.statement import Parameters, Statement

SETTINGS = {"shared_preload_libraries": "pg_stat_statements", "log_min_duration_statement": 0, "log_statement": "all"}
TEXT = "select 'quietly executed'"


@pytest.mark.parametrize("role", ["", "app"])
def test_no_execution_is_logged_or_counted_if_the_role_may_say_so(role: str) -> None:
    """A role that may not is rehearsed all the same."""
    with EmbeddedPostgres(settings=SETTINGS) as engine:
        where = database(
            engine, "quiet", "create extension pg_stat_statements", *(["create role app login"] if role else [])
        )
        side = Side("old", Postgres.open(make_conninfo(where, **({"user": role} if role else {}))))
        with side.transaction(Statement(1, TEXT, 1, 1)):
            assert side.execute(Parameters(TEXT)) > 0
        side.close()
        with psycopg.connect(where) as connection:
            [counted] = connection.execute(
                "select count(*) from pg_stat_statements where query like 'select $1'"
            ).fetchone()
        log = "".join(path.read_text() for path in engine.socket_dir.parent.glob("*log*") if path.is_file())
        assert ("quietly executed" in log, counted) == (bool(role), int(bool(role)))
