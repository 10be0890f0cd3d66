"""Division of a set of traces into blocks, and the values of each line in each block.

The unit of inference is the block: a pair of files if files were paired, else a session if both sets have several that
do a similar amount of work, else a file. Sessions that did almost nothing (one that only connected, a background
process) are not blocks. Within one trace nothing is independent. If a set has too few sessions or files, the calls or
waits of each line are divided, in time order, into batches with about the same number of calls or waits, and each batch
is a block of that line. A *line* is an event, a kind of call, or a statement.

The functions need the tables that `account` creates.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dbdyno.base.json_types import TableRow
from dbdyno.study.analysis.traces.batches import batched_rows, batches_of_at_least
from dbdyno.study.analysis.traces.turns import COMMIT
from dbdyno.trace.source import Traces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbdyno.study.analysis.traces.batches import Ints

    Array = NDArray[np.float64]
    Numbers = dict[str, Array]

Unit = Literal["pair", "session", "file", "batch"]
BLOCKS_LEAST = 5
"""Smallest number of sessions or files in each set for which these are used as the blocks."""
LIGHT_SHARE = 0.05
"""A session or file with less than this share of the typical block's calls is not a block."""
BATCHES = 20
BATCH_LEAST = 8
"""Smallest number of calls or waits in a batch."""
BEYOND_MIN = 10
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
FAMILIES = ("event", "call", "statement")


@dataclass(frozen=True)
class Blocks:
    """How a set is divided: the unit of its blocks, their number, and the session time of each block [s]."""

    unit: Unit
    count: int
    seconds: Array


def unit_of(sets: tuple[Traces, Traces]) -> Unit:
    """Return the unit that serves as a block (session, file or batch) in two sets whose files are not paired."""
    for unit in ("session", "file"):
        if min(_heavy(s, unit) for s in sets) >= BLOCKS_LEAST:
            return unit
    return "batch"


def _heavy(traces: Traces, unit: str) -> int:
    import numpy as np

    rows = traces.connection.execute(
        f"select count(*) from calls where depth = 0 and kind not in ('close', 'background') group by {unit}"  # noqa: S608
    ).fetchall()
    return int((~is_light(np.array([row[0] for row in rows]))).sum())


def is_light(counts: Array) -> NDArray[np.bool_]:
    """Return which blocks have far fewer calls than the typical block.

    If blocks are added in order of their number of calls, the typical block is the one that reaches half of all calls.
    """
    import numpy as np

    if not counts.size:
        return np.zeros(0, dtype=bool)
    ordered = np.sort(counts)
    typical = ordered[np.searchsorted(np.cumsum(ordered), ordered.sum() / 2)]
    return np.asarray(counts < LIGHT_SHARE * typical)


def _number(traces: Traces, query: str) -> int:
    row = traces.connection.execute(query).fetchone()
    return int(row[0]) if row else 0


