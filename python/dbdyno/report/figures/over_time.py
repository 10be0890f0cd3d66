"""Figure of machine, engine and arms while the load ran: small panels on the same time axis."""

from __future__ import annotations

from typing import Any, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views

_ALL_ARMS = "all arms"
SHARE_LEAST, SHARE_WHOLE = 0.05, 0.4
"""The axis of a share reaches at least the first value, and 1 if any share exceeds the second value."""


class _Point(TypedDict):
    """A section of the run with a value measured for an arm."""

    arm: str
    measure: str
    unit: str
    at: float
    until: float
    middle: float
    value: float
    tip: str


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None if the analysis has no `figures.over_time`."""
    points = _points(analysis)
    if not points:
        return None
    names = reading.arm_names(analysis)
    shown = [name for name in (*names.values(), _ALL_ARMS) if any(point["arm"] == name for point in points)]
    low, high = min(p["at"] for p in points), max(p["until"] for p in points)
    colour = _colour(analysis, shown, look)
    panels = list(dict.fromkeys(point["measure"] for point in points))
    charts = []
    for measure in panels:
        mine = [point for point in points if point["measure"] == measure]
        x = base.run_time_x(low, high, look, is_last=measure == panels[-1])
        charts.append(_panel(mine, measure, x, colour, look))
    return theme.finish(views.vconcat(*charts, spacing=18), FIGURE.title, FIGURE.how_to_read, look)


def _panel(points: list[_Point], measure: str, x: Any, colour: Any, look: theme.Look) -> Any:
    import altair as alt

    unit = points[0]["unit"]
    top = max(point["value"] for point in points) or 1.0
    if unit == "share":
        top = 1.0 if top > SHARE_WHOLE else max(top, SHARE_LEAST)
    label = _LABELS[unit]
    ticks = axes.linear_ticks(0, top * 1.05, 3, base=2 if unit.startswith("bytes") else 10)
    y = alt.Y(
        "value:Q",
        scale={"domain": [0, top * 1.08], "nice": False},
        axis={**base.y_title(measure, look), **axes.axis_labels(ticks, label)},
    )
    chart = alt.Chart(base.data(points))
    bars = chart.mark_rule(strokeWidth=2.4, strokeCap="round").encode(x=x, x2=alt.X2("until"), y=y, color=colour)
    dots = chart.mark_point(filled=True, size=22, opacity=1, aria=True).encode(
        x=alt.X("middle:Q"), y=y, color=colour, description=alt.Description("tip:N")
    )
    return views.layer(bars, dots, width=look.plot, height=look.height(76))


def _points(analysis: Analysis) -> list[_Point]:
    names = reading.arm_names(analysis)
    points: list[_Point] = []
    for at, entry in enumerate(reading.entries(analysis, "figures", "over_time")):
        arm = _ALL_ARMS if entry.get("arm") is None else reading.arm_name(names, entry.get("arm"))
        measure, unit = fmt.line(entry.get("measure") or "", 40), str(entry.get("unit"))
        if unit not in _LABELS:
            continue
        for row in reading.rows(entry, f"figures.over_time[{at}]", ("at_s", "seconds", "value")):
            begin, until = row["at_s"], row["at_s"] + row["seconds"]
            points.append(
                {
                    "arm": arm,
                    "measure": measure,
                    "unit": unit,
                    "at": begin,
                    "until": until,
                    "middle": (begin + until) / 2,
                    "value": row["value"],
                    "tip": f"{arm}, {measure}: {_LABELS[unit](row['value'])} from {axes.seconds_label(round(begin))}",
                }
            )
    return points


def _colour(analysis: Analysis, shown: list[str], look: theme.Look) -> Any:
    import altair as alt

    scale = base.arm_scale(analysis)
    scale = {"domain": [*scale["domain"], _ALL_ARMS], "range": [*scale["range"], theme.SOFT]}
    legend = {"values": shown, "columns": look.columns(shown, 4), "offset": base.LEGEND_OVER_TITLE}
    return alt.Color("arm:N", scale=scale, legend=legend if len(shown) > 1 else None)


def _per_second(value: float) -> str:
    return "0" if value == 0 else f"{fmt.count(value) if value >= 100 else f'{value:.3g}'}/s"


def _count(value: float) -> str:
    return "0" if value == 0 else fmt.count(value) if value >= 100 else f"{value:.3g}"


def _bytes_per_second(value: float) -> str:
    return "0" if value == 0 else f"{axes.size_label(value)}/s"


_LABELS = {
    "share": axes.percent_label,
    "ns": axes.duration_label,
    "bytes": axes.size_label,
    "count": _count,
    "bytes/s": _bytes_per_second,
    "1/s": _per_second,
}


FIGURE = base.Figure(
    name="over_time",
    title="Machine, engine and arms over the run",
    how_to_read="Each dash is a part of the run: a turn of one arm, or a block in which arms alternated. Use per "
    "transaction is shown by arm. A level that changes over time but is the same for all arms is the machine's.",
    draw=draw,
)
