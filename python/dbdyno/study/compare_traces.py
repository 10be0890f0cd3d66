"""Two sets of traces against each other: the same model as an experiment's, kind "traces".

The blocks are sessions, files or slices of time (`trace.blocks`); they are not pairs, so the sets
are compared by Welch's t on the logarithms of the blocks' values. The headline is the time per
execution of the client: its calls, and its waits between calls but for the network and thinking.
With an event it is the mean of that event's waits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbdyno.errors import TraceError
from dbdyno.stats.words import change, duration, interval
from dbdyno.study.analyse import cleaned
from dbdyno.study.pictures import QUANTILE_GRID, distribution, tail
from dbdyno.trace.blocks import QUANTILES, Blocks, cut, per_block, population, unit_of
from dbdyno.trace.lines import compare_lines, metric_row
from dbdyno.trace.page import facts, warnings
from dbdyno.trace.source import Traces
from dbdyno.trace.tails import compare_tails

if TYPE_CHECKING:
    from dbdyno.stats.blocks import BlockComparison
    from dbdyno.stats.decide import Verdict

SCHEMA = 1
LEVEL, THRESHOLD = 0.95, 0.02
_UNITS = {"session": "sessions", "file": "files", "slice": "slices of time"}


@dataclass(frozen=True)
class Question:
    """How two sets are compared. `names` are shown; `event` makes its waits the population."""

    names: tuple[str, str] = ("A", "B")
    event: str | None = None
    merge_literals: bool = False
    level: float = LEVEL
    threshold: float = THRESHOLD


def compare_traces(base: Traces, other: Traces, question: Question | None = None) -> dict[str, Any]:
    """The analysis of `other` against `base`. Raises `TraceError` when a set holds nothing to
    compare."""
    asked = question or Question()
    sets = (base, other)
    unit, slices = unit_of(sets)
    cuts = tuple(cut(s, unit, slices, merge_literals=asked.merge_literals, event=asked.event) for s in sets)
    blocks = (cuts[0], cuts[1])
    values = (population(base), population(other))
    for name, found in zip(asked.names, values, strict=True):
        if not found.size:
            what = f"no wait for {asked.event!r}" if asked.event else "no call of the client"
            raise TraceError(f"{what} in it", where=name, next_step="`dbdyno trace check` says more")
    whole = [v.astype("uint64") for v in values]
    numbers = (per_block(base, blocks[0]), per_block(other, blocks[1]))
    comparisons = _comparisons(numbers, blocks, asked)
    verdict = _decided(comparisons, asked)
    shares = _contributions(sets, numbers)
    model: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": "traces",
        "run": _run(sets, blocks, asked),
        "verdict": _verdict(verdict, blocks, asked, shares),
        "arms": [_arm(at, *about, asked) for at, about in enumerate(zip(sets, blocks, numbers, values, strict=True))],
        "metrics": [{"arm": 1, "baseline": 0, **metric_row(c)} for c in verdict.arms[0].comparisons],
        "classical": _classical(values),
        "lines": compare_lines(
            sets,
            blocks,
            (numbers[0]["executions"], numbers[1]["executions"]),
            level=asked.level,
            threshold=asked.threshold,
        ),
        "tails": compare_tails(sets, values, asked.level),
        "statements": [],
        "figures": {
            "distribution": distribution(list(whole)),
            "quantile_ratio": _quantile_ratio(values),
            "tail": tail(list(whole)),
            "waits": _classes(sets),
            "contributions": shares,
            "blocks": [],
            "heatmap": [],
            "curve": None,
        },
        "gates": [],
        "method": {"sentences": _method(blocks, asked), "overhead": None},
        "engine": {"facts": {}, "settings": []},
        "warnings": _warnings(sets, blocks, asked),
    }
    return cleaned(model)


def _metrics(asked: Question) -> list[tuple[str, str, str]]:
    """Name, label and unit of each metric; the first carries the verdict; less is better."""
    if asked.event:
        what = "wait"
        first = [("mean", f"mean {asked.event}", "ns")]
        more = [("per_execution", f"{asked.event} per execution", "ns")]
    else:
        what = "call"
        first = [("per_execution", "time per execution", "ns")]
        more = [("cpu", "CPU per execution", "ns"), ("wait", "waits per execution", "ns"), ("mean", "mean call", "ns")]
    names = {"p50": "median"}
    return [*first, *more, *((n, f"{names.get(n, n)} {what}", "ns") for n in QUANTILES)]


def _value(name: str, numbers: dict[str, Any], event: str | None) -> Any:
    """A metric by block."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        if name == "per_execution" and event:
            return numbers["n"] * numbers["mean"] / numbers["executions"]
        if name == "per_execution":
            return (np.nan_to_num(numbers["busy"]) + numbers["between"]) / numbers["executions"]
        if name == "cpu":
            return numbers["cpu"] / numbers["executions"]
        if name == "wait":
            return (numbers["inside"] + numbers["between"]) / numbers["executions"]
    return numbers[name]


