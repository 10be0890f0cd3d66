"""Line by line: events, kinds of call and statements of two sets of traces against each other."""

from __future__ import annotations

from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import account, base

FAMILIES = {"event": "Events", "call": "Kinds of call", "statement": "Statements"}
JUDGED = ("mean", "per_execution")
_SAME = "No difference that matters"
_MORE = {"faster": {"word": "Less", "tone": "good"}, "slower": {"word": "More", "tone": "bad"}}


def view(analysis: Analysis) -> base.View | None:
    """A table per family, or None without lines."""
    given = reading.entries(analysis, "lines")
    if not given:
        return None
    names = reading.arm_names(analysis)
    shown = [names.get(0, "A"), names.get(1, "B")]
    tables = []
    for family, title in FAMILIES.items():
        rows = [_row(row, shown) for row in given if row.get("family") == family]
        if rows:
            tables.append({"title": title, "rows": rows, "family": family})
    return {"names": shown, "tables": tables, "per": account.basis(analysis)}


def _row(row: dict[str, Any], names: list[str]) -> base.View:
    sides = row.get("sides") or [{}, {}]
    metrics = {metric.get("metric"): metric for metric in row.get("metrics") or []}
    only = row.get("only_in")
    return {
        "name": fmt.line(row.get("name") or "no statement"),
        "text": fmt.line(row.get("text") or "", 160),
        "class": fmt.line(row.get("class") or ""),
        "only": f"only in {names[only]}" if isinstance(only, int) else "",
        "counts": [fmt.count(side.get("count")) for side in sides],
        "means": [fmt.duration(side.get("mean_ns")) for side in sides],
        "difference": fmt.difference(row.get("difference_ns")),
        "mean": _judged(metrics.get("mean"), is_length=True),
        "per_execution": _judged(metrics.get("per_execution"), is_length=False),
        "median": fmt.change((metrics.get("p50") or {}).get("ratio")),
        "p99": fmt.change((metrics.get("p99") or {}).get("ratio")),
        "rate": fmt.change((metrics.get("count_per_s") or {}).get("ratio")),
        "time": fmt.change((metrics.get("time_per_s") or {}).get("ratio")),
    }


def _judged(metric: dict[str, Any] | None, *, is_length: bool) -> base.View | None:
    """A metric's change with its interval and decision; of amounts `more` and `less`."""
    if metric is None:
        return None
    found = base.decision(metric.get("decision"))
    if not is_length:
        found = _MORE.get(str(metric.get("decision")), found)
    if found["word"] == _SAME:
        found = {**found, "word": "Same"}
    return {
        "change": fmt.change(metric.get("ratio")),
        "interval": fmt.interval(metric.get("low"), metric.get("high")),
        "decision": found,
        "q": fmt.probability(metric.get("q")),
    }


SECTION = base.Section("lines", "Line by line", view)
