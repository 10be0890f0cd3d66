"""Comparison of two sets of traces, as a model like that of an experiment, with kind "traces".

It starts with two numbers, the response time (with round trips, without think time) and the database time, and with the
causes of their difference, which add up to it (`causes`). The numbers are facts of the traces. Whether new traces would
show the same is judged over blocks: pairs of files, several sessions, or several files. If one run is compared with
another, it is judged by the variation among the executions within each run (`stats.stratified`). If an event is
specified, the verdict is on the mean time of its waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import TraceError
from dbdyno.base.json_types import TableRow
from dbdyno.stats.comparison import ComparisonRow
from dbdyno.study.analysis.analyse import json_model
from dbdyno.study.analysis.contract.declarations import SCHEMA
from dbdyno.study.analysis.contract.rows import Figures, Model
from dbdyno.study.analysis.figure_data.pictures import distribution, tail
from dbdyno.study.analysis.traces import page as traces_page
from dbdyno.study.analysis.traces import verdict as traces_verdict
from dbdyno.study.analysis.traces.account import Account, account
from dbdyno.study.analysis.traces.blocks import (
    BLOCKS_LEAST,
    FAMILIES,
    QUANTILES,
    Blocks,
    Line,
    Unit,
    block_values,
    is_light,
    lines_of,
    make_blocks,
    population,
    unit_of,
)
from dbdyno.study.analysis.traces.causes import Explanation, contributions, explain
from dbdyno.study.analysis.traces.explanation import explanation_of
from dbdyno.study.analysis.traces.lines import compare_lines, judge
from dbdyno.study.analysis.traces.options import ComparisonOptions
from dbdyno.study.analysis.traces.pairs import Pairs, pair
from dbdyno.study.analysis.traces.reasons import reasons
from dbdyno.study.analysis.traces.statement_changes import SAME_WORK, are_transactions_alike, differ, rows_of
from dbdyno.study.analysis.traces.statement_matching import match
from dbdyno.study.analysis.traces.strata import What, make_batches, strata
from dbdyno.study.analysis.traces.tails import compare_tails
from dbdyno.trace.holders import holders
from dbdyno.trace.plans import plans_of
from dbdyno.trace.source import Traces

if TYPE_CHECKING:
    from dbdyno.stats.comparison import BlockComparison
    from dbdyno.stats.stratified import Stratum
    from dbdyno.study.analysis.traces.blocks import Numbers

Sets = tuple[Traces, Traces]


def compare_traces(base: Traces, other: Traces, question: ComparisonOptions | None = None) -> Model:
    """Return the analysis of `other` compared with `base`.

    Raises:
        TraceError: A set contains nothing to compare.
    """
    from dbdyno.stats.blocks import row_of
    from dbdyno.stats.decide import decide

    asked = question or ComparisonOptions()
    sets = (base, other)
    pairs = pair(sets, asked.pair) if asked.pair else None
    known = match(sets, merge_literals=asked.merge_literals)
    unit = "pair" if pairs and len(pairs.keys) >= BLOCKS_LEAST else unit_of(sets)
    read = [_read(traces, unit, name, asked) for traces, name in zip(sets, asked.names, strict=True)]
    one, two = read
    explained = explain((one.account, two.account), known, (holders(base), holders(other)))
    (numbers, blocks), values = _divided(read), (one.values, two.values)
    comparisons = _comparisons(sets, read, explained, asked)
    used = _blocks_used(comparisons[0].metric, read, explained, asked)
    verdict = decide({asked.names[1]: comparisons}, baseline=asked.names[0], headline=comparisons[0].metric)
    why = reasons(explained, asked.names)
    counted = "executions" if _per(explained, blocks) != "transaction" else "transactions"
    once = _share_of_single_calls(sets, explained) if unit == "batch" and not asked.event else 0.0
    changed = rows_of(explained.changes, _compare_statements(sets, explained, asked), explained.response_ns)
    _add_steps(sets, changed)
    model: Model = {
        "schema": SCHEMA,
        "kind": "traces",
        "run": traces_page.run(sets, used, asked),
        "verdict": traces_verdict.verdict(verdict, used, asked, explained, why, once),
        "account": traces_page.account(explained),
        "reasons": why,
        "why": [explanation_of(explained, why, asked.names).as_dict()],
        "changes": changed,
        "pairs": _pairs(pairs, numbers) if pairs and unit == "pair" else [],
        "arms": [
            traces_page.arm(at, *about, asked)
            for at, about in enumerate(zip(sets, blocks, explained.accounts, values, strict=True))
        ],
        "metrics": [{"arm": 1, "baseline": 0, **row_of(c)} for c in verdict.arms[0].comparisons],
        "classical": traces_page.classical(values),
        "lines": compare_lines(
            sets,
            (one.lines, two.lines),
            blocks,
            (numbers[0][counted], numbers[1][counted]),
            explained.scales,
            asked,
        ),
        "tails": compare_tails(sets, values, asked.level),
        "statements": [],
        "figures": _figures(sets, values, explained),
        "gates": [],
        "method": {"sentences": traces_verdict.method(used, asked, explained), "overhead": None},
        "engine": {"facts": {}, "settings": []},
        "warnings": traces_verdict.warnings_of(sets, blocks, asked, explained, pairs),
    }
    return json_model(model)


@dataclass(frozen=True)
class _Side:
    """Figures of one set that a comparison needs, so that its rows can be freed before the other set is read.

    Attributes:
        account: Account of its response time.
        blocks: Division of the set into blocks.
        numbers: Values of each block.
        values: All times that represent the set [ns], sorted.
        lines: Its lines by family.
    """

    account: Account
    blocks: Blocks
    numbers: Numbers
    values: Any
    lines: dict[str, dict[str, Line]]


def _read(traces: Traces, unit: Unit, name: str, options: ComparisonOptions) -> _Side:
    """Return the figures of a set that a comparison needs, and free the set's rows.

    Raises:
        TraceError: The set has no times to compare.
    """
    found = account(traces)
    blocks = make_blocks(traces, unit, event=options.event)
    values = population(traces)
    if not values.size:
        what = f"no wait for {options.event!r}" if options.event else "no call of the client"
        raise TraceError(f"there is {what}", where=name, next_step="see the details with `dbdyno trace check`")
    numbers = _heavy(block_values(traces, blocks), blocks)
    make_batches(traces)
    return _Side(found, blocks, numbers, values, {family: lines_of(traces, family, blocks) for family in FAMILIES})


def _divided(sides: Sequence[_Side]) -> tuple[tuple[Numbers, Numbers], tuple[Blocks, Blocks]]:
    """Return the values of the blocks of both sets, and how the sets are divided."""
    one, two = sides
    return (one.numbers, two.numbers), (one.blocks, two.blocks)


def _figures(sets: Sets, values: tuple[Any, Any], explained: Explanation) -> Figures:
    """Return the data of each chart of the page, by the name of the chart."""
    whole = [v.astype("uint64") for v in values]
    return {
        "distribution": distribution(whole),
        "quantile_ratio": traces_page.quantile_ratio(values),
        "tail": tail(whole),
        "waits": traces_page.classes(sets),
        "contributions": contributions(explained),
        "blocks": [],
        "heatmap": [],
        "curve": None,
    }


def _comparisons(
    sets: Sets, sides: Sequence[_Side], explained: Explanation, options: ComparisonOptions
) -> list[BlockComparison]:
    """Return the comparisons of whole-set metrics; the first one decides the verdict."""
    numbers, blocks = _divided(sides)
    counted = _per(explained, blocks)
    per = f" per {counted}" if counted else ""
    whole: list[tuple[What | str, str]] = [("response", "response time"), ("database", "database time"), ("cpu", "CPU")]
    if not all(account.has_waits for account in explained.accounts):
        whole = whole[1:]
    found = []
    if not options.event:
        for name, label in whole:
            if blocks[0].unit == "batch":
                found.append(_totals(sets, name, label + per, explained, options))  # type: ignore[arg-type]
            else:
                found.append(_judge(numbers, blocks, name, label + per, options, per=counted))
        if blocks[0].unit != "batch":
            found.append(_judge(numbers, blocks, "wait", f"waits{per}", options, per=counted))
    what = "wait" if options.event else "call"
    labels = {"mean": f"mean {options.event or 'call'}", "p50": f"median {what}"}
    found += [_judge(numbers, blocks, n, labels.get(n, f"{n} {what}"), options) for n in ("mean", *QUANTILES)]
    return [found[0], *(c for c in found[1:] if c.blocks >= 2)]


def _per(explained: Explanation, blocks: tuple[Blocks, Blocks]) -> str:
    """Return the unit by which block times are divided: execution, transaction, or empty for none.

    If both sets did the same work, it is empty if the blocks are neither sessions nor files, or if the numbers of
    executions differ and the transactions are not alike.
    """
    if explained.basis != "run":
        return explained.basis
    if blocks[0].unit not in ("session", "file"):
        return ""
    one, two = explained.accounts
    if not differ(one.executions, two.executions, SAME_WORK):
        return "execution"
    is_counted = not differ(one.commits, two.commits, SAME_WORK) and are_transactions_alike(one, two)
    return "transaction" if is_counted else ""


def _heavy(numbers: Numbers, blocks: Blocks) -> Numbers:
    """Return the values of the blocks, with NaN for sessions and files that did almost nothing."""
    import numpy as np

    if blocks.unit not in ("session", "file"):
        return numbers
    light = is_light(numbers["n"])
    return {name: np.where(light, np.nan, values) for name, values in numbers.items()}


def _judge(
    numbers: tuple[Numbers, Numbers],
    blocks: tuple[Blocks, Blocks],
    name: str,
    label: str,
    options: ComparisonOptions,
    *,
    per: str = "",
) -> BlockComparison:
    return judge(
        blocks[0].unit,
        _values(numbers, name, per),
        level=options.level,
        threshold=options.threshold,
        metric=name,
        label=label,
        unit="ns",
    )


def _values(numbers: tuple[Numbers, Numbers], name: str, per: str) -> tuple[Any, Any]:
    """Return a value of each block of both sets, divided by its executions or transactions if `per` is set."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        one, two = (side[name] / side[f"{per}s"] if per else side[name] for side in numbers)
    return one, two


