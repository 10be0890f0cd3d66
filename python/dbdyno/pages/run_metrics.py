"""Sections about a run's metrics: each arm against its base with interval and decision; blocks, sweeps, curves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from dbdyno.base import decisions
from dbdyno.base.json_types import TableRow
from dbdyno.page import Cell, Column, Section, Strip, Table, Where
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import arm, columns
from dbdyno.pages.reading import Analysis, Entry

MEANS = "Before and after: geometric means of the blocks."
OF_MANY = (
    'An interval may exclude 0 although the decision is "cannot tell": with several metrics, some exclude 0 by '
    "chance. The decision uses q, the p-value corrected for this (Benjamini and Hochberg)."
)
PROMISED_MOST = "over 1,000"
_P_HELP = "p-value; below it q, the p-value corrected for testing several metrics (false discovery rate)"
_SEEN_HELP = "the smallest change that this run could have detected"
_BLOCKS_HELP = "blocks in this run; below it the number of blocks needed for a decision"


def sections(model: Analysis) -> Iterator[Section]:
    """Yield one table of metrics per comparison of two arms."""
    rows = reading.entries(model, "metrics")
    if not rows:
        return
    pairs = list(dict.fromkeys((row.get("arm"), row.get("baseline")) for row in rows))
    tables = tuple(
        _table(model, pair, [row for row in rows if (row.get("arm"), row.get("baseline")) == pair]) for pair in pairs
    )
    notes = (MEANS, *([OF_MANY] if any(map(_one_of_many, rows)) else []))
    # A plan with factors reports its levels instead; a terminal would show pages of arms against the first one.
    where: Where = "page" if model.get("factors") else "both"
    yield Section("metrics", "Metrics", _level_text(model, rows), tables=tables, notes=notes, where=where)


def _level_text(model: Analysis, rows: Sequence[Entry]) -> str:
    levels = {fmt.percent(row.get("level"), 3, trim=True) for row in rows if row.get("level") is not None}
    within = f", with its {levels.pop()} interval over blocks" if len(levels) == 1 else ""
    matters = reading.threshold(model)
    noise = "Both arms are the same, so every difference here is noise, and a decision would be a false alarm. "
    grey = f" Grey: changes below {fmt.percent(matters, trim=True)}, too small to matter." if matters else ""
    return (
        f"{noise if model['kind'] == 'aa' else ''}One row per metric: the change between the arms{within}; below it "
        f"the interval by bootstrap.{grey}"
    )


def _table(model: Analysis, pair: tuple[Any, Any], rows: list[dict[str, object]]) -> Table:
    one, base = (arm(model, index).value for index in pair)
    matters = reading.threshold(model)
    reach = _reach(rows, matters)
    shown = (
        Column("label", "metric", narrowest=15),
        Column("change", "change", "change"),
        Column("decision", "decision", kind="verdict"),
        Column("interval", "interval", "left"),
        Column("strip", "interval drawn", kind="strip", least=72),
        Column("needs", "blocks", "words", where="text", least=108),
        Column("base", str(base), "words", least=108),
        Column("value", str(one), "words", least=108),
        Column("p", "p, q", "p", help=_P_HELP, where="page"),
        Column("visible", "visible from", "percent", help=_SEEN_HELP, where="page"),
        Column("blocks", "blocks", "count", help=_BLOCKS_HELP, where="page"),
    )
    made = [_row(row, reach, matters) for row in rows]
    return common.table(f"{one} against {base}", shown, made, look="metrics")


def _row(row: TableRow, reach: float, matters: float | None) -> TableRow:
    known = decisions.decision_named(row.get("decision"))
    boot = fmt.interval(row.get("boot_low"), row.get("boot_high"))
    words, needed = fmt.line(row.get("words") or ""), _blocks_needed(row)
    ratio, low, high = (fmt.number(row.get(key)) for key in ("ratio", "low", "high"))
    strip = Strip(ratio, low, high, reach, matters, known.tone) if ratio and ratio > 0 else None
    q = fmt.probability(row.get("q"))
    return {
        "label": Cell(fmt.line(row.get("label") or row.get("metric") or ""), notes=_side(row)),
        "base": fmt.quantity(row.get("base_value"), row.get("unit")),
        "value": fmt.quantity(row.get("value"), row.get("unit")),
        "change": Cell(row.get("ratio"), bold=True),
        "interval": Cell(fmt.interval(low, high), notes=() if boot == fmt.NONE else (boot,)),
        "strip": Cell(strip),
        "decision": Cell(
            known.word, tone=known.tone, notes=(words,) if words and words.lower() != known.word.lower() else ()
        ),
        "p": Cell(row.get("p"), notes=(q,)),
        "visible": row.get("smallest_visible"),
        "blocks": Cell(row.get("blocks"), notes=(f"{needed} needed",) if needed else ()),
        "needs": fmt.count(row.get("blocks")) + (f", needs {needed}" if needed else ""),
    }


def _side(row: Entry) -> tuple[str, ...]:
    return ("higher is better",) if row.get("higher_is_better") else ()


def _one_of_many(row: dict[str, object]) -> bool:
    """Return True if a row's interval excludes "no change" although its decision is "cannot tell"."""
    low, high = fmt.number(row.get("low")), fmt.number(row.get("high"))
    return row.get("decision") == "unclear" and low is not None and high is not None and (low - 1) * (high - 1) > 0


