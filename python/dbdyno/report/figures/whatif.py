"""Figure of a what-if: modelled throughput and mean time over the levels of a factor, with one curve per setting."""

from __future__ import annotations

from typing import Any

from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import base, sweep, theme


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None for a page that is not a what-if."""
    return sweep.chart_of(analysis, FIGURE, look) if analysis.get("page") == "whatif" else None


FIGURE = base.Figure(
    name="whatif",
    title="What a change gains, according to the model",
    how_to_read="A curve per setting; the line at a dot is the band that the uncertainty of the fit leaves. Where a "
    "curve is flat, a resource is saturated. Numbers have logarithmic scales: doubling is the same distance "
    "everywhere.",
    draw=draw,
)