def make_blocks(traces: Traces, unit: Unit, *, event: str | None) -> Blocks:
    """Create views that give the block of each row of the evidence, and return a description of the blocks.

    The views `c` (calls), `w` (waits), `between` (waits between calls) and `ends` (ends of transactions) have the block
    and the statement of each row. The view `population` has the times that represent the set: of the client's calls, or
    of the waits for `event`.
    """
    import numpy as np

    execute = traces.connection.execute
    column = {"pair": "pair", "batch": "0"}.get(unit, f"t.{unit}")
    if unit != "pair":
        execute("create or replace temp table pairs as select distinct file, 0 as pair from calls")
    execute(
        "create or replace temp table places as select blk, row_number() over (order by blk) - 1 as place from"  # noqa: S608
        f" (select distinct {column}::bigint as blk from calls t join pairs using (file))"
    )
    for name, table, more in (("c", "owned", ", t.key as skey"), ("w", "waits", ""), ("between", "turns", "")):
        execute(
            f"create or replace temp view {name} as select t.*, p.place as blk{more} from {table} t"  # noqa: S608
            f" join pairs using (file) join places p on p.blk = {column}::bigint"
        )
    execute(
        "create or replace temp view ends as select p.place as blk from transactions t"  # noqa: S608
        f" join pairs using (file) join places p on p.blk = {column}::bigint"
    )
    chosen = "select blk, elapsed_ns, started_ns, line from c where depth = 0 and kind <> 'close'"
    if event is not None:
        name = event.replace("'", "''")
        chosen = f"select blk, elapsed_ns, started_ns, line from w where event = '{name}'"  # noqa: S608
    put = "create or replace temp table population as select"
    if unit == "batch":
        query = f"select elapsed_ns, started_ns, line, 0::utinyint as grouped from ({chosen})"  # noqa: S608
        with batched_rows(traces, query, _batches) as rows_in_order:
            execute(f"{put} batch::uinteger as blk, elapsed_ns from {rows_in_order}")
    else:
        execute(f"{put} blk::uinteger as blk, elapsed_ns from ({chosen})")
    rows = execute(
        f"select p.place, coalesce(sum(t.elapsed_ns), 0) from places p left join"  # noqa: S608
        f" (select t.elapsed_ns, {column}::bigint as blk from sessions t join pairs using (file)) t on t.blk = p.blk"
        " group by p.place order by p.place"
    ).fetchall()
    count = len(rows)
    if unit == "batch":
        count = _number(traces, "select coalesce(max(blk) + 1, 1) from population")
    return Blocks(unit, count, np.array([float(row[1]) / 1e9 for row in rows]))


def _batches(count: int) -> Ints:
    return batches_of_at_least(count, BATCHES, BATCH_LEAST)


def block_values(traces: Traces, blocks: Blocks) -> Numbers:
    """Return values of each block: executions, transactions, times, CPU, waits, and quantiles of the population.

    Batches have only the number, mean and quantiles of the population; the other values are NaN.
    """
    import numpy as np

    names = ("executions", "transactions", "response", "database", "cpu", "wait")
    found = {name: np.full(blocks.count, np.nan) for name in names}
    found |= {"n": np.zeros(blocks.count)}
    found |= {name: np.full(blocks.count, np.nan) for name in ("mean", *QUANTILES)}
    for row in [*([] if blocks.unit == "batch" else _sums(traces)), *_times(traces)]:
        for name, value in row.items():
            if name in found and value is not None:
                found[name][row["blk"]] = value
        for at, (name, q) in enumerate(QUANTILES.items() if "q" in row else ()):
            if row["n"] * (1 - q) >= BEYOND_MIN - 1e-9:
                found[name][row["blk"]] = row["q"][at]
    return found


def _sums(traces: Traces) -> list[TableRow]:
    """Return sums of executions, transactions, times, CPU and waits for each block."""
    return traces.rows(
        f"""
        with inside as (
          select blk, count(*) filter (depth = 0 and kind = 'exec' and owner <> '{COMMIT}') as executions,
                 sum(coalesce(self_elapsed_ns, elapsed_ns)) as busy, sum(coalesce(self_cpu_ns, cpu_ns, 0)) as cpu
          from c group by blk),
        outside as (
          select blk, coalesce(sum(elapsed_ns) filter (class = 'network'), 0) as trips,
                 coalesce(sum(elapsed_ns) filter (coalesce(class, '') <> 'network'), 0) as waits
          from between where not is_idle group by blk),
        waited as (select blk, sum(elapsed_ns) as ns from w where call is not null group by blk),
        ended as (select blk, count(*) as transactions from ends group by blk)
        select blk, executions, coalesce(transactions, 0) as transactions,
               busy + coalesce(trips, 0) + coalesce(waits, 0) as response,
               busy + coalesce(waits, 0) as database, cpu, coalesce(ns, 0) + coalesce(waits, 0) as wait
        from inside left join outside using (blk) left join waited using (blk)
             left join ended using (blk)
        """  # noqa: S608
    )


def _times(traces: Traces) -> list[TableRow]:
    return traces.rows(
        "select blk, count(*) as n, avg(elapsed_ns) as mean,"
        " quantile_cont(elapsed_ns, $1::double[]) as q from population group by blk",
        [list(QUANTILES.values())],
    )