def _comparisons(
    numbers: tuple[dict[str, Any], dict[str, Any]], blocks: tuple[Blocks, Blocks], asked: Question
) -> list[BlockComparison]:
    from dbdyno.stats.unpaired import compare_unpaired

    return [
        compare_unpaired(
            _value(name, numbers[0], asked.event),
            _value(name, numbers[1], asked.event),
            higher_is_better=False,
            level=asked.level,
            threshold=asked.threshold,
            in_order=blocks[0].unit == "slice",
            metric=name,
            label=label,
            unit=unit,
        )
        for name, label, unit in _metrics(asked)
    ]


def _decided(comparisons: list[BlockComparison], asked: Question) -> Verdict:
    from dbdyno.stats.decide import decide

    base, other = asked.names
    return decide({other: comparisons}, baseline=base, headline=comparisons[0].metric)


def _verdict(
    verdict: Verdict, blocks: tuple[Blocks, Blocks], asked: Question, shares: list[dict[str, Any]]
) -> dict[str, Any]:
    """The decision, and in sentences what it rests on and what made the difference."""
    lead = verdict.arms[0].headline
    number = f"{lead.blocks} block{'' if lead.blocks == 1 else 's'}"
    told = f"{blocks[0].count} and {blocks[1].count} {_UNITS[blocks[0].unit]}"
    sentences = [s for s in verdict.sentences if s != verdict.headline]
    if lead.decision in ("faster", "slower"):
        sentences[:0] = _because(shares)
    if not math.isnan(lead.ratio):
        sentences.insert(
            0,
            f"{duration(lead.base_value)} in {asked.names[0]}, {duration(lead.value)} in"
            f" {asked.names[1]}: {change(lead)} ({interval(lead)}).",
        )
    return {
        "decision": verdict.decision,
        "headline": verdict.headline.replace(number, told),
        "sentences": sentences,
    }


def _because(shares: list[dict[str, Any]]) -> list[str]:
    """The lines that make most of the difference, in a sentence."""
    whole = sum(row["difference_ns"] for row in shares)
    same = [row for row in shares if row["difference_ns"] * whole > 0]
    same.sort(key=lambda row: -abs(row["difference_ns"]))
    if not same or not whole:
        return []
    parts = ", ".join(f"{row['name']} {_signed(row['difference_ns'])}" for row in same[:3])
    return [f"Per execution {_signed(whole)} over all; most of it: {parts}."]


def _signed(ns: float) -> str:
    return f"{'+' if ns > 0 else '-'}{duration(abs(ns))}"


def _contributions(sets: tuple[Traces, Traces], numbers: tuple[dict[str, Any], dict[str, Any]]) -> list[dict[str, Any]]:
    """Time per execution by CPU, event and rest, of each set: the parts of the headline."""
    import numpy as np

    sides: list[dict[str, float]] = []
    classes: dict[str, str] = {"CPU": "CPU", "unaccounted": "other"}
    for traces, own in zip(sets, numbers, strict=True):
        executions = float(np.nansum(own["executions"])) or math.nan
        rows = traces.rows(
            """
            select event, any_value(class) as class, sum(elapsed_ns)::bigint as time_ns from w
            where call is not null or (coalesce(class, '') not in ('idle', 'network')
              and not coalesce(think, false)) group by event
            """
        )
        parts = {row["event"]: row["time_ns"] / executions for row in rows}
        classes |= {row["event"]: row["class"] for row in rows}
        cpu, busy, inside = (float(np.nansum(own[name])) for name in ("cpu", "busy", "inside"))
        parts["CPU"] = cpu / executions
        parts["unaccounted"] = (busy - cpu - inside) / executions
        sides.append(parts)
    rows = [
        {
            "name": name,
            "class": classes.get(name) or "other",
            "base_ns": sides[0].get(name, 0.0),
            "value_ns": sides[1].get(name, 0.0),
            "difference_ns": sides[1].get(name, 0.0) - sides[0].get(name, 0.0),
        }
        for name in dict.fromkeys([*sides[0], *sides[1]])
    ]
    return sorted(rows, key=lambda row: -abs(row["difference_ns"]))