def _blocks_needed(row: dict[str, object]) -> str:
    """Return the range of the number of blocks that a decision needs, as text; "" if the row has a decision."""
    low, high = row.get("tell_low"), row.get("tell_high")
    if row.get("decision") not in ("unclear", "provisional") or low is None:
        return ""
    if low == high:
        return fmt.count(low)
    return f"{fmt.count(low)} to {PROMISED_MOST if high is None else fmt.count(high)}"


def _reach(rows: list[dict[str, object]], matters: float | None) -> float:
    """Return half the width of the interval strips, as the logarithm of a ratio.

    It is 1.7 times the median reach of the intervals, so that one wide interval does not make the others too small to
    see; longer ones are cut off.
    """
    ends = [[fmt.number(row.get(key)) for key in ("ratio", "low", "high")] for row in rows]
    farthest = sorted(max((abs(math.log(end)) for end in three if end and end > 0), default=0.0) for three in ends)
    return max(1.7 * farthest[len(farthest) // 2], math.log1p(3 * (matters or 0.02)))


def blocks(model: Analysis) -> Iterator[Section]:
    """Yield a strip for a terminal with one character per block, in order of time."""
    names = reading.arm_names(model)
    rows = []
    for at, entry in enumerate(reading.entries(model, "figures", "blocks")):
        found = reading.rows(entry, f"figures.blocks[{at}]", ("block", "at_s", "ratio"))
        ratios = [row["ratio"] for row in found]
        if len(ratios) > 1:
            name = f"{reading.arm_name(names, entry.get('arm'))}, {fmt.line(entry.get('metric'))}"
            rows.append({"name": name, "low": min(ratios), "high": max(ratios), "line": Cell(ratios)})
    if rows and not model.get("factors"):
        shown = (Column("name", "arm, metric", narrowest=15), *columns("low:change:from high:change:to"))
        line = Column("line", "in order of time", kind="spark")
        yield Section("blocks", "Block by block", tables=(common.table("", (*shown, line), rows),), where="text")


def sweep(model: Analysis) -> Iterator[Section]:
    """Yield, for a terminal, a line of throughput for each curve of a sweep."""
    rows = []
    for curve in reading.entries(model, "figures", "sweep", "curves"):
        points = reading.entries(curve, "points")
        rates = [rate for p in points if (rate := fmt.number(p.get("per_s"))) is not None]
        if rates:
            first, last = fmt.rate(rates[0]), fmt.rate(rates[-1])
            cells = {"name": fmt.line(curve.get("name") or ""), "from": first, "to": last, "line": Cell(rates)}
            rows.append({**cells, "each": points[-1].get("mean_ns")})
    axis = fmt.line(reading.dig(model, "figures", "sweep", "x_label") or "")
    if rows and not model.get("factors"):
        shown = columns("name:text:curve from:words to:words each:ns:each,_at_the_end line:spark:in_order")
        table = common.table("", shown, rows)
        yield Section("sweep", f"Throughput over {axis}", tables=(table,), where="text")


def shapes(model: Analysis) -> Iterator[Section]:
    """Yield the shapes fitted to each curve, with the one that fits the data best."""
    curves = reading.curves(model)
    parts = []
    for curve in curves:
        period = fmt.size(curve.get("period_bytes")) if curve.get("period_bytes") else ""
        sentence = fmt.line(curve.get("sentence") or "") + (f" Period: {period}." if period else "")
        rows = [
            {
                "name": Cell(fmt.line(one.get("name") or ""), tag="chosen" if one.get("chosen") else ""),
                "parameters": one.get("parameters"),
                "bic": one.get("bic"),
            }
            for one in reading.entries(curve, "models")
        ]
        shown = (*columns("name:text:shape parameters:count"), Column("bic", "BIC", "number5", help=_BIC))
        table = (common.table("", shown, rows, look="slim", where="page"),) if rows else ()
        title = arm(model, curve.get("arm")).value if len(curves) > 1 else ""
        parts.append(Section("", title, sentences=(sentence,) if sentence else (), tables=table))
    if parts:
        yield Section("shapes", "The shape of the curve", parts=tuple(parts))


_BIC = "Bayesian information criterion: smaller is better"