def _blocks_used(
    metric: str, sides: Sequence[_Side], explained: Explanation, options: ComparisonOptions
) -> traces_verdict.UsedBlocks:
    """Return the number of blocks behind the verdict, without blocks that have no value for `metric`."""
    import numpy as np

    numbers, blocks = _divided(sides)
    if blocks[0].unit == "batch":
        return traces_verdict.UsedBlocks(
            "batch", (blocks[0].count, blocks[1].count), (blocks[0].count, blocks[1].count)
        )
    values = _values(numbers, metric, "" if options.event else _per(explained, blocks))
    good = [np.isfinite(side) & (side > 0) for side in values]
    if blocks[0].unit == "pair":
        good = [good[0] & good[1]] * 2
    counts = (int(good[0].sum()), int(good[1].sum()))
    return traces_verdict.UsedBlocks(blocks[0].unit, counts, (blocks[0].count, blocks[1].count))


def _totals(sets: Sets, what: What, label: str, explained: Explanation, options: ComparisonOptions) -> BlockComparison:
    from dbdyno.stats.stratified import compare_totals

    sides = [[s for own in strata(traces, what).values() for s in own] for traces in sets]
    return compare_totals(
        *sides,
        scales=explained.scales,
        level=options.level,
        threshold=options.threshold,
        metric=what,
        label=label,
        unit="ns",
    )


