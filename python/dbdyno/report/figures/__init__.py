"""Figures of an analysis: one file each, a pure function from the model to a chart.

Example:
    >>> from dbdyno.report.figures import write_figures
    >>> write_figures(analysis, Path("figures"))            # doctest: +SKIP
    [PosixPath('figures/distribution.png'), PosixPath('figures/distribution.svg'), ...]

To add a figure, write a file in this folder that ends in `FIGURE = Figure(...)`, and add it to `order`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from dbdyno.base.errors import ReportError
from dbdyno.pages import reading
from dbdyno.report.figures import (
    blocks,
    cells_changes,
    cells_heat,
    cells_map,
    cells_rounds,
    cells_series,
    cells_skew,
    claim_map,
    contributions,
    correlation,
    curve,
    distribution,
    flash,
    flow,
    heatmap,
    machine,
    move_chunks,
    over_time,
    quantile_ratio,
    query,
    session_history,
    session_svg,
    snapshot_series,
    sweep,
    tail,
    trace_profile,
    trace_timeline,
    trace_tree,
    trend,
    wait_distribution,
    wait_longest,
    wait_series,
    waits,
    whatif,
)
from dbdyno.report.figures.base import Figure
from dbdyno.report.figures.theme import NARROW, WIDE, Look, fit_titles
from dbdyno.report.files import write_whole

__all__ = [
    "NARROW",
    "ORDER",
    "WIDE",
    "Figure",
    "Look",
    "draw",
    "draw_all",
    "encoded_figure",
    "order",
    "write_figure",
    "write_figures",
]

ORDER = tuple(
    module.FIGURE
    for module in (
        distribution,
        quantile_ratio,
        tail,
        blocks,
        heatmap,
        waits,
        over_time,
        curve,
        sweep,
        correlation,
        contributions,
    )
)
TRACE = tuple(
    module.FIGURE
    for module in (
        trace_profile,
        trace_tree,
        trace_timeline,
        wait_distribution,
        wait_series,
        wait_longest,
    )
)
SNAPSHOT = (snapshot_series.FIGURE, session_history.FIGURE)
OWN: dict[str, tuple[Figure, ...]] = {
    "trace": TRACE,
    "snapshot": SNAPSHOT,
    "model": (claim_map.FIGURE, whatif.FIGURE),
    "cells": (),
    "trend": (trend.FIGURE,),
    "flow": (flow.FIGURE,),
    "flash": (flash.FIGURE,),
    "move": (move_chunks.FIGURE,),
    "query": (query.FIGURE,),
}
"""Figures by kind of page, for pages that do not have the figures of a run."""
FORMATS = ("png", "svg")
ELSEWHERE: ContextVar[Callable[[str, Mapping[str, Any]], dict[str, str] | None] | None] = ContextVar(
    "elsewhere", default=None
)
"""Drawing service that a program has set to draw figures in another process; the pages in a browser use it."""
_PAPER = "white"
_PNG_SCALE = 2


def order(kind: str, model: Mapping[str, Any] | None = None) -> tuple[Figure, ...]:
    """Return the figures in the order of a report of this kind.

    For runs, the figure named after the kind comes first. Pages about traces, snapshots and others have figures of
    their own (`OWN`); a page about cells has one for each family of metrics and kind of disk in its model.
    """
    if kind == "cells":
        own = dict(model or {})
        return (
            cells_heat.FIGURE,
            cells_rounds.FIGURE,
            *cells_series.figures(own),
            *cells_map.figures(own),
            cells_skew.FIGURE,
            cells_changes.FIGURE,
        )
    if kind in OWN:
        return OWN[kind]
    return tuple(sorted(ORDER, key=lambda figure: figure.name != kind))


def draw(name: str, analysis: Mapping[str, Any], look: Look = WIDE) -> Any | None:
    """Return one figure as an `altair` chart, or None if the analysis lacks its data.

    Raises:
        ReportError: no figure has this name, or the analysis is damaged.
    """
    every = _all_figures(analysis)
    for figure in every:
        if figure.name == name:
            return figure.draw(reading.read(analysis), look)
    known = ", ".join(figure.name for figure in every)
    raise ReportError(f"expected one of {known}, found {name!r}", where="figure")


def _all_figures(model: Mapping[str, Any]) -> tuple[Figure, ...]:
    return (
        *ORDER,
        *TRACE,
        *SNAPSHOT,
        *OWN["trend"],
        *OWN["flow"],
        *OWN["flash"],
        *OWN["move"],
        *OWN["query"],
        *OWN["model"],
        *order("cells", model),
    )


def figure_named(kind: str, data: Mapping[str, Any]) -> Figure | None:
    """Return the figure of this kind, or None; figures about cells depend on the families of metrics in the data."""
    return next((one for one in _all_figures(data) if one.name == kind), None)


def draw_figure(kind: str, data: Mapping[str, Any]) -> dict[str, str] | None:
    """Return a figure for a page, or None if there are no data.

    The result has name, title, how to read the figure, and SVG for a wide page and for a phone.
    """
    if kind == machine.KIND:
        return machine.draw_machine(dict(data))
    if kind == session_history.FIGURE.name:
        return _sessions(data)
    if (elsewhere := ELSEWHERE.get()) is not None:
        return elsewhere(kind, data)
    from altair.utils.schemapi import debug_mode

    from dbdyno.report import svg

    figure = figure_named(kind, data)
    if figure is None:
        return None
    made = {"name": figure.name, "title": figure.title, "how": figure.how_to_read}
    label = f"{figure.title}. {figure.how_to_read}"
    for name, look in (("wide", WIDE), ("narrow", NARROW)):
        with debug_mode(False):
            chart = figure.draw(dict(data), look)
            if chart is None:
                return None
            made[name] = svg.inline(chart, f"{figure.name}-{name}", label)
    return made


def _sessions(data: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the figure of active sessions, which is drawn without Vega."""
    figure = session_history.FIGURE
    label = f"{figure.title}. {figure.how_to_read}"
    wide, narrow = (session_svg.svg(dict(data), look, label) for look in (WIDE, NARROW))
    if wide is None or narrow is None:
        return None
    return {"name": figure.name, "title": figure.title, "how": figure.how_to_read, "wide": wide, "narrow": narrow}


