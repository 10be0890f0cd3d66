"""Set-up and teardown of a workload's objects, with a teardown that is safe however the run ends.

A teardown such as `drop table orders` must never affect a table that existed before. It is therefore registered only
after the first set-up statement has succeeded: if the table had existed, the statement would have failed and nothing
would be dropped. MariaDB commits each statement that creates an object, so a kill between the first one and the
registration leaves an empty object behind. If a later statement meets an object that existed before, the teardown is
not run either: what the set-up has created is left in place, and the error says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dbdyno.base.signals import Interrupted, StopSignals
from dbdyno.bench.mariadb.address import driver, error_text
from dbdyno.bench.mariadb.session import StopRequested, run_stoppable
from dbdyno.bench.mariadb.undo import MariaUndo
from dbdyno.bench.postgres.objects import refusal

if TYPE_CHECKING:
    from dbdyno.bench.guardian import Guardian
    from dbdyno.bench.mariadb.server import MariaDB
    from dbdyno.bench.undo import Undo
    from dbdyno.study.plan.plan import Workload

EXISTS = (1007, 1050, 1061, 1304, 1359)
"""Error numbers of objects that already exist: a database, table, index, routine, trigger."""


@contextlib.contextmanager
def workload_objects(work: Workload, target: MariaDB, guardian: Guardian, stopping: StopSignals) -> Iterator[None]:
    """Run the set-up, and run the teardown when the context ends for any reason.

    Raises:
        TargetError: The server refuses a statement.
        Interrupted: A signal arrived while a statement ran.
    """
    undo = MariaUndo("teardown of the workload", target.parameters, tuple(work.teardown))
    with contextlib.ExitStack() as stack:
        for number, statement in enumerate(work.setup):
            _run(target, statement, "set-up", stopping, undo if number else None)
            if not number and work.teardown:
                stack.enter_context(guardian.undo(undo))
        if not work.setup and work.teardown:
            stack.enter_context(guardian.undo(undo))
        yield


@contextlib.contextmanager
def turn_sql(
    before: Sequence[str], after: Sequence[str], target: MariaDB, guardian: Guardian, stopping: StopSignals
) -> Iterator[None]:
    """Run an arm's SQL before and after its turn; see `EngineFunctions.turn_sql`."""
    with contextlib.ExitStack() as stack:
        if after:
            stack.enter_context(guardian.undo(MariaUndo("SQL after a turn", target.parameters, tuple(after))))
        for statement in before:
            _run(target, statement, "before_sql", stopping)
        yield


def _run(target: MariaDB, statement: str, where: str, stopping: StopSignals, undo: Undo | None = None) -> None:
    try:
        run_stoppable(target.parameters, statement, stopping.is_requested)
    except StopRequested as error:
        raise Interrupted from error
    except driver().Error as error:
        exists, place = bool(error.args) and error.args[0] in EXISTS, f"{where} on {target.safe_dsn}"
        raise refusal("server", statement, error_text(error), place, undo, exists=exists) from error
