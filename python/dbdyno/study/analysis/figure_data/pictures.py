"""Data of the figures from evidence: everything that a renderer draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dbdyno.stats.distributions import t_quantiles
from dbdyno.study.analysis.contract.parts import (
    BlockRatios,
    LatencyDistribution,
    LatencyHeatmap,
    QuantileRatios,
    StatementArm,
    StatementRow,
    Tail,
    Waited,
)
from dbdyno.study.analysis.measured.measures import ArmMeasures, Measures, summaries
from dbdyno.study.analysis.measured.timeline import timeline

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Latencies = list[NDArray[np.uint64]]

BUCKETS_PER_DECADE = 25
QUANTILE_GRID = [
    *(at / 100 for at in range(1, 100)),
    0.995,
    0.998,
    0.999,
    0.9995,
    0.9998,
    0.9999,
]
BLOCK_GRID = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999]


def distribution(latencies: Latencies) -> list[LatencyDistribution]:
    """Return the share of operations in each logarithmic bucket of latency, per arm."""
    import numpy as np

    low = min((int(v[0]) for v in latencies if v.size), default=1)
    high = max((int(v[-1]) for v in latencies if v.size), default=10)
    first = math.floor(math.log10(max(low, 1)) * BUCKETS_PER_DECADE)
    last = math.ceil(math.log10(max(high, 10)) * BUCKETS_PER_DECADE) + 1
    edges = 10 ** (np.arange(first, last + 1) / BUCKETS_PER_DECADE)
    figures: list[LatencyDistribution] = []
    for arm, values in enumerate(latencies):
        counts = np.diff(np.searchsorted(values, edges))
        share = counts / max(values.size, 1)
        figures.append(
            {
                "arm": arm,
                "low_ns": _list(edges[:-1]),
                "high_ns": _list(edges[1:]),
                "share": _list(share),
            }
        )
    return figures


def tail(latencies: Latencies, points: int = 400) -> list[Tail]:
    """Return the share of operations that take at least a given time, at logarithmic ranks, per arm."""
    import numpy as np

    figures: list[Tail] = []
    for arm, values in enumerate(latencies):
        if not values.size:
            continue
        ranks = np.unique(np.geomspace(1, values.size, points).astype(int))
        figures.append(
            {
                "arm": arm,
                "exceed_share": _list(ranks / values.size),
                "elapsed_ns": _list(values[values.size - ranks]),
            }
        )
    return figures


def quantile_ratio(measures: Measures, latencies: Latencies, level: float) -> list[QuantileRatios]:
    """Return the ratio of each arm to its base for each pooled quantile, with intervals over blocks."""
    import numpy as np

    tables = [_block_quantiles(arm) for arm in measures.arms]
    figures: list[QuantileRatios] = []
    for number, arm in measures.compared_arms():
        at = arm.base
        base, other = latencies[at], latencies[number]
        grid = [q for q in QUANTILE_GRID if (1 - q) * min(base.size, other.size) >= 10]
        if not grid:
            continue
        ratio = np.quantile(other, grid) / np.maximum(np.quantile(base, grid), 1)
        blocks = min(len(tables[at]), len(tables[number]))
        pair = tables[at][:blocks], tables[number][:blocks]
        low, high = _band(*pair, grid, np.log(np.maximum(ratio, 1e-12)), level)
        figures.append({"arm": number, "quantile": grid, "ratio": _list(ratio), "low": low, "high": high})
    return figures


def _block_quantiles(arm: ArmMeasures) -> Any:
    """Return the quantiles in `BLOCK_GRID` for each block: an array of (blocks, quantiles)."""
    import numpy as np

    table = np.full((len(arm.parts), len(BLOCK_GRID)), np.nan)
    for row in summaries([[part] for part in arm.parts], BLOCK_GRID, arm.operation, arm.expected):
        if row["arm"] == arm.name and row["count"]:
            table[row["group"]] = row["quantiles_ns"]
    return table


def _band(
    base: Any, other: Any, grid: list[float], centre: Any, level: float
) -> tuple[list[float | None], list[float | None]]:
    """Return the interval over blocks, centred on the pooled ratio, interpolated between the `BLOCK_GRID` quantiles."""
    import numpy as np

    logs = np.log(np.maximum(other, 1)) - np.log(np.maximum(base, 1))
    n = np.sum(np.isfinite(logs), axis=0)
    if logs.shape[0] < 3 or np.any(n < 3):
        return [None] * len(grid), [None] * len(grid)
    half = t_quantiles(n - 1, 0.5 + level / 2) * np.nanstd(logs, axis=0, ddof=1) / np.sqrt(n)
    wide = np.interp(grid, BLOCK_GRID, half)
    inside = (np.asarray(grid) >= BLOCK_GRID[0]) & (np.asarray(grid) <= BLOCK_GRID[-1])
    low = [float(v) if ok else None for v, ok in zip(np.exp(centre - wide), inside, strict=True)]
    high = [float(v) if ok else None for v, ok in zip(np.exp(centre + wide), inside, strict=True)]
    return low, high


def block_ratios(measures: Measures, metric: str) -> list[BlockRatios]:
    """Return the ratio of each arm to its base by block, in time order."""
    import numpy as np

    figures: list[BlockRatios] = []
    for number, arm in measures.compared_arms():
        base = measures.arms[arm.base]
        n = min(len(base.blocks), len(arm.blocks))
        ratio = arm.values[metric][:n] / base.values[metric][:n]
        keep = np.isfinite(ratio)
        if not keep.any() or measures.batch_size(metric) > 1:
            continue
        blocks = [block for block, ok in zip(arm.blocks, keep, strict=False) if ok]
        at_s = timeline(arm.blocks).begins_s
        figures.append(
            {
                "arm": number,
                "metric": metric,
                "block": [b.index for b in blocks],
                "at_s": [at_s[b.index] for b in blocks],
                "ratio": _list(ratio[keep]),
                "marked": [", ".join(b.marks) for b in blocks],
            }
        )
    return figures


def heatmap(connection: Any, measures: Measures, resumed: Sequence[int], columns: int = 60) -> list[LatencyHeatmap]:
    """Return the number of transactions by time and logarithmic latency, per arm.

    The time axis joins the blocks one after the other, so that a step of the wall clock does not appear in it.
    """
    blocks = measures.arms[0].blocks
    known = timeline(blocks, resumed)
    width = max(known.length_s * 1e9 / columns, 1.0)
    rows = connection.execute(
        """
        with blocks as (
          select unnest($index::uinteger[]) as block, unnest($started::bigint[]) as began,
                 unnest($offset::double[]) as offset_ns
        )
        select arm, least(greatest(floor((offset_ns + started_ns - began) / $width), 0), $last)::int as at,
               floor(10 * log10(greatest(coalesce(started_ns - intended_ns, 0) + elapsed_ns, 1)))
                 ::int as bucket, count(*)
        from calls join blocks using (block)
        where kind = 'transaction' and (error is null or coalesce(expected, list_contains($listed::varchar[], error)))
        group by all order by all
        """,
        {
            "index": [b.index for b in blocks],
            "started": [b.started_ns for b in blocks],
            "offset": [known.begins_s[b.index] * 1e9 for b in blocks],
            "width": width,
            "last": columns - 1,
            "listed": measures.expected,
        },
    ).fetchall()
    figures: list[LatencyHeatmap] = []
    for number, arm in enumerate(measures.arms):
        own = [row for row in rows if row[0] == arm.name]
        figures.append(
            {
                "arm": number,
                "at_s": [row[1] * width / 1e9 for row in own],
                "width_s": width / 1e9,
                "low_ns": [10 ** (row[2] / 10) for row in own],
                "high_ns": [10 ** ((row[2] + 1) / 10) for row in own],
                "count": [row[3] for row in own],
            }
        )
    return figures


def waits(connection: Any, measures: Measures) -> list[Waited]:
    """Return the time that the load's sessions spend in each wait class and event, per arm, in blocks that count.

    Values are shares of the samples or, if every wait was timed, of the transactions' time; time outside waits is then
    CPU. Idle sessions are not counted.
    """
    if not has_table(connection, "waits"):
        return []
    blocks = [block.index for block in measures.arms[0].blocks]
    rows = connection.execute(
        "select arm, class, event, count(*), sum(elapsed_ns)::double, bool_and(fidelity <> 'sampled')"
        " from waits where object in ('client backend', 'session', 'client')"
        " and (class <> 'idle' or fidelity = 'sampled')"
        " and block in (select unnest($1::int[])) group by all order by count(*) desc, class, event",
        [blocks],
    ).fetchall()
    busy: dict[str, float] = {}
    if any(row[5] for row in rows):
        busy = dict(
            connection.execute(
                "select arm, sum(elapsed_ns)::double from calls where kind = 'transaction'"
                " and block in (select unnest($1::int[])) group by all",
                [blocks],
            ).fetchall()
        )
    figures: list[Waited] = []
    for number, arm in enumerate(measures.arms):
        own = [(row[1], row[2], row[3], row[4] if busy else row[3]) for row in rows if row[0] == arm.name]
        total = busy.get(arm.name, 0.0) if busy else sum(row[3] for row in own)
        rest = total - sum(row[3] for row in own)
        if busy and rest > 0:
            own.append(("CPU", "CPU", 0, rest))
        figures += [
            {"arm": number, "class": kind, "event": event, "samples": count, "share": part / total}
            for kind, event, count, part in own
            if total
        ]
    return figures


def statements(connection: Any, measures: Measures) -> list[StatementRow]:
    """Return count, mean, median and p99 of the exclusive time of each statement in each arm."""
    blocks = [block.index for block in measures.arms[0].blocks]
    rows = connection.execute(
        """
        select statement, kind, arm, count(*), avg(elapsed_ns), quantile_cont(elapsed_ns, 0.5),
               quantile_cont(elapsed_ns, 0.99)
        from calls where kind not in ('transaction', 'skipped')
          and (error is null or coalesce(expected, list_contains($2::varchar[], error)))
          and block in (select unnest($1::int[]))
        group by all order by min(started_ns)
        """,
        [blocks, measures.expected],
    ).fetchall()
    table: dict[tuple[str, str], list[StatementArm]] = {}
    names = [arm.name for arm in measures.arms]
    for statement, kind, arm, ops, mean, median, p99 in rows:
        table.setdefault((statement, kind), []).append(
            {
                "arm": names.index(arm),
                "ops": ops,
                "mean_ns": mean,
                "p50_ns": median,
                "p99_ns": p99,
            }
        )
    return [
        {"statement": statement, "kind": kind, "arms": sorted(arms, key=lambda a: a["arm"])}
        for (statement, kind), arms in table.items()
    ]


def has_table(connection: Any, table: str) -> bool:
    """Return True if the evidence has rows of this table."""
    found = connection.execute("select count(*) from duckdb_views() where view_name = $1", [table]).fetchone()
    return bool(found[0])


def _list(values: Any) -> list[float]:
    return [float(value) for value in values]
