"""Set-up and teardown of a workload's objects, with the teardown safe against every kind of end.

A teardown such as `drop table orders` must never meet a table that was there before. So it is
registered only once the first set-up statement has succeeded, inside its transaction: had the
table been there, the statement would have failed and nothing would be dropped; were we killed
right after, the transaction would be rolled back. Where a later statement meets what was there
before, the teardown is not run either: what the set-up has made is left, and it is said so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import TargetError
from dbdyno.base.signals import Interrupted, Stopping
from dbdyno.bench.guardian import ThereBeforeError

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.guardian import Guardian
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.bench.undo import Undo
    from dbdyno.study.plan.plan import Workload

NEEDS_NO_TRANSACTION = "25001"
EXISTS = ("42P04", "42P06", "42P07", "42710", "42723")
"""SQLSTATEs of what is there already: a database, schema, relation, other object, function."""
THERE = "it is another run's, or yours: nothing was touched; end that run, or give the plan's objects other names"


@contextlib.contextmanager
def workload_objects(
    work: Workload, target: Postgres, guardian: Guardian, stopping: Stopping | None = None
) -> Iterator[None]:
    """Runs the set-up; at the end, however it comes, the teardown. Raises `TargetError`, and
    `Interrupted` where a signal comes while a statement runs."""
    undo = target.sql_undo("teardown of the workload", work.teardown)
    with contextlib.ExitStack() as stack:
        with contextlib.closing(target.connect(statement_timeout_ms=0, stop=_heeding(stopping))) as conn:
            for number, statement in enumerate(work.setup):
                with _server_errors(statement, "set-up", target, undo if number else None):
                    if number:
                        conn.execute(statement.encode())
                    else:
                        _first(conn, statement, lambda: stack.enter_context(guardian.undo(undo)))
        if not work.setup and work.teardown:
            stack.enter_context(guardian.undo(undo))
        yield


def _first(conn: psycopg.Connection[Any], statement: str, register: Callable[[], object]) -> None:
    """Runs the first statement and registers the teardown before it is committed."""
    import psycopg

    try:
        with conn.transaction():
            conn.execute(statement.encode())
            register()
    except psycopg.Error as error:
        if error.sqlstate != NEEDS_NO_TRANSACTION:
            raise
        conn.execute(statement.encode())
        register()


@contextlib.contextmanager
def turn_sql(
    before: list[str], after: list[str], target: Postgres, guardian: Guardian, stopping: Stopping | None = None
) -> Iterator[None]:
    """Runs an arm's SQL before its turn; at the end, however it comes, the SQL after it."""
    with contextlib.ExitStack() as stack:
        if after:
            stack.enter_context(guardian.undo(target.sql_undo("SQL after a turn", after)))
        if before:
            with contextlib.closing(target.connect(statement_timeout_ms=0, stop=_heeding(stopping))) as conn:
                for statement in before:
                    with _server_errors(statement, "before_sql", target):
                        conn.execute(statement.encode())
        yield


def _heeding(stopping: Stopping | None) -> Callable[[], bool] | None:
    return None if stopping is None else stopping.is_asked


@contextlib.contextmanager
def _server_errors(statement: str, where: str, target: Postgres, undo: Undo | None = None) -> Iterator[None]:
    """Around a statement, the errors in words; of a set-up that has begun (`undo` is its teardown) apart what was there
    before."""
    import psycopg

    from dbdyno.bench.postgres.session import StopAsked

    try:
        yield
    except StopAsked as error:
        raise Interrupted from error
    except psycopg.Error as error:
        first = " ".join(statement.split())
        shown = first if len(first) <= 80 else first[:77] + "..."
        exists = error.sqlstate in EXISTS
        refused = TargetError(
            f"the engine refuses {shown!r}: {str(error).splitlines()[0]}",
            where=f"{where} on {target.safe_dsn}",
            next_step=THERE if exists else "run it by hand on the engine, then mend the plan",
        )
        raise (ThereBeforeError(refused, undo) if exists and undo is not None else refused) from error
