"""Writing of one chart as a file: PNG, SVG, or an HTML page that needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dbdyno.base.errors import ReportError
from dbdyno.report.files import write_whole

SUFFIXES = (".png", ".svg", ".html")
_PNG_SCALE = 2


def write_chart(chart: Any, path: Path) -> None:
    """Write an `altair` chart in the format given by the suffix of `path`.

    A `.html` file contains the scripts that draw it and loads nothing.

    Raises:
        ReportError: the suffix is unknown, or the file cannot be written.
    """
    import vl_convert

    from dbdyno.report.svg import vega_lite_version

    if path.suffix not in SUFFIXES:
        raise ReportError(
            f"the suffix of {path} is not a known picture format",
            next_step=f"use one of {', '.join(SUFFIXES)}",
        )
    chart.background, chart.padding = "white", 16
    spec, version = chart.to_dict(validate=False), vega_lite_version()
    if path.suffix == ".svg":
        content = str(vl_convert.vegalite_to_svg(spec, vl_version=version)).encode()
    elif path.suffix == ".html":
        page = vl_convert.vegalite_to_html(spec, vl_version=version, bundle=True)
        content = str(page).encode()
    else:
        content = bytes(vl_convert.vegalite_to_png(spec, vl_version=version, scale=_PNG_SCALE))
    write_whole(path, content)