def _arm(
    at: int, traces: Traces, blocks: Blocks, numbers: dict[str, Any], values: Any, asked: Question
) -> dict[str, Any]:
    import numpy as np

    about = facts(traces)
    executions = float(np.nansum(numbers["executions"]))
    seconds = float(blocks.seconds.sum())
    return {
        "index": at,
        "name": asked.names[at],
        "description": f"{about['files']} files, {about['sessions']} sessions, {seconds:.3g} s of session time",
        "changes": {},
        "sessions": about["sessions"],
        "rate_per_s": None,
        "baseline": at == 0,
        "ops": int(values.size),
        "errors": _errors(traces),
        "retries": 0,
        "skipped": 0,
        "throughput_per_s": executions / seconds if seconds else None,
        "mean_ns": float(values.mean()),
        "sd_ns": float(values.std(ddof=1)) if values.size > 1 else None,
        "quantiles_ns": {name: float(np.quantile(values, q)) for name, q in QUANTILES.items()},
        "max_ns": float(values[-1]),
    }


def _errors(traces: Traces) -> int:
    row = traces.connection.execute("select count(*) from errors").fetchone()
    return int(row[0]) if row else 0


def _classical(values: tuple[Any, Any]) -> list[dict[str, Any]]:
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


def _quantile_ratio(values: tuple[Any, Any]) -> list[dict[str, Any]]:
    """Quantile by quantile, pooled over the blocks: other over base."""
    import numpy as np

    smallest = min(v.size for v in values)
    grid = [q for q in QUANTILE_GRID if min(q, 1 - q) * smallest >= 10]
    if not grid:
        return []
    base, other = (np.maximum(np.quantile(v, grid), 1.0) for v in values)
    ratio = [float(r) for r in other / base]
    nothing = [None] * len(grid)
    return [{"arm": 1, "quantile": grid, "ratio": ratio, "low": nothing, "high": nothing}]


def _classes(sets: tuple[Traces, Traces]) -> list[dict[str, Any]]:
    """Share of the session time by class and event, per set: the larger ones; the rest is other."""
    found: list[dict[str, Any]] = []
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
        found += [{"arm": at, **row, "samples": None} for row in rows if row["share"]]
    return found


def _run(sets: tuple[Traces, Traces], blocks: tuple[Blocks, Blocks], asked: Question) -> dict[str, Any]:
    a, b = asked.names
    subject = f"the waits for {asked.event}" if asked.event else "the client's executions"
    return {
        "id": f"{a} and {b}",
        "title": f"Traces: {b} against {a}",
        "question": f"Did {subject} become faster or slower from {a} to {b}?",
        "status": "complete",
        "started_at": None,
        "duration_s": None,
        "tool_version": sets[1].manifest.get("tool_version"),
        "seed": None,
        "blocks_planned": None,
        "blocks_whole": min(blocks[0].count, blocks[1].count),
        "warmup_blocks": None,
        "switch": None,
        "slice_ms": None,
        "order": f"not interleaved; blocks are {_UNITS[blocks[0].unit]}",
        "randomised": False,
        "open_loop": False,
        "threshold": asked.threshold,
        "plan_toml": None,
    }


def _method(blocks: tuple[Blocks, Blocks], asked: Question) -> list[str]:
    unit = _UNITS[blocks[0].unit]
    sentences = [
        f"Blocks are {unit}: {blocks[0].count} in {asked.names[0]}, {blocks[1].count} in"
        f" {asked.names[1]}. Each gives one number per metric; the sets are compared by Welch's t"
        f" on the logarithms, at {asked.level * 100:g} %.",
        "Time per execution: the client's calls with all that they hold, and its waits between"
        " calls but for the network and thinking, over the number of its executions.",
        f"Differences within {asked.threshold * 100:g} % count as none. The headline is tested by"
        " itself; the other metrics share a false-discovery rate (Benjamini and Hochberg), and so"
        " do all lines.",
        "Statements and kinds of call are compared by their exclusive time.",
    ]
    if blocks[0].unit == "slice":
        sentences.append(
            "Slices of one trace follow each other and repeat each other; the intervals are"
            " widened by their autocorrelation."
        )
    return sentences


def _warnings(sets: tuple[Traces, Traces], blocks: tuple[Blocks, Blocks], asked: Question) -> list[dict[str, str]]:
    found = [
        {**warning, "text": f"{name}: {warning['text']}"}
        for name, traces in zip(asked.names, sets, strict=True)
        for warning in warnings(traces)
    ]
    found.append(
        {
            "code": "not interleaved",
            "text": "The two sets were traced at different times or places: whatever else differed"
            " between them counts as difference.",
            "next": "trace both variants in turns, under the same load",
        }
    )
    if blocks[0].unit == "slice":
        found.append(
            {
                "code": "few sessions",
                "text": "There are fewer than 5 sessions in a set, so slices of time stand for blocks;"
                " they say nothing about other sessions.",
                "next": "trace 5 sessions or more of each variant",
            }
        )
    return found
