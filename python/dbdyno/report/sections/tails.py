"""The slow ends of two sets of traces, or of two arms, apart from their middles."""

from __future__ import annotations

from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base


def view(analysis: Analysis) -> base.View | None:
    """The far quantiles and two sentences, or None without a tail."""
    given = reading.dig(analysis, "tails")
    if not given:
        return None
    names = reading.arm_names(analysis)
    shown = [names.get(0, "A"), names.get(1, "B")]
    return {
        "names": shown,
        "sentences": [s for s in (_exceed(given, shown), _longest(given, shown)) if s],
        "rows": [
            {
                "name": fmt.line(row.get("name") or ""),
                "times": [fmt.duration(v) for v in row.get("values_ns") or []],
                "change": _change(row.get("values_ns") or []),
            }
            for row in reading.entries(given, "quantiles")
        ],
    }


def _change(values: list[Any]) -> str:
    if len(values) != 2 or not all(values):
        return fmt.NONE
    return fmt.change(values[1] / values[0])


def _exceed(given: dict[str, Any], names: list[str]) -> str:
    found = reading.dig(given, "exceed") or {}
    shares = found.get("shares") or []
    if len(shares) != 2:
        return ""
    limit = fmt.duration(given.get("threshold_ns"))
    told = " and ".join(f"{fmt.percent(share)} in {name}" for share, name in zip(shares, names, strict=True))
    sentence = f"Longer than {limit}, the p99 of {names[0]}: {told}"
    if found.get("difference") is None:
        return sentence + "."
    low, high = (_points(found.get(key)) for key in ("low", "high"))
    p = fmt.probability(found.get("p"))
    return f"{sentence}; the difference is {low} to {high} points over blocks, p {_equals(p)}."


def _points(share: Any) -> str:
    given = fmt.number(share)
    if given is None:
        return fmt.NONE
    return f"{'+' if given > 0 else fmt.MINUS if given < 0 else ''}{abs(given) * 100:.2g}"


def _equals(p: str) -> str:
    return p if p.startswith("<") else f"= {p}"


def _longest(given: dict[str, Any], names: list[str]) -> str:
    found = reading.dig(given, "longest") or {}
    counts, expected = found.get("counts") or [], found.get("expected") or []
    if len(counts) != 2 or not found.get("most"):
        return ""
    return (
        f"Of the {fmt.count(found['most'])} longest of both, {fmt.count(counts[1])} are of "
        f"{names[1]}; if they were alike, it would be about {fmt.count(round(expected[1]))}."
    )


SECTION = base.Section("tails", "The slow tail, compared apart", view)
