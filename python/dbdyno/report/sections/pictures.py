"""The figures as inline SVG, each drawn twice: for a wide page and for a phone."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base

if TYPE_CHECKING:
    from dbdyno.report.figures import Figure


def view(analysis: Analysis, names: Container[str] | None = None) -> base.View | None:
    """The pictures that the analysis has data for, or None without any; only those of `names`."""
    from dbdyno.report import figures

    drawn = figures.draw_all(analysis, figures.NARROW, names)
    narrow = {figure.name: chart for figure, chart in drawn}
    pictures = [
        {
            "name": figure.name,
            "title": figure.title,
            "how": figure.how_to_read,
            "wide": _inline(chart, f"{figure.name}-wide", figure),
            "narrow": _inline(narrow[figure.name], f"{figure.name}-narrow", figure),
            "curves": _curves(analysis) if figure.name == "curve" else [],
        }
        for figure, chart in figures.draw_all(analysis, figures.WIDE, names)
    ]
    return {"pictures": pictures} if pictures else None


def _inline(chart: Any, prefix: str, figure: Figure) -> Any:
    from markupsafe import Markup

    from dbdyno.report import svg

    label = f"{figure.title}. {figure.how_to_read}"
    return Markup(svg.inline(chart, prefix, label))  # noqa: S704 - reduced to an allow list in svg.py


def _curves(analysis: Analysis) -> list[base.View]:
    """What was fitted to each curve, and which shape the data prefer."""
    curves = reading.curves(analysis)
    return [
        {
            "arm": base.arm(analysis, curve.get("arm")) if len(curves) > 1 else None,
            "sentence": fmt.line(curve.get("sentence") or ""),
            "period": fmt.size(curve.get("period_bytes")) if curve.get("period_bytes") else "",
            "models": [
                {
                    "name": fmt.line(model.get("name") or ""),
                    "parameters": fmt.count(model.get("parameters")),
                    "bic": fmt.significant(model.get("bic"), 5),
                    "chosen": bool(model.get("chosen")),
                }
                for model in reading.entries(curve, "models")
            ],
        }
        for curve in curves
    ]


SECTION = base.Section("figures", "Figures", view)