def draw_all(
    analysis: Mapping[str, Any], look: Look = WIDE, names: Container[str] | None = None
) -> Iterator[tuple[Figure, Any]]:
    """Yield each figure for which the analysis has data, with its chart; only figures in `names` if given.

    Altair's validation against its schema is turned off while drawing: it takes longer than the drawing, and the tests
    perform it.
    """
    from altair.utils.schemapi import debug_mode

    safe = reading.read(analysis)
    for figure in order(safe["kind"], safe):
        if names is not None and figure.name not in names:
            continue
        with debug_mode(False):
            chart = figure.draw(safe, look)
        if chart is not None:
            yield figure, chart


def write_figures(analysis: Mapping[str, Any], directory: Path | str, formats: Iterable[str] = FORMATS) -> list[Path]:
    """Write each figure in each format as `<directory>/<name>.<format>`, and return the paths in report order.

    A `png` has twice the pixels. The directory is created if needed; each file is written completely or not at all.

    Raises:
        ReportError: a format is unknown, the analysis is damaged, or the directory cannot be written.
    """
    wanted = list(dict.fromkeys(formats))
    for name in wanted:
        if name not in FORMATS:
            raise ReportError(f"expected one of {', '.join(FORMATS)}, found {name!r}", where="formats")
    folder = Path(directory)
    written = []
    for figure, chart in draw_all(analysis):
        spec = _paper(chart)
        for name in wanted:
            path = folder / f"{figure.name}.{name}"
            write_whole(path, _encode(spec, name))
            written.append(path)
    return written


def write_figure(analysis: Mapping[str, Any], path: Path | str) -> Path:
    """Write the first figure for which the analysis has data; the suffix of `path` is the format.

    Raises:
        ReportError: there is no such figure, the suffix is unknown, or the file cannot be written.
    """
    target = Path(path)
    write_whole(target, encoded_figure(analysis, target.suffix.removeprefix(".").lower(), str(path)))
    return target


def encoded_figure(analysis: Mapping[str, Any], name: str, where: str = "figure") -> bytes:
    """Return the first figure for which the analysis has data, as `png` or `svg`.

    Raises:
        ReportError: there is no such figure, or the format is unknown.
    """
    if name not in FORMATS:
        raise ReportError(f"expected one of {', '.join(FORMATS)}, found {name!r}", where=where)
    for _, chart in draw_all(analysis):
        return _encode(_paper(chart), name)
    raise ReportError("this output does not have a figure", where=where, next_step="write to .html, .csv or .json")


def _paper(chart: Any) -> dict[str, object]:
    spec: dict[str, object] = chart.to_dict(validate=False) | {"background": _PAPER, "padding": 16}
    head = spec.pop("title", None)
    return fit_titles(spec) | ({"title": head} if head else {})


def _encode(spec: dict[str, object], name: str) -> bytes:
    import vl_convert

    from dbdyno.report.svg import vega_lite_version

    version = vega_lite_version()
    if name == "svg":
        return str(vl_convert.vegalite_to_svg(spec, vl_version=version)).encode()
    return bytes(vl_convert.vegalite_to_png(spec, vl_version=version, scale=_PNG_SCALE))
