"""Figure of latency distributions: each arm's distribution on a log axis, with a line of marks for its quantiles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NotRequired, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views

_RAIL = (("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p99.9", "p99.9"))
_MARK_SIZE = {True: 10, False: 11}


class _Step(TypedDict):
    """A corner of an arm's outline."""

    arm: str
    ns: float
    share: float


class _Mark(TypedDict):
    """A mark for a quantile, or a label for several quantiles."""

    arm: str
    mark: str
    ns: float
    tip: NotRequired[str]


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None if the analysis has no `figures.distribution`."""
    import altair as alt

    steps = _steps(analysis)
    if not steps:
        return None
    rail = _rail(analysis, {step["arm"] for step in steps})
    times = [step["ns"] for step in steps] + [mark["ns"] for mark in rail]
    low, high = axes.nonempty_range(min(times), max(times))
    x_scale = {"type": "log", "domain": [low, high], "nice": False}
    shown = base.shown_arms(analysis, steps)
    x_axis = {"title": "latency, logarithmic", "grid": True, **base.duration_axis(low, high, look)}
    shape = (
        alt.Chart(base.data(steps))
        .mark_area(interpolate="step-after", fillOpacity=0.16, line={"strokeWidth": 1.8}, clip=True)
        .encode(
            x=alt.X("ns:Q", scale=x_scale, axis=None if rail else x_axis),
            y=alt.Y("share:Q", stack=None, axis=_share_axis(steps, look)),
            color=base.arm_colour(analysis, shown, look),
        )
        .properties(width=look.plot, height=look.height(230))
    )
    if not rail:
        return theme.finish(shape, FIGURE.title, FIGURE.how_to_read, look)
    rails = _rail_chart(analysis, rail, shown, alt.X("ns:Q", scale=x_scale, axis=x_axis), (low, high), look)
    both = views.vconcat(shape, rails, spacing=6).resolve_scale(color="shared", x="shared")
    return theme.finish(both, FIGURE.title, FIGURE.how_to_read, look)


def _steps(analysis: Analysis) -> list[_Step]:
    """Return the outline of each arm's buckets; it goes down to zero in a gap between buckets."""
    steps: list[_Step] = []
    for arm, entry, where in reading.figure_entries(analysis, "distribution"):
        buckets = reading.rows(entry, where, ("low_ns", "high_ns", "share"))
        buckets = [bucket for bucket in buckets if bucket["low_ns"] > 0]
        for bucket, following in pairwise([*buckets, None]):
            assert bucket is not None
            steps.append({"arm": arm, "ns": bucket["low_ns"], "share": bucket["share"]})
            if following is None or following["low_ns"] > bucket["high_ns"]:
                steps.append({"arm": arm, "ns": bucket["high_ns"], "share": 0})
    return steps


def _rail(analysis: Analysis, shown: set[str]) -> list[_Mark]:
    names, marks = reading.arm_names(analysis), list[_Mark]()
    for arm in reading.entries(analysis, "arms"):
        name = reading.arm_name(names, arm.get("index"))
        given = [(label, reading.dig(arm, "quantiles_ns", key)) for key, label in _RAIL]
        for label, ns in [*given, ("max", arm.get("max_ns"))]:
            if name in shown and ns is not None and ns > 0:
                tip = f"{name}: {label} {fmt.duration(ns, 4)}"
                marks.append({"arm": name, "mark": label, "ns": ns, "tip": tip})
    return marks


def _rail_chart(
    analysis: Analysis,
    rail: list[_Mark],
    shown: list[str],
    x: Any,
    span: tuple[float, float],
    look: theme.Look,
) -> Any:
    import altair as alt

    y = alt.Y("arm:N", sort=shown, axis=None)
    chart = alt.Chart(base.data(rail))
    colour = base.arm_colour(analysis, shown, look)
    line = chart.mark_line(strokeWidth=1.5, opacity=0.55).encode(x=x, y=y, color=colour)
    dots = chart.mark_point(filled=True, size=42, opacity=1, aria=True).encode(
        x=x, y=y, color=colour, description=alt.Description("tip:N")
    )
    text = (
        alt.Chart(base.data(_labels(rail, *span, look)))
        .mark_text(dy=-10, fontSize=_MARK_SIZE[look.narrow])
        .encode(x=x, y=y, text=alt.Text("mark:N"))
    )
    return views.layer(line, dots, text, width=look.plot, height=26 * len(shown) + 8)


def _labels(rail: list[_Mark], low: float, high: float, look: theme.Look) -> list[_Mark]:
    """Return the labels of the marks; labels of one arm that would overlap are joined: `p99, p99.9, max`."""
    per_px = math.log(high / low) / look.plot
    labels: list[_Mark] = []
    for arm in dict.fromkeys(mark["arm"] for mark in rail):
        own = sorted((mark for mark in rail if mark["arm"] == arm), key=lambda mark: float(mark["ns"]))
        groups = [_Label([mark["mark"]], [math.log(mark["ns"] / low) / per_px], look) for mark in own]
        while (
            clash := next((a for a, b in pairwise(range(len(groups))) if groups[b].left < groups[a].right), None)
        ) is not None:
            groups[clash : clash + 2] = [groups[clash].joined(groups[clash + 1])]
        labels += [{"arm": arm, "mark": g.text, "ns": low * math.exp(g.middle * per_px)} for g in groups]
    return labels


@dataclass(frozen=True)
class _Label:
    """A label over one or several neighbouring marks, centred over them but within the frame; positions in pixels."""

    names: list[str]
    places: list[float]
    look: theme.Look

    @property
    def text(self) -> str:
        return ", ".join(self.names)

    @property
    def _half(self) -> float:
        return (len(self.text) * _MARK_SIZE[self.look.narrow] * theme.LETTER + 4) / 2

    @property
    def middle(self) -> float:
        return min((self.places[0] + self.places[-1]) / 2, self.look.plot + 8 - self._half)

    @property
    def left(self) -> float:
        return self.middle - self._half

    @property
    def right(self) -> float:
        return self.middle + self._half

    def joined(self, label: _Label) -> _Label:
        return _Label([*self.names, *label.names], [*self.places, *label.places], self.look)


def _share_axis(steps: list[_Step], look: theme.Look) -> Any:

    ticks = axes.linear_ticks(0, max(step["share"] for step in steps), 5)
    return {
        **base.y_title("share of operations per bucket", look),
        **axes.axis_labels(ticks, axes.percent_label),
    }


FIGURE = base.Figure(
    name="distribution",
    title="How long operations took",
    how_to_read="Each outline is one arm: it is higher where more operations took that long. "
    "The line below marks its median (p50), its slow quantiles and its single "
    "slowest operation.",
    draw=draw,
)
