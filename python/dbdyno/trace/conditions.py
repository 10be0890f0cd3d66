"""Restriction of the evidence to waits and calls that match a condition.

    event = 'log file sync' and elapsed_us > 1000
    (module ~ batch or not depth = 0) and consistent_reads / rows > 100

`dbdyno.trace.expression` has the grammar.
"""

from __future__ import annotations

from dbdyno.trace.expression import compile_condition
from dbdyno.trace.source import Traces


def to_sql(text: str, table: str) -> str:
    """Return the condition as SQL on `table` (`calls` or `waits`), whose rows are called `t`.

    Raises:
        TraceError: the text is not valid; the error marks the place.
    """
    return compile_condition(text, table).sql


def restrict(
    traces: Traces,
    *,
    where: str | None = None,
    from_ns: int | None = None,
    to_ns: int | None = None,
    depth: int | None = None,
    always: bool = False,
) -> None:
    """Make every later query on `traces` see only matching rows, through views named `calls` and `waits`.

    Args:
        traces: the opened traces.
        where: the condition; None for no condition.
        from_ns: keep what ended at this time or later.
        to_ns: keep what started before this time.
        depth: the maximum depth.
        always: create the view `all_calls`, which expressions use, even if nothing is left out.

    Raises:
        TraceError: the condition is not valid.
    """
    if not always and where is None and from_ns is None and to_ns is None and depth is None:
        return
    execute = traces.connection.execute
    execute("create temp view all_calls as select * from memory.main.calls")
    for table in ("calls", "waits"):
        conditions = [to_sql(where, table)] if where else []
        if from_ns is not None:
            conditions.append(f"t.started_ns + t.elapsed_ns >= {int(from_ns)}")
        if to_ns is not None:
            conditions.append(f"t.started_ns < {int(to_ns)}")
        if depth is not None:
            conditions.append(f"t.depth <= {int(depth)}")
        chosen = " and ".join(f"({condition})" for condition in conditions) or "true"
        execute(f"create temp view {table} as select t.* from memory.main.{table} t where {chosen}")  # noqa: S608
