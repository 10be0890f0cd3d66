"""Set-up and teardown of a workload's objects, with a teardown that is safe however the run ends.

A teardown such as `drop table orders` must never affect a table that existed before. It is therefore registered only
after the first set-up statement has succeeded, inside its transaction: if the table had existed, the statement would
have failed and nothing would be dropped; if this process is killed right afterwards, the transaction is rolled back. If
a later statement meets an object that existed before, the teardown is not run either: what the set-up has created is
left in place, and the error says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import TargetError
from dbdyno.base.signals import Interrupted, StopSignals
from dbdyno.bench.guardian import ObjectExistsError

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.guardian import Guardian
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.bench.undo import Undo
    from dbdyno.study.plan.plan import Workload

NEEDS_NO_TRANSACTION = "25001"
EXISTS = ("42P04", "42P06", "42P07", "42710", "42723")
"""SQLSTATEs that mean that an object already exists: a database, schema, relation, function or other object."""
OBJECT_EXISTS_STEP = "end the other run if the object belongs to it, or rename the plan's objects; nothing was changed"


@contextlib.contextmanager
def workload_objects(
    work: Workload, target: Postgres, guardian: Guardian, stopping: StopSignals | None = None
) -> Iterator[None]:
    """Run the set-up, and run the teardown when the context ends for any reason.

    Raises:
        TargetError: The server refuses a statement.
        Interrupted: A signal arrived while a statement ran.
    """
    undo = target.sql_undo("teardown of the workload", work.teardown)
    with contextlib.ExitStack() as stack:
        with contextlib.closing(target.connect(statement_timeout_ms=0, stop=_stop_check(stopping))) as conn:
            for number, statement in enumerate(work.setup):
                with _server_errors(statement, "set-up", target, undo if number else None):
                    if number:
                        conn.execute(statement.encode())
                    else:
                        _run_first(conn, statement, lambda: stack.enter_context(guardian.undo(undo)))
        if not work.setup and work.teardown:
            stack.enter_context(guardian.undo(undo))
        yield


def _run_first(conn: psycopg.Connection[Any], statement: str, register: Callable[[], object]) -> None:
    """Run the first statement and register the teardown before it is committed."""
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
    before: list[str], after: list[str], target: Postgres, guardian: Guardian, stopping: StopSignals | None = None
) -> Iterator[None]:
    """Run an arm's SQL before and after its turn; see `EngineFunctions.turn_sql`."""
    with contextlib.ExitStack() as stack:
        if after:
            stack.enter_context(guardian.undo(target.sql_undo("SQL after a turn", after)))
        if before:
            with contextlib.closing(target.connect(statement_timeout_ms=0, stop=_stop_check(stopping))) as conn:
                for statement in before:
                    with _server_errors(statement, "before_sql", target):
                        conn.execute(statement.encode())
        yield


def _stop_check(stopping: StopSignals | None) -> Callable[[], bool] | None:
    return None if stopping is None else stopping.is_requested


def refusal(who: str, statement: str, said: str, where: str, undo: Undo | None, *, exists: bool) -> TargetError:
    """Return the error of a statement that the server refuses, an `ObjectExistsError` for an existing object.

    `ObjectExistsError` is returned only if `undo` is given: the teardown of a set-up that has begun.
    """
    first = " ".join(statement.split())
    shown = first if len(first) <= 80 else first[:77] + "..."
    step = OBJECT_EXISTS_STEP if exists else f"run it manually on the {who}, then correct the plan"
    refused = TargetError(f"the {who} refuses {shown!r}: {said}", where=where, next_step=step)
    return ObjectExistsError(refused, undo) if exists and undo is not None else refused


@contextlib.contextmanager
def _server_errors(statement: str, where: str, target: Postgres, undo: Undo | None = None) -> Iterator[None]:
    """Turn a statement's errors into those of `refusal`."""
    import psycopg

    from dbdyno.bench.postgres.session import StopRequested

    try:
        yield
    except StopRequested as error:
        raise Interrupted from error
    except psycopg.Error as error:
        said, place, exists = str(error).splitlines()[0], f"{where} on {target.safe_dsn}", error.sqlstate in EXISTS
        raise refusal("engine", statement, said, place, undo, exists=exists) from error