_LINES = {
    "event": "select blk, event as name, elapsed_ns, elapsed_ns as time_ns, true as counts, started_ns, line from w"
    " where not coalesce(think, false)",
    "call": "select blk, kind as name, elapsed_ns, coalesce(self_elapsed_ns, elapsed_ns) as time_ns,"
    " true as counts, started_ns, line from c",
    "statement": "select blk, skey as name, elapsed_ns, coalesce(self_elapsed_ns, elapsed_ns) as time_ns,"
    " kind = 'exec' as counts, started_ns, line from c",
}
"""Query for the rows of each family of lines.

A row has the name of its line, its duration, the time that it adds to its line, and whether it counts as an occurrence
(for a statement, only executions count).
"""


@dataclass
class Line:
    """An event, a kind of call or a statement: sums, and arrays over blocks (NaN if a block has too few values)."""

    n: Array
    time: Array
    mean: Array
    p50: Array
    p99: Array
    count: int = 0
    total_ns: int = 0
    max_ns: int = 0


def lines_of(traces: Traces, family: str, blocks: Blocks) -> dict[str, Line]:
    """Return the lines of a family (events, kinds of calls, or statements) by name."""
    is_batch = blocks.unit == "batch"
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(_in_batches(traces, family)) if is_batch else f"({_LINES[family]})"
        rows = _line_rows(traces, source, has_quantiles=family != "statement")
    found: dict[str, Line] = {}
    for row in rows:
        line = found.setdefault(row["name"], _empty(BATCHES if is_batch else blocks.count))
        n, at = row["n"] or row["calls"], row["blk"]
        line.count += n
        line.total_ns += row["time"]
        line.max_ns = max(line.max_ns, row["longest"])
        line.n[at], line.time[at] = n, row["time"]
        line.mean[at] = row["time"] / n if n else math.nan
        if family != "statement":
            line.p50[at] = row["q"][0]
            if n * 0.01 >= BEYOND_MIN - 1e-9:
                line.p99[at] = row["q"][1]
    return found


@contextlib.contextmanager
def _in_batches(traces: Traces, family: str) -> Iterator[str]:
    """Yield an SQL relation with the rows of a family's lines, and the batch of each row as `blk`."""
    source = f"({_LINES[family]})"
    traces.connection.execute(
        "create or replace temp table line_names as select name, row_number() over (order by name) - 1 as grouped"  # noqa: S608
        f" from (select distinct name from {source})"
    )
    # Of an event both durations are the same, and there are more waits than anything else.
    durations = ("time_ns", "time_ns as elapsed_ns") if family == "event" else ("time_ns, elapsed_ns", "elapsed_ns")
    query = f"""
        select l.grouped::integer as grouped, counts, started_ns, line, {durations[0]}
        from {source} r join line_names l on l.name is not distinct from r.name
        """  # noqa: S608
    with batched_rows(traces, query, _batches) as rows:
        shown = f"name, batch as blk, counts, time_ns, {durations[1]}"
        yield f"(select {shown} from {rows} join line_names using (grouped))"  # noqa: S608


def _line_rows(traces: Traces, source: str, *, has_quantiles: bool) -> list[TableRow]:
    """Return counts, sums and quantiles of each line in each block."""
    quantiles = "quantile_cont(time_ns, [0.5, 0.99])" if has_quantiles else "null"
    return traces.rows(
        f"""
        select name, blk, count(*) filter (counts) as n, sum(time_ns)::bigint as time,
               max(elapsed_ns) as longest, {quantiles} as q, count(*) as calls
        from {source} group by name, blk
        """  # noqa: S608
    )


def _empty(count: int) -> Line:
    import numpy as np

    mean, p50, p99 = (np.full(count, np.nan) for _ in range(3))
    return Line(np.zeros(count), np.zeros(count), mean, p50, p99)


def population(traces: Traces) -> Array:
    """Return all times that represent the set [ns], sorted."""
    import numpy as np

    found = traces.connection.execute("select elapsed_ns from population").fetchnumpy()
    return np.sort(np.asarray(found["elapsed_ns"], dtype=np.float64))
