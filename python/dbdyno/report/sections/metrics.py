"""Every metric of every comparison: estimate, interval, decision, blocks that would tell."""

from __future__ import annotations

import math
from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base

STRIP = 168
"""Width of the strip that draws an interval, in CSS pixels."""

MEANS = "Before and after: geometric means of the blocks."
OF_MANY = (
    'An interval may lie off 0 and the decision still be "cannot tell": of several metrics some lie off by chance, '
    "and q, the p-value corrected for that (Benjamini and Hochberg), decides."
)
PROMISED_MOST = "over 1,000"


def view(analysis: Analysis) -> base.View | None:
    """One table per comparison, or None without metrics."""
    rows = reading.entries(analysis, "metrics")
    if not rows:
        return None
    matters = reading.threshold(analysis)
    pairs = list(dict.fromkeys((row.get("arm"), row.get("baseline")) for row in rows))
    tables = []
    for arm, baseline in pairs:
        mine = [row for row in rows if (row.get("arm"), row.get("baseline")) == (arm, baseline)]
        reach = _reach(mine, matters)
        tables.append(
            {
                "arm": base.arm(analysis, arm),
                "baseline": base.arm(analysis, baseline),
                "rows": [_row(row, reach) for row in mine],
                "band": _band(matters, reach),
                "reach": reach,
            }
        )
    levels = {fmt.percent(row.get("level"), 3, trim=True) for row in rows if row.get("level") is not None}
    return {
        "tables": tables,
        "level": levels.pop() if len(levels) == 1 else "",
        "threshold": fmt.percent(matters, trim=True) if matters else "",
        "strip": STRIP,
        "is_aa": analysis["kind"] == "aa",
        "notes": [MEANS] + ([OF_MANY] if any(map(_one_of_many, rows)) else []),
    }


def _row(row: dict[str, Any], reach: float) -> base.View:
    unit = row.get("unit")
    boot = fmt.interval(row.get("boot_low"), row.get("boot_high"))
    return {
        "label": fmt.line(row.get("label") or row.get("metric") or ""),
        "higher_is_better": bool(row.get("higher_is_better")),
        "base": fmt.quantity(row.get("base_value"), unit),
        "value": fmt.quantity(row.get("value"), unit),
        "change": fmt.change(row.get("ratio")),
        "interval": fmt.interval(row.get("low"), row.get("high")),
        "boot": "" if boot == fmt.NONE else boot,
        "ends": tuple(fmt.number(row.get(key)) for key in ("ratio", "low", "high")),
        "strip": _strip(row, reach),
        "decision": base.decision(row.get("decision")),
        "words": fmt.line(row.get("words") or ""),
        "p": fmt.probability(row.get("p")),
        "q": fmt.probability(row.get("q")),
        "visible": fmt.percent(row.get("smallest_visible")),
        "blocks": fmt.count(row.get("blocks")),
        "needed": _needed(row),
    }


def _one_of_many(row: dict[str, Any]) -> bool:
    """Whether a row's interval excludes no change, and it is not called different all the same."""
    low, high = fmt.number(row.get("low")), fmt.number(row.get("high"))
    return row.get("decision") == "unclear" and low is not None and high is not None and (low - 1) * (high - 1) > 0


def _needed(row: dict[str, Any]) -> str:
    """The blocks that would tell, where the row does not: an interval; empty where there is none."""
    low, high = row.get("tell_low"), row.get("tell_high")
    if row.get("decision") not in ("unclear", "provisional") or low is None:
        return ""
    if low == high:
        return fmt.count(low)
    return f"{fmt.count(low)} to {PROMISED_MOST if high is None else fmt.count(high)}"


def _reach(rows: list[dict[str, Any]], matters: float | None) -> float:
    """Half the width of the strips as a logarithm of a ratio.

    One wide interval must not flatten the others: 1.7 times the median reach; what goes on is cut.
    """
    ends = [[fmt.number(row.get(key)) for key in ("ratio", "low", "high")] for row in rows]
    farthest = sorted(max((abs(math.log(end)) for end in three if end and end > 0), default=0.0) for three in ends)
    middle = farthest[len(farthest) // 2]
    return max(1.7 * middle, math.log1p(3 * (matters or 0.02)))


def _place(ratio: float, reach: float) -> float:
    """A ratio's place on the strip in pixels, kept inside it."""
    share = (math.log(ratio) / reach + 1) / 2
    return round(min(max(share, 0.0), 1.0) * STRIP, 1)


def _strip(row: dict[str, Any], reach: float) -> base.View | None:
    """Places of estimate and interval; `cut_low`, `cut_high`: it goes on beyond the strip."""
    ratio, low, high = (fmt.number(row.get(key)) for key in ("ratio", "low", "high"))
    if ratio is None or ratio <= 0:
        return None
    known = low is not None and high is not None and low > 0 and high > 0
    low, high = (low, high) if known else (ratio, ratio)
    assert low is not None and high is not None
    return {
        "at": _place(ratio, reach),
        "low": _place(low, reach),
        "width": round(max(_place(high, reach) - _place(low, reach), 1.0), 1),
        "cut_low": math.log(low) < -reach,
        "cut_high": math.log(high) > reach,
    }


def _band(matters: float | None, reach: float) -> base.View | None:
    if not matters:
        return None
    left, right = _place(1 / (1 + matters), reach), _place(1 + matters, reach)
    return {"x": left, "width": round(right - left, 1)}


SECTION = base.Section("metrics", "Metrics", view)
