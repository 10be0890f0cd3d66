"""The curve of a commit's time over the redo it has to make durable, with the fitted shape."""

from __future__ import annotations

from typing import Any

from dbdyno.report import format as fmt
from dbdyno.report import reading
from dbdyno.report.figures import axes, base, theme
from dbdyno.report.reading import Analysis


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """The chart, or None without `figures.curve`."""
    import altair as alt

    curve = reading.dig(analysis, "figures", "curve")
    if not curve:
        return None
    bins, points, fit = _bins(curve), _points(curve, "points"), _points(curve, "fit")
    if not (bins or points or fit):
        return None
    width = max(row["x"] for row in [*bins, *points, *fit]) or 1
    top = _top(bins, points, fit)
    above = [point for point in points if point["y"] > top]
    x = alt.X(
        "x:Q",
        scale={"domain": [0, width * 1.02], "nice": False},
        axis=_x_axis(curve, width, look),
    )
    upright: dict[str, Any] = {
        "scale": {"domain": [0, top], "nice": False},
        "axis": _y_axis(top, look),
    }
    y = alt.Y("y:Q", **upright)
    inside = alt.Chart(base.data([point for point in points if point["y"] <= top]))
    layers = [
        *_period(curve, width),
        inside.mark_circle(size=9, opacity=0.22, color=theme.BASELINE).encode(x=x, y=y),
        *_above(above, x, look),
        alt.Chart(base.data(bins))
        .mark_rule(strokeWidth=2, color=theme.BASELINE, opacity=0.75)
        .encode(x=x, y=alt.Y("low:Q", **upright), y2=alt.Y2("high")),
        alt.Chart(base.data(bins))
        .mark_point(filled=True, size=46, color=theme.BASELINE, opacity=1, aria=True)
        .encode(x=x, y=y, description=alt.Description("tip:N")),
        alt.Chart(base.data(fit))
        .mark_line(strokeWidth=2.5, color=theme.OTHERS[0], clip=True)
        .encode(x=x, y=y, order=alt.Order("x:Q")),
    ]
    layered = alt.layer(*layers, width=look.plot, height=look.height(340))
    return theme.finish(layered, FIGURE.title, FIGURE.how_to_read, look)


def _bins(curve: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for row in reading.entries(curve, "bins"):
        x, y = fmt.number(row.get("redo_bytes")), fmt.number(row.get("median_ns"))
        if x is None or y is None:
            continue
        tip = f"{fmt.size(x)}: median {fmt.duration(y)} ({fmt.duration(row.get('low_ns'))} to "
        tip += f"{fmt.duration(row.get('high_ns'))}), {fmt.count(row.get('n'))} commits"
        low, high = fmt.number(row.get("low_ns")), fmt.number(row.get("high_ns"))
        found.append(
            {
                "x": x,
                "y": y,
                "low": y if low is None else low,
                "high": y if high is None else high,
                "tip": tip,
            }
        )
    return found


def _points(curve: dict[str, Any], key: str) -> list[dict[str, Any]]:
    entry = reading.dig(curve, key) or {}
    if not entry:
        return []
    found = reading.rows(entry, f"figures.curve.{key}", ("redo_bytes", "elapsed_ns"))
    return [{"x": row["redo_bytes"], "y": row["elapsed_ns"]} for row in found]


def _top(
    bins: list[dict[str, Any]], points: list[dict[str, Any]], fit: list[dict[str, Any]]
) -> float:
    """The upper end: bins and fit decide, so that one stall does not flatten the curve."""
    decisive = [row["high"] for row in bins] + [row["y"] for row in fit]
    most = max(decisive) * 1.25 if decisive else max(point["y"] for point in points)
    return float(most) or 1.0


def _above(above: list[dict[str, Any]], x: Any, look: theme.Look) -> list[Any]:
    """What lies above the frame is shown at its edge and counted, never dropped."""
    import altair as alt

    if not above:
        return []
    slowest = fmt.duration(max(point["y"] for point in above))
    noun = "commit" if len(above) == 1 else "commits"
    words = f"▲ {fmt.count(len(above))} slower {noun} above the frame, up to {slowest}"
    if look.narrow:
        words = f"▲ {fmt.count(len(above))} above, up to {slowest}"
    return [
        alt.Chart(base.data(above))
        .mark_point(shape="triangle-up", filled=True, size=22, opacity=0.5, color=theme.BASELINE)
        .encode(x=x, **base.placed(y=3)),
        alt.Chart(base.data([{"words": words}]))
        .mark_text(align="right", baseline="bottom", dy=-9)
        .encode(**base.placed(x="width", y=0), text=alt.Text("words:N")),
    ]


def _period(curve: dict[str, Any], width: float) -> list[Any]:
    """Dashed lines at the multiples of the period, where one was found."""
    import altair as alt

    period = fmt.number(curve.get("period_bytes"))
    if not curve.get("found") or period is None or not 0 < period <= width or width / period > 40:
        return []
    lines = [{"x": period * at} for at in range(1, int(width / period) + 1)]
    return [
        alt.Chart(base.data(lines))
        .mark_rule(color=theme.FAINT, strokeDash=[3, 4])
        .encode(x=alt.X("x:Q"))
    ]


def _x_axis(curve: dict[str, Any], width: float, look: theme.Look) -> Any:

    label = fmt.line(curve.get("x_label") or "redo written since the last commit", 60)
    ticks = axes.linear_ticks(0, width, 4 if look.narrow else 9, base=2)
    return {"title": label, **axes.labelled(ticks, axes.size_label)}


def _y_axis(top: float, look: theme.Look) -> Any:

    ticks = axes.linear_ticks(0, top, 6)
    return {**base.y_title("time of the commit", look), **axes.labelled(ticks, axes.duration_label)}


FIGURE = base.Figure(
    name="curve",
    title="What a commit costs, by the redo it has to write",
    how_to_read="Each large dot is the median of a bin, the bar its spread, the small dots "
    "single commits; the line is the shape that fits best. A sawtooth would "
    "rise and fall with a fixed period.",
    draw=draw,
)
