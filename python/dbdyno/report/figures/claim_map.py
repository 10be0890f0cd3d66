"""Figure of a claim's map: a quantity over a parameter that is not published, with a curve per value of another one."""

from __future__ import annotations

from typing import Any, TypedDict

from dbdyno.base.json_types import TableRow
from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views


class _Point(TypedDict):
    """A measured point of a curve with the ends of its interval."""

    curve: str
    x: float
    value: float
    low: float
    high: float
    tip: str


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None if the page has no map."""
    points = _points(analysis)
    if analysis.get("page") != "claim_map" or not points:
        return None
    published = [
        {"name": fmt.line(row.get("name") or "", 40), "value": value}
        for row in reading.entries(analysis, "published")
        if (value := fmt.number(row.get("value"))) is not None and value > 0
    ]
    chart = _chart(analysis, points, published, look)
    return theme.finish(chart, FIGURE.title, FIGURE.how_to_read, look)


def _points(analysis: Analysis) -> list[_Point]:
    found: list[_Point] = []
    for row in reading.entries(analysis, "points"):
        x, value = fmt.number(row.get("x")), fmt.number(row.get("value"))
        if x is None or value is None or x <= 0 or value <= 0:
            continue
        low, high = (fmt.number(row.get(key)) for key in ("low", "high"))
        curve = fmt.line(row.get("curve") or "", 60)
        ends = (max(value if low is None else low, value / 10), value if high is None else high)
        tip = f"{curve}, {fmt.significant(x)}: {fmt.significant(value)}"
        found.append({"curve": curve, "x": x, "value": value, "low": ends[0], "high": ends[1], "tip": tip})
    return found


def _chart(analysis: Analysis, points: list[_Point], published: list[TableRow], look: theme.Look) -> Any:
    import altair as alt

    names = list(dict.fromkeys(point["curve"] for point in points))
    places = sorted({point["x"] for point in points})
    left, right = axes.padded_range(places, 0.04, log=True)
    ends = [end for point in points for end in (point["low"], point["high"])]
    low, high = axes.padded_range([*ends, *(row["value"] for row in published)], 0.06, log=True)
    words = {key: fmt.line(analysis.get(key) or "", 60) for key in ("parameter", "quantity")}
    label = axes.count_label(1_000)
    ticks = axes.log_ticks(left, right, 5 if look.narrow else 9)
    across = base.log_channel(left, right, {"title": words["parameter"], **axes.axis_labels(ticks, label)})
    beside = axes.axis_labels(axes.log_ticks(low, high, 7), label)
    upright = base.log_channel(low, high, {**base.y_title(words["quantity"], look), **beside})
    colour = base.curve_colour(names, look)
    x, y = alt.X("x:Q", **across), alt.Y("value:Q", **upright)
    rows = alt.Chart(base.data(points))
    crossings = [
        {**row, "tip": f"{row.get('curve')}: {fmt.significant(row.get('value'))} at {fmt.significant(row.get('x'))}"}
        for row in reading.entries(analysis, "crossings")
    ]
    bands = (fmt.number(analysis.get("band_low")), fmt.number(analysis.get("band_high")))
    band = [{"low": max(bands[0] or low, low), "high": min(bands[1] or high, high)}]
    layers = [
        alt.Chart(base.data(band if any(bands) else []))
        .mark_rect(color=theme.BAND, opacity=0.16)
        .encode(y=alt.Y("low:Q", **upright), y2=alt.Y2("high")),
        alt.Chart(base.data(published)).mark_rule(color=theme.INK, strokeDash=[4, 3]).encode(y=y),
        rows.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour),
        *base.dots_with_intervals(rows, x, y, (alt.Y("low:Q", **upright), alt.Y2("high")), colour),
        alt.Chart(base.data(crossings))
        .mark_point(shape="diamond", size=130, color=theme.INK, strokeWidth=1.8, aria=True)
        .encode(x=x, y=y, description=alt.Description("tip:N")),
    ]
    return views.layer(*layers, width=look.plot, height=look.height(300))


FIGURE = base.Figure(
    name="claim_map",
    title="The claim over the values that its source does not state",
    how_to_read="A curve per setting, a dot per point with its interval over replications. Dashed: what was "
    "published; a diamond is where a curve gives that value. The grey band is what the claim requires. Scales are "
    "logarithmic.",
    draw=draw,
)