def _share_of_single_calls(sets: Sets, explained: Explanation) -> float:
    """Return the share of the difference that comes from calls and waits made once."""
    from dbdyno.stats.stratified import single_part

    sides = [
        single_part([s for own in strata(traces, "response").values() for s in own]) * scale
        for traces, scale in zip(sets, explained.scales, strict=True)
    ]
    difference = abs(explained.response_ns[1] - explained.response_ns[0])
    return abs(sides[1] - sides[0]) / difference if difference else 0.0


def _compare_statements(sets: Sets, explained: Explanation, options: ComparisonOptions) -> dict[str, ComparisonRow]:
    """Return, for each statement that both sets contain, the comparison of its time per execution."""
    from dbdyno.stats.blocks import decide_metric, row_of
    from dbdyno.stats.decide import benjamini_hochberg
    from dbdyno.stats.stratified import compare_totals

    calls: list[dict[str, list[Stratum]]] = [strata(traces, "database") for traces in sets]
    found: dict[str, BlockComparison] = {}
    for key, change in explained.changes.items():
        executions = [side.executions if side else 0 for side in change.sides]
        if all(executions) and all(key in side for side in calls):
            found[key] = compare_totals(
                *(side[key] for side in calls),
                scales=(1 / executions[0], 1 / executions[1]),
                level=options.level,
                threshold=options.threshold,
                metric="time",
                label="time per execution",
                unit="ns",
            )
    qs = benjamini_hochberg([comparison.p for comparison in found.values()])
    return {key: row_of(decide_metric(comparison, q)) for (key, comparison), q in zip(found.items(), qs, strict=True)}


def _add_steps(sets: Sets, changed: list[TableRow]) -> None:
    """Add the steps of both plans to each statement whose plan changed."""
    for at, traces in enumerate(sets):
        traces.connection.execute("create or replace temp table keys as select statement, key from matched")
        for row in changed:
            plans = plans_of(traces, row["statement"]) if "plan" in row["what"] and row["sides"][at] else []
            if plans:
                main = row["sides"][at]["plans"][0] if row["sides"][at]["plans"] else ""
                chosen = next((plan for plan in plans if str(plan["plan_hash"]) == main), plans[0])
                row["sides"][at]["steps"] = chosen["lines"]


def _pairs(pairs: Pairs, numbers: tuple[Numbers, Numbers]) -> list[dict[str, object]]:
    """Return each pair with its response and database times."""
    return [
        {"key": key, **{f"{name}_ns": [float(side[name][at]) for side in numbers] for name in ("response", "database")}}
        for at, key in enumerate(pairs.keys)
    ]
