"""Figures of an analysis: one file each, a pure function from the model to a chart.

Example:
    >>> from dbdyno.report.figures import write_figures
    >>> write_figures(analysis, Path("figures"))            # doctest: +SKIP
    [PosixPath('figures/distribution.png'), PosixPath('figures/distribution.svg'), ...]

To add a figure: write a file beside this one that ends in `FIGURE = Figure(...)`, and name it in
`order`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dbdyno.base.errors import ReportError
from dbdyno.pages import reading
from dbdyno.report.figures import (
    blocks,
    cells_changes,
    cells_map,
    cells_rounds,
    cells_series,
    cells_skew,
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
    session_history,
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
)
from dbdyno.report.figures.base import Figure
from dbdyno.report.figures.theme import NARROW, WIDE, Look, fitted
from dbdyno.report.files import write_whole

__all__ = [
    "NARROW",
    "ORDER",
    "WIDE",
    "Figure",
    "Look",
    "draw",
    "draw_all",
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
    "model": (),
    "cells": (),
    "trend": (trend.FIGURE,),
    "flow": (flow.FIGURE,),
    "flash": (flash.FIGURE,),
    "move": (move_chunks.FIGURE,),
}
"""Kinds of page that have figures of their own."""
FORMATS = ("png", "svg")
_PAPER = "white"
_PNG_SCALE = 2


def order(kind: str, model: Mapping[str, Any] | None = None) -> tuple[Figure, ...]:
    """The figures in the order of a report of this kind: one with a figure of its own opens with
    it. A page about traces or snapshots has figures of its own, one about models its drawing, and
    one about cells those of the families of metrics that its model holds."""
    if kind == "cells":
        own = dict(model or {})
        return (
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
    """One figure as an `altair` chart, or None where the analysis lacks its data.

    Raises:
        ReportError: no figure has that name, or the analysis is torn.
    """
    every = _every(analysis)
    for figure in every:
        if figure.name == name:
            return figure.draw(reading.read(analysis), look)
    known = ", ".join(figure.name for figure in every)
    raise ReportError(f"expected one of {known}, found {name!r}", where="figure")


def _every(model: Mapping[str, Any]) -> tuple[Figure, ...]:
    return (*ORDER, *TRACE, *SNAPSHOT, *OWN["trend"], *OWN["flow"], *OWN["flash"], *OWN["move"], *order("cells", model))


def named(kind: str, data: Mapping[str, Any]) -> Figure | None:
    """The figure of that kind; those about cells depend on the families of metrics that the data hold."""
    return next((one for one in _every(data) if one.name == kind), None)


def drawn(kind: str, data: Mapping[str, Any]) -> dict[str, str] | None:
    """A figure for a page: name, title, how to read it, and SVG for a wide page and for a phone; None without data."""
    if kind == machine.KIND:
        return machine.drawn(dict(data))
    from altair.utils.schemapi import debug_mode

    from dbdyno.report import svg

    figure = named(kind, data)
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


def draw_all(
    analysis: Mapping[str, Any], look: Look = WIDE, names: Container[str] | None = None
) -> Iterator[tuple[Figure, Any]]:
    """Each figure that the analysis has data for, with its chart; only those of these names.

    Altair's check of every part against its schema is off while drawing: it takes longer than the
    drawing, and the tests make it.
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
    """Writes each figure in each format as `<directory>/<name>.<format>`.

    A `png` has twice the pixels. The directory is made where needed; a file is complete or not
    there. Returns the paths in the order of the report.

    Raises:
        ReportError: an unknown format, a torn analysis, or a directory that cannot be written.
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
            write_whole(path, _encoded(spec, name))
            written.append(path)
    return written


def write_figure(analysis: Mapping[str, Any], path: Path | str) -> Path:
    """Writes the first figure that the analysis has data for; the suffix of `path` is the format.

    Raises:
        ReportError: it has none, the suffix is unknown, or the file cannot be written.
    """
    target = Path(path)
    name = target.suffix.removeprefix(".").lower()
    if name not in FORMATS:
        raise ReportError(f"expected one of {', '.join(FORMATS)}, found {name!r}", where=str(path))
    for _, chart in draw_all(analysis):
        spec = _paper(chart)
        write_whole(target, _encoded(spec, name))
        return target
    raise ReportError("there is no figure of it", where=str(path), next_step="write to .html, .csv or .json")


def _paper(chart: Any) -> dict[str, object]:
    spec: dict[str, object] = chart.to_dict(validate=False) | {"background": _PAPER, "padding": 16}
    head = spec.pop("title", None)
    return fitted(spec) | ({"title": head} if head else {})


def _encoded(spec: dict[str, object], name: str) -> bytes:
    import vl_convert

    from dbdyno.report.svg import vega_lite_version

    version = vega_lite_version()
    if name == "svg":
        return str(vl_convert.vegalite_to_svg(spec, vl_version=version)).encode()
    return bytes(vl_convert.vegalite_to_png(spec, vl_version=version, scale=_PNG_SCALE))
