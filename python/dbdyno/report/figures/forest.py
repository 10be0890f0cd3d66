"""Forest plot shared by figures of comparisons: ratios below each other, each a dot with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict

from dbdyno.report.figures import axes, base, theme, views

LEFT, LEFT_NARROW = 360, 150


class Ratio(TypedDict):
    """A line of the figure; its name is unique, and `pale` draws it in a muted colour."""

    name: str
    ratio: float
    low: float
    high: float
    tip: str
    pale: NotRequired[bool]


def layers(rows: Sequence[Ratio], title: str, look: theme.Look) -> Any:
    """Return the chart of these rows, with a line for no change."""
    import altair as alt

    low, high = axes.padded_range([1.0, *(end for r in rows for end in (r["low"], r["high"]))], 0.06, log=True)
    ticks, label = axes.ratio_ticks(low, high, 5 if look.narrow else 9)
    x = base.log_channel(low, high, {"title": title, "grid": True, **axes.axis_labels(ticks, label)})
    names = [row["name"] for row in rows]
    left = LEFT_NARROW if look.narrow else LEFT
    y = alt.Y(
        "name:N",
        sort=names,
        scale={"domain": names},
        axis={
            "title": None,
            "labelLimit": left - 24,
            "minExtent": left,
            "maxExtent": left,
            "domain": False,
            "ticks": False,
        },
    )
    line = alt.Chart(base.data([{"one": 1}])).mark_rule(color=theme.INK, strokeWidth=1)
    parts = [line.encode(x=alt.X("one:Q", **x))]
    for pale, colour in ((True, theme.FAINT), (False, theme.OTHERS[0])):
        own = [row for row in rows if bool(row.get("pale")) == pale]
        if not own:
            continue
        chart = alt.Chart(base.data(own))
        parts += [
            chart.mark_rule(strokeWidth=2.4, color=colour).encode(x=alt.X("low:Q", **x), x2=alt.X2("high"), y=y),
            chart.mark_point(filled=True, size=60, color=colour, opacity=1, aria=True).encode(
                x=alt.X("ratio:Q", **x), y=y, description=alt.Description("tip:N")
            ),
        ]
    return views.layer(*parts, width=look.width - left - 30, height=22 * len(rows))
