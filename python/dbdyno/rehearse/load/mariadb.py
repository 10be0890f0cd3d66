"""Load from a MariaDB server: statements counted in its digests, with sample texts from its performance schema.

The statements are executed on PostgreSQL unchanged: those that only MariaDB understands fail on both sides, and are
left out with the server's message as the reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.base.errors import TargetError
from dbdyno.rehearse.effects import reason_left_out
from dbdyno.rehearse.statement import Load, Parameters, Statement
from dbdyno.snapshot.engines.mariadb.history import CountedStatement, Execution, History, read_history

NO_TEXT = "the server kept no text of it with values (events_statements_history_long)"


def load_of_mariadb(dsn: str, samples: int) -> Load:
    """Return the statements that a MariaDB server has counted, with the texts that it still has as their samples.

    Args:
        dsn: The server; its database limits the load to one schema.
        samples: Number of texts for each statement, chosen by the quantiles of their time.

    Raises:
        SnapshotError: The server does not answer, or its performance schema has no statements.
        TargetError: The server has counted no statements.
    """
    history = read_history(dsn)
    schema = _schema(dsn)
    counted = [one for one in history.counted if not schema or one.database == schema]
    if not counted:
        raise TargetError(
            "the server's performance schema has not counted a statement" + (f" of {schema}" if schema else ""),
            where=history.server,
            next_step="run the load, then rehearse",
        )
    remembered: dict[tuple[str, str], list[Execution]] = {}
    for one in history.executed:
        if not one.state:
            remembered.setdefault((one.database, one.digest), []).append(one)
    statements = [
        _statement(at, one, _choose_executions(remembered.get((one.database, one.digest), ()), samples))
        for at, one in enumerate(counted, 1)
    ]
    return Load(history.server, "statements", statements, tuple(_notes(history, statements)))


def _schema(dsn: str) -> str:
    from dbdyno.snapshot.engines.mariadb.connection import address

    return address(dsn).parameters.get("database", "")


def _choose_executions(executed: Sequence[Execution], count: int) -> list[Execution]:
    """Return up to `count` executions, at evenly spaced quantiles of their time."""
    order = sorted(executed, key=lambda one: one.elapsed_ns)
    chosen = min(count, len(order))
    return [order[(2 * at + 1) * len(order) // (2 * chosen)] for at in range(chosen)]


def _statement(number: int, counted: CountedStatement, executed: Sequence[Execution]) -> Statement:
    sets = tuple(Parameters(one.text, elapsed_ns=one.elapsed_ns, is_simple=True) for one in executed)
    left_out = NO_TEXT if not sets else reason_left_out(sets[0].text) or ""
    return Statement(
        number,
        counted.text,
        counted.calls,
        counted.total_ns,
        counted.failed,
        samples=() if left_out else sets,
        left_out=left_out,
    )


def _notes(history: History, statements: Sequence[Statement]) -> list[str]:
    without = sum(one.left_out == NO_TEXT for one in statements)
    notes = [
        f"The load comes from MariaDB {history.version}; its texts are executed unchanged. The server kept texts with "
        f"values for {len(statements) - without:,} of {len(statements):,} statements."
    ]
    limit = "performance_schema_max_sql_text_length"
    if history.cut:
        notes.append(f"{history.cut:,} texts that the server truncated are not used as samples ({limit}).")
    return notes
