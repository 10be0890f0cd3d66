"""A set of traces cut into blocks, and what each line did in each block.

The unit of inference is the block: a session where both sets have several, else a file, else a
slice of time. A *line* is an event, a kind of call, or a statement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dbdyno.trace.source import Traces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Unit = Literal["session", "file", "slice"]
SEVERAL = 5
"""From so many sessions or files in each set on they are the blocks."""
SLICES = 20
EXECUTIONS_PER_SLICE = 8
BEYOND_MIN = 10
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
FAMILIES = ("event", "call", "statement")
_QUIET = "('idle', 'network')"


@dataclass(frozen=True)
class Blocks:
    """How a set is cut: the unit, the number of blocks, and seconds of session time in each."""

    unit: Unit
    count: int
    seconds: Array


def unit_of(sets: tuple[Traces, Traces]) -> tuple[Unit, int]:
    """What the blocks of two sets are, and into how many slices of time each is cut (0: none)."""
    sessions = [_count(s, "count(distinct session)", "calls") for s in sets]
    if min(sessions) >= SEVERAL:
        return "session", 0
    if min(_count(s, "count(distinct file)", "calls") for s in sets) >= SEVERAL:
        return "file", 0
    executions = min(_count(s, "count(*)", "calls where depth = 0 and kind = 'exec'") for s in sets)
    return "slice", max(2, min(SLICES, executions // EXECUTIONS_PER_SLICE))


def _count(traces: Traces, what: str, source: str) -> int:
    row = traces.connection.execute(f"select {what} from {source}").fetchone()  # noqa: S608
    return int(row[0]) if row else 0


def cut(traces: Traces, unit: Unit, slices: int, *, merge_literals: bool, event: str | None) -> Blocks:
    """Lays views `c` (calls) and `w` (waits) with their block and statement over the evidence, and
    `population`: the times that stand for the set (the client's calls, or one event's waits)."""
    import numpy as np

    execute = traces.connection.execute
    block = _block(traces, unit, slices)
    key = "coalesce(t.statement, '')"
    if merge_literals:
        execute(
            "create or replace temp table literals as select statement, any_value(force_key) as key"
            " from statements where force_key is not null group by statement"
        )
        literal = "(select l.key from literals l where l.statement = t.statement)"
        key = f"coalesce({literal}, t.statement, '')"
    numbered = "select range as blk, row_number() over (order by range) - 1 as place"
    places = f"(select distinct {block} as range from calls t)"  # noqa: S608
    places = f"range({slices})" if unit == "slice" else places
    execute(f"create or replace temp table places as {numbered} from {places}")
    for name, table in (("c", "calls"), ("w", "waits")):
        execute(
            f"create or replace temp view {name} as select t.*, p.place as blk, {key} as skey"  # noqa: S608
            f" from {table} t join places p on p.blk = {block}"
        )
    chosen = "select blk, elapsed_ns, started_ns from c where depth = 0 and kind <> 'close'"
    if event is not None:
        name = event.replace("'", "''")
        chosen = f"select blk, elapsed_ns, started_ns from w where event = '{name}'"  # noqa: S608
    execute(f"create or replace temp view population as {chosen}")
    whole = execute("select sum(elapsed_ns) from sessions").fetchone()
    if unit == "slice":
        total = float(whole[0] or 0) if whole else 0.0
        return Blocks(unit, slices, np.full(slices, total / slices / 1e9))
    rows = execute(
        f"select p.place, coalesce(sum(t.elapsed_ns), 0) from places p"  # noqa: S608
        f" left join sessions t on {block} = p.blk group by p.place order by p.place"
    ).fetchall()
    return Blocks(unit, len(rows), np.array([float(row[1]) / 1e9 for row in rows]))


def _block(traces: Traces, unit: Unit, slices: int) -> str:
    """SQL for the block of a row `t`."""
    if unit != "slice":
        return f"t.{unit}::bigint"
    ends = traces.connection.execute("select min(started_ns), max(started_ns) from calls").fetchone()
    start, end = ends or (0, 1)
    return f"greatest(0, least({slices - 1}, (t.started_ns - {start}) * {slices} // {max(end - start + 1, 1)}))::bigint"


def per_block(traces: Traces, blocks: Blocks) -> dict[str, Array]:
    """Numbers of each block as a whole: executions, busy time, CPU, waits, quantiles of the
    population."""
    import numpy as np

    sums = traces.rows(
        """
        select blk, count(*) filter (depth = 0 and kind = 'exec') as executions,
               sum(elapsed_ns) filter (depth = 0 or orphan) as busy,
               sum(coalesce(self_cpu_ns, 0)) as cpu
        from c group by blk
        """
    )
    waits = traces.rows(
        f"""
        select blk, sum(elapsed_ns) filter (call is not null) as inside,
               coalesce(sum(elapsed_ns) filter (call is null and coalesce(class, '') not in {_QUIET}
                 and not coalesce(think, false)), 0) as between
        from w group by blk
        """  # noqa: S608
    )
    times = traces.rows(
        "select blk, count(*) as n, avg(elapsed_ns) as mean,"
        " quantile_cont(elapsed_ns, $1::double[]) as q from population group by blk",
        [list(QUANTILES.values())],
    )
    found = {name: np.full(blocks.count, np.nan) for name in ("executions", "busy", "cpu")}
    found |= {name: np.zeros(blocks.count) for name in ("inside", "between", "n")}
    found |= {name: np.full(blocks.count, np.nan) for name in ("mean", *QUANTILES)}
    for row in [*sums, *waits, *times]:
        for name, value in row.items():
            if name in found and value is not None:
                found[name][row["blk"]] = value
        for at, (name, q) in enumerate(QUANTILES.items() if "q" in row else ()):
            if row["n"] * (1 - q) >= BEYOND_MIN - 1e-9:
                found[name][row["blk"]] = row["q"][at]
    return found


_LINES = {
    "event": "select blk, event as line, elapsed_ns, elapsed_ns as time_ns, true as counts from w"
    " where not coalesce(think, false)",
    "call": "select blk, kind as line, elapsed_ns,"
    " coalesce(self_elapsed_ns, elapsed_ns) as time_ns, true as counts from c",
    "statement": "select blk, skey as line, elapsed_ns,"
    " coalesce(self_elapsed_ns, elapsed_ns) as time_ns, kind = 'exec' as counts from c",
}
"""Per family: rows with their line, how long each was, what it adds to the line's time, and whether
it counts (of a statement's calls, its executions do)."""


def lines_of(traces: Traces, family: str, blocks: Blocks) -> dict[str, dict[str, Any]]:
    """Per line: `count`, `total_ns`, `max_ns`, and arrays over blocks `n`, `time`, `mean`, `p50`,
    `p99` (NaN where a block has too few)."""
    rows = traces.rows(
        f"""
        select line, blk, count(*) filter (counts) as n, sum(time_ns)::bigint as time,
               max(elapsed_ns) as longest, quantile_cont(time_ns, [0.5, 0.99]) as q,
               count(*) as calls
        from ({_LINES[family]}) group by line, blk
        """  # noqa: S608
    )
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        line = found.setdefault(row["line"], _empty(blocks.count))
        n, at = row["n"] or row["calls"], row["blk"]
        line["count"] += n
        line["total_ns"] += row["time"]
        line["max_ns"] = max(line["max_ns"], row["longest"])
        line["n"][at], line["time"][at] = n, row["time"]
        line["mean"][at] = row["time"] / n if n else math.nan
        if family != "statement":
            line["p50"][at] = row["q"][0]
            if n * 0.01 >= BEYOND_MIN - 1e-9:
                line["p99"][at] = row["q"][1]
    return found


def _empty(count: int) -> dict[str, Any]:
    import numpy as np

    return {
        "count": 0,
        "total_ns": 0,
        "max_ns": 0,
        "n": np.zeros(count),
        "time": np.zeros(count),
        **{name: np.full(count, np.nan) for name in ("mean", "p50", "p99")},
    }


def population(traces: Traces) -> Array:
    """All times of the population, sorted, ns."""
    import numpy as np

    found = traces.connection.execute("select elapsed_ns from population").fetchnumpy()
    return np.sort(np.asarray(found["elapsed_ns"], dtype=np.float64))
