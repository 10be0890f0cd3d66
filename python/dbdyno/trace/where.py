"""Conditions on waits and calls, laid over the evidence: what does not fit is not seen any more.

    event = 'log file sync' and elapsed_us > 1000
    (module ~ batch or not depth = 0) and consistent_reads / rows > 100

`dbdyno.trace.expression` has the grammar.
"""

from __future__ import annotations

from dbdyno.trace.expression import condition
from dbdyno.trace.source import Traces


def to_sql(text: str, table: str) -> str:
    """The condition as SQL on `table` (`calls` or `waits`), whose rows are called `t`.

    Raises `TraceError` with the place of what does not fit.
    """
    return condition(text, table).sql


def restrict(
    traces: Traces,
    *,
    where: str | None = None,
    from_ns: int | None = None,
    to_ns: int | None = None,
    depth: int | None = None,
    always: bool = False,
) -> None:
    """Lets every later question on `traces` see only what fits: views of the same names are laid
    over calls and waits. With `always` the view `all_calls`, which expressions use, is there even if
    nothing is left out."""
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
