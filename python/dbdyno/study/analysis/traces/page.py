"""Parts of the model of two sets of traces that the model of an experiment has, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from dbdyno.study.analysis.contract.parts import AccountRow, OptionalNumbers, QuantileRatios, Waited
from dbdyno.study.analysis.contract.rows import ArmRow, RunRow, TestRow
from dbdyno.study.analysis.figure_data.pictures import QUANTILE_GRID
from dbdyno.study.analysis.traces.blocks import QUANTILES, Blocks
from dbdyno.study.analysis.traces.verdict import UNITS
from dbdyno.trace.page import facts
from dbdyno.trace.source import Traces

if TYPE_CHECKING:
    from dbdyno.study.analysis.traces.account import Account
    from dbdyno.study.analysis.traces.causes import Explanation
    from dbdyno.study.analysis.traces.options import ComparisonOptions
    from dbdyno.study.analysis.traces.verdict import UsedBlocks


def account(explained: Explanation) -> AccountRow:
    """Return times and counts of both sets; the times are totals, or per execution or transaction (`basis`)."""
    names = (
        "response_ns",
        "database_ns",
        "think_ns",
        "unexplained_ns",
        "executions",
        "calls",
        "round_trips",
        "rows",
        "hard_parses",
        "commits",
    )
    return {
        "basis": explained.basis,
        "has_response": all(own.has_waits for own in explained.accounts),
        "response_ns": list(explained.response_ns),
        "database_ns": list(explained.database_ns),
        "sides": [{name: getattr(own, name) for name in names} for own in explained.accounts],
    }


def arm(at: int, traces: Traces, blocks: Blocks, account: Account, values: Any, options: ComparisonOptions) -> ArmRow:
    """Return one set of traces as an arm of the model."""
    import numpy as np

    about = facts(traces)
    seconds = float(blocks.seconds.sum())
    return {
        "index": at,
        "name": options.names[at],
        "description": ", ".join(
            [
                _number(about["files"], "file"),
                _sessions(traces, about["sessions"]),
                f"{seconds:.3g} s of session time",
            ]
        ),
        "changes": {},
        "sessions": about["sessions"],
        "rate_per_s": None,
        "baseline": at == 0,
        "ops": int(values.size),
        "errors": _errors(traces),
        "retries": 0,
        "skipped": 0,
        "throughput_per_s": account.executions / seconds if seconds else None,
        "mean_ns": float(values.mean()),
        "sd_ns": float(values.std(ddof=1)) if values.size > 1 else None,
        "quantiles_ns": {name: float(np.quantile(values, q)) for name, q in QUANTILES.items()},
        "max_ns": float(values[-1]),
    }


def _sessions(traces: Traces, count: int) -> str:
    """Return the number of sessions as text, such as `7 sessions, 1 of them without a call`.

    A session without a call is not part of any comparison.
    """
    called = traces.rows("select count(distinct session) as n from calls")[0]["n"]
    left = count - called
    return _number(count, "session") + (f", {left} of these without a call" if 0 < left < count else "")


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _errors(traces: Traces) -> int:
    row = traces.connection.execute("select count(*) from errors").fetchone()
    return int(row[0]) if row else 0


def classical(values: tuple[Any, Any]) -> list[TestRow]:
    """Return the classical tests over all values, which assume that the values are independent."""
    from dbdyno.stats.classical import kolmogorov_smirnov, mann_whitney, welch

    if min(v.size for v in values) < 2:
        return []
    found = [test(*values) for test in (welch, mann_whitney, kolmogorov_smirnov)]
    return [
        {
            "arm": 1,
            "baseline": 0,
            "test": t.test,
            "statistic": t.statistic,
            "df": t.df,
            "log10_p": t.log10_p,
            "effect": t.effect,
            "note": t.note,
        }
        for t in found
    ]


def quantile_ratio(values: tuple[Any, Any]) -> list[QuantileRatios]:
    """Return the ratio of the second set to the base for each quantile, pooled over the blocks."""
    import numpy as np

    smallest = min(v.size for v in values)
    grid = [q for q in QUANTILE_GRID if min(q, 1 - q) * smallest >= 10]
    if not grid:
        return []
    base, other = (np.maximum(np.quantile(v, grid), 1.0) for v in values)
    ratio = [float(r) for r in other / base]
    nothing: OptionalNumbers = [None] * len(grid)
    return [{"arm": 1, "quantile": grid, "ratio": ratio, "low": nothing, "high": nothing}]


def classes(sets: tuple[Traces, Traces]) -> list[Waited]:
    """Return the share of session time by class and event in each set."""
    found: list[Waited] = []
    for at, traces in enumerate(sets):
        whole = facts(traces)["elapsed_ns"] or 1
        rows = traces.rows(
            """
            select case when think then 'idle' else coalesce(class, 'other') end as class, event,
                   sum(elapsed_ns) / $1 as share from waits group by all
            union all
            select 'CPU', 'CPU', sum(coalesce(self_cpu_ns, 0)) / $1 from calls
            order by share desc
            """,
            [whole],
        )
        found += [cast("Waited", {"arm": at, **row, "samples": None}) for row in rows if row["share"]]
    return found


def run(sets: tuple[Traces, Traces], used: UsedBlocks, options: ComparisonOptions) -> RunRow:
    """Return the head of the page: the run as a row of the model."""
    a, b = options.names
    subject = f"the waits for {options.event}" if options.event else "the client's executions"
    return {
        "id": f"{a} and {b}",
        "title": f"Traces: {b} against {a}",
        "question": f"Did {subject} become faster or slower from {a} to {b}, and why?",
        "status": "complete",
        "started_at": None,
        "duration_s": None,
        "tool_version": sets[1].manifest.tool_version,
        "seed": None,
        "blocks_planned": None,
        "blocks_whole": None if used.unit == "batch" and not options.event else min(used.counts),
        "warmup_blocks": None,
        "switch": None,
        "slice_ms": None,
        "order": f"not interleaved; blocks are {UNITS[used.unit]}",
        "randomised": False,
        "open_loop": False,
        "threshold": options.threshold,
        "plan_toml": None,
    }
